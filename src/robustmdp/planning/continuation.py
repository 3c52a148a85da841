"""A family of problems that differ in their level alone, each solved from the ones before it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Ambiguity
from robustmdp.models import MDP
from robustmdp.operators import RobustBellman
from robustmdp.operators.bellman import Bracket
from robustmdp.planning.policy_iteration import PolicyIteration, Work
from robustmdp.planning.run import bounds, check_discounted, run
from robustmdp.planning.solving import solve_or_raise
from robustmdp.result import Solution, Status

_LOOKS = 5  # with a joint step between each two, before policy iteration takes over
_POINTS = 3  # earlier solutions through which the next one is extrapolated
_MARGIN = 0.1  # of the way from the reference: how far the extrapolation may be off
_FORESIGHT = 1.0  # of that way: how far the values may go on before pairs must be added
_WORTH_LEAVING_OUT = 0.4  # share of the pairs above which a full solve is as quick
_LARGE = 20_000  # transitions below which leaving out pairs costs more than it saves


@dataclass(frozen=True, eq=False)
class Stage:
    """What was found at one level; lower <= value of the policy <= best value <= upper, certified."""

    ambiguity: Ambiguity
    lower: FloatArray
    upper: FloatArray
    policy: npt.NDArray[Any]
    status: Status

    @property
    def value(self) -> FloatArray:
        """The middle of the bounds, (S,)."""
        return 0.5 * (self.lower + self.upper)

    @property
    def converged(self) -> bool:
        """Was the tolerance reached?"""
        return self.status.code == "converged"

    @property
    def error_bound(self) -> float:
        """max(upper - lower)/2."""
        return float(np.max(self.upper - self.lower)) / 2.0

    def solution(self, mdp: MDP, *, tol: float = 1e-6, threads: int | None = None) -> Solution:
        """The same with Q and the worst case, by one more solve that starts here."""
        return solve_or_raise(mdp, self.ambiguity, tol=tol, threads=threads, start=self.value)


def solve_along(
    mdp: MDP, family: Iterable[tuple[float, Ambiguity]], *, tol: float = 1e-8, threads: int | None = None
) -> Iterator[Stage]:
    """What each (place, ambiguity) leads to, one after the other; quickest from the least to the most robust.

    Values move smoothly with the place (the logarithm of a level, say) but where the policy changes, so each problem
    starts at the extrapolation of the last ones. And as nature gets more room, Q(s, a) can only fall: an action that
    was clearly worse need not be looked at until the others have fallen as far.

    >>> from robustmdp import KL, Penalized, problems
    >>> family = [(w, Penalized(KL(), w)) for w in (3.0, 2.0, 1.0)]
    >>> [stage.status.code for stage in solve_along(problems.chain(), family)]
    ['converged', 'converged', 'converged']
    """
    check_discounted(mdp)
    walk = Walk(mdp, tol, threads)
    for place, ambiguity in family:
        yield walk.step(place, ambiguity)


def extrapolated(place: float, known: Sequence[tuple[float, FloatArray]]) -> FloatArray:
    """The polynomial through the known (place, values), at another place; places that repeat count once.

    >>> extrapolated(3.0, [(0.0, np.array([0.0])), (1.0, np.array([1.0])), (2.0, np.array([4.0]))])
    array([9.])
    """
    points = list(dict(known).items())
    total = np.zeros_like(points[0][1])
    for x, values in points:
        total += values * np.prod([(place - other) / (x - other) for other, _ in points if other != x])
    return total


class _Reference:
    """A level at which all pairs were looked at: Q(s, a) at v is at most q, (n_pairs,)."""

    def __init__(self, mdp: MDP, ambiguity: Ambiguity, v: FloatArray, q: FloatArray) -> None:
        self.ambiguity, self._mdp, self._v, self._q = ambiguity, mdp, v, q
        self._states = mdp.states
        self._best = q >= np.maximum.reduceat(q, mdp.state_ptr[:-1])[self._states]

    def distance(self, values: FloatArray) -> float:
        """How far the values have come from here."""
        return float(np.abs(values - self._v).max())

    def reach(self, values: FloatArray, margin: float = 0.0) -> npt.NDArray[np.bool_]:
        """The pairs whose Q may come within `margin` of these values when nature has more room, (n_pairs,).

        T is monotone and T(v + c) = Tv + discount c, so no Q rises by more than the values do anywhere.
        """
        rise = float(np.max(values - self._v))
        rounding = 8.0 * np.finfo(float).eps * float(np.abs(self._q).max() + np.abs(values).max())
        shift = self._mdp.discount * (max(rise, 0.0) if self._mdp.can_end else rise) + rounding
        reached: npt.NDArray[np.bool_] = self._q > (values - (margin + shift))[self._states]
        return reached

    def few(self, values: FloatArray, margin: float) -> npt.NDArray[np.bool_]:
        """The same, and the best pair of each state, so that none is left without."""
        return self.reach(values, margin) | self._best


class Walk:
    """Along the family: the last values, the reference, and the world without the pairs that cannot matter."""

    def __init__(self, mdp: MDP, tol: float, threads: int | None) -> None:
        self.mdp, self._tol, self._threads = mdp, tol, threads
        self._known: list[tuple[float, FloatArray]] = []
        self._last: RobustBellman | None = None
        self._reference: _Reference | None = None
        self._kept: npt.NDArray[np.bool_] = np.empty(0, bool)
        self._few: MDP | None = None

    def step(self, place: float, ambiguity: Ambiguity) -> Stage:
        """The next level."""
        start = extrapolated(place, self._known) if self._known else None
        if start is not None and not np.isfinite(start).all():
            start = None
        stage = self._among_few(ambiguity, start) or self._among_all(ambiguity, start)
        self._known = [*self._known[1 - _POINTS :], (place, stage.value)]
        return stage

    def apply(self, values: FloatArray) -> FloatArray:
        """T at the level of the last step, (S,); of the whole world only where it is small."""
        assert self._last is not None
        return self._last.apply(values)

    def _among_all(self, ambiguity: Ambiguity, start: FloatArray | None) -> Stage:
        stage, v, bracket = follow(self._operator(self.mdp, ambiguity), start, self._tol)
        # Where actions share a budget, one that is left out may still take some of it.
        if self.mdp.nnz >= _LARGE and not ambiguity.is_statewise:
            self._reference, self._few = _Reference(self.mdp, ambiguity, v, bracket.q_upper), None
        return stage

    def _among_few(self, ambiguity: Ambiguity, start: FloatArray | None) -> Stage | None:
        """Solve without the pairs that cannot matter, then prove that they do not; None where they are too many."""
        reference = self._reference
        if start is None or reference is None or not ambiguity.contains(reference.ambiguity):
            return None
        if not self._prepare(reference, start):
            return None
        while self._few is not None:
            known = ambiguity.on_part(self.mdp, slice(None), self.mdp.transitions_of(np.flatnonzero(self._kept)))
            stage, _, _ = follow(self._operator(self._few, known), start, self._tol)
            # T upper <= upper at every pair that was left out, so upper bounds the whole problem, too.
            missed = reference.reach(stage.upper) & ~self._kept
            if not missed.any():
                return stage
            start = stage.value
            self._keep(self._kept | missed)
        return None

    def _prepare(self, reference: _Reference, start: FloatArray) -> bool:
        """A world of few pairs that should do for this level; made wide enough to do for the next ones, too."""
        distance = reference.distance(start)
        if self._few is None or (reference.reach(start, _MARGIN * distance) & ~self._kept).any():
            self._keep(reference.few(start, _FORESIGHT * distance))
        return self._few is not None

    def _keep(self, kept: npt.NDArray[np.bool_]) -> None:
        worth = kept.mean() <= _WORTH_LEAVING_OUT
        self._kept, self._few = kept, self.mdp.restricted(np.flatnonzero(kept)) if worth else None

    def _operator(self, mdp: MDP, ambiguity: Ambiguity) -> RobustBellman:
        """With the memory of the last level's, where it knows the same rows and the same kind of problem."""
        bellman, last = RobustBellman(mdp, ambiguity, threads=self._threads), self._last
        if last is not None and last.mdp is mdp and bellman.ambiguity.is_like(last.ambiguity):
            bellman.inherit(last)
        self._last = bellman
        return bellman


