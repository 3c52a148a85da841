"""What robustness costs and buys, level by level."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp.ambiguity import Ambiguity, Constrained, Nominal, Penalized, check_ambiguity
from robustmdp.divergences import FDivergence, check_divergence
from robustmdp.models import MDP
from robustmdp.models.start import distribution
from robustmdp.operators import RobustBellman
from robustmdp.operators.policy import differ, policy_rows
from robustmdp.planning import evaluate, solve
from robustmdp.planning.continuation import Stage, Walk, follow
from robustmdp.result import Solution
from robustmdp.table import Table
from robustmdp.tuning.whole import whole

FloatArray = npt.NDArray[np.float64]
Progress = Callable[[int, int], None]
SetAt = Callable[[float], Ambiguity]


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
) -> Table:
    """For each level the robust policy: its value if the model is right, its worst case, how much it differs.

    Parameters
    ----------
    mdp : MDP
    divergence : a divergence, or a function from a level to a set of nature's choices
    weights : (n,) levels of the penalized form; 50 from `levels_for` if neither they nor radii are given
    radii : (n,) levels of the constrained form, instead
    levels : (n,) numbers to call the function with
    initial : a state, or (S,) probabilities of the first state; all states alike by default
    tol : as for `solve`
    progress : called with (levels done, levels) as they are solved

    Returns
    -------
    Table, one row per level, from the least to the most robust:
        "weight", "radius" or, with a function, "level"; "nominal", the policy's value under the model; "worst", its
        worst-case value; "trusting", the worst-case value of the policy that trusts the model; "changed", in how many
        states that policy's action is certainly worse; "error_bound", the certified error of both worst cases;
        "status". Notes: "knee", the row at which robustness has bought most for its price, -1 if it buys nothing;
        "best", the value under the model of the policy that trusts it; "interrupted" if Ctrl-C came: then the levels
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
    family = _family(mdp, divergence, weights, radii, levels, threads)
    trusting = whole(solve(mdp, Nominal(), tol=tol, threads=threads))
    points: list[Point] = []
    interrupted = False
    try:
        for point in points_along(mdp, family.set_at, family.levels, trusting, tol=tol, threads=threads):
            points.append(point)
            if progress is not None:
                progress(len(points), len(family.levels))
    except KeyboardInterrupt:
        interrupted = True
    if is_rising(points):
        points.reverse()
    return as_table(points, start, family.level_name).with_notes(
        **family.notes, best=float(start @ trusting.value), interrupted=interrupted
    )


def levels_for(
    mdp: MDP,
    divergence: FDivergence,
    *,
    count: int = 50,
    form: type[Penalized] | type[Constrained] = Penalized,
    threads: int | None = None,
) -> FloatArray:
    """Levels that span this problem, from hardly robust to nearly the minimum over the support, evenly by logarithm.

    Weights scale with what outcomes differ by, discount times the spread of the value, the end's 0 included; radii do
    not.

    >>> from robustmdp import KL, problems
    >>> len(levels_for(problems.chain(), KL(), count=9))
    9
    """
    _types.check_arguments(levels_for, locals())
    _checks.positive_integer("count", count)
    check_divergence(divergence)
    if form.has_radius:
        return np.geomspace(1e-3, 3.0, count) * _unit(divergence)
    values = whole(solve(mdp, Nominal(), tol=1e-4, threads=threads)).value
    outcomes = np.append(values, 0.0) if mdp.can_end else values
    low, high = mdp.reward_range
    spread = mdp.discount * float(np.ptp(outcomes)) + high - low
    return np.geomspace(1e2, 1e-2, count) * max(spread, 1e-12) / _unit(divergence)


def _unit(divergence: FDivergence) -> float:
    """Near the model all divergences are half of f''(1) times chi-square; total variation has no such scale."""
    curvature = divergence.curvature_at_one
    return 0.5 * curvature if math.isfinite(curvature) else 0.25


def knee(price: FloatArray, gain: FloatArray, least: float | FloatArray = 0.0) -> int:
    """The row at which gain, scaled, is farthest above price, scaled; -1 where no gain is above `least`.

    `price` is the value under the model, which falls as robustness grows; `gain` is what the worst case wins.

    >>> knee(np.array([0.0, -0.1, -1.0]), np.array([0.0, 0.9, 1.0]))
    1
    """
    worth = gain > least
    if not worth.any():
        return -1
    paid = price.max() - price
    scaled = gain / gain.max() - paid / (paid.max() or 1.0)
    return int(np.argmax(np.where(worth, scaled, -np.inf)))


class SetFamily(NamedTuple):
    """Sets that differ in their level alone; `levels` in the order in which they are solved."""

    set_at: SetAt
    levels: FloatArray
    level_name: str
    notes: dict[str, str]


