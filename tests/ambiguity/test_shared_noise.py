"""States whose actions share the noise, against cvxpy, linear programs and what follows from the definition."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
import verify_shared_noise
from oracles import shared_noise as oracle
from oracles.random_rows import MODERATE

ERROR = 1e-6  # Clarabel's

BALLS = [rm.Constrained(divergence, 0.1) for divergence in MODERATE]
PRICES = [rm.Penalized(divergence, 0.5) for divergence in MODERATE]
OTHERS = [rm.L1(0.4), rm.L2(0.2), rm.LInf(0.1), rm.CVaR(0.4), rm.Contamination(0.2), rm.EVaR(0.5)]
SMOOTH_AND_NOT = [BALLS[0], BALLS[1], BALLS[2], PRICES[0], PRICES[1], PRICES[2], *OTHERS[:4]]


def random_state(rng: Any) -> tuple[Any, Any]:
    """p, (K,), and outcomes, (A, K); some of them with ties."""
    n_actions, n = int(rng.integers(1, 7)), int(rng.integers(2, 9))
    p = np.maximum(rng.dirichlet(np.ones(n)), 1e-4)
    outcomes = rng.normal(size=(n_actions, n))
    return p / p.sum(), np.round(outcomes) if rng.random() < 0.3 else outcomes


def bracket(ambiguity: Any, p: Any, outcomes: Any, policy: Any = None) -> tuple[float, float, Any]:
    operator = rm.RobustBellman(oracle.world(p, outcomes[None]), rm.SharedNoise(ambiguity), threads=1)
    rows = None
    if policy is not None:
        from robustmdp.operators.policy import policy_rows

        rows = policy_rows(operator.mdp, policy[None])
    found = operator.bracket(np.zeros(1), rows)
    return float(found.lower[0]), float(found.upper[0]), found.policy[0]


def check(bounds: tuple[float, float, Any], expected: float, error: float) -> None:
    """Both bounds are this value."""
    lower, upper, _ = bounds
    assert lower == pytest.approx(expected, abs=error)
    assert upper == pytest.approx(expected, abs=error)


@pytest.mark.parametrize("ambiguity", [*BALLS, *PRICES, *OTHERS], ids=repr)
def test_agrees_with_cvxpy(ambiguity: Any) -> None:
    rng = np.random.default_rng(0)
    for _ in range(4):
        p, outcomes = random_state(rng)
        given = rng.dirichlet(np.ones(len(outcomes)))
        for policy in (None, given):
            lower, upper, _ = bracket(ambiguity, p, outcomes, policy)
            expected = oracle.value(ambiguity, p, outcomes, policy)
            assert lower - ERROR <= expected <= upper + ERROR
            assert upper - lower <= 1e-8


@pytest.mark.parametrize("radius", [0.0, 0.05, 0.3, 1.0, 2.0])
def test_l1_and_total_variation_are_linear_programs(radius: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(25):
        p, outcomes = random_state(rng)
        expected = oracle.value_in_l1_ball(p, outcomes, radius)
        for ambiguity in (rm.L1(radius), rm.Constrained(rm.TotalVariation(), radius / 2.0)):
            check(bracket(ambiguity, p, outcomes), expected, 1e-9)


def test_weights_and_bounds_belong_to_noise_values() -> None:
    rng = np.random.default_rng(2)
    for _ in range(10):
        p, outcomes = random_state(rng)
        for ambiguity in (
            rm.L1(0.4, weights=rng.uniform(0.5, 2.0, size=len(p))),
            rm.Interval(0.7 * p, np.minimum(1.5 * p, 1.0)),
            rm.Interval(np.zeros(len(p)), np.full(len(p), 0.75)),
        ):
            lower, upper, _ = bracket(ambiguity, p, outcomes)
            assert 0.5 * (lower + upper) == pytest.approx(oracle.value(ambiguity, p, outcomes), abs=ERROR)
            assert upper - lower <= 1e-9


@pytest.mark.parametrize("ambiguity", SMOOTH_AND_NOT, ids=repr)
def test_one_action_is_one_row(ambiguity: Any) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        p, outcomes = random_state(rng)
        lower, upper, policy = bracket(ambiguity, p, outcomes[:1])
        assert policy == [1.0]
        assert 0.5 * (lower + upper) == pytest.approx(rm.worst_case(ambiguity, p, outcomes[0]).value, abs=1e-11)


def test_a_price_may_differ_between_states() -> None:
    """`eta` was asked for the price of each pair."""
    p, outcomes = random_state(np.random.default_rng(5))
    world, prices = oracle.world(p, np.stack([outcomes, outcomes])), [0.5, 1.0]
    for wrap in (rm.SharedNoise, lambda set: rm.Optimistic(rm.SharedNoise(set))):
        together = rm.RobustBellman(world, wrap(rm.Penalized(rm.KL(), prices))).worst_case(np.zeros(2))
        apart = [rm.RobustBellman(world, wrap(rm.Penalized(rm.KL(), each))).worst_case(np.zeros(2)) for each in prices]
        np.testing.assert_array_equal(together.penalty[0], apart[0].penalty[0])
        np.testing.assert_array_equal(together.penalty[1], apart[1].penalty[1])
        assert np.isnan(together.eta).all()


@pytest.mark.parametrize("ambiguity", SMOOTH_AND_NOT, ids=repr)
def test_bounds_hold(ambiguity: Any) -> None:
    """Whatever the policy, its worst case is below `upper`; nature's answer is worth at least `lower`."""
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.full(6, 2.0))
    outcomes = rng.normal(size=(100, 4, 6)) * rng.choice([1e-3, 1.0, 1e3], size=(100, 1, 1))
    operator = rm.RobustBellman(oracle.world(p, outcomes), rm.SharedNoise(ambiguity), threads=1)
    found = operator.bracket(np.zeros(100))
    penalty = operator.worst_case(np.zeros(100)).penalty
    for s in range(100):
        first, last = (operator.worst_noise(np.zeros(100), pair) for pair in (4 * s, 4 * s + 3))
        assert (first == last).all()
        rounding = 1e-13 * np.abs(outcomes[s]).max()
        earned = outcomes[s] @ first + penalty[s, 0]
        assert found.lower[s] <= earned.max() + rounding
        assert found.upper[s] >= earned.max() - 1e-8 * np.abs(outcomes[s]).max()
        for policy in (found.policy[s], rng.dirichlet(np.ones(4)), np.eye(4)[s % 4]):
            value = rm.worst_case(ambiguity, p, policy @ outcomes[s]).value
            assert value <= found.upper[s] + rounding
        assert found.lower[s] <= rm.worst_case(ambiguity, p, found.policy[s] @ outcomes[s]).value + rounding


