"""The compiled builder of sorted rows against a naive one, and what it refuses."""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pytest

from robustmdp import _core
from robustmdp.models.columns import LARGEST

NAMES = ("state", "action", "next_state", "probability", "reward")
VARIANTS = [import_module(f"robustmdp._core_{name}") for name in _core.available()]
each_variant = pytest.mark.parametrize("core", VARIANTS, ids=_core.available())
NONE = np.empty(0, np.int64)


def arrays_for(capacity: int) -> dict[str, np.ndarray]:
    kinds = {"indices": np.int32, "probabilities": np.float64, "rewards": np.float64}
    kinds |= {"states": np.int32, "actions": np.int32}
    return {"indptr": np.empty(capacity + 1, np.int64)} | {
        name: np.empty(capacity, kind) for name, kind in kinds.items()
    }


def empty(core: Any, capacity: int) -> Any:
    return core.SortedRows(**arrays_for(capacity), largest_index=LARGEST)


def columns(rows: list[tuple[Any, ...]]) -> list[np.ndarray]:
    table = list(zip(*rows, strict=True)) or [()] * 5
    return [np.array(column, np.float64 if i in (3, 4) else np.int64) for i, column in enumerate(table)]


def random_rows(rng: np.random.Generator, longest: int) -> list[tuple[Any, ...]]:
    """Pairs in order, successors in any order and often twice, some of probability 0."""
    rows = []
    for state in range(int(rng.integers(1, 6))):
        for action in range(int(rng.integers(1, 4))):
            for _ in range(int(rng.integers(1, longest + 1))):
                probability = float(rng.random()) if rng.random() < 0.8 else 0.0
                rows.append((state, action, int(rng.integers(0, longest)), probability, float(rng.normal())))
    return rows


