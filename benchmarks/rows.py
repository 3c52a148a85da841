"""Bar 3: one chi-square penalty problem with 100 successors, against parametrised and reused cvxpy + Clarabel."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

import robustmdp as rm
from benchmarks.figure import Figure, best_time

_ROWS = 20_000


def figures() -> list[Figure]:
    rng = np.random.default_rng(0)
    n = 100
    p = rng.dirichlet(np.ones(n))
    values = rng.random((_ROWS, n)) * 10.0
    return [
        Figure(
            "cvxpy (reused) / compiled row, chi-square, 100 successors",
            _cvxpy(p, values) / _ours(p, values),
            700,
            False,
        )
    ]


def _cvxpy(p: np.ndarray, values: np.ndarray) -> float:
    q, v = cp.Variable(len(p), nonneg=True), cp.Parameter(len(p))
    # scaled by sqrt(p), the chi-square divergence is a plain sum of squares
    divergence = cp.sum_squares(cp.multiply(1.0 / np.sqrt(p), q) - np.sqrt(p))
    problem = cp.Problem(cp.Minimize(v @ q + divergence), [cp.sum(q) == 1])

    def solve() -> None:
        v.value = values[0]
        problem.solve(solver=cp.CLARABEL)

    seconds = best_time(solve, 20)
    ours = rm.worst_case(rm.Penalized(rm.ChiSquare(), 1.0), p, values[0]).value
    if abs(problem.value - ours) > 1e-6:
        raise RuntimeError(f"cvxpy and robustmdp disagree: {problem.value} and {ours}")
    return seconds


def _ours(p: np.ndarray, values: np.ndarray) -> float:
    """Every row has other values, so that no row starts from its own answer; a cold operator each time."""
    count, n = values.shape
    mdp = rm.MDP(
        indptr=np.arange(0, count * n + 1, n, dtype=np.int64),
        indices=np.tile(np.arange(n, dtype=np.int32), count),
        probabilities=np.tile(p, count),
        rewards=values.ravel(),
        state_ptr=np.arange(count + 1, dtype=np.int64),
        actions=np.zeros(count, dtype=np.int32),
        n_actions=1,
        discount=0.5,
    )
    start, out = np.zeros(count), np.empty(count)
    cold = [rm.RobustBellman(mdp, rm.Penalized(rm.ChiSquare(), 2.0), threads=1) for _ in range(6)]
    return best_time(lambda: cold.pop().apply(start, out), 5) / count