@pytest.mark.parametrize("divergence", MODERATE, ids=repr)
def test_limits(divergence: Any) -> None:
    """Without room the best mean; with all room the matrix game, of value 0 for rock, paper, scissors."""
    p, outcomes = np.array([0.5, 0.3, 0.2]), np.array([[0.0, 1.0, -1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 0.0]])
    best = float((outcomes @ p).max())
    for ambiguity in (rm.Constrained(divergence, 0.0), rm.Penalized(divergence, np.inf)):
        found = bracket(ambiguity, p, outcomes)
        check(found, best, 1e-13)
        assert found[2].tolist() == [0.0, 0.0, 1.0]
    for ambiguity in (rm.Constrained(divergence, np.inf), rm.Penalized(divergence, 0.0)):
        found = bracket(ambiguity, p, outcomes)
        check(found, 0.0, 1e-13)
        assert found[2] == pytest.approx(np.full(3, 1 / 3), abs=1e-12)


@pytest.mark.parametrize("ambiguity", SMOOTH_AND_NOT, ids=repr)
def test_ties(ambiguity: Any) -> None:
    p, z = np.array([0.25, 0.25, 0.5]), np.array([1.0, 0.0, 2.0])
    alone = rm.worst_case(ambiguity, p, z).value
    for outcomes in (np.array([z, z, z]), np.array([z, z - 5.0])):  # the same, and one that is useless
        check(bracket(ambiguity, p, outcomes), alone, 1e-9)
    check(bracket(ambiguity, p, np.ones((2, 3))), 1.0, 1e-13)


@pytest.mark.parametrize("ambiguity", SMOOTH_AND_NOT, ids=repr)
def test_help_goes_to_one_action(ambiguity: Any) -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        p, outcomes = random_state(rng)
        set = rm.Optimistic(rm.SharedNoise(ambiguity))
        found = rm.RobustBellman(oracle.world(p, outcomes[None]), set, threads=1).bracket(np.zeros(1))
        expected = max(rm.worst_case(rm.Optimistic(ambiguity), p, z).value for z in outcomes)
        assert found.lower[0] - 1e-12 <= expected <= found.upper[0] + 1e-12
        assert found.upper[0] - found.lower[0] <= 1e-9


