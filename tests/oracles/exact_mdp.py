"""Values of small MDPs between two bounds that prove them, by sweeps in 60 digits.

One sweep at any v bounds the fixed point: Tv + discount/(1-discount) [min, max](Tv - v). The v may come from anywhere,
also from the package under test: a bad one makes the bounds wide, never wrong, and is improved by policy iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mpmath import mp, mpf

import robustmdp as rm
from oracles import exact, naive_mdp

ACCURACY = mpf(10) ** -22  # of the bounds' distance, relative to max|v|
_DIGITS = exact.DIGITS + 20
_STEPS = 40


class Pair(NamedTuple):
    """The outcomes of one action: probabilities that sum to 1 in all digits, and nature's limits there."""

    action: int
    probabilities: list[mpf]
    successors: list[int]
    rewards: list[mpf]
    ambiguity: Any


class World(NamedTuple):
    """The pairs of each state; successor `len(states)` is the end, which is worth 0."""

    states: list[list[Pair]]
    discount: mpf
    can_end: bool


class Values(NamedTuple):
    """lower <= value <= upper per state, and the actions that reach at least `lower`."""

    lower: list[mpf]
    upper: list[mpf]
    policy: list[int]


class _Sweep(NamedTuple):
    """Bounds on Tv, the best action of each state and nature's answer to it."""

    lower: list[mpf]
    upper: list[mpf]
    best: list[Pair]
    answers: list[exact.Enclosure]


def build(mdp: rm.MDP, ambiguity: Any) -> World:
    """The stored model, each row divided by its exact sum."""
    with mp.workdps(_DIGITS):
        stored = naive_mdp.of_mdp(mdp)
        states: list[list[Pair]] = [[] for _ in range(mdp.n_states)]
        for (s, a), row in sorted(stored.rows.items()):
            masses = [mpf(float(x)) for x in row.probabilities]
            total = mp.fsum(masses)
            rewards = [mpf(float(x)) for x in row.rewards]
            limits = exact.level_at_pair(ambiguity, s, a)
            states[s].append(Pair(a, [x / total for x in masses], row.successors.tolist(), rewards, limits))
        ends = any(mdp.n_states in pair.successors for pairs in states for pair in pairs)
        return World(states, mpf(mdp.discount), ends)


def solve(world: World, start: Sequence[float]) -> Values:
    """The best worst case of all policies."""
    with mp.workdps(_DIGITS):
        v = [mpf(float(x)) for x in start]
        starts: dict[Any, Any] = {}
        best = None
        for _ in range(_STEPS):
            swept = _sweep(world, v, None, starts)
            found = _bounds(world, v, swept)
            best = found if best is None or _width(found) < _width(best) else best
            if _is_narrow(best):
                break
            v = _middle(_evaluate(world, found.policy, v, starts))
        return best


def evaluate(world: World, policy: Sequence[int], start: Sequence[float]) -> Values:
    """The worst case of one action per state."""
    with mp.workdps(_DIGITS):
        return _evaluate(world, [int(a) for a in policy], [mpf(float(x)) for x in start], {})


def finite_horizon(
    world: World, terminal: Sequence[float], steps: int, policies: Sequence[Sequence[int]] | None = None
) -> list[Values]:
    """Bounds of v_0 .. v_T, backwards; of the best policy, or of one action per step and state."""
    with mp.workdps(_DIGITS):
        last = [mpf(float(x)) for x in terminal]
        stages = [Values(last, last, [])]
        for step in range(steps - 1, -1, -1):
            policy = None if policies is None else [int(a) for a in policies[step]]
            below = _sweep(world, stages[0].lower, policy, {})
            above = _sweep(world, stages[0].upper, policy, {})
            stages.insert(0, Values(below.lower, above.upper, [pair.action for pair in below.best]))
        return stages


