"""craam's table of transitions: idstatefrom, idaction, idstateto, probability, reward and perhaps idoutcome, as CSV."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from robustmdp import _checks
from robustmdp.io.columns import to_block
from robustmdp.io.delimited import NUMBER, WHOLE, CsvFile
from robustmdp.io.explicit import Explicit
from robustmdp.io.labelling import NO_LABELLING
from robustmdp.io.words import listed
from robustmdp.models.assembly import Block

COLUMNS = {
    "state": "idstatefrom",
    "action": "idaction",
    "next_state": "idstateto",
    "probability": "probability",
    "reward": "reward",
}
OUTCOME = "idoutcome"
_SHORTEST = len("0,0,0,1,0\n")


@dataclass(frozen=True)
class CsvTable:
    """A source of transitions."""

    file: CsvFile
    columns: dict[str, str]
    n_states = None
    names = (None, None)
    labelling = NO_LABELLING

    @staticmethod
    def open(path: Path) -> CsvTable:
        """Find the columns by name."""
        file = CsvFile.open(path)
        columns = found_columns(file.header, path.name)
        file.must_hold_rows()
        return CsvTable(file, columns)

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def length(self) -> int:
        return self.file.path.stat().st_size // _SHORTEST + 1

    def blocks(self) -> Iterator[Block]:
        kinds = {own: NUMBER if own in ("probability", "reward") else WHOLE for own in self.columns.values()}
        seen = 0
        for raw in self.file.blocks({own: own for own in self.columns.values()}, kinds):
            yield to_block({name: raw[own] for name, own in self.columns.items()}, self, seen)
            seen += len(raw[self.columns["state"]])

    def label(self, column: str) -> str:
        return self.columns[column]

    def place(self, row: int) -> str:
        return self.file.place(row)


def found_columns(present: tuple[str, ...], name: str) -> dict[str, str]:
    """What the columns of a file are, by craam's names or those of `MDP.from_rows`; with the outcome if it has one."""
    columns = {ours: ours if ours in present and own not in present else own for ours, own in COLUMNS.items()}
    for own in columns.values():
        if own not in present:
            close = difflib.get_close_matches(own, present, n=1)
            hint = f"; is it {close[0]!r}?" if close else ""
            _checks.fail(f"{name} must have a column {own!r}: it has {listed(present)}{hint}")
    columns |= {"outcome": OUTCOME} if OUTCOME in present else {}
    for own in columns.values():
        _checks.must(present.count(own) == 1, f"the columns of {name} must all differ: {own!r} came twice")
    return columns


def write_csv(model: Explicit, path: Path) -> None:
    """Numbers as Python prints them, which gives every bit back."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS.values())
        for piece in model.pieces():
            writer.writerows(zip(*(getattr(piece, name).tolist() for name in COLUMNS), strict=True))
