"""The value of a given policy that mixes actions, learned: against the model's own, with bounds that hold."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest

import robustmdp as rm
from oracles.naive_mdp import DIVERGENCES
from robustmdp.learning.certificates import Certified, CertifiedState
from robustmdp.learning.concentration import Means
from robustmdp.learning.running import begin
from robustmdp.learning.runs import DeferredInterrupt
from robustmdp.learning.sources import source_of
from robustmdp.operators.policy import policy_pairs

WORLD = rm.problems.garnet(6, 3, 3, 0.8, seed=3)
POLICY = np.random.default_rng(0).dirichlet(np.ones(3), 6)
POLICY[1] = [0.0, 1.0, 0.0]
POLICY[2] = [0.5, 0.0, 0.5]
SETS = [
    kind(divergence, level)
    for divergence in (rm.ChiSquare(), rm.KL(), rm.TotalVariation())
    for kind, level in ((rm.Penalized, 1.0), (rm.Constrained, 0.1))
]
PLAIN = {"discount": None, "reward_range": None, "start": None}


def simulate(state: int, action: int, rng: np.random.Generator) -> tuple[float, int, bool]:
    pair = int(WORLD.state_ptr[state]) + action
    row = slice(WORLD.indptr[pair], WORLD.indptr[pair + 1])
    return float(WORLD.rewards[pair]), int(rng.choice(WORLD.indices[row], p=WORLD.probabilities[row])), False


def walk(count: int, seed: int = 0) -> rm.Trajectory:
    """What the uniform policy meets, as a log."""
    rng, state, rows = np.random.default_rng(seed), 0, []
    for _ in range(count):
        action = int(rng.integers(3))
        reward, following, _ = simulate(state, action, rng)
        rows.append((state, action, reward, following))
        state = following
    return rm.Trajectory(*map(np.array, zip(*rows, strict=True)), n_states=6, n_actions=3, discount=WORLD.discount)


def contains(learned: rm.Solution, truth: rm.Solution) -> bool:
    return bool((learned.lower <= truth.upper).all() and (truth.lower <= learned.upper).all())


@pytest.mark.parametrize("ambiguity", [rm.Nominal(), *SETS], ids=repr)
def test_the_learned_value_is_that_of_the_policy(ambiguity: Any) -> None:
    truth, best = rm.evaluate(WORLD, POLICY, ambiguity), rm.solve(WORLD, ambiguity)
    learned = rm.learn_value(WORLD, POLICY, ambiguity, samples=400_000, confidence=None)
    error = np.abs(learned.value - truth.value).max()
    assert error < 0.02
    assert error < 0.1 * np.abs(best.value - truth.value).max()  # it is not the best value that is learned
    assert contains(learned, truth)  # from one exact sweep
    assert (learned.upper - learned.lower).max() < 0.2
    assert np.array_equal(learned.policy, POLICY)
    used = POLICY > 0.0
    assert np.array_equal(np.isfinite(learned.q), used)
    assert np.allclose((POLICY * np.where(used, learned.q, 0.0)).sum(axis=1), learned.value)
    assert learned.trace["residual"][-1] < 0.1


@pytest.mark.parametrize("ambiguity", SETS, ids=repr)
def test_bounds_hold_and_shrink_in_a_model(ambiguity: Any) -> None:
    truth = rm.evaluate(WORLD, POLICY, ambiguity)
    few, many = (rm.learn_value(WORLD, POLICY, ambiguity, samples=samples) for samples in (20_000, 500_000))
    for learned in (few, many):
        assert learned.confidence == 0.95
        assert contains(learned, truth)
    assert np.all(many.upper - many.lower < 0.5 * (few.upper - few.lower))


@pytest.mark.parametrize("ambiguity", [SETS[0], SETS[3]], ids=repr)
def test_every_world_agrees(ambiguity: Any) -> None:
    truth, (low, high) = rm.evaluate(WORLD, POLICY, ambiguity), WORLD.value_range
    simulator = rm.Simulator(simulate, 6, 3, WORLD.discount, WORLD.reward_range)
    learned = rm.learn_value(simulator, POLICY, ambiguity, samples=20_000)
    assert contains(learned, truth)
    assert learned.visits.sum() == 20_000 - 20_000 % int((POLICY > 0).sum())
    assert not learned.visits[POLICY == 0.0].any()
    log = walk(30_000)
    learned = rm.learn_value(log, POLICY, ambiguity, samples=10**6, reward_range=WORLD.reward_range)
    assert contains(learned, truth)
    (piece,) = log.chunks(size=30_000)
    assert learned.samples == (POLICY[piece.state, piece.action] > 0).sum()
    assert np.abs(learned.value - truth.value).max() < 0.15
    assert np.all(learned.upper - learned.lower < high - low)


def test_an_environment_is_stepped_by_the_policy() -> None:
    ambiguity, policy = rm.Penalized(rm.ChiSquare(), 1.0), np.tile([0.1, 0.2, 0.0, 0.7], (16, 1))
    env, lake = gymnasium.make("FrozenLake-v1"), rm.MDP.from_gymnasium("FrozenLake-v1", 0.9)
    learned = rm.learn_value(env, policy, ambiguity, samples=40_000, discount=0.9, reward_range=(0.0, 1.0))
    assert contains(learned, rm.evaluate(lake, policy, ambiguity))
    assert not learned.visits[:, 2].any()
    shares = learned.visits.sum(axis=0) / learned.visits.sum()
    assert np.abs(shares - policy[0]).max() < 0.02
    plain = rm.learn_value(env, policy, ambiguity, samples=40_000, discount=0.9, confidence=None)
    truth = rm.evaluate(lake, policy, ambiguity).value
    often = plain.visits.sum(axis=1) > 500
    assert np.abs(plain.value - truth)[often].max() < 0.05


@pytest.mark.parametrize("ambiguity", [rm.Nominal(), rm.Penalized(rm.KL(), 1.0)], ids=repr)
def test_one_action_per_state_is_the_same_in_both_forms(ambiguity: Any) -> None:
    actions, log = np.array([0, 1, 2, 0, 1, 2]), walk(5000)
    simulator = rm.Simulator(simulate, 6, 3, WORLD.discount, WORLD.reward_range)
    for world in (WORLD, simulator, log):
        options = {"samples": 1500, "reward_range": WORLD.reward_range}
        plain, table = (rm.learn_value(world, each, ambiguity, **options) for each in (actions, np.eye(3)[actions]))
        for name in ("value", "q", "lower", "upper", "visits"):
            assert np.array_equal(getattr(plain, name), getattr(table, name))
        assert plain.policy.tolist() == actions.tolist()
        assert np.array_equal(table.policy, np.eye(3)[actions])


def test_bounds_cover_in_repeated_runs() -> None:
    """Each certificate may fail in one run of ten; in 60 of them, more than 13 failures would be a sign of an error."""
    ambiguity, failures = rm.Penalized(rm.ChiSquare(), 1.0), 0
    truth = rm.evaluate(WORLD, POLICY, ambiguity)
    for seed in range(60):
        learned = rm.learn_value(WORLD, POLICY, ambiguity, samples=3000, confidence=0.9, seed=seed)
        failures += not contains(learned, truth)
    assert failures <= 13


class Exact(Means):
    """Of sums that hold expectations."""

    def lower(self, log_odds: float) -> np.ndarray:
        return np.maximum(self.mean, self.low)

    def upper(self, log_odds: float) -> np.ndarray:
        return np.minimum(self.mean, self.high)


def outcomes_world(rng: np.random.Generator) -> rm.MDP:
    """Three states, two actions, rewards and endings of each outcome."""
    state, action, following = (part.ravel() for part in np.indices((3, 2, 3)))
    probability = rng.dirichlet(np.full(3, 0.4), 6).ravel() + 1e-6
    probability /= np.repeat(probability.reshape(6, 3).sum(axis=1), 3)
    reward, terminated = rng.normal(size=18), rng.random(18) < 0.2
    return rm.MDP.from_rows(state, action, following, probability, reward, 0.9, terminated=terminated, n_states=3)


def certify(learner: Any, world: rm.MDP, policy: np.ndarray, steps: int, seeds: int) -> CertifiedState:
    pairs, weights = policy_pairs(world, policy)
    assert len(pairs) == world.n_pairs
    source = source_of(world, None, list(range(seeds)), **PLAIN)
    source.shape = replace(source.shape, mixture=weights)
    run = begin(Certified(learner, 0.95, 0.5), source, list(range(seeds)), steps, None, None, 10**9, **PLAIN)
    with DeferredInterrupt() as interrupt:
        run.run_to_end(interrupt)
    assert isinstance(run.state, CertifiedState)
    return run.state


def expect(state: CertifiedState, world: rm.MDP) -> None:
    """Put the expectations of one sample into the sums, outcome by outcome."""
    replications, totals = len(state.diverged), {name: 0.0 for name in state.sums if name != "count"}
    pairs = np.repeat(np.arange(world.n_pairs), np.diff(world.indptr))
    for at, probability in enumerate(world.probabilities):
        for table in state.sums.values():
            table[...] = 0
        entries = (world.states[pairs[at]], np.int32), (pairs[at], np.int32)
        entries += (world.rewards[at], np.float64), (world.indices[at], np.int32)
        state.update.absorb(0, *(np.full((1, replications), entry, kind) for entry, kind in entries))
        totals = {name: total + probability * state.sums[name] for name, total in totals.items()}
    for name, total in totals.items():
        state.sums[name][...] = total
    state.sums["count"][...] = 1


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
@pytest.mark.parametrize("is_ball", [False, True])
def test_expectations_bound_the_operator_of_the_policy(divergence: Any, is_ball: bool) -> None:
    """Without any noise lower <= T_policy V_lower and T_policy V_upper <= upper, whatever few samples have frozen."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        world, level, policy = outcomes_world(rng), 10.0 ** rng.uniform(-2, 1), rng.dirichlet([1.0, 1.0], 3)
        levels = rng.choice([0.0, level, 10.0 * level, math.inf], (3, 2)) if rng.random() < 0.5 else level
        ambiguity = rm.Constrained(divergence, levels) if is_ball else rm.Penalized(divergence, levels)
        bellman = rm.RobustBellman(world, ambiguity)
        for learner in (rm.GenerativeQLearning(ambiguity), rm.MarkovianQLearning(ambiguity)):
            state = certify(learner, world, policy, int(rng.integers(8, 120)), 5)
            lower, upper = state.bounds()
            assert np.isfinite([lower, upper]).all()
            assert np.all(lower <= upper)
            expect(state, world)
            lower, upper = state.evidence(Exact).bound_sweeps()
            slack = 1e-11 * np.ptp(world.value_range)
            for r, (low, high) in enumerate(zip(state.frozen.v_lower, state.frozen.v_upper, strict=True)):
                assert np.all(lower[r] <= bellman.apply_policy(policy, low[:-1]) + slack)
                assert np.all(bellman.apply_policy(policy, high[:-1]) <= upper[r] + slack)


