"""Tables: how they are made, cut, grouped, compared and refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustmdp.table import Table

SMALL = Table.of(weight=[0.5, 2.0, 0.5, 1.0], name=["a", "b", "a", "c"], error=[4.0, 3.0, 2.0, 1.0])


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in table.columns.values()), strict=True))


def test_single_values_stand_in_every_row() -> None:
    table = Table.of(seed=[0, 1, 2], stay=0.8, status="done", whole=True)
    assert rows_of(table) == [(seed, 0.8, "done", True) for seed in range(3)]
    assert len(table) == 3


def test_single_values_alone_are_one_row() -> None:
    assert rows_of(Table.of(stay=0.8, name="x")) == [(0.8, "x")]


def test_a_table_may_be_empty() -> None:
    table = Table.of(seed=np.array([], np.int64), stay=0.8)
    assert len(table) == len(Table({})) == 0
    assert list(table.groups("seed")) == []
    assert table.values("stay") == []


@pytest.mark.parametrize(
    "make",
    [
        lambda: Table.of(one=[1, 2], two=[1, 2, 3]),
        lambda: Table({"one": np.zeros(2), "two": np.zeros(3)}),
    ],
)
def test_columns_of_unequal_length_are_refused(make: Any) -> None:
    sentence = "the columns of a table must be equally long: got {'one': 2, 'two': 3}"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        make()


@pytest.mark.parametrize(
    "ask",
    [
        lambda: SMALL["eror"],
        lambda: SMALL.where(eror=1.0),
        lambda: SMALL.values("eror"),
        lambda: list(SMALL.groups("weight", "eror")),
    ],
    ids=["[]", "where", "values", "groups"],
)
def test_an_unknown_column_is_refused_with_the_nearest(ask: Any) -> None:
    sentence = "column must be one of weight, name, error: got 'eror'; did you mean 'error'?"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        ask()


def test_one_below_the_other() -> None:
    other = Table.of(error=[9.0], weight=[7.0], name=["long name"])  # in another order
    joined = Table.concat([SMALL, other])
    assert list(joined.columns) == ["weight", "name", "error"]
    assert rows_of(joined) == [*rows_of(SMALL), (7.0, "long name", 9.0)]


def test_tables_of_other_columns_are_not_joined() -> None:
    sentence = "tables must have the same columns ['weight', 'name', 'error']: got ['weight', 'error']"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        Table.concat([SMALL, SMALL.without("name")])


def test_rows_by_value_by_mask_and_by_number() -> None:
    assert rows_of(SMALL.where(weight=0.5, name="a")) == [(0.5, "a", 4.0), (0.5, "a", 2.0)]
    assert rows_of(SMALL.where(weight=9.0)) == []
    assert rows_of(SMALL.take(SMALL["error"] < 3)) == [(0.5, "a", 2.0), (1.0, "c", 1.0)]
    assert rows_of(SMALL.take(np.array([3, 0]))) == [(1.0, "c", 1.0), (0.5, "a", 4.0)]


def test_values_are_sorted_and_plain() -> None:
    assert SMALL.values("weight") == [0.5, 1.0, 2.0]
    assert SMALL.values("name") == ["a", "b", "c"]
    assert [type(value) for value in (SMALL.values("weight")[0], SMALL.values("name")[0])] == [float, str]


def test_columns_left_out() -> None:
    assert list(SMALL.without("name", "unknown").columns) == ["weight", "error"]
    assert list(SMALL.columns) == ["weight", "name", "error"]


def test_a_row_is_a_dict_of_plain_values() -> None:
    first = SMALL[0]
    assert first == {"weight": 0.5, "name": "a", "error": 4.0}
    assert [type(value) for value in first.values()] == [float, str, float]
    assert SMALL[-1] == SMALL[np.int64(3)] == {"weight": 1.0, "name": "c", "error": 1.0}
    assert list(SMALL) == [SMALL[row] for row in range(len(SMALL))]
    assert list(Table({})) == []


def test_a_slice_is_a_table() -> None:
    assert rows_of(SMALL[1:3]) == [(2.0, "b", 3.0), (0.5, "a", 2.0)]
    assert rows_of(SMALL[::-1])[0] == (1.0, "c", 1.0)
    assert SMALL.with_notes(seed=3)[:2].notes == {"seed": 3}


@pytest.mark.parametrize("row", [4, -5])
def test_a_row_that_is_not_there_is_refused(row: int) -> None:
    with pytest.raises(IndexError, match=rf"^row must lie in 0\.\.3: got {row}$"):
        SMALL[row]


def test_others_take_a_table_as_it_is() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(SMALL)
    assert frame.equals(SMALL.to_frame())
    pyarrow = pytest.importorskip("pyarrow")
    assert pyarrow.table(SMALL).to_pydict() == {name: column.tolist() for name, column in SMALL.columns.items()}


def test_a_table_of_a_kind_keeps_it_with_its_notes() -> None:
    class Kind(Table):
        pass

    assert type(Kind(SMALL.columns).with_notes(seed=3)) is Kind


def test_notes_stay_with_the_rows() -> None:
    noted = SMALL.with_notes(version="1").with_notes(seed=3)
    assert noted.notes == {"version": "1", "seed": 3}
    for part in (noted.where(weight=0.5), noted.take(np.array([0])), noted.without("name")):
        assert part.notes == noted.notes
    assert SMALL.notes == {}


def test_as_a_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = SMALL.to_frame()
    expected = pandas.DataFrame({"weight": [0.5, 2.0, 0.5, 1.0], "name": list("abac"), "error": [4.0, 3.0, 2.0, 1.0]})
    assert list(frame.columns) == list(expected.columns)
    assert (frame == expected).all().all()


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        (Table.of(x=[1.0, np.nan], y=["a", "b"]), True),
        (Table.of(x=[1.0, np.nan], y=["a", "b"]).with_notes(made="elsewhere"), True),
        (Table.of(x=[np.nan, 1.0], y=["a", "b"]), False),
        (Table.of(x=[np.nextafter(1.0, 2.0), np.nan], y=["a", "b"]), False),
        (Table.of(x=[1.0, np.inf], y=["a", "b"]), False),
        (Table.of(x=[1.0, np.nan], y=["a", "c"]), False),
        (Table.of(x=[1.0], y=["a"]), False),
        (Table.of(x=[1.0, np.nan]), False),
        (Table.of(y=["a", "b"], x=[1.0, np.nan]), False),  # the order of columns is part of a table
    ],
)
def test_equality(other: Table, equal: bool) -> None:
    table = Table.of(x=[1.0, np.nan], y=["a", "b"])
    assert (table == other) is equal
    assert (hash(table) == hash(other)) or not equal


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ([1, 2], [1.0, 2.0], False),
        ([True, False], [1, 0], False),
        (["1"], [1], False),
        (np.array([1, 2], np.int32), np.array([1, 2], np.int64), True),
        (np.array(["a"], "<U1"), np.array(["a"], "<U9"), True),
    ],
)
def test_equality_is_of_kinds_not_of_widths(one: Any, other: Any, equal: bool) -> None:
    assert (Table.of(x=one) == Table.of(x=other)) is equal


def test_a_table_equals_no_other_thing() -> None:
    assert SMALL.columns != SMALL


cells = st.tuples(
    st.integers(-2, 2), st.sampled_from("ab"), st.sampled_from([-0.5, 0.0, 1.0]), st.booleans(), st.integers()
)


@given(st.lists(cells, max_size=30), st.lists(st.sampled_from("nswb"), max_size=4, unique=True))
def test_groups_are_in_order_and_complete(rows: list[Any], names: list[str]) -> None:
    dtypes = {"n": np.int64, "s": np.str_, "w": np.float64, "b": np.bool_}
    columns = list(zip(*rows, strict=True)) or [()] * 5
    table = Table(
        {name: np.array(column, dtypes[name]) for name, column in zip(dtypes, columns, strict=False)}
        | {"at": np.arange(len(rows))}
    )
    found = list(table.groups(*names))
    keys = [key for key, _ in found]
    assert keys == sorted(set(keys))  # in the order of the columns, no key twice
    places = list(table.columns)[:-1]
    for key, group in found:
        wanted = [i for i, row in enumerate(rows) if tuple(row[places.index(name)] for name in names) == key]
        assert group["at"].tolist() == wanted  # every row, and in the order of the table
    assert sum(len(group) for _, group in found) == len(rows)


def test_keys_of_groups_are_plain() -> None:
    ((key, _),) = Table.of(n=[3], w=[0.5], s=["x"]).groups("n", "w", "s")
    assert [type(part) for part in key] == [int, float, str]


def test_how_it_is_shown() -> None:
    assert "4" in repr(SMALL)
    assert "weight" in SMALL._repr_html_()
    titled = SMALL.with_notes(title="four <rows>")
    assert repr(titled).startswith("four <rows>\n")
    assert "four &lt;rows&gt;" in titled._repr_html_()
