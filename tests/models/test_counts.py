"""Counting a log against dictionaries, models from counts against their formulas, and what a known model adds."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robustmdp as rm
from robustmdp.models.counts import SMOOTHING

Key = tuple[int, int, int, bool]


def random_columns(seed: int, count: int = 400) -> dict[str, np.ndarray]:
    """Transitions of 6 states and 3 actions; endings at several places, noisy rewards, a state nobody acts in."""
    rng = np.random.default_rng(seed)
    return {
        "state": rng.integers(0, 5, count),
        "action": rng.integers(0, 3, count),
        "reward": rng.normal(size=count),
        "next_state": rng.integers(0, 6, count),
        "terminated": rng.random(count) < 0.2,
    }


def naive(columns: dict[str, np.ndarray]) -> tuple[dict[Key, int], dict[Key, float]]:
    """Counts and mean rewards by a dictionary."""
    rewards: dict[Key, list[float]] = defaultdict(list)
    for s, a, r, after, ended in zip(*(columns[name].tolist() for name in columns), strict=True):
        rewards[s, a, after, ended].append(r)
    return {key: len(all_) for key, all_ in rewards.items()}, {key: float(np.mean(r)) for key, r in rewards.items()}


def entries(counts: rm.Counts) -> dict[Key, tuple[float, float]]:
    """What `counts` lists: (count, reward)."""
    lengths = np.diff(counts.indptr)
    columns = (
        np.repeat(counts.state, lengths),
        np.repeat(counts.action, lengths),
        counts.next_state,
        counts.ended,
        counts.count,
        counts.reward,
    )
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    assert len({row[:4] for row in rows}) == len(rows)  # nothing is listed twice
    return {row[:4]: row[4:] for row in rows}


def same_bits(one: rm.Counts, other: rm.Counts) -> bool:
    names = ("state", "action", "indptr", "next_state", "ended", "count", "reward")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_a_dictionary(seed: int) -> None:
    columns = random_columns(seed)
    counts = rm.Counts.of(rm.Trajectory(**columns))
    seen, means = naive(columns)
    found = entries(counts)
    assert found.keys() == seen.keys()
    for key, (count, reward) in found.items():
        assert count == seen[key]
        assert reward == pytest.approx(means[key], rel=1e-12, abs=1e-14)
    visits = np.zeros((6, 3))
    np.add.at(visits, (columns["state"], columns["action"]), 1)
    assert np.array_equal(counts.visits, visits)
    assert counts.unseen.tolist() == np.argwhere(visits == 0).tolist()
    assert np.array_equal(counts.total, visits[counts.state, counts.action])
    assert np.all(np.diff(counts.state * 3 + counts.action) > 0)
    assert "400, " in repr(counts)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 3), st.booleans()), min_size=1))
def test_any_log(rows: list[Key]) -> None:
    s, a, after, ended = (list(column) for column in zip(*rows, strict=True))
    counts = rm.Counts.of(rm.Trajectory(s, a, [1.0] * len(rows), after, ended, n_states=4, n_actions=2))
    assert {key: count for key, (count, _) in entries(counts).items()} == {row: rows.count(row) for row in set(rows)}
    model = counts.model(0.9)
    np.testing.assert_allclose(np.add.reduceat(model.probabilities, model.indptr[:-1]), 1.0, atol=1e-12)
    assert not model.rewards_on_successors
    assert model.n_states == 4


@pytest.mark.parametrize("smoothing", SMOOTHING)
def test_smoothing(smoothing: str) -> None:
    columns = random_columns(5)
    counts = rm.Counts.of(rm.Trajectory(**columns))
    added = {"none": 0.0, "half": 0.5, "laplace": 1.0}[smoothing]
    found = dict(zip(entries(counts), counts.probabilities(smoothing).tolist(), strict=True))
    seen, _ = naive(columns)
    for (s, a, after, ended), p in found.items():
        row = [count for key, count in seen.items() if key[:2] == (s, a)]
        assert p == pytest.approx((seen[s, a, after, ended] + added) / (sum(row) + added * len(row)), rel=1e-14)
    model = rm.estimate(rm.Trajectory(**columns), 0.9, smoothing=smoothing).model
    idle = np.repeat(model.states, np.diff(model.indptr)) == 5
    np.testing.assert_allclose(np.sort(model.probabilities[~idle]), np.sort(list(found.values())), rtol=1e-12)


def test_endings_with_several_successors_stay_apart() -> None:
    """A hole and a goal are two outcomes, and a third is to go on to the goal's place."""
    log = rm.Trajectory([0] * 8, [0] * 8, [0.0] * 5 + [1.0] * 2 + [0.0], [1] * 5 + [2] * 3, [True] * 7 + [False])
    counts = rm.Counts.of(log)
    assert entries(counts) == {(0, 0, 2, False): (1, 0.0), (0, 0, 1, True): (5, 0.0), (0, 0, 2, True): (2, 1.0)}
    model = counts.model(0.5, "none")
    row = slice(model.indptr[0], model.indptr[1])
    assert sorted(zip(model.indices[row], model.probabilities[row], model.rewards[row], strict=True)) == [
        (2, 1 / 8, 0.0),
        (3, 2 / 8, 1.0),
        (3, 5 / 8, 0.0),
    ]
    assert rm.evaluate(model, [0, 0, 0], rm.Nominal()).value[0] == pytest.approx(0.25, abs=1e-7)


