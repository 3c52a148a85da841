"""Our own format: one safetensors file with all of a model, mapped into memory as it is; or compressed with zstd.

Nothing is unpickled, and a stranger's file is checked from end to end before it is used. A file that is mapped must not
be changed in place while a model uses it; `write` never does, since it replaces files.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._files import replace_file
from robustmdp.io.arrow import pyarrow
from robustmdp.io.explicit import Explicit
from robustmdp.io.meta import VERSION, Meta, decoded, notes_on
from robustmdp.io.text import quote_error, shown
from robustmdp.models import MDP, RowSource
from robustmdp.models.consistency import check_room
from robustmdp.models.row_source import Rows

# The wide ones come first, so that all of them lie at multiples of their size.
_MODEL_TYPES = {
    "indptr": "I64",
    "state_ptr": "I64",
    "probabilities": "F64",
    "rewards": "F64",
    "initial": "F64",
    "indices": "I32",
    "actions": "I32",
    "labels": "BOOL",  # (n_labels * n_states,), one behind the other; their names are in the notes
}
# A solution in shards is written with the worst-case model: entries per state, or per pair of state and action.
_SOLUTION_TYPES = {
    "value": "F64",
    "lower": "F64",
    "upper": "F64",
    "policy": "I64",
    "policy_probabilities": "F64",
    "q": "F64",
    "penalty": "F64",
    "eta": "F64",
}
ARRAY_TYPES = _SOLUTION_TYPES | _MODEL_TYPES
DTYPES: dict[str, np.dtype[Any]] = {
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
    "I32": np.dtype("<i4"),
    "BOOL": np.dtype("u1"),
}
_NOTES = "robustmdp"
_PREFIX = 8  # bytes that hold the length of the header
_MEGABYTE = 1 << 20
_MOST_EXPANSION = 1000  # of compressed bytes
_BUFFER = 1 << 22  # bytes


class _Tensor(msgspec.Struct, forbid_unknown_fields=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


_OPTIONAL = ("initial", "labels", *_SOLUTION_TYPES)
_Header: Any = msgspec.defstruct(
    "_Header",
    [
        ("metadata", dict[str, str], msgspec.field(name="__metadata__")),
        *((kind, _Tensor) for kind in _MODEL_TYPES if kind not in _OPTIONAL),
        *((kind, _Tensor | None, None) for kind in _OPTIONAL),
    ],
    forbid_unknown_fields=True,
)


class Layout(NamedTuple):
    """The arrays of a file: `total` bytes from `start` on; and the notes on the model."""

    start: int
    total: int
    tensors: dict[str, _Tensor]
    meta: Meta

    def lengths(self) -> dict[str, int]:
        """How many entries each array has."""
        return {kind: tensor.shape[0] for kind, tensor in self.tensors.items()}

    def map(self, path: Path) -> npt.NDArray[np.uint8]:
        """The bytes of all arrays, as a read-only view of the file."""
        return np.asarray(np.memmap(path, np.uint8, "r")[self.start :])

    def array(self, kind: str, data: npt.NDArray[np.uint8], first: int = 0, last: int | None = None) -> Any:
        """The entries first..last of an array of `data`, the bytes of all arrays."""
        tensor = self.tensors[kind]
        dtype = DTYPES[tensor.dtype]
        start, count = tensor.data_offsets[0], tensor.shape[0] if last is None else last
        array = data[start + first * dtype.itemsize : start + count * dtype.itemsize].view(dtype)
        return array if array.flags.aligned else array.copy()  # compiled code wants it so


def read_layout(path: Path) -> Layout:
    """Where the arrays of a file are, which they fill."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = _header_length(file.read(_PREFIX), size - _PREFIX, path.name)
        layout = _layout(_header(file.read(length), path.name), _PREFIX + length, path.name)
    _checks.must(
        layout.start + layout.total == size,
        f"{path.name} must hold the {layout.total} bytes of arrays that it tells of: it has {size - layout.start}",
    )
    return layout


def decompress(path: Path) -> tuple[Layout, npt.NDArray[np.uint8]]:
    """The same out of a zstd stream, and the bytes of all arrays."""
    pa, name = pyarrow(), path.name
    most = _MOST_EXPANSION * path.stat().st_size + _MEGABYTE
    try:
        with pa.input_stream(str(path), compression="zstd") as stream:
            length = _header_length(stream.read(_PREFIX), most, name)
            layout = _layout(_header(stream.read(length), name), _PREFIX + length, name)
            _checks.must(layout.total <= most, f"{name} cannot hold the {layout.total} bytes that it tells of")
            data = np.empty(layout.total, np.uint8)
            for start in range(0, layout.total, _MEGABYTE):
                wanted = data[start : start + _MEGABYTE]
                piece = stream.read(len(wanted))
                _checks.must(len(piece) == len(wanted), f"{name} must be whole: it ends early")
                wanted[:] = np.frombuffer(piece, np.uint8)
            _checks.must(not stream.read(1), f"{name} must end after its arrays: there is more")
    except (pa.ArrowException, OSError) as error:
        _checks.fail(f"{name} must be a whole zstd file: {quote_error(error)}")
    return layout, data


def _header_length(prefix: bytes, most: int, name: str) -> int:
    length = int.from_bytes(prefix, "little")
    _checks.must(
        len(prefix) == _PREFIX and 0 < length <= most,
        f"{name} must start with a safetensors header: it is too short for one of {length} bytes",
    )
    return length


