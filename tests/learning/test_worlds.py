"""Every world a learner takes: the right frequencies, learned, and the same bits for the same transitions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import minari
import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gymnasium import spaces
from minari.data_collector import EpisodeBuffer
from scipy import stats

import robustmdp as rm
from robustmdp import _core
from robustmdp.learning.sources import Experience, source_of

N, M, DISCOUNT = 3, 2, 0.9
DOUBT = rm.Penalized(rm.ChiSquare(), 1.0)
PLAIN = {"discount": None, "reward_range": None, "start": None}

# P[s, a, s'], whose last column is the end, and rewards on (s, a, s'), partly negative and outside [0, 1].
_rng = np.random.default_rng(6)
P = _rng.dirichlet(np.ones(N), (N, M))
P = np.concatenate([0.9 * P, np.full((N, M, 1), 0.1)], axis=2)
EDGES = P.cumsum(axis=2)
R = np.round(_rng.normal(size=(N, M, N + 1)), 2)
RANGE = (float(R.min()), float(R.max()))


def model() -> rm.MDP:
    state, action, following = (axis.ravel() for axis in np.indices((N, M, N + 1)))
    return rm.MDP.from_rows(state, action, following, P.ravel(), R.ravel(), DISCOUNT, n_states=N)


@numba.njit
def sample(state, action, rng):
    u, following = rng.random(), 0
    while following < N and u >= EDGES[state, action, following]:
        following += 1
    return R[state, action, following], following % N, following == N


class Env(gymnasium.Env[Any, Any]):
    """The same world as an environment, whose states count from 10 and actions from 5; cut off after 9 steps."""

    observation_space = spaces.Discrete(N, start=10)
    action_space = spaces.Discrete(M, start=5)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.state, self.age = 0, 0
        return 10, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        reward, self.state, terminated = getattr(sample, "py_func", sample)(self.state, action - 5, self.np_random)
        self.age += 1
        return 10 + self.state, float(reward), bool(terminated), self.age == 9, {}


class Recorder(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Writes down what an environment with plain discrete spaces does."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.rows: list[tuple[int, int, float, int, bool]] = []

    def reset(self, **options: Any) -> Any:
        self.state, info = self.env.reset(**options)
        return self.state, info

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(action)
        first, offset = int(self.observation_space.start), int(self.action_space.start)
        row = (self.state - first, action - offset, float(reward), observation - first, terminated)
        self.rows.append(tuple(np.asarray(entry).item() for entry in row))
        self.state = observation
        return observation, reward, terminated, truncated, info

    def log(self, **sizes: Any) -> rm.Trajectory:
        return rm.Trajectory(*zip(*self.rows, strict=True), **sizes)


def simulator(compiled: bool) -> rm.Simulator:
    return rm.Simulator(sample if compiled else getattr(sample, "py_func", sample), N, M, DISCOUNT, RANGE)


WORLDS = {
    "MDP": model,
    "Gymnasium": Env,
    "Python": lambda: simulator(False),
    "compiled": lambda: simulator(True),
}


def options(kind: str) -> dict[str, Any]:
    return {"discount": DISCOUNT} if kind == "Gymnasium" else {}


def walked(mdp: rm.MDP, count: int, seed: int = 0) -> rm.Trajectory:
    """What the uniform policy meets in a model, as a log."""
    room = Experience.empty(1, count)
    source_of(mdp, None, [seed], **PLAIN).follow_policy(0, room)
    states, pairs, rewards, following = (column.ravel() for column in room)
    terminated = following == mdp.n_states
    return rm.Trajectory(
        states,
        mdp.actions[pairs],
        rewards,
        np.where(terminated, 0, following),
        terminated,
        n_states=mdp.n_states,
        n_actions=mdp.n_actions,
        discount=mdp.discount,
    )


def yardstick(world: rm.MDP, ambiguity: Any, samples: int, *, trajectory: bool) -> float:
    """How far the solution of the counted model is from the truth on average, which is what samples are worth."""
    exact = rm.solve(world, ambiguity, tol=1e-11).q
    counted = rm.PlugIn(ambiguity, trajectory=trajectory)
    solutions = counted.run_many(world, samples=samples, seeds=10, record_every=10**9)
    return float(np.mean([np.abs(solution.q - exact).max() for solution in solutions]))


def same(a: rm.Solution, b: rm.Solution) -> bool:
    """Equal to the bit in all that was learned."""
    return all(np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True) for name in ("q", "visits", "eta"))


def newest(name: str) -> str:
    return f"{name}-v{max(spec.version or 0 for spec in gymnasium.registry.values() if spec.name == name)}"


# Drawing from a model.


def row(n: int) -> np.ndarray:
    """Probabilities over many orders of magnitude, as a row of a model has them."""
    p = 10.0 ** np.random.default_rng(n).uniform(-8, 0, n)
    return p / p.sum()


@pytest.mark.parametrize("p", [[1.0], [0.5, 0.5], [1e-300, 1.0], [1e-12, 1 - 1e-12], [1 / 3] * 3, [0.1] * 10])
def test_alias_tables_hold_the_given_probabilities(p: list[float]) -> None:
    check_alias_tables(np.array(p))


@pytest.mark.parametrize("n", [2, 7, 100, 1000, 100_000])
def test_alias_tables_of_long_rows_hold_the_given_probabilities(n: int) -> None:
    check_alias_tables(row(n))


def check_alias_tables(p: np.ndarray) -> None:
    n = len(p)
    keep, other = np.empty(n), np.empty(n, np.int32)
    _core.fill_alias(np.array([0, n]), p, keep, other)
    assert keep.min() >= 0
    assert keep.max() <= 1
    held = (keep + np.bincount(other, 1.0 - keep, n)) / n
    # Each of the at most n transfers to a column loses about an ulp of 1 in units of 1/n.
    assert np.abs(held - p).max() <= 4e-16 * max(1, np.sqrt(n))


@pytest.mark.parametrize("n", [1, 2, 30, 1000])
def test_successors_come_as_often_as_the_model_says(n: int) -> None:
    states = np.concatenate([np.zeros(n, int), np.arange(1, n)])
    following = np.concatenate([np.arange(n), np.zeros(n - 1, int)])
    p = np.random.default_rng(n).dirichlet(np.ones(n))
    probabilities = np.concatenate([p, np.ones(n - 1)])
    world = rm.MDP.from_rows(states, 0 * states, following, probabilities, np.zeros(2 * n - 1), 0.9)
    count = 500_000
    _, drawn = source_of(world, None, [1], **PLAIN).draws(0, 0, 0, count)
    seen = np.bincount(drawn, minlength=n)
    often = count * p >= 5  # below that the statistic is not chi-square
    observed, expected = (np.append(x[often], x[~often].sum()) for x in (seen, count * p))
    if expected[-1] == 0.0:
        observed, expected = observed[:-1], expected[:-1]
    # Too far and too near are both wrong; the seed is fixed, so this either always holds or never.
    assert n == 1 or 1e-3 < stats.chisquare(observed, expected).pvalue < 1 - 1e-3
    assert seen.sum() == count


def test_what_is_all_but_impossible_does_not_come() -> None:
    world = rm.MDP.from_rows([0, 0, 1], [0, 0, 0], [0, 1, 1], [1 - 1e-12, 1e-12, 1.0], [0.0, 0.0, 0.0], 0.9)
    _, drawn = source_of(world, None, [0], **PLAIN).draws(0, 0, 0, 1_000_000)
    assert not drawn.any()


def test_consecutive_draws_are_independent() -> None:
    world = rm.MDP.from_rows([0, 0, 1, 1], [0] * 4, [0, 1, 0, 1], [0.5] * 4, [0.0] * 4, 0.9)
    _, drawn = source_of(world, None, [0], **PLAIN).draws(0, 0, 0, 1_000_000)
    for lag in (1, 2, 3, 4, 8):
        counts = np.bincount(2 * drawn[:-lag] + drawn[lag:], minlength=4)
        assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("kind", WORLDS)
def test_actions_come_as_often_as_the_behaviour_says(kind: str) -> None:
    behaviour = np.array([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]])
    learner = rm.MarkovianQLearning(DOUBT, behaviour)
    visits = learner.run(WORLDS[kind](), 20_000, seed=3, **options(kind)).visits
    assert visits is not None
    for state in range(N):
        assert stats.chisquare(visits[state], visits[state].sum() * behaviour[state]).pvalue > 1e-3


@pytest.mark.parametrize("kind", WORLDS)
def test_an_action_of_probability_zero_never_comes(kind: str) -> None:
    learner = rm.MarkovianQLearning(DOUBT, [0.0, 1.0])
    with pytest.warns(RuntimeWarning, match="must visit every pair"):
        visits = learner.run(WORLDS[kind](), 2000, **options(kind)).visits
    assert not visits[:, 0].any()
    assert visits[:, 1].all()


@contextmanager
def unvisited() -> Iterator[None]:
    """Short runs may leave an action untried; that is not what is tested here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the behaviour policy must visit every pair", RuntimeWarning)
        yield


