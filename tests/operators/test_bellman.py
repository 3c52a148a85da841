"""The operator against naive loops, and what Proposition 3.1 says of it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles import naive_mdp
from oracles.naive_mdp import DIVERGENCES, FORMS, LEVELS

AMBIGUITIES = [rm.Nominal(), *(form(d, LEVELS[form]) for form in FORMS for d in DIVERGENCES)]
each_ambiguity = pytest.mark.parametrize("ambiguity", AMBIGUITIES, ids=repr)

# Both sides solve the same rows, from different starts, to a dual error of 1e-12 of outcomes of size 10 at most.
SAME = 1e-11


def mixed_policy(mdp: rm.MDP, seed: int) -> np.ndarray:
    table = np.where(
        np.isfinite(mdp.table(np.zeros(mdp.n_pairs))),
        np.random.default_rng(seed).random((mdp.n_states, mdp.n_actions)),
        0.0,
    )
    return table / table.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(12))
@each_ambiguity
def test_the_operator_is_the_naive_one(ambiguity: Any, seed: int) -> None:
    mdp, world = naive_mdp.random_world(seed)
    bellman = rm.RobustBellman(mdp, ambiguity)
    rng = np.random.default_rng(seed)
    for _ in range(3):  # each pair remembers its last multiplier
        v = rng.normal(0.0, 3.0, mdp.n_states)
        naive = naive_mdp.q_values(world, ambiguity, v)
        assert np.abs(bellman.apply(v) - naive.max(axis=1)).max() <= SAME
        chosen = naive[np.arange(mdp.n_states), bellman.greedy(v)]
        assert np.all(chosen >= naive.max(axis=1) - SAME)
        mixed = mixed_policy(mdp, seed)
        for policy in (mixed, mixed.argmax(axis=1)):
            assert (
                np.abs(bellman.apply_policy(policy, v) - naive_mdp.bellman(world, ambiguity, v, policy)).max() <= SAME
            )
        q = np.where(np.isfinite(naive), rng.normal(0.0, 3.0, naive.shape), -np.inf)
        swept = bellman.apply_q(q)
        expected = naive_mdp.q_values(world, ambiguity, q.max(axis=1))
        assert np.array_equal(np.isneginf(swept), np.isneginf(expected))
        finite = np.isfinite(expected)
        assert np.abs(swept[finite] - expected[finite]).max() <= SAME


@pytest.mark.parametrize("seed", range(4))
@each_ambiguity
def test_contraction_and_monotonicity(ambiguity: Any, seed: int) -> None:
    mdp, _ = naive_mdp.random_world(200 + seed)
    bellman = rm.RobustBellman(mdp, ambiguity)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        v, step = rng.normal(0.0, 3.0, mdp.n_states), rng.exponential(1.0, mdp.n_states)
        low, high = bellman.apply(v), bellman.apply(v + step)
        assert np.all(low <= high + SAME)
        assert np.abs(high - low).max() <= mdp.discount * step.max() + SAME
        other = rng.normal(0.0, 3.0, mdp.n_states)
        assert np.abs(bellman.apply(other) - low).max() <= mdp.discount * np.abs(other - v).max() + SAME


@pytest.mark.parametrize("shift", [-7.0, 0.5, 40.0])
@each_ambiguity
def test_a_shift_is_discounted(ambiguity: Any, shift: float) -> None:
    mdp = rm.problems.garnet(20, 3, 4, 0.9, seed=2)  # no endings: the end's value is fixed
    bellman = rm.RobustBellman(mdp, ambiguity)
    v = np.random.default_rng(0).normal(size=20)
    # The outcomes are up to 40 in size, and rounding with them.
    assert np.abs(bellman.apply(v + shift) - bellman.apply(v) - 0.9 * shift).max() <= 10 * SAME


@pytest.mark.parametrize("seed", range(6))
@each_ambiguity
def test_brackets_hold_the_truth(ambiguity: Any, seed: int) -> None:
    mdp, world = naive_mdp.random_world(300 + seed)
    v = np.random.default_rng(seed).normal(0.0, 3.0, mdp.n_states)
    bracket = rm.RobustBellman(mdp, ambiguity).bracket(v)
    naive = naive_mdp.bellman(world, ambiguity, v)
    assert np.all(bracket.lower <= naive + 1e-14)
    assert np.all(bracket.upper >= naive - 1e-14)
    assert (bracket.upper - bracket.lower).max() <= 1e-8
    assert np.all(bracket.q_lower <= bracket.q_upper)


@each_ambiguity
def test_natures_answer(ambiguity: Any) -> None:
    mdp, world = naive_mdp.random_world(9)
    v = np.random.default_rng(0).normal(0.0, 3.0, mdp.n_states)
    bellman = rm.RobustBellman(mdp, ambiguity)
    model, penalty, eta = bellman.worst_case(v)
    assert np.abs(np.add.reduceat(model.probabilities, model.indptr[:-1]) - 1).max() <= 1e-12
    assert penalty.shape == eta.shape == (mdp.n_states, mdp.n_actions)
    # E_P[r + discount v] + penalty is the worst case itself, up to the gap of its rows.
    explained = rm.RobustBellman(model.with_extra_rewards(penalty), rm.Nominal())
    assert np.abs(explained.apply(v) - naive_mdp.bellman(world, ambiguity, v)).max() <= 1e-8
    assert np.array_equal(np.isnan(eta), np.isneginf(mdp.table(np.zeros(mdp.n_pairs)))) or isinstance(
        ambiguity, rm.Nominal
    )


def test_out_is_used_and_returned() -> None:
    bellman = rm.RobustBellman(rm.problems.chain(), rm.Penalized(rm.KL(), 1.0))
    v, policy = np.arange(10.0), np.zeros(10, dtype=int)
    for out, call in (
        (np.full(10, np.nan), lambda out: bellman.apply(v, out=out)),
        (np.full(10, np.nan), lambda out: bellman.apply_policy(policy, v, out=out)),
        (np.full((10, 2), np.nan), lambda out: bellman.apply_q(np.zeros((10, 2)), out=out)),
    ):
        assert call(out) is out
        assert np.abs(out - call(None)).max() <= SAME  # not equal bits: pairs remember their last multiplier
    for wrong in (np.empty(9), np.empty(10, dtype=np.float32), np.empty((10, 1))):
        with pytest.raises(ValueError, match=r"out must be float64 of shape \(10,\)"):
            bellman.apply(v, out=wrong)


def test_an_iterate_may_be_its_own_out() -> None:
    mdp = rm.problems.garnet(30, 3, 4, 0.9, seed=0)
    first, second = (rm.RobustBellman(mdp, rm.Penalized(rm.ChiSquare(), 1.0)) for _ in range(2))
    v = np.random.default_rng(0).normal(size=30)
    expected = first.apply(v)
    assert np.array_equal(second.apply(v, out=v), expected)


@pytest.mark.parametrize(("v", "shape"), [(np.zeros(9), r"\(9,\)"), (np.zeros((10, 1)), r"\(10, 1\)"), (0.0, r"\(\)")])
def test_wrong_shapes(v: Any, shape: str) -> None:
    bellman = rm.RobustBellman(rm.problems.chain(), rm.Nominal())
    with pytest.raises(ValueError, match=rf"v must have shape \(10,\): got {shape}"):
        bellman.apply(v)
    with pytest.raises(ValueError, match=r"q must have shape \(S, A\) = \(10, 2\)"):
        bellman.apply_q(np.zeros((2, 10)))


@each_ambiguity
def test_threads_do_not_change_a_bit(ambiguity: Any) -> None:
    mdp = rm.problems.garnet(3000, 4, 5, 0.9, seed=3)
    assert mdp.nnz >= 40_000
    v = np.random.default_rng(0).normal(size=3000)
    serial, parallel = (rm.RobustBellman(mdp, ambiguity, threads=n) for n in (1, 2))
    for _ in range(3):  # cold, then from remembered multipliers
        swept = serial.apply(v)
        assert np.array_equal(swept, parallel.apply(v))
        v = swept
    policy = mixed_policy(mdp, 0)
    assert np.array_equal(serial.apply_policy(policy, v), parallel.apply_policy(policy, v))
    assert all(np.array_equal(a, b) for a, b in zip(serial.bracket(v), parallel.bracket(v), strict=True))
    assert serial.worst_case(v).model == parallel.worst_case(v).model


def test_operators_pickle() -> None:
    bellman = rm.RobustBellman(rm.problems.chain(), rm.Constrained(rm.Burg(), 0.1))
    v = np.arange(10.0)
    again = pickle.loads(pickle.dumps(bellman))
    assert np.array_equal(again.apply(v), rm.RobustBellman(bellman.mdp, bellman.ambiguity).apply(v))
    assert "10 states" in repr(again)


def test_rows_are_counted() -> None:
    bellman = rm.RobustBellman(rm.problems.chain(), rm.Nominal())
    bellman.apply(np.zeros(10))
    assert bellman.rows == 20
    bellman.apply_policy(np.zeros(10, dtype=int), np.zeros(10))
    assert bellman.rows == 30


@each_ambiguity
def test_strange_memories_do_no_harm(ambiguity: Any) -> None:
    mdp = rm.problems.garnet(50, 3, 4, 0.9, seed=0)
    rng = np.random.default_rng(0)
    v = rng.normal(size=50)
    expected = rm.RobustBellman(mdp, ambiguity).apply(v)
    directions = rng.normal(size=50)
    for first in (np.zeros(50), 1e8 * directions, 1e-12 * directions, np.full(50, np.nan), np.full(50, np.inf)):
        bellman = rm.RobustBellman(mdp, ambiguity)
        bellman.apply(first)
        assert np.abs(bellman.apply(v) - expected).max() <= SAME


def test_rewards_whose_squares_are_not_numbers_are_refused() -> None:
    """At 1e200 a chi-square ball was "converged" at two thirds of its value."""
    mdp = rm.MDP.from_arrays(np.full((2, 1, 2), 0.5), [1.0, -1e200], 0.9)
    sentence = (
        r"^rewards must be at most 1e\+100 in size, or else their squares are not numbers: got 1e\+200; "
        r"measure them in a larger unit$"
    )
    with pytest.raises(ValueError, match=sentence):
        rm.RobustBellman(mdp, rm.Constrained(rm.ChiSquare(), 0.1))


@pytest.mark.parametrize("divergence", [rm.ChiSquare(), rm.KL(), rm.Hellinger()], ids=repr)
def test_bounds_hold_where_squares_are_zero(divergence: rm.FDivergence) -> None:
    """Rewards of 1e-200: a bound of 1e-212 was claimed, the error was 1e-200."""
    transitions = np.random.default_rng(0).dirichlet(np.ones(5), size=(5, 2))
    rewards = np.random.default_rng(1).random((5, 2))
    ambiguity = rm.Constrained(divergence, 0.1)
    wanted = rm.solve(rm.MDP.from_arrays(transitions, rewards, 0.9), ambiguity, tol=1e-9)
    found = rm.solve(rm.MDP.from_arrays(transitions, 1e-200 * rewards, 0.9), ambiguity)
    assert (np.abs(found.value - 1e-200 * wanted.value) <= found.error_bound).all()


class Mine(rm.RobustBellman):
    """An operator of somebody else."""


def test_a_copy_keeps_the_class() -> None:
    bellman = Mine(rm.problems.chain(), rm.Penalized(rm.KL(), 1.0), threads=1)
    again = pickle.loads(pickle.dumps(bellman))
    assert type(again) is type(copy.copy(bellman)) is Mine
    assert again.threads == 1