@pytest.mark.parametrize("ambiguity", [rm.L1(0.3), rm.Constrained(rm.ChiSquare(), 0.2), rm.Penalized(rm.KL(), 1.0)])
def test_solves_an_inventory(ambiguity: Any) -> None:
    def step(stock: Any, order: Any, demand: Any) -> Any:
        have = np.minimum(stock + order, 9)
        return np.maximum(have - demand, 0), 4.0 * np.minimum(have, demand) - order - 2.0 * np.maximum(demand - have, 0)

    demand = np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.1])
    store = rm.MDP.from_noise(step, n_states=10, n_actions=5, noise=demand, discount=0.9)
    shared = rm.solve(store, rm.SharedNoise(ambiguity), tol=1e-9)
    alone, nominal = rm.solve(store, ambiguity, tol=1e-9), rm.solve(store, rm.Nominal(), tol=1e-9)
    assert (alone.lower <= shared.upper).all()
    assert (shared.lower <= nominal.upper).all()
    assert shared.policy.shape == (10, 5)
    assert shared.policy.sum(axis=1) == pytest.approx(np.ones(10))
    assert (shared.upper - shared.lower).max() <= 1e-8
    again = rm.solve(store, rm.SharedNoise(ambiguity), solver=rm.PolicyIteration(), tol=1e-9)
    assert again.value == pytest.approx(shared.value, abs=1e-7)
    own = rm.evaluate(store, shared.policy, rm.SharedNoise(ambiguity), tol=1e-9)
    assert own.value == pytest.approx(shared.value, abs=1e-7)
    levels = np.full(10, ambiguity.level)
    kind = {rm.L1: rm.L1}.get(type(ambiguity), lambda level: type(ambiguity)(ambiguity.divergence, level))
    per_state = rm.solve(store, rm.SharedNoise(kind(levels)), tol=1e-9)
    assert per_state.value == pytest.approx(shared.value, abs=1e-8)


def test_bounds_meet_where_nature_could_concentrate_on_the_worst_noise() -> None:
    """Newton's steps came closer by one part in a hundred each, back and forth across a kink, until none were left."""
    p = np.array([0.0694, 0.2779, 0.3253, 0.3274])
    outcomes = np.array([[0.858, 2.16, 0.703, 0.027], [-1.421, 0.028, -1.256, 1.899], [2.044, 0.916, 1.967, 0.662]])
    doubt = rm.SharedNoise(rm.Constrained(rm.CressieRead(0.25), 0.59))
    found = rm.RobustBellman(oracle.world(p, outcomes[None]), doubt, threads=1).bracket(np.zeros(1))
    assert found.upper[0] - found.lower[0] <= 1e-8
    # The policy makes the last three noise values equally bad, and the ball holds the model restricted to them.
    equal = np.linalg.solve(np.vstack([np.diff(outcomes[:, 1:].T, axis=0), np.ones(3)]), [0.0, 0.0, 1.0])
    assert found.lower[0] == pytest.approx((equal @ outcomes)[1], abs=1e-8)


def test_is_a_record() -> None:
    set = rm.SharedNoise(rm.L1(0.5))
    assert repr(set) == "SharedNoise(L1(0.5))"
    assert set.label == "shared noise L1 radius 0.5"
    assert set == rm.SharedNoise(rm.L1(0.5)) != rm.SharedNoise(rm.L1(0.25))
    assert pickle.loads(pickle.dumps(set)) == set
    assert hash(set) == hash(rm.SharedNoise(rm.L1(0.5)))
    assert set.level == 0.5
    assert set.is_statewise
    assert set.contains(rm.SharedNoise(rm.L1(0.25)))
    assert repr(rm.Optimistic(set)) == "Optimistic(SharedNoise(L1(0.5)))"


def test_refusals() -> None:
    world = rm.MDP.from_arrays([[[1.0]]], [1.0], 0.9)
    with pytest.raises(ValueError, match=r"needs a model made by MDP\.from_noise"):
        rm.solve(world, rm.SharedNoise(rm.L1(0.5)))
    for inner in (rm.Optimistic(rm.L1(0.5)), rm.SharedNoise(rm.L1(0.5)), rm.L1(0.5, support="all")):
        with pytest.raises(ValueError, match=r"must"):
            rm.SharedNoise(inner)
    noisy = oracle.world(np.array([0.5, 0.5]), np.zeros((1, 1, 2)))
    with pytest.raises(ValueError, match="set must be one of the package's"):
        rm.RobustBellman(noisy, rm.SharedNoise(rm.MeanRisk(0.5, rm.CVaR(0.5))))
    with pytest.raises(ValueError, match="weights must have one entry per successor"):
        rm.RobustBellman(noisy, rm.SharedNoise(rm.L1(0.5, weights=[1.0, 1.0, 1.0])))


@pytest.mark.parametrize("index", [3373, 7239, 8545])
def test_averages_near_rounding_end(index: int) -> None:
    """Where a Krylov method broke down, bounds of an iterate met, a chain's solution was not finite."""
    assert verify_shared_noise.judge_world(7, index) == []
