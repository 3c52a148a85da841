"""Text with a line per row: numbers in blocks, and the line on which each of them stands."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from robustmdp import _checks
from robustmdp.io.words import quote_error, shown
from robustmdp.models.columns import Words
from robustmdp.models.frames import from_arrow
from robustmdp.models.naming import KINDS, Named
from robustmdp.models.transitions import BLOCK, RawColumns

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

    def named(self, columns: Mapping[str, str]) -> Named:
        """Does the first row have names of states, both in state and next_state, and of an action?"""
        with open_text(self.path) as file:
            line = next(islice(_filled(file), 1, None), None)
        if line is None:
            _checks.fail(f"{self.name} must hold at least one transition: got none")
        fields = dict(zip(self.header, _fields(line, self.name), strict=False))
        states, actions = (
            all(not is_number(fields.get(columns[name], "0")) for name in listed) for listed in KINDS.values()
        )
        return states, actions

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
        types = {name: kinds[name] for name in positions}
        # pyarrow takes a quarter of a second to import, and is three times as fast: worth it for a large file.
        is_large = len(lines) == BLOCK or start > 0
        table = _parse_with_arrow(lines, len(self.header), positions, types) if is_large else None
        if table is None:
            commas = len(self.header) - 1
            if any(line.count(",") != commas for line in lines):
                self._check_widths(lines, start)
            try:
                table = _parse(lines, positions, types)
            except ValueError as error:
                self._explain(lines, positions, kinds, start)
                raise ValueError(f"{self.name} must hold one transition per line: {quote_error(error)}") from error
        one_each = all(len(column) == len(lines) for column in table.values())
        _checks.must(one_each, f"{self.name} must hold one transition per line: a quoted field has more")
        return table

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


def _parse(lines: list[str], positions: Mapping[str, int], kinds: Mapping[str, str]) -> RawColumns:
    """Numbers by numpy's reader, words by Python's; neither needs anything installed."""
    table: dict[str, Any] = {}
    numbers = {name: position for name, position in positions.items() if kinds[name] != TEXT}
    words = {name: position for name, position in positions.items() if kinds[name] == TEXT}
    if numbers:
        types = [(name, "f8") for name in numbers]
        found = np.loadtxt(
            lines, types, comments=None, delimiter=",", usecols=tuple(numbers.values()), ndmin=1, quotechar='"'
        )
        table |= {name: found[name] for name in numbers}
    if words:
        rows = list(csv.reader(lines))
        table |= {name: Words.of([row[position] for row in rows]).stripped() for name, position in words.items()}
    return table


def _parse_with_arrow(
    lines: list[str], width: int, positions: Mapping[str, int], kinds: Mapping[str, str]
) -> RawColumns | None:
    """The same by pyarrow; None where it is not installed, or a field is not what it must be."""
    try:
        import pyarrow as pa
        from pyarrow import csv as arrow
    except ImportError:
        return None
    text = "".join(lines).encode()
    words = pa.dictionary(pa.int32(), pa.string())
    chosen = {name: str(position) for name, position in positions.items()}
    try:
        table = arrow.read_csv(
            pa.BufferReader(text),
            arrow.ReadOptions(column_names=[str(index) for index in range(width)], block_size=len(text) + 1),
            arrow.ParseOptions(ignore_empty_lines=False),
            arrow.ConvertOptions(
                column_types={own: words if kinds[name] == TEXT else pa.float64() for name, own in chosen.items()},
                include_columns=list(chosen.values()),
                null_values=[],
            ),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(lines):
        return None
    columns = {name: from_arrow(table.column(own)) for name, own in chosen.items()}
    return {name: column.stripped() if isinstance(column, Words) else column for name, column in columns.items()}


def _filled(file: IO[str]) -> Iterator[str]:
    return (line for line in file if not line.isspace())


def _fields(line: str, name: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error as error:
        _checks.fail(f"{name} must be a CSV file: {quote_error(error)}")
