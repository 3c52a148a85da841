"""What robustness costs and buys, level by level."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.ambiguity import Ambiguity, Constrained, Nominal, Penalized
from robustmdp.divergences import FDivergence
from robustmdp.models import MDP
from robustmdp.planning import evaluate, solve
from robustmdp.planning.continuation import solve_along
from robustmdp.result import Solution
from robustmdp.table import Table
from robustmdp.tuning.start import distribution

FloatArray = npt.NDArray[np.float64]
Progress = Callable[[int, int], None]


def robustness_curve(
    mdp: MDP,
    divergence: FDivergence,
    weights: npt.ArrayLike | None = None,
    *,
    radii: npt.ArrayLike | None = None,
    initial: npt.ArrayLike | None = None,
    tol: float = 1e-6,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Table:
    """For each level the robust policy: its value if the model is right, its worst case, how much it differs.

    Parameters
    ----------
    mdp : MDP
    divergence : a divergence
    weights : (n,) levels of the penalized form; 50 from `levels_for` if neither they nor radii are given
    radii : (n,) levels of the constrained form, instead
    initial : a state, or (S,) probabilities of the first state; all states alike by default
    tol : as for `solve`
    progress : called with (levels done, levels) as they are solved

    Returns
    -------
    Table, one row per level, from the least to the most robust:
        "weight" or "radius"; "nominal", the policy's value under the model; "worst", its worst-case value;
        "trusting", the worst-case value of the policy that trusts the model; "changed", in how many states that
        policy's action is certainly worse; "error_bound", the certified error of "worst"; "status".
        Notes: "knee", the row at which robustness has bought most for its price; "best", the value under the model of
        the policy that trusts it; "interrupted" if Ctrl-C came: then the levels so far are there.

    >>> from robustmdp import KL, problems
    >>> curve = robustness_curve(problems.machine_replacement(), KL(), [10.0, 1.0, 0.1])
    >>> curve["weight"].tolist(), bool((curve["worst"] <= curve["nominal"]).all())
    ([10.0, 1.0, 0.1], True)
    """
    start = distribution(mdp, initial)
    form, levels = _levels(mdp, divergence, weights, radii)
    trusting = solve(mdp, Nominal(), tol=tol, threads=threads)
    walk = _Walk(mdp, divergence, form, start, trusting, tol, threads)
    interrupted = False
    rows: list[tuple[Any, ...]] = []
    try:
        for row in walk.rows(levels):
            rows.append(row)
            if progress is not None:
                progress(len(rows), len(levels))
    except KeyboardInterrupt:
        interrupted = True
    names = (form.level_name, "nominal", "worst", "trusting", "changed", "error_bound", "status")
    table = Table(dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))) if rows else _empty(names)
    notes = {"divergence": divergence.name, "best": float(start @ trusting.value), "interrupted": interrupted}
    return table.with_notes(**notes, knee=knee(table["nominal"], table["worst"] - table["trusting"]))


def levels_for(
    mdp: MDP, divergence: FDivergence, *, count: int = 50, form: type[Penalized] | type[Constrained] = Penalized
) -> FloatArray:
    """Levels that span this problem, from hardly robust to nearly the minimum over the support, evenly by logarithm.

    Weights scale with what outcomes differ by, discount times the spread of the value; radii do not.

    >>> from robustmdp import KL, problems
    >>> len(levels_for(problems.chain(), KL(), count=9))
    9
    """
    _checks.positive_integer("count", count)
    if form is Constrained:
        return np.geomspace(1e-3, 3.0, count) * _unit(divergence)
    spread = mdp.discount * float(np.ptp(solve(mdp, Nominal(), tol=1e-4).value)) + float(np.ptp(mdp.rewards))
    return np.geomspace(1e2, 1e-2, count) * max(spread, 1e-12) / _unit(divergence)


def _unit(divergence: FDivergence) -> float:
    """Near the model all divergences are half of f''(1) times chi-square; total variation has no such scale."""
    curvature = divergence.curvature_at_one
    return 0.5 * curvature if math.isfinite(curvature) else 0.25


def knee(price: FloatArray, gain: FloatArray) -> int:
    """The row farthest above the straight line from the first to the last point of gain against price, both scaled.

    `price` falls as robustness grows (value under the model), `gain` rises (worst case won).

    >>> knee(np.array([0.0, -0.1, -1.0]), np.array([0.0, 0.9, 1.0]))
    1
    """
    if len(price) == 0:
        return -1
    paid, won = price.max() - price, gain - gain.min()
    scaled = won / (np.ptp(won) or 1.0) - paid / (np.ptp(paid) or 1.0)
    return int(np.argmax(scaled))


def _levels(
    mdp: MDP, divergence: FDivergence, weights: npt.ArrayLike | None, radii: npt.ArrayLike | None
) -> tuple[type[Penalized] | type[Constrained], FloatArray]:
    """The form and its levels, least robust first."""
    if not isinstance(divergence, FDivergence):
        raise TypeError(f"divergence must be one, such as rm.KL(): got {divergence!r}")
    _checks.must(weights is None or radii is None, "give weights or radii, not both")
    if weights is None and radii is None:
        return Penalized, levels_for(mdp, divergence)
    form, given = (Penalized, weights) if radii is None else (Constrained, radii)
    levels = np.atleast_1d(np.asarray(given, dtype=np.float64))
    name = "weights" if form is Penalized else "radii"
    _checks.must(levels.ndim == 1 and levels.size > 0, f"{name} must be a list of numbers: got shape {levels.shape}")
    _checks.must(bool((levels >= 0).all()), f"{name} must be numbers in [0, inf]: got {levels[~(levels >= 0)][:1]}")
    levels = np.unique(levels)
    return form, levels[::-1] if form is Penalized else levels


class _Walk:
    """Along the levels, with everything that can be carried from one to the next."""

    def __init__(
        self,
        mdp: MDP,
        divergence: FDivergence,
        form: type[Penalized] | type[Constrained],
        start: FloatArray,
        trusting: Solution,
        tol: float,
        threads: int | None,
    ) -> None:
        self.mdp, self.divergence, self.form = mdp, divergence, form
        self.start, self.trusting, self.tol, self.threads = start, trusting, tol, threads

    def rows(self, levels: FloatArray) -> Iterator[tuple[Any, ...]]:
        """Of the table, one by one."""
        family = [(_place(level), self.form(self.divergence, level)) for level in levels.tolist()]
        under_model, under_doubt = self.trusting, self.trusting
        solutions = solve_along(self.mdp, family, tol=self.tol, threads=self.threads)
        for (_, ambiguity), robust in zip(family, solutions, strict=True):
            if robust.status.code == "interrupted":
                raise KeyboardInterrupt
            if not np.array_equal(robust.policy, under_model.policy):
                under_model = self._value(robust.policy, Nominal(), under_model)
            under_doubt = self._value(self.trusting.policy, ambiguity, under_doubt)
            yield (
                ambiguity.level,
                float(self.start @ under_model.value),
                float(self.start @ robust.value),
                float(self.start @ under_doubt.value),
                changed_states(robust, self.trusting.policy).size,
                robust.error_bound,
                robust.status.code,
            )

    def _value(self, policy: npt.ArrayLike, ambiguity: Ambiguity, near: Solution) -> Solution:
        return evaluate(self.mdp, policy, ambiguity, start=near.value, tol=self.tol, threads=self.threads)


def changed_states(robust: Solution, policy: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The states in which a policy's action is certainly worse than the robust one; ties are no change."""
    states = np.arange(len(policy))
    lost = robust.q[states, robust.policy] - robust.q[states, policy]
    return np.flatnonzero((robust.policy != policy) & (lost > 2.0 * robust.error_bound))


def _place(level: float) -> float:
    """The logarithm; 0 and inf stand far out, where nothing is extrapolated through them."""
    return math.copysign(1e3, level - 1.0) if level in (0.0, math.inf) else math.log(level)


def _empty(names: tuple[str, ...]) -> Table:
    return Table({name: np.empty(0) for name in names})
