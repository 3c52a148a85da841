"""The numbers behind a report: curve, advice, stress test, and where decisions change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray, IntArray
from robustmdp.ambiguity import Ambiguity, Constrained, Nominal, Penalized
from robustmdp.app.study.sweep import LEVELS, Levels, Sweep, sweep
from robustmdp.divergences import KL, ChiSquare, FDivergence, TotalVariation, check_divergence
from robustmdp.models import MDP, Counts
from robustmdp.models.labels import distribution
from robustmdp.operators import RobustBellman
from robustmdp.planning.solving import solve_or_raise
from robustmdp.result import Solution
from robustmdp.tuning import StressTable, Suggestion, levels_for, matching_radius, matching_weight, stress, suggest
from robustmdp.tuning.curve import SetAt, certainly_worse, function_family
from robustmdp.tuning.reasons import describe_trade_off
from robustmdp.tuning.units import Units
from robustmdp.tuning.worlds import Adversary, Family, Models, Plausible, RandomKernels

Progress = Callable[[str, float], None]

_USUAL_RADIUS = 0.1  # for the stress test, where nothing better is known


@dataclass(frozen=True, eq=False)
class Study:
    """All that a report shows.

    Attributes
    ----------
    start : (S,) probabilities of the first state
    nominal : the solution that takes the model as true
    robust, under_model : the recommended solution, or the one that `doubt` leads to; its values if the model is right
    sweeps : over the levels that were compared, and over weights where these are others
    suggestion : the advice; without worlds or counts its verdict is "no worlds"
    matching : the weight and the radius that have the same worst case as `doubt`, where it has one level
    radius : of the random worlds
    divergence : that of the random worlds and, where doubt is not a function's, of the sets
    function : from a level to a set, where doubt is that
    """

    mdp: MDP
    divergence: FDivergence
    start: FloatArray
    nominal: Solution
    sweeps: tuple[Sweep, ...]
    suggestion: Suggestion
    robust: Solution
    under_model: FloatArray
    stress: StressTable
    matching: Mapping[str, float]
    radius: float | FloatArray
    function: SetAt | None = None

    @property
    def sweep(self) -> Sweep:
        """The one over the levels that were compared."""
        return self.sweeps[0]

    @property
    def recommended(self) -> bool:
        """Is a robust policy recommended?"""
        return not self.suggestion.ambiguity.is_nominal

    @property
    def doubt(self) -> Ambiguity:
        """What `robust` guards against: the recommended set, else the selected one, else that of the knee."""
        return self.suggestion.ambiguity if self.recommended else self.sweep.points[self.sweep.shown].ambiguity

    @property
    def certain(self) -> bool:
        """Does the model leave nothing to chance, and nature nothing to invent?"""
        return self.mdp.nnz == self.mdp.n_pairs and not self.sweep.points[0].ambiguity.invents

    def differing(self, sweep: Sweep) -> IntArray:
        """At each level, in how many states the action is certainly worse than that of `robust`."""
        return np.array([len(self._worse(point.robust.policy)) for point in sweep.points])

    @cached_property
    def changed(self) -> IntArray:
        """The states in which the nominal action is certainly worse than that of `robust`."""
        return self._worse(self.nominal.policy)

    def _worse(self, policy: npt.NDArray[Any]) -> IntArray:
        return certainly_worse(self.loss(policy), self.robust, policy)

    def loss(self, policy: npt.NDArray[Any]) -> FloatArray:
        """What a policy's choice loses in each state against that of `robust`, (S,)."""
        value = self.robust.value
        return np.asarray(value - self._operator.apply_policy(policy, value))

    @cached_property
    def _operator(self) -> RobustBellman:
        return RobustBellman(self.mdp, self.doubt)


def study(
    mdp: MDP,
    divergence: FDivergence | SetAt,
    *,
    levels: npt.ArrayLike | None,
    counts: Counts | None,
    confidence: float,
    method: str | None,
    held_out: Models | None,
    initial: npt.ArrayLike | None,
    policies: Mapping[str, Any],
    worlds: Sequence[Family],
    threads: int | None,
    progress: Progress,
) -> Study:
    """Everything, in the order of a report; `progress` hears of each part as (name, share done)."""
    progress("solving the model", 0.0)
    start, tol = distribution(mdp, initial), Units.of(mdp).tolerance(1e-6)
    advice = None
    if counts is not None or held_out is not None:
        advice = suggest(
            mdp,
            divergence,
            levels=levels,
            counts=counts,
            held_out=held_out,
            confidence=confidence,
            method=method,
            initial=start,
            threads=threads,
            progress=lambda done, total: progress("recommendation", 0.05 + 0.3 * done / total),
        )
    nominal = (advice and advice.nominal) or solve_or_raise(mdp, Nominal(), tol=tol, threads=threads)
    function = None if isinstance(divergence, FDivergence) else divergence
    used = check_divergence(divergence) if function is None else KL()
    sweeps = []
    for number, family in enumerate(_families_of_levels(mdp, divergence, levels, advice, nominal)):
        hear = _part_of(progress, "robustness curve", 0.35 + 0.1 * number, 0.1)
        sweeps.append(sweep(mdp, family, nominal, start, tol=tol, threads=threads, progress=hear))
    advice = advice or Suggestion(Nominal(), nominal, describe_trade_off(sweeps[0].curve), sweeps[0].curve)
    robust, doubt = advice.solution, advice.ambiguity
    if doubt.is_nominal:
        shown = sweeps[0].points[sweeps[0].shown]
        robust, doubt = shown.robust.solution(mdp, tol=tol, threads=threads), shown.ambiguity
    under_model = solve_or_raise(mdp, Nominal(), policy=robust.policy, tol=tol, threads=threads).value
    radius, matching = _scope(mdp, sweeps[0], advice, doubt, start, threads)
    tested = {"nominal": nominal, "robust": robust}
    taken = [name for name in policies if name in tested]
    _checks.must(not taken, f"policies must have names of their own: {taken} is the report's")
    own = [] if function is None else [doubt, sweeps[0].points[-1].ambiguity]
    families = [
        *worlds,
        *_worlds(used, radius, counts, held_out),
        *map(Adversary, {each.label: each for each in own}.values()),
    ]
    hear = _part_of(progress, "stress test", 0.6, 0.35)
    compared = {**tested, **policies}
    table = stress(mdp, compared, families, initial=start, threads=threads, progress=lambda n, of: hear(n / of))
    return Study(
        mdp, used, start, nominal, tuple(sweeps), advice, robust, under_model, table, matching, radius, function
    )


