"""No input of the public API becomes a model that kernels cannot trust: refused in one sentence, or correct."""

from __future__ import annotations

import dataclasses
import pickle
import re
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import robustmdp as rm
from oracles.damaged_files import flaw_of, random_world

ROW = {"state": [0, 1], "action": [0, 0], "next_state": [0, 1], "probability": [1.0, 1.0], "reward": [0.0, 0.0]}
ARRAYS = ("indptr", "indices", "probabilities", "rewards", "state_ptr", "actions")
TABLE = "must be numbered from 0 on"


def masked(values: list[Any]) -> Any:
    return np.ma.array(values, mask=[True] + [False] * (len(values) - 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state": np.array([0, 2**64 - 1], np.uint64)}, "state must lie in 0..2147483646: got 18446744073709551615"),
        ({"next_state": np.array([0, 2**64 - 1], np.uint64)}, "next_state must lie in 0..2147483646: got 1844"),
        (
            {"action": np.array([0, 2**63], np.uint64)},
            "action must lie in 0..2147483646: got 9223372036854775808 at act",
        ),
        ({"next_state": [0, 2**31 - 1]}, "next_state must lie in 0..2147483646: got 2147483647 at next_state[1]"),
        ({"next_state": [0, 2**70]}, "next_state must lie in 0..2147483646: got 1180591620717411303424"),
        ({"next_state": [0, 2**31]}, "next_state must lie in 0..2147483646: got 2147483648 at next_state[1]"),
        ({"next_state": [0.0, np.inf]}, "next_state must be a whole number: got inf at next_state[1]"),
        ({"next_state": [0.0, np.nan]}, "next_state must be a whole number: got nan at next_state[1]"),
        ({"state": [0.0, -np.inf]}, "state must be a whole number: got -inf at state[1]"),
        ({"state": [0.0, 1e300]}, "state must lie in 0..2147483646: got 1e+300 at state[1]"),
        ({"state": [0, 10**9]}, "every state must have at least one action: state 1 has none"),
        ({"next_state": [0, 10**9]}, "every state must have at least one action: state 2 has none"),
        ({"n_states": 2**31 - 1}, "every state must have at least one action: state 2 has none"),
        (
            {"n_states": 2**31 - 1, "terminated": [True, False]},
            "every state must have at least one action: state 2 has",
        ),
        ({"n_states": 2**31}, "n_states must be at most 2147483647: got 2147483648"),
        ({"n_states": 10**15}, "n_states must be at most 2147483647: got 1000000000000000"),
        (
            {"action": [0, 2 * 10**9]},
            f"actions {TABLE}: there are 2 states, 2 transitions and actions up to 2000000000",
        ),
        ({"action": [0, 10**6]}, f"actions {TABLE}: there are 2 states"),
        ({"state": masked([0, 1])}, "state must have no masked entries"),
        ({"next_state": masked([0, 1])}, "next_state must have no masked entries"),
        ({"probability": masked([1.0, 1.0])}, "probability must have no masked entries"),
        ({"reward": masked([0.0, 0.0])}, "reward must have no masked entries"),
        ({"reward": [0.0, np.ma.masked]}, "reward must have no masked entries"),
        ({"terminated": masked([True, False])}, "terminated must have no masked entries"),
        ({"state": [True, False]}, "state must be a whole number: got True at state[0]"),
        ({"state": np.array([True, 1], object)}, "state must be a whole number: got True at state[0]"),
        ({"state": [0j, 1j]}, "state must be a whole number: got 0j at state[0]"),
        ({"probability": [1 + 0j, 1 + 2j]}, "probability must be a number: got (1+0j) at probability[0]"),
        ({"probability": [True, True]}, "probability must be a number: got True at probability[0]"),
        ({"probability": ["1", "1"]}, "probability must be a number: got '1' at probability[0]"),
        ({"probability": np.array([1.0, "1"], object)}, "probability must be a number: got '1' at probability[1]"),
        ({"probability": [1.0, None]}, "probability must be a number: got None at probability[1]"),
        ({"reward": np.array(["2020-01-01"] * 2, "M8[D]")}, "reward must be a number: got "),
        ({"reward": [0.0, 10**400]}, "reward must hold numbers below 1.8e308"),
        ({"reward": [0.0, [1.0, 2.0]]}, "reward must be an array of numbers: "),
        ({"reward": [0.0, {}]}, "reward must be a number: got {} at reward[1]"),
        ({"terminated": [0, 2]}, "terminated must be 0, 1, true or false: got 2 at terminated[1]"),
        ({"terminated": [0.0, np.nan]}, "terminated must be 0, 1, true or false: got nan at terminated[1]"),
        ({"terminated": ["false", "no"]}, "terminated must be 0, 1, true or false: got 'no' at terminated[1]"),
        ({"state": pd.array([0, None], "Int64")}, "state must be a whole number: got "),
    ],
)
def test_rows_that_are_no_model(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        rm.MDP.from_rows(**{**ROW, **change}, discount=0.9)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("n_states", [2.0, True, "2", 0, -1])
def test_the_number_of_states_must_be_one(n_states: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^n_states must be "):
        rm.MDP.from_rows(**ROW, n_states=n_states, discount=0.9)


@pytest.mark.parametrize(
    "change",
    [
        {"state": np.array([0, 1], np.uint64)},
        {"state": [0.0, 1.0]},
        {"state": np.array([0, 1], object), "probability": np.array([1, Fraction(1)], object)},
        {"probability": [Decimal(1), Decimal("1.0")]},
        {"probability": np.array([1.0, 1.0], np.longdouble)},
        {"next_state": pd.Series([0, 1]), "reward": pd.array([0.0, 0.0], "Float64")},
        {"state": np.ma.array([0, 1], mask=False), "reward": np.ma.zeros(2)},
        {"state": np.array([0, 9, 1, 9])[::2], "reward": np.zeros(4)[::2]},
        {"terminated": ["False", " 0"]},
        {"terminated": [0, 0.0]},
    ],
)
def test_numbers_of_other_types_are_taken(change: dict[str, Any]) -> None:
    assert rm.MDP.from_rows(**{**ROW, **change}, discount=0.9) == rm.MDP.from_rows(**ROW, discount=0.9)


def broken_csr(index: int) -> Any:
    matrix = sp.csr_array(np.eye(2))
    matrix.indices[1] = index
    return matrix


EYE = np.eye(2)[:, None, :]


@pytest.mark.parametrize(
    ("transitions", "rewards", "message"),
    [
        (np.ma.masked_equal(EYE, 0.0), [0.0, 0.0], "transitions must have no masked entries"),
        ([np.ma.masked_equal(row, 0.0) for row in EYE], [0.0, 0.0], "transitions must have no masked entries"),
        (EYE, masked([0.0, 0.0]), "rewards must have no masked entries"),
        (EYE + 0j, [0.0, 0.0], "transitions must hold numbers: got (1+0j) at transitions[0, 0, 0]"),
        (EYE.astype(bool), [0.0, 0.0], "transitions must hold numbers: got True at transitions[0, 0, 0]"),
        (EYE.astype(str), [0.0, 0.0], "transitions must hold numbers: got '1.0' at transitions[0, 0, 0]"),
        (EYE, ["1", "2"], "rewards must be a number: got '1' at rewards[0]"),
        (EYE, [True, False], "rewards must be a number: got True at rewards[0]"),
        (EYE, [1j, 0j], "rewards must be a number: got 1j at rewards[0]"),
        ([[[1.0, 0.0]], [[1.0]]], [0.0, 0.0], "transitions must be an array of numbers: "),
        (EYE, [[0.0], [0.0, 1.0]], "rewards must be an array of numbers: "),
        (EYE, sp.csr_array(np.eye(2)), "rewards must hold numbers: got "),
        ([broken_csr(5)], [0.0, 0.0], "transitions[0] must be a valid sparse matrix: "),
        ([broken_csr(2)], [0.0, 0.0], "transitions[0] must be a valid sparse matrix: "),  # would have been the end
        ([broken_csr(-1)], [0.0, 0.0], "transitions[0] must be a valid sparse matrix: "),
        ([sp.csr_array(np.eye(2))], [broken_csr(7)], "rewards[0] must be a valid sparse matrix: "),
        ([sp.csr_array(np.eye(2) * 1j)], [0.0, 0.0], "the entries of transitions[0] must be a number: got "),
        ([sp.csr_array(np.eye(2))], [sp.csr_array(np.eye(2) * 1j)], "the entries of rewards[0] must be a number: got "),
        ([sp.csr_array((0, 0))], [], "transitions must be square matrices of one size"),
    ],
)
def test_arrays_that_are_no_model(transitions: Any, rewards: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        rm.MDP.from_arrays(transitions, rewards, 0.9)
    assert "\n" not in str(caught.value)


def test_arrays_without_masked_entries_are_taken() -> None:
    plain = rm.MDP.from_arrays(EYE, [0.0, 1.0], 0.9)
    assert rm.MDP.from_arrays(np.ma.array(EYE), np.ma.array([0.0, 1.0], mask=False), 0.9) == plain
    assert rm.MDP.from_arrays(np.asfortranarray(EYE), [0.0, 1.0], 0.9) == plain


def test_rewards_near_the_largest_number_stay_finite() -> None:
    top = np.finfo(float).max
    rows = rm.MDP.from_rows([0] * 3, [0] * 3, [0] * 3, [0.5, 0.25, 0.25 + 1e-7], [top, top, np.nextafter(top, 0)], 0.9)
    assert np.isfinite(rows.rewards).all()
    assert flaw_of(rows) == ""


class Environment(SimpleNamespace):
    """An environment with two states; one of its outcomes can be changed."""

    def __init__(self, outcome: Any = (1.0, 1, 0.0, True)) -> None:
        super().__init__(P={0: {0: [(0.5, 0, 1.0, False), (0.5, 1, 1.0, False)]}, 1: {0: [outcome]}})


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ((1.0, 1.5, 0.0, True), "next_state must be a whole number: got 1.5 at P[1][0] of Environment"),
        ((1.0, np.inf, 0.0, True), "next_state must be a whole number: got inf at P[1][0] of Environment"),
        ((1.0, -1, 0.0, True), "next_state must be at least 0: got -1 at P[1][0] of Environment"),
        ((1.0, 3, 0.0, True), "next_state must lie in 0..2 (2 is the end): got 3 at P[1][0] of Environment"),
        ((1.0, "goal", 0.0, True), "next_state must be a whole number: got 'goal' at P[1][0] of Environment"),
        ((1.0, None, 0.0, True), "next_state must be a whole number: got None at P[1][0] of Environment"),
        ((1.0, 1, None, True), "reward must be a number: got None at P[1][0] of Environment"),
        ((1.0, 1, 0.0, 2), "terminated must be 0, 1, true or false: got 2 at P[1][0] of Environment"),
        (
            (1.0, 1, 0.0),
            "each outcome must be (probability, next_state, reward, terminated): got (1.0, 1, 0.0) at P[1]",
        ),
        (7, "each outcome must be (probability, next_state, reward, terminated): got 7 at P[1][0] of Environment"),
    ],
)
def test_environments_that_are_no_model(outcome: Any, message: str) -> None:
    assert rm.MDP.from_gymnasium(Environment(), 0.9).nnz == 3
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        rm.MDP.from_gymnasium(Environment(outcome), 0.9)


def test_an_environment_without_transitions_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^the environment must have at least one transition in its P: Simple"):
        rm.MDP.from_gymnasium(SimpleNamespace(P={}), 0.9)
    assert rm.MDP.from_gymnasium(gymnasium.make("FrozenLake-v1"), 0.9).n_states == 16


# 3 states; the first has two actions, of which the second may end.
WORLD = rm.MDP.from_rows(
    [0, 0, 0, 0, 1, 2, 2], [0, 0, 1, 1, 0, 0, 0], [0, 1, 2, 3, 2, 0, 2], [0.25, 0.75, 0.5, 0.5, 1.0, 0.5, 0.5],
    [1.0, 1.0, 2.0, 2.0, 0.0, 3.0, 3.0], 0.9, n_states=3, state_names=["a", "b", "c"],
)  # fmt: skip


def parts(mdp: rm.MDP, **changes: Any) -> dict[str, Any]:
    return {field.name: getattr(mdp, field.name) for field in dataclasses.fields(mdp)} | changes


def changed(name: str, entry: int, value: Any) -> dict[str, Any]:
    array = getattr(WORLD, name).copy()
    array[entry] = value
    return {name: array}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (changed("indptr", 0, 1), "indptr must start at 0: got 1 at indptr[0]"),
        (changed("indptr", 1, -5), "indptr must rise: got -5 at indptr[1]"),
        (changed("indptr", 1, 4), "indptr must rise: got 4 at indptr[2]"),  # an empty row
        (changed("indptr", -1, 10**9), "indptr must end at 7: got 1000000000 at indptr[-1]"),
        ({"indptr": WORLD.indptr[:-1]}, "the length of indptr must be 5: got 4"),
        (changed("state_ptr", 1, 3), "state_ptr must rise: got 3 at state_ptr[2]"),
        (changed("state_ptr", -1, 99), "state_ptr must end at 4: got 99 at state_ptr[-1]"),
        ({"state_ptr": np.zeros(1, np.int64)}, "the number of states must lie in 1..2147483647: got 0"),
        (changed("indices", 0, -1), "indices must lie in 0..3: got -1 at indices[0]"),
        (changed("indices", 0, 4), "indices must lie in 0..3: got 4 at indices[0]"),
        (changed("indices", 0, 2), "indices must rise within a row: got 1 at indices[1]"),
        (changed("indices", 0, 1), "indices must rise within a row: got 1 at indices[1]"),
        ({"indices": np.arange(6, dtype=np.int32)}, "the length of probabilities must be 6: got 7"),
        ({"indices": WORLD.indices.reshape(1, -1)}, "indices must be 1-D and not empty: got shape [1, 7]"),
        ({"indices": np.empty(0, np.int32)}, "indices must be 1-D and not empty: got shape [0]"),
        ({"indices": WORLD.indices + 0.5}, "indices must be a whole number: got 0.5 at indices[0]"),
        ({"indices": WORLD.indices + np.int64(2**32)}, "indices must lie in 0..2147483647: got 4294967296"),
        ({"indices": np.ma.masked_equal(WORLD.indices, 0)}, "indices must have no masked entries"),
        (changed("actions", 1, 0), "actions must rise within a state: got 0 at actions[1]"),
        (changed("actions", 3, 2), "actions must lie in 0..1: got 2 at actions[3]"),
        (changed("actions", 3, -1), "actions must lie in 0..1: got -1 at actions[3]"),
        (changed("probabilities", 0, 0.0), "probabilities must be positive: got 0.0 at probabilities[0]"),
        (changed("probabilities", 0, -0.25), "probabilities must be positive: got -0.25 at probabilities[0]"),
        (changed("probabilities", 2, np.nan), "probabilities must be positive: got nan at probabilities[2]"),
        (changed("probabilities", 2, np.inf), "probabilities must be positive: got inf at probabilities[2]"),
        (changed("probabilities", 2, 0.6), "probabilities must sum to 1: got 1.1 at pair 1"),
        ({"probabilities": WORLD.probabilities.astype(str)}, "probabilities must be a number: got '0.25'"),
        (changed("rewards", 3, np.nan), "rewards must be finite: got nan at rewards[3]"),
        ({"rewards": np.zeros(5)}, "rewards must have one entry per pair (4) or transition (7): got 5"),
        ({"n_actions": 0}, "n_actions must be at least 1: got 0"),
        ({"n_actions": 1}, "actions must lie in 0..0: got 1 at actions[1]"),
        ({"discount": 1.5}, "discount must lie in [0, 1]: got 1.5"),
        ({"discount": np.nan}, "discount must be finite: got nan"),
        ({"state_names": ("a", "b")}, "state_names must have one name per state: got 2 for 3 states"),
        ({"action_names": ("x", "x")}, "action_names must all differ: 'x' came twice"),
    ],
)
def test_inconsistent_parts_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        rm.MDP(**parts(WORLD, **changes))
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        dataclasses.replace(WORLD, **changes)
    stored = object.__new__(rm.MDP)
    stored.__dict__.update(parts(WORLD, **changes))
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        pickle.loads(pickle.dumps(stored))