# Learning.


@pytest.mark.parametrize("ambiguity", [rm.Nominal(), DOUBT, rm.Penalized(rm.KL(), 0.5)], ids=str)
@pytest.mark.parametrize("kind", ["MDP", "Gymnasium", "Python"])
def test_a_trajectory_of_every_world_is_learned(kind: str, ambiguity: Any) -> None:
    # The compiled simulator gives the bits of the Python one: see below.
    steps, exact = 10_000, rm.solve(model(), ambiguity, tol=1e-11).q
    learner, world = rm.MarkovianQLearning(ambiguity), WORLDS[kind]()
    runs = [learner.run(world, steps, seed=seed, **options(kind)) for seed in range(3)]
    error = np.mean([np.abs(learned.q - exact).max() for learned in runs])
    # Half more than what the samples are worth leaves room for the luck of three paths.
    assert error <= 1.5 * yardstick(model(), ambiguity, steps, trajectory=True)
    assert all(np.array_equal(learned.policy, exact.argmax(axis=1)) for learned in runs)


@pytest.mark.parametrize("kind", ["MDP", "Python", "compiled"])
def test_rounds_over_every_world_are_learned(kind: str) -> None:
    exact = rm.solve(model(), DOUBT, tol=1e-11).q
    learned = rm.GenerativeQLearning(DOUBT).run(WORLDS[kind](), samples=30_000, seed=4)
    assert np.abs(learned.q - exact).max() <= 2 * yardstick(model(), DOUBT, 30_000, trajectory=False)
    assert np.array_equal(learned.visits, np.full((N, M), 5000))