def test_rewards_that_differ_take_their_mean() -> None:
    log = rm.Trajectory([0, 0, 0, 0], [0, 0, 0, 0], [1.0, 2.0, 6.0, 0.5], [0, 0, 0, 1])
    assert entries(rm.Counts.of(log)) == {(0, 0, 0, False): (3, 3.0), (0, 0, 1, False): (1, 0.5)}


def test_equal_rewards_stay_per_pair() -> None:
    """0.1 + 0.1 + 0.1 is not 3 * 0.1: a mean by sums would make the reward depend on the successor."""
    rng = np.random.default_rng(0)
    count = 200_001  # several blocks
    state, after = rng.integers(0, 3, count), rng.integers(0, 3, count)
    log = rm.Trajectory(state, np.zeros(count, int), 0.1 * (1 + state), after)
    model = rm.estimate(log, 0.9).model
    assert not model.rewards_on_successors
    assert model.rewards.tolist() == [0.1, 0.2, 0.1 * 3]


class Cut:
    """A log that hands out its transitions in blocks of a size."""

    name, expected_length, fingerprint, window, named = "cut", 1, "cut", 10, (False, False)

    def __init__(self, columns: dict[str, np.ndarray], size: int) -> None:
        self.columns, self.size, self.length = columns, size, len(columns["state"])

    def sizes(self) -> None:
        return None

    def blocks(self, start: int, names: Any) -> Any:
        for first in range(start, self.length, self.size):
            yield {name: self.columns[name][first : first + self.size] for name in names}

    def place(self, name: str, row: int) -> str:
        return f"{name}[{row}]"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_how_a_log_is_cut_does_not_matter(size: int) -> None:
    columns = random_columns(2)
    assert same_bits(
        rm.Counts.of(rm.Trajectory.from_source(Cut(columns, size))), rm.Counts.of(rm.Trajectory(**columns))
    )


def test_many_chunks_make_the_same_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a log were far longer than what is read at a time: counts to the bit, means to rounding."""
    columns = random_columns(3)
    log = rm.Trajectory(**columns)
    whole = rm.Counts.of(log)
    for size in (1, 13, 399):
        pieces = log.chunks(size)
        with monkeypatch.context() as patch:
            patch.setattr(log, "chunks", lambda pieces=pieces: pieces)
            parts = rm.Counts.of(log)
        assert same_bits(rm.Counts(**{**vars(parts), "reward": whole.reward}), whole)
        np.testing.assert_allclose(parts.reward, whole.reward, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_counts_as_memory_does(ending: str, tmp_path: Path) -> None:
    import pandas as pd

    columns = random_columns(4)
    path = tmp_path / f"log.{ending}"
    frame = pd.DataFrame(columns)
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    found = rm.estimate(rm.read_log(path), 0.9)
    expected = rm.estimate(rm.Trajectory(**columns), 0.9)
    assert same_bits(found.counts, expected.counts)
    assert found.model == expected.model


def test_states_nobody_acted_in_stay_and_earn_the_least() -> None:
    log = rm.Trajectory([0, 1], [1, 0], [3.0, -2.0], [2, 0], n_states=4, discount=0.5)
    model, counts, unseen = rm.estimate(log)
    assert unseen.tolist() == [[0, 0], [1, 1], [2, 0], [2, 1], [3, 0], [3, 1]]
    assert counts.visits.tolist() == [[0, 1], [1, 0], [0, 0], [0, 0]]
    assert list(zip(model.states.tolist(), model.actions.tolist(), strict=True)) == [(0, 1), (1, 0), (2, 0), (3, 0)]
    value = rm.evaluate(model, [1, 0, 0, 0], rm.Nominal(), tol=1e-10).value
    np.testing.assert_allclose(value, [3.0 - 2.0, -2.0 + 0.5, -4.0, -4.0], atol=1e-8)  # -2/(1 - 0.5) for ever


def test_names_travel() -> None:
    names = {"state_names": ["a", "b"], "action_names": ["x", "y", "z"]}
    model = rm.estimate(rm.Trajectory([0, 1], [0, 1], [0.0, 0.0], [1, 0], n_actions=3, **names), 0.5).model
    assert model.state_names == ("a", "b")
    assert model.action_names == ("x", "y")  # of z nothing is known


@pytest.fixture
def world() -> rm.MDP:
    return rm.problems.inventory(4)


def log_of(mdp: rm.MDP, count: int, seed: int = 0, pairs: int | None = None) -> rm.Trajectory:
    """Transitions of the first pairs, drawn at random."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, pairs or mdp.n_pairs, count)
    rows = [(int(mdp.states[i]), int(mdp.actions[i])) for i in which]
    seen = [mdp.sample(s, a, rng) for s, a in rows]
    reward, after, ended = (list(column) for column in zip(*seen, strict=True))
    s, a = (list(column) for column in zip(*rows, strict=True))
    return rm.Trajectory(s, a, reward, after, ended, n_states=mdp.n_states, n_actions=mdp.n_actions)