def test_the_error_probability_is_spread_over_all_pairs_of_the_policy() -> None:
    policy = np.full((6, 3), 1.0 / 3.0)
    state = certify(rm.GenerativeQLearning(SETS[0]), WORLD, policy, 10, 1)
    lower, upper = state.evidence().log_odds
    assert lower == pytest.approx(math.log(2 * 18 / 0.05))  # one mean at each of the 18 pairs
    assert upper == pytest.approx(math.log(2 * 3 * 18 / 0.05))  # J, and E t on both sides


def test_replications_side_by_side_have_the_bits_of_single_ones() -> None:
    policy = np.random.default_rng(4).dirichlet(np.ones(3), 6)
    for learner in (rm.GenerativeQLearning(SETS[1]), rm.MarkovianQLearning(SETS[2])):
        many = certify(learner, WORLD, policy, 400, 6)
        for seed in (0, 4, 5):
            source = source_of(WORLD, None, [seed], **PLAIN)
            source.shape = replace(source.shape, mixture=policy_pairs(WORLD, policy).weights)
            alone = learner.run(source, 400, confidence=0.95)
            assert np.array_equal(alone.q.ravel(), many.q().reshape(6, -1)[seed])
            assert np.array_equal(alone.lower, many.bounds()[0][seed])


NEGATIVE, SHORT, NAN = (POLICY.copy() for _ in range(3))
NEGATIVE[3] = [1.5, -0.5, 0.0]
SHORT[4, 0] += 0.25
NAN[5, 1] = math.nan


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (NEGATIVE, r"policy must be finite and at least 0: got -0.5 at policy\[3, 1\]"),
        (NAN, r"policy must be finite and at least 0: got nan at policy\[5, 1\]"),
        (SHORT, r"policy\[4\] must sum to 1: got 1.25"),
        (POLICY[:, :2], r"policy must hold actions or probabilities, of shape \(6,\) or \(6, 3\): got \(6, 2\)"),
        ([0, 1], r"policy must hold actions or probabilities, of shape \(6,\) or \(6, 3\): got \(2,\)"),
        ([0, 0, 0, 0, 0, 9], r"policy must name actions in 0\.\.2: got 9 at state 5"),
        ([0, 0, 0, 0, 0, 0.5], "policy must hold whole numbers of actions"),
    ],
)
@pytest.mark.parametrize("kind", ["MDP", "Simulator", "Trajectory"])
def test_what_is_no_policy_is_refused(kind: str, policy: Any, sentence: str) -> None:
    simulator = rm.Simulator(simulate, 6, 3, WORLD.discount, WORLD.reward_range)
    world = {"MDP": WORLD, "Simulator": simulator, "Trajectory": walk(10)}[kind]
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        rm.learn_value(world, policy, rm.Nominal(), samples=1000, reward_range=WORLD.reward_range)


def test_unavailable_actions_are_refused() -> None:
    fewer = WORLD.restricted(np.delete(np.arange(18), 7))  # state 2 has no action 1
    policy = np.full((6, 3), 1.0 / 3.0)
    with pytest.raises(
        ValueError, match=r"^policy must use available actions only: it puts mass on action 1 in state 2$"
    ):
        rm.learn_value(fewer, policy, rm.Nominal(), samples=1000)
    policy[2] = [0.5, 0.0, 0.5]
    truth = rm.evaluate(fewer, policy, rm.Nominal())
    assert contains(rm.learn_value(fewer, policy, rm.Nominal(), samples=10_000), truth)


def test_a_log_without_the_policys_actions_is_refused() -> None:
    log = rm.Trajectory([0, 1], [0, 0], [0.0, 1.0], [1, 0], n_actions=2, discount=0.5)
    with pytest.raises(ValueError, match=r"^a log must hold transitions by the policy's actions: got none$"):
        rm.learn_value(log, [1, 1], rm.Nominal(), samples=10, reward_range=(0.0, 1.0))
