"""Intervals of transitions as a file lists them: checked, merged, and the nominal model that lies within.

With lower bounds l and upper bounds u of the transitions of a row, p = l + t (u - l), t = (1 - sum l)/(sum u - sum l).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.io.columns import Columns
from robustmdp.models import row_sums

_SMALLEST = 5e-324


class Bounded(NamedTuple):
    """Transitions with their nominal probabilities, sorted by state, action and successor, and both bounds of each."""

    columns: Columns
    lower: FloatArray
    upper: FloatArray


class _Rows(NamedTuple):
    """Where the rows of sorted transitions start, and how long they are."""

    starts: IntArray
    lengths: IntArray

    @staticmethod
    def of(columns: Columns) -> _Rows:
        state, action = columns.columns.state, columns.columns.action
        starts = np.flatnonzero(np.append(True, (np.diff(state) != 0) | (np.diff(action) != 0)))
        return _Rows(starts, np.diff(np.append(starts, len(state))))

    def sums(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(values, self.starts))

    def spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A value per row as one per transition."""
        return np.repeat(values, self.lengths)


def with_nominal(columns: Columns, noted: Sequence[float] | None = None) -> Bounded:
    """Check the intervals, merge those of one successor, drop what can never get mass, and find p.

    With `noted` probabilities, those of the first transitions, p is these, and nothing is dropped.
    """
    _check_intervals(columns)
    columns = _with_fitting_sums(_merged(columns))
    rows, lower, upper = _Rows.of(columns), columns.columns.probability, _upper(columns)
    if noted is None and not (kept := _can_get_mass(lower, upper, rows)).all():
        columns = columns.take(kept)
        rows, lower, upper = _Rows.of(columns), lower[kept], upper[kept]
    probability = _nominal(lower, upper, rows)
    if noted is not None:
        _checks.must(
            len(noted) <= len(probability),
            f"{columns.name}.meta.json must belong to {columns.name}: it tells of {len(noted)} transitions, but there "
            f"are {len(probability)}",
        )
        probability[: len(noted)] = noted
        _checks.must(
            bool((probability > 0).all()), f"the probabilities in {columns.name}.meta.json must all be positive"
        )
    return Bounded(replace(columns, columns=columns.columns._replace(probability=probability)), lower, upper)


def _nominal(lower: FloatArray, upper: FloatArray, rows: _Rows) -> FloatArray:
    """p = l + t (u - l) with the t of the row, clipped to [0, 1]: positive, within the bounds, of sum 1."""
    width = upper - lower
    room, missing = rows.sums(width), 1.0 - rows.sums(lower)
    t = np.clip(np.divide(missing, room, out=np.zeros_like(room), where=room > 0), 0.0, 1.0)
    probability = np.maximum(lower + rows.spread(t) * width, _SMALLEST)
    indptr = np.append(rows.starts, len(lower))
    row_sums.normalise(
        indptr, probability, lambda row, total: f"row {row} must sum to 1: got {total:.9g}", in_place=True
    )
    return np.asarray(np.clip(probability, np.maximum(lower, _SMALLEST), upper))


def implies(lower: FloatArray, upper: FloatArray, indptr: npt.NDArray[Any], probability: FloatArray) -> bool:
    """Does `with_nominal` find these probabilities for these rows?"""
    rows = _Rows(indptr[:-1], np.diff(indptr))
    return bool(_can_get_mass(lower, upper, rows).all()) and np.array_equal(_nominal(lower, upper, rows), probability)


def _upper(columns: Columns) -> FloatArray:
    assert columns.upper is not None
    return columns.upper


def _check_intervals(columns: Columns) -> None:
    lower, upper = columns.columns.probability, _upper(columns)
    right = (lower >= 0) & (lower <= upper) & (upper <= 1 + _checks.SUM_TOLERANCE)  # NaN compares false
    if not right.all():
        entry = int(right.argmin())
        _checks.fail(
            "the bounds of a transition must satisfy 0 <= lower <= upper <= 1: "
            f"got [{lower[entry]:.9g}, {upper[entry]:.9g}] at {_place(columns, entry)}"
        )


def _place(columns: Columns, entry: int) -> str:
    return f"{_pair(columns, entry)}, {columns.place(entry)}"


def _pair(columns: Columns, entry: int) -> str:
    state, action = int(columns.columns.state[entry]), int(columns.columns.action[entry])
    names = [
        listed[index] if listed is not None and index < len(listed) else f"{kind} {index}"
        for kind, listed, index in zip(("state", "action"), columns.names, (state, action), strict=True)
    ]
    return " and ".join(names)


def _merged(columns: Columns) -> Columns:
    """Sorted by state, action and successor; bounds of the same successor are added."""
    block = columns.columns
    columns = columns.take(np.lexsort((block.next_state, block.action, block.state)))
    block, upper = columns.columns, np.minimum(_upper(columns), 1.0)
    new = np.append(True, np.any([np.diff(key) != 0 for key in (block.state, block.action, block.next_state)], axis=0))
    starts = np.flatnonzero(new)
    lower = np.add.reduceat(block.probability, starts)
    upper = np.minimum(np.add.reduceat(upper, starts), 1.0)
    columns = columns.take(starts)
    return replace(columns, columns=columns.columns._replace(probability=lower), upper=upper)


def _with_fitting_sums(columns: Columns) -> Columns:
    """Refuse rows without a distribution within; mend those that lack one by less than SUM_TOLERANCE."""
    rows, lower, upper = _Rows.of(columns), columns.columns.probability, _upper(columns)
    low, high = rows.sums(lower), rows.sums(upper)
    for kind, sums, excess, must in (("lower", low, low - 1.0, "most"), ("upper", high, 1.0 - high, "least")):
        if not excess.max() <= _checks.SUM_TOLERANCE:
            row = int(excess.argmax())
            entry = int(rows.starts[row])
            _checks.fail(
                f"the {kind} bounds of {_pair(columns, entry)} must sum to at {must} 1: got {sums[row]:.9g} "
                f"at {columns.place(entry)}"
            )
    rounding = row_sums.EPSILON * rows.lengths
    is_point = np.logical_and.reduceat(lower == upper, rows.starts)
    too_much, too_little = low - 1.0 > rounding, 1.0 - high > rounding
    if not (too_much.any() or too_little.any()):
        return columns
    lower = lower / rows.spread(np.where(too_much | (is_point & too_little), low, 1.0))
    upper = upper / rows.spread(np.where(too_little | (is_point & too_much), high, 1.0))
    return replace(columns, columns=columns.columns._replace(probability=lower), upper=upper)


def _can_get_mass(lower: FloatArray, upper: FloatArray, rows: _Rows) -> BoolArray:
    """Not those with upper bound 0, nor those with lower bound 0 in a row whose lower bounds sum to 1."""
    is_full = rows.sums(lower) >= 1.0 - row_sums.EPSILON * rows.lengths
    return np.asarray((upper > 0) & ~((lower == 0) & rows.spread(is_full)))
