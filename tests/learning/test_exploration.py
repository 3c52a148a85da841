"""Who acts while learning: ties at random, optimism, schedules of epsilon, functions of the user."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import robustmdp as rm
from robustmdp.learning.schedules import Polynomial

CELLS = 8
DISCOUNT = 0.95


class Corridor(gymnasium.Env[int, int]):
    """Left or right; the right end pays 1 and ends."""

    observation_space = gymnasium.spaces.Discrete(CELLS)
    action_space = gymnasium.spaces.Discrete(2)
    cell = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        self.cell = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.cell = max(0, self.cell - 1) if action == 0 else self.cell + 1
        done = self.cell == CELLS - 1
        return self.cell, float(done), done, False, {}


def corridor(state: int, action: int, rng: np.random.Generator) -> tuple[float, int, bool]:
    following = max(0, state - 1) if action == 0 else state + 1
    return float(following == CELLS - 1), min(following, CELLS - 1), following == CELLS - 1


def as_model() -> rm.MDP:
    rows = [(s, a, *corridor(s, a, None)) for s in range(CELLS) for a in range(2)]  # type: ignore[arg-type]
    states, actions, rewards, following, ended = zip(*rows, strict=True)
    return rm.MDP.from_rows(states, actions, following, np.ones(len(rows)), rewards, DISCOUNT, terminated=ended)


WORLDS = {
    "environment": lambda: Corridor(),
    "simulator": lambda: rm.Simulator(corridor, CELLS, 2, DISCOUNT, (0.0, 1.0)),
    "model": as_model,
}
each_world = pytest.mark.parametrize("world", WORLDS)


def assert_solved(learned: rm.Solution) -> None:
    """v(0) = discount^6, the seventh step to the right pays."""
    assert learned.policy[: CELLS - 1].tolist() == [1] * (CELLS - 1)
    assert learned.value[0] == pytest.approx(DISCOUNT ** (CELLS - 2), abs=0.05)


def learn(world: str, behaviour: Any, steps: int, **settings: Any) -> rm.Solution:
    learner = rm.MarkovianQLearning(rm.Nominal(), behaviour, **settings)
    discount = {"discount": DISCOUNT} if world == "environment" else {}
    return learner.run(WORLDS[world](), steps, seed=1, **discount)


@each_world
@pytest.mark.parametrize("epsilon", [0.1, Polynomial(1.0, 0.3, 1.0, 1.0)], ids=["number", "schedule"])
def test_a_corridor_is_solved(world: str, epsilon: Any) -> None:
    """Where ties go to the first action, epsilon-greedy never comes to the end."""
    assert_solved(learn(world, rm.EpsilonGreedy(epsilon), 50_000))


@each_world
def test_optimism_explores_by_itself(world: str) -> None:
    learned = learn(world, rm.EpsilonGreedy(1e-9), 20_000, initial=1.0)
    assert learned.visits[: CELLS - 1].min() > 0
    assert learned.policy[: CELLS - 1].tolist() == [1] * (CELLS - 1)


@each_world
def test_a_function_chooses(world: str) -> None:
    seen: list[tuple[int, int]] = []

    def least_tried(state: int, step: int, q: Any, visits: Any) -> Any:
        assert q.shape == visits.shape == (2,)
        seen.append((state, step))
        return np.eye(2)[int(np.argmin(visits))] * 0.8 + 0.1

    learned = learn(world, least_tried, 20_000)
    assert_solved(learned)
    assert [step for _, step in seen] == list(range(20_000))
    assert abs(learned.visits[0, 0] - learned.visits[0, 1]) <= 10 + 0.02 * learned.visits[0].sum()


@pytest.mark.parametrize("given", [[0.5], [0.6, 0.6], [-0.5, 1.5], "left", [np.nan, 1.0]])
def test_a_function_that_returns_no_probabilities_is_refused(given: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="behaviour must return"):
        learn("model", lambda state, step, q, visits: given, 10)


def test_ties_are_broken_by_the_seed() -> None:
    tied = rm.MDP.from_rows([0, 0, 0], [0, 1, 2], [0, 0, 0], [1.0] * 3, [1.0] * 3, 0.5)
    learner = rm.MarkovianQLearning(rm.Nominal(), rm.EpsilonGreedy(1e-12))
    counts = np.array([learner.run(tied, 300, seed=seed).visits[0] for seed in range(5)])
    assert counts.min() > 50  # 100 are expected of each action, with a deviation of 8
    assert len({tuple(row) for row in counts.tolist()}) == 5
    assert np.array_equal(counts[3], learner.run(tied, 300, seed=3).visits[0])


def test_epsilon_falls_as_its_schedule_says() -> None:
    """With epsilon_n = 1/(n+1) some sum 1/n, about log T, of T actions are drawn at random."""
    world = rm.MDP.from_rows([0, 0], [0, 1], [0, 0], [1.0] * 2, [0.0, 1.0], 0.5)
    learner = rm.MarkovianQLearning(rm.Nominal(), rm.EpsilonGreedy(Polynomial(1.0, 1.0)), initial=1.0)
    worse = [learner.run(world, 10_000, seed=seed).visits[0, 0] for seed in range(20)]
    assert 1 <= np.mean(worse) <= 12  # half of log 10,000, about 5, and the first try


def test_a_learned_value_is_a_possible_one() -> None:
    """Holes of FrozenLake are never acted in: nothing is known of them, and no return exceeds 1."""
    lake = rm.MDP.from_gymnasium("FrozenLake-v1", discount=0.95)
    learned = rm.MarkovianQLearning(rm.Penalized(rm.ChiSquare(), 1.0), rm.EpsilonGreedy(0.3)).run(lake, 300_000)
    assert learned.value[[5, 7, 11, 12, 15]].tolist() == [0.0] * 5
    assert learned.value.min() >= 0.0
    assert learned.value.max() <= 1.0
    seen = learned.visits.sum(axis=1) > 0
    assert np.array_equal(learned.value[seen], learned.q[seen].max(axis=1))
    assert np.all(learned.value - learned.lower <= learned.error_bound)
    assert np.all(learned.upper - learned.value <= learned.error_bound)


def test_what_is_not_certified_does_not_say_so() -> None:
    learned = learn("simulator", None, 100)
    assert "certified to" not in repr(learned)
    assert "not certified" in repr(learned)


def coin(state: int, action: int, rng: np.random.Generator) -> tuple[float, int, bool]:
    return float(rng.random() < 0.5), 0, False


COIN_LOG = rm.Trajectory([0] * 40_000, [0] * 40_000, np.arange(40_000) % 2 * 1.0, [0] * 40_000)


@pytest.mark.parametrize("world", [rm.Simulator(coin, 1, 1, 0.5, (0.0, 1.0)), COIN_LOG], ids=["simulator", "log"])
def test_printed_rewards_are_out_of_natures_reach(world: Any) -> None:
    """A coin pays 0 or 1: R = 1/2 and Q* = 1 at discount 1/2, whatever nature thinks of the coin."""
    learner = rm.MarkovianQLearning.paper(rm.Penalized(rm.ChiSquare(), 0.1))
    options = {"discount": 0.5, "reward_range": (0.0, 1.0)} if world is COIN_LOG else {}
    steps = None if world is COIN_LOG else 40_000
    assert learner.run(world, steps, **options).value[0] == pytest.approx(1.0, abs=0.02)


def test_printed_rewards_of_a_model_are_noise_only_where_it_says_so() -> None:
    rows = [0, 0, 1], [0, 0, 0], [0, 1, 0], [0.5, 0.5, 1.0], [0.0, 1.0, 0.0]
    both = rm.MDP.from_rows(*rows, 0.5, terminated=[True, True, True])
    doubt = rm.Penalized(rm.ChiSquare(), 0.1)
    noisy = rm.MarkovianQLearning.paper(doubt, noisy_rewards=True)
    assert noisy.noisy_rewards
    assert noisy.run(both, 40_000).value[0] == pytest.approx(0.5, abs=0.02)
    inside = rm.MarkovianQLearning.paper(doubt).run(both, 40_000).value[0]
    assert inside < 0.4
