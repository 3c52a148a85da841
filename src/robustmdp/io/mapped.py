"""Models in our own format whose rows are opened range by range, so that they may exceed memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import IntArray
from robustmdp.io.tensors import Layout, read_layout
from robustmdp.models import Noise
from robustmdp.models.consistency import check_lengths, check_pointers, check_room, checked_rows
from robustmdp.models.row_source import Rows


@dataclass(frozen=True)
class MappedModel:
    """A .safetensors model of which only the header has been read.

    >>> import pathlib, tempfile
    >>> from robustmdp import problems, write
    >>> model = MappedModel.open(write(problems.chain(), pathlib.Path(tempfile.mkdtemp(), "chain.safetensors")))
    >>> model.n_states, model.part(2, 5).state_ptr
    (10, array([0, 2, 4, 6]))
    """

    path: Path
    layout: Layout
    n_states: int
    n_pairs: int
    nnz: int

    @staticmethod
    def open(path: str | os.PathLike[str]) -> MappedModel:
        """Check that the file holds a model's arrays, whatever is in them."""
        file = Path(os.fspath(path))
        _checks.must(
            file.suffix.lower() == ".safetensors", f"a model to open in parts must be a .safetensors file: got {path}"
        )
        _checks.file_there(file)
        layout = read_layout(file)
        sizes = check_lengths(layout.lengths(), file.name)
        meta = layout.meta
        _checks.must(meta.n_states == sizes[0], f"n_states in {file.name} must be {meta.n_states}: got {sizes[0]}")
        check_room(sizes[0], meta.n_actions, sizes[2], file.name)
        return MappedModel(file.absolute(), layout, *sizes)

    @property
    def n_actions(self) -> int:
        """The largest number of actions of a state."""
        return self.layout.meta.n_actions

    @property
    def discount(self) -> float:
        """The model's own."""
        return self.layout.meta.discount

    @property
    def rewards_on_successors(self) -> bool:
        """Is there one reward per transition?"""
        return self.layout.lengths()["rewards"] == self.nnz != self.n_pairs

    @property
    def state_names(self) -> tuple[str, ...] | None:
        """Those of the file."""
        return _checks.names("state", self.layout.meta.state_names, self.n_states)

    @property
    def action_names(self) -> tuple[str, ...] | None:
        """Those of the file."""
        return _checks.names("action", self.layout.meta.action_names, self.n_actions)

    @cached_property
    def noise(self) -> Noise | None:
        """What the model was made from, if it was."""
        values = self.layout.meta.noise
        return (
            None
            if values is None
            else Noise.from_builtins(values, self._entries("probabilities", 0, len(values)), self.path.name)
        )

    @cached_property
    def _data(self) -> npt.NDArray[np.uint8]:
        return self.layout.map(self.path)

    def _entries(self, kind: str, first: int, last: int) -> npt.NDArray[Any]:
        return np.asarray(self.layout.array(kind, self._data, first, last))

    def part(self, first: int, last: int) -> Rows:
        """The checked rows of the states first <= s < last: views of the file, but for what counts from 0."""
        state_ptr = self._pointers("state_ptr", first, last, self.n_pairs)
        pairs = int(state_ptr[0]), int(state_ptr[-1])
        indptr = self._pointers("indptr", *pairs, self.nnz)
        entries = int(indptr[0]), int(indptr[-1])
        arrays = {
            "state_ptr": state_ptr - pairs[0],
            "indptr": indptr - entries[0],
            "actions": self._entries("actions", *pairs),
            "indices": self._entries("indices", *entries),
            "probabilities": self._entries("probabilities", *entries),
            "rewards": self._entries("rewards", *(entries if self.rewards_on_successors else pairs)),
        }
        offsets = {"pair": pairs[0], "actions": pairs[0], "indices": entries[0], "probabilities": entries[0]}
        offsets["rewards"] = entries[0] if self.rewards_on_successors else pairs[0]

        def place(kind: str, entry: int) -> str:
            at = offsets[kind] + entry
            return f"pair {at} of {self.path.name}" if kind == "pair" else f"{kind}[{at}] of {self.path.name}"

        return Rows(**checked_rows(arrays, self.n_states, self.n_actions, place, self.noise))

    def transitions_before(self, states: IntArray) -> IntArray:
        """How many transitions the states before each of these have; `states` rise."""
        before = states
        for kind, total in (("state_ptr", self.n_pairs), ("indptr", self.nnz)):
            before = self._entries(kind, 0, self.layout.lengths()[kind])[before]
            rises = before[0] >= 0 and before[-1] <= total and bool((before[1:] > before[:-1]).all())
            _checks.must(rises, f"{kind} of {self.path.name} must rise from 0 to {total}: it does not")
        return before

    def _pointers(self, kind: str, first: int, last: int, total: int) -> IntArray:
        """Rising pointers; those at the ends of the file are 0 and `total`."""
        pointers = self._entries(kind, first, last + 1)
        length = self.layout.lengths()[kind] - 1

        def place(kind: str, entry: int) -> str:
            return f"{kind}[{first + entry if entry >= 0 else last}] of {self.path.name}"

        check_pointers(kind, pointers, (0 if first == 0 else None, total if last == length else None), place)
        within = pointers[0] >= 0 and pointers[-1] <= total
        _checks.must(within, f"{kind} of {self.path.name} must lie in 0..{total}: got {pointers[0]} to {pointers[-1]}")
        return pointers
