"""The robustness curve with a slider over lambda: values, policy and worst-case rows at every level."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robustmdp.analysis.names import Names
from robustmdp.analysis.study import Study, rows_of, taken_by_nature
from robustmdp.planning.continuation import Stage
from robustmdp.report import Cell, Curve, DataTable, Distribution, Figure, Frame, Grid, Key, Listing, Panel, Slider
from robustmdp.report.blocks import Block
from robustmdp.report.figure import Style
from robustmdp.result import Solution
from robustmdp.tuning.curve import Point

_MOST_STATES = 24
_PAIRS = 2
_KIND = "value of"


def explorer(study: Study, names: Names) -> Slider:
    """A frame per level; the pairs that nature pulls most at the recommended level are shown in all of them."""
    taken = taken_by_nature(study.mdp, study.doubt, study.robust, study.start)
    watched = np.argsort(-taken, kind="stable")[:_PAIRS]
    values = np.concatenate([point.robust.value for point in study.points])
    scale = (float(values.min()), float(values.max()))
    frames = tuple(_frame(study, names, point, watched.tolist(), scale) for point in study.points)
    return Slider(
        "levels",
        "Every level at a glance",
        "Penalty λ per unit of divergence",
        frames,
        _nearest(study),
        figure=_figure(study),
        caption="A small λ lets nature bend the model cheaply: the policy then guards against more. A large λ trusts "
        "the model.",
    )


def _nearest(study: Study) -> int:
    """The level that matches the recommendation, else the knee."""
    weight = study.matching.get("weight", 0.0)
    if not 0.0 < weight < np.inf:
        return study.knee
    return int(np.abs(np.log(study.curve["weight"]) - np.log(weight)).argmin())


def _figure(study: Study) -> Figure:
    curve, x = study.curve, study.curve["weight"]

    def line(name: str, column: str, style: Style = "line") -> Curve:
        return Curve(Key(_KIND, name), x, curve[column].astype(float), style=style)

    value = Panel(
        "What robustness costs and buys",
        "λ",
        "value from the start",
        (
            line("robust policy, if the model is right", "nominal"),
            line("robust policy, worst case", "worst"),
            line("trusting policy, worst case", "trusting", "dashed"),
        ),
        x_scale="log",
    )
    changes = Panel(
        "How much the policy changes",
        "λ",
        "states with another action",
        (line("changed states", "changed", "line+points"),),
        x_scale="log",
    )
    at = study.knee
    bought, paid = curve["worst"][at] - curve["trusting"][at], curve.notes["best"] - curve["nominal"][at]
    reading = (
        f"At the knee, λ = {x[at]:.3g}, robustness improves the worst case by {bought:.4g} and costs {paid:.4g} if the "
        "model is right."
        if curve.notes["knee"] >= 0
        else "At no level does a robust policy improve the worst case: the trusting policy is robust already."
    )
    return Figure(
        "robustness-curve",
        "The robustness curve",
        "Each level is solved anew and certified. The worst case of a penalized problem includes what nature pays. "
        "Click a point to see its policy below.",
        reading,
        (value, changes),
    )


def _frame(study: Study, names: Names, point: Point, watched: Sequence[int], scale: tuple[float, float]) -> Frame:
    start, robust = study.start, point.robust
    facts = Listing(
        (
            (
                "if the model is right",
                f"{start @ point.under_model:.6g} (best possible {study.curve.notes['best']:.6g})",
            ),
            ("worst case", f"{start @ robust.value:.6g}, certified to {robust.error_bound:.1g}"),
            ("worst case of the trusting policy", f"{start @ point.trusting:.6g}"),
            ("states with another action", f"{len(point.changed):,} of {study.mdp.n_states:,}"),
        )
    )
    rows = rows_of(study.mdp, point.ambiguity, robust.value, watched, robust.policy)
    pulled = tuple(Distribution(names.pair(row), names.outcomes(row), high=1.0) for row in rows)
    return Frame(f"λ = {point.level:.3g}", (facts, policy_block(study, names, point, scale), *pulled), point.level)


def policy_block(study: Study, names: Names, point: Point, scale: tuple[float, float]) -> Block:
    """A grid with arrows where states are places, otherwise a table, changed states first."""
    robust, changed = point.robust, set(point.changed.tolist())
    if names.layout is not None:
        return policy_grid(names, robust, changed, "Policy and worst-case value", scale)
    order = [*sorted(changed), *(s for s in range(study.mdp.n_states) if s not in changed)][:_MOST_STATES]
    shown = sorted(order)
    rows = tuple(
        (names.state(s), names.action(int(robust.policy[s])), names.action(int(study.trusting.policy[s])),
         float(robust.value[s]))
        for s in shown
    )  # fmt: skip
    more = "" if len(shown) == study.mdp.n_states else f" ({len(shown)} of {study.mdp.n_states:,} states)"
    header = ("state", "robust action", "trusting action", "worst-case value")
    marked = tuple(place for place, s in enumerate(shown) if s in changed)
    return DataTable(header, rows, f"Policy and worst-case value{more}", marked_rows=marked)


def policy_grid(
    names: Names, solution: Solution | Stage, changed: set[int], title: str, scale: tuple[float, float] | None = None
) -> Grid:
    """The policy as arrows on the values."""
    layout = names.layout
    assert layout is not None
    cells = []
    for state in range(layout.n_states):
        row, column = layout.place(state)
        closed = state in layout.closed
        arrow = "" if closed else names.action(int(solution.policy[state]))
        value = None if closed else float(solution.value[state])
        detail = f"{names.state(state)}: {arrow}, {value:.4g}" if value is not None else names.state(state)
        cells.append(Cell(row, column, layout.mark(state), arrow, value, state in changed, detail))
    low, high = scale or (None, None)
    return Grid(title, layout.rows, layout.columns, tuple(cells), low=low, high=high)
