"""What kernels of states have in common whose actions share a level of a user's own divergence.

Certified bounds do not depend on how well the search converged: below, the prices of the policy's actions; above, what
nature's answers earn for the actions, moved back into the budget.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity import _conjugate_rows as search
from robustmdp.ambiguity._bracketing import take
from robustmdp.ambiguity._conjugate_rows import blend
from robustmdp.ambiguity._shared_projection import Answer, Block
from robustmdp.ambiguity.conjugates import (
    ConstrainedRows,
    Found,
    Part,
    PenalizedRows,
    Plane,
    certify_answer,
    count_terms,
    mix_answer,
    scale_rows,
)
from robustmdp.ambiguity.rowwise import BLOCK, EPS, Rows, gather
from robustmdp.divergences.functions import Conjugate

EXACT = 1e-14  # what bounds and policies may miss, in units of a state's spread
_LEAST_PRICE = 1e-290  # the inverse of less is not a number


class Saddle(NamedTuple):
    """A policy and nature's answer to it; `price` is what the budget costs, infinite where nature has no room."""

    value: FloatArray  # (states,)
    price: FloatArray  # (states,)
    policy: FloatArray  # (count,)
    answer: Answer | None


class _Earned(NamedTuple):
    """What nature's answer leaves the actions, in units of the spread, (count,), and what it costs, (states,)."""

    mean: FloatArray
    unsure: FloatArray  # what is missing to a mass of 1, times the spread at most
    cost: FloatArray
    doubt: FloatArray  # (states,), |1 - E t|
    kept: FloatArray  # (states,), the share of the answer that the budget allows


