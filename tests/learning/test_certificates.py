"""Bounds without a model: they hold, they are told of nothing that they must not know, and what has none is refused."""

from __future__ import annotations

import math
import pickle

import gymnasium
import numpy as np
import pytest

import robustmdp as rm
from oracles.naive_mdp import DIVERGENCES
from robustmdp.learning.concentration import Means, deviations

WORLD = rm.problems.garnet(6, 2, 3, 0.8, seed=3)


def lake() -> rm.MDP:
    """Endings, and rewards on successors."""
    return rm.MDP.from_gymnasium("FrozenLake-v1", 0.9)


def holds(solution: rm.Solution, world: rm.MDP, ambiguity: object) -> bool:
    """Is neither bound broken, at any state?"""
    truth, own = rm.solve(world, ambiguity), rm.evaluate(world, solution.policy, ambiguity)
    return bool((solution.lower <= own.upper).all() and (truth.lower <= solution.upper).all())


# Deviations


def test_a_bet_gains_no_more_than_its_stake():
    """exp(b y - psi(b) y^2) <= 1 + b y for y >= -1, on which everything rests."""
    y = np.concatenate([np.linspace(-1.0, 1.0, 2001), np.geomspace(1.0, 1e3, 500)])
    for bet in 0.9 * 0.5 ** np.arange(14):
        cost = -math.log1p(-bet) - bet
        assert (np.exp(bet * y - cost * y**2) <= (1.0 + bet * y) * (1.0 + 1e-14)).all()


@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.95])
def test_deviations_hold_at_all_times_at_once(p):
    """Over 4,000 coins looked at 200 times each, at most 5 % ever leave their bounds."""
    rng = np.random.default_rng(7)
    tosses = rng.random((4000, 2000)) < p
    centre, every = 0.4, np.arange(10, 2001, 10)
    n, heads = every, np.cumsum(tosses, axis=1)[:, every - 1]
    squares = heads * (1.0 - centre) ** 2 + (n - heads) * centre**2
    below = heads / n - deviations(n, squares, centre, math.log(20.0))
    above = heads / n + deviations(n, squares, 1.0 - centre, math.log(20.0))
    assert (below > p).any(axis=1).mean() <= 0.05
    assert (above < p).any(axis=1).mean() <= 0.05


def test_deviations_shrink_with_variance_and_are_infinite_without_samples():
    many = deviations([0, 1000, 1000], [0.0, 1.0, 250.0], 1.0, 5.0)
    assert many[0] == math.inf
    assert many[1] < 0.25 * many[2]


def test_means_do_not_leave_their_range():
    means = Means(np.array([3]), np.array([0.5]), np.array([[1.5, 0.75]]), np.array([0.0]), np.array([1.0]))
    assert means.upper(10.0) == 1.0
    assert 0.0 <= means.lower(10.0) < 1.0


# Bounds


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
@pytest.mark.parametrize("kind", [rm.Penalized, rm.Constrained])
@pytest.mark.parametrize("make", [lambda: WORLD, lake], ids=["garnet", "lake"])
@pytest.mark.parametrize("learner", [rm.GenerativeQLearning, rm.MarkovianQLearning])
def test_bounds_hold_for_every_set(divergence, kind, make, learner):
    """At 95 % a handful of 64 settings could fail by chance; with these fixed seeds none does."""
    world, ambiguity = make(), kind(divergence, 0.5)
    solution = learner(ambiguity).run(world, samples=60_000, seed=1, confidence=0.95)
    assert solution.confidence == 0.95
    assert holds(solution, world, ambiguity)
    assert np.isfinite(solution.error_bound)


@pytest.mark.parametrize("level", [0.0, 1e-3, 1e6, math.inf])
@pytest.mark.parametrize("kind", [rm.Penalized, rm.Constrained])
@pytest.mark.parametrize("divergence", [rm.ChiSquare(), rm.TotalVariation(), rm.Burg()], ids=repr)
def test_bounds_hold_at_the_limits(level, kind, divergence):
    solution = rm.GenerativeQLearning(kind(divergence, level)).run(WORLD, samples=20_000, confidence=0.9)
    assert holds(solution, WORLD, kind(divergence, level))


def test_levels_may_differ_between_pairs():
    levels = np.linspace(0.0, 2.0, WORLD.n_states * WORLD.n_actions).reshape(WORLD.n_states, WORLD.n_actions)
    levels[-1, -1] = math.inf
    ambiguity = rm.Penalized(rm.ChiSquare(), levels)
    assert holds(rm.GenerativeQLearning(ambiguity).run(WORLD, samples=50_000, confidence=0.95), WORLD, ambiguity)


@pytest.mark.parametrize("divergence", [rm.ChiSquare(), rm.KL(), rm.TotalVariation()], ids=repr)
@pytest.mark.parametrize("learner", [rm.GenerativeQLearning, rm.MarkovianQLearning])
def test_coverage(divergence, learner):
    """100 runs at confidence 0.8: the chance that a valid bound fails in more than 32 of them is below 0.3 %."""
    ambiguity = rm.Penalized(divergence, 1.0)
    runs = learner(ambiguity).run_many(WORLD, samples=20_000, seeds=100, confidence=0.8)
    assert sum(not holds(solution, WORLD, ambiguity) for solution in runs) <= 32
    low, high = WORLD.value_range
    assert np.median([(run.upper - run.lower).max() for run in runs]) < 0.5 * (high - low)


