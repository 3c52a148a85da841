"""Single problems in a loop, against cvxpy and the baseline commit, the cost of a call from Python, own functions."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

import robustmdp as rm
from benchmarks.figure import Figure, run_time
from benchmarks.tasks import ROW_LENGTH
from benchmarks.workers import Request, start_workers

TOY = {"rows": 100, "count": 5, "states": 20}
MICRO = 1e6


def figures(rows: int = 20_000, count: int = 500, states: int = 180) -> Iterator[Figure]:
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
    yield own_functions(states)


def own_functions(states: int) -> Figure:
    """A divergence given by functions of one number, against one by functions of arrays, without Numba."""
    mdp = rm.problems.garnet(states, 10, 10, 0.95, seed=0)  # too few transitions for Numba
    of_arrays = rm.Divergence("KL of arrays", np.expm1, np.exp)
    of_numbers = rm.Divergence("KL of numbers", lambda s: math.expm1(s), lambda s: math.exp(s))
    seconds = [
        min(run_time(lambda: rm.solve(mdp, rm.Penalized(divergence, 1.0))) for _ in range(5))
        for divergence in (of_arrays, of_numbers)
    ]
    return Figure(f"own functions, {mdp.nnz:,} transitions: of numbers / of arrays", seconds[1] / seconds[0])
