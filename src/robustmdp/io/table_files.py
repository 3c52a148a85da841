"""Tables with a row per transition in CSV and Parquet files, read in blocks: what logs and models have in common."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from robustmdp import _checks
from robustmdp.io.arrow import ahead, check_chunks, check_rows, column_chunks, parquet_file, pyarrow, whole_batches
from robustmdp.io.text import NUMBER, TEXT, WHOLE, is_number, open_text, quote_error, shown
from robustmdp.models.columns import Column, Words
from robustmdp.models.frames import from_arrow, is_text
from robustmdp.models.headers import kind_of_table
from robustmdp.models.naming import KINDS, Named, named_columns
from robustmdp.models.transitions import BLOCK, INDICES, WINDOW, RawColumns, fingerprint

FindColumns = Callable[[Sequence[str], str], dict[str, str]]  # (header, name of the file) -> what it calls our columns

_MEGABYTE = 1 << 20
_SHORTEST = len("0,0,0,1,0\n")  # line of a model
_LONGEST_LINE = 1 << 16  # of names
_MOST_BLANK = 100  # lines above a table


@dataclass(frozen=True)
class TableFile:
    """A file whose columns have been found, by our names; `named` says which of them hold names."""

    path: Path
    columns: dict[str, str]
    named: Named
    window = WINDOW
    kept_length = 0

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def fingerprint(self) -> str:
        size = self.path.stat().st_size
        with self.path.open("rb") as file:
            first = file.read(_MEGABYTE)
            file.seek(max(size - _MEGABYTE, 0))
            return fingerprint(size, str(sorted(self.columns.items())), first, file.read())


@dataclass(frozen=True)
class CsvTable(TableFile):
    r"""A CSV file: a line of names, then one transition per line.

    >>> import tempfile
    >>> from robustmdp.models.headers import find_model_columns
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "model.csv"
    ...     _ = file.write_text("state,action,next_state,probability,reward\n\n0,0,1,1,0.5\n1,0,1,1,2\n")
    ...     table = CsvTable.open(file, find_model_columns)
    ...     [block["reward"].tolist() for block in table.blocks(0, ["reward"])], table.place("reward", 1)
    ([[0.5, 2.0]], 'line 4 of model.csv')
    """

    header: tuple[str, ...]
    # Counting the lines would mean to read them all; that a scan for n_states has done so must not change the answer.
    length = None

    @staticmethod
    def open(path: Path, find: FindColumns) -> CsvTable:
        """Read the names and the first row, which says whether states and actions have names."""
        with open_text(path) as file:
            lines = _filled(file)
            first, second = next(lines, ""), next(lines, "")
        header = tuple(name.strip() for name in _fields(first, path.name))
        _checks.must(any(header), f"{path.name} must start with the names of its columns: got an empty file")
        columns = find(header, path.name)
        _checks.must(bool(second), f"{path.name} must hold at least one transition: got none")
        fields = dict(zip(header, _fields(second, path.name), strict=False))
        states, actions = (
            all(not is_number(fields.get(columns[name], "0")) for name in listed) for listed in KINDS.values()
        )
        return CsvTable(path, columns, (states, actions), header)

    @property
    def most_rows(self) -> int:
        """How many transitions of a model there can be."""
        return self.path.stat().st_size // _SHORTEST + 1

    @property
    def expected_length(self) -> int:
        """The filled lines after the header, counted without reading what they say."""
        with self.path.open("rb") as file:
            return max(1, sum(1 for line in file if not line.isspace()) - 1)

    def sizes(self) -> None:
        return None

    def place(self, name: str, row: int) -> str:
        with open_text(self.path) as file:
            filled = (number for number, line in enumerate(file, 1) if not line.isspace())
            return f"line {next(islice(filled, row + 1, None))} of {self.name}"

    def blocks(self, start: int, names: Sequence[str]) -> Iterator[RawColumns]:
        """The columns from row `start` on."""
        present = [name for name in names if name in self.columns]
        with open_text(self.path) as file:
            lines = islice(_filled(file), start + 1, None)
            while block := list(islice(lines, BLOCK)):
                yield self._parse(block, present, start)
                start += len(block)

    def _parse(self, lines: list[str], names: list[str], start: int) -> RawColumns:
        positions = {name: self.header.index(self.columns[name]) for name in names}
        kinds = {name: self._kind(name) for name in names}
        # pyarrow takes a quarter of a second to import, and is three times as fast: worth it for a large file.
        is_large = len(lines) == BLOCK or start > 0
        table = _parse_with_arrow(lines, len(self.header), positions, kinds) if is_large else None
        if table is None:
            commas = len(self.header) - 1
            if any(line.count(",") != commas for line in lines):
                self._check_widths(lines, start)
            try:
                table = _parse(lines, positions, kinds)
            except ValueError as error:
                self._explain(lines, positions, kinds, start)
                raise ValueError(f"{self.name} must hold one transition per line: {quote_error(error)}") from error
        one_each = all(len(column) == len(lines) for column in table.values())
        _checks.must(one_each, f"{self.name} must hold one transition per line: a quoted field has more")
        return table

    def _kind(self, name: str) -> str:
        if name in named_columns(self.named) or name == "terminated":
            return TEXT
        return WHOLE if name in (*INDICES, "outcome") else NUMBER

    def _check_widths(self, lines: list[str], start: int) -> None:
        for row, line in enumerate(lines, start):
            count = len(_fields(line, self.name))
            if count != len(self.header):
                _checks.fail(f"each line must have {len(self.header)} fields: got {count} at {self.place('', row)}")

    def _explain(self, lines: list[str], positions: Mapping[str, int], kinds: Mapping[str, str], start: int) -> None:
        """Fail at the first field that is not a number."""
        self._check_widths(lines, start)  # commas inside of quotes are no commas
        for row, line in enumerate(lines, start):
            fields = _fields(line, self.name)
            for name, position in positions.items():
                if kinds[name] != TEXT and not is_number(fields[position]):
                    where = f"got {shown(fields[position])} at {self.place(name, row)}"
                    _checks.fail(f"{self.columns[name]} must be {kinds[name]}: {where}")


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


@dataclass(frozen=True)
class ParquetTable(TableFile):
    """A Parquet file, one transition per row."""

    length: int
    has_words: bool

    @staticmethod
    def open(path: Path, find: FindColumns) -> ParquetTable:
        """Find the columns, and refuse those that would take far more memory than the file."""
        with parquet_file(path) as file:
            columns = find(tuple(file.schema_arrow.names), path.name)
            kinds = {name: file.schema_arrow.field(own).type for name, own in columns.items()}
            for name, kind in kinds.items():
                right = "numbers or words" if name in chain.from_iterable(KINDS.values()) else "numbers"
                _checks.must(
                    not pyarrow().types.is_nested(kind),
                    f"column {columns[name]!r} of {path.name} must hold {right}: it holds {kind}",
                )
            check_chunks(file, path, columns.values())
            rows = int(file.metadata.num_rows)
        _checks.must(rows > 0, f"{path.name} must hold at least one transition: got none")
        states, actions = (all(is_text(kinds[name]) for name in listed) for listed in KINDS.values())
        return ParquetTable(path, columns, (states, actions), rows, any(map(is_text, kinds.values())))

    def check_numbers(self) -> None:
        """Refuse columns of other types than numbers, but for names, before anything is read."""
        types = pyarrow().types
        with parquet_file(self.path) as file:
            for name, own in self.columns.items():
                kind = file.schema_arrow.field(own).type
                right = name in named_columns(self.named) or types.is_integer(kind) or types.is_floating(kind)
                _checks.must(right, f"column {own!r} of {self.name} must hold numbers: it holds {kind}")

    @property
    def most_rows(self) -> int:
        """How many transitions there are, refused where the file cannot hold them."""
        with parquet_file(self.path) as file:
            return check_rows(file, self.path)

    @property
    def expected_length(self) -> int:
        return self.length

    def sizes(self) -> tuple[int, int] | None:
        """From the statistics that most writers leave in the file."""
        largest = dict.fromkeys(INDICES, 0)
        wanted = [self.columns[name] for name in INDICES]
        with parquet_file(self.path) as file:
            for number in range(file.metadata.num_row_groups):
                found = column_chunks(file, self.path, number, wanted)
                for name in INDICES:
                    statistics = getattr(found.get(self.columns[name]), "statistics", None)
                    top = statistics.max if statistics is not None and statistics.has_min_max else None
                    if file.metadata.row_group(number).num_rows > 0 and not (isinstance(top, int) and top >= 0):
                        return None
                    largest[name] = max(largest[name], top or 0)
        return max(largest["state"], largest["next_state"]) + 1, largest["action"] + 1

    def place(self, name: str, row: int) -> str:
        return f"row {row} of {self.name}"

    def blocks(self, start: int, names: Sequence[str]) -> Iterator[RawColumns]:
        """The columns from row `start` on."""
        present = [name for name in names if name in self.columns]
        seen = start
        with contextlib.ExitStack() as stack:
            # A reader for each column, since pyarrow's own decodes them one after the other.
            columns = [stack.enter_context(self._column(self.columns[name], start)) for name in present]
            for parts in zip(*columns, strict=True):
                lengths = {len(part) for part in parts}
                _checks.must(len(lengths) == 1, f"the columns of {self.name} must be equally long: got {lengths}")
                yield dict(zip(present, parts, strict=True))
                seen += len(parts[0])
        right = seen == max(start, self.length)
        _checks.must(right, f"{self.name} must hold the {self.length} rows that it tells of: it has {seen}")

    @contextlib.contextmanager
    def _column(self, own: str, start: int) -> Iterator[Iterator[Column]]:
        with parquet_file(self.path, [own]) as file:
            group = 0
            while group < file.metadata.num_row_groups and start >= file.metadata.row_group(group).num_rows:
                start -= file.metadata.row_group(group).num_rows
                group += 1
            groups = range(group, file.metadata.num_row_groups)
            # Batches of numbers go on beyond a row group, those of words do not: with both, group by group.
            together = [[i] for i in groups] if self.has_words else [list(groups)] if groups else []
            batches = chain.from_iterable(file.iter_batches(BLOCK, each, [own], use_threads=False) for each in together)
            parts = (batch.column(0) for batch in whole_batches(batches, self.name))
            with contextlib.closing(ahead(map(from_arrow, _skip(parts, start)))) as values:
                yield values


def _skip(parts: Iterator[Any], count: int) -> Iterator[Any]:
    """The arrays without their first `count` entries."""
    for part in parts:
        if len(part) > count:
            yield part.slice(count)
        count = max(count - len(part), 0)


def kind_of_file(path: Path) -> Literal["log", "model", "either", None]:
    """The kind of its table, see `kind_of_table`; None where it is no table.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "table.csv")
    >>> _ = file.write_text("state,action,reward,next_state")
    >>> kind_of_file(file)
    'log'
    """
    suffix = path.suffix.lower()
    names: list[str] = []
    if suffix == ".csv" and path.is_file():
        with open_text(path) as file:
            lines = (file.readline(_LONGEST_LINE) for _ in range(_MOST_BLANK))
            names = next((line for line in lines if line.strip()), "").split(",")
    elif suffix in (".parquet", ".pq") and path.is_file():
        with parquet_file(path) as file:
            names = file.schema_arrow.names
    return kind_of_table(name.strip(' "\r\n').lower() for name in names)