def _part_of(progress: Progress, part: str, begin: float, share: float) -> Callable[[float], None]:
    return lambda done: progress(part, begin + share * done)


def _families_of_levels(
    mdp: MDP,
    divergence: FDivergence | SetAt,
    levels: npt.ArrayLike | None,
    advice: Suggestion | None,
    nominal: Solution,
) -> list[Levels]:
    """The levels that were compared, and weights."""
    selected = _selected(advice)
    if not isinstance(divergence, FDivergence):
        return [_levels_of_function(divergence, levels, selected)]
    prices = levels_for(mdp, divergence, count=LEVELS, nominal=nominal)
    weights = Levels("weight", partial(Penalized, divergence), prices, None)
    if advice is None:
        return [weights]
    if advice.radii is not None:
        whole_radii = advice.radii
        shares = np.geomspace(0.01, 1.0, LEVELS)
        return [Levels("share", lambda share: Constrained(divergence, share * whole_radii), shares, selected)]
    radii = levels_for(mdp, divergence, count=LEVELS, form=Constrained)
    return [Levels("radius", partial(Constrained, divergence), radii, selected), weights]


def _levels_of_function(function: SetAt, levels: npt.ArrayLike | None, selected: float | None) -> Levels:
    """The levels of a function that can be drawn on a logarithmic axis, at most as many as there are frames."""
    family = function_family(function, levels)
    positive = family.levels[family.levels > 0.0]
    _checks.must(len(positive) > 0, "levels must hold a number above 0")
    shown = positive[np.unique(np.linspace(0, len(positive) - 1, min(LEVELS, len(positive))).round().astype(int))]
    first = family.set_at(float(shown[0]))
    name = first.level_name if np.array_equal(first.level, shown[0]) else "level"
    return Levels(name, family.set_at, shown, selected)


def _selected(advice: Suggestion | None) -> float | None:
    """The level that was selected, whether or not it is recommended; None without worlds or for the nominal one."""
    if advice is None:
        return None
    level = float(next(iter(advice.candidates.columns.values()))[advice.candidates["chosen"]][0])
    return level if level > 0.0 else None


def _scope(
    mdp: MDP, swept: Sweep, advice: Suggestion, doubt: Ambiguity, start: FloatArray, threads: int | None
) -> tuple[float | FloatArray, dict[str, float]]:
    """The radius of the random worlds, and the levels of both forms that have the same worst case."""
    if advice.radii is not None:
        return advice.radii, {}
    if doubt.is_nominal or (swept.place is None and swept.curve.notes["knee"] < 0):
        return _USUAL_RADIUS, {}
    return _matching(mdp, doubt, start, threads)


def _matching(mdp: MDP, doubt: Ambiguity, start: FloatArray, threads: int | None) -> tuple[float, dict[str, float]]:
    """The radius of the random worlds, and the weight and radius that have the same worst case (Theorem 3.1)."""
    if not (doubt.has_radius or doubt.has_weight):
        return _USUAL_RADIUS, {}
    level = float(doubt.level)
    if mdp.discount == 0.0:
        return (level if doubt.has_radius else _USUAL_RADIUS), {}
    if doubt.has_weight:
        radius = matching_radius(mdp, doubt, start, threads=threads)
        usual = radius if 0.0 < radius < np.inf else _USUAL_RADIUS
        return usual, {"weight": level, "radius": radius}
    weight = matching_weight(mdp, doubt, start, threads=threads)
    return level, {"weight": weight, "radius": level}


def _worlds(
    divergence: FDivergence, radius: float | FloatArray, counts: Counts | None, held_out: Models | None
) -> list[Family]:
    """Worlds around the model: the user's, random ones, worst cases at several radii and of other divergences."""
    found: list[Family] = [held_out] if held_out is not None else []
    if counts is not None:
        found.append(Plausible(counts, count=100, seed=1))
    found.append(RandomKernels(divergence, radius, count=50))
    if isinstance(radius, np.ndarray):
        return [*found, Adversary(Constrained(divergence, radius))]
    found += [Adversary(Constrained(divergence, factor * radius)) for factor in (0.5, 1.0, 2.0)]
    others = [each for each in (ChiSquare(), TotalVariation()) if each != divergence]
    return [*found, *(Adversary(Constrained(each, min(radius, 0.5))) for each in others)]
