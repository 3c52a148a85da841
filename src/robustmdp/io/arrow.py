"""Untrusted Parquet files: read in chunks, and refused in one sentence."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from robustmdp import _checks
from robustmdp.io.text import quote_error

_MEGABYTE = 1 << 20
_SMALL = 16 * _MEGABYTE
_FEW_ROWS, _ROWS_PER_BYTE = 1_000_000, 8  # a regular grid, compressed, has 0.7 rows per byte of its file
_SMALL_CHUNK, _EXPANSION = 64 * _MEGABYTE, 100  # bytes of a column in a row group, also per byte of the file


def pyarrow() -> Any:
    """The package, or an error that says how to get it."""
    pa = _checks.package("pyarrow", "to read and write Parquet and compressed files", "robustmdp[parquet]")
    import_module("pyarrow.parquet")
    return pa


def parquet_file(path: Path, columns: Iterable[str] = ()) -> Any:
    """Opened, nothing read but its metadata; of the given columns each word will be held once."""
    pa = pyarrow()
    # With a buffer of its own a column is read bit by bit; without one, a whole row group, which may be the file. But
    # the buffer grows to whatever a page says of its size: 3 kilobytes have been seen to take a gigabyte.
    buffer = _MEGABYTE if path.stat().st_size > _SMALL else 0
    try:
        return pa.parquet.ParquetFile(
            path,
            read_dictionary=list(columns),
            buffer_size=buffer,
            pre_buffer=False,
            page_checksum_verification=True,
        )
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        _checks.fail(f"{path.name} must be a Parquet file: {quote_error(error)}")


def check_rows(file: Any, path: Path) -> int:
    """How many rows there are, refused before memory is taken where repetition makes far too many of a small file."""
    rows, size = int(file.metadata.num_rows), path.stat().st_size
    _checks.must(
        rows <= max(_FEW_ROWS, _ROWS_PER_BYTE * size),
        f"{path.name} cannot hold the {rows} rows that it tells of in {size} bytes",
    )
    return rows


def check_chunks(file: Any, path: Path, columns: Iterable[str]) -> None:
    """Refuse columns of which a part that is read at once is far larger than the file."""
    wanted, most = set(columns), max(_SMALL_CHUNK, _EXPANSION * path.stat().st_size)
    for number in range(file.metadata.num_row_groups):
        is_small = file.metadata.row_group(number).total_byte_size <= most
        for name, chunk in column_chunks(file, path, number, wanted, tries=is_small).items():
            if chunk.total_uncompressed_size > most:
                _checks.fail(
                    f"column {name!r} of {path.name} must take at most {most >> 20:,} MB in a row group: "
                    f"it tells of {chunk.total_uncompressed_size >> 20:,}"
                )


def column_chunks(file: Any, path: Path, number: int, wanted: Collection[str], *, tries: bool = True) -> dict[str, Any]:
    """What a row group tells of its columns, by name; `tries` reads a row of them first.

    Asked for a damaged column, pyarrow ends the process; when it reads one, it raises an error.
    """
    places = {}
    for place in range(file.metadata.num_columns):
        try:
            name = file.schema.column(place).path
        except UnicodeDecodeError:
            continue
        if name in wanted:
            places[name] = place
    if tries:
        next(whole_batches(file.iter_batches(1, [number], list(places), use_threads=False), path.name), None)
    group = file.metadata.row_group(number)
    return {name: group.column(place) for name, place in places.items()}


def whole_batches(batches: Iterable[Any], name: str) -> Iterator[Any]:
    """The batches, until one of them cannot be read."""
    pa = pyarrow()
    try:
        yield from batches
    except (pa.ArrowException, OSError) as error:
        _checks.fail(f"{name} must be a whole Parquet file: {quote_error(error)}")


def ahead(items: Iterator[Any]) -> Generator[Any, None, None]:
    """The items; the next one is made while one is used.

    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    end = object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, items, end)
            yield item