def test_an_altered_pickle_is_refused() -> None:
    data = pickle.dumps(WORLD)
    before = np.array([0, 2, 4, 5, 7]).tobytes()
    assert data.count(before) == 1
    with pytest.raises(ValueError, match=r"^indptr must rise: got 2 at indptr\[2\]$"):
        pickle.loads(data.replace(before, np.array([0, 2000, 2, 5, 7]).tobytes()))


def test_parts_come_as_kernels_take_them() -> None:
    wide = np.repeat(WORLD.probabilities, 2)[::2]
    odd = {
        "indptr": WORLD.indptr.tolist(),
        "indices": WORLD.indices.astype(np.int64),
        "probabilities": wide,
        "rewards": WORLD.rewards.astype(">f8"),
        "state_ptr": WORLD.state_ptr.astype(np.uint8),
        "actions": WORLD.actions.astype(float),
        "state_names": ["a", "b", "c"],
    }
    mdp = rm.MDP(**parts(WORLD, **odd))
    assert mdp == WORLD
    for name in ARRAYS:
        array, wanted = getattr(mdp, name), getattr(WORLD, name)
        assert array.dtype == wanted.dtype
        assert array.dtype.isnative
        assert array.flags.c_contiguous
        assert array.flags.aligned
        assert not array.flags.writeable


