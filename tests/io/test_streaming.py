"""Models in our own format that are written and opened range by range of states."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from cluster.models import ragged, walk
from robustmdp.io.mapped import MappedModel
from robustmdp.models.part import slice_rows

ARRAYS = ("indptr", "indices", "probabilities", "rewards", "state_ptr", "actions")


def source_of(mdp: rm.MDP) -> rm.RowSource:
    """The same model as a function."""

    def rows(first: int, last: int) -> Any:
        part = slice_rows(mdp, first, last)
        pair = np.repeat(np.arange(len(part.actions)), np.diff(part.indptr))
        state = first + np.searchsorted(part.state_ptr, pair, side="right") - 1
        rewards = part.rewards if mdp.rewards_on_successors else part.rewards[pair]
        return state, part.actions[pair], part.indices, part.probabilities, rewards

    return rm.RowSource(
        rows, mdp.n_states, mdp.n_actions, mdp.discount, rewards_on_successors=mdp.rewards_on_successors
    )


@pytest.mark.parametrize("on_successors", [False, True])
def test_a_source_leaves_the_file_of_its_model(
    on_successors: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robustmdp.models.row_source._FIRST", 2)
    monkeypatch.setattr("robustmdp.models.row_source._BLOCK", 30)
    mdp = ragged(60, on_successors=on_successors)
    path = rm.write(source_of(mdp), tmp_path / "streamed.safetensors")
    assert path.read_bytes() == rm.write(mdp, tmp_path / "whole.safetensors").read_bytes()
    assert rm.read(path) == mdp
    assert sorted(file.name for file in tmp_path.iterdir()) == ["streamed.safetensors", "whole.safetensors"]


@pytest.mark.parametrize("shift", [0, 3])
def test_parts_of_a_file_are_slices_of_its_model(shift: int, tmp_path: Path) -> None:
    mdp = ragged(60, on_successors=True)
    path = rm.write(mdp, tmp_path / "model.safetensors")
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    path.write_bytes((length + shift).to_bytes(8, "little") + data[8 : 8 + length] + b" " * shift + data[8 + length :])
    model = MappedModel.open(path)
    assert (model.n_states, model.n_pairs, model.nnz) == (mdp.n_states, mdp.n_pairs, mdp.nnz)
    for first, last in ((0, 60), (0, 1), (59, 60), (17, 40)):
        part, wanted = model.part(first, last), slice_rows(mdp, first, last)
        for name in ARRAYS:
            assert getattr(part, name).tobytes() == getattr(wanted, name).tobytes(), name


def test_a_source_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def rows(first: int, last: int) -> Any:
        columns = walk().rows(first, last)
        return (*columns[:3], columns[3] * (columns[0] < 4000), columns[4])

    target = tmp_path / "model.safetensors"
    target.write_bytes(b"an earlier file")
    with pytest.raises(ValueError, match=r"^probabilities must sum to 1: got 0 at|must have an action: state 4000"):
        rm.write(rm.RowSource(rows, 5000, 2, 0.9), target)
    assert [file.name for file in tmp_path.iterdir()] == [target.name]
    assert target.read_bytes() == b"an earlier file"


@pytest.mark.parametrize(("name", "format"), [("model.csv", None), ("model.safetensors.zst", None), ("model", "drn")])
def test_other_formats_need_a_model(name: str, format: str | None, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^a RowSource must be written to a \.safetensors file: got"):
        rm.write(walk(), tmp_path / name, format=format)


@pytest.mark.parametrize(
    ("kind", "entry", "value", "sentence"),
    [
        ("state_ptr", 20, 10**12, "state_ptr must rise: got"),
        ("state_ptr", 10, 10**12, "state_ptr must rise: got"),
        ("state_ptr", 10, -7, "state_ptr of model.safetensors must lie in 0..108: got -7 to"),
        ("indptr", 40, 0, "indptr must rise: got 0 at indptr[40] of model.safetensors"),
    ],
)
def test_pointers_that_lead_astray(kind: str, entry: int, value: int, sentence: str, tmp_path: Path) -> None:
    mdp = ragged(50, on_successors=True)
    path = rm.write(mdp, tmp_path / "model.safetensors")
    data = bytearray(path.read_bytes())
    start = data.index(getattr(mdp, kind).tobytes()) + 8 * entry
    data[start : start + 8] = np.array(value).tobytes()
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        MappedModel.open(path).part(10, 40)
