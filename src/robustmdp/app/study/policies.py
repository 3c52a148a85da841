"""A policy on a page: arrows on a grid where states are places, otherwise a table."""

from __future__ import annotations

import numpy as np

from robustmdp.app.page import Cell, DataTable, Grid
from robustmdp.app.page.blocks import Block
from robustmdp.app.study.names import Names
from robustmdp.app.study.numbers import alike, short
from robustmdp.app.study.study import Study
from robustmdp.app.study.sweep import Sweep
from robustmdp.operators.policy import probability_of_likeliest
from robustmdp.planning.continuation import Stage
from robustmdp.result import Solution
from robustmdp.tuning.curve import Point

_MOST_STATES = 24
_MOST_CELLS = 900  # in the frames of all sliders at one place: what keeps a page below 10 MB
_TELLING = 400  # cells up to which each says on hover what it is


def policy_block(study: Study, sweep: Sweep, names: Names, point: Point) -> Block:
    """What is done at one level of the curve, and what it is worth in the worst case."""
    changed = set(point.changed.tolist())
    if names.layout is not None and names.layout.n_states * len(study.sweeps) <= _MOST_CELLS:
        return policy_grid(names, point.robust, changed, "Policy and worst-case value", scale=_scale(sweep, names))
    return policy_table(study, names, point.robust, changed, "Actions and worst-case value")


def _scale(sweep: Sweep, names: Names) -> tuple[float, float]:
    """From the least to the greatest value on the curve, so that its levels can be compared."""
    closed = names.layout.closed if names.layout is not None else frozenset()
    values = np.array([point.robust.value for point in sweep.points])
    kept = [state for state in range(values.shape[1]) if state not in closed]
    values = values[:, kept] if kept else values
    return float(values.min()), float(values.max())


def policy_table(study: Study, names: Names, robust: Solution | Stage, changed: set[int], title: str) -> DataTable:
    """Changed states first, where there is not room for all."""
    order = [*sorted(changed), *(s for s in range(study.mdp.n_states) if s not in changed)][:_MOST_STATES]
    shown = sorted(order)
    columns = ([names.choice(policy, s) for s in shown] for policy in (robust.policy, study.trusting.policy))
    rows = tuple(zip(map(names.state, shown), *columns, alike(robust.value[shown]), strict=True))
    more = "" if len(shown) == study.mdp.n_states else f" ({len(shown)} of {study.mdp.n_states:,} states)"
    header = ("state", "robust", "trusting", "worst case")
    marked = tuple(place for place, s in enumerate(shown) if s in changed)
    return DataTable(header, rows, f"{title}{more}{_random(robust)}", marked_rows=marked)


def _random(robust: Solution | Stage) -> str:
    """What a title says of a policy that is random."""
    if probability_of_likeliest(robust.policy).min() == 1.0:
        return ""
    return "; the policy is random: a number beside the likeliest action is its probability"


def policy_grid(
    names: Names,
    solution: Solution | Stage,
    changed: set[int],
    title: str,
    *,
    caption: str = "",
    scale: tuple[float | None, float | None] = (None, None),
) -> Grid:
    """The policy as arrows on the values."""
    layout = names.layout
    assert layout is not None
    cells = []
    for state in range(layout.n_states):
        row, column = layout.place(state)
        closed = state in layout.closed
        arrow = "" if closed else names.choice(solution.policy, state)
        value = None if closed else float(solution.value[state])
        told = names.state(state) if value is None else f"{names.state(state)}: {arrow}, {short(value)}"
        detail = told if layout.n_states <= _TELLING else ""
        cells.append(Cell(row, column, layout.mark(state), arrow, value, state in changed, detail))
    return Grid(f"{title}{_random(solution)}", layout.rows, layout.columns, tuple(cells), caption, *scale)
