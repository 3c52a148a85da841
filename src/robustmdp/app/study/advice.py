"""What is recommended, in words: the lead of the page and the section behind it."""

from __future__ import annotations

import math

import numpy as np

from robustmdp.ambiguity import Ambiguity, Constrained, worst_case
from robustmdp.app.page import DataTable, Listing, Paragraph
from robustmdp.app.page.blocks import Block
from robustmdp.app.study.numbers import alike, short
from robustmdp.app.study.study import Study
from robustmdp.divergences import FDivergence
from robustmdp.table import Table
from robustmdp.tuning.worlds import RANDOM

_CERTAIN = (
    "Trust the model. It leaves nothing to chance, and nature bends chances, it does not invent outcomes: so no "
    "level of robustness changes anything. If the world is noisier than that, put the noise into the model."
)
_ROBUST_ALREADY = (
    "Trust the model. At every level that was tried, the policy that trusts it has the best worst case as well. "
    "This is a statement about the model: how far the truth is from it, only data can say."
)
_DEAR = (
    "Trust the model. Robust policies do better in the worst case, but each costs more than 5 % if the model is right. "
    "How far the truth is from the model, only data can say: bring a log or held-out models."
)
_BEST_IN_WORLDS = (
    "Trust the model. In the worlds that were tried, no robust policy did better where it goes worst without losing "
    "too much on average."
)
NATURE = "Nature is the imagined opponent who bends the model against you."
_TENTH = (
    "Levels were compared by the worst tenth: the mean value over the worst tenth of worlds, or what is left when the "
    "model is badly wrong."
)
_DATA = "How far the truth is from the model, only data can say: bring a log or held-out models."


def lead(study: Study) -> str:
    """The answer in a few sentences."""
    advice, notes = study.suggestion, study.suggestion.candidates.notes
    if advice.ambiguity.is_nominal:
        if study.certain or advice.comparison is not None:
            return _CERTAIN if study.certain else _BEST_IN_WORLDS
        return _DEAR if study.sweep.curve.notes["knee"] >= 0 else _ROBUST_ALREADY
    recommended = f"Recommended: {level_in_words(advice.ambiguity)}."
    if advice.comparison is None:
        bought, paid = study.sweep.bargain
        return (
            f"{recommended} It improves the worst case by {short(bought)}, and costs {short(paid)} if the model is "
            f"right. {_DATA}"
        )
    chosen = int(np.flatnonzero(advice.candidates["chosen"])[0])
    tails = advice.candidates["test_worst_tenth"]
    verdict = "did better than" if tails[chosen] > tails[0] else "did no better than"
    numbers = f"{short(tails[chosen])} against {short(tails[0])}"
    worlds = "In worlds that had no part in the choice"
    means = advice.candidates["test_mean"]
    dear = means[0] - means[chosen] > notes["loss"] * abs(means[0])
    but = f" But on average it costs more than is bearable: {short(means[chosen])} against {short(means[0])}."
    return (
        f"{recommended} {worlds}, it {verdict} trusting the model: over the worst tenth of them, {numbers}."
        f"{but if dear else ''}"
    )


def level_in_words(ambiguity: Ambiguity) -> str:
    """A level as one would say it."""
    if ambiguity.is_nominal:
        return "trust the model"
    if not (ambiguity.has_weight or ambiguity.has_radius):
        return ambiguity.label
    name, level = ambiguity.divergence.name, ambiguity.level
    if isinstance(level, np.ndarray):
        finite = level[np.isfinite(level)]
        return f"one radius per state and action, {finite.min():.3g} to {finite.max():.3g} in {name} divergence"
    if ambiguity.has_weight:
        return f"a penalty of λ = {level:.3g} per unit of {name} divergence"
    return f"a radius of {level:.3g} in {name} divergence"


def recommendation(study: Study) -> tuple[Block, ...]:
    """The level and what it means, the reasons, and what else was tried."""
    advice = study.suggestion
    facts = Listing((("level", level_in_words(advice.ambiguity)), *_matches(study)))
    reasons = tuple(Paragraph(reason) for reason in advice.reasons)
    if advice.comparison is None:
        return (facts, *_meaning(study), *reasons, *_doubts(study))
    return (facts, *_meaning(study), Paragraph(_TENTH), *reasons, _tried(advice.candidates))


def _doubts(study: Study) -> tuple[Block, ...]:
    """A knee is found without worlds: say so where random ones speak against it."""
    random = next(name for name in study.stress["family"].tolist() if name.startswith(RANDOM))
    rows = study.stress.where(family=random)
    tails = dict(zip(rows["policy"].tolist(), rows["worst_tenth"].tolist(), strict=True))
    if tails.get("recommended", math.inf) >= tails["trusting the model"]:
        return ()
    numbers = f"{short(tails['recommended'])} against {short(tails['trusting the model'])}"
    return (
        Paragraph(
            f"Worlds that differ at random speak against it: over the worst tenth of them, it earns {numbers} for "
            "trusting the model. It pays only where errors conspire against the policy, as the worst case does."
        ),
    )


def _matches(study: Study) -> list[tuple[str, str]]:
    """The same level in the other form, where there is one."""
    if not study.matching:
        return []
    other = "radius" if study.suggestion.ambiguity.has_weight else "weight"
    word = "a radius of" if other == "radius" else "λ ="
    same = "has the same worst case from the start (Theorem 3.1 of arXiv 2302.01248)"
    return [("in the other form", f"{word} {short(study.matching[other])} {same}")]


def _meaning(study: Study) -> tuple[Block, ...]:
    """What the level says, with a coin for scale."""
    ambiguity, name = study.suggestion.ambiguity, study.divergence.name
    if ambiguity.is_nominal:
        return ()
    if study.function is not None:
        return (Paragraph(f"{NATURE} What it may do: {ambiguity}."),)
    if ambiguity.has_weight:
        room = (
            f"λ, the weight, is what it pays per unit of {name} divergence between its chances and the model's. A "
            "small λ lets it bend a lot; a very large λ is the same as trusting the model."
        )
    elif isinstance(ambiguity.level, np.ndarray):
        room = (
            "For each state and action it may choose any chances within that pair's radius of the model's, in "
            f"{name} divergence. Pairs that were seen often have small radii."
        )
    else:
        room = (
            "For each state and action it may choose any chances within this radius of the model's, in "
            f"{name} divergence."
        )
    return (Paragraph(f"{NATURE} {room}{_coin(study.divergence, study.matching.get('radius'))}"),)


def _coin(divergence: FDivergence, radius: float | None) -> str:
    if radius is None or not 0.0 < radius < math.inf:
        return ""
    heads = worst_case(Constrained(divergence, radius), [0.5, 0.5], [1.0, 0.0]).distribution[0]
    return f" For scale: with a radius of {short(radius)} it may turn a chance of 50 % into {100 * heads:.0f} %."


def _tried(candidates: Table) -> DataTable:
    unit = candidates.notes["unit"]
    header = ("share of the radii" if unit == "share" else "radius", "mean, choosing", "worst tenth, choosing",
              "mean, judging", "worst tenth, judging")  # fmt: skip
    names = ("mean", "worst_tenth", "test_mean", "test_worst_tenth")
    levels = [f"{level:.3g}" if level else "0 (trusts the model)" for level in candidates[unit].tolist()]
    rows = tuple(zip(levels, *(alike(candidates[name]) for name in names), strict=True))
    marked = tuple(np.flatnonzero(candidates["chosen"]).tolist())
    caption = "Levels that were tried: values over the worlds that chose, and over those that judged"
    return DataTable(header, rows, caption, marked_rows=marked, mark="chosen")
