"""Vectors of values on disk, with what a driver needs to resume; a checkpoint is replaced as a whole file.

Arrays come first, then a JSON record of them, then its length and a checksum of all before it. Nothing is unpickled.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._files import whole

_VERSION = 1
_TAIL = np.dtype([("length", "<u8"), ("checksum", "<u8")])
_PIECE = 1 << 22  # bytes
_DTYPES = {"int64": np.dtype("<i8"), "float64": np.dtype("<f8")}

Count = Annotated[int, msgspec.Meta(ge=0)]


class Vector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One array: its number, "values" or a "policy", its type and its length."""

    number: Count
    kind: str
    dtype: str
    length: Count


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a checkpoint records besides its arrays.

    Attributes
    ----------
    problem : what was solved, and how, by name
    place : how many times the run could have been saved until then
    sweeps : how many sweeps were done
    vectors : those in the file, one after the other; the answers come first, under number 0
    """

    version: int
    problem: dict[str, str]
    place: Count
    sweeps: Count
    vectors: tuple[Vector, ...]


class Checkpoint(NamedTuple):
    """A checkpoint: its record, and its arrays by number, mapped into memory."""

    head: Head
    arrays: Mapping[int, npt.NDArray[Any]]


class _ChecksumWriter:
    """Writes, and keeps the checksum of what was written."""

    def __init__(self, file: Any) -> None:
        self._file, self.checksum = file, 0

    def write(self, data: Any) -> None:
        self.checksum = zlib.crc32(data, self.checksum)
        self._file.write(data)


def write_checkpoint(
    path: Path,
    problem: dict[str, str],
    place: int,
    sweeps: int,
    vectors: Iterable[tuple[int, str, Iterable[npt.NDArray[Any]]]],
) -> None:
    """Write vectors (number, kind, pieces), of which the answers are the first."""
    written = []
    with whole(path) as part, part.open("wb") as file:
        out = _ChecksumWriter(file)
        for number, kind, pieces in vectors:
            length = 0
            for piece in pieces:
                out.write(np.ascontiguousarray(piece).view(np.uint8))
                length += piece.size
            written.append(Vector(number, kind, piece.dtype.name, length))
        text = msgspec.json.encode(Head(_VERSION, problem, place, sweeps, tuple(written)))
        out.write(text)
        file.write(np.array((len(text), out.checksum), _TAIL).tobytes())


def read_checkpoint(path: Path, problem: dict[str, str]) -> Checkpoint:
    """A checkpoint, refused unless it is one of this problem."""
    name = path.name
    size = path.stat().st_size
    _checks.must(size > _TAIL.itemsize, f"{name} must be a checkpoint: it is too short")
    data = np.memmap(path, np.uint8, "r")
    body = data[: -_TAIL.itemsize]
    length, checksum = data[-_TAIL.itemsize :].view(_TAIL)[0].tolist()
    _checks.must(length < size and _checksum(body) == checksum, f"{name} must be a complete checkpoint: it is damaged")
    try:
        head = msgspec.json.decode(body[len(body) - length :].tobytes(), type=Head)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _checks.fail(f"{name} must be a checkpoint of a solve: {error}")
    _checks.must(head.version == _VERSION, f"{name} must be a checkpoint of version {_VERSION}: got {head.version}")
    for part, expected in problem.items():
        found = head.problem.get(part, "missing")
        _checks.must(
            found == expected,
            f"{name} must be a checkpoint of this problem, whose {part} is {expected}: its own is {found}",
        )
    return Checkpoint(head, _arrays(head, body[: len(body) - length], name))


def _checksum(data: npt.NDArray[np.uint8]) -> int:
    checksum = 0
    for start in range(0, len(data), _PIECE):
        checksum = zlib.crc32(data[start : start + _PIECE], checksum)
    return checksum


def _arrays(head: Head, data: npt.NDArray[np.uint8], name: str) -> dict[int, npt.NDArray[Any]]:
    """The arrays by number; all types have 8 bytes, so that every array is aligned."""
    arrays, end = {}, 0
    for vector in head.vectors:
        _checks.must(vector.dtype in _DTYPES, f"{name} must hold numbers: got {vector.dtype}")
        stop = end + 8 * vector.length
        _checks.must(stop <= len(data), f"{name} must hold the {vector.length} numbers that it announces")
        arrays[vector.number] = data[end:stop].view(_DTYPES[vector.dtype])
        end = stop
    _checks.must(end == len(data), f"{name} must end after its vectors: more data follow")
    return arrays
