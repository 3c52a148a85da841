"""Whole solves, against quantecon, mdpsolver, our own value iteration and the baseline commit."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from benchmarks.figure import Figure
from benchmarks.workers import Request, Workers, start_workers

TOY = {"n_states": 100, "grid": 6}
_PEERS = {"quantecon": "nominal modified PI", "mdpsolver": "nominal VI"}


def figures(n_states: int = 10_000, grid: int = 200) -> Iterator[Figure]:
    with start_workers() as workers:
        yield from _garnet(workers, n_states)
        yield from _value_iteration(workers, n_states)
        yield from _slow_grid(workers, grid)


def _garnet(workers: Workers, n_states: int) -> Iterator[Figure]:
    world = ["garnet", n_states, 10, 10, 0.95]
    installed = [name for name in _PEERS if find_spec(name) is not None]
    peers = {name: Request(name, {"world": world}, ours_only=True) for name in installed}
    cases = {
        "chi-square penalty, one thread": (_solve(world), 1.0),
        "chi-square penalty, two threads": (_solve(world, threads=2), 0.7),
        "KL ball, one thread": (_solve(world, "KL ball"), 2.0),
        "nominal, one thread": (_solve(world, "nominal"), None),
    }
    requests = {**peers, **{name: request for name, (request, _) in cases.items()}}
    times = workers.measure(requests, rounds=5, repeats=5)
    for peer in installed:
        for name, (_, bar) in cases.items():
            ratio = times[name].ours / times[peer].ours
            yield Figure(f"solve garnet, {name} / {peer}'s {_PEERS[peer]}", ratio, bar if peer == "quantecon" else None)
    for name in cases:
        yield Figure(f"solve garnet, {name}: seconds", times[name].ours, unit="s")
        yield from times[name].speedup(f"solve garnet, {name}")


def _value_iteration(workers: Workers, n_states: int) -> Iterator[Figure]:
    """The textbook's stopping rule, as others write it, and ours."""
    for discount, bar in ((0.95, 30.0), (0.999, 300.0)):
        world = ["garnet", n_states, 10, 10, discount]
        rules = {"textbook": "residual", "span-stopped": "span"}
        requests = {name: _solve(world, value_iteration=rule) for name, rule in rules.items()}
        times = workers.measure({"solve": _solve(world), **_only_ours(requests)}, rounds=2)
        for name in rules:
            least = bar if name == "textbook" else None
            ratio = times[name].ours / times["solve"].ours
            yield Figure(f"{name} value iteration / solve, garnet {discount}", ratio, least, at_most=False)
        yield from times["solve"].speedup(f"solve garnet {discount}, chi-square penalty")


def _slow_grid(workers: Workers, size: int) -> Iterator[Figure]:
    """Both to the same certified tolerance, one thread."""
    world = ["slow grid", size, 0.999]
    times = workers.measure(
        {"solve": _solve(world), **_only_ours({"value iteration": _solve(world, value_iteration="span")})}, rounds=2
    )
    ratio = times["value iteration"].ours / times["solve"].ours
    yield Figure(f"value iteration / solve, grid {size} x {size}, 0.999", ratio, 30.0, at_most=False, goal=50.0)
    yield from times["solve"].speedup(f"solve grid {size} x {size}, 0.999")


def _solve(
    world: list, ambiguity: str = "chi-square penalty", threads: int = 1, value_iteration: str | None = None
) -> Request:
    arguments = {"world": world, "ambiguity": ambiguity, "threads": threads, "value_iteration": value_iteration}
    return Request("solve", arguments)


def _only_ours(requests: dict[str, Request]) -> dict[str, Request]:
    return {name: request._replace(ours_only=True) for name, request in requests.items()}
