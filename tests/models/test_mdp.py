"""Worlds from arrays, sparse matrices, rows and Gymnasium: equal where they say the same, refused where wrong."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import re
from collections.abc import Iterator
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
import scipy.sparse as sp

import robustmdp as rm
from oracles import naive_mdp


def random_arrays(seed: int, reward_dimensions: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Dense transitions with unavailable actions, and rewards on (s), (s, a) or (s, a, s')."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    transitions = rng.random((n, m, n)) * (rng.random((n, m, n)) < 0.6)
    transitions[:, 0, 0] += 0.1
    sums = transitions.sum(axis=2, keepdims=True)
    transitions = np.divide(transitions, sums, out=np.zeros_like(transitions), where=sums > 0)
    return transitions, rng.normal(size=(n, m, n)[:reward_dimensions])


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("seed", range(10))
def test_all_builders_agree(seed: int, dimensions: int) -> None:
    transitions, rewards = random_arrays(seed, dimensions)
    n, m, _ = transitions.shape
    full = np.broadcast_to(rewards.reshape(rewards.shape + (1,) * (3 - dimensions)), transitions.shape)
    dense = rm.MDP.from_arrays(transitions, rewards, 0.9)
    assert dense == rm.MDP.from_arrays(transitions.tolist(), full.tolist(), 0.9)
    for kind in (sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix):
        matrices = [kind(transitions[:, a]) for a in range(m)]
        assert rm.MDP.from_arrays(matrices, rewards, 0.9) == dense
        assert rm.MDP.from_arrays(matrices, [kind(full[:, a]) for a in range(m)], 0.9) == dense
    s, a, following = np.nonzero(transitions)
    order = np.random.default_rng(seed).permutation(len(s))
    columns = (column[order] for column in (s, a, following, transitions[s, a, following], full[s, a, following]))
    rows = rm.MDP.from_rows(*columns, 0.9, n_states=n)
    # Rows know only the actions they name.
    assert dataclasses.replace(rows, n_actions=m) == dense
    assert dense.rewards_on_successors == (dimensions == 3 and dense.nnz > dense.n_pairs)
    assert check_against_naive(dense, naive_mdp.of_arrays(transitions, full, 0.9))


def check_against_naive(mdp: rm.MDP, world: naive_mdp.World) -> bool:
    read = naive_mdp.of_mdp(mdp)
    assert read.rows.keys() == world.rows.keys()
    for pair, row in world.rows.items():
        assert np.array_equal(read.rows[pair].successors, row.successors)
        assert np.array_equal(read.rows[pair].rewards, row.rewards)
        assert np.abs(read.rows[pair].probabilities - row.probabilities).max() <= 1e-15
    return (read.n_states, read.n_actions, read.discount) == (world.n_states, world.n_actions, world.discount)


def test_single_precision_rows_are_normalised() -> None:
    transitions = np.array([[[0.1, 0.2, 0.7]]] * 3, dtype=np.float32)
    mdp = rm.MDP.from_arrays(transitions, np.zeros(3), 0.9)
    assert np.abs(np.add.reduceat(mdp.probabilities, mdp.indptr[:-1]) - 1).max() <= 1e-15


def test_duplicates_merge_with_their_conditional_mean() -> None:
    mdp = rm.MDP.from_rows([0, 0, 0, 1], [0] * 4, [1, 1, 0, 1], [0.2, 0.3, 0.5, 1.0], [10.0, 0.0, 1.0, 2.0], 0.9)
    assert mdp.indices.tolist() == [0, 1, 1]
    assert mdp.probabilities.tolist() == [0.5, 0.5, 1.0]
    assert mdp.rewards.tolist() == pytest.approx([1.0, 4.0, 2.0], rel=1e-15)
    alike = rm.MDP.from_rows([0] * 3, [0] * 3, [0] * 3, [0.1, 0.2, 0.7], [0.3] * 3, 0.9)
    assert alike.rewards.tolist() == [0.3]  # equal rewards stay equal to the bit


def test_entries_merge_only_with_equal_end_flag() -> None:
    columns = ([0, 0, 0], [0, 0, 0], [0, 0, 0], [0.25, 0.25, 0.5], [1.0, 3.0, 5.0])
    mdp = rm.MDP.from_rows(*columns, 0.5, terminated=[False, False, True])
    assert mdp.indices.tolist() == [0, 1]
    assert mdp.probabilities.tolist() == [0.5, 0.5]
    assert mdp.rewards.tolist() == [2.0, 5.0]
    assert mdp.can_end


@pytest.mark.parametrize("shuffled", [False, True])
def test_rows_are_those_of_a_dictionary(shuffled: bool) -> None:
    for seed in range(50):
        rng = np.random.default_rng(seed)
        n_states, n_actions, n = int(rng.integers(1, 5)), int(rng.integers(1, 4)), int(rng.integers(20, 60))
        every = np.divmod(np.arange(n_states * n_actions), n_actions)
        state, action = (
            np.append(all_of, rng.integers(0, size, n))
            for all_of, size in zip(every, (n_states, n_actions), strict=True)
        )
        following = rng.integers(0, n_states, len(state))
        ended = rng.random(len(state)) < 0.3
        weight = np.append(np.ones(len(every[0])), rng.integers(0, 4, n))
        probability = weight / np.bincount(state * n_actions + action, weight)[state * n_actions + action]
        reward = rng.integers(0, 3, len(state)).astype(float)
        order = rng.permutation(len(state)) if shuffled else np.lexsort((action, state))
        columns = [column[order] for column in (state, action, following, probability, reward)]
        mdp = rm.MDP.from_rows(*columns, 0.9, terminated=ended[order], n_states=n_states)
        entries: dict[tuple[int, ...], list[tuple[float, float]]] = {}
        for s, a, t, p, r, end in zip(*(c.tolist() for c in (*columns, ended[order])), strict=True):
            if p > 0:
                entries.setdefault((s, a, end, t), []).append((p, r))
        merged = [(sum(p for p, _ in entries[key]), entries[key]) for key in sorted(entries)]
        means = [sum(p * r for p, r in parts) / total for total, parts in merged]
        assert mdp.indices.tolist() == [n_states if end else t for _, _, end, t in sorted(entries)]
        np.testing.assert_allclose(mdp.probabilities, [total for total, _ in merged], rtol=1e-14)
        given = mdp.rewards if mdp.rewards_on_successors else np.repeat(mdp.rewards, np.diff(mdp.indptr))
        np.testing.assert_allclose(given, means, rtol=1e-14)
        pairs = sorted({key[:2] for key in entries})
        assert list(zip(mdp.states.tolist(), mdp.actions.tolist(), strict=True)) == pairs


def test_endings_at_different_successors_stay_apart() -> None:
    # A hole and a goal both end the episode, with different rewards: nature can tell them apart.
    mdp = rm.MDP.from_rows(
        [0, 0, 1], [0, 0, 0], [0, 1, 1], [0.5, 0.5, 1.0], [0.0, 1.0, 0.0], 0.9, terminated=[True, True, False]
    )
    assert mdp.indices.tolist()[:2] == [2, 2]
    assert mdp.rewards.tolist()[:2] == [0.0, 1.0]
    worst = rm.solve(mdp, rm.Penalized(rm.KL(), 0.0))
    assert abs(worst.value[0]) <= worst.error_bound
    nominal = rm.solve(mdp, rm.Nominal())
    assert abs(nominal.value[0] - 0.5) <= nominal.error_bound


def test_the_successor_n_states_is_the_end() -> None:
    flagged = rm.MDP.from_rows([0, 0], [0, 0], [0, 0], [0.5, 0.5], [1.0, 1.0], 0.9, terminated=[True, False])
    named = rm.MDP.from_rows([0, 0], [0, 0], [0, 1], [0.5, 0.5], [1.0, 1.0], 0.9, n_states=1)
    assert flagged == named
    assert named.n_states == 1


def newest(name: str) -> str:
    versions = [spec.version or 0 for spec in gymnasium.registry.values() if spec.name == name]
    return f"{name}-v{max(versions)}"


@pytest.mark.parametrize("discount", [0.5, 0.95])
@pytest.mark.parametrize("name", ["FrozenLake", "CliffWalking", "Taxi"])
def test_gymnasium(name: str, discount: float) -> None:
    env = gymnasium.make(newest(name))
    table = env.unwrapped.P
    mdp = rm.MDP.from_gymnasium(env, discount)
    assert mdp.n_states == env.observation_space.n == len(table)
    assert mdp.n_actions == env.action_space.n
    assert mdp.can_end
    assert mdp == rm.MDP.from_gymnasium(newest(name), discount)
    naive = naive_mdp.nominal_fixed_point(naive_mdp.of_gymnasium(table, discount))
    solution = rm.solve(mdp, rm.Nominal(), tol=1e-10)
    assert solution.converged
    # Sweeps that move by 1e-13 of the values are within 1e-13/(1-discount) of the fixed point.
    slack = 1e-13 / (1 - discount) * max(1.0, np.abs(naive).max())
    assert np.abs(solution.value - naive).max() <= solution.error_bound + slack
    env.close()


def test_robust_frozen_lake_against_naive_sweeps() -> None:
    env = gymnasium.make("FrozenLake-v1")
    mdp, world = rm.MDP.from_gymnasium(env, 0.8), naive_mdp.of_gymnasium(env.unwrapped.P, 0.8)
    for ambiguity in (rm.Penalized(rm.ChiSquare(), 0.2), rm.Constrained(rm.KL(), 0.05)):
        solution = rm.solve(mdp, ambiguity, tol=1e-10)
        assert (
            np.abs(solution.value - naive_mdp.fixed_point(world, ambiguity, tolerance=1e-11)).max()
            <= solution.error_bound + 1e-10
        )


def test_gymnasium_refusals() -> None:
    with pytest.raises(ValueError, match=r"must publish its transitions as env.unwrapped.P: CartPole-v1 has none"):
        rm.MDP.from_gymnasium("CartPole-v1", 0.9)
    with pytest.raises(ValueError, match=r"must publish .*: object has none"):
        rm.MDP.from_gymnasium(object(), 0.9)
    with pytest.raises(ValueError, match=r"Gymnasium must know the environment: .*FrozenLakes"):
        rm.MDP.from_gymnasium("FrozenLakes-v1", 0.9)
    with pytest.raises(ValueError, match=r"Blackjack-v1 has none; MarkovianQLearning learns without them"):
        rm.MDP.from_gymnasium("Blackjack-v1", 0.9)


@pytest.mark.parametrize("parameters", [{"is_slippery": False}, {"map_name": "8x8", "success_rate": 0.5}, {}])
def test_gymnasium_with_parameters(parameters: dict[str, Any]) -> None:
    made = rm.MDP.from_gymnasium("FrozenLake-v1", discount=0.99, **parameters)
    assert made == rm.MDP.from_gymnasium(gymnasium.make("FrozenLake-v1", **parameters), 0.99)
    assert (made == rm.MDP.from_gymnasium("FrozenLake-v1", 0.99)) == (not parameters)


class Demanding(gymnasium.Env[Any, Any]):
    """An environment that cannot be made without its argument, and takes no other."""

    P: ClassVar[Any] = {0: {0: [(1.0, 0, 0.0, False)]}}

    def __init__(self, size: int) -> None:
        if size < 1:
            raise AssertionError("size\nmust be positive")


class Open(Demanding):
    """An environment whose signature takes any name."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)


