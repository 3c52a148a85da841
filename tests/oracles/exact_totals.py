"""Sums without a discount in small worlds, in rationals: every policy against every vertex of nature's sets.

A row is a list of distributions, nature's vertices; a chain takes one pair per state and one vertex per pair. Its value
is solved exactly, with +-infinity where a closed class pays, and 0 where nothing is ever paid.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import robustmdp as rm

Value = Fraction | float
Distribution = tuple[Fraction, ...]


class Pair(NamedTuple):
    """One action: its successors (len(world) is the end), nature's vertices over them, and the reward."""

    action: int
    successors: tuple[int, ...]
    vertices: tuple[Distribution, ...]
    reward: Fraction


World = list[list[Pair]]


def fill(lower: Sequence[Fraction], upper: Sequence[Fraction], order: Sequence[int]) -> Distribution:
    """lower <= P <= upper with as much mass as possible on the first successors of the order."""
    p, rest = list(lower), 1 - sum(lower)
    for j in order:
        more = min(upper[j] - lower[j], rest)
        p[j] += more
        rest -= more
    assert rest == 0
    return tuple(p)


def interval_vertices(lower: Sequence[Fraction], upper: Sequence[Fraction]) -> tuple[Distribution, ...]:
    """All of them: linear functions are minimised by filling in the order of their values."""
    return tuple({fill(lower, upper, order) for order in itertools.permutations(range(len(lower)))})


def moved_vertices(p: Sequence[Fraction], budget: Fraction) -> tuple[Distribution, ...]:
    """Total variation: `budget` of mass moves from the last successors of an order to the first."""
    found = set()
    for order in itertools.permutations(range(len(p))):
        q, left = list(p), min(budget, 1 - p[order[0]])
        q[order[0]] += left
        for j in reversed(order):
            if j != order[0]:
                less = min(q[j], left)
                q[j] -= less
                left -= less
        found.add(tuple(q))
    return tuple(found)


def contaminated_vertices(p: Sequence[Fraction], share: Fraction) -> tuple[Distribution, ...]:
    """(1 - share) p + share * one successor."""
    return tuple(tuple((1 - share) * a + (share if i == j else 0) for i, a in enumerate(p)) for j in range(len(p)))


def chain_value(rows: Sequence[dict[int, Fraction]], cost: Sequence[Fraction], pins: dict[int, Value]) -> list[Value]:
    """v = cost + P v: the least solution in size, with pins; +-inf where a closed class pays."""
    n = len(rows)
    edges = [set() if s in pins else {t for t, p in rows[s].items() if p > 0} for s in range(n)]
    reach = _closure(edges, n)
    closed = [s not in pins and n not in reach[s] and all(s in reach[t] for t in reach[s] if t < n) for s in range(n)]
    closed = [c and not any(t in pins for t in reach[s]) for s, c in enumerate(closed)]
    endless = {s: cost[s] for s in range(n) if closed[s] and cost[s] != 0}
    value: list[Value] = [Fraction(0)] * n
    for s in range(n):
        if s in pins:
            value[s] = pins[s]
        elif signs := {cost > 0 for t, cost in endless.items() if t in reach[s] or t == s}:
            value[s] = math.inf if signs == {True} else -math.inf if signs == {False} else math.nan
    paying = {s for s in range(n) if (s in pins and pins[s] != 0) or (s not in pins and cost[s] != 0)}
    active = [s for s in range(n) if s not in pins and math.isfinite(value[s]) and (s in paying or reach[s] & paying)]
    for s, x in zip(active, _solve(active, rows, cost, value), strict=True):
        value[s] = x
    return value


def is_proper(rows: Sequence[dict[int, Fraction]], pins: dict[int, Value]) -> list[bool]:
    """Whether a pin is reached surely, or the end if there are none, for each state."""
    n = len(rows)
    stop, away = n + 1, n
    edges = [{stop} if s in pins else {t for t, p in rows[s].items() if p > 0} for s in range(n)]
    edges = [{stop if t == away and not pins else t for t in e} for e in edges]
    reach = _closure(edges, n)
    return [away not in reach[s] and all(t == stop or stop in reach[t] for t in reach[s] | {s}) for s in range(n)]


def _closure(edges: list[set[int]], n: int) -> list[set[int]]:
    reach = [set(e) for e in edges]
    for _ in range(n):
        reach = [r | {u for t in r if t < n for u in reach[t]} for r in reach]
    return reach


def _solve(
    active: list[int], rows: Sequence[dict[int, Fraction]], cost: Sequence[Fraction], value: list[Value]
) -> list[Fraction]:
    place = {s: i for i, s in enumerate(active)}
    matrix = []
    for s in active:
        line = [Fraction(int(s == t)) for t in active] + [cost[s]]
        for t, p in rows[s].items():
            if t in place:
                line[place[t]] -= p
            elif t < len(rows) and p > 0:
                line[-1] += p * value[t]
        matrix.append(line)
    size = len(active)
    for i in range(size):
        pivot = next(j for j in range(i, size) if matrix[j][i] != 0)
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        matrix[i] = [x / matrix[i][i] for x in matrix[i]]
        for j in range(size):
            if j != i and matrix[j][i] != 0:
                matrix[j] = [a - matrix[j][i] * b for a, b in zip(matrix[j], matrix[i], strict=True)]
    return [line[-1] for line in matrix]


