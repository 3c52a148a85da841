"""The same table of transitions as Parquet, streamed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustmdp import _checks
from robustmdp.io.arrow import ahead, are_text, check_chunks, check_rows, parquet_file, pyarrow, whole_batches
from robustmdp.io.columns import TransitionTable
from robustmdp.io.explicit import Explicit
from robustmdp.io.meta import Meta, decoded, encoded, read_meta
from robustmdp.models.columns import Column
from robustmdp.models.frames import from_arrow
from robustmdp.models.headers import MODEL_COLUMNS, find_model_columns
from robustmdp.models.naming import Named, named_columns
from robustmdp.models.transitions import RawColumns

_NOTES = b"robustmdp"
_BATCH = 1 << 18


@dataclass(frozen=True)
class ParquetTable(TransitionTable):
    """A source of transitions."""

    path: Path
    columns: dict[str, str]
    length: int
    named: Named

    @staticmethod
    def open(path: Path) -> ParquetTable:
        """Find the columns by name, and check their types and the number of rows before anything is read."""
        with parquet_file(path) as file:
            schema = file.schema_arrow
            columns = find_model_columns(tuple(schema.names), path.name)
            named = are_text(schema, columns)
            for name, own in columns.items():
                if name not in named_columns(named):
                    _check_type(own, schema.field(own).type, path.name)
            rows = check_rows(file, path)
            check_chunks(file, path, columns.values())
        _checks.must(rows > 0, f"{path.name} must hold at least one transition: got none")
        return ParquetTable(path, columns, rows, named)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def column_names(self) -> Sequence[str]:
        return tuple(self.columns)

    def raw_blocks(self, names: Sequence[str]) -> Iterator[RawColumns]:
        seen = 0
        with contextlib.ExitStack() as stack:
            # A reader for each column, since pyarrow's own decodes them one after the other.
            columns = [stack.enter_context(self._column(self.columns[name])) for name in names]
            for batches in zip(*columns, strict=True):
                lengths = {len(batch) for batch in batches}
                _checks.must(len(lengths) == 1, f"the columns of {self.name} must be equally long: got {lengths}")
                yield dict(zip(names, batches, strict=True))
                seen += len(batches[0])
        _checks.must(
            seen == self.length, f"{self.name} must hold the {self.length} rows that it tells of: it has {seen}"
        )

    @contextlib.contextmanager
    def _column(self, own: str) -> Iterator[Iterator[Column]]:
        with parquet_file(self.path, [own]) as file:
            batches = whole_batches(file.iter_batches(_BATCH, columns=[own], use_threads=False), self.name)
            with contextlib.closing(ahead(from_arrow(batch.column(0)) for batch in batches)) as values:
                yield values

    def label(self, column: str) -> str:
        return self.columns[column]

    def place(self, row: int) -> str:
        return f"row {row} of {self.name}"


def _check_type(column: str, kind: Any, name: str) -> None:
    types = pyarrow().types
    right = types.is_integer(kind) or types.is_floating(kind)
    _checks.must(right, f"column {column!r} of {name} must hold numbers: it holds {kind}")


def read_notes(path: Path) -> Meta | None:
    """Those in the metadata; those beside a file that has none, as earlier versions left them."""
    with parquet_file(path) as file:
        text = (file.schema_arrow.metadata or {}).get(_NOTES)
    return read_meta(path) if text is None else decoded(text, path.name)


def write_parquet(model: Explicit, path: Path, *, notes: Meta | None) -> None:
    """One row group per piece, compressed, with checksums; notes go to the metadata."""
    pa = pyarrow()
    kinds = {own: pa.float64() if own in ("probability", "reward") else pa.int64() for own in MODEL_COLUMNS.values()}
    schema = pa.schema(kinds, None if notes is None else {_NOTES: encoded(notes)})
    with pa.parquet.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for piece in model.pieces():
            arrays = [pa.array(getattr(piece, name), kinds[own]) for name, own in MODEL_COLUMNS.items()]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
