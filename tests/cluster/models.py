"""Models that tests cut into shards."""

from __future__ import annotations

from typing import Any

import numpy as np

import robustmdp as rm


def ragged(n_states: int, seed: int = 0, *, ends: bool = True, on_successors: bool = False) -> rm.MDP:
    """Rows of one to seven successors, gaps between actions, and ways to the end."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for state in range(n_states):
        for action in sorted(rng.choice(5, rng.integers(1, 4), replace=False).tolist()):
            successors = np.sort(rng.choice(n_states + ends, rng.integers(1, 8), replace=False))
            rewards = rng.normal(size=len(successors)) if on_successors else np.full(len(successors), rng.normal())
            shares = rng.dirichlet(np.ones(len(successors)))
            rows += [(state, action, *rest) for rest in zip(successors, shares, rewards, strict=True)]
    return rm.MDP.from_rows(*(np.array(column) for column in zip(*rows, strict=True)), 0.9, n_states=n_states)


def chain_rows(first: int, last: int) -> tuple[np.ndarray, ...]:
    """A walk along 5,000 states whose second action is faster and pays less."""
    state = np.repeat(np.arange(first, last), 4)
    action = np.tile([0, 0, 1, 1], last - first)
    following = np.minimum(state + np.tile([0, 1, 1, 2], last - first), 5000 - np.tile([1, 0, 1, 0], last - first))
    probability = np.tile([0.5, 0.5, 0.25, 0.75], last - first)
    return state, action, following, probability, np.cos(state) - 0.25 * action


def walk(**changes: Any) -> rm.RowSource:
    """The source of these rows; the last two states may reach the end."""
    return rm.RowSource(chain_rows, **({"n_states": 5000, "n_actions": 2, "discount": 0.95} | changes))


def scattered_rows(first: int, last: int) -> tuple[np.ndarray, ...]:
    """40,000 states, each with two successors far away."""
    state = np.repeat(np.arange(first, last), 2)
    following = (state * 7919 + np.tile([0, 1], last - first)) % 40_000
    order = np.lexsort((following, state))
    return state, 0 * state, following[order], np.full(len(state), 0.5), np.sin(state)


SCATTERED = rm.RowSource(scattered_rows, 40_000, 1, 0.8)


class NoShard:
    """What Ray makes of a class that a node cannot import."""

    def __init__(self, threads: int) -> None:
        raise ModuleNotFoundError("No module named 'robustmdp'")

    def load(self, *arguments: Any) -> None:
        """Never called."""


def intervals(mdp: rm.MDP) -> rm.Interval:
    """Bounds around a model's probabilities."""
    return rm.Interval(0.5 * mdp.probabilities, np.minimum(1.0, 1.5 * mdp.probabilities))