def _header(text: bytes, name: str) -> Any:
    try:
        return msgspec.json.decode(text, type=_Header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _checks.fail(f"the header of {name} must be that of a model which this package wrote: {quote_error(error)}")


def _layout(header: Any, start: int, name: str) -> Layout:
    """All arrays must lie one behind the other, with nothing between them."""
    end = 0
    tensors = [(kind, tensor) for kind in ARRAY_TYPES if (tensor := getattr(header, kind)) is not None]
    for kind, tensor in sorted(tensors, key=lambda item: item[1].data_offsets):
        _checks.must(
            tensor.dtype == ARRAY_TYPES[kind],
            f"{kind} in {name} must have type {ARRAY_TYPES[kind]}: got {shown(tensor.dtype)}",
        )
        right = len(tensor.shape) == 1 and tensor.shape[0] > 0
        _checks.must(right, f"{kind} in {name} must be 1-D and not empty: got shape {list(tensor.shape[:9])}")
        stop = end + tensor.shape[0] * DTYPES[tensor.dtype].itemsize
        _checks.must(
            tensor.data_offsets == (end, stop),
            f"{kind} in {name} must lie at bytes {end} to {stop}: got {list(tensor.data_offsets)}",
        )
        end = stop
    _checks.must(_NOTES in header.metadata, f"{name} must hold a model which this package wrote: it has no notes")
    return Layout(start, end, dict(tensors), decoded(header.metadata[_NOTES].encode(), name))


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
    arrays = {kind: np.ascontiguousarray(array, DTYPES[ARRAY_TYPES[kind]]) for kind, array in _arrays(mdp).items()}
    notes = notes_on(Explicit(mdp, ends=0), choices=False)
    notes = msgspec.structs.replace(notes, labels=None, initial=None, label_names=tuple(mdp.labels) or None)
    yield header_bytes({kind: (ARRAY_TYPES[kind], len(array)) for kind, array in arrays.items()}, notes)
    for array in arrays.values():
        for start in range(0, array.nbytes, _MEGABYTE):
            yield array.view(np.uint8)[start : start + _MEGABYTE].data


def header_bytes(kinds: Mapping[str, tuple[str, int]], notes: Meta) -> bytes:
    """What precedes 1-D arrays of these types and lengths, which follow one behind the other."""
    header: dict[str, Any] = {"__metadata__": {_NOTES: msgspec.json.encode(notes).decode()}}
    end = 0
    for kind, (dtype, length) in kinds.items():
        start, end = end, end + length * DTYPES[dtype].itemsize
        header[kind] = _Tensor(dtype, (length,), (start, end))
    text = msgspec.json.encode(header)
    text += b" " * (-len(text) % _PREFIX)
    return len(text).to_bytes(_PREFIX, "little") + text


def _arrays(mdp: MDP) -> dict[str, npt.NDArray[Any]]:
    """All that the model has."""
    labels = np.concatenate(list(mdp.labels.values())) if mdp.labels else None
    found = {kind: labels if kind == "labels" else getattr(mdp, kind) for kind in _MODEL_TYPES}
    return {kind: array for kind, array in found.items() if array is not None}


class TensorStream:
    """Arrays that grow piece by piece, each in a file of its own until `join` puts one behind the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.lengths: defaultdict[str, int] = defaultdict(int)

    def append(self, kind: str, piece: npt.ArrayLike) -> None:
        """More entries of an array."""
        array = np.ascontiguousarray(piece, DTYPES[ARRAY_TYPES[kind]])
        with (self._folder / kind).open("ab") as file:
            file.write(array.view(np.uint8).data)
        self.lengths[kind] += len(array)

    def append_rows(self, rows: Rows) -> None:
        """The next states of a model."""
        n_pairs, nnz = self.lengths["actions"], self.lengths["indices"]
        if n_pairs == 0:
            self.append("state_ptr", [0])
            self.append("indptr", [0])
        self.append("state_ptr", rows.state_ptr[1:] + n_pairs)
        self.append("indptr", rows.indptr[1:] + nnz)
        for kind in ("actions", "indices", "probabilities", "rewards"):
            self.append(kind, getattr(rows, kind))

    def join(self, notes: Meta, path: Path) -> None:
        """Write the file; the pieces vanish on the way, so that the disk holds at most one array twice."""
        kinds = [kind for kind in ARRAY_TYPES if kind in self.lengths]
        with path.open("wb") as file:
            file.write(header_bytes({kind: (ARRAY_TYPES[kind], self.lengths[kind]) for kind in kinds}, notes))
            for kind in kinds:
                piece = self._folder / kind
                with piece.open("rb") as source:
                    shutil.copyfileobj(source, file, _BUFFER)
                piece.unlink()


@contextmanager
def tensor_stream(path: Path) -> Iterator[tuple[TensorStream, Path]]:
    """A stream, and the file to join it to, which becomes `path` in the end."""
    with replace_file(path) as part, tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        yield TensorStream(Path(folder)), part


def write_source(source: RowSource, path: Path) -> Path:
    """The file that `write(source.to_mdp(), path)` leaves, without the whole model in memory."""
    notes = Meta(
        version=VERSION,
        discount=source.discount,
        n_states=source.n_states,
        n_actions=source.n_actions,
        rewards_on_successors=source.rewards_on_successors,
    )
    with tensor_stream(path) as (stream, part):
        for rows in source.parts():
            stream.append_rows(rows)
        check_room(source.n_states, source.n_actions, stream.lengths["indices"])
        stream.join(notes, part)
    return path
