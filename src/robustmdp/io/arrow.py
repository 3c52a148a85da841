"""Parquet files of strangers: read bit by bit, and refused in one sentence."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy.typing as npt

from robustmdp import _checks
from robustmdp.io.words import said

_MEGABYTE = 1 << 20
_SMALL = 16 * _MEGABYTE


def pyarrow() -> Any:
    """The package, or an error that says how to get it."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            "pyarrow must be installed to read Parquet or compressed files: pip install 'robustmdp[parquet]'"
        ) from None
    return pa


def parquet_file(path: Path) -> Any:
    """Opened, nothing read but its metadata."""
    pa = pyarrow()
    # With a buffer of its own a column is read bit by bit; without one, a whole row group, which may be the file. But
    # the buffer grows to whatever a page says of its size: 3 kilobytes have been seen to take a gigabyte.
    buffer = _MEGABYTE if path.stat().st_size > _SMALL else 0
    try:
        return pa.parquet.ParquetFile(path, buffer_size=buffer, pre_buffer=False, page_checksum_verification=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        _checks.fail(f"{path.name} must be a Parquet file: {said(error)}")


def whole_batches(batches: Iterable[Any], name: str) -> Iterator[Any]:
    """The batches, until one of them cannot be read."""
    pa = pyarrow()
    try:
        yield from batches
    except (pa.ArrowException, OSError) as error:
        _checks.fail(f"{name} must be a whole Parquet file: {said(error)}")


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


def to_numpy(column: Any) -> npt.NDArray[Any]:
    """A column as it is, without a copy where numpy has its type."""
    values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values
