"""Columns of tables in memory: pandas, polars, Arrow and dicts, none of which must be installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robustmdp.models import columns
from robustmdp.models.columns import Column, Words


@dataclass(frozen=True)
class Frame:
    """The names of columns, and how to get one.

    >>> frame = Frame.of({"state": ["new", "worn"], "reward": [5.0, -3.0]})
    >>> frame.names, frame.column("reward").tolist(), frame.column("state").words
    (('state', 'reward'), [5.0, -3.0], ['new', 'worn'])
    """

    names: tuple[str, ...]
    get: Callable[[str], Any]

    @staticmethod
    def of(frame: Any) -> Frame:
        """A table with `__arrow_c_stream__`, or one whose columns can be had by their names."""
        if isinstance(frame, Mapping):
            return Frame(tuple(map(str, frame)), frame.__getitem__)
        table = frame if hasattr(frame, "column_names") else _to_arrow(frame)
        if table is not None:
            return Frame(tuple(table.column_names), table.column)
        if not is_frame(frame):
            raise TypeError(
                f"frame must be a table of pandas, polars or Arrow, or a dict of columns: got {type(frame).__name__}"
            )
        return Frame(tuple(map(str, frame.columns)), frame.__getitem__)

    def column(self, name: str) -> Column:
        """Numbers, or words where it holds text."""
        values = self.get(name)
        if hasattr(values, "dictionary_encode"):
            return from_arrow(values)
        if hasattr(values, "cat") and hasattr(values, "dtype") and str(values.dtype) == "category":
            return _from_categories(values)
        return columns.column_of(name, values.to_numpy() if hasattr(values, "to_numpy") else values)


def is_frame(thing: Any) -> bool:
    """Is it a table in memory, by what it can do?"""
    if isinstance(thing, Mapping) or hasattr(thing, "__arrow_c_stream__"):
        return True
    return all(hasattr(thing, name) for name in ("__len__", "__getitem__", "columns"))  # a query has no length yet


def _to_arrow(frame: Any) -> Any | None:
    """What other packages hand over by Arrow's C interface, where pyarrow is there to take it.

    Not of pandas, which converts all columns, also those that are not read and cannot be converted.
    """
    if not hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "iloc"):
        return None
    try:
        import pyarrow as pa
    except ImportError:
        if hasattr(frame, "columns"):
            return None
        raise ImportError("pyarrow must be installed to read Arrow tables: pip install 'robustmdp[parquet]'") from None
    return pa.table(frame)


def from_arrow(values: Any) -> Column:
    """An Arrow array, or a chunked one: text becomes words, each of which is held once."""
    import pyarrow as pa

    if not is_text(values.type):
        return np.asarray(values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy())
    if not pa.types.is_dictionary(values.type):
        plain = values.cast(pa.large_string()) if pa.types.is_string_view(values.type) else values
        values = plain.dictionary_encode()
    if isinstance(values, pa.ChunkedArray):
        values = values.unify_dictionaries().combine_chunks()
    if isinstance(values, pa.ChunkedArray):  # of no chunks
        return Words.of(())
    codes = values.indices.cast(pa.int64()).fill_null(-1)  # of any type, perhaps without a sign
    return Words(codes.to_numpy(zero_copy_only=False), values.dictionary.to_pylist())


def is_text(kind: Any) -> bool:
    """Is it a type of text, perhaps with a dictionary?"""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _from_categories(series: Any) -> Column:
    """A column of pandas that holds each of its values once."""
    categories = series.cat.categories.to_numpy()
    if categories.dtype.kind in columns.NUMBERS_OR_FLAGS:
        return columns.column_of(str(series.name), series.to_numpy())
    return Words(series.cat.codes.to_numpy().astype(np.int64), categories.tolist())
