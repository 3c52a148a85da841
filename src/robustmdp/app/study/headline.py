"""What the page says first: the decision, what it is worth, and what speaks against it."""

from __future__ import annotations

from typing import Any

import numpy as np

from robustmdp.ambiguity import Ambiguity
from robustmdp.app.study.names import alike, short
from robustmdp.app.study.study import Study
from robustmdp.table import Table

_CERTAIN = (
    "Keep the nominal policy. The model leaves nothing to chance, and nature changes probabilities, it does not invent "
    "outcomes: no level of robustness changes anything. If the world is noisier, put the noise into the model."
)
_SAME = (
    "Keep the nominal policy: at every level that was tried it has the best worst case as well. This is a statement "
    "about the model; how far the truth is from it, only data can say."
)
_NO_DATA = (
    "No advice without data. A robust policy can raise the worst case by {gain}, at a price of {price} if the model is "
    "right. Whether that is worth it depends on how far the truth is from the model, which only data can say: bring a "
    "log or held-out models."
)
_VERDICTS = {
    "pays": "Use the robust policy.",
    "does not pay": "Keep the nominal policy: robustness does not pay here.",
    "undecided": "Undecided; keep the nominal policy for now.",
    "too few worlds": "Too few worlds to decide; keep the nominal policy for now.",
}
_CLOSE = 2e-6  # relative: what evaluation leaves open


def headline(study: Study, unit: str = "") -> str:
    """The decision and its worth in a few sentences, with what the stress test says against it."""
    advice, sweep = study.suggestion, study.sweep
    if study.certain:
        return _CERTAIN
    if advice.comparison is None and not sweep.gains:
        return _SAME
    if advice.comparison is None:
        gain, price = sweep.gain_and_price(sweep.knee)
        return _NO_DATA.format(gain=_money(gain, unit), price=_money(price, unit))
    sentences = [_VERDICTS[advice.verdict], _worth(advice.comparison, unit)]
    if advice.verdict != "pays" and advice.worlds_needed is not None:
        sentences.append(f"A verdict would need about {advice.worlds_needed:,} worlds.")
    if advice.verdict == "pays" and advice.baseline is not None:
        sentences.append(f"But a simpler plan does as well: {advice.baseline}.")
    if study.recommended:
        best = float(study.start @ study.nominal.value)
        price = best - float(study.start @ study.under_model)
        share = f" ({100 * price / abs(best):.2g} %)" if best else ""
        sentences += [f"If the model is right, it costs {_money(price, unit)}{share}.", *objections(study)]
    return " ".join(sentences)


def _worth(comparison: Table, unit: str) -> str:
    """What the robust policy gains over the nominal one in the test worlds, with intervals."""
    rows = comparison.where(policy="robust")
    if not len(rows):
        return "No level that was tried does better in the worst tenth of worlds at a bearable average loss."
    level, row, texts = f"{100 * comparison.notes.get('confidence', 0.95):g} %", rows[0], []
    for name in ("tail_gain", "gain"):
        gain, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
        size = f"{_money(abs(gain), unit)} {'more' if gain >= 0 else 'less'}"
        texts.append(size if np.isnan(low) else f"{size} ({level} interval {short(low)} to {short(high)})")
    return (
        f"Over {row['worlds']:,} worlds that had no part in the choice, the robust policy earns {texts[0]} than the "
        f"nominal one in the worst tenth, and {texts[1]} on average."
    )


def objections(study: Study) -> list[str]:
    """Families of worlds in the stress test in which the robust policy does worse than the nominal one."""
    found, table = [], study.stress
    for family in dict.fromkeys(table["family"].tolist()):
        rows = table.where(family=family)
        worlds = int(rows["worlds"][0])
        tails = dict(zip(rows["policy"].tolist(), rows["worst_tenth"].tolist(), strict=True))
        nominal, robust = tails["nominal"], tails["robust"]
        if worlds > 1 and robust < nominal and not is_close(robust, nominal):
            found.append(
                f"The stress test speaks against it: in the worst tenth of {worlds:,} worlds ({family}) it earns "
                f"{short(robust)} against {short(nominal)}."
            )
    return found


def is_close(value: float, other: float) -> bool:
    """Whether two values of the stress test differ by no more than evaluation leaves open."""
    return abs(value - other) <= _CLOSE * max(1.0, abs(other))


def level_text(ambiguity: Ambiguity) -> str:
    """A level in words."""
    if ambiguity.is_nominal:
        return "keep the nominal policy"
    if not (ambiguity.has_weight or ambiguity.has_radius):
        return ambiguity.label
    name, level = ambiguity.divergence.name, ambiguity.level
    if isinstance(level, np.ndarray):
        finite = level[np.isfinite(level)]
        return f"one radius per state and action, {finite.min():.3g} to {finite.max():.3g} in {name} divergence"
    if ambiguity.has_weight:
        return f"a penalty of λ = {level:.3g} per unit of {name} divergence"
    return f"a radius of {level:.3g} in {name} divergence"


def compare_policies(table: Table) -> dict[str, Any]:
    """Policies beside each other in the test worlds, the gains with their intervals."""
    level, rows = f"{100 * table.notes.get('confidence', 0.95):g} %", []
    for row, mean, tail in zip(table, alike(table["mean"]), alike(table["worst_tenth"]), strict=True):
        gains = ["", ""] if row["policy"] == "nominal" else [_gain_text(row, name) for name in ("gain", "tail_gain")]
        rows.append((row["policy"], row["setting"], mean, tail, *gains))
    gained = (f"gain in the mean ({level})", f"gain in the worst tenth ({level})")
    return {
        "header": ("policy", "setting", "mean", "worst tenth", *gained),
        "rows": rows,
        "caption": f"Policies over the same {int(table['worlds'][0]):,} test worlds",
    }


def _gain_text(row: dict[str, Any], name: str) -> str:
    """A gain as a table's entry; too few worlds have no interval."""
    gain, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    return short(gain) if np.isnan(low) else f"{short(gain)} ({short(low)} to {short(high)})"


def _money(value: float, unit: str) -> str:
    return f"{short(value)} {unit}".strip()
