"""Names in files: the same models and logs as with numbers, however they are read, and refusals that name the place."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import robustmdp as rm
from robustmdp.io import table_files

N = 300
STATES, ACTIONS = ("a, b", "depot 10", "depot 2", "\u00e9t\u00e9"), ("buy", "wait")


def numbered() -> dict[str, list[Any]]:
    rng = np.random.default_rng(3)
    return {
        "state": [3, *rng.integers(0, 4, N - 1).tolist()],
        "action": [1, 0, *rng.integers(0, 2, N - 2).tolist()],
        "reward": (rng.integers(0, 9, N) / 8).tolist(),
        "next_state": rng.integers(0, 4, N).tolist(),
        "terminated": (rng.random(N) < 0.1).tolist(),
    }


def named() -> dict[str, list[Any]]:
    names = {"state": STATES, "action": ACTIONS, "next_state": STATES}
    return {
        name: [names[name][number] for number in column] if name in names else column
        for name, column in numbered().items()
    }


def write(path: Path, table: dict[str, list[Any]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.table(table), path, row_group_size=70)
    else:
        quoted = (
            [f'"{entry}"' if "," in str(entry) else str(entry) for entry in row]
            for row in zip(*table.values(), strict=True)
        )
        path.write_text("\n".join([",".join(table), *map(",".join, quoted)]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(params=["numpy", "arrow"], autouse=True)
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Full blocks are parsed by pyarrow where it is installed, others by numpy."""
    size = 64 if request.param == "arrow" else 1000
    monkeypatch.setattr(table_files, "BLOCK", size)
    return request.param


def rows(log: rm.Trajectory) -> list[list[Any]]:
    pieces = list(log.chunks(N))
    return [np.concatenate(column).tolist() for column in zip(*pieces, strict=True)]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_logs_have_the_numbers_of_their_sorted_names(ending: str, tmp_path: Path) -> None:
    log = rm.read_log(write(tmp_path / f"log{ending}", named()), discount=0.9)
    assert "not counted yet" in repr(log)  # nothing is read before it is asked for
    assert rows(log) == list(numbered().values())
    assert (log.n_states, log.n_actions, log.state_names, log.action_names) == (4, 2, STATES, ACTIONS)
    assert "depot 10" in repr(log)
    again = [np.concatenate(column).tolist() for column in zip(*log.chunks(start=77), strict=True)]
    assert again == [column[77:] for column in numbered().values()]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_learners_draw_the_same_from_names_and_numbers(ending: str, tmp_path: Path) -> None:
    learner = rm.MarkovianQLearning(rm.Penalized(rm.ChiSquare(), 1.0))
    runs = [
        learner.run(rm.read_log(write(tmp_path / f"{name}{ending}", table), discount=0.9).replay(2, seed=1))
        for name, table in (("numbers", numbered()), ("names", named()))
    ]
    assert runs[0].q.tobytes() == runs[1].q.tobytes()
    assert runs[1].columns()["state"] == list(STATES)


def test_pyarrow_is_not_needed_for_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert rows(rm.read_log(write(tmp_path / "log.csv", named()))) == list(numbered().values())


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_names_that_are_given(ending: str, tmp_path: Path) -> None:
    file = write(tmp_path / f"log{ending}", named())
    log = rm.read_log(file, state_names=STATES[::-1], action_names=ACTIONS)
    assert rows(log)[0] == [3 - state for state in numbered()["state"]]
    place = "line 2" if ending == ".csv" else "row 0"
    with pytest.raises(
        ValueError, match=rf"^state must be one of the 3 names that are given: got '.t.' at {place} of log"
    ):
        rows(rm.read_log(file, state_names=STATES[:3]))
    with pytest.raises(ValueError, match=r"^state_names must have one name per state: got 4 for 9 states$"):
        _ = rm.read_log(file, n_states=9).n_states


def test_a_model_with_names_may_have_several_row_groups(tmp_path: Path) -> None:
    """Batches of words ended with a row group and those of numbers did not: such files were refused."""
    count = 300
    names = [f"state {number:03}" for number in range(count)]
    table = {"state": names, "action": ["go"] * count, "next_state": names[1:] + names[:1], "reward": [1.0] * count}
    model = rm.read(write(tmp_path / "model.parquet", table | {"probability": [1.0] * count}), 0.9)
    assert (model.n_states, model.nnz, model.state_names) == (count, count, tuple(names))


