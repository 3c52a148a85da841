"""Worst cases of norm balls, intervals and risk measures: slow and obvious, in exact or many-digit numbers.

All functions take lists of numbers of one kind, Fractions or mpf, and do nothing but add, multiply, divide and compare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from mpmath import mp, mpf

import robustmdp as rm
from oracles import exact
from oracles.primal import minimise

Numbers = Sequence[Any]
Enclose = Callable[[Any, Numbers, Numbers], tuple[Any, Any]]


SetOf = Callable[[int, int], Any]


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
    level = ambiguity.level if isinstance(ambiguity, rm.Wasserstein) else exactly(ambiguity.level)  # may be infinite
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
    if isinstance(ambiguity, rm.Wasserstein):
        costs = distances(ambiguity)
        return _best_price_of_distance(mass, outcomes, [[costs[i][j] for j in kept] for i in kept], level, exactly)
    if isinstance(ambiguity, rm.L2):
        return _leave_along_projection(mass, outcomes, level)
    with mp.workdps(exact.DIGITS):
        return _entropic(ambiguity, mass, outcomes, lambda *row: exact.worst_case(*row)[:2])[0]


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


def distances(ambiguity: Any) -> list[list[float]]:
    """The cost of moving a unit of mass from each successor of a row to each other, infinite where it is forbidden."""
    given, n = ambiguity.distance, ambiguity.distance.shape[0]
    if ambiguity.coordinates:
        return [[math.dist(x, y) for y in given.tolist()] for x in given.tolist()]
    if isinstance(given, np.ndarray):
        return given.tolist()  # type: ignore[no-any-return]
    listed = given.tocoo()
    stored = {(int(i), int(j)): float(c) for i, j, c in zip(listed.row, listed.col, listed.data, strict=True)}
    return [[0.0 if i == j else stored.get((i, j), math.inf) for j in range(n)] for i in range(n)]


def _best_price_of_distance(
    p: Numbers, z: Numbers, costs: Sequence[Sequence[float]], radius: Any, exactly: Callable[[Any], Any]
) -> Any:
    """The dual of the transport, concave in the price of a unit of distance, at those at which anything changes."""
    moves = [[(z[j], exactly(c)) for j, c in enumerate(row) if c < math.inf] for row in costs]

    def dual(price: Any) -> Any:
        least = (a * min(x + price * c for x, c in to) for a, to in zip(p, moves, strict=True) if a > 0)
        return sum(least) - (price * exactly(radius) if price else 0)

    if math.isinf(radius):
        return dual(exactly(0))
    prices = {exactly(0)}
    for to in moves:
        prices |= {(x - y) / (d - c) for x, c in to for y, d in to if x > y and d > c}
    rising = sorted(prices)
    low, high = 0, len(rising) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if dual(rising[middle]) < dual(rising[middle + 1]) else (low, middle)
    return dual(rising[low])


def _transport_by_cvxpy(ambiguity: Any, p: Any, z: Any) -> float:
    """The cheapest coupling of p with a distribution within the budget."""
    costs, may = np.array(distances(ambiguity)), np.array(can_have_mass(ambiguity, p))
    allowed = np.isfinite(costs) & may
    coupling = cp.Variable(costs.shape, nonneg=True)
    limits = [cp.sum(coupling, axis=1) == p, cp.multiply(coupling, ~allowed) == 0]
    if np.isfinite(ambiguity.level):
        limits.append(cp.sum(cp.multiply(np.where(allowed, costs, 0.0), coupling)) <= ambiguity.level)
    return minimise(cp.sum(coupling @ z), limits)


def _leave_along_projection(p: Numbers, z: Numbers, radius: Any) -> Any:
    """The projections of p - theta z onto the distributions: linear in theta until a successor drops out.

    With the kept successors K, q = p - theta (z - mean of z in K) + (mass outside K) / |K|, and none comes back, since
    the mean falls. The distance is the root of a square, the only number here that is not rational.
    """
    kept = list(range(len(p)))
    while True:
        mean = mp.fsum(z[j] for j in kept) / len(kept)
        share = (1 - mp.fsum(p[j] for j in kept)) / len(kept)
        falls = mp.fsum((z[j] - mean) ** 2 for j in kept)
        fixed = len(kept) * share**2 + mp.fsum(p[j] ** 2 for j in range(len(p)) if j not in kept)
        ends = [((p[j] + share) / (z[j] - mean), j) for j in kept if z[j] > mean]
        if not ends:
            return mean
        end, last = min(ends)
        theta = mp.sqrt(max(radius**2 - fixed, mpf(0)) / falls)
        if theta <= end:
            return mp.fsum((p[j] + share - theta * (z[j] - mean)) * z[j] for j in kept)
        kept.remove(last)


class _Ball(NamedTuple):
    """A ball whose radius need not be a float."""

    divergence: Any
    level: Any


def _as_mpf(x: Any) -> Any:
    return mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else mpf(x)


def _entropic(ambiguity: Any, p: Numbers, z: Numbers, enclose: Enclose) -> Any:
    """By the definition for the entropic risk; EVaR as the best of its duals, which the referee of balls knows."""
    mass, outcomes, level = list(map(_as_mpf, p)), list(map(_as_mpf, z)), mpf(ambiguity.level)
    if isinstance(ambiguity, rm.EVaR):
        return enclose(_Ball(rm.KL(), -mp.log(level)), mass, outcomes)
    moment = mp.fsum(a * mp.exp(-level * x) for a, x in zip(mass, outcomes, strict=True))
    value = -mp.log(moment / mp.fsum(mass)) / level
    return value, value


def worst_bounds(ambiguity: Any, p: Numbers, z: Numbers, discount: Any) -> tuple[Any, Any]:
    """Bounds of the worst case of a row in mpf, 1e-13 apart or closer; f-divergences as well."""
    if isinstance(ambiguity, rm.Optimistic):
        low, high = worst_bounds(ambiguity.set, p, [-x for x in z], discount)
        return -high, -low
    rounding = max(map(abs, z)) * mpf(10) ** (10 - mp.dps)
    if isinstance(ambiguity, rm.EVaR | rm.Penalized | rm.Constrained):
        kept = [j for j, a in enumerate(p) if a > 0]
        mass, outcomes = [p[j] for j in kept], [z[j] for j in kept]
        if isinstance(ambiguity, rm.EVaR):
            low, high = _entropic(ambiguity, mass, outcomes, exact.bracket)
        elif isinstance(ambiguity.divergence, rm.TotalVariation):
            low = high = _total_variation(ambiguity, mass, outcomes, discount)
        else:
            low, high = exact.bracket(ambiguity, mass, outcomes, discount)
    else:
        low = high = worst_value(ambiguity, p, z, mpf)
    return low - rounding, high + rounding


def _total_variation(ambiguity: Any, p: Numbers, z: Numbers, discount: Any) -> Any:
    """The ball as half a ball in the L1 norm; at a price, no outcome counts more than the lowest and the price."""
    if isinstance(ambiguity, rm.Constrained):
        return _best_price(p, z, [mpf(1)] * len(p), 2 * mpf(ambiguity.level))
    most = min(z) + discount * mpf(ambiguity.level)
    return mp.fsum(a * min(x, most) for a, x in zip(p, z, strict=True))


def worst_by_cvxpy(ambiguity: Any, p: Any, z: Any) -> float:
    """The primal problem as a convex program, by Clarabel; sets whose distributions are their definition."""
    q, p = cp.Variable(len(p), nonneg=True), np.asarray(p)
    level = ambiguity.level
    if isinstance(ambiguity, rm.Wasserstein):
        return _transport_by_cvxpy(ambiguity, p, z)
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


def values_of(mdp: rm.MDP, ambiguity_of: SetOf, start: Any, sweeps: int) -> tuple[Any, Any]:
    """Bounds of v*, (S,) each, by sweeps in mpf from `start`; `ambiguity_of(state, pair)` is the set of a full row."""
    n, discount = mdp.n_states, mpf(mdp.discount)
    v = [mpf(float(x)) for x in start]
    for _ in range(sweeps):
        before = v
        swept = [[pair_bounds(mdp, ambiguity_of, s, pair, v) for pair in pairs_of(mdp, s)] for s in range(n)]
        low, high = ([max(bounds[side] for bounds in answers) for answers in swept] for side in (0, 1))
        v = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
    end = [mpf(0)] if mdp.can_end else []
    least = min([a - b for a, b in zip(low, before, strict=True)] + end)
    most = max([a - b for a, b in zip(high, before, strict=True)] + end)
    factor = discount / (1 - discount)
    return [x + factor * least for x in low], [x + factor * most for x in high]


def pairs_of(mdp: rm.MDP, state: int) -> range:
    return range(int(mdp.state_ptr[state]), int(mdp.state_ptr[state + 1]))


def pair_bounds(mdp: rm.MDP, ambiguity_of: SetOf, state: int, pair: int, v: Numbers) -> tuple[Any, Any]:
    """One row over all states and the end, with the mean reward where the model has no transition."""
    first, last = int(mdp.indptr[pair]), int(mdp.indptr[pair + 1])
    discount, p = mpf(mdp.discount), [mpf(0)] * (mdp.n_states + 1)
    by_successor = mdp.rewards_on_successors
    total = mp.fsum(mpf(float(a)) for a in mdp.probabilities[first:last])
    for at in range(first, last):
        p[int(mdp.indices[at])] = mpf(float(mdp.probabilities[at])) / total
    rewards = [mpf(float(mdp.rewards[at if by_successor else pair])) for at in range(first, last)]
    mean = mp.fsum(p[int(mdp.indices[at])] * r for at, r in zip(range(first, last), rewards, strict=True))
    z = [mean + discount * x for x in [*v, mpf(0)]]
    for at, reward in zip(range(first, last), rewards, strict=True):
        j = int(mdp.indices[at])
        z[j] = reward + discount * (v[j] if j < mdp.n_states else 0)
    count = mdp.n_states + (1 if p[mdp.n_states] > 0 else 0)
    return worst_bounds(ambiguity_of(state, pair), p[:count], z[:count], discount)
