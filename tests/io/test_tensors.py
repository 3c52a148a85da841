"""Our own format: mapped as it is, checked from end to end, and nothing believed before."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles.damaged_files import random_world
from robustmdp.io import read, write

pytest.importorskip("pyarrow")
ARRAYS = ("indptr", "indices", "probabilities", "rewards", "state_ptr", "actions")
GARNET = rm.problems.garnet(60, 4, 5, 0.95, seed=0)


def assert_same_bits(one: rm.MDP, other: rm.MDP) -> None:
    assert one == other
    for name in ARRAYS:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name


def test_a_mapped_model_is_a_view_of_its_file(tmp_path: Path) -> None:
    world = GARNET
    path = write(world, tmp_path / "model.safetensors")
    mapped = read(path)
    for name in ARRAYS:
        array = getattr(mapped, name)
        assert not array.flags.writeable
        assert not array.flags.owndata
        assert array.flags.aligned
        base = array
        while base.base is not None and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)
    assert rm.solve(mapped, rm.Nominal()) == rm.solve(world, rm.Nominal())
    write(rm.problems.chain(), path)  # replaces the file, which the model still has
    assert_same_bits(mapped, world)
    assert_same_bits(read(path), rm.problems.chain())


def test_our_own_format_is_safetensors(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    world = random_world(1)
    tensors = safetensors.load_file(write(world, tmp_path / "model.safetensors"))
    assert {name: tensors[name].tolist() for name in ARRAYS} == {name: getattr(world, name).tolist() for name in ARRAYS}


def test_a_header_of_another_length_costs_a_copy_and_nothing_else(tmp_path: Path) -> None:
    world = GARNET
    path = write(world, tmp_path / "model.safetensors")
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    path.write_bytes((length + 3).to_bytes(8, "little") + data[8 : 8 + length] + b"   " + data[8 + length :])
    moved = read(path)
    assert all(getattr(moved, name).flags.aligned for name in ARRAYS)
    assert_same_bits(moved, world)


def test_compression_is_worth_it(tmp_path: Path) -> None:
    sizes = [
        write(rm.problems.grid_world(8), tmp_path / f"m{e}").stat().st_size
        for e in (".safetensors", ".safetensors.zst")
    ]
    assert sizes[1] < sizes[0] / 3


def header(**change: Any) -> bytes:
    """Of a model with one state, with its arrays behind it."""
    kinds = {"indptr": ("I64", 2), "state_ptr": ("I64", 2), "probabilities": ("F64", 1), "rewards": ("F64", 1)}
    kinds |= {"indices": ("I32", 1), "actions": ("I32", 1)}
    notes = {"version": 1, "discount": 0.5, "n_states": 1, "n_actions": 1}
    tensors: dict[str, Any] = {"__metadata__": {"robustmdp": json.dumps(notes)}}
    end = 0
    for name, (kind, count) in kinds.items():
        size = count * int(kind[1:]) // 8
        tensors[name] = {"dtype": kind, "shape": [count], "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(tensors | change).encode()
    return len(text).to_bytes(8, "little") + text


DATA = np.array([0, 1, 0, 1]).tobytes() + np.array([1.0, 2.5]).tobytes() + np.array([0, 0], np.int32).tobytes()


def test_a_strangers_tensors(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(header() + DATA)
    assert read(tmp_path / "model.safetensors") == rm.MDP.from_rows([0], [0], [0], [1], [2.5], 0.5)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"indices": {"dtype": "I64", "shape": [1], "data_offsets": [48, 56]}},
            "indices in {} must have type I32: got 'I64'",
        ),
        (
            {"indptr": {"dtype": "I64", "shape": [1, 2], "data_offsets": [0, 16]}},
            "indptr in {} must be 1-D and not empty",
        ),
        ({"indptr": {"dtype": "I64", "shape": [0], "data_offsets": [0, 0]}}, "indptr in {} must be 1-D and not empty"),
        (
            {"actions": {"dtype": "I32", "shape": [1], "data_offsets": [48, 52]}},
            "actions in {} must lie at bytes 52 to 56",
        ),
        (
            {"actions": {"dtype": "I32", "shape": [10**15], "data_offsets": [52, 52 + 4 * 10**15]}},
            "{} must hold the 4000",
        ),
        (
            {"extra": {"dtype": "I32", "shape": [1], "data_offsets": [56, 60]}},
            "the header of {} must be that of a model",
        ),
        ({"__metadata__": {}}, "{} must hold a model which this package wrote: it has no notes"),
        ({"__metadata__": {"robustmdp": "{}"}}, "{} must hold notes that this package wrote: Object missing required"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_headers_that_lie(tmp_path: Path, change: dict[str, Any], sentence: str, packed: bool) -> None:
    import pyarrow as pa

    path = tmp_path / ("model.safetensors.zst" if packed else "model.safetensors")
    with pa.output_stream(str(path), compression="zstd" if packed else None) as stream:
        stream.write(header(**change) + DATA)
    sentence = sentence.replace(
        "{} must hold the 4000", "{} cannot hold the 4000" if packed else "{} must hold the 4000"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence.format(path.name))}"):
        read(path)


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        (0, np.int64(1), "indptr must start at 0: got 1 at indptr[0] of"),
        (8, np.int64(0), "indptr must rise: got 0 at indptr[1] of"),
        (8, np.int64(2), "indptr must end at 1: got 2 at indptr[1] of"),
        (24, np.int64(-1), "state_ptr must rise: got -1 at state_ptr[1] of"),
        (32, np.float64(0.0), "probabilities must be positive: got 0.0 at probabilities[0] of"),
        (32, np.float64(np.nan), "probabilities must be positive: got nan at probabilities[0] of"),
        (32, np.float64(0.9), "probabilities must sum to 1: got 0.9 at pair 0 of"),
        (40, np.float64(np.inf), "rewards must be finite: got inf at rewards[0] of"),
        (48, np.int32(2), "indices must lie in 0..1: got 2 at indices[0] of"),
        (52, np.int32(-1), "actions must lie in 0..0: got -1 at actions[0] of"),
    ],
)
def test_arrays_that_are_no_model(tmp_path: Path, place: int, value: Any, sentence: str) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(header() + DATA[:place] + value.tobytes() + DATA[place + value.nbytes :])
    with pytest.raises(ValueError, match=f"^{re.escape(f'{sentence} model.safetensors')}"):
        read(path)


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1 << 18])
def test_arrays_are_checked_across_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr("robustmdp.models.consistency._PIECE", piece)
    monkeypatch.setattr("robustmdp.models.row_sums._PIECE", piece)
    world = random_world(13)
    assert world.n_pairs > 4
    path = write(world, tmp_path / "model.safetensors")
    assert_same_bits(read(path), world)
    pair = int(np.flatnonzero(np.diff(world.state_ptr) > 1)[0])  # a state with two actions
    first = int(world.state_ptr[pair])
    same = world.actions.copy()
    same[first + 1] = same[first]
    write(world._replace(actions=same), path)
    with pytest.raises(ValueError, match=rf"^actions must rise within a state: got \d at actions\[{first + 1}\] of"):
        read(path)
    row = int(np.flatnonzero(np.diff(world.indptr) > 1)[0])
    entry = int(world.indptr[row])
    turned = world.indices.copy()
    turned[[entry, entry + 1]] = turned[[entry + 1, entry]]
    write(world._replace(indices=turned), path)
    with pytest.raises(ValueError, match=rf"^indices must rise within a row: got \d at indices\[{entry + 1}\] of"):
        read(path)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    import pyarrow as pa

    path = tmp_path / "model.safetensors.zst"
    size = 1 << 28
    for data in (header() + DATA + bytes(size), (size).to_bytes(8, "little") + b"{" * size):
        with pa.output_stream(str(path), compression="zstd") as stream:
            stream.write(data)
        assert path.stat().st_size < size / 1000
        before = pa.total_allocated_bytes()
        with pytest.raises(ValueError, match=r"^model.safetensors.zst must "):
            read(path)
        assert pa.total_allocated_bytes() == before