def test_the_printed_rounds_agree_in_compiled_and_python_worlds() -> None:
    learner = rm.GenerativeQLearning.paper(DOUBT, inner_steps=5)
    assert same(learner.run(simulator(True), 200), learner.run(simulator(False), 200))


@pytest.mark.parametrize("behaviour", [None, rm.EpsilonGreedy(0.3)], ids=str)
def test_compiled_and_python_simulators_agree_to_the_bit(behaviour: Any) -> None:
    # Both draw from the same two generators. Given probabilities are drawn by alias tables in compiled code and by
    # bisection in Python, so that only their frequencies agree.
    learner = rm.MarkovianQLearning(DOUBT, behaviour)
    assert same(learner.run(simulator(True), 20_000, seed=7), learner.run(simulator(False), 20_000, seed=7))


@pytest.mark.parametrize("kind", ["MDP", "Gymnasium", "Python"])  # compiled ones have the bits of Python's
def test_epsilon_greedy_explores_and_favours_the_best(kind: str) -> None:
    steps, epsilon = 20_000, 0.2
    learner = rm.MarkovianQLearning(DOUBT, rm.EpsilonGreedy(epsilon))
    first = learner.run(WORLDS[kind](), steps, seed=1, **options(kind))
    exact = rm.solve(model(), DOUBT).q
    assert np.array_equal(first.policy, exact.argmax(axis=1))
    share = np.take_along_axis(first.visits, first.policy[:, None], 1)[:, 0] / first.visits.sum(axis=1)
    # In the long run 1 - epsilon/2; while the best action was not known yet, less.
    assert np.all(share > 1 - epsilon / 2 - 0.05)
    assert np.all(first.visits >= 0.5 * epsilon / M * first.visits.sum(axis=1, keepdims=True))
    again = learner.run(WORLDS[kind](), steps, seed=1, **options(kind))
    assert same(first, again)
    assert not same(first, learner.run(WORLDS[kind](), steps, seed=2, **options(kind)))


