"""States whose actions share nature's budget, or its price: the primal problems as convex programs, by Clarabel."""

from __future__ import annotations

from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import numpy.typing as npt

import robustmdp as rm
from oracles import primal, random_rows

FloatArray = npt.NDArray[np.float64]
BALLS = ("L1", "weighted L1", "L2")
KINDS = (*BALLS, *(f"{mode.__name__} {each!r}" for mode in random_rows.MODES for each in random_rows.MODERATE))
DISCOUNT = 0.5


class State(NamedTuple):
    """A state: of each action the probabilities, outcomes and weights of its successors; nature's set of rows."""

    ambiguity: Any
    p: list[FloatArray]
    z: list[FloatArray]
    weights: list[FloatArray] | None = None


def best(state: State) -> float:
    """min over P of max over a of P_a z_a, plus the price of all rows."""
    rows, paid, limits = _rows(state)
    u = cp.Variable()
    limits += [q @ z <= u for q, z in zip(rows, state.z, strict=True)]
    return primal.minimise(u + paid, limits)


def of_policy(state: State, policy: FloatArray) -> float:
    """min over P of sum_a policy_a P_a z_a, plus the price of all rows."""
    rows, paid, limits = _rows(state)
    means = [share * (q @ z) for share, q, z in zip(policy, rows, state.z, strict=True)]
    return primal.minimise(sum(means) + paid, limits)


def _rows(state: State) -> tuple[list[Any], Any, list[Any]]:
    """Nature's rows, what it pays, and what limits it."""
    ambiguity, rows, spent, limits = state.ambiguity, [], [], []
    level = float(np.max(ambiguity.level))
    for a, p in enumerate(state.p):
        weights = np.ones(len(p)) if state.weights is None else state.weights[a]
        t = cp.Variable(len(p), nonneg=True)
        q = cp.multiply(p, t)
        limits.append(cp.sum(q) == 1)
        rows.append(q)
        spent.append(_distance(ambiguity, p, t, q, weights))
    if ambiguity.has_weight and level == 0.0:  # also where a row lacks successors, at which f may be infinite
        return rows, 0.0, limits
    if ambiguity.has_weight:
        return (rows, level * sum(spent), limits) if level < np.inf else (rows, 0.0, [*limits, sum(spent) <= 0])
    return rows, 0.0, [*limits, sum(spent) <= level]


def _distance(ambiguity: Any, p: FloatArray, t: Any, q: Any, weights: FloatArray) -> Any:
    if isinstance(ambiguity, rm.L1):
        return cp.sum(cp.multiply(weights, cp.abs(q - p)))
    if isinstance(ambiguity, rm.L2):
        return cp.norm(q - p)
    return p @ primal.generator(ambiguity.divergence, t)


def random_state(kind: str, seed: int, index: int) -> State:
    """Within what an interior-point method solves to 1e-7."""
    rng = np.random.default_rng([seed, index, KINDS.index(kind)])
    spread = 10 ** rng.uniform(-1, 1)
    p, z = [], []
    for _ in range(int(rng.integers(1, 7))):
        n = int(rng.integers(1, 7))
        row = rng.dirichlet(np.ones(n)) * (1 - 1e-3 * n) + 1e-3
        p.append(row / row.sum())
        z.append(spread * (rng.normal(size=n) if rng.random() < 0.8 else rng.integers(-2, 3, n).astype(float)))
    if rng.random() < 0.1:  # equal actions
        p, z = [p[0]] * len(p), [z[0]] * len(z)
    weights = [rng.uniform(0.2, 3.0, len(row)) for row in p] if kind == "weighted L1" else None
    return State(random_set(kind, rng, spread, weights), p, z, weights)


def random_set(kind: str, rng: np.random.Generator, spread: float, weights: list[FloatArray] | None = None) -> Any:
    """A set of rows whose level leaves nature some room."""
    radius = 10 ** rng.uniform(-3, 0.7)
    if kind in ("L1", "weighted L1"):
        return rm.L1(radius) if weights is None else rm.L1(radius, weights=_by_successor(weights))
    if kind == "L2":
        return rm.L2(radius)
    mode, divergence = divmod(KINDS.index(kind) - len(BALLS), len(random_rows.MODERATE))
    level = spread * 10 ** rng.uniform(-1.5, 1.5) if random_rows.MODES[mode] is rm.Penalized else radius
    return random_rows.MODES[mode](random_rows.MODERATE[divergence], level)


def _by_successor(weights: list[FloatArray]) -> FloatArray:
    """As `as_model` numbers them."""
    return np.concatenate([[1.0], *weights, [1.0]])


def as_model(state: State) -> rm.MDP:
    """State 0 leads each action to states of its own, which end at once; half of an outcome is paid on the way.

    The value of state 0 is that of the state alone, at DISCOUNT times the price of its set.
    """
    first = np.concatenate([[0], np.cumsum([len(p) for p in state.p])])
    count, z = int(first[-1]), np.concatenate(state.z)
    actions = np.repeat(np.arange(len(state.p)), np.diff(first))
    return rm.MDP.from_rows(
        [0] * count + list(range(1, count + 1)),
        [*actions.tolist(), *[0] * count],
        [*range(1, count + 1), *[count + 1] * count],
        [*np.concatenate(state.p).tolist(), *[1.0] * count],
        [*(0.5 * z).tolist(), *(0.5 * z / DISCOUNT).tolist()],
        DISCOUNT,
        n_states=count + 1,
    )


def priced(state: State) -> State:
    """The state as the model's referee must see it: a price is discounted."""
    if not state.ambiguity.has_weight:
        return state
    return state._replace(ambiguity=rm.Penalized(state.ambiguity.divergence, DISCOUNT * float(state.ambiguity.level)))


def table_policy(state: State, model: rm.MDP, shares: FloatArray) -> FloatArray:
    """The policy that takes these shares in state 0, (S, A)."""
    policy = np.zeros((model.n_states, model.n_actions))
    policy[:, 0] = 1.0
    policy[0] = 0.0
    policy[0, : len(state.p)] = shares
    return policy


def state_of_model(mdp: rm.MDP, ambiguity: Any, s: int, v: FloatArray) -> State:
    """State s of a model at values v, whose set has one level, with the price discounted."""
    values, p, z = np.append(v, 0.0), [], []
    for pair in range(int(mdp.state_ptr[s]), int(mdp.state_ptr[s + 1])):
        at = slice(int(mdp.indptr[pair]), int(mdp.indptr[pair + 1]))
        reward = mdp.rewards[at] if mdp.rewards_on_successors else mdp.rewards[pair]
        p.append(mdp.probabilities[at] / mdp.probabilities[at].sum())
        z.append(reward + mdp.discount * values[mdp.indices[at]])
    if ambiguity.has_weight:
        ambiguity = rm.Penalized(ambiguity.divergence, mdp.discount * float(ambiguity.level))
    return State(ambiguity, p, z)
