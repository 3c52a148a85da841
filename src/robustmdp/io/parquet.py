"""The same table of transitions as Parquet, streamed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from robustmdp import _checks
from robustmdp.io.arrow import ahead, parquet_file, pyarrow, to_numpy, whole_batches
from robustmdp.io.columns import to_block
from robustmdp.io.craam import COLUMNS, found_columns
from robustmdp.io.explicit import Explicit
from robustmdp.io.labelling import NO_LABELLING
from robustmdp.io.meta import Meta, decoded, encoded, read_meta
from robustmdp.models.assembly import Block

_NOTES = b"robustmdp"
_BATCH = 1 << 18
_MOST_ROWS_PER_BYTE = 100  # of a file: no real model comes near, and what promises more is not believed


@dataclass(frozen=True)
class ParquetTable:
    """A source of transitions."""

    path: Path
    columns: dict[str, str]
    length: int
    n_states = None
    names = (None, None)
    labelling = NO_LABELLING

    @staticmethod
    def open(path: Path) -> ParquetTable:
        """Find the columns by name, and check their types and the number of rows before anything is read."""
        size = path.stat().st_size
        with parquet_file(path) as file:
            rows = int(file.metadata.num_rows)
            columns = found_columns(tuple(file.schema_arrow.names), path.name)
            for own in columns.values():
                _check_type(own, file.schema_arrow.field(own).type, path.name)
        _checks.must(rows > 0, f"{path.name} must hold at least one transition: got none")
        _checks.must(
            rows <= _MOST_ROWS_PER_BYTE * size,
            f"{path.name} cannot hold the {rows} rows that it tells of in {size} bytes",
        )
        return ParquetTable(path, columns, rows)

    @property
    def name(self) -> str:
        return self.path.name

    def blocks(self) -> Iterator[Block]:
        seen = 0
        with contextlib.ExitStack() as stack:
            # A reader for each column, since pyarrow's own decodes them one after the other.
            columns = [stack.enter_context(self._column(own)) for own in self.columns.values()]
            for batches in zip(*columns, strict=True):
                lengths = {len(batch) for batch in batches}
                _checks.must(len(lengths) == 1, f"the columns of {self.name} must be equally long: got {lengths}")
                yield to_block(dict(zip(self.columns, batches, strict=True)), self, seen)
                seen += len(batches[0])
        _checks.must(
            seen == self.length, f"{self.name} must hold the {self.length} rows that it tells of: it has {seen}"
        )

    @contextlib.contextmanager
    def _column(self, own: str) -> Iterator[Iterator[npt.NDArray[Any]]]:
        with parquet_file(self.path) as file:
            batches = whole_batches(file.iter_batches(_BATCH, columns=[own], use_threads=False), self.name)
            with contextlib.closing(ahead(to_numpy(batch.column(0)) for batch in batches)) as values:
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
    kinds = {own: pa.float64() if own in ("probability", "reward") else pa.int64() for own in COLUMNS.values()}
    schema = pa.schema(kinds, None if notes is None else {_NOTES: encoded(notes)})
    with pa.parquet.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for piece in model.pieces():
            arrays = [pa.array(getattr(piece, name), kinds[own]) for name, own in COLUMNS.items()]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
