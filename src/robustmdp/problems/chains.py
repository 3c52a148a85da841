"""Small worlds on a line: the paper's chain, the two states of its lower bound, river swim."""

from __future__ import annotations

import math

import numpy as np

from robustmdp import _checks, _types
from robustmdp.models import MDP


def chain(stay: float = 0.8, restart: float = 0.0, discount: float = 0.9) -> MDP:
    """The paper's 10 states (section 6): action 1 stays with probability `stay`, action 2 with 1 - `stay`.

    Otherwise the next state follows. Every reward is 1 but in the last state, which returns to the first with
    probability `restart` (0 in the first experiments, 0.5 in the Markovian ones).

    >>> chain().nnz
    38
    """
    stay, restart = _checks.probability("stay", stay), _checks.probability("restart", restart)
    n = 10
    transitions = np.zeros((n, 2, n))
    for s in range(n - 1):
        transitions[s, 0, [s, s + 1]] = stay, 1.0 - stay
        transitions[s, 1, [s, s + 1]] = 1.0 - stay, stay
    transitions[n - 1, :, n - 1] += 1.0 - restart
    transitions[n - 1, :, 0] += restart
    rewards = np.ones(n)
    rewards[n - 1] = 0.0
    names = [f"s{i + 1}" for i in range(n)]
    return MDP.from_arrays(transitions, rewards, discount, state_names=names, action_names=["1", "2"])


def two_state(stay: float, discount: float) -> MDP:
    """The lower bound's world (proof of Theorem 3.2): s0 pays 1 and stays with probability `stay`, s1 pays 0 for ever.

    >>> two_state(0.5, 0.9).n_pairs
    2
    """
    stay = _checks.probability("stay", stay)
    transitions = np.array([[[stay, 1.0 - stay]], [[0.0, 1.0]]])
    return MDP.from_arrays(transitions, [1.0, 0.0], discount, state_names=["s0", "s1"], action_names=["go"])


def two_state_value(stay: float, discount: float, weight: float) -> float:
    """V(s0) of `two_state` under a chi-square penalty, in closed form (proof of Theorem 3.2).

    1 + weight discount p/(1-p) while nature leaves s0 for sure, otherwise
    2/((1 - discount p) + sqrt((1 - discount p)^2 + discount p (1-p)/weight)).

    >>> two_state_value(0.5, 0.9, 0.01)
    1.009
    """
    _types.check_arguments(two_state_value, locals())
    p, gamma = stay, discount
    if p in (0.0, 1.0) or math.isinf(weight):
        return 1.0 / (1.0 - gamma * p)
    if weight < (1.0 - p) / (2.0 - gamma * p):
        return 1.0 + weight * gamma * p / (1.0 - p)
    rest = 1.0 - gamma * p
    return 2.0 / (rest + math.sqrt(rest * rest + gamma * p * (1.0 - p) / weight))


def river_swim(n_states: int = 6, discount: float = 0.95) -> MDP:
    """Swim up the current for a rare large reward, or drift down for a sure small one (Strehl and Littman 2008).

    >>> river_swim().action_names
    ('drift', 'swim')
    """
    n = _checks.positive_integer("n_states", n_states)
    _checks.must(n >= 2, f"n_states must be at least 2: got {n}")
    transitions = np.zeros((n, 2, n))
    transitions[np.arange(n), 0, np.maximum(np.arange(n) - 1, 0)] = 1.0
    for s in range(1, n - 1):
        transitions[s, 1, [s - 1, s, s + 1]] = 0.05, 0.6, 0.35
    transitions[0, 1, [0, 1]] = 0.4, 0.6
    transitions[n - 1, 1, [n - 2, n - 1]] = 0.4, 0.6
    rewards = np.zeros((n, 2))
    rewards[0, 0], rewards[n - 1, 1] = 0.005, 1.0
    names = [f"bank {i}" for i in range(n)]
    return MDP.from_arrays(transitions, rewards, discount, state_names=names, action_names=["drift", "swim"])
