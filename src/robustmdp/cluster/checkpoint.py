"""Vectors of values on disk, with what a driver needs to resume; a checkpoint is replaced as a whole file.

Arrays come first, then a JSON record of them, then its length and a checksum of all before it. Nothing is unpickled.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp._files import replace_file

_VERSION = 1
_TAIL = np.dtype([("length", "<u8"), ("checksum", "<u8")])
_PIECE = 1 << 22  # bytes

Count = Annotated[int, msgspec.Meta(ge=0)]


class Vector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One array: its number, what it is, its type and its length."""

    number: Count
    kind: Literal["values", "policy"]
    dtype: Literal["int64", "float64"]
    length: Count


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a checkpoint records besides its arrays.

    Attributes
    ----------
    problem : what was solved, and how, by name
    place : how many times the run could have been saved until then
    sweeps : how many sweeps were done
    answers : how many answers the shards had given; they come first in the file
    vectors : those that follow
    """

    version: int
    problem: dict[str, str]
    place: Count
    sweeps: Count
    answers: Count
    vectors: tuple[Vector, ...]


class Checkpoint(NamedTuple):
    """A checkpoint: its record, the answers (n, 3), and the vectors by number, mapped into memory."""

    head: Head
    answers: FloatArray
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
    answers: Sequence[Sequence[float]],
    vectors: Iterable[tuple[int, str, Iterable[npt.NDArray[Any]]]],
) -> None:
    """Write answers, of three numbers each, and vectors (number, kind, pieces)."""
    written = []
    with replace_file(path) as part, part.open("wb") as file:
        out = _ChecksumWriter(file)
        out.write(np.array(answers, dtype=np.float64).tobytes())
        for number, kind, pieces in vectors:
            length = 0
            for piece in pieces:
                out.write(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)
                length += piece.size
            written.append(Vector(number, kind, piece.dtype.name, length))  # type: ignore[arg-type]  # of two each
        text = msgspec.json.encode(Head(_VERSION, problem, place, sweeps, len(answers), tuple(written)))
        out.write(text)
        file.write(np.array((len(text), out.checksum), _TAIL).tobytes())


def read_checkpoint(path: Path, problem: dict[str, str], n_states: int, n_pairs: int) -> Checkpoint:
    """A checkpoint, refused unless it is one of this problem, whose model has these sizes."""
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
    for vector in head.vectors:
        sizes = {("values", "float64"): n_states, ("policy", "int64"): n_states, ("policy", "float64"): n_pairs}
        _checks.must(
            vector.length == sizes.get((vector.kind, vector.dtype)),
            f"{name} must hold vectors of {n_states} states or {n_pairs} pairs: got {vector.kind} of "
            f"{vector.length} {vector.dtype}",
        )
    return _checkpoint(head, body[: len(body) - length], name)


def _checksum(data: npt.NDArray[np.uint8]) -> int:
    checksum = 0
    for start in range(0, len(data), _PIECE):
        checksum = zlib.crc32(data[start : start + _PIECE].data, checksum)
    return checksum


def _checkpoint(head: Head, data: npt.NDArray[np.uint8], name: str) -> Checkpoint:
    """The answers and the vectors; all numbers have 8 bytes, so that every array is aligned."""
    wanted = 8 * (3 * head.answers + sum(vector.length for vector in head.vectors))
    _checks.must(len(data) == wanted, f"{name} must hold {wanted} bytes of numbers: got {len(data)}")
    end = 24 * head.answers
    answers = np.array(data[:end]).view("<f8").reshape(-1, 3)
    arrays = {}
    for vector in head.vectors:
        start, end = end, end + 8 * vector.length
        arrays[vector.number] = data[start:end].view(f"<{vector.dtype[0]}8")
    return Checkpoint(head, answers, arrays)
