"""The slider over the levels of a curve: values, policy and worst-case rows at each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robustmdp.app.study import maps
from robustmdp.app.study.names import Names
from robustmdp.app.study.nature import Row, rows_of, taken_by_nature
from robustmdp.app.study.numbers import short
from robustmdp.app.study.policies import policy_table, random_text
from robustmdp.app.study.study import Study
from robustmdp.app.study.sweep import Sweep
from robustmdp.tuning.curve import Point

_WATCHED = 2
_MOST_CELLS = 400  # of the maps in the frames of all sliders: what keeps a page below 3 MB
_LEAST = 1e-9  # of the values: less is not worth a picture


def explorer(study: Study, sweep: Sweep, names: Names) -> dict[str, Any]:
    """A frame per level, as they stand on the axis; the pairs that nature changes most are shown in all of them."""
    order = sorted(range(len(sweep.points)), key=lambda place: sweep.points[place].level)
    watched, differing = _watched(study), study.differing(sweep)
    return {
        "sweep": sweep,
        "label": "λ: what nature pays per unit of divergence"
        if sweep.name == "weight"
        else f"{sweep.name.capitalize()}: how far nature may go",
        "frames": [_frame(study, sweep, names, watched, place, int(differing[place])) for place in order],
        "start": order.index(sweep.shown),
        "error": f"{float(sweep.curve['error_bound'].max()):.1g}",
        "reading": _reading(study, sweep),
    }


def _watched(study: Study) -> list[int]:
    """The states at which nature takes most from the robust policy."""
    taken = taken_by_nature(study.mdp, study.doubt, study.robust, study.start)
    least = _LEAST * max(1.0, float(np.abs(study.robust.value).max()))
    return [int(state) for state in np.argsort(-taken, kind="stable")[:_WATCHED] if taken[state] > least]


def _reading(study: Study, sweep: Sweep) -> str:
    """What the curve says, in a sentence."""
    if study.certain:
        return "The model leaves nothing to chance, so nature can change nothing."
    if not sweep.gains:
        return "At none of these levels does a robust policy improve the worst case."
    if sweep.curve.notes["knee"] < 0:
        return "At none of these levels does the worst case gain more than the value under the model loses."
    gain, price = sweep.gain_and_price(sweep.knee)
    verb = "gains most for its price" if price <= gain else "has most to show, though it costs more than it gains"
    return (
        f"At {sweep.text(sweep.knee)} robustness {verb} (the knee of the curve): the worst case is better by "
        f"{short(gain)}; if the model is right, that costs {short(price)}."
    )


def _frame(
    study: Study, sweep: Sweep, names: Names, watched: Sequence[int], place: int, differing: int
) -> dict[str, Any]:
    """What is seen at one level."""
    point = sweep.points[place]
    changed = set(point.changed.tolist())
    rows = rows_of(study.mdp, point.ambiguity, point.robust.value, watched, point.robust.policy)
    frame = {
        "label": _label(study, sweep, place),
        "x": point.level,
        "facts": _frame_facts(study, point, differing),
        "rows": [bars(names, row) for row in rows],
    }
    if names.layout is not None and names.layout.n_states * len(study.sweeps) <= _MOST_CELLS:
        policy, value = point.robust.policy, point.robust.value
        title = f"Policy and worst-case value{random_text(point.robust)}"
        return {**frame, "map": maps.policy_map(names, policy, value, changed, title, span=_span(sweep, names))}
    return {**frame, "table": policy_table(study, names, point.robust, changed, "Actions and worst-case value")}


def _label(study: Study, sweep: Sweep, place: int) -> str:
    marks = {0: "hardly robust", len(sweep.points) - 1: "most robust"}
    if sweep.place is not None:
        marks[sweep.place] = "recommended" if study.recommended else "selected"
    return f"{sweep.text(place)} ({marks[place]})" if place in marks else sweep.text(place)


def _frame_facts(study: Study, point: Point, differing: int) -> list[tuple[str, str]]:
    model, worst, nominal, best = (
        short(float(study.start @ value))
        for value in (point.under_model, point.robust.value, point.nominal_worst, study.nominal.value)
    )
    states = f"{differing:,} {'state' if differing == 1 else 'states'}"
    return [
        ("if the model is right", f"{model}; the best possible is {best}"),
        ("worst case", f"{worst}, proved to within {point.robust.error_bound:.1g}"),
        ("worst case of the nominal policy", nominal),
        ("states with another action", f"{len(point.changed):,} of {study.mdp.n_states:,}"),
        *([("recommended policy", f"differs in {states}" if differing else "the same decisions, up to ties")]
          if study.recommended else []),
    ]  # fmt: skip


def _span(sweep: Sweep, names: Names) -> tuple[float, float]:
    """From the least to the greatest value on the curve, so that its levels can be compared."""
    closed = names.layout.closed if names.layout is not None else frozenset()
    values = np.array([point.robust.value for point in sweep.points])
    kept = [state for state in range(values.shape[1]) if state not in closed]
    values = values[:, kept] if kept else values
    return float(values.min()), float(values.max())


def bars(names: Names, row: Row) -> dict[str, Any]:
    """A pair with its successors, as the page draws them."""
    return {"title": names.pair(row), "outcomes": names.outcomes(row)}
