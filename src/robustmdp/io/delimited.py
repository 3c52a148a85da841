"""Text with a line per row: numbers in blocks, and the line on which each of them stands."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from robustmdp import _checks
from robustmdp.io.words import said, shown
from robustmdp.models.trajectory import BLOCK, RawColumns

WHOLE, NUMBER, TEXT = "a whole number", "a number", "a word"  # what a column may hold
_DECIMAL = re.compile(r"\s*[+-]?((\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)\s*", re.ASCII | re.IGNORECASE)


def open_text(path: Path) -> IO[str]:
    """UTF-8; what is not can only stand in columns that are not read, or is refused as a number."""
    return path.open(encoding="utf-8-sig", errors="replace")


def is_number(text: str) -> bool:
    """Is it a decimal number in ASCII? Python itself would also take 1_000 and the digits of other scripts."""
    return _DECIMAL.fullmatch(text) is not None


@dataclass(frozen=True)
class CsvFile:
    r"""A CSV file: a line of names, then one transition per line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "log.csv"
    ...     _ = file.write_text("s,r\n\n0,0.5\n1,2\n")
    ...     table = CsvFile.open(file)
    ...     [block["r"].tolist() for block in table.blocks({"r": "r"}, {"r": NUMBER})], table.place(1)
    ([[0.5, 2.0]], 'line 4 of log.csv')
    """

    path: Path
    header: tuple[str, ...]

    @staticmethod
    def open(path: Path) -> CsvFile:
        """Read the names."""
        with open_text(path) as file:
            header = tuple(name.strip() for name in _fields(next(_filled(file), ""), path.name))
        _checks.must(any(header), f"{path.name} must start with the names of its columns: got an empty file")
        return CsvFile(path, header)

    @property
    def name(self) -> str:
        """As in messages."""
        return self.path.name

    def must_hold_rows(self) -> None:
        """Refuse a file of names alone."""
        with open_text(self.path) as file:
            second = next(islice(_filled(file), 1, None), None)
        _checks.must(second is not None, f"{self.name} must hold at least one transition: got none")

    def place(self, row: int) -> str:
        """Where a row stands."""
        with open_text(self.path) as file:
            filled = (number for number, line in enumerate(file, 1) if not line.isspace())
            return f"line {next(islice(filled, row + 1, None))} of {self.name}"

    def blocks(self, columns: Mapping[str, str], kinds: Mapping[str, str], start: int = 0) -> Iterator[RawColumns]:
        """The columns, each under the name that it has here, from row `start` on; `kinds` says what each must hold."""
        positions = {name: self.header.index(own) for name, own in columns.items()}
        with open_text(self.path) as file:
            lines = islice(_filled(file), start + 1, None)
            while block := list(islice(lines, BLOCK)):
                yield self._parsed(block, positions, kinds, start)
                start += len(block)

    def _parsed(
        self, lines: list[str], positions: Mapping[str, int], kinds: Mapping[str, str], start: int
    ) -> RawColumns:
        # numpy's reader is as quick as pyarrow's within a factor of two, needs nothing installed, and leaves the lines
        # in our hands, so that an error can name the one.
        commas = len(self.header) - 1
        if any(line.count(",") != commas for line in lines):
            self._check_widths(lines, start)
        types = [(name, "U16" if kinds[name] == TEXT else "f8") for name in positions]
        try:
            table = np.loadtxt(
                lines, types, comments=None, delimiter=",", usecols=tuple(positions.values()), ndmin=1, quotechar='"'
            )
        except ValueError as error:
            self._explain(lines, positions, kinds, start)
            raise ValueError(f"{self.name} must hold one transition per line: {said(error)}") from error
        _checks.must(
            len(table) == len(lines), f"{self.name} must hold one transition per line: a quoted field has more"
        )
        return {name: table[name] for name in positions}

    def _check_widths(self, lines: list[str], start: int) -> None:
        for row, line in enumerate(lines, start):
            count = len(_fields(line, self.name))
            if count != len(self.header):
                _checks.fail(f"each line must have {len(self.header)} fields: got {count} at {self.place(row)}")

    def _explain(self, lines: list[str], positions: Mapping[str, int], kinds: Mapping[str, str], start: int) -> None:
        """Fail at the first field that is not a number."""
        self._check_widths(lines, start)  # commas inside of quotes are no commas
        for row, line in enumerate(lines, start):
            fields = _fields(line, self.name)
            for name, position in positions.items():
                if kinds[name] != TEXT and not is_number(fields[position]):
                    _checks.fail(f"{name} must be {kinds[name]}: got {shown(fields[position])} at {self.place(row)}")


def _filled(file: IO[str]) -> Iterator[str]:
    return (line for line in file if not line.isspace())


def _fields(line: str, name: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error as error:
        _checks.fail(f"{name} must be a CSV file: {said(error)}")
