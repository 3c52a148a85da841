"""Tables in files: back to the bit, whole or not at all, and what is no table is refused in a sentence."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robustmdp as rm
from robustmdp.io.tables import read_table, write_table
from robustmdp.table import Table

pytest.importorskip("pyarrow")

FLOATS = [0.1, -0.0, np.nan, np.inf, -np.inf, 5e-324, -2.5e-310, 1.7976931348623157e308, np.nextafter(1.0, 2.0)]
ALL_KINDS = Table.of(
    x=FLOATS,
    n=[0, -1, 2**63 - 1, -(2**63), 7, 7, 7, 7, 7],
    name=["", "a,b", 'quoted "word"', "two\nlines", "λ = 0.5", "日本語", " spaces ", "nan", "x" * 300],
    whole=[True, False] * 4 + [True],
)
NOTES = {
    "version": "0.1.0",
    "parameters": {"stay": [0.6, 0.8], "divergence": "chi2", "seeds": 100},
    "wall_seconds": 1.25,
    "λ": None,
}


def bits(column: np.ndarray) -> Any:
    return column.view(np.int64).tolist() if column.dtype.kind == "f" else column.tolist()


def assert_same_bits(one: Table, other: Table) -> None:
    assert one == other
    for name in one.columns:
        assert one[name].dtype.kind == other[name].dtype.kind
        assert bits(one[name]) == bits(other[name])


def test_parquet_gives_every_bit_and_every_note_back(tmp_path: Path) -> None:
    path = write_table(ALL_KINDS.with_notes(**NOTES), tmp_path / "new" / "folder" / "table.parquet")
    back = read_table(path)
    assert_same_bits(back, ALL_KINDS)
    assert back.notes == NOTES
    assert [file.name for file in path.parent.iterdir()] == ["table.parquet"]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(width=64), st.integers(-(2**63), 2**63 - 1), st.text("aλ\n\"', ", max_size=4), st.booleans()
        ),
        max_size=8,
    )
)
def test_any_rows_come_back_from_parquet(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    dtypes = {"x": np.float64, "n": np.int64, "s": np.str_, "b": np.bool_}
    table = Table(
        {name: np.array(column, dtype) for (name, dtype), column in zip(dtypes.items(), columns, strict=True)}
    )
    path = tmp_path_factory.getbasetemp() / "any.parquet"
    back = read_table(write_table(table, path))
    assert back == table
    assert back.notes == {}


def test_csv_gives_every_number_back_to_a_naive_reader(tmp_path: Path) -> None:
    path = write_table(ALL_KINDS, tmp_path / "table.csv")
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    assert header == ["x", "n", "name", "whole"]
    x, n, name, whole = zip(*rows, strict=True)
    assert bits(np.array([float(cell) for cell in x])) == bits(ALL_KINDS["x"])
    assert [int(cell) for cell in n] == ALL_KINDS["n"].tolist()
    assert list(name) == ALL_KINDS["name"].tolist()
    assert [cell == "True" for cell in whole] == ALL_KINDS["whole"].tolist()
    assert set(whole) == {"True", "False"}


def test_json_is_a_list_of_rows(tmp_path: Path) -> None:
    rows = json.loads(write_table(ALL_KINDS, tmp_path / "table.json").read_text())
    assert [row["name"] for row in rows] == ALL_KINDS["name"].tolist()
    assert [row["n"] for row in rows] == ALL_KINDS["n"].tolist()
    finite = np.isfinite(ALL_KINDS["x"])
    assert [row["x"] is None for row in rows] == (~finite).tolist()
    assert bits(np.array([row["x"] for row in rows if row["x"] is not None])) == bits(ALL_KINDS["x"][finite])


@pytest.mark.parametrize("name", ["curve.csv", "curve.parquet", "curve.json"])
def test_write_takes_a_curve(tmp_path: Path, name: str) -> None:
    pandas = pytest.importorskip("pandas")
    curve = rm.robustness_curve(rm.problems.machine_replacement(), rm.KL(), [10.0, 1.0], initial=0)
    path = rm.write(curve, tmp_path / name)
    read = {".csv": pandas.read_csv, ".parquet": pandas.read_parquet, ".json": pandas.read_json}[path.suffix]
    back = read(path, **({"precise_float": True} if path.suffix == ".json" else {}))
    pandas.testing.assert_frame_equal(back, pandas.DataFrame(curve), check_dtype=False, rtol=1e-14)


def test_a_format_overrules_the_ending(tmp_path: Path) -> None:
    path = rm.write(ALL_KINDS, tmp_path / "table.txt", format="csv")
    assert path.read_bytes() == write_table(ALL_KINDS, tmp_path / "table.csv").read_bytes()
    with pytest.raises(
        ValueError, match=r"^format must be one of csv, parquet, json: got 'cvs'; did you mean 'csv'\?$"
    ):
        rm.write(ALL_KINDS, tmp_path / "table.txt", format="cvs")


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".json"])
def test_a_write_that_fails_leaves_the_old_file_whole(tmp_path: Path, suffix: str) -> None:
    path = write_table(Table.of(x=[1.0, 2.0]), tmp_path / f"table{suffix}")
    before = path.read_bytes()
    # 2000 good rows first, so that something has been written when it fails.
    broken = Table({"x": np.arange(2001.0), "y": np.array([*["a"] * 2000, Untellable()], dtype=object)})
    with pytest.raises(Exception, match=r"."):
        write_table(broken, path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


class Untellable:
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_notes_that_cannot_be_written_leave_the_old_file_whole(tmp_path: Path) -> None:
    path = write_table(Table.of(x=[1.0]), tmp_path / "table.parquet")
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_table(Table.of(x=[2.0]).with_notes(thing=object()), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["table.parquet"]


@pytest.mark.parametrize("name", ["table.txt", "table", "table.parquet.gz"])
def test_another_suffix_is_refused(tmp_path: Path, name: str) -> None:
    sentence = f"a table must end in .csv, .parquet, .pq, .json, or say its format: got {name!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        write_table(ALL_KINDS, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def of_parquet(cut: slice) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return write_table(ALL_KINDS, Path(folder) / "table.parquet").read_bytes()[cut]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"x,n\n1,2\n",
        b"PAR1",
        b"PAR1" + bytes(100) + b"PAR1",
        of_parquet(slice(None, -10)),
        of_parquet(slice(None, 500)),
        of_parquet(slice(500, None)),
    ],
    ids=["nothing", "csv", "4 bytes", "zeros", "without its end", "beginning", "end"],
)
def test_what_is_not_parquet_is_refused_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "table.parquet"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} must be a Parquet file: ") as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / "none.parquet"))):
        read_table(tmp_path / "none.parquet")


def test_a_table_of_another_program_has_no_notes(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"x": [1.0, 2.0]}), tmp_path / "table.parquet")
    assert read_table(tmp_path / "table.parquet") == Table.of(x=[1.0, 2.0])
    assert read_table(tmp_path / "table.parquet").notes == {}


def test_notes_of_another_kind_are_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "table.parquet"
    parquet.write_table(pa.table({"x": [1.0]}).replace_schema_metadata({b"robustmdp": b"[1, 2]"}), path)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} must hold notes that this package wrote: "):
        read_table(path)
