"""Kernels of states whose actions share the budget, or the price, of a divergence; in Python for a user's own one.

kappa_a(u) = sup over theta of theta (price_a(1/theta) - u) is the least divergence that brings action a down to u, where
price_a(w) = inf over P of E_P z_a + w D(P, p_a). The budget's value is the least u with sum_a kappa_a(u) <= radius, the
price's that of u + weight sum_a kappa_a(u). Certified bounds do not depend on how well the search converged: below, the
prices of the policy's actions; above, what nature's answers earn for the actions, moved back into the budget.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from robustmdp import _core
from robustmdp.ambiguity import _conjugate_rows as search
from robustmdp.ambiguity._bracketing import BoolArray, Bracketing, choose, put, take
from robustmdp.ambiguity._climbing import Peak, Side, Spot, climb
from robustmdp.ambiguity._conjugate_rows import Scaled, Start, Tilt, blend
from robustmdp.ambiguity.base import FloatArray, IntArray, StateKernel
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
from robustmdp.ambiguity.rowwise import BLOCK, EPS, Rows, RowwiseKernel, gather
from robustmdp.divergences import FDivergence
from robustmdp.divergences._functions import Conjugate

_STEEPEST = 1e40  # theta that leaves nothing but the minimum
_EXACT = 1e-14
_STEPS = 200
_LONGEST_STEP = math.log(1e4)  # of theta
_LEAST_PRICE = 1e-290


def shared_budget_kernel(divergence: FDivergence) -> StateKernel:
    """The kernel of states whose actions share the ball of a divergence."""
    core = divergence.core
    kernel: StateKernel = SharedBudget(core) if isinstance(core, Conjugate) else _core.state_constrained(core)
    return kernel


def shared_price_kernel(divergence: FDivergence) -> StateKernel:
    """The kernel of states whose actions share the penalty of a divergence."""
    core = divergence.core
    kernel: StateKernel = SharedPrice(core) if isinstance(core, Conjugate) else _core.state_penalized(core)
    return kernel


class Block(NamedTuple):
    """The rows of some states, in units of their spread, and the levels of the states."""

    scaled: Scaled
    spread: FloatArray  # (count,)
    base: FloatArray  # (count,), the reward and the least outcome
    terms: FloatArray  # (count,), roundings in a sum over the row
    owner: IntArray  # (count,), ascending
    warm: FloatArray  # (4, count): log theta, height and slope of the shift, (u - floor)/(top - floor)
    level: FloatArray  # (states,)

    @property
    def mean(self) -> FloatArray:
        """Of the model, (count,)."""
        return self.base + self.spread * self.scaled.mean

    @property
    def first(self) -> IntArray:
        """The first row of each state."""
        return np.searchsorted(self.owner, np.arange(len(self.level)))

    def total(self, x: FloatArray) -> FloatArray:
        """Sums over the actions, in their order whatever the block."""
        return np.bincount(self.owner, weights=x, minlength=len(self.level))

    def largest(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.maximum.reduceat(x, self.first))

    def choose(self, x: FloatArray) -> FloatArray:
        """The policy of the first action with the largest x."""
        attained = np.flatnonzero(x == self.largest(x)[self.owner])
        policy = np.zeros_like(x)
        policy[attained[np.searchsorted(self.owner[attained], np.arange(len(self.level)))]] = 1.0
        return policy

    def only(self, states: IntArray, rows: IntArray) -> Block:
        owner = np.searchsorted(states, self.owner[rows])
        parts = take(self.scaled, rows), self.spread[rows], self.base[rows], self.terms[rows]
        return Block(*parts, owner, self.warm[:, rows], self.level[states])


class Answer(NamedTuple):
    """Nature's answers, (count,): mixtures of two tilts where they have `moved`, the model elsewhere."""

    left: Tilt
    right: Tilt
    share: FloatArray
    moved: BoolArray


class Projected(NamedTuple):
    """kappa of rows, -dkappa/du, and nature's answer."""

    cost: FloatArray
    theta: FloatArray
    answer: Answer


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