@pytest.fixture
def registered() -> Iterator[None]:
    for kind in (Demanding, Open):
        gymnasium.register(f"{kind.__name__}-v0", kind, disable_env_checker=True, order_enforce=False)
    yield
    for kind in (Demanding, Open):
        del gymnasium.registry[f"{kind.__name__}-v0"]


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        (
            "FrozenLake-v1",
            {"slippery": False},
            "^a parameter of FrozenLake-v1 must be one of desc, map_name, is_slippery, success_rate, .*: "
            "got 'slippery'; did you mean 'is_slippery'\\?$",
        ),
        (
            "FrozenLake-v1",
            {"map_name": "9x9"},
            "^Gymnasium must be able to make FrozenLake-v1 with map_name='9x9': KeyError: '9x9'$",
        ),
        (
            "FrozenLake-v1",
            {"max_episode_steps": 5, "success_rate": "a"},
            "^Gymnasium must be able to make FrozenLake-v1 with max_episode_steps=5, success_rate='a': TypeError: "
            "unsupported operand type\\(s\\) for -: 'float' and 'str'$",
        ),
        ("Demanding-v0", {}, "make Demanding-v0: TypeError: .* missing 1 required positional argument: 'size'$"),
        ("Demanding-v0", {"sizes": 1}, "make Demanding-v0 with sizes=1: TypeError: .* keyword argument 'sizes'.*$"),
        ("Demanding-v0", {"size": 0}, "make Demanding-v0 with size=0: AssertionError: size must be positive$"),
        ("Open-v0", {"sizes": 1}, "make Open-v0 with sizes=1: TypeError: .* keyword argument 'sizes'.*$"),
    ],
)
@pytest.mark.usefixtures("registered")
def test_parameters_that_an_environment_refuses(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rm.MDP.from_gymnasium(name, 0.9, **parameters)
    assert rm.MDP.from_gymnasium("Open-v0", 0.9, size=1) == rm.MDP.from_gymnasium("Demanding-v0", 0.9, size=2)


def test_an_environment_that_is_made_takes_no_parameters() -> None:
    message = (
        r"^keyword arguments must come with the id of an environment: got is_slippery=True for FrozenLake-v1, which"
    )
    with pytest.raises(ValueError, match=message):
        rm.MDP.from_gymnasium(gymnasium.make("FrozenLake-v1"), 0.9, is_slippery=True)


def test_different_action_sets() -> None:
    transitions = np.zeros((2, 3, 2))
    transitions[0, [0, 2], 1] = transitions[1, 1, 0] = 1.0
    mdp = rm.MDP.from_arrays(transitions, [1.0, 2.0], 0.9, action_names=["l", "m", "r"])
    assert (mdp.n_pairs, mdp.n_actions) == (3, 3)
    assert mdp.states.tolist() == [0, 0, 1]
    assert mdp.actions.tolist() == [0, 2, 1]
    assert mdp.table(np.arange(3.0)).tolist() == [[0.0, -np.inf, 1.0], [-np.inf, 2.0, -np.inf]]
    assert mdp.pairs(mdp.table(np.arange(3.0))).tolist() == [0.0, 1.0, 2.0]
    assert mdp.pair(1, 1) == 2
    with pytest.raises(ValueError, match="action must be available: m is not in state 0"):
        mdp.pair(0, 1)
    with pytest.raises(ValueError, match=r"state must lie in 0..1: got 2"):
        mdp.pair(2, 0)
    with pytest.raises(ValueError, match=r"table must have shape \(S, A\) = \(2, 3\): got \(2,\)"):
        mdp.pairs([1.0, 2.0])


def test_names() -> None:
    mdp = rm.problems.river_swim(3)
    assert (mdp.state_name(1), mdp.action_name(1)) == ("bank 1", "swim")
    plain = rm.problems.garnet(3, 2, 2, 0.9, seed=0)
    assert (plain.state_name(1), plain.action_name(1)) == ("state 1", "action 1")


def test_an_mdp_cannot_be_changed() -> None:
    mdp = rm.problems.inventory(3)
    for name in ("indptr", "indices", "probabilities", "rewards", "state_ptr", "actions"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(mdp, name)[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        mdp.discount = 0.5


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_the_callers_arrays_stay_theirs(dimensions: int) -> None:
    transitions, rewards = random_arrays(1, dimensions)
    mdp = rm.MDP.from_arrays(transitions, rewards, 0.9)
    before = pickle.loads(pickle.dumps(mdp))
    transitions[:], rewards[:] = 0.0, 0.0  # still writable, and not shared
    assert mdp == before
    columns = [np.array([0]), np.array([0]), np.array([0]), np.array([1.0]), np.array([1.0])]
    rows = rm.MDP.from_rows(*columns, 0.9)
    for column in columns:
        column[:] = 7
    assert rows == rm.MDP.from_rows([0], [0], [0], [1.0], [1.0], 0.9)


@pytest.mark.parametrize(
    "make", [rm.problems.chain, lambda: rm.problems.inventory(4), lambda: naive_mdp.random_world(6)[0]]
)
def test_copies_are_equal(make: Any) -> None:
    mdp = make()
    for other in (pickle.loads(pickle.dumps(mdp)), copy.copy(mdp), copy.deepcopy(mdp), make()):
        assert other == mdp
        assert hash(other) == hash(mdp)
    assert mdp != mdp.with_discount(0.123)
    assert mdp != "mdp"


def test_pickled_and_copied_worlds_are_still_read_only() -> None:
    mdp = rm.problems.chain()
    for other in (pickle.loads(pickle.dumps(mdp)), copy.deepcopy(mdp)):
        assert not other.probabilities.flags.writeable
        assert not other.rewards.flags.writeable


def test_shown() -> None:
    text, html = repr(rm.problems.inventory(4)), rm.problems.inventory(4)._repr_html_()
    for part in ("states", "15 pairs available", "state, action and successor", "0.95", "order 0"):
        assert part in text
        assert part in html
    assert "some end the episode" in repr(rm.MDP.from_rows([0], [0], [0], [1.0], [1.0], 0.9, terminated=[True]))


def test_with_other_parts() -> None:
    mdp = rm.problems.chain()
    assert mdp.with_discount(0.5).discount == 0.5
    with pytest.raises(ValueError, match=r"discount must lie in \[0, 1\]: got 1.5"):
        mdp.with_discount(1.5)
    assert mdp.with_rewards(mdp.rewards) == mdp
    assert mdp.with_rewards(np.arange(38.0)).rewards_on_successors
    with pytest.raises(ValueError, match=r"one entry per pair \(20\) or transition \(38\)"):
        mdp.with_rewards(np.zeros(3))
    assert mdp.with_probabilities(mdp.probabilities) == mdp
    sure = np.zeros(mdp.nnz)
    sure[mdp.indptr[:-1]] = 1.0
    fewer = mdp.with_probabilities(sure)
    assert (fewer.nnz, fewer.n_pairs) == (20, 20)
    assert np.array_equal(fewer.indices, mdp.indices[mdp.indptr[:-1]])


@pytest.mark.parametrize("make", [rm.problems.chain, lambda: rm.problems.inventory(4)])
def test_with_extra_rewards(make: Any) -> None:
    mdp = make()
    extra = np.random.default_rng(0).normal(size=(mdp.n_states, mdp.n_actions))
    assert mdp.with_extra_rewards(extra).mean_rewards() == pytest.approx(
        mdp.mean_rewards() + mdp.pairs(extra), abs=1e-12
    )
    assert mdp.with_extra_rewards(np.zeros_like(extra)) == mdp


def test_dropping_transitions_keeps_what_rewards_depend_on() -> None:
    mdp = rm.MDP.from_arrays([[[0.5, 0.5]], [[0.5, 0.5]]], [[[1.0, 2.0]], [[3.0, 4.0]]], 0.9)
    sure = mdp.with_probabilities(np.array([0.0, 1.0, 1.0, 0.0]))
    assert sure.mean_rewards().tolist() == [2.0, 3.0]
    assert sure.with_extra_rewards([[1.0], [1.0]]).mean_rewards().tolist() == [3.0, 4.0]


def test_sample_follows_the_probabilities() -> None:
    mdp = rm.MDP.from_rows([0, 0, 0, 1], [0, 0, 0, 0], [0, 1, 1, 1], [0.2, 0.3, 0.5, 1.0], [1.0, 2.0, 3.0, 0.0], 0.9,
                           terminated=[False, False, True, False])  # fmt: skip
    rng = np.random.default_rng(0)
    draws = [mdp.sample(0, 0, rng) for _ in range(4000)]
    assert set(draws) == {(1.0, 0, False), (2.0, 1, False), (3.0, 0, True)}
    for outcome, p in (((1.0, 0, False), 0.2), ((2.0, 1, False), 0.3), ((3.0, 0, True), 0.5)):
        assert abs(draws.count(outcome) / 4000 - p) <= 5 * np.sqrt(p * (1 - p) / 4000)  # five deviations
    again = np.random.default_rng(0)
    assert draws[:50] == [mdp.sample(0, 0, again) for _ in range(50)]
    with pytest.raises(ValueError, match="action must be available: action 1 is not in state 0"):
        mdp.sample(0, 1, rng)


@pytest.mark.parametrize(("ends", "expected"), [(False, (2.0, 6.0)), (True, (0.0, 6.0))])
def test_value_range(ends: bool, expected: tuple[float, float]) -> None:
    mdp = rm.MDP.from_rows([0, 1], [0, 0], [1, 1], [1.0, 1.0], [1.0, 3.0], 0.5, terminated=[ends, False])
    assert mdp.value_range == expected


def test_sizes() -> None:
    mdp = rm.problems.chain()
    assert (mdp.n_states, mdp.n_actions, mdp.n_pairs, mdp.nnz, mdp.longest_row) == (10, 2, 20, 38, 2)
    assert mdp.nbytes > 38 * 8


def arrays(change: Any = None, rewards: Any = None, discount: Any = 0.9, **names: Any) -> None:
    transitions = np.full((2, 2, 2), 0.5)
    if change is not None:
        transitions[change[0]] = change[1]
    rm.MDP.from_arrays(transitions, np.zeros(2) if rewards is None else rewards, discount, **names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"change": ((1, 0, 0), 0.47)}, r"transitions\[1, 0\] must sum to 1: got 0.97"),
        (
            {"change": ((1, 0), [1.5, -0.5])},
            r"probability of each transition must be finite and at least 0: got -0.5 at transitions\[1, 0, 1\]",
        ),
        (
            {"change": ((1, 0, 0), np.nan)},
            r"probability of each transition must be finite and at least 0: got nan at transitions\[1, 0, 0\]",
        ),
        (
            {"change": ((1, 0, 0), np.inf)},
            r"probability of each transition must be finite and at least 0: got inf at transitions\[1, 0, 0\]",
        ),
        ({"change": (1, 0.0)}, "every state must have at least one action: state 1 has none"),
        ({"change": (1, 0.0), "state_names": ["x", "y"]}, r"state 1 \(y\) has none"),
        (
            {"rewards": np.zeros(3)},
            r"rewards must have shape \(S,\), \(S, A\) or \(S, A, S\) with S = 2 and A = 2: got \(3,\)",
        ),
        ({"rewards": np.zeros((2, 3))}, r"rewards must have shape .* got \(2, 3\)"),
        ({"rewards": [0.0, np.nan]}, r"reward of each transition must be finite: got nan at transitions\[1, 0, 0\]"),
        ({"rewards": [0.0, np.inf]}, r"reward of each transition must be finite: got inf"),
        (
            {"rewards": [sp.csr_array((2, 2))]},
            r"rewards must be 2 sparse matrices of shape \(2, 2\): got 1 of shape \(2, 2\)",
        ),
        ({"discount": 1.5}, r"discount must lie in \[0, 1\]: got 1.5"),
        ({"discount": -0.1}, r"discount must lie in \[0, 1\]: got -0.1"),
        ({"discount": np.nan}, "discount must be finite: got nan"),
        ({"state_names": ["a", "a"]}, "state_names must all differ: 'a' came twice"),
        ({"action_names": ["a", "a"]}, "action_names must all differ: 'a' came twice"),
        ({"state_names": ["a"]}, "state_names must have one name per state: got 1 for 2 states"),
        ({"action_names": list("abc")}, "action_names must have one name per action: got 3 for 2 actions"),
    ],
)
def test_arrays_that_cannot_be(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        arrays(**arguments)


@pytest.mark.parametrize("shape", [(2, 2), (2, 1, 3), (0, 1, 0), (2,)])
def test_shapes_that_cannot_be(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"transitions must have shape \(S, A, S\)"):
        rm.MDP.from_arrays(np.ones(shape), [1.0], 0.9)


def test_sparse_shapes_that_cannot_be() -> None:
    with pytest.raises(
        ValueError, match=r"square matrices of one size: got \(3, 3\) at transitions\[1\], and \(2, 2\)"
    ):
        rm.MDP.from_arrays([sp.eye_array(2), sp.eye_array(3)], np.zeros(2), 0.9)


def test_discounts_must_be_numbers() -> None:
    with pytest.raises(TypeError, match="discount must be a number: got 'much'"):
        rm.MDP.from_arrays([[[1.0]]], [1.0], "much")


ROW = {"state": [0, 1], "action": [0, 0], "next_state": [0, 1], "probability": [1.0, 1.0], "reward": [0.0, 0.0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state": [-1, 0]}, r"state must be at least 0: got -1 at state\[0\]"),
        ({"action": [0, -2]}, r"action must be at least 0: got -2 at action\[1\]"),
        ({"next_state": [0, -1]}, r"next_state must be at least 0: got -1 at next_state\[1\]"),
        ({"state": [0.5, 1]}, r"state must be a whole number: got 0.5 at state\[0\]"),
        ({"state": ["a", "b"]}, r"state must be a whole number: got 'a' at state\[0\]"),
        ({"state": [0, 1, 2]}, r"must be 1-D and as long as state \(3\): got shape \(2,\)"),
        ({"reward": [[0.0], [0.0]]}, r"reward must be 1-D and as long as state \(2\): got shape \(2, 1\)"),
        ({"n_states": 1}, r"state must lie in 0..0: got 1"),
        ({"next_state": [0, 5], "n_states": 2}, r"next_state must lie in 0..2 \(2 is the end\): got 5"),
        ({"n_states": 3}, "every state must have at least one action: state 2 has none"),
        ({"probability": [1.0, 0.5]}, r"rows\[1, 0\] must sum to 1: got 0.5"),
        ({"probability": [1.0, -1.0]}, r"must be finite and at least 0: got -1.0 at rows\[1, 0, 1\]"),
        ({"probability": [np.nan, 1.0]}, r"must be finite and at least 0: got nan at rows\[0, 0, 0\]"),
        ({"probability": [0.0, 1.0]}, "every state must have at least one action: state 0 has none"),
        ({"reward": [0.0, np.inf]}, r"reward of each transition must be finite: got inf at rows\[1, 0, 1\]"),
        ({"terminated": [True]}, r"terminated must be as long as state \(2\): got \(1,\)"),
        ({name: [] for name in ROW}, "rows must hold at least one transition: got none"),
    ],
)
def test_rows_that_cannot_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rm.MDP.from_rows(**{**ROW, **change}, discount=0.9)


LABELLED = rm.MDP.from_arrays(
    [[[0.5, 0.5]], [[0.0, 1.0]]], [1.0, 0.0], 0.9, labels={"goal": [False, True], "any": [True, True]}, initial=[1, 0]
)


def test_labels_and_initial_are_part_of_a_model() -> None:
    assert {name: mask.tolist() for name, mask in LABELLED.labels.items()} == {
        "any": [True, True],
        "goal": [False, True],
    }
    assert LABELLED.initial is not None
    assert LABELLED.initial.tolist() == [1.0, 0.0]
    plain = rm.MDP.from_arrays([[[0.5, 0.5]], [[0.0, 1.0]]], [1.0, 0.0], 0.9)
    assert (plain.labels, plain.initial) == ({}, None)
    assert plain != LABELLED
    assert plain.with_labels(LABELLED.labels) != LABELLED
    assert plain.with_labels(LABELLED.labels).with_initial(0) == LABELLED
    assert LABELLED.with_labels({}).with_initial(None) == plain
    assert hash(LABELLED) == hash(plain)
    assert "goal (1)" in repr(LABELLED)
    assert "initial" in repr(LABELLED)
    assert "labels" not in repr(plain)


def test_labels_and_initial_are_kept() -> None:
    for same in (
        LABELLED.with_discount(0.5),
        LABELLED.with_probabilities([0.2, 0.8, 1.0]),
        LABELLED.with_rewards([3.0, 4.0]),
        LABELLED.with_extra_rewards([[3.0], [4.0]]),
        LABELLED.restricted([0, 1]),
        rm.solve(LABELLED, rm.Constrained(rm.KL(), 0.1)).worst_case,
    ):
        assert same.with_labels({}) != same
        assert same.labels.keys() == LABELLED.labels.keys()
        assert np.array_equal(same.initial, LABELLED.initial)  # type: ignore[arg-type]
    for copied in (pickle.loads(pickle.dumps(LABELLED)), copy.deepcopy(LABELLED), dataclasses.replace(LABELLED)):
        assert copied == LABELLED
        assert not copied.labels["goal"].flags.writeable
        assert not copied.initial.flags.writeable


def test_labels_cannot_be_changed() -> None:
    mask = np.array([False, True])
    world = LABELLED.with_labels({"goal": mask})
    mask[0] = True
    assert world.labels["goal"].tolist() == [False, True]
    with pytest.raises(ValueError, match="read-only"):
        world.labels["goal"][0] = True
    for change in (
        lambda: world.labels.update(other=mask),
        lambda: world.labels.pop("goal"),
        lambda: world.labels.__setitem__("goal", mask),
        lambda: world.labels.__delitem__("goal"),
    ):
        with pytest.raises(TypeError, match=r"^the labels of a model cannot be changed: mdp.with_labels\(...\) makes"):
            change()
    assert isinstance(world.labels, dict)
    assert (world.labels | {"other": mask}).keys() == {"goal", "other"}
    assert pickle.loads(pickle.dumps(world.labels)).keys() == {"goal"}


@pytest.mark.parametrize(
    ("labels", "error", "sentence"),
    [
        ({"": [True, True]}, ValueError, "the names of labels must be strings that are not empty: got ''"),
        ({3: [True, True]}, ValueError, "the names of labels must be strings that are not empty: got 3"),
        ({"a": [1, 0]}, ValueError, "labels['a'] must be a bool array of shape (2,): got int64 of (2,)"),
        ({"a": [True]}, ValueError, "labels['a'] must be a bool array of shape (2,): got bool of (1,)"),
        ({"a": True}, ValueError, "labels['a'] must be a bool array of shape (2,): got bool of ()"),
        (["a"], TypeError, "labels must be a dict from names to (S,) bool arrays: got list"),
    ],
)
def test_refused_labels(labels: Any, error: type[Exception], sentence: str) -> None:
    for call in (
        LABELLED.with_labels,
        lambda given: dataclasses.replace(LABELLED, labels=given),
        lambda given: rm.MDP.from_rows([0, 1], [0, 0], [1, 0], [1, 1], [0, 0], 0.9, labels=given),
    ):
        with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
            call(labels)


@pytest.mark.parametrize(
    ("initial", "sentence"),
    [
        (2, "initial must be a state in 0..1: got 2"),
        (0.5, "initial must be a state in 0..1: got 0.5"),
        ([1.0], "initial must be a state or have shape (2,): got (1,)"),
        ([0.5, 0.4], "initial must sum to 1: got 0.9"),
        ([1.5, -0.5], "initial must be at least 0 everywhere"),
        ([math.nan, 1.0], "initial must be at least 0 everywhere"),
        (["a", "b"], "initial must be a number: got 'a' at initial[0]"),
    ],
)
def test_refused_initial(initial: Any, sentence: str) -> None:
    for call in (
        LABELLED.with_initial,
        lambda given: dataclasses.replace(LABELLED, initial=given),
        lambda given: rm.MDP.from_rows([0, 1], [0, 0], [1, 0], [1, 1], [0, 0], 0.9, initial=given),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            call(initial)


def test_initial_probabilities_that_do_not_quite_sum_to_one_are_normalised() -> None:
    rough = LABELLED.with_initial([0.3 * (1 + 3e-7), 0.7]).initial
    assert rough is not None
    assert abs(rough.sum() - 1) <= 2 * 2.0**-52
    assert np.signbit(LABELLED.with_initial([-0.0, 1.0]).initial).tolist() == [False, False]  # type: ignore[arg-type]
