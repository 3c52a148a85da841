"""craam's table of transitions: idstatefrom, idaction, idstateto, probability, reward and perhaps idoutcome, as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from robustmdp.io.columns import TransitionTable
from robustmdp.io.delimited import NUMBER, TEXT, WHOLE, CsvFile
from robustmdp.io.explicit import Explicit
from robustmdp.models.headers import MODEL_COLUMNS as COLUMNS
from robustmdp.models.headers import find_model_columns
from robustmdp.models.naming import Named
from robustmdp.models.transitions import RawColumns

_SHORTEST = len("0,0,0,1,0\n")


@dataclass(frozen=True)
class CsvTable(TransitionTable):
    """A source of transitions."""

    file: CsvFile
    columns: dict[str, str]
    named: Named

    @staticmethod
    def open(path: Path) -> CsvTable:
        """Find the columns by name."""
        file = CsvFile.open(path)
        columns = find_model_columns(file.header, path.name)
        return CsvTable(file, columns, file.named(columns))

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def length(self) -> int:
        return self.file.path.stat().st_size // _SHORTEST + 1

    @property
    def column_names(self) -> Sequence[str]:
        return tuple(self.columns)

    def raw_blocks(self, names: Sequence[str]) -> Iterator[RawColumns]:
        states, actions = (TEXT if named else WHOLE for named in self.named)
        kinds = {"state": states, "action": actions, "next_state": states, "outcome": WHOLE}
        # Messages have the file's own names.
        own = {self.columns[name]: kinds.get(name, NUMBER) for name in names}
        for raw in self.file.blocks({name: name for name in own}, own):
            yield {name: raw[self.columns[name]] for name in names}

    def label(self, column: str) -> str:
        return self.columns[column]

    def place(self, row: int) -> str:
        return self.file.place(row)


def write_csv(model: Explicit, path: Path) -> None:
    """Numbers as Python prints them, which gives every bit back."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS.values())
        for piece in model.pieces():
            writer.writerows(zip(*(getattr(piece, name).tolist() for name in COLUMNS), strict=True))