def average(world: World, start: Sequence[float], policy: Sequence[int] | None = None) -> tuple[mpf, mpf]:
    """Bounds of the gain at discount 1, of the best policy or of one: min and max of Tv - v (Odoni 1969).

    v gets better by solving gain + v = cost + P v, with v = 0 in state 0, for both players' choices.
    """
    with mp.workdps(_DIGITS):
        v, starts = [mpf(float(x)) for x in start], {}
        low, high = -mp.inf, mp.inf
        for _ in range(_STEPS):
            swept = _sweep(world, v, None if policy is None else [int(a) for a in policy], starts)
            rounding = max(map(abs, swept.upper)) * mpf(10) ** (8 - _DIGITS)
            below = [a - b - rounding for a, b in zip(swept.lower, v, strict=True)] + [mpf(0)] * world.can_end
            above = [a - b + rounding for a, b in zip(swept.upper, v, strict=True)] + [mpf(0)] * world.can_end
            before, low, high = high - low, max(low, min(below)), min(high, max(above))
            if high - low <= ACCURACY * max(1, abs(low)) or high - low > before / 2:
                break
            try:
                v = _solve_average(world, swept)
            except ZeroDivisionError:  # the gain of these choices depends on the start
                break
        return low, high


def _solve_average(world: World, swept: _Sweep) -> list[mpf]:
    """The gain takes the place of v in state 0."""
    n = len(world.states)
    matrix, cost = mp.eye(n), mp.zeros(n, 1)
    for s, (pair, answer) in enumerate(zip(swept.best, swept.answers, strict=True)):
        cost[s] = answer.penalty
        for q, r, i in zip(answer.distribution, pair.rewards, pair.successors, strict=True):
            cost[s] += q * r
            if i < n:
                matrix[s, i] -= q
    for s in range(n):
        matrix[s, 0] = mpf(1)
    return [mpf(0), *list(mp.lu_solve(matrix, cost))[1:]]


def _evaluate(world: World, policy: list[int], v: list[mpf], starts: dict[Any, Any]) -> Values:
    """Newton's method on nature's answer, which is a concave problem: it converges from anywhere."""
    best = None
    for _ in range(_STEPS):
        swept = _sweep(world, v, policy, starts)
        found = _bounds(world, v, swept)
        best = found if best is None or _width(found) < _width(best) else best
        if _is_narrow(best):
            break
        v = _solve_chain(world, swept)
    return best


def _sweep(world: World, v: list[mpf], policy: list[int] | None, starts: dict[Any, Any]) -> _Sweep:
    values = [*v, mpf(0)]
    rows = []
    for s, pairs in enumerate(world.states):
        answers = []
        for pair in pairs:
            if policy is not None and pair.action != policy[s]:
                continue
            outcomes = [r + world.discount * values[i] for r, i in zip(pair.rewards, pair.successors, strict=True)]
            key = s, pair.action
            answer = exact.worst_case(pair.ambiguity, pair.probabilities, outcomes, world.discount, starts.get(key))
            starts[key] = answer.start
            answers.append((pair, answer))
        best, answer = max(answers, key=lambda item: item[1].lower)
        rows.append((answer.lower, max(item[1].upper for item in answers), best, answer))
    return _Sweep(*map(list, zip(*rows, strict=True)))


def _bounds(world: World, v: list[mpf], swept: _Sweep) -> Values:
    low = min(a - b for a, b in zip(swept.lower, v, strict=True))
    high = max(a - b for a, b in zip(swept.upper, v, strict=True))
    if world.can_end:  # the end's own difference is 0
        low, high = min(low, mpf(0)), max(high, mpf(0))
    factor = world.discount / (1 - world.discount)
    rounding = max(map(abs, swept.upper)) * mpf(10) ** (8 - _DIGITS) / (1 - world.discount)
    lower, upper = (
        [x + factor * low - rounding for x in swept.lower],
        [x + factor * high + rounding for x in swept.upper],
    )
    return Values(lower, upper, [pair.action for pair in swept.best])


def _solve_chain(world: World, swept: _Sweep) -> list[mpf]:
    """v = cost + discount P v for the best actions and nature's answers."""
    n = len(world.states)
    matrix, cost = mp.eye(n), mp.zeros(n, 1)
    for s, (pair, answer) in enumerate(zip(swept.best, swept.answers, strict=True)):
        cost[s] = answer.penalty
        for q, r, i in zip(answer.distribution, pair.rewards, pair.successors, strict=True):
            cost[s] += q * r
            if i < n:
                matrix[s, i] -= world.discount * q
    return list(mp.lu_solve(matrix, cost))


def _middle(values: Values) -> list[mpf]:
    return [(a + b) / 2 for a, b in zip(values.lower, values.upper, strict=True)]


def _width(values: Values) -> mpf:
    return max(b - a for a, b in zip(values.lower, values.upper, strict=True))


def _is_narrow(values: Values) -> bool:
    return _width(values) <= ACCURACY * max(map(abs, values.upper))