@pytest.mark.parametrize("kind", ["MDP", "Gymnasium", "Python"])  # compiled ones have the bits of Python's
def test_epsilon_one_is_uniform(kind: str) -> None:
    # The number that says whether to explore also says what: at epsilon 1 it is the uniform policy's.
    every, uniform = (
        rm.MarkovianQLearning(DOUBT, behaviour).run(WORLDS[kind](), 5000, **options(kind))
        for behaviour in (rm.EpsilonGreedy(1.0), None)
    )
    assert same(every, uniform)


@pytest.mark.parametrize("kind", ["MDP", "Gymnasium"])
def test_a_model_estimate_can_follow_no_q(kind: str) -> None:
    # It has no Q while it counts: it must say so instead of reading one that is not there.
    with pytest.raises(ValueError, match="EpsilonGreedy"):
        rm.PlugIn(DOUBT, rm.EpsilonGreedy(1.0), trajectory=True).run(WORLDS[kind](), 3, **options(kind))


# Rewards.


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (-3.0, 0.0), (100.0, -1000.0), (1e-3, 5.0)])
def test_rewards_of_any_size_and_sign_are_learned(scale: float, shift: float) -> None:
    # Shifting rewards shifts values by shift/(1 - discount) in a world without end; scaling scales them and the weight.
    ring = rm.problems.garnet(6, 2, 3, DISCOUNT, seed=2)
    moved = rm.MDP.from_rows(
        np.repeat(ring.states, np.diff(ring.indptr)),
        np.repeat(ring.actions, np.diff(ring.indptr)),
        ring.indices,
        ring.probabilities,
        scale * np.repeat(ring.rewards, np.diff(ring.indptr)) + shift,
        DISCOUNT,
    )
    doubt = rm.Penalized(rm.ChiSquare(), abs(scale))
    exact = rm.solve(moved, doubt, tol=1e-12).q
    learned = rm.GenerativeQLearning(doubt).run(moved, 10_000, seed=0)
    assert np.abs(learned.q - exact).max() <= 2 * yardstick(moved, doubt, 120_000, trajectory=False)


def noisy(compiled: bool) -> rm.Simulator:
    """One state whose reward is 1 plus noise of mean 0 that has nothing to do with the successor."""

    def flip(state, action, rng):
        return 1.0 + (0.5 if rng.random() < 0.5 else -0.5), 0, False

    return rm.Simulator(numba.njit(flip) if compiled else flip, 1, 1, 0.5, (0.5, 1.5))


@pytest.mark.parametrize("markovian", [False, True])
def test_noise_in_rewards_is_natures_unless_said_otherwise(markovian: bool) -> None:
    kind = rm.MarkovianQLearning if markovian else rm.GenerativeQLearning
    doubt = rm.Penalized(rm.ChiSquare(), 1.0)
    natures = kind(doubt).run(noisy(False), 40_000).q[0, 0]
    noise = kind(doubt, noisy_rewards=True).run(noisy(False), 40_000).q[0, 0]
    # Outcomes 0.5 and 1.5 at weight 0.5: mean 1, less Var/(4 weight) = 1/8; then r + q/2 = q. The mean of 40,000
    # flips of +-0.5 is off by 0.0025 in one of three runs, doubled by 1/(1 - discount).
    assert natures == pytest.approx((1 - 1 / 8) * 2, abs=0.02)
    assert noise == pytest.approx(2.0, abs=0.02)


def test_noise_is_told_from_outcomes_in_compiled_code() -> None:
    learner = rm.MarkovianQLearning(DOUBT, noisy_rewards=True)
    assert same(learner.run(noisy(True), 5000), learner.run(noisy(False), 5000))


def test_rewards_on_states_and_actions_are_never_natures() -> None:
    world = rm.problems.garnet(6, 2, 3, DISCOUNT, seed=2)
    assert not world.rewards_on_successors
    default, noise = (rm.GenerativeQLearning(DOUBT, noisy_rewards=flag).run(world, 1000) for flag in (False, True))
    assert same(default, noise)


@pytest.mark.parametrize("reward", [0.75, 0.7, 123456.8])
def test_a_certain_reward_is_learned_to_rounding(reward: float) -> None:
    # Nature takes the lowest of outcomes that are all the same: there is nothing to lose digits on.
    world = rm.Simulator(lambda state, action, rng: (reward, 0, False), 1, 1, 0.5, (0.0, 2 * reward))
    learned = rm.MarkovianQLearning(rm.Penalized(rm.KL(), 0.0), burn_in=0.5).run(world, 120_000).q[0, 0]
    # Before the average begins, 60,000 steps like n^-0.8 have shrunk the error by exp(-34).
    assert learned == pytest.approx(2 * reward, rel=1e-12)


