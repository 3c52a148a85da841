"""Our own format: one safetensors file with all of a model, mapped into memory as it is; or compressed with zstd.

Nothing is unpickled, and a stranger's file is checked from end to end before it is used. A file that is mapped must not
be changed in place while a model uses it; `write` never does, since it replaces files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.io.arrow import pyarrow
from robustmdp.io.explicit import Explicit
from robustmdp.io.meta import decoded, notes_on
from robustmdp.io.validation import checked_model
from robustmdp.io.words import said, shown
from robustmdp.models import MDP

# The wide ones come first, so that all of them lie at multiples of their size.
_TYPES = {
    "indptr": "I64",
    "state_ptr": "I64",
    "probabilities": "F64",
    "rewards": "F64",
    "initial": "F64",
    "indices": "I32",
    "actions": "I32",
    "labels": "BOOL",
}
_DTYPES: dict[str, np.dtype[Any]] = {
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
    "I32": np.dtype("<i4"),
    "BOOL": np.dtype("u1"),
}
_NOTES = "robustmdp"
_PREFIX = 8  # bytes that hold the length of the header
_MEGABYTE = 1 << 20
_MOST_EXPANSION = 1000  # of compressed bytes


class _Tensor(msgspec.Struct, forbid_unknown_fields=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    """What the format says of its tensors, and our notes."""

    metadata: dict[str, str] = msgspec.field(name="__metadata__")
    indptr: _Tensor
    state_ptr: _Tensor
    probabilities: _Tensor
    rewards: _Tensor
    indices: _Tensor
    actions: _Tensor
    initial: _Tensor | None = None
    labels: _Tensor | None = None  # (n_labels * n_states,), one behind the other; their names are in the notes


def read_tensors(path: Path) -> MDP:
    """A model whose arrays are read-only views of the file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = _header_length(file.read(_PREFIX), size - _PREFIX, path.name)
        header = _header(file.read(length), path.name)
    total = _total(header, path.name)
    _checks.must(
        _PREFIX + length + total == size,
        f"{path.name} must hold the {total} bytes of arrays that it tells of: it has {size - _PREFIX - length}",
    )
    mapped = np.memmap(path, np.uint8, "r")
    return _model(header, np.asarray(mapped[_PREFIX + length :]), path.name)


def read_compressed(path: Path) -> MDP:
    """The same out of a zstd stream, in memory."""
    pa, name = pyarrow(), path.name
    most = _MOST_EXPANSION * path.stat().st_size + _MEGABYTE
    try:
        with pa.input_stream(str(path), compression="zstd") as stream:
            length = _header_length(stream.read(_PREFIX), most, name)
            header = _header(stream.read(length), name)
            total = _total(header, name)
            _checks.must(total <= most, f"{name} cannot hold the {total} bytes that it tells of")
            data = np.empty(total, np.uint8)
            for start in range(0, total, _MEGABYTE):
                wanted = data[start : start + _MEGABYTE]
                piece = stream.read(len(wanted))
                _checks.must(len(piece) == len(wanted), f"{name} must be whole: it ends early")
                wanted[:] = np.frombuffer(piece, np.uint8)
            _checks.must(not stream.read(1), f"{name} must end after its arrays: there is more")
    except (pa.ArrowException, OSError) as error:
        _checks.fail(f"{name} must be a whole zstd file: {said(error)}")
    return _model(header, data, name)


def _header_length(prefix: bytes, most: int, name: str) -> int:
    length = int.from_bytes(prefix, "little")
    _checks.must(
        len(prefix) == _PREFIX and 0 < length <= most,
        f"{name} must start with a safetensors header: it is too short for one of {length} bytes",
    )
    return length


def _header(text: bytes, name: str) -> _Header:
    try:
        return msgspec.json.decode(text, type=_Header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _checks.fail(f"the header of {name} must be that of a model which this package wrote: {said(error)}")


def _total(header: _Header, name: str) -> int:
    """Bytes of all arrays, which must lie one behind the other, with nothing between them."""
    end = 0
    for kind, tensor in sorted(_tensors(header), key=lambda item: item[1].data_offsets):
        _checks.must(
            tensor.dtype == _TYPES[kind], f"{kind} in {name} must have type {_TYPES[kind]}: got {shown(tensor.dtype)}"
        )
        right = len(tensor.shape) == 1 and tensor.shape[0] > 0
        _checks.must(right, f"{kind} in {name} must be 1-D and not empty: got shape {list(tensor.shape[:9])}")
        stop = end + tensor.shape[0] * _DTYPES[tensor.dtype].itemsize
        _checks.must(
            tensor.data_offsets == (end, stop),
            f"{kind} in {name} must lie at bytes {end} to {stop}: got {list(tensor.data_offsets)}",
        )
        end = stop
    return end


def _tensors(header: _Header) -> list[tuple[str, _Tensor]]:
    return [(kind, tensor) for kind in _TYPES if (tensor := getattr(header, kind)) is not None]


def _model(header: _Header, data: npt.NDArray[np.uint8], name: str) -> MDP:
    arrays = {}
    for kind, tensor in _tensors(header):
        array = data[slice(*tensor.data_offsets)].view(_DTYPES[tensor.dtype])
        arrays[kind] = array if array.flags.aligned else array.copy()  # compiled code wants it so
    _checks.must(_NOTES in header.metadata, f"{name} must hold a model which this package wrote: it has no notes")
    meta = decoded(header.metadata[_NOTES].encode(), name)
    return checked_model(arrays, meta, name)


def write_tensors(model: Explicit, path: Path) -> None:
    """Array after array, never all of them in memory."""
    with path.open("wb") as file:
        for piece in _pieces(model.mdp):
            file.write(piece)


def write_compressed(model: Explicit, path: Path) -> None:
    """The same, through zstd."""
    with pyarrow().output_stream(str(path), compression="zstd") as stream:
        for piece in _pieces(model.mdp):
            stream.write(piece)


def _pieces(mdp: MDP) -> Iterator[Any]:
    arrays = {kind: np.ascontiguousarray(array, _DTYPES[_TYPES[kind]]) for kind, array in _arrays(mdp).items()}
    notes = notes_on(Explicit(mdp, ends=0), choices=False)
    notes = msgspec.structs.replace(notes, labels=None, initial=None, label_names=tuple(mdp.labels) or None)
    header: dict[str, Any] = {"__metadata__": {_NOTES: msgspec.json.encode(notes).decode()}}
    end = 0
    for kind, array in arrays.items():
        header[kind] = _Tensor(_TYPES[kind], array.shape, (end, end + array.nbytes))
        end += array.nbytes
    text = msgspec.json.encode(header)
    text += b" " * (-len(text) % _PREFIX)
    yield len(text).to_bytes(_PREFIX, "little") + text
    for array in arrays.values():
        for start in range(0, array.nbytes, _MEGABYTE):
            yield array.view(np.uint8)[start : start + _MEGABYTE].data


def _arrays(mdp: MDP) -> dict[str, npt.NDArray[Any]]:
    """All that the model has."""
    labels = np.concatenate(list(mdp.labels.values())) if mdp.labels else None
    found = {kind: labels if kind == "labels" else getattr(mdp, kind) for kind in _TYPES}
    return {kind: array for kind, array in found.items() if array is not None}