def test_a_known_model_lists_what_was_never_seen(world: rm.MDP) -> None:
    log = log_of(world, 60, pairs=8)
    plain, listed = rm.Counts.of(log), rm.Counts.of(log).with_successors(world)
    before, after = entries(plain), entries(listed)
    assert {key: both for key, both in after.items() if both[0] > 0} == before
    assert len(after) == world.nnz > len(before)
    every = rm.Counts.of(log_of(world, 20_000)).with_successors(world)
    assert entries(every).keys() == after.keys()
    rewards = {key: reward for key, (_, reward) in after.items()}
    lengths = np.diff(world.indptr)
    for s, a, next_state, reward in zip(
        np.repeat(world.states, lengths), np.repeat(world.actions, lengths), world.indices, world.rewards, strict=True
    ):
        assert rewards[s, a, next_state, False] == pytest.approx(reward, rel=1e-12, abs=1e-14)
    assert np.array_equal(listed.unseen, plain.unseen)
    # Unseen pairs are uniform with smoothing, unavailable without.
    model = listed.model(0.9)
    last = model.pair(4, 0)
    assert np.ptp(model.probabilities[model.indptr[last] : model.indptr[last + 1]]) == 0.0
    assert model.n_pairs == world.n_pairs
    assert listed.model(0.9, "none").n_pairs < world.n_pairs
    assert np.isnan(listed.probabilities("none")).sum() > 0


def test_a_known_model_may_be_larger_than_the_log() -> None:
    """A log whose largest state or action was never tried says nothing about how many there are."""
    world = rm.problems.machine_replacement()
    log = rm.Trajectory([0, 0, 1], [0, 0, 0], [0.0, 0.0, 0.0], [1, 1, 2])
    model, counts, unseen = rm.estimate(log, 0.9, known=world)
    assert (counts.n_states, counts.n_actions) == (model.n_states, model.n_actions) == (10, 3)
    assert (model.state_names, model.action_names) == (world.state_names, world.action_names)
    assert len(unseen) == 28
    assert entries(counts)[0, 0, 1, False] == (2, 0.0)


def two_endings() -> rm.MDP:
    """From state 0: on, into a hole (reward 0) or to the goal (reward 1)."""
    return rm.MDP.from_rows(
        [0, 0, 0, 1, 2],
        [0] * 5,
        [0, 1, 2, 1, 2],
        [0.4, 0.3, 0.3, 1, 1],
        [0, 0, 1, 0, 0],
        0.9,
        terminated=[0, 1, 1, 1, 1],
    )


@pytest.mark.parametrize(
    ("seen", "rewards"),
    [
        ([], [0.0, 1.0]),  # neither
        ([(1, 0.0)], [0.0, 1.0]),  # the hole
        ([(2, 1.0)], [0.0, 1.0]),  # the goal
        ([(0, 0.9)], [0.0, 0.9]),  # the goal at a place and with a reward of its own
        ([(1, 0.0), (2, 1.0)], [0.0, 1.0]),  # both
        ([(0, 0.0), (1, 0.5), (2, 1.0)], [0.0, 0.5, 1.0]),  # more than are known
    ],
)
def test_endings_of_a_known_model(seen: list[tuple[int, float]], rewards: list[float]) -> None:
    """A model does not keep where an episode ended; once only the first of its endings was listed, if none was seen."""
    places, earned = [0, *(place for place, _ in seen)], [0.0, *(reward for _, reward in seen)]
    log = rm.Trajectory([0] * len(places), [0] * len(places), earned, places, [False] + [True] * len(seen), n_states=3)
    counts = rm.Counts.of(log).with_successors(two_endings())
    found = {key: both for key, both in entries(counts).items() if key[0] == 0}
    assert sorted(reward for key, (_, reward) in found.items() if key[3]) == rewards
    assert {key[2:]: count for key, (count, _) in found.items() if count} == {(0, False): 1} | {
        (place, True): 1 for place, _ in seen
    }
    model = counts.model(0.9)
    assert np.count_nonzero(model.indices[: model.indptr[1]] == 3) == len(rewards)


