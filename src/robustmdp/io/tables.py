"""Tables to and from files: Parquet with their notes, CSV without."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from robustmdp import _checks
from robustmdp._files import whole
from robustmdp.table import Table

_NOTES = b"robustmdp"


def write_table(table: Table, path: str | Path) -> Path:
    """To `.parquet` (notes in the metadata) or `.csv` (17 digits, no notes); the file appears whole or not at all."""
    target = Path(path)
    suffix = target.suffix.lower()
    _checks.must(suffix in _WRITERS, f"a table must go to a .parquet or .csv file: got {target.name!r}")
    with whole(target) as part:
        _WRITERS[suffix](table, part)
    return target


def read_table(path: str | Path) -> Table:
    """A table from a `.parquet` file, with its notes."""
    import pyarrow as pa

    parquet = _parquet()
    try:
        found = parquet.read_table(str(path))
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
        _checks.fail(f"{path} must be a Parquet file: {str(problem).splitlines()[0]}")
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
    import pyarrow as pa

    columns = pa.table({name: pa.array(column) for name, column in table.columns.items()})
    notes = {_NOTES: msgspec.json.encode(dict(table.notes))}
    _parquet().write_table(columns.replace_schema_metadata(notes), str(path), compression="zstd")


def write_csv(table: Table, path: Path) -> None:
    """Just write; `write_table` is for files that must be whole."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        writer.writerows(zip(*(column.tolist() for column in table.columns.values()), strict=True))


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise ImportError("pyarrow must be installed for Parquet files: pip install 'robustmdp[parquet]'") from None
    return parquet


_WRITERS = {".parquet": write_parquet, ".csv": write_csv}
