"""The robustness curve with a slider over its levels: values, policy and worst-case rows at each of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from robustmdp.ambiguity import Penalized
from robustmdp.analysis.advice import NATURE
from robustmdp.analysis.names import Names
from robustmdp.analysis.nature import rows_of, taken_by_nature
from robustmdp.analysis.numbers import short
from robustmdp.analysis.policies import policy_block
from robustmdp.analysis.study import Study, trusts
from robustmdp.report import Curve, Distribution, Figure, Frame, Key, Listing, Panel, Slider
from robustmdp.report.figure import Style

_PAIRS = 2
_KIND = "value of"
_LEAST = 1e-9  # of the values: less is not worth a picture
_SMALL = 0.01  # of the best value: a gain below is hardly one
_GAP = "The gap between the two lower lines is what robustness buys; how far the upper line falls is what it costs."
_VALUE = "Of each next state, “value” is what it is worth from there on in the worst case, counted from now."


def introduction(study: Study) -> str:
    """What the slider moves."""
    nature = f"{NATURE} " if trusts(study.suggestion.ambiguity) else ""
    if _penalized(study):
        return (
            f"{nature}λ is what nature pays per unit of divergence. At a small λ it bends a lot, and the policy guards "
            f"against much. At a large λ the policy trusts the model. {_GAP}"
        )
    return (
        f"{nature}The radius is how far nature may go. At a small radius the policy trusts the model, at a large one "
        f"it guards against much. {_GAP}"
    )


def _penalized(study: Study) -> bool:
    return isinstance(study.points[0].ambiguity, Penalized)


def explorer(study: Study, names: Names) -> Slider:
    """A frame per level, as they stand on the axis; the pairs that nature pulls most are shown in all of them."""
    watched = _watched(study)
    order = sorted(range(len(study.points)), key=lambda place: study.points[place].level)
    bars = f"The bars show where nature takes most at the {_which(study)}. {_VALUE}" if watched else ""
    return Slider(
        "levels",
        "Every level at a glance",
        "λ: what nature pays per unit of divergence" if _penalized(study) else "Radius: how far nature may go",
        tuple(_frame(study, names, place, watched) for place in order),
        order.index(study.shown),
        figure=_figure(study),
        caption=bars,
    )


def _watched(study: Study) -> list[int]:
    taken = taken_by_nature(study.mdp, study.doubt, study.robust, study.start)
    least = _LEAST * max(1.0, float(np.abs(study.robust.value).max()))
    return [int(state) for state in np.argsort(-taken, kind="stable")[:_PAIRS] if taken[state] > least]


def _which(study: Study) -> str:
    if not trusts(study.suggestion.ambiguity):
        return "recommended level"
    return "knee" if study.curve.notes["knee"] >= 0 else "most robust level"


def _figure(study: Study) -> Figure:
    curve, x = study.curve, next(iter(study.curve.columns.values()))
    axis = "λ: trusting to the right" if _penalized(study) else "radius: trusting to the left"

    def line(name: str, y: npt.NDArray[np.float64], style: Style = "line") -> Curve:
        return Curve(Key(_KIND, name), x, y.astype(float), style=style)

    value = Panel(
        "What robustness costs and buys",
        axis,
        "value from the start",
        (
            line("robust policy, if the model is right", curve["nominal"]),
            line("robust policy, worst case", _settled(study, "worst")),
            line("trusting policy, worst case", _settled(study, "trusting"), "dashed"),
        ),
        x_scale="log",
    )
    changes = Panel(
        "How much the policy changes",
        axis,
        "states with another action",
        (line("changed states", curve["changed"], "line+points"),),
        x_scale="log",
    )
    error = float(curve["error_bound"].max())
    pays = " It includes what nature pays." if _penalized(study) else ""
    caption = (
        f"Each level is solved by itself; its worst case is proved to within {error:.1g}.{pays} A state counts as "
        "changed where the trusting action is certainly worse; where all actions are equally bad, the choice among "
        "them is arbitrary. Click a point to see its policy below."
    )
    return Figure("robustness-curve", "The robustness curve", caption, _reading(study), (value, changes))


def _settled(study: Study, column: str) -> npt.NDArray[np.float64]:
    """A column without what is smaller than its certified error, which would look like a peak where all is flat."""
    curve = study.curve
    values, model = curve[column].astype(float), curve["nominal"].astype(float)
    return np.where(np.abs(values - model) <= 2.0 * curve["error_bound"].astype(float), model, values)


def _reading(study: Study) -> str:
    if study.certain:
        return "The model leaves nothing to chance, so there is nothing that nature could bend."
    if study.curve.notes["knee"] < 0:
        return "At no level does a robust policy improve the worst case: the trusting policy is robust already."
    curve, (bought, paid) = study.curve, study.bargain
    most = float((curve["worst"] - curve["trusting"]).max())
    if most < _SMALL * abs(curve.notes["best"]):
        return f"In the worst case the robust and the trusting policy hardly differ: by {short(most)} at most."
    better = "bought most for its price" if paid <= bought else "most to show, though it costs more than it buys"
    return (
        f"At {study.said(study.knee)} robustness has {better} (the knee of the curve): the worst case is better by "
        f"{short(bought)}; if the model is right, that costs {short(paid)}."
    )


def _frame(study: Study, names: Names, place: int, watched: Sequence[int]) -> Frame:
    point = study.points[place]
    rows = rows_of(study.mdp, point.ambiguity, point.robust.value, watched, point.robust.policy) if watched else []
    pulled = (Distribution(names.pair(row), names.outcomes(row), high=1.0) for row in rows)
    return Frame(_label(study, place), (_facts(study, place), policy_block(study, names, point), *pulled), point.level)


def _label(study: Study, place: int) -> str:
    ends = {0: " (nearly trusting)", len(study.points) - 1: " (most robust)"}
    mark = " (recommended)" if place == study.place else ends.get(place, "")
    return f"{study.said(place)}{mark}"


def _facts(study: Study, place: int) -> Listing:
    point, best = study.points[place], study.curve.notes["best"]
    model, worst, trusting = (
        short(float(study.start @ value)) for value in (point.under_model, point.robust.value, point.trusting)
    )
    facts = [
        ("if the model is right", f"{model}; the best possible is {short(best)}"),
        ("worst case", f"{worst}, proved to within {point.robust.error_bound:.1g}"),
        ("… of the trusting policy", trusting),
        ("states with another action", f"{len(point.changed):,} of {study.mdp.n_states:,}"),
    ]
    if not trusts(study.suggestion.ambiguity) and place != study.place:
        count = int(study.differing[place])
        differs = f"differs in {count:,} {'state' if count == 1 else 'states'}"
        facts.append(("recommended policy", differs if count else "as good in every state"))
    return Listing(tuple(facts))
