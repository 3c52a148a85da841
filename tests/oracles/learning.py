"""Algorithms 1 and 2 as the paper prints them, for chi-square, and the random draws that feed them; floats and lists.

Everything is in the paper's own variables: eta and V are not discounted, rewards lie in [0, 1]. What the print leaves
open is read as paper-notes.md says: inner steps lambda/sqrt(t'+1), the experiments' beta_t, Theta of section 4.1,
eta_0 = 0, s_0 the first state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import robustmdp as rm

Table = list[list[float]]
NextState = Callable[[int, int], int]
_MASK = (1 << 64) - 1


class Tables(NamedTuple):
    """Q and eta, (S, A), after an iteration."""

    q: Table
    eta: Table


# f*(s) = (s/2 + 1)_+^2 - 1, so that J(eta, V; s') = eta - lambda f*((eta - V(s'))/lambda). Products, not powers: a
# power that overflows raises.


def conjugate(s: float) -> float:
    root = max(s / 2 + 1, 0.0)
    return root * root - 1


def conjugate_derivative(s: float) -> float:
    return max(s / 2 + 1, 0.0)


def outcome(eta: float, v: float, weight: float) -> float:
    return eta - weight * conjugate((eta - v) / weight)


def outcome_derivative(eta: float, v: float, weight: float) -> float:
    return 1 - conjugate_derivative((eta - v) / weight)


def projected(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def algorithm_1(
    rewards: Table, discount: float, weight: float, inner_steps: int, receive: NextState
) -> Iterator[Tables]:
    """Algorithm 1: Q_t and eta_{t-1,T'} for t = 1, 2, ..."""
    horizon = 1 / (1 - discount)
    theta = -2 * weight, 2 * horizon + 2 * weight
    states, actions = range(len(rewards)), range(len(rewards[0]))
    q = [[horizon for _ in actions] for _ in states]
    t = 0
    while True:
        v = [projected(max(q[s]), 0.0, horizon) for s in states]
        beta = 1 / (1 + (1 - discount) * t)
        following = [[0.0 for _ in actions] for _ in states]
        eta = [[0.0 for _ in actions] for _ in states]
        for s in states:
            for a in actions:
                for inner in range(inner_steps):
                    alpha = weight / math.sqrt(inner + 1)
                    slope = outcome_derivative(eta[s][a], v[receive(s, a)], weight)
                    eta[s][a] = projected(eta[s][a] + alpha * slope, *theta)
                target = rewards[s][a] + discount * outcome(eta[s][a], v[receive(s, a)], weight)
                following[s][a] = (1 - beta) * q[s][a] + beta * target
        q = following
        t += 1
        yield Tables([row[:] for row in q], eta)


def algorithm_2(
    rewards: Table,
    discount: float,
    weight: float,
    d_min: float,
    d_max: float,
    act: Callable[[int, Table], int],
    receive: NextState,
    *,
    literal: bool,
) -> Iterator[Tables]:
    """Algorithm 2 with Theorem 5.1's steps: Q_t and eta_t for t = 1, 2, ...; it ends after the first infinite Q.

    Unless `literal`, V is projected onto [0, 1/(1-gamma)] and beta capped at 1 (paper-notes, 5).
    """
    horizon = 1 / (1 - discount)
    theta = -2 * weight, 2 * horizon + 2 * weight
    kappa = 1 / (6 * (weight + horizon))
    # Rounded before the ceiling (paper-notes, 4).
    p_dagger = math.ceil(round(d_max / ((1 - discount) * d_min), 9))
    p_alpha = math.ceil(round((d_max / d_min) ** 1.5, 9))
    states, actions = range(len(rewards)), range(len(rewards[0]))
    q = [[horizon for _ in actions] for _ in states]
    eta = [[0.0 for _ in actions] for _ in states]
    s, t = 0, 0
    while True:
        a = act(s, q)
        following = receive(s, a)
        v = max(q[following])
        beta = 1 / ((1 - discount) * d_min * (t + p_dagger))
        if not literal:
            v, beta = projected(v, 0.0, horizon), min(beta, 1.0)
        alpha = 1 / (kappa * d_min * (t + p_alpha) ** (2 / 3))
        before = eta[s][a]
        q[s][a] = (1 - beta) * q[s][a] + beta * (rewards[s][a] + discount * outcome(before, v, weight))
        eta[s][a] = projected(before + alpha * outcome_derivative(before, v, weight), *theta)
        t += 1
        yield Tables([row[:] for row in q], [row[:] for row in eta])
        if not math.isfinite(q[s][a]):
            return
        s = following


def ring_occupancy(leave: Table, policy: Table) -> tuple[float, float]:
    """(d_min, d_max) of a ring of states, left for the next one with probability leave[s][a]: all flows are equal."""
    states = range(len(leave))
    times = [1 / sum(p * go for p, go in zip(policy[s], leave[s], strict=True)) for s in states]
    shares = [times[s] / sum(times) * p for s in states for p in policy[s]]
    return min(shares), max(shares)


class Numbers:
    """The uniform numbers of a seed by position: SplitMix64, whose i-th output scrambles key + i * golden ratio."""

    def __init__(self, seed: int) -> None:
        self.key = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])

    def __call__(self, position: int) -> float:
        z = (self.key + position * 0x9E3779B97F4A7C15) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((z ^ (z >> 31)) >> 11) / 2**53


def drawn(p: list[float], u: float) -> int:
    """Which of one or two outcomes `u` picks: a half of [0, 1) for each, the poorer half lending to the richer."""
    if len(p) == 1:
        return 0
    column = int(2 * u)
    poor = 0 if p[0] < p[1] else 1
    return 1 - poor if column == poor and 2 * u - column >= 2 * min(p) else column


class Coins:
    """The draws that robustmdp makes in a world with at most two successors a pair."""

    def __init__(self, mdp: rm.MDP, seed: int) -> None:
        self.numbers = Numbers(seed)
        self.position = 0
        self.rows: dict[tuple[int, int], tuple[list[int], list[float]]] = {}
        for pair, (s, a) in enumerate(zip(mdp.states.tolist(), mdp.actions.tolist(), strict=True)):
            entries = slice(mdp.indptr[pair], mdp.indptr[pair + 1])
            self.rows[s, a] = mdp.indices[entries].tolist(), mdp.probabilities[entries].tolist()

    def number(self) -> float:
        """The next number of the stream."""
        self.position += 1
        return self.numbers(self.position - 1)

    def receive(self, s: int, a: int) -> int:
        """A successor, from the next number."""
        successors, p = self.rows[s, a]
        return successors[drawn(p, self.number())]