def test_a_lake_is_learned_whole() -> None:
    """Its last corner has a hole and the goal beside one state; the log has seen neither."""
    lake = rm.MDP.from_gymnasium("FrozenLake8x8-v1", 0.99)
    log = rm.Trajectory([0], [0], [0.0], [0])
    counts = rm.Counts.of(log).with_successors(lake)
    assert len(counts.count) == lake.nnz
    corner = rm.Counts.of(rm.Trajectory([55] * 2, [1] * 2, [0.0, 0.0], [54, 55], [True, False])).with_successors(lake)
    assert [entry for entry in entries(corner).items() if entry[0][:2] == (55, 1)] == [
        ((55, 1, 55, False), (1, 0.0)),
        ((55, 1, 54, True), (1, 0.0)),
        ((55, 1, 55, True), (0, 1.0)),
    ]


def test_draws_have_the_mean_and_spread_of_dirichlet() -> None:
    log = rm.Trajectory([0] * 9 + [1], [0] * 10, [1.0] * 10, [0] * 6 + [1] * 3 + [0])
    counts = rm.Counts.of(log)
    rng = np.random.default_rng(0)
    first = np.array([counts.draw(0.9, rng).probabilities[0] for _ in range(4000)])
    a, b = 6.5, 3.5
    mean, variance = a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))
    assert abs(first.mean() - mean) <= 4 * np.sqrt(variance / len(first))
    # The standard error of a variance is at most sqrt(2/n) of it for a bounded density like this one.
    assert abs(first.var() / variance - 1) <= 4 * np.sqrt(2 / len(first))


def test_draws_repeat_with_their_seed_and_keep_the_support(world: rm.MDP) -> None:
    counts = rm.Counts.of(log_of(world, 200)).with_successors(world)
    one, same, other = (counts.draw(0.9, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one == same
    assert one != other
    model = counts.model(0.9)
    for draw in (one, other):
        assert np.array_equal(draw.indices, model.indices)
        assert np.array_equal(draw.rewards, model.rewards)
        np.testing.assert_allclose(np.add.reduceat(draw.probabilities, draw.indptr[:-1]), 1.0, atol=1e-12)


LOG = rm.Trajectory([0, 1], [0, 1], [0.0, 1.0], [1, 0])


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: rm.estimate([1, 2], 0.9),
            TypeError,
            "^log must be a Trajectory, such as .*: got list$",
        ),
        (lambda: rm.estimate(LOG), ValueError, "^discount must be given: the log has none$"),
        (lambda: rm.estimate(LOG, 1.5), ValueError, r"^discount must lie in \[0, 1\]: got 1.5$"),
        (
            lambda: rm.estimate(LOG, 0.9, smoothing="halve"),
            ValueError,
            "^smoothing must be one of none, half, laplace: got 'halve'; did you mean 'half'\\?$",
        ),
        (
            lambda: rm.estimate(LOG, 0.9, known=rm.problems.two_state(0.5, 0.9)),
            ValueError,
            r"^the known model must have all states and actions of the log \(2, 2\): got \(2, 1\)$",
        ),
    ],
)
def test_what_cannot_be(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_names_come_from_whoever_has_them() -> None:
    rows = ([0, 1], [0, 0], [1.0, 0.0], [1, 0])
    named = rm.MDP.from_arrays(
        np.full((2, 1, 2), 0.5), [1.0, 0.0], 0.9, state_names=["up", "down"], action_names=["wait"]
    )
    found = rm.estimate(rm.Trajectory(*rows), 0.9, known=named).model
    assert (found.state_names, found.action_names) == (("up", "down"), ("wait",))


def test_a_replayed_log_is_no_new_data() -> None:
    log = rm.Trajectory([0, 1], [0, 0], [1.0, 0.0], [1, 0])
    with pytest.raises(ValueError, match=r"^a log must be counted as it is"):
        rm.models.Counts.of(log.replay(50))