# Gymnasium.


@pytest.mark.parametrize("ambiguity", [rm.Nominal(), rm.Penalized(rm.KL(), 0.1)], ids=str)
def test_frozen_lake(ambiguity: Any) -> None:
    env = gymnasium.make(newest("FrozenLake"))
    exact = rm.solve(rm.MDP.from_gymnasium(env, DISCOUNT), ambiguity).q
    with unvisited():
        learned = rm.MarkovianQLearning(ambiguity).run(env, 60_000, discount=DISCOUNT)
    with unvisited():
        counted = rm.PlugIn(ambiguity, trajectory=True).run(env, 60_000, discount=DISCOUNT, record_every=60_000)
    seen = learned.visits > 0
    assert seen.sum() == 4 * 11  # the four holes and the goal end the episode: nobody acts there
    assert np.abs(learned.q - exact)[seen].max() <= 2 * np.abs(counted.q - exact)[seen].max()


@pytest.mark.parametrize(("name", "steps", "passes"), [("CliffWalking", 20_000, 100), ("Taxi", 20_000, 100)])
def test_a_recorded_environment_is_learned_by_replay(name: str, steps: int, passes: int) -> None:
    env = Recorder(gymnasium.make(newest(name)))
    n_states, n_actions = int(env.observation_space.n), int(env.action_space.n)
    with unvisited():
        live = rm.MarkovianQLearning(DOUBT).run(env, steps, discount=DISCOUNT)
    log = env.log(n_states=n_states, n_actions=n_actions, discount=DISCOUNT)
    with unvisited():
        logged = rm.MarkovianQLearning(DOUBT).run(log)
    assert same(live, logged)
    with unvisited():
        replayed = rm.MarkovianQLearning(DOUBT).run(log.replay(passes))
    with unvisited():
        counted = rm.PlugIn(DOUBT, trajectory=True).run(log, record_every=steps).q
    seen = live.visits > 0
    assert np.array_equal(replayed.visits, passes * live.visits)
    # Passes over one log teach what it holds, which is the solution of the counted model.
    before, after = (np.abs(learned.q[seen] - counted[seen]).max() for learned in (live, replayed))
    assert after <= 0.1 * before
    assert after <= 0.05 * np.ptp(counted[seen])


def test_blackjack_with_its_tuple_of_observations() -> None:
    env = gymnasium.make(newest("Blackjack"))
    with unvisited():
        learned = rm.MarkovianQLearning(rm.Nominal()).run(env, 30_000, discount=0.99)
    assert learned.q.shape == (32 * 11 * 2, 2)
    place = np.ravel_multi_index(([20, 5], [6, 6], [0, 0]), (32, 11, 2))
    # On 20 stick (value 0.70 against a six); on 5 hit or stick lose alike, but nobody can go bust.
    assert learned.policy[place[0]] == 0
    # A reward is +-1 or 0: four standard errors.
    for action, value in enumerate((0.704, -0.85)):
        tolerance = 4 / np.sqrt(learned.visits[place[0], action])
        assert learned.q[place[0], action] == pytest.approx(value, abs=tolerance)


@pytest.mark.parametrize("reward_range", [None, RANGE])
@pytest.mark.parametrize("ambiguity", [rm.Nominal(), DOUBT, rm.Constrained(rm.KL(), 0.1)], ids=str)
def test_a_recorded_environment_gives_the_same_bits(ambiguity: Any, reward_range: Any) -> None:
    # What must agree: the discount, the number of steps, the sizes, and reward_range, given to both or to none.
    env, told = Recorder(Env()), {"discount": DISCOUNT, "reward_range": reward_range}
    live = rm.MarkovianQLearning(ambiguity).run(env, 10_000, seed=3, **told)
    assert same(live, rm.MarkovianQLearning(ambiguity).run(env.log(), **told))


@pytest.mark.parametrize("ambiguity", [rm.Nominal(), DOUBT, rm.Constrained(rm.KL(), 0.1)], ids=str)
def test_a_recorded_model_gives_the_same_bits(ambiguity: Any) -> None:
    # A model tells its rewards, so the log must be told them; both can end and have rewards on outcomes.
    live = rm.MarkovianQLearning(ambiguity).run(model(), 10_000, seed=3)
    logged = rm.MarkovianQLearning(ambiguity).run(walked(model(), 10_000, seed=3), reward_range=RANGE)
    assert same(live, logged)


