"""Models as tables of transitions, CSV and Parquet, with the columns of craam or our own."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from robustmdp.io.arrow import parquet_file, pyarrow
from robustmdp.io.columns import to_block
from robustmdp.io.explicit import Explicit
from robustmdp.io.labelling import Labelling
from robustmdp.io.meta import Meta, decoded, encoded, read_meta
from robustmdp.io.table_files import CsvTable, ParquetTable
from robustmdp.models import naming
from robustmdp.models.assembly import Block
from robustmdp.models.columns import Place
from robustmdp.models.headers import MODEL_COLUMNS, find_model_columns, kind_of_table
from robustmdp.models.transitions import RawColumns

_NOTES = b"robustmdp"


@dataclass(frozen=True)
class TransitionTable:
    """Transitions in a file; it is read twice where there are names: for all of these, sorted, and for the rest."""

    file: CsvTable | ParquetTable
    length: int
    labelling: ClassVar[Labelling] = {}

    @staticmethod
    def open_csv(path: Path) -> TransitionTable:
        """Find the columns by name."""
        table = CsvTable.open(path, find_model_columns)
        return TransitionTable(table, table.most_rows)

    @staticmethod
    def open_parquet(path: Path) -> TransitionTable:
        """The same; types and the number of rows are checked before anything is read."""
        table = ParquetTable.open(path, find_model_columns)
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


def write_csv(model: Explicit, path: Path) -> None:
    """Numbers as Python prints them, which gives every bit back."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(MODEL_COLUMNS.values())
        for piece in model.pieces():
            writer.writerows(zip(*(getattr(piece, name).tolist() for name in MODEL_COLUMNS), strict=True))


def write_parquet(model: Explicit, path: Path, *, notes: Meta | None) -> None:
    """One row group per piece, compressed, with checksums; notes go to the metadata."""
    pa = pyarrow()
    kinds = {own: pa.float64() if own in ("probability", "reward") else pa.int64() for own in MODEL_COLUMNS.values()}
    schema = pa.schema(kinds, None if notes is None else {_NOTES: encoded(notes)})
    with pa.parquet.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for piece in model.pieces():
            arrays = [pa.array(getattr(piece, name), kinds[own]) for name, own in MODEL_COLUMNS.items()]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def read_parquet_notes(path: Path) -> Meta | None:
    """Those in the metadata; those beside a file that has none, as earlier versions left them."""
    with parquet_file(path) as file:
        text = (file.schema_arrow.metadata or {}).get(_NOTES)
    return read_meta(path) if text is None else decoded(text, path.name)
