"""What the learner adds to a step of FrozenLake, in units of `env.step`."""

from __future__ import annotations

from collections.abc import Iterator

import gymnasium
import numpy as np

import robustmdp as rm
from benchmarks.figure import Figure, best_time

TOY = {"steps": 3_000}


def figures(steps: int = 50_000) -> Iterator[Figure]:
    """The time a learner adds to a step, per behaviour."""
    env = gymnasium.make("FrozenLake-v1")
    actions = np.random.default_rng(0).integers(0, 4, steps).tolist()

    def bare() -> None:
        env.reset(seed=0)
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    alone = best_time(bare, 3)
    doubt = rm.Penalized(rm.ChiSquare(), 1.0)
    policies = {"uniform": (None, 0.2), "epsilon-greedy": (rm.EpsilonGreedy(0.5), 0.5)}
    for name, (behaviour, bar) in policies.items():
        learner = rm.MarkovianQLearning(doubt, behaviour)
        learned = best_time(lambda: learner.run(env, steps, reward_range=(0.0, 1.0)), 3)
        yield Figure(f"FrozenLake, {name}: overhead / env.step", (learned - alone) / alone, bar)
