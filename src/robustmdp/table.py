"""Columns of equal length: what experiments record and curves are made of."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _display

if TYPE_CHECKING:
    import pandas as pd

Column = npt.NDArray[Any]

# Former names of columns, deprecated for one version.
_RENAMED = {
    "trusting": "nominal_worst",
    "judged_mean": "test_mean",
    "judged_worst_tenth": "test_worst_tenth",
}


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Named columns of equal length, with notes on where they come from.

    `table["error"]` is a column, `table[0]` a row as a dict, `table[:5]` a table; iterating gives the rows.
    Others take it as it is: `pandas.DataFrame(table)`, `polars.DataFrame(table)`, `pyarrow.table(table)`.

    >>> table = Table.of(weight=[0.5, 0.5, 1.0], error=[3.0, 1.0, 2.0])
    >>> table.where(weight=0.5)["error"].tolist(), table.values("weight")
    ([3.0, 1.0], [0.5, 1.0])
    >>> table[-1], [row["error"] for row in table]
    ({'weight': 1.0, 'error': 2.0}, [3.0, 1.0, 2.0])
    """

    columns: Mapping[str, Column]
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in self.columns.items()}
        _checks.must(len(set(lengths.values())) <= 1, f"the columns of a table must be equally long: got {lengths}")

    @classmethod
    def of(cls, **columns: Any) -> Table:
        """A table of lists, arrays and, where all rows share it, single values."""
        arrays = {name: np.asarray(column) for name, column in columns.items()}
        length = max((len(array) for array in arrays.values() if array.ndim), default=1)
        return cls({name: array if array.ndim else np.repeat(array, length) for name, array in arrays.items()})

    @classmethod
    def concat(cls, tables: Sequence[Table]) -> Table:
        """One below the other; all must have the same columns."""
        names = list(tables[0].columns)
        for table in tables:
            _checks.must(
                set(table.columns) == set(names),
                f"tables must have the same columns {names}: got {list(table.columns)}",
            )
        return cls({name: np.concatenate([table[name] for table in tables]) for name in names})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @overload
    def __getitem__(self, key: str) -> Column: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> Table: ...
    def __getitem__(self, key: str | int | slice) -> Any:
        if isinstance(key, slice):
            return self.take(np.arange(len(self))[key])
        if isinstance(key, int | np.integer):
            if not -len(self) <= key < len(self):
                raise IndexError(f"row must lie in 0..{len(self) - 1}: got {key}")
            row = int(key) % len(self)
            return {name: column[row : row + 1].tolist()[0] for name, column in self.columns.items()}
        if key not in self.columns:
            new = _RENAMED.get(key, key)
            if new in self.columns:
                warnings.warn(f"the column {key!r} is now {new!r}", DeprecationWarning, stacklevel=2)
                return self.columns[new]
            _checks.nearest("column", key, self.columns)
        return self.columns[key]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, as dicts of plain values."""
        plain = [column.tolist() for column in self.columns.values()]
        return (dict(zip(self.columns, row, strict=True)) for row in zip(*plain, strict=True))

    def where(self, **wanted: Any) -> Table:
        """The rows in which each named column has the given value."""
        chosen = np.ones(len(self), bool)
        for name, value in wanted.items():
            chosen &= self[name] == value
        return self.take(chosen)

    def take(self, rows: npt.NDArray[Any]) -> Table:
        """Some rows, by a mask or by their numbers."""
        return Table({name: column[rows] for name, column in self.columns.items()}, self.notes)

    def values(self, name: str) -> list[Any]:
        """What occurs in a column, sorted."""
        found: list[Any] = np.unique(self[name]).tolist()
        return found

    def groups(self, *names: str) -> Iterator[tuple[tuple[Any, ...], Table]]:
        """The rows that agree in the named columns, group by group, in the order of those columns."""
        if not len(self):
            return
        codes = np.zeros(len(self), np.int64)
        for name in names:
            known, places = np.unique(self[name], return_inverse=True)
            codes = codes * len(known) + places
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        for rows in np.split(order, starts[1:]):
            yield tuple(self[name][rows[0]].item() for name in names), self.take(rows)

    def with_notes(self, **notes: Any) -> Self:
        """The same columns, with more notes."""
        return replace(self, notes={**self.notes, **notes})

    def without(self, *names: str) -> Table:
        """All columns but those."""
        return Table({name: column for name, column in self.columns.items() if name not in names}, self.notes)

    def to_frame(self) -> pd.DataFrame:
        """The same as a DataFrame; needs pandas."""
        return _checks.package("pandas", "for to_frame()").DataFrame(dict(self.columns))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The columns for any program that speaks Arrow; needs pyarrow."""
        pa = _checks.package("pyarrow", "to hand a table to Arrow", "robustmdp[parquet]")
        return pa.table(dict(self.columns)).__arrow_c_stream__(requested_schema)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return list(self.columns) == list(other.columns) and all(
            _same(self[name], other[name]) for name in self.columns
        )

    def __hash__(self) -> int:
        return hash(tuple(self.columns))

    def _title(self) -> str:
        return str(self.notes.get("title", f"{type(self).__name__}, {len(self):,} rows"))

    def __repr__(self) -> str:
        return _display.grid_text(self._title(), self.columns)

    def _repr_html_(self) -> str:
        return _display.grid_html(self._title(), self.columns)


def _same(one: Column, other: Column) -> bool:
    """Equal to the bit; NaN equals NaN."""
    return one.dtype.kind == other.dtype.kind and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