def test_bounds_close_in_with_samples():
    ambiguity = rm.Penalized(rm.ChiSquare(), 2.0)
    widths = [
        float((run.upper - run.lower).max())
        for run in (rm.GenerativeQLearning(ambiguity).run(WORLD, samples=n, confidence=0.95) for n in (40_000, 400_000))
    ]
    assert math.log(widths[0] / widths[1]) / math.log(10.0) >= 0.45


def test_a_small_share_of_learning_or_certifying_is_a_setting():
    ambiguity = rm.Penalized(rm.ChiSquare(), 2.0)
    for share in (0.1, 0.9):
        solution = rm.GenerativeQLearning(ambiguity).run(WORLD, samples=40_000, confidence=0.95, certify_share=share)
        assert holds(solution, WORLD, ambiguity)


def test_printed_algorithms_can_be_certified():
    world, ambiguity = rm.problems.chain(restart=0.5), rm.Penalized(rm.ChiSquare(), 2.0)
    for learner in (rm.GenerativeQLearning.paper(ambiguity, 10), rm.MarkovianQLearning.paper(ambiguity)):
        assert holds(learner.run(world, samples=200_000, confidence=0.95), world, ambiguity)


# Worlds without a model


def simulate(state: int, action: int, rng: np.random.Generator) -> tuple[float, int, bool]:
    """WORLD as code."""
    pair = state * WORLD.n_actions + action
    row = slice(WORLD.indptr[pair], WORLD.indptr[pair + 1])
    return float(WORLD.rewards[pair]), int(rng.choice(WORLD.indices[row], p=WORLD.probabilities[row])), False


def test_a_simulator_is_certified():
    ambiguity = rm.Penalized(rm.KL(), 1.0)
    world = rm.Simulator(simulate, WORLD.n_states, WORLD.n_actions, WORLD.discount, WORLD.reward_range)
    for learner in (rm.GenerativeQLearning(ambiguity), rm.MarkovianQLearning(ambiguity)):
        assert holds(learner.run(world, samples=6_000, confidence=0.95), WORLD, ambiguity)


@pytest.mark.parametrize("behaviour", [None, rm.EpsilonGreedy(0.3)])
def test_an_environment_is_certified(behaviour):
    env, ambiguity = gymnasium.make("FrozenLake-v1"), rm.Penalized(rm.ChiSquare(), 1.0)
    learner = rm.MarkovianQLearning(ambiguity, behaviour)
    solution = learner.run(env, 30_000, confidence=0.95, discount=0.9, reward_range=(0.0, 1.0))
    assert holds(solution, lake(), ambiguity)
    assert solution.samples == 30_000 == solution.visits.sum()


def test_a_log_is_split_in_time():
    rng, ambiguity = np.random.default_rng(0), rm.Penalized(rm.ChiSquare(), 1.0)
    state, columns = 0, []
    for _ in range(40_000):
        action = int(rng.integers(WORLD.n_actions))
        reward, following, _ = simulate(state, action, rng)
        columns.append((state, action, reward, following))
        state = following
    log = rm.Trajectory(*map(np.array, zip(*columns, strict=True)), discount=WORLD.discount)
    solution = rm.MarkovianQLearning(ambiguity).run(log, confidence=0.95, reward_range=WORLD.reward_range)
    assert holds(solution, WORLD, ambiguity)
    policy = solution.policy
    value = rm.learn_value(log, policy, ambiguity, samples=10**6, reward_range=WORLD.reward_range)
    own = rm.evaluate(WORLD, policy, ambiguity)
    assert (value.lower <= own.upper).all()
    assert (own.lower <= value.upper).all()
    assert value.samples == (np.array(columns)[:, 1] == policy[np.array(columns)[:, 0].astype(int)]).sum()
    with pytest.raises(ValueError, match="each transition once"):
        rm.MarkovianQLearning(ambiguity).run(log.replay(3), confidence=0.95, reward_range=WORLD.reward_range)


# Values of a policy


@pytest.mark.parametrize("policy", [[0] * 6, [1] * 6, [0, 1, 0, 1, 0, 1]])
def test_learn_value_bounds_the_value_of_a_policy(policy):
    ambiguity = rm.Penalized(rm.ChiSquare(), 1.0)
    truth = rm.evaluate(WORLD, policy, ambiguity)
    simulator = rm.Simulator(simulate, WORLD.n_states, WORLD.n_actions, WORLD.discount, WORLD.reward_range)
    for world, samples in ((WORLD, 60_000), (simulator, 6_000)):
        learned = rm.learn_value(world, policy, ambiguity, samples=samples)
        assert (learned.lower <= truth.upper).all()
        assert (truth.lower <= learned.upper).all()
        assert learned.policy.tolist() == policy
        assert learned.q.shape == (6, 2)


