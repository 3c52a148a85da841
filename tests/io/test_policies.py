"""Solutions to files, and policies back from them."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles.damaged_files import worlds
from robustmdp.io import read_policy, write

pq = pytest.importorskip("pyarrow.parquet")
KINDS = [".csv", ".parquet", ".pq", ".json"]
NAMED = worlds()[0]  # a,b: right, down; quo"te: left; λ newline: right
PLAIN = rm.problems.garnet(5, 3, 2, 0.9, seed=0)
DOUBT = rm.Constrained(rm.KL(), 0.1)

each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
@pytest.mark.parametrize("world", [NAMED, PLAIN], ids=["named", "plain"])
def test_a_policy_comes_back(tmp_path: Path, world: rm.MDP, kind: str) -> None:
    solution = rm.solve(world, DOUBT)
    path = write(solution, tmp_path / f"solution{kind}")
    policy = read_policy(path, world)
    assert policy.dtype == np.int64
    assert policy.tolist() == solution.policy.tolist()


@each_kind
@pytest.mark.parametrize("world", [NAMED, PLAIN], ids=["named", "plain"])
def test_a_stochastic_policy_comes_back_to_the_bit(tmp_path: Path, world: rm.MDP, kind: str) -> None:
    weights = world.table(np.random.default_rng(0).random(world.n_pairs), 0.0)
    weights[0, world.actions[0]] = 0.0  # an action that is not taken
    given = weights / weights.sum(axis=1, keepdims=True)
    solution = rm.evaluate(world, given, DOUBT)
    policy = read_policy(write(solution, tmp_path / f"solution{kind}"), world)
    assert policy.dtype == np.float64
    assert policy.tobytes() == given.tobytes()
    assert rm.evaluate(world, policy, DOUBT) == solution


@each_kind
@pytest.mark.parametrize("world", [NAMED, PLAIN], ids=["named", "plain"])
def test_a_policy_of_each_step_comes_back_to_the_bit(tmp_path: Path, world: rm.MDP, kind: str) -> None:
    horizon = rm.FiniteHorizon(3)
    solution = rm.solve(world, DOUBT, criterion=horizon)
    policy = read_policy(write(solution, tmp_path / f"solution{kind}"), world)
    assert (policy.dtype, policy.tolist()) == (np.int64, solution.policy.tolist())
    weights = np.stack([world.table(np.random.default_rng(t).random(world.n_pairs), 0.0) for t in range(3)])
    mixed = weights / weights.sum(axis=-1, keepdims=True)
    evaluated = rm.evaluate(world, mixed, DOUBT, criterion=horizon)
    again = read_policy(write(evaluated, tmp_path / f"mixed{kind}"), world)
    assert (again.dtype, again.tobytes()) == (np.float64, mixed.tobytes())
    assert rm.evaluate(world, again, DOUBT, criterion=horizon) == evaluated


@each_kind
def test_values_and_bounds_are_written_with_all_their_bits(tmp_path: Path, kind: str) -> None:
    solution = rm.solve(NAMED, DOUBT)
    path = write(solution, tmp_path / f"solution{kind}")
    columns: dict[str, list[Any]]
    if kind == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = list(csv.reader(file))
        columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    elif kind == ".json":
        columns = json.loads(path.read_text())
        assert columns["status"] == "converged"
        assert columns["message"] == solution.status.sentence
        assert (columns["steps"], columns["error_bound"]) == (solution.steps, solution.error_bound)
    else:
        columns = pq.read_table(path).to_pydict()
        assert list(columns) == ["state", "action", "value", "lower", "upper"]
    assert columns["state"] == list(NAMED.state_names or ())
    assert columns["action"] == [NAMED.action_name(int(a)) for a in solution.policy]
    for name in ("value", "lower", "upper"):
        assert [float(number) for number in columns[name]] == getattr(solution, name).tolist()


def test_the_bounds_of_a_learner_are_not_numbers_in_json(tmp_path: Path) -> None:
    log = rm.Trajectory([0, 1, 0, 1], [0, 0, 0, 0], [0.0, 1.0, 0.0, 1.0], [1, 0, 1, 0], discount=0.5)
    solution = rm.MarkovianQLearning(rm.Penalized(rm.KL(), 1.0)).run(log)
    record = json.loads(write(solution, tmp_path / "learned.json").read_text())
    assert record["lower"] == [None, None]
    assert record["value"] == solution.value.tolist()
    rows = write(solution, tmp_path / "learned.csv").read_text().splitlines()
    assert rows[1].startswith("0,0,")
    assert rows[1].endswith(",-inf,inf")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("state,action\n0,1\n1,0\n2,1\n", [1, 0, 1]),
        ("action,note,state\nleft,x,1\nright,,2\ndown,y,0\n", None),
        ('state,action\n"a,b",down\n"quo""te",left\n"λ\n",right\n', [3, 0, 1]),
        (
            "state,action,probability\n0,1,0.25\n0,3,0.75\n1,0,1\n2,1,1.0\n",
            [[0, 0.25, 0, 0.75], [1, 0, 0, 0], [0, 1, 0, 0]],
        ),
        ("state,action\n0,right\n1,left\n2,right\n", [1, 0, 1]),
    ],
)
def test_a_table_of_ones_own(tmp_path: Path, text: str, wanted: Any) -> None:
    (tmp_path / "mine.csv").write_text(text, encoding="utf-8", newline="")
    assert read_policy(tmp_path / "mine.csv", NAMED).tolist() == (wanted or [3, 0, 1])


def test_names_that_look_like_numbers_are_names() -> None:
    import tempfile

    world = rm.MDP.from_rows([0, 1], [0, 0], [0, 1], [1, 1], [0, 0], 0.9, state_names=["1", "0"], action_names=["7"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.json"
        path.write_text('{"state": ["1", "0"], "action": ["7", "7"], "other": null}')
        assert read_policy(path, world).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("state,action\n0,1\n1,0\n", "every state must have an action: 'λ\\n' has none in mine.csv"),
        (
            "state,action\n0,1\n0,3\n1,0\n2,1\n",
            "a state must come once, or with a probability: 'a,b' came again at row 1 of",
        ),
        ("state,action\n0,2\n1,0\n2,1\n", "action must be available: 'up' is not in 'a,b' at row 0 of mine.csv"),
        ("state,action\n0,9\n1,0\n2,1\n", "action must lie in 0..3: got '9' at row 0 of mine.csv"),
        ("state,action\n0,1\n-1,0\n2,1\n", "state must lie in 0..2: got '-1' at row 1 of mine.csv"),
        (
            "state,action\n0,rigth\n1,0\n2,1\n",
            "action must be a name or a number of the model's: got 'rigth' at row 0 of",
        ),
        ("state,action\n0,right\n1,0\n2,1\n", "the actions in mine.csv must all be names, or all be numbers: got both"),
        ("state\n0\n", "mine.csv must have a column 'action': it has 'state'"),
        ("state,action,state\n0,1,0\n", "the columns of mine.csv must all differ: 'state' came twice"),
        ("state,action\n", "mine.csv must hold at least one state: got none"),
        ("", "mine.csv must start with the names of its columns: got an empty line"),
        ("state,action\n0,1,2\n", "each row must have 2 fields: got 3 at row 0 of mine.csv"),
        ("state,action,probability\n0,1,nan\n", "probability must lie in 0..1: got 'nan' at row 0 of mine.csv"),
        ("state,action,probability\n0,1,1.5\n", "probability must lie in 0..1: got '1.5' at row 0 of mine.csv"),
        (
            "state,action,probability\n0,1,0.5\n0,1,0.5\n",
            "a state and an action must come together once: 'a,b' and 'right' came again at row 1 of mine.csv",
        ),
        (
            "state,action,probability\n0,1,0.5\n1,0,1\n2,1,1\n",
            "the probabilities of 'a,b' in mine.csv must sum to 1: got 0.5",
        ),
        (
            "step,state,action\n0,0,1\n0,1,0\n0,2,1\n2,0,1\n2,1,0\n2,2,1\n",
            "steps must count from 0 without a gap: step 1 is missing in mine.csv",
        ),
        ("step,state,action\n1,0,1\n1,1,0\n", "steps must count from 0 without a gap: step 0 is missing in mine.csv"),
        (
            "step,state,action\n0,0,1\n0,1,0\n0,2,1\n1,0,1\n1,2,1\n",
            "every state must have an action: 'quo\"te' at step 1 has none in mine.csv",
        ),
        (
            "step,state,action\n0,0,1\n0,1,0\n0,2,1\n1,0,1\n1,1,0\n1,2,1\n1,0,3\n",
            "a state must come once, or with a probability: 'a,b' at step 1 came again at row 6 of mine.csv",
        ),
        (
            "step,state,action,probability\n0,0,1,1\n0,1,0,1\n0,2,1,1\n1,0,1,0.5\n1,1,0,1\n1,2,1,1\n",
            "the probabilities of 'a,b' at step 1 in mine.csv must sum to 1: got 0.5",
        ),
        ("step,state,action\nfirst,0,1\n", "step must be a whole number: got 'first' at row 0 of mine.csv"),
        ("step,state,action\n0,0,1\n1e12,1,0\n", "step must lie in 0..1: got '1e12' at row 1 of mine.csv"),
        ("step,state,action\n-1,0,1\n", "step must lie in 0..0: got '-1' at row 0 of mine.csv"),
    ],
)
def test_refusals(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "mine.csv").write_text(text)
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        read_policy(tmp_path / "mine.csv", NAMED)


def test_an_unknown_name_gets_a_suggestion(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("state,action\n0,rigth\n")
    with pytest.raises(ValueError, match=r"; did you mean 'right'\?$"):
        read_policy(tmp_path / "mine.csv", NAMED)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("mine.txt", "", "a policy must end in .csv, .parquet, .pq, .json, or say its format: got 'mine.txt'"),
        ("mine.json", "[1]", "mine.json must be a JSON object: Expected `object`, got `array`"),
        ("mine.json", '{"state": [1], "action": 3}', "action in mine.json must be a list with an entry per row"),
        (
            "mine.json",
            '{"state": [[1]], "action": [0]}',
            "state must be a name or a number of the model's: got [1] at row",
        ),
        (
            "mine.json",
            '{"state": [true], "action": [0]}',
            "state must be a name or a number of the model's: got True at",
        ),
        (
            "mine.json",
            '{"step": 3, "state": [1], "action": [0]}',
            "step in mine.json must be a list with an entry per row",
        ),
        ("mine.json", "{}", "mine.json must have a column 'state': it has none"),
        ("mine.parquet", "PAR1", "mine.parquet must be a Parquet file: "),
    ],
)
def test_what_is_no_policy_is_refused(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        read_policy(tmp_path / name, NAMED)


def test_paths_and_formats(tmp_path: Path) -> None:
    solution = rm.solve(PLAIN, rm.Nominal())
    path = write(solution, tmp_path / "policy.dat", format="json")
    assert read_policy(path, PLAIN, format="json").tolist() == solution.policy.tolist()
    with pytest.raises(
        ValueError, match=r"^format must be one of csv, parquet, json: got 'jsn'; did you mean 'json'\?$"
    ):
        write(solution, tmp_path / "policy.dat", format="jsn")
    with pytest.raises(
        ValueError, match=r"^a solution must end in .csv, .parquet, .pq, .json, or say its format: got 'x.drn'$"
    ):
        write(solution, tmp_path / "x.drn")
    with pytest.raises(ValueError, match=r"^path must exist: there is no file .*none.csv$"):
        read_policy(tmp_path / "none.csv", PLAIN)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match=r"^path must be a file: .* is a folder$"):
        read_policy(tmp_path / "folder.csv", PLAIN)
