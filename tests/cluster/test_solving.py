"""What users give and get: sources, files of solutions, refusals, callbacks, interrupts."""

from __future__ import annotations

import pickle
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from cluster.models import intervals, ragged, walk
from cluster.test_bits import assert_same_bits

SHARDS = rm.engine.Serial(3)
AMBIGUITY = rm.Penalized(rm.ChiSquare(), 0.5)
RAGGED = ragged(50, on_successors=True)
STORE = rm.MDP.from_noise(
    lambda stock, order, demand: ((stock + order - demand) % 9, 1.0 * demand), 9, 3, [0.5, 0.2, 0.3], 0.9
)


def test_all_sources_are_the_same_problem(tmp_path: Path) -> None:
    source = walk()
    path = rm.write(source, tmp_path / "walk.safetensors")
    solutions = [rm.solve(given, AMBIGUITY, engine=SHARDS) for given in (source, path, str(path), source.to_mdp())]
    for solution in solutions[1:]:
        assert_same_bits(solutions[0], solution)
    assert rm.read(path) == source.to_mdp()


@pytest.mark.parametrize("mdp", [RAGGED, STORE], ids=["ragged", "noise"])
def test_a_file_knows_ends_rewards_and_noise(mdp: rm.MDP, tmp_path: Path) -> None:
    path = rm.write(mdp, tmp_path / "model.safetensors")
    assert_same_bits(rm.solve(path, AMBIGUITY, engine=SHARDS), rm.solve(mdp, AMBIGUITY, engine=SHARDS))


# What is written.


