"""Policy iteration never needs much more work or time than value iteration, on any ready-made problem."""

from __future__ import annotations

import time

import robustmdp as rm
from benchmarks.figure import Figure

TOY = {"divergences": 1, "garnet": 50, "grid": 5}
_TOL = 1e-6
_DIVERGENCES = (
    rm.ChiSquare(), rm.KL(), rm.TotalVariation(), rm.Burg(), rm.Hellinger(), rm.JensenShannon(), rm.CressieRead(3.0),
)  # fmt: skip


def worlds(garnet: int, grid: int) -> dict[str, rm.MDP]:
    problems = rm.problems
    return {
        "chain": problems.chain(),
        "chain, restart 0.5": problems.chain(restart=0.5),
        "two states": problems.two_state(0.5, 0.9),
        "machine replacement": problems.machine_replacement(),
        "river swim": problems.river_swim(),
        "inventory": problems.inventory(),
        "garnet": problems.garnet(garnet, 5, 8, 0.95, seed=0),
        "grid": problems.grid_world(grid),
    }


def figures(divergences: int = len(_DIVERGENCES), garnet: int = 2_000, grid: int = 30) -> list[Figure]:
    found = []
    for name, mdp in worlds(garnet, grid).items():
        rows, seconds = 0.0, 0.0
        for divergence in _DIVERGENCES[:divergences]:
            for ambiguity in (rm.Penalized(divergence, 1.0), rm.Constrained(divergence, 0.1)):
                share, slower = _compare(mdp, ambiguity)
                rows, seconds = max(rows, share), max(seconds, slower)
        found.append(Figure(f"{name}: rows of solve / rows of value iteration, worst case", rows, 1.5))
        if seconds:
            found.append(Figure(f"{name}: time of solve / time of value iteration over 50 ms", seconds, 1.5))
    return found


def _compare(mdp: rm.MDP, ambiguity: rm.Penalized | rm.Constrained) -> tuple[float, float]:
    solutions, times = [], []
    for solver in (None, rm.ValueIteration()):
        rm.solve(mdp, ambiguity, solver=solver, tol=1e-2)
        start = time.perf_counter()
        solutions.append(rm.solve(mdp, ambiguity, solver=solver, tol=_TOL))
        times.append(time.perf_counter() - start)
    fast, slow = (solution.trace["rows"][-1] for solution in solutions)
    return fast / slow, times[0] / times[1] if times[1] > 0.05 else 0.0