class Judged(NamedTuple):
    """The value of the game, and of each policy (by actions) against its nature; nan where a sum is not defined."""

    value: list[Value]
    policies: dict[tuple[int, ...], list[Value]]
    proper: bool


Best = Callable[[Any], Any]


def chains(world: World, pairs: Sequence[Pair]) -> Iterator[list[dict[int, Fraction]]]:
    """The chain of every choice of vertices."""
    for choice in itertools.product(*(pair.vertices for pair in pairs)):
        yield [
            {t: p for t, p in zip(pair.successors, vertex, strict=True) if p > 0}
            for pair, vertex in zip(pairs, choice, strict=True)
        ]


def play(
    world: World,
    player: Best,
    nature: Best,
    *,
    pins: dict[int, Value] | None = None,
    unreached: float | None = None,
) -> Judged:
    """player and nature are max or min; with `unreached` a chain that may never stop is worth that."""
    pins = pins or {}
    policies: dict[tuple[int, ...], list[Value]] = {}
    proper = True
    for pairs in itertools.product(*world):
        found: list[Value] | None = None
        for rows in chains(world, pairs):
            value = chain_value(rows, [pair.reward for pair in pairs], pins)
            stops = is_proper(rows, pins)
            proper &= all(stops)
            if unreached is not None:
                value = [v if ok else unreached for v, ok in zip(value, stops, strict=True)]
            found = value if found is None else [nature(a, b) for a, b in zip(found, value, strict=True)]
        assert found is not None
        policies[tuple(pair.action for pair in pairs)] = found
    value = [player(values) for values in zip(*policies.values(), strict=True)]
    return Judged(value, policies, proper)


def _vertices(family: str, p: Any, lower: Any, upper: Any, level: Any) -> Any:
    """The extreme distributions of one row of a family."""
    return {
        "nominal": lambda: (tuple(p),),
        "interval": lambda: interval_vertices(lower, upper),
        "total variation": lambda: moved_vertices(p, level),
        "infinity norm": lambda: interval_vertices(
            [max(x - level, Fraction(0)) for x in p], [min(x + level, Fraction(1)) for x in p]
        ),
        "contamination": lambda: contaminated_vertices(p, level),
        "tail risk": lambda: interval_vertices([Fraction(0)] * len(p), [min(x / level, Fraction(1)) for x in p]),
    }[family]()


def random_world(
    rng: np.random.Generator, family: str, sign: int, n_states: int = 3, *, ends: bool = True
) -> tuple[World, rm.MDP, Any]:
    """Tenths everywhere, rewards often 0, loops, several families of sets; sign of the rewards: 1, -1 or 0 for both."""
    world: World = []
    columns: list[tuple[int, int, int, float, float]] = []
    low: list[float] = []
    high: list[float] = []
    level = Fraction(int(rng.integers(1, 6)), 10)
    for s in range(n_states):
        pairs = []
        for a in range(int(rng.integers(1, 3))):
            size = int(rng.integers(1, 4))
            successors = tuple(sorted(rng.choice(n_states + int(ends), size=size, replace=False).tolist()))
            p = _tenths(rng, size)
            reward = Fraction(int(rng.choice([0, 0, 1, 2])) * (sign or int(rng.choice([-1, 1]))))
            lower, upper = _limits(rng, p)
            vertices = _vertices(family, p, lower, upper, level)
            pairs.append(Pair(a, successors, vertices, reward))
            columns += [(s, a, t, float(x), float(reward)) for t, x in zip(successors, p, strict=True)]
            low += map(float, lower)
            high += map(float, upper)
        world.append(pairs)
    state, action, following, probability, reward_column = zip(*columns, strict=True)
    mdp = rm.MDP.from_rows(state, action, following, probability, reward_column, 0.5, n_states=n_states)
    number = float(level)
    ambiguity = {
        "nominal": lambda: rm.Nominal(),
        "interval": lambda: rm.Interval(low, high),
        "total variation": lambda: rm.Constrained(rm.TotalVariation(), number),
        "infinity norm": lambda: rm.LInf(number),
        "contamination": lambda: rm.Contamination(number),
        "tail risk": lambda: rm.CVaR(number),
    }[family]()
    return world, mdp, ambiguity


FAMILIES = ("nominal", "interval", "total variation", "infinity norm", "contamination", "tail risk")


def _tenths(rng: np.random.Generator, size: int) -> list[Fraction]:
    cuts = sorted(rng.choice(np.arange(1, 10), size=size - 1, replace=False).tolist())
    return [Fraction(b - a, 10) for a, b in itertools.pairwise([0, *cuts, 10])]


def _limits(rng: np.random.Generator, p: list[Fraction]) -> tuple[list[Fraction], list[Fraction]]:
    lower = [min(x, Fraction(max(int(rng.integers(-4, 8)), 0), 10)) for x in p]
    upper = [max(x, Fraction(min(int(rng.integers(2, 13)), 10), 10)) for x in p]
    return lower, upper