@pytest.mark.parametrize(
    ("mdp", "ambiguity"),
    [
        (RAGGED, AMBIGUITY),
        (RAGGED, rm.Constrained(rm.KL(), 0.1)),
        (RAGGED, rm.L1(0.2, support="all")),
        (RAGGED, rm.SRectangular(rm.L1(0.3))),
        (RAGGED, rm.Nominal()),
        (RAGGED, intervals(RAGGED)),
        (rm.problems.chain(), rm.Optimistic(rm.CVaR(0.5))),
        (STORE, rm.SharedNoise(rm.Constrained(rm.KL(), 0.1))),
    ],
    ids=["penalized", "ball", "all states", "s-rectangular", "nominal", "interval", "optimistic", "shared noise"],
)
def test_a_written_solution(
    mdp: rm.MDP, ambiguity: rm.Ambiguity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    solver = rm.ValueIteration()
    alone = rm.solve(mdp, ambiguity, solver=solver)
    files = []
    for count, size in ((1, 10**6), (3, 70)):
        monkeypatch.setattr("robustmdp.cluster.shard._RESPONSE", size)
        solution = rm.solve(mdp, ambiguity, solver=solver, engine=rm.engine.Serial(count))
        files.append(solution.write(tmp_path / f"solution{count}.safetensors"))
    assert files[0].read_bytes() == files[1].read_bytes()
    worst, tables = rm.read(files[1]), safetensors.load_file(files[1])
    assert (worst.n_states, worst.n_actions, worst.discount) == (mdp.n_states, mdp.n_actions, mdp.discount)
    np.testing.assert_array_equal(worst.indices, alone.worst_case.indices)
    np.testing.assert_array_equal(worst.probabilities, alone.worst_case.probabilities)
    np.testing.assert_array_equal(worst.mean_rewards(), alone.worst_case.mean_rewards())
    for name in ("value", "lower", "upper"):
        np.testing.assert_array_equal(tables[name], getattr(alone, name))
    for name in ("penalty", "eta"):
        np.testing.assert_array_equal(tables[name], mdp.pairs(getattr(alone, name)))
    assert np.abs(tables["q"] - mdp.pairs(alone.q)).max() <= 2 * alone.error_bound
    if alone.policy.ndim == 1:
        np.testing.assert_array_equal(tables["policy"], alone.policy)
    else:
        np.testing.assert_array_equal(tables["policy_probabilities"], mdp.pairs(alone.policy))


def test_tables_stay_with_the_shards(tmp_path: Path) -> None:
    solution = rm.solve(RAGGED, AMBIGUITY, engine=SHARDS)
    where = "of a model in shards is not kept in memory: solution.write(path) writes it to a file"
    for use in (lambda: solution.q[0, 0], lambda: solution.q.max(), lambda: np.asarray(solution.q) + 1):
        with pytest.raises(AttributeError, match=rf"^q {re.escape(where)}$"):
            use()
    for name in ("worst_case", "penalty", "eta"):
        with pytest.raises(AttributeError, match=re.escape(where)):
            getattr(solution, name)
    assert "50 states" in repr(solution)
    assert pickle.loads(pickle.dumps(solution)) == solution
    table = rm.write(solution, tmp_path / "solution.csv")
    assert (rm.io.read_policy(table, RAGGED) == solution.policy).all()
    assert rm.read(rm.write(solution, tmp_path / "solution.safetensors")).n_states == 50
    with pytest.raises(ValueError, match=r"^a solution of a model in shards must be written to a \.safetensors file:"):
        solution.write(tmp_path / "solution.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["solution.csv", "solution.safetensors"]


# Refusals.


class Twice:
    """No engine."""


@pytest.mark.parametrize(
    ("arguments", "settings", "error", "sentence"),
    [
        ((RAGGED, AMBIGUITY), {"solver": rm.DualAscent()}, ValueError, "the solver must be ValueIteration() or"),
        ((RAGGED, AMBIGUITY), {"criterion": rm.TotalReward()}, ValueError, "a model in shards is solved with its"),
        ((RAGGED, AMBIGUITY), {"criterion": rm.AverageReward()}, ValueError, "a model in shards is solved with its"),
        ((RAGGED, AMBIGUITY), {"criterion": rm.FiniteHorizon(3)}, ValueError, "a model in shards is solved with its"),
        ((RAGGED, AMBIGUITY), {"engine": rm.engine.Processes(2)}, TypeError, "engine must be one that solves a model"),
        ((RAGGED, AMBIGUITY), {"engine": rm.engine.Serial}, TypeError, "engine must be one that solves a model"),
        ((RAGGED, AMBIGUITY), {"tol": 0.0}, ValueError, "tol must be a positive number: got 0.0"),
        ((RAGGED, AMBIGUITY), {"start": [1.0]}, ValueError, "start must have shape (50,): got (1,)"),
        ((RAGGED.with_discount(1.0), AMBIGUITY), {}, ValueError, "a discounted problem must have a discount below 1"),
        ((RAGGED, rm.Wasserstein(np.eye(50), 1.0)), {}, ValueError, "a model that is cut into shards needs"),
        ((3, AMBIGUITY), {}, TypeError, "mdp must be an MDP, a RowSource or the path of a .safetensors model: got int"),
        (("nowhere.safetensors", AMBIGUITY), {}, ValueError, "path must exist: there is no file nowhere.safetensors"),
        (("model.csv", AMBIGUITY), {}, ValueError, "a model to open in parts must be a .safetensors file: got"),
        ((RAGGED, rm.Penalized), {}, TypeError, "ambiguity must be"),
        ((RAGGED, rm.Penalized(rm.KL(), np.ones((2, 2)))), {}, ValueError, "weight must have shape (S, A)"),
        ((RAGGED, rm.Interval([0.5], [1.0])), {}, ValueError, "lower"),
        ((RAGGED, rm.L1(0.1, support=[70])), {}, ValueError, "support"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_in_shards(arguments: Any, settings: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(sentence)}") as caught:
        rm.solve(*arguments, **({"engine": SHARDS} | settings))
    assert "\n" not in str(caught.value)


DENSE = rm.Interval(np.zeros((10, 1, 10)), np.ones((10, 1, 10)))


@pytest.mark.parametrize(
    "ambiguity",
    [
        rm.Wasserstein(np.eye(10), 1.0),
        rm.Optimistic(rm.Wasserstein(np.eye(10), 1.0)),
        rm.MeanRisk(0.5, rm.Wasserstein(np.eye(10), 1.0, support="model")),
        DENSE,
    ],
    ids=str,
)
def test_a_set_that_cannot_be_cut_is_refused_before_rows_are_made(ambiguity: rm.Ambiguity) -> None:
    """It was refused after all of them were loaded, which may take an hour."""
    source = rm.RowSource(lambda first, last: pytest.fail("too late"), 10, 1, 0.9)
    with pytest.raises(ValueError, match="cut into shards"):
        rm.solve(source, ambiguity, engine=SHARDS)


def test_rows_that_are_no_model() -> None:
    def rows(first: int, last: int) -> Any:
        state = np.arange(first, last)
        return state, 0 * state, state, np.where(state == 7, 0.5, 1.0), 0.0 * state

    source = rm.RowSource(rows, 10, 1, 0.9)
    with pytest.raises(
        ValueError, match=r"^probabilities must sum to 1: got 0\.5 at state 7, action 0 in rows\(7, 10\)$"
    ):
        rm.solve(source, AMBIGUITY, engine=SHARDS)


def test_ray_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        ImportError, match=r"^ray must be installed for the engine 'ray': pip install 'robustmdp\[ray\]'$"
    ):
        rm.solve(RAGGED, AMBIGUITY, engine=rm.engine.Ray())


# Files that are damaged where only one shard looks.


@pytest.mark.parametrize(
    ("name", "entry", "value", "sentence"),
    [
        ("state_ptr", 30, 10**9, "state_ptr of model.safetensors must rise from 0 to"),
        ("indptr", 61, -5, "indptr must rise: got -5 at indptr[61] of model.safetensors"),
        ("indices", 150, 51, "indices must lie in 0..50: got 51 at indices[150] of model.safetensors"),
        ("probabilities", 150, -0.5, "probabilities must be positive: got -0.5 at probabilities[150] of model"),
        ("probabilities", 150, 0.999999, "probabilities must sum to 1: got"),
        ("rewards", 70, np.nan, "rewards must be finite: got nan at rewards[70] of model.safetensors"),
        ("actions", 70, 9, "actions must lie in 0..4: got 9 at actions[70] of model.safetensors"),
    ],
)
def test_a_damaged_file(name: str, entry: int, value: float, sentence: str, tmp_path: Path) -> None:
    path = rm.write(RAGGED, tmp_path / "model.safetensors")
    data = bytearray(path.read_bytes())
    array = getattr(RAGGED, name)
    start = data.index(array.tobytes()) + entry * array.itemsize
    data[start : start + array.itemsize] = np.array(value, array.dtype).tobytes()
    path.write_bytes(data)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        rm.solve(path, AMBIGUITY, engine=rm.engine.Serial(2))


# Callbacks and interrupts.


def test_a_callback_sees_sweeps_and_traffic() -> None:
    steps: list[Any] = []
    solution = rm.solve(RAGGED, AMBIGUITY, engine=SHARDS, callback=steps.append)
    assert [step.step for step in steps] == list(range(1, solution.steps))  # not called after the last one
    assert [step.error_bound for step in steps] == solution.trace["error_bound"][:-1].tolist()
    assert all(step.traffic.bytes_sent == 8 * 2 * 50 for step in steps)
    assert all(0 <= step.traffic.slowest_shard < 3 and step.traffic.seconds > 0 for step in steps)
    assert all(one.sweeps < other.sweeps for one, other in pairwise(steps))


@pytest.mark.parametrize("solver", [rm.ValueIteration(), rm.PolicyIteration()], ids=["vi", "pi"])
def test_an_interrupt_gives_the_result_so_far(solver: Any) -> None:
    def interrupt(step: Any) -> None:
        if step.step == 3:
            raise KeyboardInterrupt

    solution = rm.solve(RAGGED, AMBIGUITY, solver=solver, engine=SHARDS, callback=interrupt)
    alone = rm.solve(RAGGED, AMBIGUITY, solver=solver, callback=interrupt)
    assert (solution.status.code, solution.steps) == (alone.status.code, alone.steps) == ("interrupted", 3)
    assert (solution.lower <= rm.solve(RAGGED, AMBIGUITY).upper).all()
    assert (solution.upper >= rm.solve(RAGGED, AMBIGUITY).lower).all()
