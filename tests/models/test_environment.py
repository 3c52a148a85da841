"""Environments that play a model or a worst case: Gymnasium's own checker, frequencies, and returns against values."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import robustmdp as rm

SETS = [rm.Penalized(rm.ChiSquare(), 0.5), rm.Penalized(rm.KL(), 1.0), rm.Constrained(rm.KL(), 0.1), rm.Nominal()]


def ending_world() -> rm.MDP:
    """Three states, rewards on successors, an action that is missing in state 1, and an end."""
    return rm.MDP.from_rows(
        state=[0, 0, 0, 0, 1, 1, 2, 2, 2],
        action=[0, 0, 1, 1, 0, 0, 0, 1, 1],
        next_state=[1, 2, 0, 3, 2, 3, 0, 1, 3],
        probability=[0.5, 0.5, 0.7, 0.3, 0.6, 0.4, 1.0, 0.8, 0.2],
        reward=[1.0, -1.0, 0.5, 2.0, 0.0, 3.0, -0.5, 0.25, 1.0],
        discount=0.9,
        n_states=3,
        state_names=("start", "middle", "far"),
        action_names=("go", "wait"),
    )


@pytest.mark.parametrize("ambiguity", SETS)
def test_gymnasiums_checker_has_nothing_to_say(ambiguity: Any) -> None:
    solution = rm.solve(rm.problems.chain(restart=0.5), ambiguity)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(rm.to_gymnasium(solution, max_steps=20))
        check_env(rm.to_gymnasium(rm.problems.river_swim()))


def test_an_episode_ends_at_the_end_or_at_the_limit() -> None:
    env = rm.to_gymnasium(ending_world(), start=1)
    for seed in range(50):
        _, info = env.reset(seed=seed)
        assert info["state_name"] == "middle"
        state, reward, terminated, truncated, info = env.step(0)
        assert not truncated
        assert (int(state), reward) == ((1, 3.0) if terminated else (2, 0.0))
        assert info["state_name"] == ("middle" if terminated else "far")
    limited = rm.to_gymnasium(rm.problems.chain(), max_steps=3)
    limited.reset(seed=0)
    assert [limited.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset\\(\\) must be called"):
        limited.step(0)


def test_the_seed_decides_everything() -> None:
    def episode(seed: int) -> list[Any]:
        env = rm.to_gymnasium(ending_world(), start=[0.2, 0.5, 0.3], max_steps=30)
        found: list[Any] = [int(env.reset(seed=seed)[0])]
        while True:
            state, reward, terminated, truncated, _ = env.step(0)
            found.append((int(state), reward))
            if terminated or truncated:
                return found

    assert episode(3) == episode(3)
    assert len({str(episode(seed)) for seed in range(20)}) > 5


def test_unavailable_actions_are_masked_and_refused() -> None:
    env = rm.to_gymnasium(ending_world(), start=1)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    _, info = env.reset(seed=0)
    assert info["action_mask"].tolist() == [1, 0]
    assert env.action_space.sample(info["action_mask"]) == 0
    with pytest.raises(ValueError, match="action must be available: wait is not in middle"):
        env.step(1)
    for wrong in (2, -1, 0.5, "go"):
        with pytest.raises(gymnasium.error.InvalidAction, match=r"action must be a whole number in 0\.\.1"):
            env.step(wrong)
    assert env.metadata["action_names"] == ("go", "wait")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"start": 3}, r"start must be a state in 0\.\.2: got 3"),
        ({"start": [0.5, 0.5]}, r"start must be a state or have shape \(3,\)"),
        ({"start": [0.5, 0.6, 0.0]}, r"start must sum to 1: got 1.1"),
        ({"max_steps": 0}, "max_steps must be at least 1: got 0"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rm.to_gymnasium(ending_world(), **arguments)
    with pytest.raises(TypeError, match="solution_or_mdp must be a Solution or an MDP: got an array"):
        rm.to_gymnasium(np.zeros(3))  # type: ignore[arg-type]


@pytest.mark.parametrize("ambiguity", SETS)
def test_transitions_come_as_often_as_the_worst_case_says(ambiguity: Any) -> None:
    solution = rm.solve(ending_world(), ambiguity)
    worst, n = solution.worst_case, 4_000
    for pair in range(worst.n_pairs):
        state, action = int(worst.states[pair]), int(worst.actions[pair])
        env = rm.to_gymnasium(solution, start=state)
        env.reset(seed=pair)
        counts = np.zeros(worst.n_states + 1)
        for _ in range(n):
            following, _, terminated, _, info = env.step(action)
            counts[worst.n_states if terminated else following] += 1
            assert info["penalty"] == solution.penalty[state, action]
            env.reset()
        expected = np.zeros_like(counts)
        row = slice(worst.indptr[pair], worst.indptr[pair + 1])
        expected[worst.indices[row]] = worst.probabilities[row]
        # Five standard errors: one false alarm in two million entries.
        assert (np.abs(counts / n - expected) <= 5 * np.sqrt(expected * (1 - expected) / n)).all()


def returns(env: Any, policy: Any, discount: float, episodes: int) -> np.ndarray:
    found = np.zeros(episodes)
    for episode in range(episodes):
        state, _ = env.reset(seed=episode)
        factor, over = 1.0, False
        while not over:
            state, reward, terminated, truncated, info = env.step(policy[state])
            found[episode] += factor * (reward + info["penalty"])
            factor, over = factor * discount, terminated or truncated
    return found


@pytest.mark.parametrize("ambiguity", SETS)
@pytest.mark.parametrize("world", [ending_world(), rm.problems.chain(restart=0.5)])
def test_mean_returns_are_the_value(world: rm.MDP, ambiguity: Any) -> None:
    solution, steps, episodes = rm.solve(world, ambiguity), 60, 1_500
    env = rm.to_gymnasium(solution, max_steps=steps)
    found = returns(env, solution.policy, world.discount, episodes)
    tail = world.discount**steps * float(np.abs(world.value_range).max())
    margin = 5.0 * float(found.std(ddof=1)) / math.sqrt(episodes) + tail + solution.error_bound
    assert abs(found.mean() - solution.value[0]) <= margin
    nominal = rm.evaluate(world, solution.policy, rm.Nominal()).value[0]
    if not ambiguity.is_nominal:
        # The test can tell the worst case from the model.
        assert nominal - solution.value[0] > margin


def test_a_solution_without_a_model_has_no_worst_case_to_play() -> None:
    lake = gymnasium.make("FrozenLake-v1")
    with pytest.warns(RuntimeWarning, match="never came"):
        learned = rm.MarkovianQLearning(rm.Penalized(rm.KL(), 1.0)).run(lake, 100, discount=0.9)
    with pytest.raises(ValueError, match="worst_case needs a model"):
        rm.to_gymnasium(learned)


def test_gymnasium_is_imported_only_when_asked_for() -> None:
    code = "import robustmdp as rm, sys; rm.to_gymnasium; rm.problems.chain(); print('gymnasium' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