class SharedRows(StateKernel, ABC):
    """What the budget and the price have in common."""

    memory_per_row = 4
    is_priced: bool

    def __init__(self, conjugate: Conjugate) -> None:
        self._prices, self._doubt = PenalizedRows(conjugate), conjugate.doubt
        self._alone: RowwiseKernel = self._prices if self.is_priced else ConstrainedRows(conjugate)

    @abstractmethod
    def _is_nominal(self, level: FloatArray) -> BoolArray: ...

    @abstractmethod
    def _is_free(self, level: FloatArray) -> BoolArray: ...

    @abstractmethod
    def _find(self, solver: search.ConjugateRows, block: Block, tolerance: float) -> Saddle:
        """The best policies, where nature has some room but not all."""

    @abstractmethod
    def _reply(self, solver: search.ConjugateRows, block: Block, policy: FloatArray, tolerance: float) -> Saddle:
        """Nature's answers to a policy, there."""

    @np.errstate(all="ignore")
    def sweep(
        self,
        model: Any,
        levels: FloatArray,
        outcome: FloatArray,
        lo: int,
        hi: int,
        memory: FloatArray,
        value: FloatArray,
        policy: FloatArray,
    ) -> None:
        kept = memory.reshape(-1, self.memory_per_row)
        for states, rows, block in self._blocks(model, levels, outcome, lo, hi, memory):
            if model.sign > 0.0:
                saddle = self._solve(model, block, None, search.FAST)
                value[states], policy[rows.pair], kept[rows.pair] = saddle.value, saddle.policy, block.warm.T
            else:
                alone, renewed = self._alone.solve_rows(rows, model)
                value[states], policy[rows.pair] = block.largest(-alone), block.choose(-alone)
                kept[rows.pair, : renewed.shape[1]] = renewed

    @np.errstate(all="ignore")
    def evaluate(
        self,
        model: Any,
        levels: FloatArray,
        outcome: FloatArray,
        policy: FloatArray,
        lo: int,
        hi: int,
        memory: FloatArray,
        value: FloatArray,
    ) -> None:
        for states, rows, block in self._blocks(model, levels, outcome, lo, hi, memory):
            value[states] = model.sign * self._solve(model, block, policy[rows.pair], search.FAST).value

    @np.errstate(all="ignore")
    def bracket(
        self,
        model: Any,
        levels: FloatArray,
        outcome: FloatArray,
        scale: float,
        given: bool,
        lo: int,
        hi: int,
        memory: FloatArray,
        policy: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        q: FloatArray,
    ) -> None:
        rounding = 8.0 * EPS * scale
        for states, rows, block in self._blocks(model, levels, outcome, lo, hi, memory):
            saddle = self._answer(model, rows, block, policy[rows.pair] if given else None)
            earned = self._earn(model, block, saddle)
            low = self._bound_policy(model, block, saddle)
            high = self._bound_answer(block, saddle, earned, given or model.sign < 0.0)
            if model.sign < 0.0:
                if not given:
                    low = -block.largest(-self._alone.bound_rows(rows, model).lower)
                low, high = -high, -low
            lower[states], upper[states] = low - rounding, high + rounding
            policy[rows.pair] = saddle.policy
            q[rows.pair] = model.sign * (block.base + block.spread * _draw_back(block, earned.mean, earned.kept))

    @np.errstate(all="ignore")
    def respond(
        self,
        model: Any,
        levels: FloatArray,
        outcome: FloatArray,
        given: bool,
        policy: FloatArray,
        starts: IntArray,
        lo: int,
        hi: int,
        memory: FloatArray,
        data: FloatArray,
        penalty: FloatArray,
    ) -> None:
        for _, rows, block in self._blocks(model, levels, outcome, lo, hi, memory):
            saddle = self._answer(model, rows, block, policy[rows.pair] if given else None)
            kept = self._earn(model, block, saddle).kept[block.owner]
            distribution, cost = self._distribute(model, block, saddle)
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
        ptr, kept = model.state_ptr, memory.reshape(-1, self.memory_per_row)
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
            yield states, rows, Block(scaled, spread, rows.reward + lowest, count_terms(rows), owner, warm, level)

    def _answer(self, model: Any, rows: Rows, block: Block, policy: FloatArray | None) -> Saddle:
        if policy is None and model.sign < 0.0:  # all is best spent on the one action that gains most
            policy = block.choose(-self._alone.solve_rows(rows, model).value)
        return self._solve(model, block, policy, _EXACT)

    def _solve(self, model: Any, block: Block, policy: FloatArray | None, tolerance: float) -> Saddle:
        solver, free, mean = self._prices.choose_solver(model), self._is_free(block.level), block.mean
        lively = ~self._is_nominal(block.level) & ~free
        if policy is None:
            lively &= block.largest(mean) > block.largest(block.base)
            chosen = np.where(free[block.owner], block.choose(block.base), block.choose(mean))
        else:
            lively &= block.total(policy * block.spread * block.scaled.mean) > 0.0
            chosen = policy.copy()
        value = block.total(chosen * np.where(free[block.owner], block.base, mean))
        saddle = Saddle(value, np.where(free, 0.0, np.inf), chosen, None)
        if not lively.any():
            return saddle
        at, mine = np.flatnonzero(lively), np.flatnonzero(lively[block.owner])
        part = block.only(at, mine)
        if policy is None:
            found = self._find(solver, part, tolerance)
        else:
            found = self._reply(solver, part, policy[mine], tolerance)
        block.warm[:, mine] = part.warm
        value[at], saddle.price[at], chosen[mine] = found.value, found.price, found.policy
        place = np.zeros(len(block.owner), dtype=np.int64)
        place[mine] = np.arange(len(mine))
        answer = take(found.answer, place)
        return saddle._replace(answer=answer._replace(moved=answer.moved & lively[block.owner]))

    def _planes(self, model: Any, block: Block, answer: Answer) -> tuple[IntArray, Plane]:
        """The rows that have moved, and what is certain about nature's answers there."""
        at = np.flatnonzero(answer.moved)
        part = _part(self._prices.choose_solver(model), block, at)
        planes = (certify_answer(part, take(tilt, at)) for tilt in (answer.left, answer.right))
        return at, Plane(*(blend(answer.share[at], a, b) for a, b in zip(*planes, strict=True)))

    def _earn(self, model: Any, block: Block, saddle: Saddle) -> _Earned:
        mean = np.where((saddle.price == 0.0)[block.owner] & self._is_free(block.level)[block.owner], 0.0, block.scaled.mean)
        unsure, cost, doubt = (np.zeros_like(mean) for _ in range(3))
        if saddle.answer is not None:
            at, plane = self._planes(model, block, saddle.answer)
            mean[at], unsure[at], cost[at] = plane.mean, np.maximum(plane.lack, 0.0), plane.cost
            doubt[at] = unsure[at] + np.maximum(plane.surplus, 0.0)
        cost = block.total(cost)
        kept = np.ones_like(cost)
        if not self.is_priced:
            kept = np.where(cost > 0.0, np.minimum(1.0, block.level / cost) * (1.0 - 8.0 * EPS), 1.0)
        return _Earned(mean, unsure, cost, block.total(doubt), kept)

    def _bound_policy(self, model: Any, block: Block, saddle: Saddle) -> FloatArray:
        """sum_a policy_a price_a(price/policy_a), less what the budget is worth, from below."""
        policy, price = saddle.policy, saddle.price[block.owner]
        low = np.where(np.isinf(price), block.scaled.mean * (1.0 - block.terms * EPS), 0.0)
        at = np.flatnonzero((policy > 0.0) & (block.spread > 0.0) & (price > 0.0) & np.isfinite(price))
        if at.size:
            solver = self._prices.choose_solver(model)
            weight = np.clip(price[at] / (policy[at] * block.spread[at]), solver.lightest, solver.heaviest)
            part = _part(solver, block, at)._replace(level=weight)
            bounds = self._prices.bound(part, self._prices.find(part, search.EXACT))
            low[at] = np.fmax(bounds.lower, 0.0) * (1.0 - 8.0 * EPS)
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
        size = block.largest(block.mean) - block.largest(block.base) if not given else block.total(
            saddle.policy * block.spread * block.scaled.mean
        )
        # Prices of the budget beyond size/level are not optimal.
        dearest = np.where(np.isfinite(saddle.price), saddle.price, 0.0)
        if not self.is_priced:
            dearest = np.where(block.level > 0.0, np.fmax(dearest, size / block.level), 0.0)
        upper += np.where(earned.doubt > 0.0, dearest * self._doubt * earned.doubt, 0.0)
        if self.is_priced:
            upper += np.where(earned.cost > 0.0, block.level * earned.cost, 0.0)
        count = block.total(np.ones_like(value))
        return upper + 4.0 * (count + 4.0) * EPS * block.largest(np.abs(block.base) + block.spread)

    def _distribute(self, model: Any, block: Block, saddle: Saddle) -> tuple[FloatArray, FloatArray]:
        """Nature's rows, (longest, count), and what they cost, (states,)."""
        p, rise = block.scaled.p, block.scaled.rise
        bottom = np.where(rise == 0.0, p / block.scaled.lowest_mass, 0.0)
        free = self._is_free(block.level)[block.owner] & (block.spread > 0.0)
        distribution, cost = np.where(free, bottom, p), np.zeros_like(block.base)
        answer = saddle.answer
        if answer is not None and (at := np.flatnonzero(answer.moved)).size:
            tilts, share = (take(answer.left, at), take(answer.right, at)), answer.share[at]
            found = Found(tilts, (share, 1.0 - share), share, share, share, share)
            part = _part(self._prices.choose_solver(model), block, at)
            distribution[:, at], cost[at] = mix_answer(part, found, bottom[:, at])
        return distribution, block.total(cost)