def test_blanks_around_names_do_not_count(tmp_path: Path) -> None:
    text = "state,action,reward,next_state\n" + "new, run ,5, worn\n worn,fix,-3,new\n" * 100
    (tmp_path / "log.csv").write_text(text)
    log = rm.read_log(tmp_path / "log.csv")
    assert (log.state_names, log.action_names) == (("new", "worn"), ("fix", "run"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("new,run,x,worn", "^reward must be a number: got 'x' at line 72 of log.csv$"),
        ("new,,1,worn", "^action must be a name: got '' at line 72 of log.csv$"),
        ("new,run,nan,worn", "^reward must be finite: got nan at line 72 of log.csv$"),
        ("new,run,1", "^each line must have 4 fields: got 3 at line 72 of log.csv$"),
        ('new,run,1,"wo\nrn"', "^each line must have 4 fields: got"),
    ],
)
def test_refusals_name_the_line(line: str, message: str, tmp_path: Path) -> None:
    rest = "new,run,5,worn\n" * 70
    (tmp_path / "log.csv").write_text(f"state,action,reward,next_state\n{rest}{line}\n{rest}")
    with pytest.raises(ValueError, match=message):
        rows(rm.read_log(tmp_path / "log.csv"))


def test_a_log_of_numbers_refuses_a_name_and_one_of_names_takes_numbers_for_names(tmp_path: Path) -> None:
    head = "state,action,reward,next_state\n"
    (tmp_path / "log.csv").write_text(head + "0,0,1,1\n1,0,1,end\n")
    with pytest.raises(ValueError, match=r"^next_state must be a whole number: got 'end' at line 3 of log.csv$"):
        rows(rm.read_log(tmp_path / "log.csv"))
    (tmp_path / "log.csv").write_text(head + "start,0,1,1\n1,0,1,end\n")
    with pytest.raises(ValueError, match=r"^state must be a whole number: got 'start' at line 2 of log.csv$"):
        rows(rm.read_log(tmp_path / "log.csv"))
    (tmp_path / "log.csv").write_text(head + "start,0,1,one\none,0,1,7\n")
    assert rm.read_log(tmp_path / "log.csv").state_names == ("7", "one", "start")


TABLE = {
    "idstatefrom": ["worn", "new", "new"],
    "idaction": ["fix", "run", "run"],
    "idstateto": ["new", "worn", "new"],
    "probability": [1.0, 0.25, 0.75],
    "reward": [-3.0, 5.0, 5.0],
}
MODEL = rm.MDP.from_rows(*TABLE.values(), 0.9)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("craams", [False, True])
def test_models_of_names(ending: str, craams: bool, tmp_path: Path) -> None:
    own = {} if craams else {"idstatefrom": "state", "idaction": "action", "idstateto": "next_state"}
    file = write(tmp_path / f"m{ending}", {own.get(name, name): column for name, column in TABLE.items()})
    found = rm.read(file, 0.9)
    assert found == MODEL
    assert (found.state_names, found.action_names) == (("new", "worn"), ("fix", "run"))
    for other in ("out.csv", "out.parquet", "out.drn", "out.safetensors"):
        assert rm.read(rm.write(found, tmp_path / other)) == MODEL


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_names_of_states_without_actions_and_of_actions_that_never_happen(ending: str, tmp_path: Path) -> None:
    def more(*rows: tuple[Any, ...]) -> dict[str, list[Any]]:
        return {name: [*column, *(row[i] for row in rows)] for i, (name, column) in enumerate(TABLE.items())}

    def read(*rows: tuple[Any, ...]) -> rm.MDP:
        return rm.read(write(tmp_path / f"m{ending}", more(*rows)), 0.9)

    with pytest.warns(UserWarning, match="1 state that is reached but never left"):
        found = read(("worn", "sell", "sold", 1.0, 9.0), ("new", "why", "new", 0.0, 0.0))
    assert (found.state_names, found.action_names) == (("new", "sold", "worn"), ("fix", "run", "sell", "why"))
    assert found.row("sold", "fix")["successor"].tolist() == ["sold"]
    with pytest.raises(ValueError, match=r"^every state must have an action or be reached: state 'gone' of m\..* does"):
        read(("new", "run", "gone", 0.0, 0.0))
    with pytest.raises(ValueError, match=r"^the probabilities of state 'new' and action 'run' must sum to 1: got 1\."):
        read(("new", "run", "worn", 0.25, 5.0))


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_outcomes_and_refusals(ending: str, tmp_path: Path) -> None:
    several = {**{name: column * 2 for name, column in TABLE.items()}, "idoutcome": [0] * 3 + [1] * 3}
    assert rm.read_outcomes(write(tmp_path / f"m{ending}", several), 0.9) == [MODEL, MODEL]
    place = "line 4" if ending == ".csv" else "row 2"
    for column, entry, message in (
        ("idstateto", "", "idstateto must be a name: got ''"),
        ("probability", -1.0, "probability must be finite and at least 0: got -1.0"),
    ):
        changed = {**TABLE, column: [*TABLE[column][:2], entry]}
        with pytest.raises(ValueError, match=f"^{message} at {place} of m{ending}$"):
            rm.read(write(tmp_path / f"m{ending}", changed), 0.9)


