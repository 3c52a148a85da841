"""Rows assembled block by block are those of MDP.from_rows, whatever comes in whatever order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robustmdp as rm
from robustmdp.io import read, table_files
from robustmdp.models.assembly import Block, assemble
from robustmdp.models.headers import MODEL_COLUMNS

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")


class Nowhere:
    def label(self, column: str) -> str:
        return column

    def place(self, row: int) -> str:
        return f"row {row}"


def blocks_of(columns: tuple[Any, ...], size: int) -> list[Block]:
    arrays = [np.asarray(column, np.float64 if number in (3, 4) else np.int64) for number, column in enumerate(columns)]
    starts = range(0, len(arrays[0]), size)
    return [Block(*(array[start : start + size] for array in arrays), np.empty(0, np.int64)) for start in starts]


def table_of(rng: np.random.Generator, longest: int, *, dyadic: bool) -> tuple[np.ndarray, ...]:
    """Pairs in order, successors in any order and often twice, some with probability 0."""
    parts = []
    n_states = int(rng.integers(1, 6))
    for state in range(n_states):
        for action in sorted(rng.choice(4, size=int(rng.integers(1, 5)), replace=False).tolist()):
            count = int(rng.integers(1, longest + 1))
            weights = rng.integers(0, 5, count) + (np.arange(count) == 0)
            p = weights / weights.sum()
            if not dyadic:
                p = p * (1 + rng.choice([0.0, 3e-8]))
            parts.append(
                (
                    np.full(count, state),
                    np.full(count, action),
                    rng.integers(0, n_states, count),
                    p,
                    rng.normal(size=count),
                )
            )
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def assert_same(one: rm.MDP, other: rm.MDP) -> None:
    assert one == other
    assert one.probabilities.tobytes() == other.probabilities.tobytes()
    assert one.rewards.tobytes() == other.rewards.tobytes()


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("longest", [3, 12, 200])
def test_files_give_what_from_rows_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longest: int, shuffled: bool
) -> None:
    monkeypatch.setattr(table_files, "BLOCK", 7)  # rows lie across batches
    for seed in range(30):
        rng = np.random.default_rng([seed, longest])
        columns = table_of(rng, longest, dyadic=bool(seed % 2))
        if shuffled:
            order = rng.permutation(len(columns[0]))
            columns = tuple(column[order] for column in columns)
        wanted = rm.MDP.from_rows(*columns, 0.9)
        table = pa.table(dict(zip(MODEL_COLUMNS.values(), columns, strict=True)))
        pa.parquet.write_table(table, tmp_path / "model.parquet", row_group_size=50)
        assert_same(read(tmp_path / "model.parquet", 0.9), wanted)
        rows = "".join(f"{','.join(map(repr, row))}\n" for row in zip(*(c.tolist() for c in columns), strict=True))
        (tmp_path / "model.csv").write_text(",".join(MODEL_COLUMNS.values()) + "\n" + rows)
        assert_same(read(tmp_path / "model.csv", 0.9), wanted)


@settings(deadline=None)
@given(st.data())
def test_blocks_of_any_size_give_the_same(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    columns = table_of(rng, 6, dyadic=True)
    whole, cut = (
        assemble(blocks_of(columns, size), len(columns[0]), Nowhere())
        for size in (len(columns[0]), data.draw(st.integers(1, 9)))
    )
    assert whole is not None
    assert cut is not None
    for one, other in zip(whole, cut, strict=True):
        assert np.array_equal(one, other)


def test_what_is_not_sorted_is_noticed() -> None:
    ones = ([1.0, 1.0], [0.0, 0.0])
    for states, actions in (([1, 0], [0, 0]), ([0, 0], [1, 0])):
        for size in (1, 2):
            assert assemble(blocks_of((states, actions, [0, 0], *ones), size), 2, Nowhere()) is None
    assert assemble(blocks_of(([0, 1], [1, 0], [0, 0], *ones), 1), 2, Nowhere()) is not None


def test_more_than_promised_is_refused() -> None:
    blocks = blocks_of(([0, 0], [0, 1], [0, 0], [1.0, 1.0], [0.0, 0.0]), 1)
    with pytest.raises(ValueError, match=r"^there must be at most 1 transitions: more came$"):
        assemble(blocks, 1, Nowhere())


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "uint64", "float32", "float64", "float16"])
def test_numbers_of_any_type_are_taken(tmp_path: Path, kind: str) -> None:
    columns = {own: np.array(values, kind) for own, values in zip(MODEL_COLUMNS.values(), ROWS, strict=True)}
    pa.parquet.write_table(pa.table(columns), tmp_path / "model.parquet")
    assert_same(read(tmp_path / "model.parquet", 0.9), rm.MDP.from_rows(*ROWS, 0.9))


ROWS = ([0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1], [2, 3, 4])


@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        ("idstatefrom", [0, None, 1], "idstatefrom must be a whole number: got nan at row 1 of model.parquet"),
        ("idstatefrom", [0.0, 0.5, 1.0], "idstatefrom must be a whole number: got 0.5 at row 1 of model.parquet"),
        ("idstateto", [1, 0, 2**63], "idstateto must lie in 0..2147483646: got 9223372036854775807 at row 2"),
        ("reward", ["0", "1", "0"], "column 'reward' of model.parquet must hold numbers: it holds string"),
        ("idstatefrom", ["0", "0", "1"], "column 'idstatefrom' of model.parquet must hold numbers: it holds string"),
        ("idaction", [True, False, True], "column 'idaction' of model.parquet must hold numbers: it holds bool"),
        ("reward", [[1], [2], [3]], "column 'reward' of model.parquet must hold numbers: it holds list<"),
        ("reward", [1.0, None, 3.0], "reward must be finite: got nan at row 1 of model.parquet"),
        (
            "probability",
            [1.0, -1.0, 1.0],
            "probability must be finite and at least 0: got -1.0 at row 1 of model.parquet",
        ),
        (
            "probability",
            [1.0, 0.9, 1.0],
            "the probabilities of state 0 and action 1 must sum to 1: got 0.9 at row 1 of",
        ),
    ],
)
def test_refusals_of_a_parquet_file_name_row_and_column(
    tmp_path: Path, column: str, values: list[Any], sentence: str
) -> None:
    table = dict(zip(MODEL_COLUMNS.values(), ROWS, strict=True)) | {column: values}
    arrays = {
        name: pa.array(entries, pa.uint64() if max(map(_size, entries)) >= 2**63 else None)
        for name, entries in table.items()
    }
    pa.parquet.write_table(pa.table(arrays), tmp_path / "model.parquet")
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        read(tmp_path / "model.parquet", 0.9)


def _size(entry: Any) -> float:
    return entry if isinstance(entry, (int, float)) else 0


def test_a_file_that_promises_more_rows_than_it_can_hold_is_refused(tmp_path: Path) -> None:
    columns = {own: np.zeros(2_000_000, np.int8) for own in MODEL_COLUMNS.values()}
    path = tmp_path / "model.parquet"
    pa.parquet.write_table(pa.table(columns), path, max_rows_per_page=10**9, data_page_size=10**9)
    with pytest.raises(ValueError, match=r"^model.parquet cannot hold the 2000000 rows that it tells of in \d+ bytes$"):
        read(path, 0.9)