class SharedBudget(SharedRows):
    """sum_a D(P_a, p_a) <= level"""

    is_priced = False

    def _is_nominal(self, level: FloatArray) -> BoolArray:
        return np.asarray(level == 0.0)

    def _is_free(self, level: FloatArray) -> BoolArray:
        return np.isinf(level)

    def _find(self, solver: search.ConjugateRows, block: Block, tolerance: float) -> Saddle:
        floor, top = block.largest(block.base), block.largest(block.mean)
        size, budget = top - floor, block.level
        u = floor + size * block.warm[3, block.first]
        u = np.where((floor <= u) & (u < top), u, 0.5 * (floor + top))
        low, high, value, found = floor.copy(), top.copy(), floor.copy(), np.zeros_like(u)
        is_low, looked = np.zeros(len(u), dtype=bool), np.zeros(len(u), dtype=bool)
        at, mine = np.arange(len(u)), np.arange(len(block.owner))
        last = None
        for _ in range(_STEPS):
            projected = project(solver, block, mine, u[block.owner[mine]], tolerance)
            if last is None:
                last = take(projected, mine)
            put(last, mine, projected)
            cost, theta = (block.total(_spread_out(x, mine, len(block.owner)))[at] for x in projected[:2])
            here = u[at]
            found[at] = here
            step = np.where(theta > 0.0, (cost - budget[at]) / theta, -np.inf)
            at_floor = here == floor[at]
            is_low[at] = at_floor & (cost <= budget[at])
            looked[at] |= at_floor
            value[at] = np.fmax(value[at], here + step)
            low[at], high[at] = np.where(step > 0.0, here, low[at]), np.where(step > 0.0, high[at], here)
            close = (np.abs(step) <= 0.25 * tolerance * size[at]) & ~at_floor
            done = is_low[at] | close | (high[at] - low[at] <= 4.0 * EPS * size[at])
            if done.all():
                break
            following = here + step
            inside = (low[at] < following) & (following < high[at])
            untested = (low[at] == floor[at]) & ~looked[at]
            u[at] = np.where(inside, following, np.where(untested, floor[at], 0.5 * (low[at] + high[at])))
            at = at[~done]
            mine = np.flatnonzero(np.isin(block.owner, at))
        theta = block.total(last.theta)
        # The budget is nearly enough for the floor.
        is_low |= ((low == floor) & (high - low <= 4.0 * EPS * size)) | (theta == 0.0)
        block.warm[3] = ((found - floor) / size)[block.owner]
        policy = np.where(is_low[block.owner], block.choose(block.base), last.theta / theta[block.owner])
        return Saddle(np.where(is_low, floor, value), np.where(is_low, 0.0, 1.0 / theta), policy, last.answer)

    def _reply(self, solver: search.ConjugateRows, block: Block, policy: FloatArray, tolerance: float) -> Saddle:
        scaled, budget, weight = block.scaled, block.level, policy * block.spread
        size = block.total(weight * scaled.mean)

        def look(at: IntArray, mine: IntArray, z: FloatArray) -> tuple[FloatArray, FloatArray, Side]:
            price, whose = np.exp(z), np.searchsorted(at, block.owner[mine])
            answer, excess, cost = _answer_prices(solver, block, mine, weight[mine] / price[whose], tolerance)
            all_excess, all_cost = (
                np.bincount(whose, weights=np.where(answer.moved, x, 0.0), minlength=len(at)) for x in (excess, cost)
            )
            height = size[at] - price * (all_excess + budget[at])
            spot = Spot(price, height, all_cost - budget[at], size[at])
            g = np.log(np.maximum(all_cost, 1e-300)) - np.log(budget[at])
            return np.clip(g, -700.0, 700.0), price, Side(spot, answer)

        spread = block.total(weight**2 * scaled.variance)
        z = np.log(np.clip(np.sqrt(0.5 * solver.curvature * spread / budget), 1e-100, 1e100))
        limit = np.full_like(z, 460.0)
        bracket = Bracketing(-limit, limit, np.full_like(z, 2.0), _LONGEST_STEP)
        peak = climb(look, block.owner, bracket, z, np.inf, np.log, tolerance)
        is_left = peak.best
        height = np.where(is_left, peak.left.spot.height, peak.right.spot.height)
        price = np.where(is_left, peak.left.spot.x, peak.right.spot.x)
        value = block.total(policy * block.base) + np.maximum(height, 0.0)
        left, right = peak.left.rows, peak.right.rows
        answer = Answer(left.left, right.left, peak.share[block.owner], left.moved & right.moved)
        return Saddle(value, np.where(height > 0.0, price, 0.0), policy, answer)


