"""The numbers behind a report: curve, advice, stress test, and where decisions change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray, IntArray
from robustmdp.ambiguity import Ambiguity, Constrained, Nominal
from robustmdp.app.study.names import short
from robustmdp.divergences import KL, ChiSquare, FDivergence, TotalVariation, check_divergence
from robustmdp.models import MDP, Counts
from robustmdp.models.labels import distribution
from robustmdp.operators import RobustBellman
from robustmdp.planning.solving import solve_or_raise
from robustmdp.result import Solution
from robustmdp.table import Table
from robustmdp.tuning import StressTable, Suggestion, levels_for, matching_radius, matching_weight, stress, suggest
from robustmdp.tuning import curve as curves
from robustmdp.tuning.curve import Point, SetAt, SetFamily, family_of
from robustmdp.tuning.reasons import describe_trade_off
from robustmdp.tuning.units import Units
from robustmdp.tuning.worlds import Adversary, Family, Models, Plausible, RandomKernels

Progress = Callable[[str, float], None]

LEVELS = 30  # of a curve
_USUAL_RADIUS = 0.1  # for the stress test, where nothing better is known


@dataclass(frozen=True, eq=False)
class Sweep:
    """A robustness curve with its solutions.

    Attributes
    ----------
    name : what the levels are: weight, radius, share; "level" where they are those of a function
    points, curve : the levels, from the least to the most robust
    place : which of them was selected, if it is among them
    """

    name: str
    points: tuple[Point, ...]
    curve: Table
    place: int | None

    @property
    def grows(self) -> bool:
        """Whether a larger level is more robust."""
        return self.points[0].level <= self.points[-1].level

    @property
    def knee(self) -> int:
        """The level at which robustness gains most for its price; the most robust one where it gains nothing."""
        knee: int = self.curve.notes["knee"]
        return knee % len(self.points)

    @property
    def gains(self) -> bool:
        """Whether a robust policy certainly improves the worst case at any level."""
        return bool((self.curve["worst"] - self.curve["nominal_worst"] > 4.0 * self.curve["error_bound"]).any())

    @property
    def shown(self) -> int:
        """The level to begin at: the selected one, or the knee."""
        return self.knee if self.place is None else self.place

    def gain_and_price(self, place: int) -> tuple[float, float]:
        """What robustness gains in the worst case at a level, and what it costs if the model is right."""
        row = self.curve[place]
        return row["worst"] - row["nominal_worst"], self.curve.notes["best"] - row["nominal"]

    def text(self, place: int) -> str:
        """A level in a word."""
        level = short(self.points[place].level, 3)
        if "." in level and "e" not in level:
            level = level.rstrip("0").rstrip(".")
        return f"{'λ =' if self.name == 'weight' else self.name} {level}"


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
        """Whether a robust policy is recommended."""
        return not self.suggestion.ambiguity.is_nominal

    @property
    def doubt(self) -> Ambiguity:
        """What `robust` guards against: the recommended set, else the selected one, else that of the knee."""
        return self.suggestion.ambiguity if self.recommended else self.sweep.points[self.sweep.shown].ambiguity

    @property
    def certain(self) -> bool:
        """Whether the model leaves nothing to chance, and nature nothing to invent."""
        return self.mdp.nnz == self.mdp.n_pairs and not self.sweep.points[0].ambiguity.invents

    @cached_property
    def changed(self) -> IntArray:
        """The states in which the nominal action is certainly worse than that of `robust`."""
        return self.worse(self.nominal.policy)

    def worse(self, policy: npt.NDArray[Any]) -> IntArray:
        """The states in which a policy's action is certainly worse than that of `robust`."""
        return curves.certainly_worse(self.loss(policy), self.robust, policy)

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
    evidence: Mapping[str, Any],
    *,
    initial: npt.ArrayLike | None,
    policies: Mapping[str, Any],
    worlds: Sequence[Family],
    threads: int | None,
    progress: Progress,
) -> Study:
    """Everything, in the order of a report; `evidence` are the levels, counts, worlds and settings for `suggest`."""
    progress("solving the model", 0.0)
    start, tol = distribution(mdp, initial), Units.of(mdp).tolerance(1e-6)
    counts, held_out, advice = evidence["counts"], evidence["held_out"], None
    if counts is not None or held_out is not None:
        hear = _part_of(progress, "recommendation", 0.05, 0.3)
        advice = suggest(mdp, divergence, **evidence, initial=start, threads=threads, progress=hear)
    nominal = (advice and advice.nominal) or solve_or_raise(mdp, Nominal(), tol=tol, threads=threads)
    sweeps: list[Sweep] = []
    selected = _selected_level(advice)
    for family in _families(mdp, divergence, evidence["levels"], advice, nominal):
        hear = _part_of(progress, "robustness curve", 0.35 + 0.1 * len(sweeps), 0.1)
        sweeps.append(sweep(mdp, family, nominal, start, selected=selected, tol=tol, threads=threads, progress=hear))
        selected = None
    curve, shown = sweeps[0].curve, sweeps[0].points[sweeps[0].shown]
    advice = advice or Suggestion(Nominal(), nominal, describe_trade_off(curve), curve)
    robust, doubt = advice.solution, advice.ambiguity
    if doubt.is_nominal:
        robust, doubt = shown.robust.solution(mdp, tol=tol, threads=threads), shown.ambiguity
    under_model = solve_or_raise(mdp, Nominal(), policy=robust.policy, tol=tol, threads=threads).value
    radius, matching = _matching_levels(mdp, sweeps[0], advice, doubt, start, threads)
    taken = [name for name in policies if name in ("nominal", "robust")]
    _checks.must(not taken, f"policies must have names of their own: {taken} is the report's")
    function = None if isinstance(divergence, FDivergence) else divergence
    used = check_divergence(divergence) if function is None else KL()
    families = [*worlds, *_worlds(used, radius, counts, held_out)]
    if function is not None:
        families += map(Adversary, {each.label: each for each in (doubt, sweeps[0].points[-1].ambiguity)}.values())
    hear = _part_of(progress, "stress test", 0.6, 0.35)
    compared = {"nominal": nominal, "robust": robust, **policies}
    table = stress(mdp, compared, families, initial=start, threads=threads, progress=hear)
    return Study(
        mdp, used, start, nominal, tuple(sweeps), advice, robust, under_model, table, matching, radius, function
    )


