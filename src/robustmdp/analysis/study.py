"""The numbers behind a report: curve, stress test, recommendation, and where nature pulls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.ambiguity import Ambiguity, Constrained, Nominal, Penalized
from robustmdp.analysis.sweep import FloatArray, Form, Sweep, sweep
from robustmdp.divergences import ChiSquare, FDivergence, TotalVariation
from robustmdp.models import MDP, Counts
from robustmdp.models.start import distribution
from robustmdp.planning import solve
from robustmdp.result import Solution
from robustmdp.tuning import StressTable, Suggestion, matching_radius, matching_weight, stress, suggest
from robustmdp.tuning.curve import Point, certainly_worse
from robustmdp.tuning.whole import whole
from robustmdp.tuning.worlds import Adversary, Family, Models, Plausible, RandomKernels

Progress = Callable[[str, float], None]

_USUAL_RADIUS = 0.1  # for the stress test, where nothing better is known


@dataclass(frozen=True, eq=False)
class Study:
    """All that a report tells.

    Attributes
    ----------
    start : (S,) probabilities of the first state
    trusting : the solution that takes the model as true
    sweeps : over levels of the recommended form, and over weights where that is another one
    matching : the weight and the radius that have the same worst case as the recommendation, where it has one level
    radius : of the random worlds
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

    @property
    def sweep(self) -> Sweep:
        """The one of the recommended form."""
        return self.sweeps[0]

    @cached_property
    def robust(self) -> Solution:
        """The recommended solution or, where trusting the model is recommended, that of the curve's knee."""
        trusted = trusts(self.suggestion.ambiguity)
        return whole(self._at_knee.robust.solution(self.mdp)) if trusted else self.suggestion.solution

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
        """Does the model leave nothing to chance?"""
        return self.mdp.nnz == self.mdp.n_pairs

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
    trusting = whole(solve(mdp, Nominal(), tol=1e-6, threads=threads))
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
    sweeps = []
    forms = _forms(advice.ambiguity, matching)
    for number, (form, level) in enumerate(forms.items()):

        def told(share: float, before: int = number) -> None:
            progress("robustness curve", 0.35 + 0.25 * (before + share) / len(forms))

        sweeps.append(sweep(mdp, divergence, form, level, trusting, start, threads=threads, progress=told))
    if advice.ambiguity.has_weight:
        # The recommended knee is that of more levels than are shown.
        sweeps[0] = replace(sweeps[0], curve=sweeps[0].curve.with_notes(knee=sweeps[0].place))
    tried: dict[str, Any] = {"trusting the model": trusting, **_robust_policies(advice, sweeps[0])}
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
    return Study(mdp, divergence, start, trusting, tuple(sweeps), advice, tested, matching, radius)


def _forms(ambiguity: Ambiguity, matching: Mapping[str, float]) -> dict[Form, float | None]:
    """The forms to sweep over, that of the recommendation first, each with the level that says the same."""
    weights: dict[Form, float | None] = {Penalized: matching.get("weight")}
    if ambiguity.has_radius and isinstance(ambiguity.level, float):
        return {Constrained: ambiguity.level, **weights}
    return weights


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
