"""Kernels of states whose actions share the budget, or the price, of a divergence; in Python for a user's own one.

kappa_a(u) = sup over theta of theta (price_a(1/theta) - u) is the least divergence that brings action a down to u;
price_a(w) = inf over P of E_P z_a + w D(P, p_a). The budget's value is the least u with sum_a kappa_a(u) <= radius, the
price's that of u + weight sum_a kappa_a(u).
"""

from __future__ import annotations

import numpy as np

from robustmdp._arrays import FloatArray, IntArray
from robustmdp.ambiguity._bracketing import Bracketing, choose, put
from robustmdp.ambiguity._conjugate_rows import blend
from robustmdp.ambiguity._shared_projection import (
    LONGEST_STEP,
    Answer,
    Block,
    Side,
    Spot,
    answer_prices,
    climb,
    project,
)
from robustmdp.ambiguity._shared_states import EXACT, Saddle, SharedRows
from robustmdp.ambiguity.rowwise import EPS

_STEPS = 200


class SharedBudget(SharedRows):
    """sum_a D(P_a, p_a) <= level"""

    is_priced = False

    def _find(self, block: Block, tolerance: float) -> Saddle:
        floor, top = block.largest(block.base), block.largest(block.mean)
        size, budget = top - floor, block.level
        u = floor + size * block.warm[3, block.first]
        u = np.where((floor <= u) & (u < top), u, 0.5 * (floor + top))
        low, high, value, found = floor.copy(), top.copy(), floor.copy(), np.zeros_like(u)
        is_low, looked = np.zeros(len(u), dtype=bool), np.zeros(len(u), dtype=bool)
        at, mine = np.arange(len(u)), np.arange(len(block.owner))
        last = project(block, mine, u[block.owner], tolerance)
        for step_no in range(_STEPS):
            if step_no:
                put(last, mine, project(block, mine, u[block.owner[mine]], tolerance))
            cost, theta = block.total(last.cost)[at], block.total(last.theta)[at]
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

    def _reply(self, block: Block, policy: FloatArray, tolerance: float) -> Saddle:
        scaled, budget, weight = block.scaled, block.level, policy * block.spread
        size = block.total(weight * scaled.mean)

        def look(at: IntArray, mine: IntArray, z: FloatArray) -> tuple[FloatArray, FloatArray, Side]:
            price, whose = np.exp(z), np.searchsorted(at, block.owner[mine])
            answer, excess, cost = answer_prices(block, mine, weight[mine] / price[whose], tolerance)
            all_excess, all_cost = (
                np.bincount(whose, weights=np.where(answer.moved, x, 0.0), minlength=len(at)) for x in (excess, cost)
            )
            height = size[at] - price * (all_excess + budget[at])
            spot = Spot(price, height, all_cost - budget[at], size[at])
            g = np.log(np.maximum(all_cost, 1e-300)) - np.log(budget[at])
            return np.clip(g, -700.0, 700.0), price, Side(spot, answer)

        spread = block.total(weight**2 * scaled.variance)
        z = np.log(np.clip(np.sqrt(0.5 * block.solver.curvature * spread / budget), 1e-100, 1e100))
        limit = np.full_like(z, 460.0)
        bracket = Bracketing(-limit, limit, np.full_like(z, 2.0), LONGEST_STEP)
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

    def _find(self, block: Block, tolerance: float) -> Saddle:
        floor, top = block.largest(block.base), block.largest(block.mean)
        size, price = top - floor, block.level

        def look(at: IntArray, mine: IntArray, z: FloatArray) -> tuple[FloatArray, FloatArray, Side]:
            place, whose = -np.expm1(-z), np.searchsorted(at, block.owner[mine])
            u = floor[at] + size[at] * place
            # kappa's error grows with theta, which is large on the left of a kink.
            projected = project(block, mine, u[whose], EXACT)
            cost, theta = (np.bincount(whose, weights=x, minlength=len(at)) for x in projected[:2])
            weight = price[at] * theta
            spot = Spot(place, -(place + price[at] * cost / size[at]), weight - 1.0, np.ones_like(z))
            return np.clip(np.log(weight), -700.0, 700.0), np.exp(-z), Side(spot, projected)

        place = block.warm[3, block.first]
        z = -np.log1p(-np.where((place >= 0.0) & (place < 1.0), place, 0.5))
        bracket = Bracketing(np.zeros_like(z), np.full_like(z, 80.0), np.ones_like(z), 2.0)
        peak = climb(look, block.owner, bracket, z, 1.0, lambda x: -np.log1p(-x), tolerance, starts_at_low=True)
        left, right, is_left = peak.left, peak.right, peak.best
        policy = price[block.owner] * blend(peak.share[block.owner], left.rows.theta, right.rows.theta)
        total = block.total(policy)
        # What is not needed at the floor goes to an action that cannot earn less.
        is_low = np.isinf(left.spot.slope) & (right.spot.x < 1e-6)
        rest = np.where(is_low, np.maximum(1.0 - total, 0.0), 0.0)
        policy = policy / (total + rest)[block.owner] + rest[block.owner] * block.choose(block.base)
        best = choose(is_left[block.owner], left.rows, right.rows)
        height, place = (np.where(is_left, a, b) for a, b in zip(left.spot[1::-1], right.spot[1::-1], strict=True))
        block.warm[3] = place[block.owner]
        return Saddle(floor - size * height, price, policy, best.answer)

    def _reply(self, block: Block, policy: FloatArray, tolerance: float) -> Saddle:
        weight, mine = policy * block.spread, np.arange(len(block.owner))
        theta = weight / block.level[block.owner]
        answer, excess, _ = answer_prices(block, mine, theta, tolerance)
        low = np.where(answer.moved, np.maximum(block.scaled.mean - excess / theta, 0.0), block.scaled.mean)
        value = block.total(policy * (block.base + block.spread * low))
        return Saddle(value, block.level, policy, answer)
