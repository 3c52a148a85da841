"""Models in our own format, checked before they are used: as a whole, or range by range if they exceed memory."""

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
from robustmdp.io.tensors import Layout, decompress, read_layout
from robustmdp.models import MDP, Noise
from robustmdp.models.consistency import check_lengths, check_pointers, check_room, checked_rows
from robustmdp.models.labels import Labels, checked_initial, read_only
from robustmdp.models.mdp import from_checked
from robustmdp.models.row_source import Rows


def read_tensors(path: Path) -> MDP:
    """A model whose arrays are read-only views of the file."""
    return MappedModel.of(path, read_layout(path)).to_mdp()


def read_compressed(path: Path) -> MDP:
    """The same in memory."""
    return MappedModel.of(path, *decompress(path)).to_mdp()


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
    unpacked: npt.NDArray[np.uint8] | None = None  # the bytes of all arrays, where the file has them compressed

    @staticmethod
    def open(path: str | os.PathLike[str]) -> MappedModel:
        """Check that the file holds a model's arrays, whatever is in them."""
        file = Path(os.fspath(path))
        _checks.must(
            file.suffix.lower() == ".safetensors", f"a model to open in parts must be a .safetensors file: got {path}"
        )
        _checks.file_there(file)
        return MappedModel.of(file, read_layout(file))

    @staticmethod
    def of(file: Path, layout: Layout, unpacked: npt.NDArray[np.uint8] | None = None) -> MappedModel:
        """Check that the sizes of the arrays are those of a model."""
        sizes = check_lengths(layout.lengths(), file.name)
        meta = layout.meta
        _checks.must(meta.n_states == sizes[0], f"n_states in {file.name} must be {meta.n_states}: got {sizes[0]}")
        check_room(sizes[0], meta.n_actions, sizes[2], file.name)
        return MappedModel(file.absolute(), layout, *sizes, unpacked)

    @property
    def n_actions(self) -> int:
        return self.layout.meta.n_actions

    @property
    def discount(self) -> float:
        return self.layout.meta.discount

    @property
    def rewards_on_successors(self) -> bool:
        """Is there one reward per transition?"""
        return self.layout.lengths()["rewards"] == self.nnz != self.n_pairs

    @property
    def state_names(self) -> tuple[str, ...] | None:
        return _checks.names("state", self.layout.meta.state_names, self.n_states)

    @property
    def action_names(self) -> tuple[str, ...] | None:
        return _checks.names("action", self.layout.meta.action_names, self.n_actions)

    @cached_property
    def noise(self) -> Noise | None:
        """What the model was made from, if it was."""
        values = self.layout.meta.noise
        if values is None:
            return None
        return Noise.from_builtins(
            values, self._entries("probabilities", 0, min(len(values), self.nnz)), self.path.name
        )

    @cached_property
    def _data(self) -> npt.NDArray[np.uint8]:
        return self.layout.map(self.path) if self.unpacked is None else self.unpacked

    def _entries(self, kind: str, first: int, last: int) -> npt.NDArray[Any]:
        return np.asarray(self.layout.array(kind, self._data, first, last))

    def _all_entries(self, kind: str) -> npt.NDArray[Any] | None:
        return self._entries(kind, 0, self.layout.lengths()[kind]) if kind in self.layout.tensors else None

    def to_mdp(self) -> MDP:
        """All of it: an MDP of exactly these arrays, but for rows that do not sum to 1 within rounding."""
        name = self.path.name
        return from_checked(
            MDP,
            **self.part(0, self.n_states)._asdict(),
            n_actions=self.n_actions,
            discount=self.discount,
            state_names=self.state_names,
            action_names=self.action_names,
            labels=self._labels(),
            initial=checked_initial(self._all_entries("initial"), self.n_states, f"initial in {name}"),
            noise=self.noise,
        )

    def _labels(self) -> Labels:
        flags, names, name = self._all_entries("labels"), self.layout.meta.label_names or (), self.path.name
        found = 0 if flags is None else len(flags)
        _checks.must(
            found == len(names) * self.n_states,
            f"labels in {name} must have {self.n_states} entries for each of {len(names)} labels: got {found} in all",
        )
        differ = len(set(names)) == len(names) and all(names)
        _checks.must(differ, f"the labels in {name} must have names that all differ")
        if flags is None:
            return Labels()
        _checks.must(bool(np.all(flags <= 1)), f"labels in {name} must be 0 or 1: got {flags.max()}")
        masks = read_only(flags.view(np.bool_)).reshape(len(names), self.n_states)
        return Labels(sorted(zip(names, masks, strict=True)))

    def part(self, first: int, last: int) -> Rows:
        """The checked rows of the states first <= s < last: views of the file, but for what counts from 0."""
        state_ptr = self._pointers("state_ptr", first, last, self.n_pairs)
        pairs = int(state_ptr[0]), int(state_ptr[-1])
        indptr = self._pointers("indptr", *pairs, self.nnz)
        entries = int(indptr[0]), int(indptr[-1])
        arrays = {
            "state_ptr": state_ptr - pairs[0] if first else state_ptr,
            "indptr": indptr - entries[0] if first else indptr,
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
