"""Names of states and actions in memory: the same numbers from any kind of table, and refusals that name the entry."""

from __future__ import annotations

import pickle
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import robustmdp as rm

STATES, ACTIONS = ("depot 10", "depot 2", "\u00e9t\u00e9"), ("buy", "wait")
N = 200


def numbered() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "state": np.append(2, rng.integers(0, 3, N - 1)),
        "action": np.append([1, 0], rng.integers(0, 2, N - 2)),
        "reward": rng.integers(0, 5, N) / 4,
        "next_state": rng.integers(0, 3, N),
        "terminated": rng.random(N) < 0.1,
    }


def named() -> dict[str, Any]:
    table = numbered()
    return {
        **table,
        "state": [STATES[s] for s in table["state"]],
        "action": [ACTIONS[a] for a in table["action"]],
        "next_state": [STATES[s] for s in table["next_state"]],
    }


class ColumnByColumn:
    """A frame of a package without Arrow: columns by name, and nothing else."""

    columns = tuple(named())

    def __len__(self) -> int:
        return N

    def __getitem__(self, name: str) -> Any:
        values = np.array(named()[name], object if name in ("state", "action", "next_state") else None)
        return SimpleNamespace(to_numpy=lambda: values)


class Stream:
    """A table of any package that speaks Arrow's C interface."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.table(named()).__arrow_c_stream__(requested_schema)


def categories() -> pd.DataFrame:
    frame = pd.DataFrame(named()).astype({"state": "category", "action": "category"})
    frame["state"] = frame["state"].cat.set_categories(["never", *STATES[::-1]])  # in another order, with one more
    return frame


FRAMES = {
    "dict": named,
    "pandas": lambda: pd.DataFrame(named()),
    "pandas objects": lambda: pd.DataFrame(named()).astype({"state": object, "action": object}),
    "pandas categories": categories,
    "pandas of Arrow": lambda: pd.DataFrame(named()).convert_dtypes(dtype_backend="pyarrow"),
    "pandas with an index": lambda: pd.DataFrame(named(), index=np.arange(N)[::-1]),
    "Arrow": lambda: pa.table(named()),
    "Arrow chunks": lambda: pa.concat_tables([pa.table(named()).slice(0, 7), pa.table(named()).slice(7)]),
    "Arrow dictionaries": lambda: pa.table(
        {name: pa.array(column).dictionary_encode() if name == "state" else column for name, column in named().items()}
    ),
    "Arrow dictionaries without a sign": lambda: pa.table(
        {**named(), "action": pa.array(named()["action"]).cast(pa.dictionary(pa.uint8(), pa.large_string()))}
    ),
    "Arrow views": lambda: pa.table(named()).cast(
        pa.schema([(name, pa.string_view() if "state" in name else field.type) for name, field in
                   zip(named(), pa.table(named()).schema, strict=True)])
    ),
    "a batch": lambda: pa.table(named()).to_batches()[0],
    "a stream": Stream,
    "columns alone": ColumnByColumn,
}  # fmt: skip


def rows(log: rm.Trajectory) -> list[list[Any]]:
    (piece,) = log.chunks(N)
    return [column.tolist() for column in piece]


@pytest.mark.parametrize("kind", FRAMES)
def test_every_frame_gives_the_same_log(kind: str) -> None:
    log = rm.Trajectory.from_frame(FRAMES[kind](), discount=0.9)
    assert rows(log) == rows(rm.Trajectory(**numbered()))
    assert (log.state_names, log.action_names, log.discount) == (STATES, ACTIONS, 0.9)
    assert (log.n_states, log.n_actions, log.length) == (3, 2, N)


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(named())
    for each in (frame, frame.cast({"state": polars.Categorical, "action": polars.Enum(ACTIONS)})):
        log = rm.Trajectory.from_frame(each)
        assert (rows(log), log.state_names) == (rows(rm.Trajectory(**numbered())), STATES)


@pytest.mark.parametrize("kind", ["pandas", "pandas categories", "columns alone", "dict"])
def test_pandas_needs_no_pyarrow(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = FRAMES[kind]()
    if kind == "pandas":
        frame = frame.astype(dict.fromkeys(("state", "action", "next_state"), object))  # as pandas has them then
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert rows(rm.Trajectory.from_frame(frame)) == rows(rm.Trajectory(**numbered()))


def test_a_stream_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pyarrow must be installed to read Arrow tables: pip install 'robustmdp\["):
        rm.Trajectory.from_frame(Stream())


def test_the_order_of_rows_does_not_matter() -> None:
    order = np.random.default_rng(1).permutation(N)
    frame = pd.DataFrame(named())
    one, other = (rm.estimate(table, 0.9) for table in (frame, frame.iloc[order]))
    assert one.model == other.model
    assert one.model.state_names == STATES


def test_estimates_of_names_and_of_numbers_have_the_same_bits() -> None:
    plain = rm.estimate(rm.Trajectory(**numbered()), 0.9).model
    found = rm.estimate(pd.DataFrame(named()), 0.9).model
    assert (found.probabilities.tobytes(), found.rewards.tobytes()) == (
        plain.probabilities.tobytes(),
        plain.rewards.tobytes(),
    )
    assert (found.state_names, found.action_names) == (STATES, ACTIONS)
    again = rm.estimate(pickle.loads(pickle.dumps(rm.Trajectory.from_frame(named()))), 0.9).model
    assert again == found


def test_states_alone_may_have_names() -> None:
    table = named() | {"action": numbered()["action"]}
    log = rm.Trajectory.from_frame(table)
    assert rows(log) == rows(rm.Trajectory(**numbered()))
    assert (log.state_names, log.action_names) == (STATES, None)


def test_names_that_are_given_keep_their_order() -> None:
    log = rm.Trajectory(**named(), state_names=["new", *STATES[::-1]])
    assert log.n_states == 4
    (piece,) = log.chunks(N)
    assert piece.state.tolist() == [3 - s for s in numbered()["state"]]
    with pytest.raises(
        ValueError, match=r"^state must be one of the 2 names that are given: got 'd.* at state\[\d+\]$"
    ):
        rm.Trajectory(**named(), state_names=["new", "\u00e9t\u00e9"])


def test_names_meet_those_of_a_known_model() -> None:
    """Numbers differ: the model's names have an order of their own, and one more."""
    names = ["new", *STATES[::-1]]
    stays = np.arange(4)
    known = rm.MDP.from_rows(
        np.tile(stays, 2), np.repeat([0, 1], 4), np.tile(stays, 2), np.ones(8), np.zeros(8), 0.9,
        state_names=names, action_names=ACTIONS[::-1],
    )  # fmt: skip
    found = rm.estimate(named(), 0.9, known=known)
    assert found.model.state_names == tuple(names)
    for state in range(3):
        for action in range(2):
            seen = (numbered()["state"] == state) & (numbered()["action"] == action)
            row = names.index(STATES[state]), ACTIONS[::-1].index(ACTIONS[action])
            assert found.counts.visits[row] == seen.sum()
    lacking = rm.MDP.from_rows([0, 1, 2], [0, 1, 0], [0, 1, 2], [1.0] * 3, [0.0] * 3, 0.9, state_names=["a", "b", "c"])
    with pytest.raises(
        ValueError, match=r"^the known model must have all states of the log: it lacks depot 10, depot 2, "
    ):
        rm.estimate(named(), 0.9, known=lacking)