def test_names_and_notes_do_not_go_together(tmp_path: Path) -> None:
    rm.write(MODEL, tmp_path / "m.csv")
    write(tmp_path / "m.csv", TABLE)
    with pytest.raises(
        ValueError, match=r"^m.csv must have numbers of states and actions, whose names are in m.csv.meta"
    ):
        rm.read(tmp_path / "m.csv")


def test_policies_by_name(tmp_path: Path) -> None:
    log = rm.read_log(write(tmp_path / "log.csv", named()))
    solution = rm.solve(rm.estimate(log, 0.9).model, rm.Nominal())
    for ending in ("csv", "parquet", "json"):
        file = rm.write(solution, tmp_path / f"policy.{ending}")
        assert np.array_equal(rm.read_policy(file, solution.adversary.mdp), solution.policy)
    assert "depot 10" in (tmp_path / "policy.csv").read_text()


def test_a_small_parquet_file_does_not_take_a_large_memory(tmp_path: Path) -> None:
    """Repetition compresses to nothing: a megabyte made five gigabytes."""
    rows = 3_000_000
    zeros = pa.array(np.zeros(rows, np.int8))
    table = pa.table(dict.fromkeys(TABLE, zeros))
    pq.write_table(table, tmp_path / "m.parquet", compression="zstd")
    assert (tmp_path / "m.parquet").stat().st_size < rows / 8
    with pytest.raises(ValueError, match=r"^m.parquet cannot hold the 3000000 rows that it tells of in \d+ bytes$"):
        rm.read(tmp_path / "m.parquet", 0.9)
    pq.write_table(
        table.select(["idstatefrom", "idaction"]).rename_columns(["state", "action"]), tmp_path / "p.parquet"
    )
    with pytest.raises(ValueError, match=r"^p.parquet cannot hold the 3000000 rows that it tells of"):
        rm.read_policy(tmp_path / "p.parquet", MODEL)


def test_a_long_name_is_held_once(tmp_path: Path) -> None:
    """A page of 65,536 names of a megabyte each would be 64 GB of text."""
    long = "x" * 1_000_000
    table = pa.table(
        {
            "state": pa.DictionaryArray.from_arrays(pa.array(np.zeros(70_000, np.int32)), pa.array([long])),
            "action": pa.array(np.zeros(70_000, np.int64)),
            "reward": pa.array(np.zeros(70_000)),
            "next_state": pa.DictionaryArray.from_arrays(pa.array(np.zeros(70_000, np.int32)), pa.array([long])),
        }
    )
    pq.write_table(table, tmp_path / "log.parquet")
    assert (tmp_path / "log.parquet").stat().st_size < 3_000_000
    log = rm.read_log(tmp_path / "log.parquet")
    assert (log.n_states, log.state_names) == (1, (long,))


def test_a_column_far_larger_than_its_file_is_refused(tmp_path: Path) -> None:
    table = {**numbered(), "reward": np.zeros(N)}
    wide = pa.table({**table, "state": ["y" * 500_000 + str(row) for row in range(N)]})
    pq.write_table(wide, tmp_path / "log.parquet", compression="zstd", use_dictionary=False, row_group_size=N)
    with pytest.raises(
        ValueError, match=r"^column 'state' of log.parquet must take at most 64 MB in a row group: it tells"
    ):
        rm.read_log(tmp_path / "log.parquet")