def test_a_view_of_the_callers_memory_is_copied() -> None:
    mine = np.concatenate([WORLD.indices, [0]]).astype(np.int32)
    mdp = rm.MDP(**parts(WORLD, indices=mine[:-1]))
    mine[:] = 10**6
    assert mdp == WORLD


@pytest.mark.parametrize("seed", range(30))
def test_builders_make_consistent_models(seed: int) -> None:
    mdp = random_world(seed)
    assert dataclasses.replace(mdp) == mdp  # checked from end to end
    fewer = mdp.with_probabilities(one_hot(mdp))
    assert dataclasses.replace(fewer) == fewer
    first = mdp.restricted(mdp.state_ptr[:-1])
    assert dataclasses.replace(first) == first


def one_hot(mdp: rm.MDP) -> np.ndarray:
    out = np.zeros(mdp.nnz)
    out[mdp.indptr[1:] - 1] = 1.0
    return out


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        (np.zeros(7), "the probabilities of a and action 0 must sum to 1: got 0"),
        ([0.25, 0.75, 0.0, 0.0, 1.0, 0.5, 0.5], "the probabilities of a and action 1 must sum to 1: got 0"),
        ([0.25, 0.75, 0.5, 0.5, 1.0, 0.5, 0.0], "the probabilities of c and action 0 must sum to 1: got 0.5"),
        ([0.25, 0.75, 0.5, 0.5, 1.0, 0.5, 0.6], "the probabilities of c and action 0 must sum to 1: got 1.1"),
        (
            [1.25, -0.25, 0.5, 0.5, 1.0, 0.5, 0.5],
            "probabilities must be at least 0: got -0.25 at probabilities[1], a and",
        ),
        (
            [0.25, 0.75, 0.5, np.nan, 1.0, 0.5, 0.5],
            "probabilities must be at least 0: got nan at probabilities[3], a and",
        ),
        ([0.25, 0.75, 0.5, np.inf, 1.0, 0.5, 0.5], "the probabilities of a and action 1 must sum to 1: got inf"),
        (np.full(7, np.nan), "probabilities must be at least 0: got nan at probabilities[0], a and action 0"),
        (np.full(6, 0.5), "probabilities must have one entry per transition (7): got shape (6,)"),
        (np.full((7, 1), 0.5), "probabilities must have one entry per transition (7): got shape (7, 1)"),
        (0.5, "probabilities must have one entry per transition (7): got shape ()"),
        (np.ones(7, bool), "probabilities must be a number: got True at probabilities[0]"),
        (masked([0.5] * 7), "probabilities must have no masked entries"),
        ([0.25 + 0j] * 7, "probabilities must be a number: got (0.25+0j) at probabilities[0]"),
    ],
)
def test_probabilities_that_cannot_be(probabilities: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        WORLD.with_probabilities(probabilities)


def test_the_callers_probabilities_and_rewards_stay_theirs() -> None:
    p, r = WORLD.probabilities * (1 + 1e-9), WORLD.rewards + 1.0
    one, other = WORLD.with_probabilities(p), WORLD.with_rewards(r)
    assert np.array_equal(p, WORLD.probabilities * (1 + 1e-9))
    p[:], r[:] = 0.0, 0.0
    assert np.abs(one.probabilities - WORLD.probabilities).max() <= 1e-15
    assert np.array_equal(other.rewards, WORLD.rewards + 1.0)


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ([0.0, 1.0, np.nan, 0.0], "rewards must be finite: got nan at rewards[2]"),
        ([0.0, 1.0, 0.0, -np.inf], "rewards must be finite: got -inf at rewards[3]"),
        (np.full(7, np.inf), "rewards must be finite: got inf at rewards[0]"),
        (np.zeros((4, 1)), "rewards must have one entry per pair (4) or transition (7): got (4, 1)"),
        (masked([0.0] * 4), "rewards must have no masked entries"),
        (["0"] * 4, "rewards must be a number: got '0' at rewards[0]"),
        ([0j] * 4, "rewards must be a number: got 0j at rewards[0]"),
    ],
)
def test_rewards_that_cannot_be(rewards: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        WORLD.with_rewards(rewards)


def test_extra_rewards_that_cannot_be() -> None:
    extra = WORLD.table(np.ones(4))  # -inf where an action is unavailable
    assert WORLD.with_extra_rewards(extra).rewards.tolist() == [2.0, 3.0, 1.0, 4.0]
    for value in (np.nan, np.inf, -np.inf):
        extra[0, 1] = value
        with pytest.raises(ValueError, match=rf"^rewards with the extra ones must be finite: got {value} at "):
            WORLD.with_extra_rewards(extra)
    huge = WORLD.with_rewards(np.full(4, 1.5e308))
    with pytest.raises(ValueError, match=r"^rewards with the extra ones must be finite: got inf at "):
        huge.with_extra_rewards(np.full((3, 2), 1.5e308))
    with pytest.raises(ValueError, match=r"^extra rewards must have no masked entries"):
        WORLD.with_extra_rewards(np.ma.masked_less(np.full((3, 2), -1.0), 0))


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([0, 2, 4], "pairs must lie in 0..3: got 4 at pairs[2]"),
        ([-1, 2, 3], "pairs must lie in 0..3: got -1 at pairs[0]"),
        ([0, 2, 2, 3], "pairs must rise: got 2 at pairs[2]"),
        ([2, 0, 3], "pairs must rise: got 0 at pairs[1]"),
        ([0.5, 2, 3], "pairs must be a whole number: got 0.5 at pairs[0]"),
        (np.array([True, False, True, True]), "pairs must be a whole number: got True at pairs[0]"),
        ([[0, 2, 3]], "pairs must be 1-D: got shape (1, 3)"),
        ([0, 2], "every state must keep at least one of its actions"),
        ([], "every state must keep at least one of its actions"),
    ],
)
def test_pairs_that_cannot_be(pairs: Any, message: str) -> None:
    assert WORLD.restricted([0, 2, 3]).n_pairs == 3
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        WORLD.restricted(pairs)


