"""Trajectories in memory: pieces, replays, copies and refusals."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustmdp import ChiSquare, MarkovianQLearning, Penalized, read_log
from robustmdp.models.trajectory import Trajectory
from robustmdp.models.transitions import Transitions


def random_log(n: int, seed: int = 0, **settings: Any) -> Trajectory:
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, 5, n), rng.integers(0, 3, n), np.arange(n) / 8, rng.integers(0, 5, n), rng.random(n) < 0.3
    return Trajectory(*columns, **{"n_states": 5, "n_actions": 3, **settings})


def everything(log: Trajectory, **how: Any) -> Transitions:
    pieces = list(log.chunks(**how))
    return Transitions(*map(np.concatenate, zip(*pieces, strict=True))) if pieces else Transitions(*[np.empty(0)] * 5)


def alike(one: Transitions, other: Transitions, start: int = 0) -> bool:
    return all(np.array_equal(a, b[start:]) for a, b in zip(one, other, strict=True))


@given(n=st.integers(1, 40), size=st.integers(1, 50), start=st.integers(0, 130), passes=st.integers(0, 3))
def test_pieces_do_not_change_what_comes(n: int, size: int, start: int, passes: int) -> None:
    log = random_log(n) if passes == 0 else random_log(n).replay(passes, seed=n)
    pieces = list(log.chunks(size, start))
    assert [len(piece.state) for piece in pieces[:-1]] == [size] * (len(pieces) - 1)
    assert alike(everything(log, size=size, start=start), everything(log), start)
    assert len(everything(log).state) == log.length == log.expected_length == n * max(passes, 1)


def test_types() -> None:
    (piece,) = Trajectory([0.0, 1.0], [True, False], [1, 2], np.array([1, 0], dtype=np.uint8), ["True", " 0"]).chunks()
    assert [column.dtype for column in piece] == [np.int64, np.int64, np.float64, np.int64, np.bool_]
    assert [column.tolist() for column in piece] == [[0, 1], [1, 0], [1.0, 2.0], [1, 0], [True, False]]
    assert not any(column.flags.writeable for column in piece)


def test_numbers_as_objects() -> None:
    numbers = np.array([1, np.int64(0), 2.0], dtype=object)
    piece = everything(Trajectory(numbers, numbers, numbers, numbers, numbers > 1))
    assert [column.tolist() for column in piece] == [[1, 0, 2]] * 4 + [[False, False, True]]


def test_nothing_terminates_by_default() -> None:
    assert not everything(Trajectory([0], [0], [1.0], [0])).terminated.any()


def test_sizes() -> None:
    columns = [0, 1], [0, 2], [0.0, 0.0], [4, 0]
    assert (Trajectory(*columns).n_states, Trajectory(*columns).n_actions) == (5, 3)
    log = Trajectory(*columns, n_states=9, n_actions=4, discount=0.5)
    assert (log.n_states, log.n_actions, log.discount) == (9, 4, 0.5)
    assert Trajectory(*columns).discount is None


def test_each_pass_is_a_permutation_of_its_own() -> None:
    log = random_log(100)
    orders = [piece.reward * 8 for piece in log.replay(3, seed=4).chunks(size=100)]
    assert len(orders) == 3
    for order in orders:
        assert sorted(order) == list(range(100))
    assert not any(np.array_equal(orders[i], orders[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    assert not np.array_equal(orders[0], np.arange(100))


def test_transitions_stay_whole_when_shuffled() -> None:
    log = random_log(100)
    shuffled, plain = everything(log.replay(1)), everything(log)
    back = np.argsort(shuffled.reward)
    assert alike(Transitions(*(column[back] for column in shuffled)), plain)


def test_replays_repeat_for_a_seed() -> None:
    log = random_log(50)
    assert alike(everything(log.replay(2, seed=7)), everything(log.replay(2, seed=7)))
    assert not alike(everything(log.replay(2, seed=7)), everything(log.replay(2, seed=8)))
    first = everything(log.replay(1, seed=7))
    assert alike(first, Transitions(*(column[:50] for column in everything(log.replay(2, seed=7)))))


def test_a_replay_of_a_replay_has_all_the_passes() -> None:
    assert alike(everything(random_log(9).replay(2).replay(3, seed=5)), everything(random_log(9).replay(6, seed=5)))


def test_fingerprints() -> None:
    log = random_log(20)
    assert log.fingerprint == random_log(20).fingerprint == pickle.loads(pickle.dumps(log)).fingerprint
    others = [random_log(20, seed=1), random_log(19), log.replay(1), log.replay(2), log.replay(2, seed=1)]
    assert len({log.fingerprint, *(other.fingerprint for other in others)}) == 6


def test_copies_are_alike_and_read_only() -> None:
    log = random_log(30, discount=0.9, state_names=list("abcde")).replay(2, seed=3)
    for other in (pickle.loads(pickle.dumps(log)), copy.deepcopy(log)):
        assert alike(everything(other), everything(log))
        assert (other.discount, other.state_names, other.n_states) == (0.9, tuple("abcde"), 5)
        assert not other._source.transitions.state.flags.writeable


def test_the_callers_arrays_stay_theirs() -> None:
    columns = [np.array([0, 1]), np.array([0, 0]), np.array([1.0, 2.0]), np.array([1, 0]), np.array([False, True])]
    log, before = Trajectory(*columns), [column.copy() for column in columns]
    for column in columns:
        column[:] = 0
    assert alike(everything(log), Transitions(*before))


def test_shown() -> None:
    log = random_log(30, discount=0.9, state_names=list("abcde"), action_names=["l", "m", "r"])
    for part in ("memory", "30", "states", "5", "0.9", "a, b, c, d, e", "l, m, r"):
        assert part in repr(log)
        assert part in log._repr_html_()
    assert "90 in 3 shuffled passes" in repr(log.replay(3))


ROW = {"state": [0, 1], "action": [0, 0], "reward": [0.0, 0.0], "next_state": [0, 1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state": [0, -1]}, r"^state must be at least 0: got -1 at state\[1\]$"),
        ({"action": [-2, 0]}, r"^action must be at least 0: got -2 at action\[0\]$"),
        ({"next_state": [0, 0.5]}, r"^next_state must be a whole number: got 0.5 at next_state\[1\]$"),
        ({"state": [0, np.nan]}, r"^state must be a whole number: got nan at state\[1\]$"),
        ({"state": [0, 1e300]}, r"^state must lie in 0..2147483646: got 1e\+300 at state\[1\]$"),
        ({"state": [0, None]}, r"^state must be a whole number: got None at state\[1\]$"),
        ({"state": ["a", "b"]}, r"^state must be a whole number: got 'a' at state\[0\]$"),
        ({"state": [0, 2], "n_states": 2}, r"^state must lie in 0..1: got 2 at state\[1\]$"),
        ({"next_state": [2, 0], "n_states": 2}, r"^next_state must lie in 0..1: got 2 at next_state\[0\]$"),
        ({"action": [0, 1], "n_actions": 1}, r"^action must lie in 0..0: got 1 at action\[1\]$"),
        ({"reward": [0.0, np.nan]}, r"^reward must be finite: got nan at reward\[1\]$"),
        ({"reward": [-np.inf, 0.0]}, r"^reward must be finite: got -inf at reward\[0\]$"),
        ({"reward": ["x", "y"]}, r"^reward must be a number: got 'x' at reward\[0\]$"),
        ({"terminated": [0, 2]}, r"^terminated must be 0, 1, true or false: got 2 at terminated\[1\]$"),
        ({"terminated": ["true", "yes"]}, r"^terminated must be 0, 1, true or false: got 'yes' at terminated\[1\]$"),
        ({"terminated": [True, None]}, r"^terminated must be 0, 1, true or false: got None at terminated\[1\]$"),
        ({"terminated": [True]}, r"^terminated must be 1-D and as long as state \(2\): got shape \(1,\)$"),
        ({"reward": [0.0]}, r"^reward must be 1-D and as long as state \(2\): got shape \(1,\)$"),
        ({"state": [[0], [1]]}, r"^state must be 1-D and as long as state \(2\): got shape \(2, 1\)$"),
        ({name: [] for name in ROW}, "^a trajectory must hold at least one transition: got none$"),
        ({"n_states": 0}, "^n_states must be at least 1: got 0$"),
        ({"discount": 1.0}, r"^discount must lie in \[0, 1\): got 1$"),
        ({"state_names": ["a"]}, "^state_names must have one name per state: got 1 for 2 states$"),
    ],
)
def test_arrays_that_cannot_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Trajectory(**{**ROW, **change})


@pytest.mark.parametrize("name", ["state", "next_state", "action"])
@pytest.mark.parametrize("number", [2**31 - 1, 2**62, 2**63 - 1])
def test_a_number_too_large_for_a_table_is_named_with_its_row(name: str, number: int, tmp_path: Path) -> None:
    # Parquet tells the largest number in its statistics, so that nobody has to look at the rows.
    pq.write_table(pa.table({**ROW, name: [0, number]}), tmp_path / "log.parquet")
    log = read_log(tmp_path / "log.parquet", discount=0.9)
    message = rf"^{name} must lie in 0\.\.2147483646: got {number} at row 1 of log\.parquet$"
    with pytest.raises(ValueError, match=message):
        MarkovianQLearning(Penalized(ChiSquare(), 1.0)).run(log)
    with pytest.raises(ValueError, match=message):
        next(log.chunks())


def test_arguments_that_cannot_be() -> None:
    log = random_log(3)
    with pytest.raises(ValueError, match="size must be at least 1: got 0"):
        log.chunks(0)
    with pytest.raises(ValueError, match="start must be at least 0: got -1"):
        log.chunks(start=-1)
    with pytest.raises(ValueError, match="passes must be at least 1: got 0"):
        log.replay(0)
    with pytest.raises(ValueError, match="seed must be at least 0: got -1"):
        log.replay(1, seed=-1)
    with pytest.raises(TypeError):
        log.replay(1, seed=0.5)
