"""From the sums of a certificate to bounds of values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import FloatArray
from robustmdp.learning.concentration import Means
from robustmdp.learning.dual_function import DualFunction
from robustmdp.learning.frozen import Block, split_states


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was frozen and what samples say of it, with probability 1 - delta.

    Attributes
    ----------
    sums : those of the core, (R * P, 2) or (R * S, 2) each, and the `count` of samples
    means : how means are bounded
    levels : of the pairs, in a part of the states
    """

    function: DualFunction
    frozen: Any  # Frozen; in a part of the states all numbers are float64
    sums: dict[str, npt.NDArray[Any]]
    delta: float
    means: type[Means] = Means
    levels: Any = None

    def bound_values(self) -> tuple[FloatArray, FloatArray]:
        """lower <= v of the policy <= best v <= upper, (R, S) each: T(v + c) = T v + discount c, and T is monotone.

        Where a given policy mixes actions, T is its own operator, and both bounds are of its value.
        """
        shape = self.function.shape
        discount, (low, high) = shape.discount, shape.value_range
        v_lower, v_upper = self.frozen.v_lower[:, :-1], self.frozen.v_upper[:, :-1]
        lower, upper = self.bound_sweeps()
        # T V >= V holds without samples where V is the least possible value, and at the end.
        lower, upper = np.where(v_lower > low, lower, v_lower), np.where(v_upper < high, upper, v_upper)
        sums = 0 if shape.mixture is None else int(np.diff(shape.state_ptr).max())  # terms of a mean over actions
        # The sum over all time multiplies it.
        rounding = (8.0 + 2.0 * sums) * np.finfo(np.float64).eps * max(-low, high)
        fall = (lower - v_lower).min(axis=1, keepdims=True) - rounding
        rise = (upper - v_upper).max(axis=1, keepdims=True) + rounding
        if shape.can_end:
            fall, rise = np.minimum(fall, 0.0), np.maximum(rise, 0.0)
        ahead = discount / (1.0 - discount)
        return np.maximum(lower + ahead * fall, low), np.minimum(upper + ahead * rise, high)

    def bound_sweeps(self) -> tuple[FloatArray, FloatArray]:
        """L <= T_policy V_lower and T V_upper <= U, (R, S) each."""
        shape = len(self.frozen.v_lower), self.function.shape.n_states
        lower, upper = np.empty(shape), np.empty(shape)
        for block in split_states(self.function.shape):
            part = self._restrict(block)
            lower[:, block.states] = block.over_policy(part.lower_values())
            upper[:, block.states] = block.over_actions(part.upper_values())
        return lower, upper

    def _restrict(self, block: Block) -> Evidence:
        """The same at some states and their pairs, (R, pairs) or (R, own) each."""
        frozen, replications = self.frozen, len(self.frozen.eta)
        names = "eta", "weight", "floor", "centre"
        pairs = {name: getattr(frozen, name)[:, block.pairs].astype(np.float64) for name in names}
        own = {name: getattr(frozen, name)[:, block.own] for name in ("eta_lower", "weight_lower")}
        policy = frozen.policy[:, block.own] - block.pairs.start
        sums = {
            name: table.reshape(replications, -1, *table.shape[1:])[:, block.own if name == "lower" else block.pairs]
            for name, table in self.sums.items()
        }
        levels = np.broadcast_to(self.function.level.numbers, frozen.eta.shape)[:, block.pairs]
        return replace(self, frozen=frozen._replace(**pairs, **own, policy=policy), sums=sums, levels=levels)

    @property
    def _n_means(self) -> int:
        """One-sided means at a pair: J, E t on both sides; of a ball r, x, t x, f(t), E t on both sides."""
        smooth, ball = self.function.is_smooth, self.function.level.is_constrained
        return (4 if ball else 1) + 2 * smooth

    @property
    def log_odds(self) -> tuple[float, float]:
        """log(1/delta) of a mean: half of delta for lower bounds at the policy's pairs, half for upper ones at all."""
        shape = self.function.shape
        lower, upper = shape.policy_size, self._n_means * shape.n_pairs
        return math.log(2.0 * lower / self.delta), math.log(2.0 * upper / self.delta)

    def lower_values(self) -> FloatArray:
        """At most T_policy V_lower at the policy's pairs, (R, K): E J, which for a ball is less by weight * radius."""
        function, frozen, (earned, most_earned) = self.function, self.frozen, self.function.earned
        eta, weight = frozen.eta_lower, frozen.weight_lower
        least, most = function.outcome_range(frozen.v_lower)
        low, high = (function.value(eta, weight, x) for x in (least, most))
        count, centre = (
            np.take_along_axis(table, frozen.policy, axis=1) for table in (self.sums["count"], frozen.centre)
        )
        found = self.means(count, centre, self.sums["lower"], earned + low, most_earned + high).lower(self.log_odds[0])
        if function.level.is_constrained:
            radius = np.take_along_axis(self.levels, frozen.policy, axis=1)
            found = found - weight * np.where(weight > 0.0, radius, 0.0)
        return np.maximum(found, earned + least)

    def upper_values(self) -> FloatArray:
        """At least T V_upper of each pair, (R, P)."""
        found = self._upper_ball() if self.function.level.is_constrained else self._upper_price()
        trivial = self.function.earned[1] + self.function.outcome_range(self.frozen.v_upper)[1]
        return np.where(np.isnan(found), trivial, np.minimum(found, trivial))

    @property
    def _most(self) -> FloatArray:
        """The largest outcome, which a floor may exceed by its rounding."""
        most: FloatArray = np.maximum(self.function.outcome_range(self.frozen.v_upper)[1], self.frozen.floor)
        return most

    def _mean(self, name: str, centre: Any, low: Any, high: Any) -> Means:
        shape = self.frozen.eta.shape
        centre, low, high = (np.broadcast_to(part, shape) for part in (centre, low, high))
        return self.means(self.sums["count"], centre, self.sums[name], low, high)

    def _upper_price(self) -> FloatArray:
        """E J, and where t = f*' has another mean than 1, what t/E t costs beyond that: a term of second order.

        With a = E t and s = 1/a, the value of t/a is at most E J + (s-1) w E t (f'(st) - f'(t)), because s -> the value
        of s t is convex and x + w f'(t) = eta wherever t > 0. For Cressie and Read's divergences the expectation is
        E t^k (s^(k-1) - 1)/(k-1); for Jensen and Shannon's it is at most that of k = 1.
        """
        function, frozen, odds = self.function, self.frozen, self.log_odds[1]
        eta, weight, (earned, most_earned) = frozen.eta, frozen.weight, function.earned
        most = self._most
        low, high = (function.value(eta, weight, x) for x in (frozen.floor, most))
        found = self._mean("dual", frozen.centre, earned + low, most_earned + high).upper(odds)
        if not function.is_smooth:
            return found
        largest, smallest = (function.tilt(eta, weight, x).ratio for x in (frozen.floor, most))
        ratio = self._mean("ratio", 1.0, smallest, largest)
        ends = [self._second_order(mean, smallest, largest) for mean in (ratio.lower(odds), ratio.upper(odds))]
        return np.where(weight > 0.0, found + weight * np.maximum(*ends), found)

    def _second_order(self, mean: FloatArray, smallest: FloatArray, largest: FloatArray) -> FloatArray:
        k = self.function.power
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            s = 1.0 / mean
            growth = np.log(s) if k == 1.0 else (s ** (k - 1.0) - 1.0) / (k - 1.0)
            power = mean**k if 0.0 <= k <= 1.0 else mean * np.maximum(smallest ** (k - 1.0), largest ** (k - 1.0))
            found: FloatArray = (s - 1.0) * power * growth
        return found

    def _upper_ball(self) -> FloatArray:
        """E of t x/E t, mixed with E x until D(t/E t) <= radius; everything around the centre of outcomes."""
        function, frozen, odds = self.function, self.frozen, self.log_odds[1]
        centre = frozen.centre - function.typical_earned
        floor, most = frozen.floor, self._most
        earned = self._mean("dual", function.typical_earned, *function.earned).upper(odds)
        nominal = self._mean("outcome", 0.0, floor - centre, most - centre).upper(odds)
        worst, distance = self._tilted_ball(centre, floor, most)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.minimum(1.0, np.where(distance > 0.0, self.levels / distance, 1.0))
        mixed = share * np.minimum(worst, nominal) + (1.0 - share) * nominal
        found: FloatArray = earned + centre + np.where(share > 0.0, mixed, nominal)
        return found

    def _tilted_ball(self, centre: FloatArray, floor: FloatArray, most: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of E t (x - centre)/E t and of its distance: s^k E f(t) and, for Jensen and Shannon's, a little more.

        Without a smooth f*, all mass above the ceiling moves to the floor, and the distance is that mass.
        """
        function, frozen, odds = self.function, self.frozen, self.log_odds[1]
        if not function.is_smooth:
            tilted = self._mean("tilted", 0.0, floor - centre, most - centre).upper(odds)
            return tilted, self._mean("cost", 0.0, 0.0, 1.0).upper(odds)
        eta, weight, smooth = frozen.eta, frozen.weight, frozen.weight > 0.0
        at_floor, at_centre, at_most = (function.tilt(eta, weight, x) for x in (floor, centre, most))
        # t falls with x and f(t) is least at 1, so the largest ones are at the ends; where mass moves, it counts as 1.
        highest = np.where(smooth, at_centre.ratio, 1.0) * np.maximum(most - centre, 0.0)
        lowest = np.where(smooth, at_floor.ratio, 1.0) * (floor - centre)
        cost_most = np.where(smooth, np.maximum(at_floor.cost, at_most.cost), 1.0)
        tilted = self._mean("tilted", 0.0, lowest, highest).upper(odds)
        cost = self._mean("cost", 0.0, 0.0, cost_most).upper(odds)
        ratio = self._mean("ratio", 1.0, at_most.ratio, at_floor.ratio)
        low, high = (np.where(smooth, bound, 1.0) for bound in (ratio.lower(odds), ratio.upper(odds)))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            powers = np.maximum(np.maximum(low**-function.power, high**-function.power), 1.0)
            rest = function.level.price.renormalisation * np.log(np.maximum(high, 1.0))
            return np.maximum(tilted / low, tilted / high), cost * powers + rest
