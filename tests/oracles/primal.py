"""The primal problems (1) and (3) of the paper as convex programs, by cvxpy and Clarabel."""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

import robustmdp as rm

# Clarabel cannot always reach the first; cvxpy then warns, and the next one is asked for.
_TOLERANCES = (1e-10, 1e-9, 1e-8)


def generator(divergence: Any, t: cp.Variable) -> cp.Expression:
    """f(t) as printed in textbooks, in the words that cvxpy knows to be convex."""
    if isinstance(divergence, rm.CressieRead):
        k = divergence.k
        return (cp.power(t, k) - 1 - k * (t - 1)) / (k * (k - 1))
    return {
        rm.ChiSquare(): lambda: cp.square(t - 1),
        rm.KL(): lambda: -cp.entr(t),
        rm.TotalVariation(): lambda: cp.abs(t - 1) / 2,
        rm.Burg(): lambda: -cp.log(t),
        rm.Hellinger(): lambda: t - 2 * cp.sqrt(t) + 1,
        rm.JensenShannon(): lambda: cp.rel_entr(t, (t + 1) / 2) + cp.rel_entr(1, (t + 1) / 2),
    }[divergence]()


def penalized(divergence: Any, p: npt.NDArray[np.float64], v: npt.NDArray[np.float64], weight: float) -> float:
    """inf over q of q.v + weight * sum p f(q/p), for p > 0."""
    t = cp.Variable(len(p), nonneg=True)
    return minimise((p * v) @ t + weight * (p @ generator(divergence, t)), [p @ t == 1])


def constrained(divergence: Any, p: npt.NDArray[np.float64], v: npt.NDArray[np.float64], radius: float) -> float:
    """inf of q.v over sum p f(q/p) <= radius, for p > 0."""
    t = cp.Variable(len(p), nonneg=True)
    return minimise((p * v) @ t, [p @ t == 1, p @ generator(divergence, t) <= radius])


def projection(divergence: Any, p: npt.NDArray[np.float64], v: npt.NDArray[np.float64], target: float) -> float:
    """inf of sum p f(q/p) over q.v <= target, for p > 0."""
    t = cp.Variable(len(p), nonneg=True)
    return minimise(p @ generator(divergence, t), [p @ t == 1, (p * v) @ t <= target])


def minimise(objective: cp.Expression, constraints: list[Any]) -> float:
    """The least value, as exactly as Clarabel can."""
    problem = cp.Problem(cp.Minimize(objective), constraints)
    for tolerance in _TOLERANCES:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Solution may be inaccurate")
            try:
                problem.solve(cp.CLARABEL, tol_gap_abs=tolerance, tol_gap_rel=tolerance, tol_feas=tolerance)
            except cp.error.SolverError:
                continue
        if problem.status == cp.OPTIMAL:
            return float(problem.value)
    raise RuntimeError(f"Clarabel must reach {_TOLERANCES[-1]:g}: it ended with {problem.status}")
