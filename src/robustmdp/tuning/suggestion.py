"""A level, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _display, _types
from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Ambiguity, Constrained, Nominal
from robustmdp.divergences import KL, FDivergence
from robustmdp.models import MDP, Counts
from robustmdp.models.labels import distribution
from robustmdp.planning.solving import solve_or_raise
from robustmdp.result import Solution
from robustmdp.table import Table
from robustmdp.tuning.confidence import radius_from_counts
from robustmdp.tuning.curve import (
    CurveTable,
    Progress,
    SetAt,
    SetFamily,
    curve_of,
    family_of,
    function_family,
    levels_for,
    points_along,
)
from robustmdp.tuning.reasons import describe_gain, describe_trade_off, describe_worlds, explain
from robustmdp.tuning.selection import Trial, run_trial
from robustmdp.tuning.units import Units
from robustmdp.tuning.worlds import Models, Plausible

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
_RADII = 16


@dataclass(frozen=True, eq=False, repr=False)
class Suggestion(_display.Described):
    """What to solve with, and why.

    Attributes
    ----------
    ambiguity : what to pass to `solve`; `Nominal()` unless robustness pays
    solution : the model solved with it
    reasons : sentences
    candidates : Table of the levels that were tried: "level" (or "share" of the radii), "mean" and "worst_tenth" over
        the half of the worlds that selected the level, "test_mean" and "test_worst_tenth" over the other half,
        "chosen": which level was selected, whether or not it pays; where there are no worlds the robustness curve.
        Notes: "selection_worlds" and "test_worlds", how many there were in either half
    radii : (S, A) at the confidence asked for, where there were counts
    comparison : Table of policies over the same test worlds, None where there are no worlds: "policy" ("nominal",
        "robust", "shorter horizon", "mean model"), "setting" (the level or the discount, as text), "worlds" (how many),
        "mean", "worst_tenth", and the paired differences from the nominal policy with their bootstrap intervals:
        "gain", "gain_low", "gain_high" of the mean, "tail_gain", "tail_gain_low", "tail_gain_high" of the worst tenth,
        "benefit", "benefit_low", "benefit_high" of mean + loss * worst tenth; intervals are NaN for fewer than 20
        worlds. Notes: "confidence" of the intervals, "loss". Without a selected level there is no row "robust"
    verdict : "pays", "does not pay", "undecided" (an interval includes 0), "too few worlds" or
        "no worlds"
    worlds_needed : about how many worlds, in all, a verdict would need; None where there is one or none can be expected
    baseline : the baseline of `comparison` that does as well as the robust policy, None where none does
    nominal : the solution that takes the model as true
    """

    ambiguity: Ambiguity
    solution: Solution
    reasons: tuple[str, ...]
    candidates: Table
    radii: FloatArray | None = None
    comparison: Table | None = None
    verdict: str = "no worlds"
    worlds_needed: int | None = None
    baseline: str | None = None
    nominal: Solution | None = None

    @property
    def level(self) -> float:
        """The level that is recommended, in the unit of the candidates; NaN where none is."""
        if not self.pays:
            return np.nan
        levels = next(iter(self.candidates.columns.values()))
        return float(levels[self.candidates["chosen"]][0])

    @property
    def pays(self) -> bool:
        """Is the level that was selected certainly better in the worst tenth, at a bearable average loss?

        That is, the bootstrap intervals of its gain there and of its benefit over the test worlds are above 0.
        Without worlds, or with too few, nothing says so: False.
        """
        return self.verdict == "pays"

    def plot(self, ax: Any = None) -> Figure:
        """The levels' mean and worst tenth over the worlds, and gains on the nominal policy with their intervals.

        Without worlds the robustness curve. Needs matplotlib.

        Parameters
        ----------
        ax : a matplotlib axes for the levels alone, or two for levels and gains; a new figure if None
        """
        if self.comparison is None:
            return CurveTable(self.candidates.columns, self.candidates.notes).plot(ax)
        from robustmdp.pictures import draw_candidates

        others = self.comparison[1:]
        texts = {
            "title": f"The worlds that tested say: {self.verdict}",
            "intervals": f"{100 * others.notes['confidence']:g} % intervals",
        }
        unit, columns = self.candidates.notes["unit"], self.candidates.columns
        return draw_candidates(ax, unit, columns, others.columns, **texts)

    def _fields(self) -> _display.Fields:
        verdict = ("yes" if self.pays else f"no: {self.verdict}") + describe_gain(self.comparison)
        return [("level", str(self.ambiguity)), ("pays", verdict), *(("because", reason) for reason in self.reasons)]


def suggest(
    mdp: MDP,
    divergence: FDivergence | SetAt | None = None,
    *,
    levels: npt.ArrayLike | None = None,
    counts: Counts | None = None,
    confidence: float = 0.95,
    method: str | None = None,
    held_out: Sequence[MDP] | Models | None = None,
    initial: npt.ArrayLike | None = None,
    loss: float = 0.5,
    draws: int = 200,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Suggestion:
    """The smallest level that does about as well as any in other worlds, if it certainly pays in the worst of them.

    The worlds are the held-out models or, with counts, models drawn from what the counts leave possible. One half of
    them selects the level, the other half tests it, beside baselines: the nominal policy, one for a shorter horizon
    (selected like the level), and the nominal policy of the mean of the worlds that select. A level is recommended
    only if over the test worlds both its gain in the worst tenth and its benefit are above 0, with their intervals.
    Without worlds or counts none is: the robustness curve shows what robustness would cost and gain.

    Parameters
    ----------
    mdp : the model; with counts, `counts.model(discount)`
    divergence : KL() by default, or a function from a level to a set of nature's choices
    levels : (n,) numbers to call the function with: the candidates, beside the nominal policy
    counts : `Counts`, from `estimate`; the candidates are shares of `radius_from_counts` at `confidence`, or the levels
    method : of those radii; "asymptotic" is far quicker where pairs have dozens of successors
    held_out : models that were not used for `mdp`
    initial : a state by number or name, or (S,) probabilities of the first state; all states alike by default
    loss : the average loss against the nominal policy that is bearable for each unit gained in the worst tenth of
        worlds; levels are compared by their benefit, what mean + loss * worst tenth gains
    draws : how many models are drawn from the counts
    progress : called with (values so far, values in all)

    >>> from robustmdp import problems
    >>> others = [problems.machine_replacement(repair_success=p) for p in np.linspace(0.3, 0.9, 41)]
    >>> advice = suggest(problems.machine_replacement(), held_out=others, initial=0)
    >>> advice.reasons[0]
    'Tried in 41 worlds (held out): 21 of them selected the level, the other 20 tested it.'
    >>> suggest(problems.machine_replacement()).verdict
    'no worlds'
    """
    _types.check_arguments(suggest, {name: value for name, value in locals().items() if name != "divergence"})
    chosen = KL() if divergence is None else divergence
    _checks.must(counts is None or held_out is None, "give counts or held_out, not both")
    _checks.must(0.0 <= loss < 1.0, f"loss must lie in [0, 1): got {loss:g}")
    worlds = Plausible(counts, draws, seed) if counts is not None else held_out_worlds(held_out)
    if worlds is None:
        return _show_trade_off(mdp, chosen, levels, initial, threads, progress)
    radii = None
    if counts is not None and levels is None and not callable(chosen):
        radii = np.asarray(radius_from_counts(counts, chosen, confidence, method=method, seed=seed))[:, : mdp.n_actions]
    tried = _choose_levels(mdp, chosen, levels, radii, threads)
    trial = run_trial(mdp, tried, worlds, initial=initial, loss=loss, threads=threads, progress=progress)
    return _advise(trial, describe_worlds(worlds, confidence if radii is not None else None), radii, seed)


def held_out_worlds(given: Sequence[MDP] | Models | None) -> Models | None:
    """Models that were not used, as a family of worlds."""
    return given if given is None or isinstance(given, Models) else Models(list(given))


def _choose_levels(
    mdp: MDP, divergence: Any, levels: npt.ArrayLike | None, radii: FloatArray | None, threads: int | None
) -> SetFamily:
    """Shares of radii, radii, or the sets that a function makes; there NaN stands for the nominal one."""
    if radii is not None:
        return SetFamily(partial(_scaled, divergence, radii), np.array(_SHARES), "share", {}, "share")
    if levels is None and not callable(divergence):
        found = levels_for(mdp, divergence, count=_RADII, form=Constrained, threads=threads)
        return SetFamily(partial(_scaled, divergence, np.ones(())), np.append(0.0, found), "level", {}, "radius")
    family = function_family(divergence, levels)
    return family._replace(
        set_at=lambda level: Nominal() if np.isnan(level) else family.set_at(level),
        levels=np.append(np.nan, family.levels),
    )


def _scaled(divergence: FDivergence, radii: FloatArray, share: float) -> Ambiguity:
    """Nominal at share 0, also where a radius is infinite."""
    if share == 0.0 or not np.any(radii > 0):
        return Nominal()
    return Constrained(divergence, share * radii)


def _advise(trial: Trial, first: str, radii: FloatArray | None, seed: int) -> Suggestion:
    """The advice that follows from a trial."""
    comparison = trial.comparison(seed)
    verdict, needed = trial.verdict(comparison)
    pays = verdict == "pays"
    solution = trial.solutions[trial.chosen if pays else 0]
    baseline = trial.baseline(pays, seed)
    return Suggestion(
        trial.levels.set_at(float(trial.levels.levels[trial.chosen])) if pays else Nominal(),
        solution,
        (first, *explain(trial, comparison, verdict, needed, baseline)),
        trial.candidates(),
        radii,
        comparison,
        verdict,
        needed,
        baseline,
        trial.solutions[0],
    )


def _show_trade_off(
    mdp: MDP,
    divergence: FDivergence | SetAt,
    levels: npt.ArrayLike | None,
    initial: npt.ArrayLike | None,
    threads: int | None,
    progress: Progress | None,
) -> Suggestion:
    """No level, since nothing says how far the truth is: what robustness costs and gains, at each level."""
    start = distribution(mdp, initial)
    tol = Units.of(mdp).tolerance(1e-6)
    nominal = solve_or_raise(mdp, Nominal(), tol=tol, threads=threads)
    family = family_of(mdp, divergence, nominal, levels=levels)
    points = points_along(mdp, family.set_at, family.levels, nominal, tol=tol, threads=threads, progress=progress)
    curve = curve_of(list(points), start, family, nominal)
    return Suggestion(Nominal(), nominal, describe_trade_off(curve), curve, nominal=nominal)