class SharedPrice(SharedRows):
    """Nature pays level * sum_a D(P_a, p_a)."""

    is_priced = True

    def _is_nominal(self, level: FloatArray) -> BoolArray:
        return np.isinf(level)

    def _is_free(self, level: FloatArray) -> BoolArray:
        return np.asarray(level < _LEAST_PRICE)

    def _find(self, solver: search.ConjugateRows, block: Block, tolerance: float) -> Saddle:
        floor, top = block.largest(block.base), block.largest(block.mean)
        size, price = top - floor, block.level

        def look(at: IntArray, mine: IntArray, z: FloatArray) -> tuple[FloatArray, FloatArray, Side]:
            place, whose = -np.expm1(-z), np.searchsorted(at, block.owner[mine])
            u = floor[at] + size[at] * place
            # kappa's error grows with theta, which is large on the left of a kink.
            projected = project(solver, block, mine, u[whose], _EXACT)
            cost, theta = (np.bincount(whose, weights=x, minlength=len(at)) for x in projected[:2])
            weight = price[at] * theta
            spot = Spot(place, -(place + price[at] * cost / size[at]), weight - 1.0, np.ones_like(z))
            return np.clip(np.log(weight), -700.0, 700.0), np.exp(-z), Side(spot, projected)

        place = block.warm[3, block.first]
        z = -np.log1p(-np.where((0.0 <= place) & (place < 1.0), place, 0.5))
        bracket = Bracketing(np.zeros_like(z), np.full_like(z, 80.0), np.ones_like(z), 2.0)
        peak = climb(look, block.owner, bracket, z, 1.0, lambda x: -np.log1p(-x), tolerance, starts_at_low=True)
        left, right, is_left = peak.left, peak.right, peak.best
        policy = price[block.owner] * blend(peak.share[block.owner], left.rows.theta, right.rows.theta)
        total = block.total(policy)
        # What nobody needs at the floor goes to an action that cannot earn less.
        is_low = np.isinf(left.spot.slope) & (right.spot.x < 1e-6)
        rest = np.where(is_low, np.maximum(1.0 - total, 0.0), 0.0)
        policy = policy / (total + rest)[block.owner] + rest[block.owner] * block.choose(block.base)
        best = choose(is_left[block.owner], left.rows, right.rows)
        height, place = (np.where(is_left, a, b) for a, b in zip(left.spot[1::-1], right.spot[1::-1], strict=True))
        block.warm[3] = place[block.owner]
        return Saddle(floor - size * height, price, policy, best.answer)

    def _reply(self, solver: search.ConjugateRows, block: Block, policy: FloatArray, tolerance: float) -> Saddle:
        weight, mine = policy * block.spread, np.arange(len(block.owner))
        theta = weight / block.level[block.owner]
        answer, excess, _ = _answer_prices(solver, block, mine, theta, tolerance)
        low = np.where(answer.moved, np.maximum(block.scaled.mean - excess / theta, 0.0), block.scaled.mean)
        value = block.total(policy * (block.base + block.spread * low))
        return Saddle(value, block.level, policy, answer)


