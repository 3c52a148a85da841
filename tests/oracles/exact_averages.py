"""Averages in the long run in small worlds, in rationals: every policy against every vertex of nature's sets."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from oracles.exact_totals import Best, Pair, World, chain_value, chains


class Judged(NamedTuple):
    """The gain of the game from each state, and of each policy (by actions) against its nature."""

    gain: list[Fraction]
    policies: dict[tuple[int, ...], list[Fraction]]


def chain_gain(rows: Sequence[dict[int, Fraction]], cost: Sequence[Fraction]) -> list[Fraction]:
    """Of each state: what a cycle of its closed class earns over how long it takes, mixed by where the chain ends up.

    The end, successor len(rows), is a closed class that earns nothing.
    """
    n = len(rows)
    reach = [_reachable(rows, s) for s in range(n)]
    pins: dict[int, Fraction] = {}
    for s in range(n):
        if s not in pins and n not in reach[s] and all(s in reach[t] for t in reach[s]):
            gain = _cycle(rows, cost, s) / _cycle(rows, [Fraction(1)] * n, s)
            pins |= dict.fromkeys(reach[s] | {s}, gain)
    return [Fraction(x) for x in chain_value(rows, [Fraction(0)] * n, dict(pins))]


def _reachable(rows: Sequence[dict[int, Fraction]], start: int) -> set[int]:
    """In one step or more."""
    found: set[int] = set()
    left = [start]
    while left:
        s = left.pop()
        new = {t for t, p in rows[s].items() if p > 0} - found if s < len(rows) else set()
        found |= new
        left += new
    return found


def _cycle(rows: Sequence[dict[int, Fraction]], cost: Sequence[Fraction], s: int) -> Fraction:
    """What is collected from s until s comes again."""
    rest = chain_value(rows, cost, {s: Fraction(0)})
    return cost[s] + sum((p * Fraction(rest[t]) for t, p in rows[s].items() if p > 0), Fraction(0))


def play(world: World, player: Best, nature: Best) -> Judged:
    """player and nature are max or min; choices that do not depend on time are enough (Gillette 1957)."""
    policies = {
        tuple(pair.action for pair in pairs): [nature(gains) for gains in zip(*_answers(world, pairs), strict=True)]
        for pairs in itertools.product(*world)
    }
    return Judged([player(gains) for gains in zip(*policies.values(), strict=True)], policies)


def _answers(world: World, pairs: Sequence[Pair]) -> list[list[Fraction]]:
    return [chain_gain(rows, [pair.reward for pair in pairs]) for rows in chains(world, pairs)]