class SharedRows(ABC):
    """Worst cases of states whose actions nature answers together: what the budget and the price have in common.

    The arguments are those of kernels of rows, but `levels` has one entry, or one per state; calls write the states
    lo..hi of their outputs, and `policy` holds probabilities, (n_pairs,).
    """

    memory_per_row = 4
    is_priced: bool

    def __init__(self, conjugate: Conjugate) -> None:
        self._prices, self._doubt = PenalizedRows(conjugate), conjugate.doubt
        self._alone = self._prices if self.is_priced else ConstrainedRows(conjugate)

    def _is_free(self, level: FloatArray) -> BoolArray:
        """Whether nature may do anything."""
        return self._alone.is_free(level) | (self.is_priced & (level < _LEAST_PRICE))

    @abstractmethod
    def _find(self, block: Block, tolerance: float) -> Saddle:
        """The best policies, where nature has some room but not all."""

    @abstractmethod
    def _reply(self, block: Block, policy: FloatArray, tolerance: float) -> Saddle:
        """Nature's answers to a policy, there."""

    @np.errstate(all="ignore")
    def sweep(
        self, model: Any, levels: FloatArray, outcome: FloatArray, lo: int, hi: int, memory: FloatArray,
        value: FloatArray, policy: FloatArray,
    ) -> None:  # fmt: skip
        """value = max over random policies of the worst case, (S,); the policy that attains it; renews the memory."""
        kept = memory.reshape(-1, self.memory_per_row)
        for states, rows, block in self._blocks(model, levels, outcome, lo, hi, memory):
            if model.sign > 0.0:
                saddle = self._solve(block, None, search.FAST)
                value[states], policy[rows.pair], kept[rows.pair] = saddle.value, saddle.policy, block.warm.T
            else:
                alone, renewed = self._alone.solve_rows(rows, model)
                value[states], policy[rows.pair] = block.largest(-alone), block.choose(-alone)
                kept[rows.pair, : renewed.shape[1]] = renewed

    @np.errstate(all="ignore")
    def evaluate(
        self, model: Any, levels: FloatArray, outcome: FloatArray, policy: FloatArray, lo: int, hi: int,
        memory: FloatArray, value: FloatArray,
    ) -> None:  # fmt: skip
        """value = the worst case of a policy, (S,)."""
        for states, rows, block in self._blocks(model, levels, outcome, lo, hi, memory):
            value[states] = model.sign * self._solve(block, policy[rows.pair], search.FAST).value

    @np.errstate(all="ignore")
    def bracket(
        self, model: Any, levels: FloatArray, outcome: FloatArray, scale: float, given: bool, lo: int, hi: int,
        memory: FloatArray, policy: FloatArray, lower: FloatArray, upper: FloatArray, q: FloatArray,
    ) -> None:  # fmt: skip
        """lower <= value <= upper, (S,), of the policy where it is `given`, else of the best one, which is written.

        `lower` holds for the policy itself; q, (n_pairs,), is what the actions earn under nature's answer.
        """
        rounding = 8.0 * EPS * scale
        for states, rows, block in self._blocks(model, levels, outcome, lo, hi, memory):
            saddle = self._answer(model, rows, block, policy[rows.pair] if given else None)
            earned = self._earn(block, saddle)
            low = self._bound_policy(block, saddle)
            high = self._bound_answer(block, saddle, earned, given or model.sign < 0.0)
            if model.sign < 0.0:
                if not given:
                    low = -block.largest(-self._alone.bound_rows(rows, model)[0])
                low, high = -high, -low
            lower[states], upper[states] = low - rounding, high + rounding
            policy[rows.pair] = saddle.policy
            q[rows.pair] = model.sign * (block.base + block.spread * _draw_back(block, earned.mean, earned.kept))

    @np.errstate(all="ignore")
    def respond(
        self, model: Any, levels: FloatArray, outcome: FloatArray, given: bool, policy: FloatArray, starts: IntArray,
        lo: int, hi: int, memory: FloatArray, data: FloatArray, penalty: FloatArray,
    ) -> None:  # fmt: skip
        """data[starts[i]:starts[i+1]] = nature's row of pair i, where there is room; what it pays in its state."""
        for _, rows, block in self._blocks(model, levels, outcome, lo, hi, memory):
            saddle = self._answer(model, rows, block, policy[rows.pair] if given else None)
            kept = self._earn(block, saddle).kept[block.owner]
            distribution, cost = self._distribute(block, saddle)
            distribution = kept * distribution + (1.0 - kept) * rows.p
            wanted = rows.is_filled & (starts[rows.pair + 1] > starts[rows.pair])
            data[(starts[rows.pair] + np.arange(len(rows.p))[:, None])[wanted]] = distribution[wanted]
            paid = np.where(cost > 0.0, block.level * cost, 0.0) if self.is_priced else np.zeros_like(cost)
            penalty[rows.pair] = model.sign * paid[block.owner]

    def _blocks(
        self, model: Any, levels: FloatArray, outcome: FloatArray, lo: int, hi: int, memory: FloatArray
    ) -> Iterator[tuple[IntArray, Rows, Block]]:
        """The states lo..hi in blocks of about BLOCK numbers, their rows."""
        if lo == hi:
            return
        ptr, kept, solver = model.state_ptr, memory.reshape(-1, self.memory_per_row), self._prices.choose_solver(model)
        length = np.diff(model.indptr[ptr[lo] : ptr[hi] + 1])
        longest = np.maximum.reduceat(length, ptr[lo:hi] - ptr[lo])
        order = np.argsort(longest, kind="stable")  # states of similar rows share a block: less padding
        counts = np.diff(ptr[lo : hi + 1])[order]
        last_of = np.cumsum(counts * longest[order]) // BLOCK
        for chosen in np.split(order, np.flatnonzero(np.diff(last_of)) + 1):
            states = lo + chosen
            owner = np.repeat(np.arange(len(states)), ptr[states + 1] - ptr[states])
            first = np.searchsorted(owner, np.arange(len(states)))
            pair = ptr[states][owner] + np.arange(len(owner)) - first[owner]
            level = np.broadcast_to(levels, states.shape) if levels.size == 1 else levels[states]
            warm = kept[pair]
            known = warm[:, : self._alone.memory_per_row]
            rows = gather(model, outcome, pair, length[pair - ptr[lo]], level[owner], known)
            scaled, lowest, spread = scale_rows(rows)
            warm = warm.T.copy() if model.sign > 0.0 else np.full_like(warm.T, np.nan)
            yield (
                states,
                rows,
                Block(solver, scaled, spread, rows.reward + lowest, count_terms(rows), owner, warm, level),
            )

    def _answer(self, model: Any, rows: Rows, block: Block, policy: FloatArray | None) -> Saddle:
        if policy is None and model.sign < 0.0:  # all is best spent on the one action that gains most
            policy = block.choose(-self._alone.solve_rows(rows, model)[0])
        return self._solve(block, policy, EXACT)

    def _solve(self, block: Block, policy: FloatArray | None, tolerance: float) -> Saddle:
        free, mean = self._is_free(block.level), block.mean
        active = ~self._alone.is_nominal(block.level) & ~free
        if policy is None:
            active &= block.largest(mean) > block.largest(block.base)
            chosen = np.where(free[block.owner], block.choose(block.base), block.choose(mean))
        else:
            active &= block.total(policy * block.spread * block.scaled.mean) > 0.0
            chosen = policy.copy()
        value = block.total(chosen * np.where(free[block.owner], block.base, mean))
        saddle = Saddle(value, np.where(free, 0.0, np.inf), chosen, None)
        if not active.any():
            return saddle
        at, mine = np.flatnonzero(active), np.flatnonzero(active[block.owner])
        part = block.only(at, mine)
        found = self._find(part, tolerance) if policy is None else self._reply(part, policy[mine], tolerance)
        block.warm[:, mine] = part.warm
        assert found.answer is not None
        value[at], saddle.price[at], chosen[mine] = found.value, found.price, found.policy
        place = np.zeros(len(block.owner), dtype=np.int64)
        place[mine] = np.arange(len(mine))
        answer = take(found.answer, place)
        return saddle._replace(answer=answer._replace(moved=answer.moved & active[block.owner]))

    def _earn(self, block: Block, saddle: Saddle) -> _Earned:
        is_lowest = (saddle.price == 0.0) & self._is_free(block.level)
        mean = np.where(is_lowest[block.owner], 0.0, block.scaled.mean)
        unsure, cost, doubt = (np.zeros_like(mean) for _ in range(3))
        if saddle.answer is not None:
            answer = saddle.answer
            at = np.flatnonzero(answer.moved)
            planes = (certify_answer(_part(block, at), take(tilt, at)) for tilt in (answer.left, answer.right))
            plane = Plane(*(blend(answer.share[at], a, b) for a, b in zip(*planes, strict=True)))
            mean[at], unsure[at], cost[at] = plane.mean, np.maximum(plane.lack, 0.0), plane.cost
            doubt[at] = unsure[at] + np.maximum(plane.surplus, 0.0)
        cost = block.total(cost)
        kept = np.ones_like(cost)
        if not self.is_priced:
            kept = np.where(cost > 0.0, np.minimum(1.0, block.level / cost) * (1.0 - 8.0 * EPS), 1.0)
        return _Earned(mean, unsure, cost, block.total(doubt), kept)

    def _bound_policy(self, block: Block, saddle: Saddle) -> FloatArray:
        """sum_a policy_a price_a(price/policy_a), less what the budget is worth, from below."""
        policy, price = saddle.policy, saddle.price[block.owner]
        low = np.where(np.isinf(price), block.scaled.mean * (1.0 - block.terms * EPS), 0.0)
        at = np.flatnonzero((policy > 0.0) & (block.spread > 0.0) & (price > 0.0) & np.isfinite(price))
        if at.size:
            weight = price[at] / (policy[at] * block.spread[at])
            weight = np.clip(weight, block.solver.lightest, block.solver.heaviest)
            part = _part(block, at)._replace(level=weight)
            lower, _ = self._prices.bound(part, self._prices.find(part, search.EXACT))
            low[at] = np.fmax(lower, 0.0) * (1.0 - 8.0 * EPS)
        earned = policy * (block.base + block.spread * low)
        worth = np.where(np.isfinite(saddle.price) & (not self.is_priced), saddle.price, 0.0)
        worth = np.where(worth > 0.0, worth * block.level, 0.0)
        rounding = 4.0 * (block.total(np.ones_like(policy)) + 4.0) * EPS * (block.total(np.abs(earned)) + worth)
        return block.total(earned) - worth - rounding

    def _bound_answer(self, block: Block, saddle: Saddle, earned: _Earned, given: bool) -> FloatArray:
        """What nature's answer leaves the policy, or the best action, from above."""
        worst = _draw_back(block, (earned.mean + earned.unsure) * (1.0 + 8.0 * EPS), earned.kept)
        value = block.base + block.spread * np.fmin(worst, block.scaled.mean + (worst - block.scaled.mean).clip(0.0))
        value += block.spread * block.terms * EPS * block.scaled.mean
        upper = block.total(saddle.policy * value) if given else block.largest(value)
        size = block.largest(block.mean) - block.largest(block.base)
        if given:
            size = block.total(saddle.policy * block.spread * block.scaled.mean)
        # Prices of the budget beyond size/level are not optimal.
        dearest = np.where(np.isfinite(saddle.price), saddle.price, 0.0)
        if not self.is_priced:
            dearest = np.where(block.level > 0.0, np.fmax(dearest, size / block.level), 0.0)
        upper += np.where(earned.doubt > 0.0, dearest * self._doubt * earned.doubt, 0.0)
        if self.is_priced:
            upper += np.where(earned.cost > 0.0, block.level * earned.cost, 0.0)
        count = block.total(np.ones_like(value))
        return upper + 4.0 * (count + 4.0) * EPS * block.largest(np.abs(block.base) + block.spread)

    def _distribute(self, block: Block, saddle: Saddle) -> tuple[FloatArray, FloatArray]:
        """Nature's rows, (longest, count), and what they cost, (states,)."""
        p, rise = block.scaled.p, block.scaled.rise
        bottom = np.where(rise == 0.0, p / block.scaled.lowest_mass, 0.0)
        free = self._is_free(block.level)[block.owner] & (block.spread > 0.0)
        distribution, cost = np.where(free, bottom, p), np.zeros_like(block.base)
        answer = saddle.answer
        if answer is not None and (at := np.flatnonzero(answer.moved)).size:
            tilts, share = (take(answer.left, at), take(answer.right, at)), answer.share[at]
            found = Found(tilts, (share, 1.0 - share), share, share, share, share)
            part = _part(block, at)
            distribution[:, at], cost[at] = mix_answer(part, found, bottom[:, at])
        return distribution, block.total(cost)


def _draw_back(block: Block, mean: FloatArray, kept: FloatArray) -> FloatArray:
    """What is left of an answer's mean, on the way back to the model."""
    return kept[block.owner] * mean + (1.0 - kept[block.owner]) * block.scaled.mean


def _part(block: Block, at: IntArray) -> Part:
    level = np.ones(len(at))
    return Part(block.solver, take(block.scaled, at), level, block.warm[1:3, at].T, block.terms[at], at)