def project(
    solver: search.ConjugateRows, block: Block, mine: IntArray, u: FloatArray, tolerance: float
) -> Projected:
    """kappa of some rows at u, (len(mine),)."""
    scaled, spread = take(block.scaled, mine), block.spread[mine]
    target = np.maximum(u - block.base[mine], 0.0) / np.where(spread > 0.0, spread, 1.0)
    target = np.where(target <= 4.0 * EPS, 0.0, target)
    moved = (spread > 0.0) & (target < scaled.mean)
    inner, bottom = np.flatnonzero(moved & (target > 0.0)), np.flatnonzero(moved & (target <= 0.0))
    bottom = bottom if inner.size or bottom.size else np.zeros(1, dtype=np.int64)
    place, peaks = np.zeros(len(mine), dtype=np.int64), []
    for at, solve in ((inner, _descend), (bottom, _settle)):
        if at.size:
            place[at] = sum(len(peak.share) for peak in peaks) + np.arange(len(at))
            warm = block.warm[:, mine[at]]
            peaks.append(solve(solver, take(scaled, at), target[at], warm, tolerance))
            block.warm[:, mine[at]] = warm
    peak = take(peaks[0] if len(peaks) == 1 else _join(*peaks), place)
    left, right, is_left = peak.left, peak.right, peak.best
    cost = np.maximum(np.where(is_left, left.spot.height, right.spot.height), 0.0)
    theta = np.where(is_left, left.spot.x, right.spot.x) / spread
    answer = Answer(left.rows, right.rows, peak.share, moved)
    return Projected(np.where(moved, cost, 0.0), np.where(moved, theta, 0.0), answer)


