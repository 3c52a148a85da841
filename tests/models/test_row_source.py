"""Models that exist only as code: their parts are those of `MDP.from_rows`, and what is no model is refused by name."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp.models.row_source import Rows

ARRAYS = Rows._fields
NAMES = ("state", "action", "next_state", "probability", "reward")
Columns = tuple[np.ndarray, ...]


def random_columns(seed: int, *, on_successors: bool) -> tuple[Columns, int]:
    """Ragged rows, some of which end, with gaps between actions, zeros, and sums that are off by more than rounding."""
    rng = np.random.default_rng(seed)
    n_states = int(rng.integers(1, 30))
    rows: list[tuple[Any, ...]] = []
    for state in range(n_states):
        for action in sorted(rng.choice(5, rng.integers(1, 4), replace=False).tolist()):
            successors = np.sort(rng.choice(n_states + 1, rng.integers(1, n_states + 2), replace=False))
            p = rng.dirichlet(np.ones(len(successors))) * rng.choice([1.0, 1 + 1e-8, 1 - 4e-7])
            if len(p) > 2:
                p[1], p[2] = 0.0, p[1] + p[2]
            rewards = rng.normal(size=len(p) if on_successors else 1) * np.ones(len(p))
            rows += [(state, action, t, x, r) for t, x, r in zip(successors, p.tolist(), rewards.tolist(), strict=True)]
    return tuple(np.array(column) for column in zip(*rows, strict=True)), n_states


def source_of(columns: Columns, n_states: int, **changes: Any) -> rm.RowSource:
    def rows(first: int, last: int) -> Columns:
        chosen = (columns[0] >= first) & (columns[0] < last)
        return tuple(column[chosen] for column in columns)

    settings = {"n_actions": int(columns[1].max()) + 1, "discount": 0.9} | changes
    return rm.RowSource(rows, n_states, **settings)


def slice_of(mdp: rm.MDP, first: int, last: int) -> Rows:
    """The obvious way."""
    pairs = slice(mdp.state_ptr[first], mdp.state_ptr[last])
    entries = slice(mdp.indptr[pairs.start], mdp.indptr[pairs.stop])
    return Rows(
        mdp.indptr[pairs.start : pairs.stop + 1] - entries.start,
        mdp.indices[entries],
        mdp.probabilities[entries],
        mdp.rewards[entries if mdp.rewards_on_successors else pairs],
        mdp.state_ptr[first : last + 1] - pairs.start,
        mdp.actions[pairs],
    )


def assert_same_bits(one: Any, other: Any) -> None:
    for name in ARRAYS:
        left, right = getattr(one, name), getattr(other, name)
        assert left.dtype == right.dtype, name
        assert left.tobytes() == right.tobytes(), name


@pytest.mark.parametrize("on_successors", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_parts_are_slices_of_the_model_from_rows(seed: int, on_successors: bool) -> None:
    columns, n_states = random_columns(seed, on_successors=on_successors)
    wanted = rm.MDP.from_rows(*columns, 0.9, n_states=n_states)
    source = source_of(columns, n_states, rewards_on_successors=wanted.rewards_on_successors)
    whole = source.to_mdp()
    assert whole == wanted
    assert_same_bits(whole, wanted)
    first = 0
    while first < n_states:
        last = int(np.random.default_rng([seed, first]).integers(first + 1, n_states + 1))
        assert_same_bits(source.part(first, last), slice_of(wanted, first, last))
        first = last


def test_columns_come_in_many_shapes() -> None:
    columns, n_states = random_columns(3, on_successors=False)
    wanted = source_of(columns, n_states).to_mdp()
    narrow = (*(column.astype(np.int32) for column in columns[:3]), *columns[3:])
    assert source_of(narrow, n_states).to_mdp() == wanted
    by_name = dict(zip(NAMES, columns, strict=True)) | {"note": columns[0]}
    n_actions = wanted.n_actions
    shapes = (by_name, [column.tolist() for column in columns], dict(reversed(by_name.items())))
    for given in shapes:
        assert rm.RowSource(lambda first, last, given=given: given, n_states, n_actions, 0.9).to_mdp() == wanted


def test_zeros_are_no_transitions() -> None:
    source = source_of((np.array([0, 0, 0]), *np.array([[0, 0, 1], [0, 1, 1]]), np.array([1.0, 0, 0]), np.ones(3)), 1)
    assert source.to_mdp() == rm.MDP.from_rows([0], [0], [0], [1.0], [1.0], 0.9)._replace(n_actions=2)


def test_rewards_by_successor_are_kept_where_they_are_equal() -> None:
    columns, n_states = random_columns(5, on_successors=False)
    source = source_of(columns, n_states, rewards_on_successors=True)
    wanted = source_of(columns, n_states).to_mdp()
    assert len(source.part(0, n_states).rewards) == wanted.nnz
    assert np.array_equal(source.to_mdp().mean_rewards().round(12), wanted.rewards.round(12))


@pytest.mark.parametrize("block", [1, 10, 100])
def test_blocks_cover_all_states(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr("robustmdp.models.row_source._FIRST", 2)
    monkeypatch.setattr("robustmdp.models.row_source._BLOCK", block)
    columns, n_states = random_columns(7, on_successors=True)
    source = source_of(columns, n_states, rewards_on_successors=True)
    parts = list(source.parts())
    whole = source.part(0, n_states)
    assert sum(len(part.state_ptr) - 1 for part in parts) == n_states
    for name in ("indices", "probabilities", "rewards", "actions"):
        assert np.array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))


def coin(first: int, last: int) -> Columns:
    """Two states with two actions, of which the second ends."""
    state = np.array([0, 0, 0, 1, 1, 1])
    columns = state, np.array([0, 0, 1] * 2), np.array([0, 1, 2] * 2), np.array([0.5, 0.5, 1.0] * 2), 1.0 * state
    chosen = (state >= first) & (state < last)
    return tuple(column[chosen] for column in columns)


def changed(name: str, row: int, value: Any) -> Callable[[int, int], dict[str, Any]]:
    def rows(first: int, last: int) -> dict[str, Any]:
        columns = dict(zip(NAMES, coin(first, last), strict=True))
        columns[name] = columns[name].astype(np.result_type(columns[name], type(value)))
        columns[name][row] = value
        return columns

    return rows


def without(*names: str) -> Callable[[int, int], dict[str, Any]]:
    return lambda first, last: {n: c for n, c in zip(NAMES, coin(first, last), strict=True) if n not in names}


def kept(keep: Any, **others: Any) -> Callable[[int, int], dict[str, Any]]:
    def rows(first: int, last: int) -> dict[str, Any]:
        return {n: c[others.get(n, keep)] for n, c in zip(NAMES, coin(first, last), strict=True)}

    return rows


WHERE = "(row {} of rows(0, 2))"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (lambda a, b: None, "rows(0, 2) must return the five columns state, action, next_state, probability, reward: "
         "got NoneType"),
        (lambda a, b: coin(a, b)[:4], "rows(0, 2) must return the five columns state, action, next_state, probability, "
         "reward: got 4 things"),
        (without("reward", "action"), "rows(0, 2) must return the columns state, action, next_state, probability, "
         "reward: got state, next_state, probability"),
        (kept(slice(None), reward=slice(5)), "reward must be 1-D and as long as state (6): got shape (5,) in "
         "rows(0, 2)"),
        (kept(slice(None), action=None), "action must be 1-D and as long as state (6): got shape (1, 6) in rows(0, 2)"),
        (kept(slice(0)), "rows(0, 2) must return transitions of every state: got none"),
        (kept(slice(3)), "every state must have an action: state 1 has none in rows(0, 2)"),
        (kept(slice(3, 6)), "every state must have an action: state 0 has none in rows(0, 2)"),
        (changed("state", 3, 0.5), f"state must be a whole number: got 0.5 at state 0.5, action 0 {WHERE.format(3)}"),
        (changed("state", 3, -1), f"state must lie in 0..2147483646: got -1 at state -1, action 0 {WHERE.format(3)}"),
        (changed("state", 5, 2), f"state must lie in 0..1: got 2 at state 2, action 1 {WHERE.format(5)}"),
        (changed("state", 2, 1), "rows must be sorted by state, action and next_state, none twice: got (1, 0, 0) "
         f"behind (1, 1, 2) {WHERE.format(3)}"),
        (changed("action", 5, 2), f"action must lie in 0..1: got 2 at state 1, action 2 {WHERE.format(5)}"),
        (changed("action", 5, np.nan), "action must be a whole number: got nan at state 1, action nan "
         f"{WHERE.format(5)}"),
        (changed("action", 0, 1), "rows must be sorted by state, action and next_state, none twice: got (0, 0, 1) "
         f"behind (0, 1, 0) {WHERE.format(1)}"),
        (changed("next_state", 4, 3), f"next_state must lie in 0..2: got 3 at state 1, action 0 {WHERE.format(4)}"),
        (changed("next_state", 4, -1), f"next_state must lie in 0..2: got -1 at state 1, action 0 {WHERE.format(4)}"),
        (changed("next_state", 4, 0), "rows must be sorted by state, action and next_state, none twice: got (1, 0, 0) "
         f"behind (1, 0, 0) {WHERE.format(4)}"),
        (kept([0, 1, 2, 2, 3, 4, 5]), "rows must be sorted by state, action and next_state, none twice: got (0, 1, 2) "
         f"behind (0, 1, 2) {WHERE.format(3)}"),
        (changed("probability", 4, -0.5), "probability must be finite and at least 0: got -0.5 at state 1, action 0 "
         f"{WHERE.format(4)}"),
        (changed("probability", 4, np.nan), "probability must be finite and at least 0: got nan at state 1, action 0 "
         f"{WHERE.format(4)}"),
        (changed("probability", 4, np.inf), "probability must be finite and at least 0: got inf at state 1, action 0 "
         f"{WHERE.format(4)}"),
        (changed("probability", 4, 0.6), "probabilities must sum to 1: got 1.1 at state 1, action 0 in rows(0, 2)"),
        (changed("probability", 4, 0.0), "probabilities must sum to 1: got 0.5 at state 1, action 0 in rows(0, 2)"),
        (changed("reward", 5, np.inf), f"reward must be finite: got inf at state 1, action 1 {WHERE.format(5)}"),
        (changed("reward", 5, "x"), f"reward must be a number: got '0.0' at state 0, action 0 {WHERE.format(0)}"),
        (changed("reward", 4, 3.5), "the transitions of a pair must have one reward: got 1 and 3.5 at state 1, "
         "action 0 in rows(0, 2); rewards_on_successors=True allows that"),
        (lambda a, b: {"state": 1 / 0}, "rows must return the transitions of states 0 to 1: rows(0, 2) raised "
         "ZeroDivisionError: division by zero"),
    ],
)  # fmt: skip
def test_columns_that_are_no_model(rows: Any, sentence: str) -> None:
    assert rm.RowSource(coin, 2, 2, 0.9).part(0, 2).indices.tolist() == [0, 1, 2, 0, 1, 2]
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        rm.RowSource(rows, 2, 2, 0.9).part(0, 2)


def test_states_beside_those_that_were_asked_for() -> None:
    source = rm.RowSource(lambda first, last: coin(0, 2), 2, 2, 0.9)
    with pytest.raises(
        ValueError, match=r"^state must lie in 1\.\.1: got 0 at state 0, action 0 \(row 0 of rows\(1, 2\)\)$"
    ):
        source.part(1, 2)


def test_what_the_function_raises_is_the_cause() -> None:
    with pytest.raises(ValueError, match=r"raised ZeroDivisionError") as caught:
        rm.RowSource(lambda first, last: 1 // 0, 2, 2, 0.9).part(0, 1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(("first", "last"), [(-1, 1), (0, 3), (1, 1), (2, 1)])
def test_parts_that_cannot_be(first: int, last: int) -> None:
    sentence = f"a part must have states first <= s < last within 0..2: got {first} and {last}"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        rm.RowSource(coin, 2, 2, 0.9).part(first, last)


@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        (
            (None, 2, 2, 0.9),
            TypeError,
            "rows must be a function of the first state and the one after the last: got None",
        ),
        ((coin, 0, 2, 0.9), ValueError, "n_states must be at least 1: got 0"),
        ((coin, 2, 1.5, 0.9), TypeError, "n_actions must be a whole number: got 1.5"),
        ((coin, 2**31, 1, 0.9), ValueError, "n_states must be at most 2147483646: got 2147483648"),
        ((coin, 2, 2, 1.5), ValueError, "discount must lie in [0, 1]: got 1.5"),
    ],
)
def test_settings_that_cannot_be(settings: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
        rm.RowSource(*settings)


def test_actions_whose_numbers_are_mistakes_take_no_memory() -> None:
    with pytest.raises(ValueError, match=r"^actions must be numbered from 0 on: there are 2 states, 6 transitions and"):
        rm.RowSource(coin, 2, 10**9, 0.9).to_mdp()


def test_a_source_is_a_record() -> None:
    source = rm.RowSource(coin, 2, 2, 0.9)
    assert pickle.loads(pickle.dumps(source)) == source


def test_a_part_of_many_blocks_is_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its function is asked for a few states at a time, and the answers are joined."""
    columns, n_states = random_columns(3, on_successors=True)
    source = source_of(columns, n_states, rewards_on_successors=True)
    at_once = source.part(1, n_states)
    for name, value in (("_FIRST", 1), ("_BLOCK", 20)):
        monkeypatch.setattr(f"robustmdp.models.row_source.{name}", value)
    assert len(list(source.parts())) > 2
    assert_same_bits(source.part(1, n_states), at_once)
