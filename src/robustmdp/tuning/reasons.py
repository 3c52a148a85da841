"""The reasons for an advice, as sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from robustmdp.table import Table
from robustmdp.tuning.gains import FEWEST
from robustmdp.tuning.selection import HORIZON, MEAN, NOMINAL, ROBUST, Trial
from robustmdp.tuning.worlds import Models, Plausible

_BASELINES = {HORIZON: "planning for a shorter horizon", MEAN: "the nominal policy of the mean of the worlds"}


def describe_worlds(worlds: Models | Plausible, confidence: float | None) -> str:
    """How many worlds there were, and of which kind; with a confidence, what the levels are shares of."""
    selecting = (worlds.size + 1) // 2
    halves = f"{selecting} of them selected the level, the other {worlds.size - selecting} tested it."
    if confidence is None:
        return f"Tried in {worlds.size} worlds ({worlds.name}): {halves}"
    return (
        f"The radii at confidence {confidence:g} are for each pair by itself; nature rarely uses all of them at once. "
        f"So shares of them were tried in {worlds.size} models drawn from what the counts leave possible: "
        f"{halves.replace('level', 'share')}"
    )


def explain(trial: Trial, comparison: Table, verdict: str, needed: int | None, baseline: str | None) -> tuple[str, ...]:
    """What was selected, how it did in the worlds that tested it, the verdict, and what baselines do."""
    if trial.chosen == 0:
        found = ["Every level that was tried leads to the same policy." if trial.is_one_policy else _NONE_GAINS]
        nominal = _row(comparison, NOMINAL)
        mean, tail, worlds = nominal["mean"], nominal["worst_tenth"], nominal["worlds"]
        found.append(f"The nominal policy: mean {mean:.4g}, worst tenth {tail:.4g} over the {worlds} test worlds.")
    else:
        found = [_selected(trial), _test(trial, comparison)]
    if verdict in _VERDICTS:
        found.append(_VERDICTS[verdict].format(needed=needed, fewest=2 * FEWEST))
    if comparison["worlds"][0] >= FEWEST:
        found.append(_of_baselines(comparison, verdict == "pays", baseline))
    return tuple(found)


_NONE_GAINS = "No level was better than the nominal policy in the worst tenth at a bearable average loss."
_VERDICTS = {
    "undecided": "An interval includes 0, so no level is recommended: about {needed:,} worlds would tell.",
    "too few worlds": "That is no verdict, so no level is recommended: it takes {fewest} worlds or more.",
}


def _row(table: Table, policy: str) -> dict[str, Any]:
    return {name: column[0] for name, column in table.where(policy=policy).columns.items()}


def _selected(trial: Trial) -> str:
    word = trial.levels.word
    least = "least robust" if word == "level" else "smallest"
    level = trial.levels.levels[trial.chosen]
    benefit = f"mean + {trial.loss:g} x worst tenth"
    return f"The {word} {level:.3g} is the {least} with nearly the largest benefit, measured by {benefit}."


def _test(trial: Trial, comparison: Table) -> str:
    """The worst tenth and the mean over the worlds that tested the level."""
    nominal, robust = _row(comparison, NOMINAL), _row(comparison, ROBUST)
    better = "better" if robust["tail_gain"] > trial.slack else "not better"
    if better == "better" and robust["tail_gain_low"] <= 0.0:
        better = "not certainly better"
    lost, gain, benefit = -robust["gain"], robust["tail_gain"], robust["benefit"]
    tails = f"{robust['worst_tenth']:.4g} against {nominal['worst_tenth']:.4g}"
    means = f"{robust['mean']:.4g} against {nominal['mean']:.4g}"
    return (
        f"Over the {robust['worlds']} test worlds it is {better} than the nominal policy in the worst tenth, {tails}"
        f"{_interval(robust, 'tail_gain', f'gain {gain:.3g}, ')}; on average it "
        f"{'loses' if lost > trial.slack else 'gains'} {abs(lost):.3g}, {means}"
        f"{_interval(robust, 'benefit', f'benefit {benefit:.3g}, ')}."
    )


def _interval(row: dict[str, Any], name: str, before: str = "") -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return "" if np.isnan(low) else f" ({before}95 % interval {low:.3g} to {high:.3g})"


def _of_baselines(comparison: Table, pays: bool, baseline: str | None) -> str:
    """What the baselines gain, and whether one does as well as what is recommended."""
    each = []
    for name in comparison["policy"]:
        if name in _BASELINES:
            row = _row(comparison, name)
            setting = f" ({row['setting']})" if row["setting"] else ""
            each.append(f"{_BASELINES[name]}{setting} gains {row['tail_gain']:.3g} there, {row['gain']:.3g} on average")
    figures = f"{'; '.join(each)}."
    if baseline is None:
        lead = "No baseline does as well" if pays else "No baseline is certainly better than the nominal policy"
        return f"{lead}: {figures}"
    setting = _row(comparison, baseline)["setting"]
    name = f"{_BASELINES[baseline]}{f' ({setting})' if setting else ''}"
    verdict = "does as well" if pays else "is certainly better than the nominal policy"
    return f"{name[0].upper()}{name[1:]} {verdict}: {figures}"


def describe_gain(comparison: Table | None) -> str:
    """What the selected level gains in the worst tenth, after a verdict."""
    if comparison is None or ROBUST not in comparison["policy"]:
        return ""
    row = _row(comparison, ROBUST)
    gain = f"{row['tail_gain']:.3g} in the worst tenth of {row['worlds']} test worlds"
    return f", {gain}{_interval(row, 'tail_gain')}"


def describe_trade_off(curve: Table) -> tuple[str, ...]:
    """That data decide, and what robustness would gain and cost at the knee, where there is one."""
    unknown = "There are neither counts nor held-out worlds, and only data can say how far the truth is from the model"
    first = f"{unknown}: no level is recommended."
    at, name = curve.notes["knee"], next(iter(curve.columns))
    if at >= 0:
        gained, paid = curve["worst"][at] - curve["nominal_worst"][at], curve.notes["best"] - curve["nominal"][at]
        return (
            first,
            f"At the knee of the robustness curve, {name} {curve[name][at]:.3g}, the worst case is better by "
            f"{gained:.4g} than that of the nominal policy; if the model is right, that costs {paid:.4g}.",
        )
    if (curve["worst"] - curve["nominal_worst"] <= 4.0 * curve["error_bound"]).all():
        tried = f"At none of the {len(curve)} levels that were tried does a robust policy improve the worst case."
        return first, tried
    return first, (
        "The robustness curve has no knee: robustness costs more than it gains, or pays most at the first or the last "
        "level that was tried."
    )