def _descend(
    solver: search.ConjugateRows, rows: Scaled, target: FloatArray, warm: FloatArray, tolerance: float
) -> Peak:
    """The highest points of theta (E rise - target) - E(f*(s) - s) in theta, where E_P rise is the target."""
    wanted = _log_odds(target, rows.mean)

    def look(at: IntArray, mine: IntArray, z: FloatArray) -> tuple[FloatArray, FloatArray, Side]:
        some, theta = take(rows, at), np.exp(z)
        log_theta, height, slope = warm[:3, at]
        # eta stays, or the distance from the edge.
        height = np.where(solver.edge < 2.0 * np.exp(log_theta), height, height * np.exp(z - log_theta))
        nothing = np.full_like(z, np.nan)
        tilt = solver.find_shift(some, theta, Start(height, slope, nothing, nothing), 0.1 * tolerance)
        warm[:3, at] = z, solver.height(tilt.at_edge, tilt.best.shift), tilt.slope
        mean = tilt.mean
        spot = Spot(theta, theta * (some.mean - target[at]) - tilt.best.excess, mean - target[at], theta)
        return np.clip(_log_odds(mean, some.mean) - wanted[at], -700.0, 700.0), theta, Side(spot, tilt)

    cold = np.log((rows.mean - target) / (solver.curvature * np.maximum(rows.variance, 1e-300)))
    low, high = np.full_like(target, -np.log(solver.heaviest)), np.full_like(target, np.log(_STEEPEST))
    z = np.clip(np.where(np.isfinite(warm[0]), warm[0], cold), low + 1.0, high - 1.0)
    bracket = Bracketing(low, high, np.ones_like(z), _LONGEST_STEP)
    return climb(look, np.arange(len(z)), bracket, z, np.inf, np.log, tolerance)