def naive(rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {"indptr": [0], "indices": [], "probabilities": [], "rewards": []}
    out |= {"states": [], "actions": []}
    for (state, action), members in groupby(rows, key=lambda row: row[:2]):
        stored = sorted((row for row in members if row[3] > 0), key=lambda row: row[2])
        if not stored:
            continue
        out["states"].append(state)
        out["actions"].append(action)
        for _, _, successor, probability, reward in stored:
            out["indices"].append(successor)
            out["probabilities"].append(probability)
            out["rewards"].append(reward)
        out["indptr"].append(len(out["indices"]))
    return out


@each_variant
@pytest.mark.parametrize("longest", [1, 4, 40, 300])
def test_against_a_naive_builder(core: Any, longest: int) -> None:
    for seed in range(20):
        rng = np.random.default_rng([seed, longest])
        rows = random_rows(rng, longest)
        arrays = arrays_for(len(rows) + int(rng.integers(0, 1000)))
        builder = core.SortedRows(**arrays, largest_index=LARGEST)
        start = 0
        while start < len(rows):
            stop = start + int(rng.integers(0, len(rows) + 1))
            assert builder.append(*(column for column in columns(rows[start:stop])), NONE)
            start = stop
        assert builder.flaw is core.Flaw.none
        wanted = naive(rows)
        builder.finish()
        assert (builder.n_pairs, builder.n_entries) == (len(wanted["states"]), len(wanted["indices"]))
        assert {name: array[: len(wanted[name])].tolist() for name, array in arrays.items()} == wanted
        starts = wanted["indptr"]
        within = [(wanted["indices"][i:j], wanted["rewards"][i:j]) for i, j in pairwise(starts)]
        assert builder.repeats_successors == any(len(set(successors)) < len(successors) for successors, _ in within)
        assert builder.rewards_on_successors == any(len(set(rewards)) > 1 for _, rewards in within)
        largest = [max(row[0], row[2]) for row in rows]
        assert builder.largest_state == max(largest)
        assert builder.largest_state_row == largest.index(max(largest))


@each_variant
def test_nothing_gives_no_rows(core: Any) -> None:
    arrays = arrays_for(0)
    builder = core.SortedRows(**arrays, largest_index=LARGEST)
    assert builder.append(*columns([]), NONE)
    builder.finish()
    assert (builder.n_pairs, builder.n_entries, builder.largest_state) == (0, 0, -1)
    assert arrays["indptr"].tolist() == [0]


@each_variant
@pytest.mark.parametrize(
    ("flaw", "row"),
    [
        ("state", (-1, 0, 0, 1.0, 0.0)),
        ("state", (LARGEST + 1, 0, 0, 1.0, 0.0)),
        ("state", (2**63 - 1, 0, 0, 1.0, 0.0)),
        ("action", (1, -1, 0, 1.0, 0.0)),
        ("action", (1, 2**40, 0, 1.0, 0.0)),
        ("next_state", (1, 0, -(2**63), 1.0, 0.0)),
        ("next_state", (1, 0, LARGEST + 1, 1.0, 0.0)),
        ("probability", (1, 0, 0, -1e-300, 0.0)),
        ("probability", (1, 0, 0, np.nan, 0.0)),
        ("probability", (1, 0, 0, np.inf, 0.0)),
        ("reward", (1, 0, 0, 1.0, np.nan)),
        ("reward", (1, 0, 0, 0.0, -np.inf)),
        ("order", (0, 0, 0, 1.0, 0.0)),
        ("capacity", (1, 0, 0, 1.0, 0.0)),
    ],
)
def test_the_first_flaw_is_named(core: Any, flaw: str, row: tuple[Any, ...]) -> None:
    good = [(0, 1, 3, 1.0, 0.0)] * 4
    for before in ([good], [good[:2], good[2:]], [[], good]):
        builder = empty(core, 4 if flaw == "capacity" else 9)
        for block in before[:-1]:
            assert builder.append(*columns(block), NONE)
        assert not builder.append(*columns([*before[-1], row, (-9, -9, -9, 1.0, 0.0)]), NONE)
        assert builder.flaw is getattr(core.Flaw, flaw)
        assert builder.flaw.name == flaw
        assert builder.flaw_row == 4


@each_variant
def test_the_largest_numbers_are_stored(core: Any) -> None:
    arrays = arrays_for(1)
    assert core.SortedRows(**arrays, largest_index=LARGEST).append(
        *columns([(LARGEST, LARGEST, LARGEST, 1.0, 0.0)]), NONE
    )
    assert [arrays[name].tolist() for name in ("states", "actions", "indices")] == [[LARGEST]] * 3


@each_variant
def test_outcomes_must_be_one_per_pair(core: Any) -> None:
    rows = columns([(0, 0, 0, 1.0, 0.0), (0, 1, 0, 0.5, 0.0), (0, 1, 1, 0.5, 0.0)])
    assert empty(core, 3).append(*rows, np.array([0, 4, 4]))
    builder = empty(core, 3)
    assert not builder.append(*rows, np.array([0, 4, 5]))
    assert (builder.flaw, builder.flaw_row) == (core.Flaw.outcome, 2)


@each_variant
def test_columns_that_the_binding_refuses(core: Any) -> None:
    good = columns([(0, 0, 0, 0.5, 0.0), (0, 0, 1, 0.5, 0.0)])
    builder = empty(core, 9)
    for place in range(5):
        others = [good[place].astype(np.int32), good[place].reshape(1, 2), np.repeat(good[place], 2)[::2], [0, 1]]
        for other in others:
            with pytest.raises(TypeError):
                builder.append(*(other if i == place else column for i, column in enumerate(good)), NONE)
        with pytest.raises(ValueError, match=r"^columns must have the same length, and indptr one more$"):
            builder.append(*(column[:1] if i == place else column for i, column in enumerate(good)), NONE)
    with pytest.raises(ValueError, match=r"^columns must have the same length, and indptr one more$"):
        builder.append(*good, np.zeros(1, np.int64))
    for column in good:
        column.flags.writeable = False
    assert builder.append(*good, NONE)
    builder.finish()
    with pytest.raises(ValueError, match=r"^finished rows take no more transitions$"):
        builder.append(*good, NONE)
    with pytest.raises(ValueError, match=r"^finished rows take no more transitions$"):
        builder.finish()


@each_variant
@pytest.mark.parametrize("name", arrays_for(0))
def test_arrays_that_the_binding_refuses(core: Any, name: str) -> None:
    good = arrays_for(3)
    for other in (np.empty(9), np.empty(9, np.float32), np.repeat(good[name], 2)[::2], good[name].tolist()):
        if not (isinstance(other, np.ndarray) and other.dtype == good[name].dtype and other.flags.c_contiguous):
            with pytest.raises(TypeError):
                core.SortedRows(**good | {name: other}, largest_index=LARGEST)
    for length in (0, 2, 5):
        with pytest.raises(ValueError, match=r"^columns must have the same length, and indptr one more$"):
            core.SortedRows(**good | {name: np.empty(length, good[name].dtype)}, largest_index=LARGEST)
    good[name].flags.writeable = False
    with pytest.raises(TypeError):
        core.SortedRows(**good, largest_index=LARGEST)


def test_finished_arrays_may_be_resized() -> None:
    arrays = arrays_for(5)
    builder = _core.SortedRows(**arrays, largest_index=LARGEST)
    assert builder.append(*columns([(0, 0, 0, 1.0, 0.5)]), NONE)
    held = sys.getrefcount(arrays["indices"])
    builder.finish()
    assert sys.getrefcount(arrays["indices"]) < held
    arrays["indices"].resize(1)
    assert arrays["indices"].tolist() == [0]
