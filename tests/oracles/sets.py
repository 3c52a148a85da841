"""Worst cases of norm balls, intervals and risk measures: slow and obvious, in exact or many-digit numbers.

All functions take lists of numbers of one kind, Fractions or mpf, and do nothing but add, multiply, divide and compare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
from mpmath import mp, mpf

import robustmdp as rm
from oracles import exact
from oracles.primal import minimise

Numbers = Sequence[Any]


def can_have_mass(ambiguity: Any, p: Numbers) -> list[bool]:
    """Which successors the set may use."""
    support = getattr(ambiguity, "support", "model")
    if isinstance(ambiguity, rm.Interval):
        return [upper > 0 for upper in ambiguity.upper]
    return [a > 0 or support == "all" or (support != "model" and j in support) for j, a in enumerate(p)]


def worst_value(ambiguity: Any, p: Numbers, z: Numbers, exactly: Callable[[Any], Any] = Fraction) -> Any:
    """The worst case of a row; `exactly` makes a number of the wanted kind."""
    if isinstance(ambiguity, rm.Optimistic):
        return -worst_value(ambiguity.set, p, [-x for x in z], exactly)
    kept = [j for j, may in enumerate(can_have_mass(ambiguity, p)) if may]
    total = sum((exactly(p[j]) for j in kept), exactly(0))
    mass, outcomes = [exactly(p[j]) / total for j in kept], [exactly(z[j]) for j in kept]
    mean = sum((a * x for a, x in zip(mass, outcomes, strict=True)), exactly(0))
    if isinstance(ambiguity, rm.Nominal):
        return mean
    level = exactly(ambiguity.level)
    if isinstance(ambiguity, rm.MeanRisk):
        return (1 - level) * mean + level * worst_value(ambiguity.risk, p, z, exactly)
    if isinstance(ambiguity, rm.Contamination):
        return (1 - level) * mean + level * min(outcomes)
    if isinstance(ambiguity, rm.Interval):
        lower, upper = ([exactly(bounds[j]) for j in kept] for bounds in (ambiguity.lower, ambiguity.upper))
        return _fill(lower, upper, outcomes)
    if isinstance(ambiguity, rm.LInf):
        return _fill([max(a - level, 0) for a in mass], [a + level for a in mass], outcomes)
    if isinstance(ambiguity, rm.CVaR):
        return _fill([0 * a for a in mass], [a / level for a in mass], outcomes)
    if isinstance(ambiguity, rm.L1):
        weights = [exactly(1) if ambiguity.weights is None else exactly(ambiguity.weights[j]) for j in kept]
        return _best_price(mass, outcomes, weights, level)
    if isinstance(ambiguity, rm.L2):
        return _leave_along_projection(mass, outcomes, level)
    return _entropic(ambiguity, mass, outcomes)


def _fill(lower: Numbers, upper: Numbers, z: Numbers) -> Any:
    """Start at the lower bounds, hand out the rest in the order of outcomes."""
    rest = 1 - sum(lower)
    total = sum(low * x for low, x in zip(lower, z, strict=True))
    for j in sorted(range(len(z)), key=lambda j: z[j]):
        given = min(rest, upper[j] - lower[j])
        total += given * z[j]
        rest -= given
    return total


def _best_price(p: Numbers, z: Numbers, weights: Numbers, radius: Any) -> Any:
    """The dual at every price at which anything changes."""
    pairs = [(i, j) for i in range(len(z)) for j in range(len(z)) if i != j]
    prices = {0 * radius}
    prices |= {(z[i] - z[j]) / (weights[i] + weights[j]) for i, j in pairs if z[i] > z[j]}
    prices |= {(z[i] - z[j]) / (weights[j] - weights[i]) for i, j in pairs if z[i] > z[j] and weights[j] > weights[i]}

    def dual(price: Any) -> Any:
        least = min(x + price * w for x, w in zip(z, weights, strict=True))
        moved = (a * min(x, least + price * w) for a, x, w in zip(p, z, weights, strict=True))
        return sum(moved) - price * radius

    return max(map(dual, prices))


def _leave_along_projection(p: Numbers, z: Numbers, radius: Any) -> Any:
    """The projections of p - theta z onto the distributions, by bisection in theta; needs roots, so mpf only."""

    def project(theta: Any) -> list[Any]:
        point = [a - theta * x for a, x in zip(p, z, strict=True)]
        falling, total, shift = sorted(point, reverse=True), mpf(0), mpf(0)
        for count, number in enumerate(falling, start=1):
            total += number
            if number > (total - 1) / count:
                shift = (total - 1) / count
        return [max(number - shift, mpf(0)) for number in point]

    def distance(q: Numbers) -> Any:
        return mp.sqrt(mp.fsum((a - b) ** 2 for a, b in zip(p, q, strict=True)))

    low, high = mpf(0), mpf(1)
    while distance(project(high)) < radius and high < mpf(10) ** 20:
        high *= 8
    while high - low > high * mpf(10) ** -20:  # the value errs by the relative error of theta
        middle = (low + high) / 2
        low, high = (middle, high) if distance(project(middle)) < radius else (low, middle)
    return mp.fsum(a * x for a, x in zip(project(low), z, strict=True))


def _entropic(ambiguity: Any, p: Numbers, z: Numbers) -> Any:
    """By the definition for the entropic risk; EVaR as the best of its duals, which the referee of balls knows."""
    with mp.workdps(exact.DIGITS):
        mass, outcomes = [mpf(float(a)) for a in p], [mpf(float(x)) for x in z]
        if isinstance(ambiguity, rm.EntropicRisk):
            aversion = mpf(ambiguity.level)
            moment = mp.fsum(a * mp.exp(-aversion * x) for a, x in zip(mass, outcomes, strict=True))
            return -mp.log(moment / mp.fsum(mass)) / aversion
        ball = ambiguity
        if isinstance(ambiguity, rm.EVaR):
            ball = rm.Constrained(rm.KL(), float(-mp.log(mpf(ambiguity.level))))
        return exact.worst_case(ball, [float(a) for a in p], [float(x) for x in z]).lower


def worst_by_cvxpy(ambiguity: Any, p: Any, z: Any) -> float:
    """The primal problem as a convex program, by Clarabel; sets whose distributions are their definition."""
    q, p = cp.Variable(len(p), nonneg=True), np.asarray(p)
    level = ambiguity.level
    if isinstance(ambiguity, rm.MeanRisk):
        return (1 - level) * float(p @ z) + level * worst_by_cvxpy(ambiguity.risk, p, z)
    if isinstance(ambiguity, rm.Contamination):
        return (1 - level) * float(p @ z) + level * minimise(q @ z, limits_of_support(ambiguity, q, p))
    if isinstance(ambiguity, rm.EntropicRisk):
        return minimise(q @ z + cp.sum(cp.rel_entr(q, p)) / level, limits_of_support(ambiguity, q, p))
    return minimise(q @ z, limits(ambiguity, q, p))


def limits_of_support(ambiguity: Any, q: cp.Variable, p: Any) -> list[Any]:
    """What makes q a distribution on the successors that can have mass."""
    return [cp.sum(q) == 1, *(q[j] == 0 for j, may in enumerate(can_have_mass(ambiguity, p)) if not may)]


def limits(ambiguity: Any, q: cp.Variable, p: Any) -> list[Any]:
    """What puts q into a set."""
    level = ambiguity.level
    changes = {
        rm.L1: lambda: [
            cp.sum(cp.multiply(1.0 if ambiguity.weights is None else ambiguity.weights, cp.abs(q - p))) <= level
        ],
        rm.LInf: lambda: [cp.abs(q - p) <= level],
        rm.L2: lambda: [cp.norm(q - p) <= level],
        rm.CVaR: lambda: [q <= p / level],
        rm.EVaR: lambda: [cp.sum(cp.rel_entr(q, p)) <= -np.log(level)],
        rm.Interval: lambda: [q >= ambiguity.lower, q <= ambiguity.upper],
        rm.Contamination: lambda: [q >= (1 - level) * p],
    }
    return [*limits_of_support(ambiguity, q, p), *changes[type(ambiguity)]()]


def values_of(mdp: rm.MDP, ambiguity_of: Callable[[int, int], Any], start: Any, sweeps: int) -> tuple[Any, Any]:
    """Bounds of v*, (S,) each, by sweeps in mpf from `start`; `ambiguity_of(state, pair)` is the set of a full row."""
    n, discount = mdp.n_states, mpf(mdp.discount)
    v = [mpf(float(x)) for x in start]
    for _ in range(sweeps):
        before, v = (
            v,
            [max(_pair_value(mdp, ambiguity_of, s, pair, v, discount) for pair in _pairs(mdp, s)) for s in range(n)],
        )
    change = [a - b for a, b in zip(v, before, strict=True)] + ([mpf(0)] if mdp.can_end else [])
    factor = discount / (1 - discount)
    return [x + factor * min(change) for x in v], [x + factor * max(change) for x in v]


def _pairs(mdp: rm.MDP, state: int) -> range:
    return range(int(mdp.state_ptr[state]), int(mdp.state_ptr[state + 1]))


def _pair_value(mdp: rm.MDP, ambiguity_of: Any, state: int, pair: int, v: list[Any], discount: Any) -> Any:
    """One row over all states and the end, with the mean reward where the model has no transition."""
    first, last = int(mdp.indptr[pair]), int(mdp.indptr[pair + 1])
    p, z = [mpf(0)] * (mdp.n_states + 1), [mpf(0)] * (mdp.n_states + 1)
    by_successor = mdp.rewards_on_successors
    total = mp.fsum(mpf(float(a)) for a in mdp.probabilities[first:last])
    for at in range(first, last):
        p[int(mdp.indices[at])] = mpf(float(mdp.probabilities[at])) / total
    rewards = [mpf(float(mdp.rewards[at if by_successor else pair])) for at in range(first, last)]
    mean = mp.fsum(p[int(mdp.indices[at])] * r for at, r in zip(range(first, last), rewards, strict=True))
    for j in range(mdp.n_states + 1):
        z[j] = mean + discount * (v[j] if j < mdp.n_states else 0)
    for at, reward in zip(range(first, last), rewards, strict=True):
        j = int(mdp.indices[at])
        z[j] = reward + discount * (v[j] if j < mdp.n_states else 0)
    ends = p[mdp.n_states] > 0
    count = mdp.n_states + (1 if ends else 0)
    return worst_value(ambiguity_of(state, pair), p[:count], z[:count], mpf)
