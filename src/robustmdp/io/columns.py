"""Transitions as columns: what every parser ends in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.io.delimited import NUMBER, WHOLE
from robustmdp.io.labelling import NO_LABELLING, Labelling
from robustmdp.io.words import shown
from robustmdp.models.assembly import Block, Origin

_WHOLE = 2.0**53  # from here on not every whole number is a float
_MOST = np.iinfo(np.int64).max
NONE = np.empty(0, np.int64)  # the column of outcomes where there is none


class Named(Origin, Protocol):
    """Where transitions come from, with a name."""

    @property
    def name(self) -> str:
        """What users call it."""


class Source(Named, Protocol):
    """Transitions in a file, read as often as asked."""

    @property
    def length(self) -> int:
        """How many transitions there can be at most; 36 bytes are set aside for each, and used for those that come."""

    @property
    def n_states(self) -> int | None:
        """How many states it promises."""

    @property
    def names(self) -> tuple[Sequence[str] | None, Sequence[str] | None]:
        """Of states and actions, where it has some."""

    @property
    def labelling(self) -> Labelling:
        """Labels of states and initial states, where it has some."""

    def blocks(self) -> Iterator[Block]:
        """All transitions."""


@dataclass(frozen=True)
class Columns:
    """Transitions in memory, with the number of the row or line of each in what they were read from.

    Where these have intervals, `columns.probability` holds the lower bounds and `upper` the upper ones.
    """

    origin: Named
    columns: Block
    rows: npt.NDArray[np.int64]
    n_states: int | None = None
    names: tuple[Sequence[str] | None, Sequence[str] | None] = (None, None)
    labelling: Labelling = NO_LABELLING
    upper: npt.NDArray[np.float64] | None = None

    @property
    def name(self) -> str:
        return self.origin.name

    @property
    def length(self) -> int:
        return len(self.columns.state)

    def blocks(self) -> Iterator[Block]:
        yield self.columns

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


def to_block(raw: Mapping[str, npt.NDArray[Any]], source: Source, seen: int) -> Block:
    """Columns as they are in a file, with their types; `seen` rows came before."""

    def refuse(wrong: Any, name: str, kind: str) -> None:
        row = int(np.argmax(wrong))
        value = raw[name][row : row + 1].tolist()[0]
        _checks.fail(f"{source.label(name)} must be {kind}: got {shown(value)} at {source.place(seen + row)}")

    def whole(name: str) -> npt.NDArray[np.int64]:
        values = raw[name]
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

    def number(name: str) -> npt.NDArray[np.float64]:
        if raw[name].dtype.kind not in "iuf":
            refuse(True, name, NUMBER)
        return np.ascontiguousarray(raw[name], dtype=np.float64)

    return Block(
        whole("state"),
        whole("action"),
        whole("next_state"),
        number("probability"),
        number("reward"),
        whole("outcome") if "outcome" in raw else NONE,
    )
