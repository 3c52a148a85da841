"""Sweeps in place, and Newton's steps where values propagate slowly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.operators.pinned import PinnedBellman
from robustmdp.operators.policy import PolicyRows
from robustmdp.planning.policy_iteration import PolicyIteration, Work
from robustmdp.planning.run import Progress

_AT_ONCE = 8  # sweeps in place between two looks
_MOST_LOOKS = 5  # that may be left, by the rate of the last one, before a Newton step is tried
_MOST_FAILURES = 3


@dataclass(frozen=True)
class SweepsInPlace:
    """A solver for problems with ends. Sweeps mend what is wrong nearby, a Newton step what is wrong far away.

    Parameters
    ----------
    target : float
        The residual that is wanted, relative to the values.
    """

    target: float
    max_steps: int = PolicyIteration.max_steps

    def iterate(
        self, bellman: PinnedBellman, policy: PolicyRows | None, tol: float, start: FloatArray | None = None
    ) -> Iterator[Progress]:
        """Yield a plain sweep after every few sweeps in place; where nothing helps, policy iteration goes on."""
        if policy is None and bellman.works_in_place:
            work = Work(bellman, policy, tol, by_graph=True)
            before = self._look(bellman, work, np.zeros(bellman.mdp.n_states) if start is None else start.copy())
            failures, wait = 0, 0
            while failures <= _MOST_FAILURES:
                yield before
                after = self._look(bellman, work, before.swept)
                if wait == 0 and self._is_far(before, after):
                    leap = self._look(bellman, work, work.joint_values(after))
                    if _wrong(leap) < _wrong(after):
                        after = leap
                    else:
                        failures += 1
                        wait = 2**failures
                wait = max(wait - 1, 0)
                before = after
            start = before.v
        yield from PolicyIteration(self.max_steps).iterate(bellman, policy, tol, start)

    def _look(self, bellman: PinnedBellman, work: Work, v: FloatArray) -> Progress:
        v = v.copy()
        bellman.sweep_in_place(v, _AT_ONCE)
        return work.sweep(v)

    def _is_far(self, before: Progress, after: Progress) -> bool:
        """Would sweeps alone take long?"""
        left = after.residual / (self.target * max(1.0, float(np.max(np.abs(after.v)))))
        if left <= 1.0:
            return False
        rate = min(before.residual / after.residual, _wrong(before) / max(_wrong(after), 1e-300))
        return rate <= 1.0 or math.log(left) / math.log(rate) > _MOST_LOOKS


def _wrong(progress: Progress) -> float:
    """Mean |T v - v|: a few states that disagree do not hide that all others are right."""
    return float(np.mean(np.abs(progress.swept - progress.v)))
