"""The numbers behind a report: curve, stress test, recommendation, and where nature pulls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.ambiguity import Ambiguity, Constrained, Nominal, Penalized
from robustmdp.app.study.sweep import LEVELS, FloatArray, Sweep, sweep
from robustmdp.divergences import KL, ChiSquare, FDivergence, TotalVariation, check_divergence
from robustmdp.models import MDP, Counts
from robustmdp.models.start import distribution
from robustmdp.operators import RobustBellman
from robustmdp.planning.solving import solve_or_raise
from robustmdp.result import Solution
from robustmdp.tuning import StressTable, Suggestion, levels_for, matching_radius, matching_weight, stress, suggest
from robustmdp.tuning.curve import Point, SetAt, certainly_worse, function_family
from robustmdp.tuning.worlds import Adversary, Family, Models, Plausible, RandomKernels

Progress = Callable[[str, float], None]


class _Levels(NamedTuple):
    """Sets to sweep over: a function, its levels, and the one that is recommended, if any."""

    set_at: SetAt
    levels: FloatArray
    asked: float | None


_USUAL_RADIUS = 0.1  # for the stress test, where nothing better is known


@dataclass(frozen=True, eq=False)
class Study:
    """All that a report tells.

    Attributes
    ----------
    start : (S,) probabilities of the first state
    trusting : the solution that takes the model as true
    sweeps : over levels of the recommended form, and over weights where that is another one; over those of a function
    matching : the weight and the radius that have the same worst case as the recommendation, where it has one level
    radius : of the random worlds
    divergence : that of the random worlds and, where doubt is not a function's, of the recommendation
    function : from a level to a set, where doubt is that
    """

    mdp: MDP
    divergence: FDivergence
    start: FloatArray
    trusting: Solution
    sweeps: tuple[Sweep, ...]
    suggestion: Suggestion
    stress: StressTable
    matching: Mapping[str, float]
    radius: float | FloatArray
    function: SetAt | None = None

    @property
    def sweep(self) -> Sweep:
        """The one of the recommended form."""
        return self.sweeps[0]

    @cached_property
    def robust(self) -> Solution:
        """The recommended solution or, where trusting the model is recommended, that of the curve's knee."""
        trusted = trusts(self.suggestion.ambiguity)
        return self._at_knee.robust.solution(self.mdp) if trusted else self.suggestion.solution

    @property
    def doubt(self) -> Ambiguity:
        """What `robust` guards against."""
        trusted = trusts(self.suggestion.ambiguity)
        return self._at_knee.ambiguity if trusted else self.suggestion.ambiguity

    @property
    def _at_knee(self) -> Point:
        return self.sweep.points[self.sweep.knee]

    @property
    def certain(self) -> bool:
        """Does the model leave nothing to chance, and nature nothing to invent?"""
        return self.mdp.nnz == self.mdp.n_pairs and not self.sweep.points[0].ambiguity.invents

    def differing(self, sweep: Sweep) -> npt.NDArray[np.int64]:
        """At each level, in how many states the action is certainly worse than that of `robust`."""
        return np.array([len(self._worse(point.robust.policy)) for point in sweep.points])

    def shown(self, sweep: Sweep) -> int:
        """The level to begin at: the one that was asked for, the least robust one nearest to `robust`, or the knee."""
        if sweep.place is not None:
            return sweep.place
        if trusts(self.suggestion.ambiguity) or sweep is not self.sweep:
            return sweep.knee
        return int(np.argmin(self.differing(sweep)))

    @property
    def changed(self) -> npt.NDArray[np.int64]:
        """The states in which `robust` decides otherwise than the policy that trusts the model."""
        return self._worse(self.trusting.policy)

    def _worse(self, policy: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The states in which a policy's choice is certainly worse than that of `robust`, guarding as it does."""
        return certainly_worse(self.lost(policy), self.robust, policy)

    def lost(self, policy: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """What a policy's choice loses in each state against that of `robust`, (S,)."""
        value = self.robust.value
        return np.asarray(value - self._guard.apply_policy(policy, value))

    @cached_property
    def _guard(self) -> RobustBellman:
        return RobustBellman(self.mdp, self.doubt)


def study(
    mdp: MDP,
    divergence: FDivergence | SetAt,
    *,
    levels: npt.ArrayLike | None,
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
    trusting = solve_or_raise(mdp, Nominal(), tol=1e-6, threads=threads)
    start = distribution(mdp, initial)
    advice = suggest(
        mdp,
        divergence,
        levels=levels,
        counts=counts,
        held_out=held_out,
        confidence=confidence,
        initial=start,
        threads=threads,
        progress=lambda done, total: progress("recommendation", 0.05 + 0.3 * done / total),
    )
    function = divergence if callable(divergence) else None
    used: FDivergence = KL() if function is not None else check_divergence(divergence)
    radius: float | FloatArray = _USUAL_RADIUS
    matching: dict[str, float] = {}
    if function is not None:
        families_of_sets = [_of_function(function, levels, advice)]
    else:
        radius, matching = _matching(mdp, advice, start, threads)
        families_of_sets = _of_divergence(mdp, used, advice.ambiguity, matching, threads)
    sweeps = []
    for number, (set_at, tried_levels, level) in enumerate(families_of_sets):

        def told(share: float, before: int = number) -> None:
            progress("robustness curve", 0.35 + 0.25 * (before + share) / len(families_of_sets))

        sweeps.append(sweep(mdp, set_at, tried_levels, level, trusting, start, threads=threads, progress=told))
    if sweeps[0].place is not None and advice.comparison is None:
        # The recommended knee is that of more levels than are shown.
        sweeps[0] = replace(sweeps[0], curve=sweeps[0].curve.with_notes(knee=sweeps[0].place))
    tried: dict[str, Any] = {"trusting the model": trusting, **_robust_policies(advice, sweeps[0])}
    taken = [name for name in policies if name in tried]
    _checks.must(not taken, f"policies must have names of their own: {taken} is the report's")
    families = _families(used, radius, counts, held_out)
    if function is not None:
        families += _adversaries(sweeps[0], advice)
    tested = stress(
        mdp,
        {**tried, **policies},
        families,
        initial=start,
        threads=threads,
        progress=lambda done, total: progress("stress test", 0.6 + 0.35 * done / total),
    )
    return Study(mdp, used, start, trusting, tuple(sweeps), advice, tested, matching, radius, function)


def _of_divergence(
    mdp: MDP, divergence: FDivergence, ambiguity: Ambiguity, matching: Mapping[str, float], threads: int | None
) -> list[_Levels]:
    """The forms to sweep over, that of the recommendation first, each with the level that says the same."""
    forms: dict[type[Penalized] | type[Constrained], float | None] = {}
    if ambiguity.has_radius and isinstance(ambiguity.level, float):
        forms[Constrained] = ambiguity.level
    forms[Penalized] = matching.get("weight")
    return [
        _Levels(partial(form, divergence), levels_for(mdp, divergence, count=LEVELS, form=form, threads=threads), level)
        for form, level in forms.items()
    ]


def _of_function(function: SetAt, levels: npt.ArrayLike | None, advice: Suggestion) -> _Levels:
    """The levels of a function that can be drawn on a logarithmic axis, at most as many as there are frames."""
    family = function_family(function, levels)
    positive = family.levels[family.levels > 0.0]
    _checks.must(len(positive) > 0, "levels must hold a number above 0")
    shown = positive[np.unique(np.linspace(0, len(positive) - 1, min(LEVELS, len(positive))).round().astype(int))]
    return _Levels(family.set_at, shown, advice.level if advice.level > 0.0 else None)


def _adversaries(sweep: Sweep, advice: Suggestion) -> list[Family]:
    """Worst cases in the sets of a function: at the recommended level or the knee, and at the most robust one."""
    recommended = sweep.points[sweep.knee].ambiguity if trusts(advice.ambiguity) else advice.ambiguity
    found = {each.label: each for each in (recommended, sweep.points[-1].ambiguity)}
    return [Adversary(each) for each in found.values()]


def trusts(ambiguity: Ambiguity) -> bool:
    """Is the model taken as true?"""
    return ambiguity.is_nominal


def _matching(
    mdp: MDP, advice: Suggestion, start: FloatArray, threads: int | None
) -> tuple[float | FloatArray, dict[str, float]]:
    """The radius that stands for the recommendation, and the weight and radius that say the same (Theorem 3.1)."""
    ambiguity = advice.ambiguity
    if mdp.discount == 0.0:
        return ambiguity.level if ambiguity.has_radius else _USUAL_RADIUS, {}
    if ambiguity.has_weight:
        radius = matching_radius(mdp, ambiguity, start, threads=threads)
        usual = radius if 0.0 < radius < np.inf else _USUAL_RADIUS
        return usual, {"weight": float(ambiguity.level), "radius": radius}
    if ambiguity.has_radius and isinstance(ambiguity.level, float):
        weight = matching_weight(mdp, ambiguity, start, threads=threads)
        return ambiguity.level, {"weight": weight, "radius": ambiguity.level}
    if advice.radii is not None:
        return advice.radii, {}
    return _USUAL_RADIUS, {}


def _robust_policies(advice: Suggestion, sweep: Sweep) -> dict[str, npt.NDArray[Any]]:
    """The recommended policy, and the knee's where that is another one."""
    policy, name = sweep.points[sweep.knee].robust.policy, f"robust, {sweep.said(sweep.knee)}"
    if trusts(advice.ambiguity):
        return {name: policy}
    found = {"recommended": advice.solution.policy}
    if not np.array_equal(policy, advice.solution.policy):
        found[f"{name} (knee)"] = policy
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