def _family(
    mdp: MDP,
    divergence: FDivergence | SetAt,
    weights: npt.ArrayLike | None,
    radii: npt.ArrayLike | None,
    levels: npt.ArrayLike | None,
    threads: int | None,
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
        found = levels_for(mdp, chosen, threads=threads)
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
    # Solving is quickest from the least to the most robust level; a set need not know which way that is.
    downwards = not check_ambiguity(function(float(found[0]))).grows
    return SetFamily(lambda level: check_ambiguity(function(level)), found[::-1] if downwards else found, "level", {})


def _numbers(name: str, given: npt.ArrayLike | None) -> FloatArray:
    numbers = np.atleast_1d(_checks.numbers(name, given))
    _checks.must(numbers.ndim == 1 and numbers.size > 0, f"{name} must be a list of numbers: got shape {numbers.shape}")
    return numbers


class Point(NamedTuple):
    """One level: what is robust there, that policy's values under the model, the trusting policy's worst case.

    `error_bound` is that of both worst cases.
    """

    level: float
    ambiguity: Ambiguity
    robust: Stage
    under_model: FloatArray
    trusting: FloatArray
    changed: npt.NDArray[np.int64]
    error_bound: float


def points_along(
    mdp: MDP,
    set_at: SetAt,
    levels: FloatArray,
    trusting: Solution,
    *,
    tol: float = 1e-6,
    threads: int | None = None,
) -> Iterator[Point]:
    """Level by level, each from the one before; KeyboardInterrupt where Ctrl-C stopped a solve."""
    everything, alone = Walk(mdp, tol, threads), Walk(under(mdp, trusting.policy), tol, threads)
    policy, under_model = trusting.policy, trusting.value
    used = mdp.transitions_of(policy_rows(mdp, policy).pairs)
    for level in levels.tolist():
        ambiguity = set_at(level)
        robust = whole(everything.step(_place(level), ambiguity))
        doubted, changed = robust, np.empty(0, np.int64)
        if not np.array_equal(robust.policy, policy):
            policy = robust.policy
            under_model = _value_under_model(mdp, policy, under_model, tol, threads)
        if differ(policy, trusting.policy).any():
            doubted = whole(alone.step(_place(level), ambiguity.restricted(mdp, used)))
            changed = certainly_worse(robust.value - alone.apply(robust.value), robust, trusting.policy)
        bound = max(robust.error_bound, doubted.error_bound)
        yield Point(level, ambiguity, robust, under_model, doubted.value, changed, bound)


def _value_under_model(
    mdp: MDP, policy: npt.NDArray[Any], start: FloatArray, tol: float, threads: int | None
) -> FloatArray:
    """(S,); rows that are mixed are not rows of the model, so that a random policy has no world of its own."""
    if policy.ndim > 1:
        return whole(evaluate(mdp, policy, Nominal(), tol=tol, threads=threads, start=start)).value
    chain = RobustBellman(under(mdp, policy), Nominal(), threads=threads)
    return whole(follow(chain, start, tol)[0]).value


def is_rising(points: Sequence[Point]) -> bool:
    """Whether the worst case certainly improves from the first level to the last."""
    if not points:
        return False
    first, last = points[0].robust, points[-1].robust
    return bool(np.mean(last.value - first.value) > first.error_bound + last.error_bound)


def under(mdp: MDP, policy: npt.NDArray[np.int64]) -> MDP:
    """The world in which a policy, (S,), is all there is to do."""
    return mdp.restricted(policy_rows(mdp, policy).pairs)


def certainly_worse(lost: FloatArray, robust: Stage | Solution, policy: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The states in which a policy's choice loses against the robust one, by more than errors; ties are no change."""
    return np.flatnonzero(differ(robust.policy, policy) & (lost > 2.0 * robust.error_bound))


def as_table(points: Sequence[Point], start: FloatArray, level_name: str) -> Table:
    """The columns of `robustness_curve`, with the knee as a note."""
    columns: dict[str, Any] = {
        level_name: [point.level for point in points],
        "nominal": [start @ point.under_model for point in points],
        "worst": [start @ point.robust.value for point in points],
        "trusting": [start @ point.trusting for point in points],
        "changed": [len(point.changed) for point in points],
        "error_bound": [point.error_bound for point in points],
        "status": [point.robust.status.code for point in points],
    }
    table = Table.of(**columns)
    return table.with_notes(knee=knee_of(table))


def knee_of(curve: Table) -> int:
    """The row at which robustness has bought most for its price; -1 where it certainly buys nothing."""
    certain = 4.0 * curve["error_bound"].astype(np.float64)  # both values are known to one bound each
    return knee(curve["nominal"], curve["worst"] - curve["trusting"], certain)


def _place(level: float) -> float:
    """The logarithm of its size; 0 and inf stand far out, where nothing is extrapolated through them."""
    size = abs(level)
    return math.copysign(1e3, size - 1.0) if size in (0.0, math.inf) else math.log(size)