def test_a_recorded_model_with_rewards_on_pairs_gives_the_same_bits() -> None:
    # A log cannot know that its rewards do not depend on the successor: it must be told.
    world = rm.problems.chain(restart=0.5)
    live = rm.MarkovianQLearning(DOUBT).run(world, 10_000)
    span = float(world.rewards.min()), float(world.rewards.max())
    log = walked(world, 10_000)
    assert same(live, rm.MarkovianQLearning(DOUBT, noisy_rewards=True).run(log, reward_range=span))


class Lone(gymnasium.Env[Any, Any]):
    """One state and one action that earns 1 and ends the episode, one way or the other."""

    observation_space = spaces.Discrete(1)
    action_space = spaces.Discrete(1)

    def __init__(self, terminates: bool, truncates: bool) -> None:
        self.ending = terminates, truncates

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return 0, 1.0, *self.ending, {}


@pytest.mark.parametrize(
    ("terminates", "truncates", "value"),
    [(True, False, 1.0), (True, True, 1.0), (False, True, 2.0), (False, False, 2.0)],
)
@pytest.mark.parametrize("ambiguity", [rm.Nominal(), rm.Penalized(rm.KL(), 1.0)], ids=str)
def test_what_is_cut_off_goes_on_and_what_ends_does_not(
    terminates: bool, truncates: bool, value: float, ambiguity: Any
) -> None:
    learned = rm.MarkovianQLearning(ambiguity).run(Lone(terminates, truncates), 20_000, discount=0.5)
    assert learned.q[0, 0] == pytest.approx(value, rel=1e-6)


class Anything(gymnasium.Env[Any, Any]):
    """Observations drawn from any space; every action earns 1."""

    def __init__(self, observations: spaces.Space[Any], actions: spaces.Space[Any] = Env.action_space) -> None:
        self.observation_space, self.action_space = observations, actions

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        return self.observation_space.sample(), 1.0, False, False, {}


@pytest.mark.parametrize(
    ("space", "size"),
    [
        (spaces.Discrete(4), 4),
        (spaces.Discrete(4, start=-2), 4),
        (spaces.MultiDiscrete([2, 3]), 6),
        (spaces.MultiDiscrete([2, 3], start=[5, -1]), 6),
        (spaces.MultiDiscrete([[2, 3], [2, 1]]), 12),
        (spaces.Tuple((spaces.Discrete(2), spaces.Discrete(3, start=1))), 6),
        (spaces.MultiDiscrete([4]), 4),
        (spaces.Tuple((spaces.Discrete(4),)), 4),
        (spaces.MultiBinary(3), 8),
        (spaces.Tuple((spaces.Tuple((spaces.Discrete(2), spaces.Discrete(2))), spaces.Discrete(3))), 12),
        (spaces.Tuple((spaces.MultiDiscrete([2, 2]), spaces.Discrete(3))), 12),
    ],
    ids=str,
)
def test_every_finite_space_of_observations_is_counted(space: Any, size: int) -> None:
    learned = rm.MarkovianQLearning(rm.Nominal()).run(Anything(space), 2000)
    assert learned.visits.shape == (size, 2)
    assert learned.visits.sum() == 2000
    # Uniform observations and actions: every pair comes, none twice as often as it should.
    assert learned.visits.min() > 0
    assert learned.visits.max() < 2 * 2000 / (2 * size) + 50


def test_environments_one_after_the_other_are_seeded_anew() -> None:
    env, learner = Env(), rm.MarkovianQLearning(DOUBT)
    first = learner.run(env, 3000, seed=5, discount=DISCOUNT)
    assert same(first, learner.run(env, 3000, seed=5, discount=DISCOUNT))
    many = learner.run_many(env, 3000, seeds=[4, 5], discount=DISCOUNT)
    assert same(first, many[1])
    assert not same(first, many[0])


# Logs.


def write_csv(path: Path, log: rm.Trajectory) -> Path:
    with path.open("w") as file:
        file.write("state,action,reward,next_state,terminated\n")
        for piece in log.chunks():
            for entries in zip(*(column.tolist() for column in piece), strict=True):
                file.write(",".join(map(repr, entries)) + "\n")
    return path


