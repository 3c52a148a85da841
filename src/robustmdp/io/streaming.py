"""Files in our own format that are written range by range of states, for models larger than memory."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from robustmdp._files import replace_file
from robustmdp.io.meta import VERSION, Meta
from robustmdp.io.tensors import ARRAY_TYPES, DTYPES, header_bytes
from robustmdp.models import RowSource
from robustmdp.models.consistency import check_room
from robustmdp.models.row_source import Rows

_BUFFER = 1 << 22  # bytes


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
