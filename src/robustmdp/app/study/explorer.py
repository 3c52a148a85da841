"""The robustness curve with a slider over its levels: values, policy and worst-case rows at each of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from robustmdp.app.page import Curve, Distribution, Figure, Frame, Key, Listing, Panel, Paragraph, Slider
from robustmdp.app.page.figure import Style
from robustmdp.app.study.advice import NATURE
from robustmdp.app.study.names import Names
from robustmdp.app.study.nature import rows_of, taken_by_nature
from robustmdp.app.study.numbers import short
from robustmdp.app.study.policies import policy_block
from robustmdp.app.study.study import Study, trusts
from robustmdp.app.study.sweep import Sweep
from robustmdp.table import Table

_PAIRS = 2
_KIND = "value of"
_LEAST = 1e-9  # of the values: less is not worth a picture
_SMALL = 0.01  # of the best value: a gain below is hardly one
_GAP = "The gap between the two lower lines is what robustness buys; how far the upper line falls is what it costs."
_LAMBDA = (
    "λ is what nature pays per unit of divergence. At a small λ it bends a lot, and the policy guards against much. At "
    "a large λ the policy trusts the model."
)
_VALUE = "Of each next state, “value” is what it is worth from there on in the worst case, counted from now."


def explorers(study: Study, names: Names) -> tuple[Paragraph | Slider, ...]:
    """For each form of levels, what its slider moves, and the slider."""
    watched = _watched(study)
    return tuple(
        block
        for sweep in study.sweeps
        for block in (Paragraph(_introduction(study, sweep)), _explorer(study, sweep, names, watched))
    )


def _introduction(study: Study, sweep: Sweep) -> str:
    nature = f"{NATURE} " if trusts(study.suggestion.ambiguity) else ""
    if sweep is not study.sweep:
        begins = (
            "the λ that has the same worst case from the start as the recommended radius"
            if sweep.place is not None
            else "the knee of its curve"
            if sweep.curve.notes["knee"] >= 0
            else "its most robust level"
        )
        return f"Instead of a limit, nature may have a price to pay. {_LAMBDA} The slider begins at {begins}."
    if sweep.penalized:
        return f"{nature}{_LAMBDA} {_GAP}"
    word = sweep.form
    says = "The radius is how far nature may go" if word == "radius" else f"The {word} says how far nature may go"
    small, large = ("small", "large") if sweep.grows else ("large", "small")
    return (
        f"{nature}{says}. At a {small} {word} the policy trusts the model, at a {large} one it guards against much. "
        f"{_GAP}"
    )


def _explorer(study: Study, sweep: Sweep, names: Names, watched: Sequence[int]) -> Slider:
    """A frame per level, as they stand on the axis; the pairs that nature pulls most are shown in all of them."""
    order = sorted(range(len(sweep.points)), key=lambda place: sweep.points[place].level)
    where = f"The bars belong to the states from which nature takes most at the {_which(study)}."
    bars = f"{where} {_VALUE}" if watched else ""
    frames = _Frames(study, sweep, names, watched)
    return Slider(
        f"levels-{sweep.form}",
        "Every λ at a glance" if sweep.penalized else f"Every {sweep.form} at a glance",
        "λ: what nature pays per unit of divergence"
        if sweep.penalized
        else f"{sweep.form.capitalize()}: how far nature may go",
        tuple(frames.at(place) for place in order),
        order.index(study.shown(sweep)),
        figure=_figure(study, sweep),
        caption=bars,
    )


def _watched(study: Study) -> list[int]:
    taken = taken_by_nature(study.mdp, study.doubt, study.robust, study.start)
    least = _LEAST * max(1.0, float(np.abs(study.robust.value).max()))
    return [int(state) for state in np.argsort(-taken, kind="stable")[:_PAIRS] if taken[state] > least]


def _which(study: Study) -> str:
    if not trusts(study.suggestion.ambiguity):
        return "recommended level"
    return "knee" if study.sweep.curve.notes["knee"] >= 0 else "most robust level"


def _figure(study: Study, sweep: Sweep) -> Figure:
    curve, x = sweep.curve, next(iter(sweep.curve.columns.values()))
    axis = f"{'λ' if sweep.penalized else sweep.form}: trusting to the {'left' if sweep.grows else 'right'}"

    def line(name: str, y: npt.NDArray[np.float64], style: Style = "line") -> Curve:
        return Curve(Key(_KIND, name), x, y.astype(float), style=style)

    value = Panel(
        "What robustness costs and buys",
        axis,
        "value from the start",
        (
            line("robust policy, if the model is right", curve["nominal"]),
            line("robust policy, worst case", _settled(curve, "worst")),
            line("trusting policy, worst case", _settled(curve, "nominal_worst"), "dashed"),
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
    pays = " It includes what nature pays." if sweep.penalized else ""
    caption = (
        f"Each level is solved by itself; its worst case is proved to within {error:.1g}.{pays} A state counts as "
        "changed where the trusting action is certainly worse; where all actions are equally bad, the choice among "
        "them is arbitrary. Click a point to see its policy below."
    )
    title = "The robustness curve" if sweep is study.sweep else "The robustness curve over λ"
    return Figure(f"robustness-curve-{sweep.form}", title, caption, _reading(study, sweep), (value, changes))


def _settled(curve: Table, column: str) -> npt.NDArray[np.float64]:
    """A column without what is smaller than its certified error, which would look like a peak where all is flat."""
    values, model = curve[column].astype(float), curve["nominal"].astype(float)
    return np.where(np.abs(values - model) <= 2.0 * curve["error_bound"].astype(float), model, values)


def _reading(study: Study, sweep: Sweep) -> str:
    if study.certain:
        return "The model leaves nothing to chance, so there is nothing that nature could bend."
    if sweep.curve.notes["knee"] < 0:
        return "At none of these levels does a robust policy improve the worst case."
    curve, (bought, paid) = sweep.curve, sweep.bargain
    most = float((curve["worst"] - curve["nominal_worst"]).max())
    if most < _SMALL * abs(curve.notes["best"]):
        return f"In the worst case the robust and the trusting policy hardly differ: by {short(most)} at most."
    better = "bought most for its price" if paid <= bought else "most to show, though it costs more than it buys"
    return (
        f"At {sweep.said(sweep.knee)} robustness has {better} (the knee of the curve): the worst case is better by "
        f"{short(bought)}; if the model is right, that costs {short(paid)}."
    )


class _Frames:
    """What is seen at each level of a sweep."""

    def __init__(self, study: Study, sweep: Sweep, names: Names, watched: Sequence[int]) -> None:
        self.study, self.sweep, self.names, self.watched = study, sweep, names, watched
        self.differing = study.differing(sweep)

    def at(self, place: int) -> Frame:
        study, names, point = self.study, self.names, self.sweep.points[place]
        rows = rows_of(study.mdp, point.ambiguity, point.robust.value, self.watched, point.robust.policy)
        pulled = (Distribution(names.pair(row), names.outcomes(row), high=1.0) for row in rows)
        policy = policy_block(study, self.sweep, names, point)
        return Frame(self._label(place), (self._facts(place), policy, *pulled), point.level)

    def _label(self, place: int) -> str:
        asked = "recommended" if self.sweep is self.study.sweep else "same worst case as recommended"
        marks = {0: "nearly trusting", len(self.sweep.points) - 1: "most robust", self.sweep.place: asked}
        return f"{self.sweep.said(place)} ({marks[place]})" if place in marks else self.sweep.said(place)

    def _facts(self, place: int) -> Listing:
        study, point = self.study, self.sweep.points[place]
        model, worst, trusting, best = (
            short(float(study.start @ value))
            for value in (point.under_model, point.robust.value, point.nominal_worst, study.trusting.value)
        )
        facts = [
            ("if the model is right", f"{model}; the best possible is {best}"),
            ("worst case", f"{worst}, proved to within {point.robust.error_bound:.1g}"),
            ("… of the trusting policy", trusting),
            ("states with another action", f"{len(point.changed):,} of {study.mdp.n_states:,}"),
        ]
        if not trusts(study.suggestion.ambiguity) and (self.sweep is not study.sweep or place != self.sweep.place):
            count = int(self.differing[place])
            differs = f"differs in {count:,} {'state' if count == 1 else 'states'}"
            facts.append(("recommended policy", differs if count else "decides the same, up to ties"))
        return Listing(tuple(facts))
