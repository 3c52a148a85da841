"""Whole MDPs by obvious loops: one dictionary of rows, one worst case per pair, sweeps until nothing moves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import robustmdp as rm

FloatArray = npt.NDArray[np.float64]
Ambiguity = rm.Nominal | rm.Penalized | rm.Constrained

DIVERGENCES = (
    rm.ChiSquare(),
    rm.KL(),
    rm.TotalVariation(),
    rm.Burg(),
    rm.Hellinger(),
    rm.JensenShannon(),
    rm.CressieRead(3.0),
    rm.CressieRead(-1.0),
)
FORMS = (rm.Penalized, rm.Constrained)
LEVELS = {rm.Penalized: 1.0, rm.Constrained: 0.1}


class Row(NamedTuple):
    """The outcomes of one pair; successor n_states is the end, which is worth 0."""

    probabilities: FloatArray
    successors: npt.NDArray[np.int64]
    rewards: FloatArray


class World(NamedTuple):
    rows: dict[tuple[int, int], Row]
    n_states: int
    n_actions: int
    discount: float


def of_arrays(transitions: FloatArray, rewards: FloatArray, discount: float) -> World:
    """From dense (S, A, S) arrays; an all-zero row is an unavailable action."""
    n_states, n_actions, _ = transitions.shape
    rows = {}
    for s, a in product(range(n_states), range(n_actions)):
        reached = np.flatnonzero(transitions[s, a])
        if reached.size:
            rows[s, a] = Row(transitions[s, a, reached], reached, rewards[s, a, reached])
    return World(rows, n_states, n_actions, discount)


def of_mdp(mdp: rm.MDP) -> World:
    """From the arrays of an MDP."""
    rows = {}
    for pair, (s, a) in enumerate(zip(mdp.states, mdp.actions, strict=True)):
        entries = slice(mdp.indptr[pair], mdp.indptr[pair + 1])
        rewards = (
            mdp.rewards[entries]
            if mdp.rewards_on_successors
            else np.full(entries.stop - entries.start, mdp.rewards[pair])
        )
        rows[int(s), int(a)] = Row(mdp.probabilities[entries], mdp.indices[entries].astype(np.int64), rewards)
    return World(rows, mdp.n_states, mdp.n_actions, mdp.discount)


def of_gymnasium(table: dict[int, dict[int, list[tuple[float, int, float, bool]]]], discount: float) -> World:
    """From env.unwrapped.P, one outcome per entry, none merged."""
    rows = {}
    for s, by_action in table.items():
        for a, outcomes in by_action.items():
            probabilities = np.array([p for p, _, _, _ in outcomes])
            successors = np.array([len(table) if ended else following for _, following, _, ended in outcomes])
            rewards = np.array([float(r) for _, _, r, _ in outcomes])
            rows[int(s), int(a)] = Row(probabilities, successors, rewards)
    return World(rows, len(table), 1 + max(a for _, a in rows), discount)


def at_pair(ambiguity: Ambiguity, discount: float, s: int, a: int) -> Ambiguity:
    """What nature faces at one pair whose outcomes are r + discount v: the weight is discounted, the radius is not."""
    if isinstance(ambiguity, rm.Nominal):
        return ambiguity
    level = ambiguity.level if isinstance(ambiguity.level, float) else float(ambiguity.level[s, a])
    if isinstance(ambiguity, rm.Penalized) and math.isfinite(level):
        level *= discount
    return type(ambiguity)(ambiguity.divergence, level)


def q_values(world: World, ambiguity: Ambiguity, v: FloatArray) -> FloatArray:
    """The worst case of r(s,a,s') + discount v(s') at every pair, -inf where there is none."""
    following = np.append(v, 0.0)
    q = np.full((world.n_states, world.n_actions), -np.inf)
    for (s, a), row in world.rows.items():
        outcomes = row.rewards + world.discount * following[row.successors]
        q[s, a] = rm.worst_case(at_pair(ambiguity, world.discount, s, a), row.probabilities, outcomes).value
    return q


def bellman(world: World, ambiguity: Ambiguity, v: FloatArray, policy: npt.ArrayLike | None = None) -> FloatArray:
    """T v, or T^pi v for (S,) actions or (S, A) probabilities."""
    q = q_values(world, ambiguity, v)
    if policy is None:
        return q.max(axis=1)
    chosen = np.asarray(policy)
    if chosen.ndim == 1:
        return q[np.arange(world.n_states), chosen]
    return np.where(chosen > 0, chosen * np.where(np.isfinite(q), q, 0.0), 0.0).sum(axis=1)


def fixed_point(
    world: World, ambiguity: Ambiguity, policy: npt.ArrayLike | None = None, tolerance: float = 1e-12
) -> FloatArray:
    """v = T v by sweeps from 0, within tolerance * max(1, max|v|)."""
    v = np.zeros(world.n_states)
    while True:
        swept = bellman(world, ambiguity, v, policy)
        if np.abs(swept - v).max() * world.discount / (1 - world.discount) <= tolerance * max(1.0, np.abs(swept).max()):
            return swept
        v = swept


def nominal_fixed_point(world: World, tolerance: float = 1e-13) -> FloatArray:
    """The same for the nominal model, with plain sums in place of the worst case."""
    v = np.zeros(world.n_states + 1)
    while True:
        swept = np.full(world.n_states + 1, -np.inf)
        swept[-1] = 0.0
        for (s, _), row in world.rows.items():
            swept[s] = max(swept[s], float(row.probabilities @ (row.rewards + world.discount * v[row.successors])))
        if np.abs(swept - v).max() <= tolerance * max(1.0, np.abs(swept).max()):
            return swept[:-1]
        v = swept


def policies(world: World) -> Iterator[npt.NDArray[np.int64]]:
    """All deterministic policies."""
    actions = [[a for a in range(world.n_actions) if (s, a) in world.rows] for s in range(world.n_states)]
    for choice in product(*actions):
        yield np.array(choice)


def random_columns(
    seed: int, n_states: int | None = None
) -> tuple[list[tuple[int, int, int, float, float, bool]], int, float]:
    """Entries (s, a, s', p, r, terminated), the number of states and the discount of a small random world."""
    rng = np.random.default_rng(seed)
    n = n_states if n_states is not None else int(rng.integers(3, 6))
    m = int(rng.integers(2, 4))
    discount = float(rng.choice([0.0, 0.3, 0.6, 0.9, 0.95]))
    table = rng.uniform(-1.0, 2.0, (n, m, n))
    dependence = rng.choice(["s", "sa", "sas"])
    can_end = bool(rng.random() < 0.5)
    columns = []
    for s in range(n):
        available = np.flatnonzero(rng.random(m) < 0.7)
        for a in available if available.size else rng.integers(m, size=1):
            reached = rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False)
            for following, p in zip(reached, rng.dirichlet(np.ones(reached.size)), strict=True):
                reward = (
                    table[s, 0, 0]
                    if dependence == "s"
                    else table[s, a, 0]
                    if dependence == "sa"
                    else table[s, a, following]
                )
                ends = can_end and rng.random() < 0.3
                columns.append((s, int(a), int(following), float(p), float(reward), bool(ends)))
    order = rng.permutation(len(columns))
    return [columns[i] for i in order], n, discount


def random_world(seed: int, n_states: int | None = None) -> tuple[rm.MDP, World]:
    """A small random world twice: with unavailable actions, rewards on (s), (s, a) or (s, a, s'), endings or not."""
    columns, n, discount = random_columns(seed, n_states)
    s, a, following, p, r, ends = (np.array(column) for column in zip(*columns, strict=True))
    mdp = rm.MDP.from_rows(s, a, following, p, r, discount, terminated=ends, n_states=n)
    rows = {}
    for pair in {(int(i), int(j)) for i, j in zip(s, a, strict=True)}:
        here = np.flatnonzero((s == pair[0]) & (a == pair[1]))
        rows[pair] = Row(p[here], np.where(ends[here], n, following[here]), r[here])
    return mdp, World(rows, n, int(a.max()) + 1, discount)
