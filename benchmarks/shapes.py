"""Sweeps on short, ragged and long rows, never slower than the baseline commit."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

from benchmarks.figure import Figure
from benchmarks.sweeps import CORES, requests
from benchmarks.tasks import SETS
from benchmarks.workers import start_workers

TOY = {"n_states": 2_000}


def figures(n_states: int = 1_000_000) -> Iterator[Figure]:
    """`n_states` is that of the grid; the other worlds shrink with it."""
    side, longest = isqrt(n_states), n_states // 200
    worlds = {
        f"grid {side:,} x {side:,}": ["short rows", side],
        "rows of 1 to 300": ["ragged rows", max(n_states // 20, 300), 4, 300],
        f"rows of {longest:,}": ["garnet", longest * 6 // 5, 1, longest, 0.95],
    }
    with start_workers() as workers:
        for label, world in worlds.items():
            for threads in sorted({1, CORES}):
                place = label if threads == 1 else f"{label}, {threads} cores"
                times = workers.measure(requests(world, threads))
                for name in SETS:
                    if name != "nominal":
                        yield Figure(f"{place}: {name} / nominal", times[name].ours / times["nominal"].ours)
                for name in SETS:
                    yield from times[name].speedup(f"{place}: {name}", 1.0 if threads == 1 else None)