def follow(bellman: RobustBellman, start: FloatArray | None, tol: float) -> tuple[Stage, FloatArray, Bracket]:
    """Joint steps from `start` with an early look at the certified bounds; policy iteration where they do not suffice.

    Returns what was found, the values v at which it was certified, and the bracket of T v.
    """
    v, work = start, Work(bellman, None, tol)
    for _ in range(_LOOKS if v is not None else 0):
        assert v is not None
        progress = work.sweep(v)
        if not math.isfinite(progress.error_bound):
            v = None  # an inner problem failed at this v: policy iteration begins elsewhere
            break
        target = tol * max(1.0, float(np.abs(progress.swept).max()))
        if progress.error_bound <= 0.5 * target:
            bracket = bellman.bracket(v)
            lower, upper, _ = bounds(bracket, v, bellman.mdp)
            bound = 0.5 * float(np.max(upper - lower))
            if bound <= target:
                status = Status.of("converged", bound=bound, target=target, steps=1)
                return Stage(bellman.ambiguity, lower, upper, bracket.policy, status), v, bracket
        v = work.joint_values(progress)
    solution = run(PolicyIteration(), bellman, tol=tol, start=v)
    stage = Stage(bellman.ambiguity, solution.lower, solution.upper, solution.policy, solution.status)
    return stage, solution.base, bellman.bracket(solution.base)
