"""Bounds of a probability near a guess: that the goal is reached almost surely wherever a path leads to it.

The guess is corrected only where one sweep does not prove it, so that states far from every danger cost nothing. How
the bounds were found does not matter for their validity: like all others they are proved by a certified sweep.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustmdp._arrays import FloatArray, IntArray
from robustmdp.operators.pinned import PinnedBellman
from robustmdp.operators.policy import PolicyRows, rows_of_pairs
from robustmdp.planning.totals.bounding import Bounds
from robustmdp.planning.totals.certificates import proves_lower, proves_upper
from robustmdp.planning.totals.problem import Problem

_DRIFT = 0.1  # of what the guess loses per step of a shortest path: some detours gain less at each step
_SWEEPS, _ATTEMPTS = 60, 5  # at most so many sweeps for one side, so many times
_FEW = 0.05  # of the states: where more still change after that many sweeps, the guess was wrong


class Guess(NamedTuple):
    """Corrected values, their policy, the largest |T v - v|, and the bounds where some were proved."""

    v: FloatArray
    policy: PolicyRows
    residual: float
    bounds: Bounds | None


def bounds_near_guess(problem: Problem, steps: IntArray, tol: float) -> Guess:
    """Lower bounds that fall from 1 - tol * steps/max(steps), then upper ones that rise from those + tol.

    Every step along a shortest path gains a little and a step that leads nowhere loses a little: a detour around a
    danger is worth its steps, and a policy that wanders about, though it risks nothing, is not.
    """
    bellman = problem.bellman
    pinned = bellman.pinned
    slope = tol / max(1, int(steps.max()))
    lower = np.where(pinned, bellman.values, np.where(steps < 0, 0.0, 1.0 - slope * steps))
    is_done = _correct(bellman, lower, -_DRIFT * slope, problem.floor)
    residual = float(np.max(np.abs(bellman.apply(lower) - lower)))
    policy = rows_of_pairs(bellman.mdp, bellman.best_pairs())
    if not is_done or not proves_lower(problem, policy, lower):
        return Guess(lower, policy, residual, None)
    upper = np.where(pinned, lower, np.minimum(lower + tol, problem.ceiling))
    if not _correct(bellman, upper, _DRIFT * slope, problem.ceiling) or not proves_upper(problem, upper):
        upper = np.where(pinned, lower, problem.ceiling)
    return Guess(lower, policy, residual, Bounds(policy, lower, upper))


def _correct(bellman: PinnedBellman, v: FloatArray, drift: float, limit: FloatArray) -> bool:
    """Make v a bound; False where that takes too long."""
    for _ in range(_ATTEMPTS):
        left = bellman.seek_bound(v, drift, limit, _SWEEPS)
        if left == 0.0 or left > _FEW:
            break
    return left == 0.0
