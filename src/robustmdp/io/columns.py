"""Transitions as columns: what every parser ends in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray, IntArray
from robustmdp.io.choices import Lines
from robustmdp.io.labelling import Labelling
from robustmdp.io.table_files import CsvTable, ParquetTable
from robustmdp.io.text import NUMBER, WHOLE, shown
from robustmdp.models import naming
from robustmdp.models.assembly import Block
from robustmdp.models.columns import Place, array_of
from robustmdp.models.headers import ENDINGS, find_model_columns, kind_of_table
from robustmdp.models.transitions import RawColumns

_WHOLE = 2.0**53  # from here on not every whole number is a float
_MOST = np.iinfo(np.int64).max
NONE = np.empty(0, np.int64)  # the column of outcomes where there is none


@dataclass(frozen=True)
class TransitionTable:
    """Transitions in a file; it is read twice where there are names: for all of these, sorted, and for the rest."""

    file: CsvTable | ParquetTable
    length: int
    labelling: ClassVar[Labelling] = {}

    @staticmethod
    def open_csv(path: Path) -> TransitionTable:
        """Find the columns by name."""
        table = CsvTable.open(path, _find_columns)
        return TransitionTable(table, table.most_rows)

    @staticmethod
    def open_parquet(path: Path) -> TransitionTable:
        """The same; types and the number of rows are checked before anything is read."""
        table = ParquetTable.open(path, _find_columns)
        table.check_numbers()
        return TransitionTable(table, table.most_rows)

    @property
    def name(self) -> str:
        return self.file.name

    def label(self, column: str) -> str:
        return self.file.columns[column]

    def place(self, row: int) -> str:
        return self.file.place("", row)

    @property
    def may_be_log(self) -> bool:
        """Are its columns those of a log as well?"""
        return kind_of_table(self.file.columns.values()) == "either"

    @cached_property
    def numberings(self) -> naming.Numberings:
        """Of the states and the actions."""
        census = naming.Census(self.file.named, self.label)
        for raw, place in self._placed(naming.named_columns(self.file.named)):
            census.add(raw, place)
        return census.numberings

    @property
    def names(self) -> tuple[Sequence[str] | None, Sequence[str] | None]:
        states, actions = (None if each is None else each.names for each in self.numberings)
        return states, actions

    @property
    def n_states(self) -> int | None:
        states, _ = self.names
        return None if states is None else len(states)

    def blocks(self) -> Iterator[Block]:
        """All transitions."""
        for raw, place in self._placed(tuple(self.file.columns)):
            numbered = dict(raw)
            for listed, numbering in zip(naming.KINDS.values(), self.numberings, strict=True):
                if numbering is not None:
                    numbered |= {name: numbering.encode(self.label(name), raw[name], place) for name in listed}
            yield to_block(numbered, self.label, place)

    def _placed(self, names: Sequence[str]) -> Iterator[tuple[RawColumns, Place]]:
        """Each block of the columns with the places of its entries."""
        seen = 0
        for raw in self.file.blocks(0, names) if names else ():
            first = seen

            def place(name: str, row: int, first: int = first) -> str:
                return self.place(first + row)

            yield raw, place
            seen += len(raw[names[0]])


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


Source: TypeAlias = TransitionTable | Columns


def _find_columns(present: Sequence[str], name: str) -> dict[str, str]:
    """As `find_model_columns`; endings in a column of their own are refused, not ignored."""
    found = find_model_columns(present, name)
    endings = [own for own in present if own.lower() in ENDINGS]
    _checks.must(
        not endings,
        f"{name} must hold no column {''.join(endings[:1])!r}, which files of models do not have: read it as a table, "
        "and give that with a column 'terminated' to rm.MDP.from_frame",
    )
    return found


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