def write_parquet(path: Path, log: rm.Trajectory) -> Path:
    whole = next(log.chunks(size=log.length or 1))
    pq.write_table(pa.table(whole._asdict()), path, row_group_size=3000)
    return path


@pytest.mark.parametrize("ambiguity", [rm.Nominal(), DOUBT], ids=str)
@pytest.mark.parametrize("told", [{}, {"steps": 3000}, {"samples": 777}], ids=str)
def test_arrays_csv_and_parquet_give_the_same_bits(tmp_path: Path, told: dict[str, int], ambiguity: Any) -> None:
    log = walked(model(), 10_000)
    learner = rm.MarkovianQLearning(ambiguity)
    arrays = learner.run(log, discount=DISCOUNT, **told)
    assert arrays.steps == arrays.samples == next(iter(told.values()), 10_000)
    for path in (write_csv(tmp_path / "log.csv", log), write_parquet(tmp_path / "log.parquet", log)):
        assert same(arrays, learner.run(rm.read_log(path), discount=DISCOUNT, **told))


@pytest.mark.parametrize("rewards", [(1.0, 0.123456789012), (0.123456789012, 1.0)], ids=["grows", "shrinks"])
def test_a_long_csv_is_read_to_its_end_with_the_bits_of_its_arrays(
    tmp_path: Path, rewards: tuple[float, float]
) -> None:
    # Longer than a megabyte and with lines of two lengths, so that its length cannot be guessed from its beginning.
    count, rng = 120_000, np.random.default_rng(0)
    walk = rng.integers(0, N, count + 1)
    log = rm.Trajectory(walk[:-1], rng.integers(0, M, count), np.repeat(rewards, count // 2), walk[1:])
    learner = rm.MarkovianQLearning(DOUBT)
    arrays, streamed = learner.run(log), learner.run(rm.read_log(write_csv(tmp_path / "log.csv", log)))
    assert streamed.samples == count
    assert same(arrays, streamed)


def test_a_minari_dataset_gives_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = Recorder(Env())
    env.reset(seed=0)
    buffers = []
    for _ in range(40):
        begin = len(env.rows)
        env.reset()
        ended = truncated = False
        while not (ended or truncated):
            _, _, ended, truncated, _ = env.step(5 + int(env.np_random.integers(2)))
        rows = env.rows[begin:]
        buffers.append(
            EpisodeBuffer(
                observations=[10 + row[0] for row in rows] + [10 + rows[-1][3]],
                actions=[5 + row[1] for row in rows],
                rewards=[row[2] for row in rows],
                terminations=[row[4] for row in rows],
                truncations=[False] * (len(rows) - 1) + [truncated],
            )
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about authors
        dataset = minari.create_dataset_from_buffers(
            "walk-v0", buffers, observation_space=Env.observation_space, action_space=Env.action_space
        )
    arrays = rm.MarkovianQLearning(DOUBT).run(env.log())
    assert same(arrays, rm.MarkovianQLearning(DOUBT).run(rm.read_log(dataset)))


@pytest.mark.parametrize("kind", ["arrays", "csv", "parquet"])
def test_replay_brings_the_estimate_to_that_of_the_counts(tmp_path: Path, kind: str) -> None:
    log = walked(model(), 5000)
    counted = rm.PlugIn(DOUBT, trajectory=True).run(log, reward_range=RANGE, record_every=5000).q
    write = {"arrays": lambda path, log: path, "csv": write_csv, "parquet": write_parquet}[kind]
    path = write(tmp_path / f"log.{kind}", log)
    world = log if kind == "arrays" else rm.read_log(path, discount=DISCOUNT)
    once, often = (
        np.abs(rm.MarkovianQLearning(DOUBT).run(world.replay(passes), reward_range=RANGE).q - counted).max()
        for passes in (1, 30)
    )
    # Passes over one log teach what it holds, which is the counts' solution and no more than that.
    assert often < 0.3 * once
    assert often < 0.02


def test_a_log_that_is_shorter_than_asked_ends_the_run() -> None:
    log = walked(model(), 500)
    learned = rm.MarkovianQLearning(DOUBT).run(log, 10_000, record_every=200)
    assert learned.steps == learned.samples == learned.visits.sum() == 500
    assert learned.trace["steps"].tolist() == [200, 400, 500]
