"""Single problems in a loop, against cvxpy and the baseline commit, and the cost of a call from Python."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figure import Figure
from benchmarks.tasks import ROW_LENGTH
from benchmarks.workers import Request, start_workers

TOY = {"rows": 100, "count": 5}
MICRO = 1e6


def figures(rows: int = 20_000, count: int = 500) -> Iterator[Figure]:
    calls = {
        f"rm.worst_case, {name}, {length} successors": Request(
            "worst_case", {"ambiguity": name, "length": length, "count": count}
        )
        for name in ("chi-square penalty", "KL ball")
        for length in (10, ROW_LENGTH)
    }
    chain = "rm.solve, ten-state chain"
    requests = {
        "cvxpy": Request("cvxpy", {"count": rows}, ours_only=True),
        "rows": Request("rows", {"count": rows}),
        **calls,
        chain: Request("solve_chain", {"count": max(count // 5, 1)}),
    }
    with start_workers() as workers:
        times = workers.measure(requests, rounds=5, repeats=5)
    loop = f"chi-square penalty in a loop, {ROW_LENGTH} successors"
    yield Figure(f"{loop}: cvxpy (reused) / ours", times["cvxpy"].ours / times["rows"].ours, 5_000.0, at_most=False)
    yield from times["rows"].speedup(loop)
    for name in (*calls, chain):
        yield Figure(f"{name}, a call", MICRO * times[name].ours, 300.0 if name == chain else 20.0, unit="us")
        yield from times[name].speedup(name)
