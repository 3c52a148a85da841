"""The numbers behind a report: curve, stress test, recommendation, and where nature pulls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.ambiguity import Ambiguity, Constrained, Nominal, Penalized
from robustmdp.analysis.numbers import short
from robustmdp.divergences import ChiSquare, FDivergence, TotalVariation
from robustmdp.models import MDP, Counts
from robustmdp.planning import solve
from robustmdp.result import Solution
from robustmdp.table import Table
from robustmdp.tuning import StressTable, Suggestion, levels_for, matching_radius, matching_weight, stress, suggest
from robustmdp.tuning.curve import Point, as_table, certainly_worse, points_along
from robustmdp.tuning.start import distribution
from robustmdp.tuning.worlds import Adversary, Family, Models, Plausible, RandomKernels

FloatArray = npt.NDArray[np.float64]
Progress = Callable[[str, float], None]

_LEVELS = 30
_USUAL_RADIUS = 0.1  # for the stress test, where nothing better is known


@dataclass(frozen=True, eq=False)
class Study:
    """All that a report tells.

    Attributes
    ----------
    start : (S,) probabilities of the first state
    trusting : the solution that takes the model as true
    points, curve : the levels, from the least to the most robust; those of the recommended form
    matching : the weight and the radius that have the same worst case as the recommendation, where it has one level
    radius : of the random worlds
    place : which of the levels is recommended, if any
    """

    mdp: MDP
    divergence: FDivergence
    start: FloatArray
    trusting: Solution
    points: tuple[Point, ...]
    curve: Table
    suggestion: Suggestion
    stress: StressTable
    matching: Mapping[str, float]
    radius: float | FloatArray
    place: int | None

    @cached_property
    def robust(self) -> Solution:
        """The recommended solution or, where trusting the model is recommended, that of the curve's knee."""
        trusted = trusts(self.suggestion.ambiguity)
        return self.points[self.knee].robust.solution(self.mdp) if trusted else self.suggestion.solution

    @property
    def doubt(self) -> Ambiguity:
        """What `robust` guards against."""
        trusted = trusts(self.suggestion.ambiguity)
        return self.points[self.knee].ambiguity if trusted else self.suggestion.ambiguity

    @property
    def knee(self) -> int:
        """The curve's knee; its most robust level where robustness buys nothing."""
        knee: int = self.curve.notes["knee"]
        return knee % len(self.points)

    @property
    def bargain(self) -> tuple[float, float]:
        """What robustness buys in the worst case at the knee, and what it costs if the model is right."""
        curve, at = self.curve, self.knee
        bought, paid = curve["worst"][at] - curve["trusting"][at], curve.notes["best"] - curve["nominal"][at]
        return float(bought), float(paid)

    @property
    def certain(self) -> bool:
        """Does the model leave nothing to chance?"""
        return self.mdp.nnz == self.mdp.n_pairs

    @cached_property
    def differing(self) -> npt.NDArray[np.int64]:
        """For each level of the curve, in how many states its action is certainly worse than that of `robust`."""
        return np.array([len(self._worse(point.robust.policy)) for point in self.points])

    @property
    def shown(self) -> int:
        """The level of the curve that shows `robust`, or else the least robust one whose policy is nearest to it."""
        if self.place is not None:
            return self.place
        return self.knee if trusts(self.suggestion.ambiguity) else int(np.argmin(self.differing))

    def said(self, place: int) -> str:
        """A level of the curve in a word."""
        return said(self.points[place])

    @property
    def changed(self) -> npt.NDArray[np.int64]:
        """The states in which `robust` decides otherwise than the policy that trusts the model."""
        return self._worse(self.trusting.policy)

    def _worse(self, policy: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The states in which a policy's action is certainly worse than that of `robust`, guarding as it does."""
        states = np.arange(self.mdp.n_states)
        lost = self.robust.q[states, self.robust.policy] - self.robust.q[states, policy]
        return certainly_worse(lost, self.robust, policy)


def study(
    mdp: MDP,
    divergence: FDivergence,
    *,
    counts: Counts | None,
    confidence: float,
    held_out: Models | None,
    initial: npt.ArrayLike | None,
    policies: Mapping[str, Any],
    threads: int | None,
    progress: Progress,
) -> Study:
    """Everything, in the order of a report; `progress` hears of each part as (name, share done)."""
    progress("solving the model", 0.0)
    trusting = solve(mdp, Nominal(), tol=1e-6, threads=threads)
    if trusting.status.code == "interrupted":
        raise KeyboardInterrupt
    start = distribution(mdp, initial)
    advice = suggest(
        mdp,
        divergence,
        counts=counts,
        held_out=held_out,
        confidence=confidence,
        initial=start,
        threads=threads,
        progress=lambda done, total: progress("recommendation", 0.05 + 0.3 * done / total),
    )
    radius, matching = _matching(mdp, advice, start, threads)
    points = []
    form, levels, place = _levels(mdp, divergence, advice.ambiguity)
    for point in points_along(mdp, divergence, form, levels, trusting, threads=threads):
        points.append(point)
        progress("robustness curve", 0.35 + 0.25 * len(points) / len(levels))
    curve = as_table(points, start, form.level_name).with_notes(best=float(start @ trusting.value))
    # The recommended knee is that of more levels than are shown.
    curve = curve.with_notes(knee=place) if isinstance(advice.ambiguity, Penalized) else curve
    tried: dict[str, Any] = {"trusting the model": trusting, **_robust_policies(advice, points, curve)}
    taken = [name for name in policies if name in tried]
    _checks.must(not taken, f"policies must have names of their own: {taken} is the report's")
    families = _families(divergence, radius, counts, held_out)
    tested = stress(
        mdp,
        {**tried, **policies},
        families,
        initial=start,
        threads=threads,
        progress=lambda done, total: progress("stress test", 0.6 + 0.35 * done / total),
    )
    return Study(
        mdp,
        divergence,
        start,
        trusting,
        tuple(points),
        curve,
        advice,
        tested,
        matching,
        radius,
        place,
    )


def _levels(
    mdp: MDP, divergence: FDivergence, ambiguity: Ambiguity
) -> tuple[type[Penalized] | type[Constrained], FloatArray, int | None]:
    """Levels of the recommended form; the recommended one takes the place of its neighbour, which is returned, too."""
    single = not trusts(ambiguity) and isinstance(ambiguity.level, float)
    form = Constrained if single and isinstance(ambiguity, Constrained) else Penalized
    levels = levels_for(mdp, divergence, count=_LEVELS, form=form)
    if not single:
        return form, levels, None
    place = int(np.abs(np.log(levels) - np.log(ambiguity.level)).argmin())
    levels[place] = ambiguity.level
    return form, levels, place


def trusts(ambiguity: Ambiguity) -> bool:
    """Is the model taken as true?"""
    return isinstance(ambiguity, Nominal)


def said(point: Point) -> str:
    """The level of a point in a word."""
    name = "λ =" if isinstance(point.ambiguity, Penalized) else "radius"
    level = short(point.level, 3)
    return f"{name} {level.rstrip('0').rstrip('.') if '.' in level and 'e' not in level else level}"


def _matching(
    mdp: MDP, advice: Suggestion, start: FloatArray, threads: int | None
) -> tuple[float | FloatArray, dict[str, float]]:
    """The radius that stands for the recommendation, and the weight and radius that say the same (Theorem 3.1)."""
    ambiguity = advice.ambiguity
    if isinstance(ambiguity, Penalized):
        radius = matching_radius(mdp, ambiguity, start, threads=threads)
        usual = radius if 0.0 < radius < np.inf else _USUAL_RADIUS
        return usual, {"weight": float(ambiguity.level), "radius": radius}
    if isinstance(ambiguity, Constrained) and isinstance(ambiguity.level, float):
        weight = matching_weight(mdp, ambiguity, start, threads=threads)
        return ambiguity.level, {"weight": weight, "radius": ambiguity.level}
    if advice.radii is not None:
        return advice.radii, {}
    return _USUAL_RADIUS, {}


def _robust_policies(advice: Suggestion, points: Sequence[Point], curve: Table) -> dict[str, npt.NDArray[Any]]:
    """The recommended policy, and the knee's where that is another one."""
    knee = points[curve.notes["knee"] % len(points)]
    if trusts(advice.ambiguity):
        return {f"robust, {said(knee)}": knee.robust.policy}
    found = {"recommended": advice.solution.policy}
    if not np.array_equal(knee.robust.policy, advice.solution.policy):
        found[f"robust, {said(knee)} (knee)"] = knee.robust.policy
    return found


def _families(
    divergence: FDivergence, radius: float | FloatArray, counts: Counts | None, held_out: Models | None
) -> list[Family]:
    """Worlds around the model: random, adversarial at several radii, of other divergences, and the user's."""
    found: list[Family] = [held_out] if held_out is not None else []
    if counts is not None:
        found.append(Plausible(counts, count=100, seed=1))
    if isinstance(radius, np.ndarray):
        return [*found, RandomKernels(divergence, radius, count=50), Adversary(Constrained(divergence, radius))]
    found.append(RandomKernels(divergence, radius, count=50))
    found += [Adversary(Constrained(divergence, factor * radius)) for factor in (0.5, 1.0, 2.0)]
    others = [each for each in (ChiSquare(), TotalVariation()) if each != divergence]
    return [*found, *(Adversary(Constrained(each, min(radius, 0.5))) for each in others)]