MODEL = {
    "state": ["worn", "new", "new"],
    "action": ["fix", "run", "run"],
    "next_state": ["new", "worn", "new"],
    "probability": [1.0, 0.25, 0.75],
    "reward": [-3.0, 5.0, 5.0],
}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pa.table], ids=["dict", "pandas", "Arrow"])
@pytest.mark.parametrize("craams", [False, True])
def test_models_from_frames(make: Any, craams: bool) -> None:
    own = {"state": "idstatefrom", "action": "idaction", "next_state": "idstateto"} if craams else {}
    frame = make({own.get(name, name): column for name, column in MODEL.items()})
    mdp = rm.MDP.from_frame(frame, 0.9)
    assert (mdp.state_names, mdp.action_names) == (("new", "worn"), ("fix", "run"))
    expected = rm.MDP.from_rows(
        [1, 0, 0], [0, 1, 1], [0, 1, 0], MODEL["probability"], MODEL["reward"], 0.9,
        state_names=["new", "worn"], action_names=["fix", "run"],
    )  # fmt: skip
    assert mdp == expected == rm.MDP.from_rows(*MODEL.values(), 0.9)
    assert mdp.row("new", "run")["successor"].tolist() == ["new", "worn"]


def test_models_from_frames_may_end() -> None:
    mdp = rm.MDP.from_frame(pd.DataFrame(MODEL).assign(terminated=[False, True, False]), 0.9)
    assert mdp.can_end


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"stat": [0]}, "^the frame must have a column 'state': it has 'stat'; is it columns={'state': 'stat'}\\?$"),
        ({**named(), "state": [None, *named()["state"][1:]]}, r"^state must be a name: got None at state\[0\]$"),
        ({**named(), "action": ["", *named()["action"][1:]]}, r"^action must be a name: got '' at action\[0\]$"),
        ({**named(), "state": ["a", *range(N - 1)]}, r"^state must be a name: got 0 at state\[1\]$"),
        (
            {**named(), "next_state": numbered()["next_state"]},
            r"^state must be a whole number: got '.t.' at state\[0\]$",
        ),
        ({**named(), "reward": ["x"] * N}, r"^reward must be a number: got 'x' at reward\[0\]$"),
        ({**named(), "state": ["a"]}, r"^action must be 1-D and as long as state \(1\): got shape \(200,\)$"),
    ],
)
def test_frames_that_cannot_be(frame: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rm.Trajectory.from_frame(frame)


def test_missing_entries_of_any_package_are_named() -> None:
    for make in (pd.DataFrame, pa.table):
        frame = make({**named(), "action": [*named()["action"][:-1], None]})
        with pytest.raises(ValueError, match=rf"^action must be a name: got (None|nan) at action\[{N - 1}\]$"):
            rm.Trajectory.from_frame(frame)


def test_what_is_no_frame() -> None:
    with pytest.raises(
        TypeError, match=r"^frame must be a table of pandas, polars or Arrow, or a dict of columns: got list$"
    ):
        rm.Trajectory.from_frame([1, 2])
    with pytest.raises(
        ValueError,
        match=r"^the frame must have a column 'probability': it has 'state', .*; rm.estimate makes a model of a log$",
    ):
        rm.MDP.from_frame(named(), 0.9)
    with pytest.raises(ValueError, match=r"^the frame must hold one model: choose one of column 'idoutcome'"):
        rm.MDP.from_frame({**MODEL, "idoutcome": [0, 0, 1]}, 0.9)


def test_many_names_and_a_duplicate_take_no_time() -> None:
    """Quadratic work on 60,000 names took two minutes."""
    names = [f"state {number}" for number in range(60_000)]
    stays = np.arange(len(names))
    start = time.perf_counter()
    mdp = rm.MDP.from_rows(names, ["stay"] * len(names), names, np.ones(len(names)), np.zeros(len(names)), 0.9)
    assert mdp.state_names == tuple(sorted(names))
    with pytest.raises(ValueError, match=r"^state_names must all differ: 'state 7' came twice$"):
        rm.MDP.from_rows(stays, 0 * stays, stays, np.ones(len(names)), np.zeros(len(names)), 0.9,
                         state_names=[*names[:-1], "state 7"])  # fmt: skip
    assert time.perf_counter() - start < 10
