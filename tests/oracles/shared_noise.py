"""States whose actions share the noise, as convex programs and as linear ones."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

import robustmdp as rm
from oracles import primal, sets

Numbers = npt.NDArray[np.float64]


def world(p: Numbers, outcomes: Numbers) -> rm.MDP:
    """States that all lead to the end: action a of state s earns outcomes[s, a, k] at noise value k; no discount."""
    n_states, n_actions, _ = outcomes.shape

    def step(state: Any, action: Any, value: Any) -> Any:
        return np.zeros_like(state), outcomes[state, action, value], np.ones_like(state, dtype=bool)

    return rm.MDP.from_noise(step, n_states, n_actions, p, 1.0)


def value(ambiguity: Any, p: Numbers, outcomes: Numbers, policy: Numbers | None = None) -> float:
    """min over P of max over a of P z_a, outcomes (A, K), or of the policy's mean; nature pays once."""
    q, u = cp.Variable(len(p), nonneg=True), cp.Variable()
    earned, limits = (u, [outcomes @ q <= u]) if policy is None else ((policy @ outcomes) @ q, [])
    if ambiguity.has_weight or ambiguity.has_radius:
        cost = p @ primal.generator(ambiguity.divergence, cp.multiply(1.0 / p, q))
        limits.append(cp.sum(q) == 1)
        if ambiguity.has_weight:
            earned = earned + ambiguity.level * cost
        else:
            limits.append(cost <= ambiguity.level)
    else:
        limits += sets.limits(ambiguity, q, p)
    return primal.minimise(earned, limits)


def value_in_l1_ball(p: Numbers, outcomes: Numbers, radius: float) -> float:
    """The same for sum |P - p| <= radius, as a linear program: P = p + up - down."""
    n = len(p)
    objective = np.append(np.zeros(2 * n), 1.0)
    ones, zeros = np.ones(n), np.zeros(n)
    rows = [np.concatenate([z, -z, [-1.0]]) for z in outcomes] + [np.concatenate([ones, ones, [0.0]])]
    rows += [np.concatenate([zeros, unit, [0.0]]) for unit in np.eye(n)]  # down <= p
    right = np.concatenate([-(outcomes @ p), [radius], p])
    sums = np.concatenate([ones, -ones, [0.0]])[None, :]
    bounds = [(0.0, None)] * (2 * n) + [(None, None)]
    solved = linprog(objective, A_ub=np.array(rows), b_ub=right, A_eq=sums, b_eq=[0.0], bounds=bounds, method="highs")
    assert solved.status == 0, solved.message
    return float(solved.fun)