def test_learn_value_in_an_environment():
    env, ambiguity, policy = gymnasium.make("FrozenLake-v1"), rm.Penalized(rm.ChiSquare(), 1.0), np.full(16, 2)
    learned = rm.learn_value(env, policy, ambiguity, samples=20_000, discount=0.9, reward_range=(0.0, 1.0))
    truth = rm.evaluate(lake(), policy, ambiguity)
    assert (learned.lower <= truth.upper).all()
    assert (truth.lower <= learned.upper).all()


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ([0, 1], r"actions or probabilities, of shape \(6,\) or \(6, 2\)"),
        ([0, 0, 0, 0, 0, 9], r"actions in 0..1: got 9 at state 5"),
    ],
)
def test_policies_that_are_none_are_refused(policy, sentence):
    with pytest.raises(ValueError, match=sentence):
        rm.learn_value(WORLD, policy, rm.Nominal(), samples=1000)


# Refusals


def test_what_has_no_certificate_is_refused_before_learning():
    own = rm.Divergence("own", lambda y: math.exp(y) - 1.0, math.exp)
    with pytest.raises(ValueError, match="a certificate needs a built-in divergence"):
        rm.GenerativeQLearning(rm.Penalized(own, 1.0)).run(WORLD, 10, confidence=0.9)
    with pytest.raises(ValueError, match="a learner with a dual variable: got MultilevelQLearning"):
        rm.MultilevelQLearning(rm.Constrained(rm.KL(), 0.1)).run(WORLD, 10, confidence=0.9)
    learner = rm.MarkovianQLearning(rm.Nominal())
    with pytest.raises(ValueError, match="must know the rewards: give reward_range"):
        learner.run(gymnasium.make("FrozenLake-v1"), 10, confidence=0.9)
    for confidence in (0.0, 1.0, -3.0, math.nan):
        with pytest.raises(ValueError, match="confidence must"):
            learner.run(WORLD, 10, confidence=confidence)
    with pytest.raises(ValueError, match="at least two steps"):
        learner.run(WORLD, 1, confidence=0.9)


def test_a_printed_algorithm_counts_the_samples_that_certify(tmp_path):
    learner, path = rm.GenerativeQLearning.paper(rm.Penalized(rm.ChiSquare(), 1.0), 4), tmp_path / "run.ckpt"
    whole = learner.run(WORLD, 40, confidence=0.95)
    assert whole.samples == 40 * 5 * WORLD.n_pairs
    stop = {"record_every": 30, "callback": lambda step, state: True}
    assert learner.run(WORLD, 40, confidence=0.95, checkpoint=path, **stop).steps == 30
    assert rm.resume(path).q.tobytes() == whole.q.tobytes()


def test_a_run_that_ends_before_it_certifies_says_so():
    learner = rm.GenerativeQLearning(rm.Nominal())
    solution = learner.run(WORLD, 1000, confidence=0.9, callback=lambda step, state: True, record_every=10)
    assert (solution.lower == WORLD.value_range[0]).all()
    assert "before anything was certified" in solution.status.sentence


# Bits


@pytest.mark.parametrize("learner", [rm.GenerativeQLearning, rm.MarkovianQLearning])
@pytest.mark.parametrize("ambiguity", [rm.Penalized(rm.ChiSquare(), 1.0), rm.Constrained(rm.KL(), 0.1)], ids=repr)
@pytest.mark.parametrize("stop", [100, 400, 450, 475, 700])
def test_a_resumed_run_has_the_same_bits(tmp_path, learner, ambiguity, stop):
    """In every phase: learning, learning margins (from 450 of 1,000 on), certifying (from 500 on)."""
    path, runner = tmp_path / "run.ckpt", learner(ambiguity)
    options = {"confidence": 0.95, "record_every": 25}
    stopping = {"checkpoint": path, "callback": lambda step, state: step >= stop}
    first = runner.run(WORLD, 1000, **options, **stopping)
    assert first.status.code == "interrupted"
    assert runner.resume(path) == runner.run(WORLD, 1000, **options)
    assert rm.resume(path) == runner.run(WORLD, 1000, **options)  # finished: nothing is left to do
    assert rm.resume(path).confidence == 0.95


def test_replications_have_the_bits_of_single_runs():
    learner = rm.MarkovianQLearning(rm.Penalized(rm.Hellinger(), 1.0))
    together = learner.run_many(WORLD, 4000, seeds=5, confidence=0.95, threads=2)
    assert together == [learner.run(WORLD, 4000, seed=seed, confidence=0.95) for seed in range(5)]


def test_a_certified_solution_travels():
    solution = rm.GenerativeQLearning(rm.Penalized(rm.KL(), 1.0)).run(WORLD, 100, confidence=0.95)
    copy = pickle.loads(pickle.dumps(solution))
    assert copy == solution
    assert copy.confidence == 0.95
    assert "with 95 % confidence" in repr(solution)
