"""Cost and benefit of robustness, level by level."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp._arrays import FloatArray, IntArray
from robustmdp.ambiguity import Ambiguity, Constrained, Nominal, Penalized, check_ambiguity
from robustmdp.divergences import FDivergence, check_divergence
from robustmdp.models import MDP
from robustmdp.models.labels import distribution
from robustmdp.operators import RobustBellman
from robustmdp.operators.policy import differ, policy_rows
from robustmdp.planning.continuation import Stage, Walk, follow
from robustmdp.planning.solving import solve_or_raise
from robustmdp.result import Solution
from robustmdp.table import Table
from robustmdp.tuning.units import Units

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Progress = Callable[[int, int], None]
SetAt = Callable[[float], Ambiguity]


class CurveTable(Table):
    """A row per level, from the least to the most robust; see `robustness_curve`."""

    def plot(self, ax: Any = None) -> Figure:
        """Values over levels: if the model is right, and in the worst case; below, in how many states actions differ.

        Needs matplotlib.

        Parameters
        ----------
        ax : a matplotlib axes for the values alone, or two for values and actions; a new figure if None
        """
        from robustmdp.pictures import draw_curve

        unit = next(iter(self.columns))
        return draw_curve(ax, unit, self.columns, best=self.notes.get("best"), knee=self.notes["knee"])


def robustness_curve(
    mdp: MDP,
    divergence: FDivergence | SetAt,
    weights: npt.ArrayLike | None = None,
    *,
    radii: npt.ArrayLike | None = None,
    levels: npt.ArrayLike | None = None,
    initial: npt.ArrayLike | None = None,
    tol: float = 1e-6,
    threads: int | None = None,
    progress: Progress | None = None,
) -> CurveTable:
    """For each level the robust policy: its value if the model is right, its worst case, how much it differs.

    Parameters
    ----------
    mdp : MDP
    divergence : a divergence, or a function from a level to a set of nature's choices
    weights : (n,) levels of the penalized form; 50 from `levels_for` if neither they nor radii are given
    radii : (n,) levels of the constrained form, instead
    levels : (n,) numbers to call the function with
    initial : a state by number or name, or (S,) probabilities of the first state; all states alike by default
    tol : as for `solve`
    progress : called with (levels done, levels) as they are solved

    Returns
    -------
    CurveTable, one row per level, from the least to the most robust:
        "weight", "radius" or, with a function, "level"; "nominal", the policy's value under the model; "worst", its
        worst-case value; "nominal_worst", the worst-case value of the nominal policy; "changed", in how many
        states that policy's action is certainly worse; "error_bound", the certified error of both worst cases;
        "status". Notes: "knee", the row at which robustness gains most for its cost, -1 where there is none;
        "best", the value under the model of the nominal policy; "interrupted" if Ctrl-C came: then the levels
        so far are there.

    >>> from robustmdp import KL, problems
    >>> curve = robustness_curve(problems.machine_replacement(), KL(), [10.0, 1.0, 0.1])
    >>> curve["weight"].tolist(), bool((curve["worst"] <= curve["nominal"]).all())
    ([10.0, 1.0, 0.1], True)
    >>> pairwise = np.linspace(0.5, 1.5, 30).reshape(10, 3)  # one radius for each state and action
    >>> scaled = lambda share: Constrained(KL(), share * pairwise)
    >>> robustness_curve(problems.machine_replacement(), scaled, levels=[0.1, 0.01])["level"].tolist()
    [0.01, 0.1]
    """
    _types.check_arguments(robustness_curve, {"mdp": mdp, "tol": tol, "threads": threads, "progress": progress})
    start = distribution(mdp, initial)
    nominal = solve_or_raise(mdp, Nominal(), tol=tol, threads=threads)
    family = family_of(mdp, divergence, nominal, weights=weights, radii=radii, levels=levels)
    points: list[Point] = []
    interrupted = False
    try:
        for point in points_along(
            mdp, family.set_at, family.levels, nominal, tol=tol, threads=threads, progress=progress
        ):
            points.append(point)
    except KeyboardInterrupt:
        interrupted = True
    return curve_of(points, start, family, nominal).with_notes(interrupted=interrupted)


def curve_of(points: Sequence[Point], start: FloatArray, family: SetFamily, nominal: Solution) -> CurveTable:
    """The curve through these points."""
    rising = points[::-1] if is_rising(points) else points
    table = as_table(rising, start, family.level_name, best=float(start @ nominal.value))
    return table.with_notes(**family.notes)


def levels_for(
    mdp: MDP,
    divergence: FDivergence,
    *,
    count: int = 50,
    form: type[Penalized] | type[Constrained] = Penalized,
    nominal: Solution | None = None,
    threads: int | None = None,
) -> FloatArray:
    """Levels that span this problem, from hardly robust to nearly the minimum over the support, evenly by logarithm.

    Weights scale with what outcomes differ by, discount times the spread of the value, the end's 0 included; radii do
    not. `nominal` is the nominal solution, where it is known already.

    >>> from robustmdp import KL, problems
    >>> len(levels_for(problems.chain(), KL(), count=9))
    9
    """
    _types.check_arguments(levels_for, locals())
    _checks.positive_integer("count", count)
    check_divergence(divergence)
    if form.has_radius:
        return np.geomspace(1e-3, 3.0, count) * _unit(divergence)
    values = (nominal or solve_or_raise(mdp, Nominal(), tol=Units.of(mdp).tolerance(1e-6), threads=threads)).value
    outcomes = np.append(values, 0.0) if mdp.can_end else values
    low, high = mdp.reward_range
    spread = mdp.discount * float(np.ptp(outcomes)) + high - low
    return np.geomspace(1e2, 1e-2, count) * max(spread, 1e-12) / _unit(divergence)


def _unit(divergence: FDivergence) -> float:
    """Near the model all divergences are half of f''(1) times chi-square; total variation has no such scale."""
    curvature = divergence.curvature_at_one
    return 0.5 * curvature if math.isfinite(curvature) else 0.25


def knee(price: FloatArray, gain: FloatArray, least: float | FloatArray = 0.0, best: float | None = None) -> int:
    """The row at which gain, scaled, is farthest above cost, scaled; -1 where there is no knee.

    `price` is the value under the model, which falls as robustness grows; `gain` is what the worst case wins. The cost
    is what `price` falls below `best`, its largest entry by default. Rows do not count whose gain is not above `least`
    or not above their cost; nor does a knee at either end, beyond which there may be a better one.

    >>> knee(np.array([0.0, -0.1, -1.0]), np.array([0.0, 0.9, 1.0]))
    1
    >>> knee(np.array([0.0, -0.1, -0.2]), np.array([0.0, 0.2, 1.0]))  # the last row is best
    -1
    """
    if len(price) < 3:
        return -1
    cost = (price.max() if best is None else best) - price
    worth = gain > np.maximum(least, cost)
    if not worth.any():
        return -1
    scaled = gain / gain.max() - cost / (cost.max() or 1.0)
    at = int(np.argmax(np.where(worth, scaled, -np.inf)))
    return at if 0 < at < len(price) - 1 else -1


class SetFamily(NamedTuple):
    """Sets that differ in their level alone; `levels` in the order in which they are solved.

    `level_name` is what tables call the level, `word` what sentences call it.
    """

    set_at: SetAt
    levels: FloatArray
    level_name: str
    notes: dict[str, str]
    word: str = "level"


def family_of(
    mdp: MDP,
    divergence: FDivergence | SetAt,
    nominal: Solution,
    *,
    weights: npt.ArrayLike | None = None,
    radii: npt.ArrayLike | None = None,
    levels: npt.ArrayLike | None = None,
) -> SetFamily:
    """The penalties or balls of a divergence, least robust first, or the sets that a function makes."""
    _checks.must(weights is None or radii is None, "give weights or radii, not both")
    if levels is not None or callable(divergence):
        others = weights if radii is None else radii
        _checks.must(others is None, "give weights or radii with a divergence, or levels with a function: got both")
        return function_family(divergence, levels)
    chosen = check_divergence(divergence)
    form: type[Penalized] | type[Constrained] = Penalized if radii is None else Constrained
    if weights is None and radii is None:
        found = levels_for(mdp, chosen, nominal=nominal)
    else:
        name, given = ("weights", weights) if radii is None else ("radii", radii)
        found = _numbers(name, given)
        _checks.must(bool((found >= 0).all()), f"{name} must be numbers in [0, inf]: got {found[~(found >= 0)][:1]}")
        found = np.unique(found)
        found = found[::-1] if form.has_weight else found
    return SetFamily(partial(form, chosen), found, form.level_name, {"divergence": chosen.name})


def function_family(function: Any, levels: npt.ArrayLike | None) -> SetFamily:
    """The sets that a function makes of levels, from the least to the most robust as far as the sets know."""
    if not callable(function):
        raise TypeError(f"levels must come with a function from a level to a set: got {function!r}")
    if levels is None:
        raise TypeError(
            "divergence must be one, such as rm.KL(); a function from a level to a set needs levels=: "
            f"got {function!r} without levels"
        )
    found = _numbers("levels", levels)
    _checks.must(not np.isnan(found).any(), "levels must be numbers: got nan")
    found = np.unique(found)
    # Solving is quickest from the least to the most robust level, and advice prefers the least robust one.
    lowest, highest = (check_ambiguity(function(float(level))) for level in found[[0, -1]])
    falls, rises = lowest.contains(highest), highest.contains(lowest)
    downwards = falls if falls != rises else not lowest.grows  # sets of two kinds, or that do not know
    return SetFamily(lambda level: check_ambiguity(function(level)), found[::-1] if downwards else found, "level", {})


def _numbers(name: str, given: npt.ArrayLike | None) -> FloatArray:
    numbers = np.atleast_1d(_checks.numbers(name, given))
    _checks.must(numbers.ndim == 1 and numbers.size > 0, f"{name} must be a list of numbers: got shape {numbers.shape}")
    return numbers


class Point(NamedTuple):
    """One level: what is robust there, that policy's values under the model, the nominal policy's worst case.

    `error_bound` is that of both worst cases.
    """

    level: float
    ambiguity: Ambiguity
    robust: Stage
    under_model: FloatArray
    nominal_worst: FloatArray
    changed: IntArray
    error_bound: float


def points_along(
    mdp: MDP,
    set_at: SetAt,
    levels: FloatArray,
    nominal: Solution,
    *,
    tol: float = 1e-6,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Point]:
    """Level by level, each from the one before."""
    everything, alone = Walk(mdp, tol, threads), Walk(restrict_to(mdp, nominal.policy), tol, threads)
    policy, under_model = nominal.policy, nominal.value
    used = mdp.transitions_of(policy_rows(mdp, policy).pairs)
    for done, level in enumerate(levels.tolist(), 1):
        ambiguity = set_at(level)
        robust = everything.step(_place(level), ambiguity)
        doubted, changed = robust, np.empty(0, np.int64)
        if not np.array_equal(robust.policy, policy):
            policy = robust.policy
            under_model = _value_under_model(mdp, policy, under_model, tol, threads)
        if differ(policy, nominal.policy).any():
            doubted = alone.step(_place(level), ambiguity.on_part(mdp, slice(None), used))
            changed = certainly_worse(robust.value - alone.apply(robust.value), robust, nominal.policy)
        bound = max(robust.error_bound, doubted.error_bound)
        yield Point(level, ambiguity, robust, under_model, doubted.value, changed, bound)
        if progress is not None:
            progress(done, len(levels))


def _value_under_model(
    mdp: MDP, policy: npt.NDArray[Any], start: FloatArray, tol: float, threads: int | None
) -> FloatArray:
    """(S,); rows that are mixed are not rows of the model, so that a random policy has no world of its own."""
    if policy.ndim > 1:
        return solve_or_raise(mdp, Nominal(), policy=policy, tol=tol, threads=threads, start=start).value
    chain = RobustBellman(restrict_to(mdp, policy), Nominal(), threads=threads)
    return follow(chain, start, tol)[0].value


def is_rising(points: Sequence[Point]) -> bool:
    """Whether the worst case certainly improves from the first level to the last."""
    if not points:
        return False
    first, last = points[0].robust, points[-1].robust
    return bool(np.mean(last.value - first.value) > first.error_bound + last.error_bound)


def restrict_to(mdp: MDP, policy: IntArray) -> MDP:
    """The world in which a policy, (S,), is all there is to do."""
    return mdp.restricted(policy_rows(mdp, policy).pairs)


def certainly_worse(lost: FloatArray, robust: Stage | Solution, policy: npt.NDArray[Any]) -> IntArray:
    """The states in which a policy's choice loses against the robust one, by more than errors; ties are no change."""
    return np.flatnonzero(differ(robust.policy, policy) & (lost > 2.0 * robust.error_bound))


def as_table(points: Sequence[Point], start: FloatArray, level_name: str, best: float | None = None) -> CurveTable:
    """The columns of `robustness_curve`, with the best value under the model and the knee as notes."""
    columns: dict[str, Any] = {
        level_name: [point.level for point in points],
        "nominal": [start @ point.under_model for point in points],
        "worst": [start @ point.robust.value for point in points],
        "nominal_worst": [start @ point.nominal_worst for point in points],
        "changed": [len(point.changed) for point in points],
        "error_bound": [point.error_bound for point in points],
        "status": [point.robust.status.code for point in points],
    }
    table = CurveTable(Table.of(**columns).columns)
    certain = 4.0 * table["error_bound"].astype(np.float64)  # both values are known to one bound each
    at = knee(table["nominal"], table["worst"] - table["nominal_worst"], certain, best)
    return table.with_notes(best=best, knee=at)


def _place(level: float) -> float:
    """The logarithm of its size; 0 and inf stand far out, where nothing is extrapolated through them."""
    size = abs(level)
    return math.copysign(1e3, size - 1.0) if size in (0.0, math.inf) else math.log(size)
