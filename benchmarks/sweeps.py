"""Every set's sweep against the nominal one, memory, scipy, a second core and the baseline commit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.figure import Figure
from benchmarks.tasks import SETS
from benchmarks.workers import Request, Workers, start_workers

TOY = {"n_states": 400}
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Bar(NamedTuple):
    """Of a set's sweep: at most so many nominal ones, and at least so many times faster than the baseline."""

    ratio: float
    goal: float | None = None
    speedup: float = 1.0


_BARS = {
    "chi-square penalty": Bar(1.5, 1.1, 2.5),
    "total variation penalty": Bar(1.5, 1.1),
    "KL penalty": Bar(2.0, 1.5),
    "Hellinger penalty": Bar(3.0, 2.0, 15.0),
    "chi-square ball": Bar(3.0),
    "total variation ball": Bar(3.0),
    "KL ball": Bar(4.0),
}
_OTHER_PENALTY, _OTHER_BALL = Bar(3.0, 2.0), Bar(8.0)
_SCALING = ("nominal", "chi-square penalty", "total variation penalty", "KL penalty")  # sets that have a bar for it


def figures(n_states: int = 200_000) -> Iterator[Figure]:
    with start_workers() as workers:
        for size in (n_states, n_states // 2):
            yield from _garnet(workers, size)


def _garnet(workers: Workers, n_states: int) -> Iterator[Figure]:
    label, world = f"garnet {n_states:,}", ["garnet", n_states, 10, 10, 0.95]
    peers = {
        "scipy": Request("scipy_sweep", {"world": world}, ours_only=True),
        "reading": Request("read_arrays", {"world": world}, ours_only=True),
    }
    times = workers.measure({**peers, **requests(world, 1)})
    nominal = times["nominal"].ours
    yield Figure(f"{label}: nominal / scipy's product plus max", nominal / times["scipy"].ours, 1.0)
    yield Figure(f"{label}: nominal / reading the arrays once", nominal / times["reading"].ours, 3.5, goal=2.5)
    for name in SETS:
        if name != "nominal":
            bar = _bar(name)
            yield Figure(f"{label}: {name} / nominal", times[name].ours / nominal, bar.ratio, goal=bar.goal)
    for name in SETS:
        yield from times[name].speedup(f"{label}: {name}", _bar(name).speedup)
    if CORES > 1:
        several = workers.measure(requests(world, CORES))
        for name in SETS:
            bar = 1.6 if name in _SCALING else None
            yield Figure(f"{label}: {name}, one core / {CORES}", times[name].ours / several[name].ours, bar, False)
            yield from several[name].speedup(f"{label}, {CORES} cores: {name}")


def requests(world: list, threads: int) -> dict[str, Request]:
    """One sweep of every set."""
    return {name: Request("sweep", {"world": world, "ambiguity": name, "threads": threads}) for name in SETS}


def _bar(name: str) -> Bar:
    if name == "nominal":
        return Bar(1.0)
    return _BARS.get(name, _OTHER_PENALTY if name.endswith("penalty") else _OTHER_BALL)
