"""Transitions as columns: what every parser ends in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray, IntArray
from robustmdp.io.labelling import Labelling
from robustmdp.io.text import NUMBER, WHOLE, shown
from robustmdp.models.assembly import Block
from robustmdp.models.columns import Place, array_of
from robustmdp.models.transitions import RawColumns

if TYPE_CHECKING:
    from robustmdp.io.choices import Lines
    from robustmdp.io.model_tables import TransitionTable

Source: TypeAlias = "TransitionTable | Columns"

_WHOLE = 2.0**53  # from here on not every whole number is a float
_MOST = np.iinfo(np.int64).max
NONE = np.empty(0, np.int64)  # the column of outcomes where there is none


@dataclass(frozen=True)
class Columns:
    """Transitions in memory, with the number of the row or line of each in what they were read from.

    Where these have intervals, `columns.probability` holds the lower bounds and `upper` the upper ones.
    """

    origin: Lines | TransitionTable
    columns: Block
    rows: IntArray
    n_states: int | None = None
    names: tuple[Sequence[str] | None, Sequence[str] | None] = (None, None)
    labelling: Labelling = field(default_factory=dict)
    upper: FloatArray | None = None

    @property
    def name(self) -> str:
        return self.origin.name

    @property
    def length(self) -> int:
        return len(self.columns.state)

    def blocks(self) -> Iterator[Block]:
        yield self.columns

    @property
    def may_be_log(self) -> bool:
        return self.origin.may_be_log

    def label(self, column: str) -> str:
        return self.origin.label(column)

    def place(self, row: int) -> str:
        return self.origin.place(int(self.rows[row]))

    def take(self, which: npt.NDArray[Any]) -> Columns:
        """Some transitions, by their numbers or a mask."""
        parts: Any = (column[which] if len(column) else column for column in self.columns)
        upper = None if self.upper is None else self.upper[which]
        return replace(self, columns=Block(*parts), rows=self.rows[which], upper=upper)

    def of_size(self, n_states: int) -> Columns:
        """One outcome of several: with the states of all of them."""
        return replace(self, columns=self.columns._replace(outcome=NONE), n_states=n_states)


def in_memory(source: Source) -> Columns:
    """All of it at once."""
    if isinstance(source, Columns):
        return source
    columns = Block(*map(np.concatenate, zip(*source.blocks(), strict=True)))
    return Columns(source, columns, np.arange(len(columns.state)), source.n_states, source.names, source.labelling)


def in_order(source: Source) -> Columns:
    """Sorted by state and action; within a pair as they came."""
    columns = in_memory(source)
    return columns.take(np.lexsort((columns.columns.action, columns.columns.state)))


def to_block(raw: RawColumns, label: Callable[[str], str], place: Place) -> Block:
    """Columns as they are in a file, with their types; `label` is what the file calls one."""
    arrays = {name: array_of(name, column) for name, column in raw.items()}

    def refuse(wrong: Any, name: str, kind: str) -> None:
        row = int(np.argmax(wrong))
        value = arrays[name][row : row + 1].tolist()[0]
        _checks.fail(f"{label(name)} must be {kind}: got {shown(value)} at {place(name, row)}")

    def whole(name: str) -> IntArray:
        values = arrays[name]
        if values.dtype.kind == "f":
            values = values.astype(np.float64, copy=False)
            right = (np.abs(values) < _WHOLE) & (values == np.floor(values))  # NaN compares false
            if not right.all():
                refuse(~right, name, WHOLE)
        elif values.dtype.kind not in "iu":
            refuse(True, name, WHOLE)
        if values.dtype == np.uint64:
            values = np.minimum(values, _MOST)
        return np.ascontiguousarray(values, dtype=np.int64)

    def number(name: str) -> FloatArray:
        if arrays[name].dtype.kind not in "iuf":
            refuse(True, name, NUMBER)
        return np.ascontiguousarray(arrays[name], dtype=np.float64)

    return Block(
        whole("state"),
        whole("action"),
        whole("next_state"),
        number("probability"),
        number("reward"),
        whole("outcome") if "outcome" in raw else NONE,
    )
