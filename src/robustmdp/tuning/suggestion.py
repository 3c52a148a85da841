"""A level, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _display, _types
from robustmdp.ambiguity import Ambiguity, Constrained, Nominal, Penalized
from robustmdp.divergences import KL, FDivergence
from robustmdp.models import MDP, Counts
from robustmdp.operators.policy import differ
from robustmdp.planning import solve
from robustmdp.planning.continuation import solve_along
from robustmdp.result import Solution
from robustmdp.table import Table
from robustmdp.tuning.confidence import radius_from_counts
from robustmdp.tuning.curve import SetAt, function_family, knee_of, levels_for, robustness_curve
from robustmdp.tuning.trials import stress, worst_tenth
from robustmdp.tuning.whole import whole
from robustmdp.tuning.worlds import Models, Plausible

FloatArray = npt.NDArray[np.float64]
Progress = Callable[[int, int], None]

_SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
_RADII = 16
_ENOUGH = 0.95  # of the best gain: beyond, robustness is paid for and hardly bought


@dataclass(frozen=True, eq=False, repr=False)
class Suggestion:
    """What to solve with, and why.

    Attributes
    ----------
    ambiguity : what to pass to `solve`; `Nominal()` where robustness does not pay
    solution : the model solved with it
    reasons : sentences
    candidates : Table of the levels that were tried: "level" (or "share" of the radii), "mean" and "worst_tenth" over
        the worlds that chose, "judged_mean" and "judged_worst_tenth" over those that did not, "chosen"; where there are
        no worlds the robustness curve, whose note "chosen" is the row that was chosen, -1 for none
    radii : (S, A) at the confidence asked for, where there were counts
    """

    ambiguity: Ambiguity
    solution: Solution
    reasons: tuple[str, ...]
    candidates: Table
    radii: FloatArray | None = None

    @property
    def level(self) -> float:
        """The level that was chosen, in the unit of the candidates; NaN where none was."""
        table = self.candidates
        place = np.flatnonzero(table["chosen"]) if "chosen" in table.columns else np.array([table.notes["chosen"]])
        return float(next(iter(table.columns.values()))[place[0]]) if place[0] >= 0 else np.nan

    @property
    def pays(self) -> bool:
        """Is it better in the worst tenth than trusting the model, and at most as much worse on average as allowed?

        Judged by worlds that had no part in the choice; without worlds there is nothing to judge by: False.
        """
        return bool(self.candidates.notes.get("pays", False))

    def _fields(self) -> _display.Fields:
        return [("level", str(self.ambiguity)), *(("because", reason) for reason in self.reasons)]

    def __repr__(self) -> str:
        return _display.as_text("Suggestion", self._fields())

    def _repr_html_(self) -> str:
        return _display.as_html("Suggestion", self._fields())


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
    loss: float = 0.05,
    draws: int = 200,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Suggestion:
    """The smallest level that does about as well as any in the worst tenth of worlds, at a bearable average loss.

    The worlds are the held-out models or, with counts, models drawn from what the counts leave possible. Every other
    world chooses the level; the rest, which had no part in it, judge. Without either, the knee of the robustness curve
    is taken, among levels of a bearable price: it says how much robustness is cheap here, not how far the truth is.

    Parameters
    ----------
    mdp : the model; with counts, `counts.model(discount)`
    divergence : KL() by default, or a function from a level to a set of nature's choices
    levels : (n,) numbers to call the function with: the candidates, beside trusting the model
    counts : `Counts`, from `estimate`; the candidates are shares of `radius_from_counts` at `confidence`, or the levels
    method : of those radii; "asymptotic" is far quicker where pairs have dozens of successors
    held_out : models that were not used for `mdp`
    initial : a state, or (S,) probabilities of the first state; all states alike by default
    loss : the average loss against trusting the model that is bearable, relative to its mean; without worlds, the
        price if the model is right
    draws : how many models are drawn from the counts
    progress : called with (values so far, values in all)

    >>> from robustmdp import problems
    >>> others = [problems.machine_replacement(repair_success=p) for p in (0.4, 0.5, 0.6, 0.7, 0.8)]
    >>> advice = suggest(problems.machine_replacement(), held_out=others, initial=0)
    >>> advice.reasons[0]
    'Tried in 5 worlds (held out): every other one chose the level, the rest judged it.'
    >>> from robustmdp import CVaR
    >>> suggest(problems.machine_replacement(), CVaR, levels=[0.9, 0.7, 0.5]).ambiguity
    CVaR(0.5)
    """
    _types.check_arguments(suggest, {name: value for name, value in locals().items() if name != "divergence"})
    chosen = KL() if divergence is None else divergence
    _checks.must(counts is None or held_out is None, "give counts or held_out, not both")
    _checks.must(0.0 <= loss < 1.0, f"loss must lie in [0, 1): got {loss:g}")
    if counts is None and held_out is None:
        return _at_the_knee(mdp, chosen, levels, initial, loss, threads, progress)
    trial = _Trial(mdp, initial, loss, threads, progress)
    if levels is not None or callable(chosen):
        evidence = Plausible(counts, draws, seed) if counts is not None else _models(held_out)
        return _among(trial, chosen, levels, evidence)
    if counts is not None:
        radii = np.asarray(radius_from_counts(counts, chosen, confidence, method=method, seed=seed))[:, : mdp.n_actions]
        trial.run(
            "share", "share", _SHARES, lambda share: _scaled(chosen, radii, share), Plausible(counts, draws, seed)
        )
        first = (
            f"The radii at confidence {confidence:g} are for each pair by itself; nature rarely uses all of them at "
            f"once, so shares of them were tried in {draws} models drawn from what the counts leave possible: every "
            "other one chose the share, the rest judged it."
        )
        return trial.suggestion(first, radii)
    worlds = _models(held_out)
    radii = np.append(0.0, levels_for(mdp, chosen, count=_RADII, form=Constrained, threads=threads))
    trial.run("level", "radius", radii.tolist(), lambda radius: _scaled(chosen, np.asarray(radius), 1.0), worlds)
    return trial.suggestion(_tried_in(worlds), None)


def _models(held_out: Sequence[MDP] | Models | None) -> Models:
    assert held_out is not None
    return held_out if isinstance(held_out, Models) else Models(list(held_out))


def _tried_in(worlds: Models | Plausible) -> str:
    return f"Tried in {worlds.size} worlds ({worlds.name}): every other one chose the level, the rest judged it."


def _among(trial: _Trial, function: Any, levels: npt.ArrayLike | None, worlds: Models | Plausible) -> Suggestion:
    """The best of the sets that a function makes; NaN stands for trusting the model, which has no level here."""
    family = function_family(function, levels)
    trial.run(
        "level",
        "level",
        (np.nan, *family.levels.tolist()),
        lambda level: Nominal() if np.isnan(level) else family.set_at(level),
        worlds,
    )
    return trial.suggestion(_tried_in(worlds), None)


def _scaled(divergence: FDivergence, radii: FloatArray, share: float) -> Ambiguity:
    """Nominal at share 0, also where a radius is infinite."""
    if share == 0.0 or not np.any(radii > 0):
        return Nominal()
    return Constrained(divergence, share * radii)


class _Trial:
    """Candidates against worlds."""

    def __init__(
        self, mdp: MDP, initial: npt.ArrayLike | None, loss: float, threads: int | None, progress: Progress | None
    ) -> None:
        self.mdp, self.initial, self.loss, self.threads, self.progress = mdp, initial, loss, threads, progress

    def run(self, unit: str, word: str, levels: Sequence[float], at: SetAt, worlds: Any) -> None:
        """Solve every candidate, try each in every world, choose by every other world.

        The first level trusts the model; `unit` is the column of levels, `word` what sentences call them.
        """
        _checks.must(worlds.size >= 2, "there must be two worlds or more, one to choose by and one to judge: got one")
        family = [(float(np.log(level)) if level > 0 else -1e3, at(level)) for level in levels]
        along = solve_along(self.mdp, family, tol=1e-6, threads=self.threads)
        # What is tried must be what is returned: where actions tie, another solve may choose others.
        self.solutions = [whole(whole(stage).solution(self.mdp, threads=self.threads)) for stage in along]
        self.ambiguities = [ambiguity for _, ambiguity in family]
        policies = {f"{place}": solution for place, solution in enumerate(self.solutions)}
        table = stress(
            self.mdp, policies, worlds, initial=self.initial, threads=self.threads, progress=self.progress
        ).outcomes
        values = np.stack([table.where(policy=name)["value"] for name in policies])
        choosing, judging = values[:, ::2], values[:, 1::2]
        self.means, self.tails = choosing.mean(axis=1), np.array([worst_tenth(row) for row in choosing])
        self.place = self._chosen()
        judged_means, judged_tails = judging.mean(axis=1), np.array([worst_tenth(row) for row in judging])
        self.judged = (judged_means[[0, self.place]], judged_tails[[0, self.place]])
        self.table = Table.of(
            **{unit: np.array(levels)},
            mean=self.means,
            worst_tenth=self.tails,
            judged_mean=judged_means,
            judged_worst_tenth=judged_tails,
            chosen=np.arange(len(levels)) == self.place,
        ).with_notes(pays=self._pays(), unit=unit, word=word, loss=self.loss)

    def _chosen(self) -> int:
        """The least robust bearable candidate with nearly the largest gain in the worst tenth."""
        bearable = self._lost(self.means) <= self.loss
        gain = np.where(bearable, self.tails - self.tails[0], -np.inf)
        return int(np.argmax(gain >= _ENOUGH * gain.max())) if gain.max() > _slack(self.tails) else 0

    def _lost(self, means: FloatArray) -> FloatArray:
        lost: FloatArray = (means[0] - means) / max(abs(float(means[0])), 1e-300)
        return lost

    def _pays(self) -> bool:
        means, tails = self.judged
        better = tails[1] - tails[0] > _slack(tails)
        return bool(self.place > 0 and better and self._lost(means)[1] <= self.loss)

    def suggestion(self, first: str, radii: FloatArray | None) -> Suggestion:
        """With its reasons in words and numbers."""
        means, tails = self.judged
        level = self.table[self.table.notes["unit"]][self.place]
        word = self.table.notes["word"]
        smallest = "least robust" if word == "level" else "smallest"
        if self.place == 0:
            alike = all(not differ(each.policy, self.solutions[0].policy).any() for each in self.solutions)
            best = (
                "Every level that was tried leads to the same policy."
                if alike
                else "No level was better than trusting the model in the worst tenth at a bearable average loss."
            )
            reasons = (first, best, f"Trusting the model: mean {means[0]:.4g}, worst tenth {tails[0]:.4g}.")
        else:
            verdict = "better" if tails[1] - tails[0] > _slack(tails) else "not better"
            lost = float(self._lost(means)[1])
            too_much = f", more than the {100 * self.loss:.3g} % that are bearable" if lost > self.loss else ""
            reasons = (
                first,
                f"The {word} {level:.3g} is the {smallest} with nearly the largest gain in the worst tenth.",
                f"Judged by the other worlds: in the worst tenth it is {verdict} than trusting the model "
                f"({tails[1]:.4g} against {tails[0]:.4g}); on average it "
                f"{_lost_in_words(lost)} ({means[1]:.4g} against {means[0]:.4g}){too_much}.",
            )
        return Suggestion(self.ambiguities[self.place], self.solutions[self.place], reasons, self.table, radii)


def _slack(values: FloatArray) -> float:
    """What evaluation to a relative 1e-6 leaves open between two values."""
    return 4e-6 * max(1.0, float(np.abs(values).max()))


def _lost_in_words(lost: float) -> str:
    return f"loses {100 * lost:.2g} %" if lost > 0 else f"gains {-100 * lost:.2g} %"


def _at_the_knee(
    mdp: MDP,
    divergence: FDivergence | SetAt,
    levels: npt.ArrayLike | None,
    initial: npt.ArrayLike | None,
    loss: float,
    threads: int | None,
    progress: Progress | None,
) -> Suggestion:
    curve = robustness_curve(mdp, divergence, levels=levels, initial=initial, threads=threads, progress=progress)
    if curve.notes["interrupted"]:
        raise KeyboardInterrupt
    unknown = "There are neither counts nor held-out worlds, so nothing says how far the truth is"
    at = _bearable_knee(curve, loss)
    if at < 0:
        price = "" if curve.notes["knee"] < 0 else f" at a price of at most {100 * loss:.3g} % if the model is right"
        tried = f"At none of the {len(curve)} levels that were tried"
        reasons: tuple[str, ...] = (f"{unknown}.", f"{tried} does a robust policy improve the worst case{price}.")
        ambiguity: Ambiguity = Nominal()
    else:
        name = next(iter(curve.columns))
        level = float(curve[name][at])
        bought, paid = curve["worst"][at] - curve["trusting"][at], curve.notes["best"] - curve["nominal"][at]
        if isinstance(divergence, FDivergence):
            ambiguity = Penalized(divergence, level)
        else:
            ambiguity = function_family(divergence, [level]).set_at(level)
        reasons = (
            f"{unknown}: this is the knee of the robustness curve, where robustness has bought most for its price.",
            f"At {name} {level:.3g} the worst case is better by {bought:.4g} than that of the policy that trusts the "
            f"model; if the model is right, that costs {paid:.4g}.",
        )
    return Suggestion(
        ambiguity, whole(solve(mdp, ambiguity, tol=1e-6, threads=threads)), reasons, curve.with_notes(chosen=at)
    )


def _bearable_knee(curve: Table, loss: float) -> int:
    """The knee among the levels whose price is bearable, if any buys something; otherwise -1."""
    paid = curve.notes["best"] - curve["nominal"]
    bearable = np.flatnonzero(paid <= loss * abs(curve.notes["best"]) + curve["error_bound"])
    at = knee_of(curve.take(bearable)) if len(bearable) else -1
    return int(bearable[at]) if at >= 0 else -1