def _settle(
    solver: search.ConjugateRows, rows: Scaled, target: FloatArray, warm: FloatArray, tolerance: float
) -> Peak:
    """All mass on the minimisers, or nearly so: there theta is as good as infinite."""
    theta, nothing = np.full_like(target, _STEEPEST), np.full_like(target, np.nan)
    tilt = solver.find_shift(rows, theta, Start(nothing, nothing, nothing, nothing), 1e-60)
    height = solver.cost(tilt) + theta * tilt.mean
    side = Side(Spot(theta, height, np.zeros_like(theta), theta), tilt)
    return Peak(side, side, np.ones_like(theta))


def _answer_prices(
    solver: search.ConjugateRows, block: Block, mine: IntArray, theta: FloatArray, tolerance: float
) -> tuple[Answer, FloatArray, FloatArray]:
    """Nature's answers at theta = 1/price, their excesses and costs."""
    log_theta, height, slope = block.warm[:3, mine]
    within = np.clip(theta, 1.0 / solver.heaviest, _STEEPEST)
    height = np.where(solver.edge < 2.0 * np.exp(log_theta), height, height * within * np.exp(-log_theta))
    nothing = np.full_like(theta, np.nan)
    tilt = solver.find_shift(take(block.scaled, mine), within, Start(height, slope, nothing, nothing), 0.1 * tolerance)
    block.warm[:3, mine] = np.log(within), solver.height(tilt.at_edge, tilt.best.shift), tilt.slope
    answer = Answer(tilt, tilt, np.ones_like(theta), theta > 0.0)
    return answer, tilt.best.excess, solver.cost(tilt)


def _log_odds(mean: FloatArray, whole: FloatArray) -> FloatArray:
    return np.log(np.maximum(mean, 1e-300)) - np.log(np.maximum(whole - mean, 1e-300))


def _draw_back(block: Block, mean: FloatArray, kept: FloatArray) -> FloatArray:
    """What is left of an answer's mean, on the way back to the model."""
    return kept[block.owner] * mean + (1.0 - kept[block.owner]) * block.scaled.mean


def _part(solver: search.ConjugateRows, block: Block, at: IntArray) -> Part:
    level = np.ones(len(at))
    return Part(solver, take(block.scaled, at), level, block.warm[1:3, at].T, block.terms[at], at)


def _spread_out(x: FloatArray, at: IntArray, count: int) -> FloatArray:
    whole = np.zeros(count)
    whole[at] = x
    return whole


def _join(one: Any, other: Any) -> Any:
    """Named tuples of arrays, one after the other."""
    return type(one)(
        *(_join(a, b) if isinstance(a, tuple) else np.concatenate([a, b]) for a, b in zip(one, other, strict=True))
    )