LOG = {"state": [0, 1], "action": [0, 0], "reward": [0.0, 0.0], "next_state": [0, 1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state": np.array([0, 2**64 - 1], np.uint64)}, "state must lie in 0..2147483646: got 18446744073709551615"),
        ({"next_state": [0, 2**31]}, "next_state must lie in 0..2147483646: got 2147483648 at next_state[1]"),
        ({"state": [0.0, np.inf]}, "state must be a whole number: got inf at state[1]"),
        ({"action": masked([0, 0])}, "action must have no masked entries"),
        ({"reward": masked([0.0, 0.0])}, "reward must have no masked entries"),
        ({"reward": [0j, 1j]}, "reward must be a number: got 0j at reward[0]"),
        ({"n_states": 2**31}, "n_states must be at most 2147483647: got 2147483648"),
    ],
)
def test_logs_that_cannot_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        rm.Trajectory(**{**LOG, **change})


def test_counts_take_no_memory_for_numbers_that_are_mistakes() -> None:
    log = rm.Trajectory([0, 2 * 10**9], [0, 0], [0.0, 0.0], [0, 0])
    with pytest.raises(
        ValueError, match=r"^states and actions must be numbered from 0 on: the log has states up to 20"
    ):
        rm.Counts.of(log)
    log = rm.Trajectory([0, 10**6], [0, 10**6], [0.0, 0.0], [0, 0])
    with pytest.raises(ValueError, match=r"^states and actions must be numbered from 0 on"):
        rm.estimate(log, 0.9)


def test_a_simulator_starts_in_a_state() -> None:
    with pytest.raises(TypeError, match=r"^start must be a whole number: got 0\.5$"):
        rm.Simulator(lambda state, action, rng: (0.0, 0, False), 2, 1, 0.9, (0.0, 0.0), start=0.5)
