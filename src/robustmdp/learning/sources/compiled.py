"""A simulator that Numba has compiled, called from compiled loops; only imported where there is one."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any, NamedTuple

import numba
import numpy as np

from robustmdp import _core

IMPOSSIBLE = -1  # a successor outside the world, for the caller to report; it stands in the reward's place

_CHOOSE = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_double, ctypes.c_double
)
_ABSORB = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_double, ctypes.c_int64
)


class Loops(NamedTuple):
    """Compiled loops around one simulator."""

    sample_all_pairs: Any
    follow_policy: Any
    learn_online: Any


@lru_cache(maxsize=64)
def compile_loops(sample: Any) -> Loops:
    """Compile in memory; a file would outlive the user's code."""
    compile_ = numba.njit(nogil=True, error_model="numpy")
    choose, absorb = (kind(address) for kind, address in zip((_CHOOSE, _ABSORB), _core.learner_calls(), strict=True))

    @compile_
    def simulate(state, action, n_states, rng):
        reward, successor, terminated = sample(state, action, rng)
        possible = 0 <= successor < n_states
        if terminated:
            return reward, n_states
        return (reward, np.int64(successor)) if possible else (np.float64(successor), IMPOSSIBLE)

    @compile_
    def sample_all_pairs(n_states, n_actions, rng, first, states, pairs, rewards, following):
        for step in range(len(pairs)):
            pair = (first + step) % (n_states * n_actions)
            state = pair // n_actions
            states[step, 0], pairs[step, 0] = state, pair
            rewards[step, 0], following[step, 0] = simulate(state, pair - state * n_actions, n_states, rng)

    @compile_
    def follow_policy(edges, n_states, choices, rng, start, state, states, pairs, rewards, following):
        n_actions = len(edges) // n_states
        for step in range(len(pairs)):
            first = state * n_actions
            u = choices.random()
            action = 0
            while action < n_actions - 1 and edges[first + action] <= u:
                action += 1
            reward, successor = simulate(state, action, n_states, rng)
            states[step, 0], pairs[step, 0] = state, first + action
            rewards[step, 0], following[step, 0] = reward, successor
            state = successor if 0 <= successor < n_states else start
        return state

    @compile_
    def learn_online(learner, epsilons, n_states, n_actions, choices, rng, start, low, high, first, state):
        reward, successor, pair = 0.0, start, 0
        for step in range(len(epsilons)):
            pair = choose(learner, 0, state, choices.random(), epsilons[step])
            reward, successor = simulate(state, pair - state * n_actions, n_states, rng)
            if successor < 0 or not low <= reward <= high:
                break  # the caller looks at the last transition
            absorb(learner, first + step, state, pair, reward, successor)
            state = successor if successor < n_states else start
        return state, pair, reward, successor

    return Loops(sample_all_pairs, follow_policy, learn_online)
