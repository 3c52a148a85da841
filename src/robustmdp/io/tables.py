"""Tables to and from files: Parquet with their notes, CSV and JSON without."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from robustmdp import _checks
from robustmdp._files import replace_file
from robustmdp.io.arrow import pyarrow
from robustmdp.io.text import quote_error
from robustmdp.table import Table

FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".json": "json"}
_NOTES = b"robustmdp"


def write_table(table: Table, path: str | Path, format: str | None = None) -> Path:
    """To Parquet (notes in the metadata), CSV (17 digits) or JSON (a list of rows, null for what is not finite).

    The file appears whole or not at all.
    """
    target = Path(path)
    kind = format_of(target, format, "a table")
    with replace_file(target) as part:
        WRITERS[kind](table, part)
    return target


def format_of(path: Path, format: str | None, what: str) -> str:
    """The given format, or that of the extension; `what` is the subject of the error."""
    if format is None:
        _checks.must(
            path.suffix.lower() in FORMATS,
            f"{what} must end in {', '.join(FORMATS)}, or say its format: got {path.name!r}",
        )
        return FORMATS[path.suffix.lower()]
    if format not in FORMATS.values():
        _checks.nearest("format", str(format), dict.fromkeys(FORMATS.values()))
    return format


def read_table(path: str | Path) -> Table:
    """A table from a `.parquet` file, with its notes."""
    pa = pyarrow()
    try:
        found = pa.parquet.read_table(str(path))
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
        _checks.fail(f"{path} must be a Parquet file: {quote_error(problem)}")
    notes = (found.schema.metadata or {}).get(_NOTES, b"{}")
    try:
        kept = msgspec.json.decode(notes, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        _checks.fail(f"{path} must hold notes that this package wrote: {problem}")
    return Table({name: _column(found.column(name)) for name in found.column_names}, kept)


def _column(column: Any) -> np.ndarray[Any, Any]:
    values: np.ndarray[Any, Any] = column.to_numpy()
    return values.astype(np.str_) if values.dtype == object else values


def write_parquet(table: Table, path: Path) -> None:
    """Just write; `write_table` is for files that must be whole."""
    pa = pyarrow()
    columns = pa.table({name: pa.array(column) for name, column in table.columns.items()})
    notes = {_NOTES: msgspec.json.encode(dict(table.notes))}
    pa.parquet.write_table(columns.replace_schema_metadata(notes), str(path), compression="zstd")


def write_csv(table: Table, path: Path) -> None:
    """Just write; `write_table` is for files that must be whole."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        writer.writerows(zip(*(column.tolist() for column in table.columns.values()), strict=True))


def _write_json(table: Table, path: Path) -> None:
    path.write_bytes(msgspec.json.encode(list(table)) + b"\n")


WRITERS = {"parquet": write_parquet, "csv": write_csv, "json": _write_json}