def sweep(
    mdp: MDP,
    family: SetFamily,
    nominal: Solution,
    start: FloatArray,
    *,
    selected: float | None = None,
    tol: float = 1e-6,
    threads: int | None,
    progress: Callable[[int, int], None],
) -> Sweep:
    """Solve at the levels; the selected one, if it lies between them, takes the place of its neighbour."""
    levels, place = family.levels.copy(), None
    if selected is not None and levels.min() <= selected <= levels.max():
        place = int(np.abs(np.log(levels) - np.log(selected)).argmin())
        levels[place] = selected
    points = list(curves.points_along(mdp, family.set_at, levels, nominal, tol=tol, threads=threads, progress=progress))
    if curves.is_rising(points):
        points.reverse()
        place = None if place is None else len(points) - 1 - place
    curve = curves.as_table(points, start, family.level_name, best=float(start @ nominal.value))
    return Sweep(family.level_name, tuple(points), curve, place)


def _part_of(progress: Progress, part: str, begin: float, share: float) -> Callable[[int, int], None]:
    """A callback for (done, total), from the share with which a part begins."""
    return lambda done, total: progress(part, begin + share * done / total)


def _families(
    mdp: MDP,
    divergence: FDivergence | SetAt,
    levels: npt.ArrayLike | None,
    advice: Suggestion | None,
    nominal: Solution,
) -> list[SetFamily]:
    """The levels that were compared, and weights."""
    if not isinstance(divergence, FDivergence):
        return [_drawable(curves.function_family(divergence, levels))]
    weights = levels_for(mdp, divergence, count=LEVELS, nominal=nominal)
    prices = family_of(mdp, divergence, nominal, weights=weights)
    if advice is None:
        return [prices]
    if (radii := advice.radii) is not None:
        shares = np.geomspace(0.01, 1.0, LEVELS)
        return [SetFamily(lambda share: Constrained(divergence, share * radii), shares, "share", {})]
    balls = family_of(mdp, divergence, nominal, radii=levels_for(mdp, divergence, count=LEVELS, form=Constrained))
    return [balls, prices]


def _drawable(family: SetFamily) -> SetFamily:
    """The levels that can be drawn on a logarithmic axis, at most as many as there are frames."""
    positive = family.levels[family.levels > 0.0]
    _checks.must(len(positive) > 0, "levels must hold a number above 0")
    shown = positive[np.unique(np.linspace(0, len(positive) - 1, min(LEVELS, len(positive))).round().astype(int))]
    first = family.set_at(float(shown[0]))
    name = first.level_name if np.array_equal(first.level, shown[0]) else "level"
    return family._replace(levels=shown, level_name=name)


def _selected_level(advice: Suggestion | None) -> float | None:
    """The level that was selected, whether or not it is recommended; None without worlds or for the nominal one."""
    if advice is None:
        return None
    level = float(next(iter(advice.candidates.columns.values()))[advice.candidates["chosen"]][0])
    return level if level > 0.0 else None


def _matching_levels(
    mdp: MDP, swept: Sweep, advice: Suggestion, doubt: Ambiguity, start: FloatArray, threads: int | None
) -> tuple[float | FloatArray, dict[str, float]]:
    """The radius of the random worlds, and the weight and radius that have the same worst case (Theorem 3.1)."""
    if advice.radii is not None:
        return advice.radii, {}
    has_level = swept.place is not None or swept.curve.notes["knee"] >= 0
    if doubt.is_nominal or not has_level or not (doubt.has_radius or doubt.has_weight):
        return _USUAL_RADIUS, {}
    level = float(doubt.level)
    if mdp.discount == 0.0:
        return (level if doubt.has_radius else _USUAL_RADIUS), {}
    if doubt.has_radius:
        return level, {"weight": matching_weight(mdp, doubt, start, threads=threads), "radius": level}
    radius = matching_radius(mdp, doubt, start, threads=threads)
    return (radius if 0.0 < radius < np.inf else _USUAL_RADIUS), {"weight": level, "radius": radius}


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
