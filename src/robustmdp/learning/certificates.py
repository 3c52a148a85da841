"""Bounds without a model: what was learned is frozen, and later samples say how far it can be from the truth.

For any V, eta and policy, the mean of J(eta; x) over outcomes x = r + discount V(s') is at most the worst case at V, and
the value of any likelihood ratio t is at least that. Means are what samples bound. With L <= T_policy V_lower and
T V_upper <= U at all states, with m = min(L - V_lower) and M = max(U - V_upper):

    V_lower + m/(1 - discount) <= v of the policy,   best v <= V_upper + M/(1 - discount).

The bounds hold at all times at once, so that the number of visits may depend on chance, and for any behaviour policy. They
assume that the successor depends on state and action alone and that rewards lie in the given range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core
from robustmdp.ambiguity import Ambiguity
from robustmdp.learning.concentration import Means
from robustmdp.learning.levels import Level, level_of
from robustmdp.learning.settings import register
from robustmdp.learning.sources import Shape, Source
from robustmdp.learning.states import TransitionState
from robustmdp.learning.tables import LARGEST_FLOAT, Expected, LearnerState, Tables, check_tables

FloatArray = npt.NDArray[np.float64]
_LEARNING, _LEARNING_MARGINS, _CERTIFYING = range(3)
_FINITE = -LARGEST_FLOAT, LARGEST_FLOAT
_BELOW = 0.95  # of a ball's ceiling above the floor: outcomes at the ceiling itself, the quantile, must be above it
_LEAST_WEIGHT = 1e-3  # of a ball, in spreads of outcomes
_MARGIN_SHARE = 0.1  # of the learning steps on a trajectory: the last ones learn margins
_SAFETY = 1.5  # of margins, which are noisy themselves


class Frozen(NamedTuple):
    """What is fixed before the first certifying sample; R replications of S states and P pairs."""

    policy: npt.NDArray[np.int32]  # (R, S) pairs
    v_lower: FloatArray  # (R, S + 1), the end last
    v_upper: FloatArray
    eta: FloatArray  # (R, P); without a smooth f* a ceiling of outcomes
    weight: FloatArray  # (R, P)
    floor: FloatArray  # (R, P): the lowest outcome that has been seen
    centre: FloatArray  # (R, P)
    eta_lower: FloatArray  # (R, S), for lower bounds, where nature may find an outcome that was never seen
    weight_lower: FloatArray  # (R, S)


class CertifiedState(TransitionState):
    """Learns for some steps, then counts for the others; 36 bytes a pair beside those of the learner, 68 for a ball."""

    def __init__(
        self,
        state: LearnerState,
        ambiguity: Ambiguity,
        shape: Shape,
        *,
        generative: bool,
        steps: tuple[int, int, int],
        rounds: int,
        confidence: float,
    ) -> None:
        self.state, self._shape, self.generative = state, shape, generative
        self._ambiguity, self.inside, self._rounds = ambiguity, state.inside, rounds
        self._learning, self._margin_steps, self._certifying = steps
        self._delta = 1.0 - confidence
        self._phase = _LEARNING
        self._level = level_of(ambiguity, shape)
        self.extent, self.diverged = state.extent, state.diverged
        self.q_steps, self.by_visits = state.q_steps, state.by_visits
        cells, states = len(self.diverged) * shape.n_pairs, len(self.diverged) * shape.n_states
        names = ["dual", *["ratio"] * self._is_smooth, *["cost", "tilted", "outcome"] * self._level.is_constrained]
        self.sums: Tables = {"count": np.zeros(cells, np.uint32), "lower": np.zeros((states, 2))}
        self.sums |= {name: np.zeros((cells, 2)) for name in names}
        self.margins: Tables = {
            name: np.zeros((len(self.diverged), shape.n_states + 1))
            for name in (["lower", "upper"] if self._margin_steps else [])
        }

    @property
    def _is_smooth(self) -> bool:
        return self._level.is_robust and self._level.is_smooth

    @property
    def tables(self) -> Tables:  # type: ignore[override]
        """Those of the learner, with all visits."""
        return {**self.state.tables, "visits": self.state.tables["visits"] + self.sums["count"]}

    def q(self) -> FloatArray:
        return self.state.q()

    def iterate(self) -> FloatArray:
        """The current Q, (replications * pairs,)."""
        return self.state.iterate()

    def eta(self, span: slice) -> FloatArray:
        """As the learner has it."""
        return self.state.eta(span)

    def advance(self, source: Source, first: int, count: int) -> int:
        """Learn, then learn margins, then count."""
        done, unit = 0, self._rounds if self.generative else 1
        ends = self._learning, self._learning + self._margin_steps, first + count
        for phase, end in enumerate(ends):
            wanted = min(end, first + count) - (first + done)
            if wanted <= 0:
                continue
            if phase == _LEARNING:
                taken = self.state.advance(source, first, wanted)
            else:
                self._enter(phase, is_new=first + done == ends[phase - 1])
                taken = super().advance(source, (first + done) * unit, wanted * unit) // unit
            done += taken
            if taken < wanted:
                break
        return done

    def _enter(self, phase: int, *, is_new: bool) -> None:
        """Make the compiled sums of a phase, once; a new phase begins with empty ones."""
        if self._phase == phase:
            return
        self._phase = phase
        if phase == _CERTIFYING and is_new:
            for table in self.sums.values():
                table[...] = 0
        self.__dict__.pop("frozen", None)
        self.__dict__.pop("update", None)
        if phase == _LEARNING_MARGINS and is_new:
            self._begin_margins()

    @cached_property
    def update(self) -> Any:
        """The compiled sums, at what has been learned."""
        shape, level, frozen = self._shape, self._level, self.frozen
        settings = _core.LearnerSettings(
            levels=level.numbers,
            discount=shape.discount,
            inside=self.inside,
            can_end=shape.can_end,
            constrained=level.is_constrained,
        )
        names = ["eta", "floor", "centre", "eta_lower", "weight_lower", "policy", "v_lower", "v_upper"]
        names += ["weight"] * level.is_constrained
        tables = {name: getattr(frozen, name) for name in names} | self.sums
        is_certifying = self._phase == _CERTIFYING
        if not is_certifying:
            tables |= self._margin_tables()
        arrays = {name: np.ascontiguousarray(table).reshape(-1) for name, table in tables.items()}
        evidence = _core.Evidence(self.state.core_state, self._typical_reward, **arrays)
        make = level.price.certifier if is_certifying else level.price.margin_learner
        return make(self.state.core_state, settings, evidence)

    @property
    def _typical_reward(self) -> float:
        return 0.0 if self.inside else 0.5 * sum(self._reward_range)

    @property
    def _reward_range(self) -> tuple[float, float]:
        assert self._shape.reward_range is not None
        return self._shape.reward_range

    @property
    def _paid(self) -> tuple[float, float]:
        """The range of rewards in nature's hands."""
        return self._reward_range if self.inside else (0.0, 0.0)

    @property
    def _earned(self) -> tuple[float, float]:
        """The range of the other rewards."""
        return (0.0, 0.0) if self.inside else self._reward_range

    # What is frozen

    @cached_property
    def frozen(self) -> Frozen:
        """What was learned, with margins once they are known."""
        shape = self._shape
        low, high = shape.value_range
        q = self.state.q().reshape(-1, shape.n_pairs)
        v, policy = _greedy(q, shape.state_ptr)
        v_lower = v_upper = np.hstack([np.clip(v, low, high), np.zeros((len(v), 1))])
        if self.margins and self._phase == _CERTIFYING:
            v_lower = np.maximum(v_lower - self.margins["lower"], min(low, 0.0))
            v_upper = np.minimum(v_upper + self.margins["upper"], max(high, 0.0))
        floor, most = self._floors(v_upper), self._outcomes(v_upper)[1]
        weight, slope = self._weights(floor, most), self._steepest(self._planned_counts())
        eta = floor + (_BELOW if self._level.is_constrained else 1.0) * weight
        if self._is_smooth:
            learned = self.state.eta(slice(None)).reshape(q.shape)
            learned = np.where(np.isnan(learned), floor, np.clip(learned, floor, floor + weight * slope))
            eta = np.where(weight > 0.0, learned, eta)
        of_policy = [np.take_along_axis(table, policy, axis=1) for table in (eta, weight, slope)]
        eta_lower, weight_lower = self._lower_duals(*of_policy, *self._outcomes(v_lower))
        centre = q
        if self._level.is_constrained:  # of a reward and of an outcome, each within its range
            centre = self._typical_reward + np.clip(q - self._typical_reward, floor, most)
        return Frozen(
            policy.astype(np.int32), v_lower, v_upper, eta, weight, floor, centre, eta_lower, weight_lower
        )

    def _begin_margins(self) -> None:
        """A state's own deviations alone, and all that is possible where nothing was ever seen."""
        shape, (low, high) = self._shape, self._shape.value_range
        by_spread, by_reach = self._expected_deviations()
        own = by_spread * 0.5 * (high - low) + by_reach
        seen = self._planned_counts() > 0.0
        v, starts = self.frozen.v_lower[:, :-1], shape.state_ptr[:-1]
        lower = np.take_along_axis(np.where(seen, own, math.inf), self.frozen.policy, axis=1)
        upper = np.maximum.reduceat(np.where(seen, own, math.inf), starts, axis=1)
        self.margins["lower"][:, :-1] = np.minimum(lower, v - low)
        self.margins["upper"][:, :-1] = np.minimum(upper, high - v)

    def _expected_deviations(self) -> tuple[FloatArray, FloatArray]:
        """What a certificate will say of a pair beyond usual ones: about sqrt(2.5 L var/n) + reach L/n, (R, P) each.

        Pairs with a quarter of the usual number of samples have none: their deviation is at most twice the usual one.
        """
        planned, odds = np.maximum(self._planned_counts(), 1e-3), self._log_odds[1]
        usual = (planned**2).sum(axis=1, keepdims=True) / planned.sum(axis=1, keepdims=True)
        excess = _SAFETY * np.maximum(1.0 - 2.0 * np.sqrt(planned / usual), 0.0)
        frozen = self.frozen
        lowest = self._earned[0] + self._dual(frozen.eta, frozen.weight, frozen.floor)
        highest = self._earned[1] + self._outcomes(frozen.v_upper)[1]
        reach = np.maximum(frozen.centre - lowest, highest - frozen.centre)
        return excess * np.sqrt(2.5 * odds / planned), excess * reach * odds / planned

    def _margin_tables(self) -> Tables:
        low, high = self._shape.value_range
        by_spread, by_reach = (part.astype(np.float32) for part in self._expected_deviations())
        return {
            "margin_lower": self.margins["lower"],
            "margin_upper": self.margins["upper"],
            "by_spread": by_spread,
            "by_reach": by_reach,
            "most": np.full(len(self.diverged), high - low),
        }

    def _planned_counts(self) -> FloatArray:
        """Certifying samples to expect of each pair, from what was known before the first: (R, P)."""
        visits = self.state.tables["visits"].reshape(len(self.diverged), -1)
        if self.generative:
            return np.full(visits.shape, float(self._certifying * self._rounds))
        return visits * (self._certifying / self._learning)

    def _outcomes(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least and the largest outcome at values (R, S + 1): (R, 1) each."""
        reachable, (least, most) = v if self._shape.can_end else v[:, :-1], self._paid
        discount = self._shape.discount
        return (
            least + discount * reachable.min(axis=1, keepdims=True),
            most + discount * reachable.max(axis=1, keepdims=True),
        )

    def _weights(self, floor: FloatArray, most: FloatArray) -> FloatArray:
        if not self._level.is_constrained:
            return np.broadcast_to(self._level.numbers, floor.shape)
        learned = self.state.tables["weight"].reshape(floor.shape)
        # Far below the spread of outcomes, ratios are 0 or too large; a radius of inf has a weight of 0.
        return np.where(learned > 0.0, np.maximum(learned, _LEAST_WEIGHT * (most - floor)), learned)

    def _floors(self, v_upper: FloatArray) -> FloatArray:
        """The lowest outcome that a pair is known to have, (R, P), which is not below the lowest one it has."""
        least, most = self._outcomes(v_upper)
        if "lowest" not in self.state.tables:  # no doubt, or a printed algorithm that has no use for it
            return np.broadcast_to(least, (len(v_upper), self._shape.n_pairs))
        lowest = self.state.tables["lowest"].reshape(len(v_upper), -1).astype(np.int64)
        value = self._shape.discount * np.take_along_axis(v_upper, np.maximum(lowest, 0), axis=1)
        if self.inside:
            value = value + self._lowest_rewards().reshape(lowest.shape)
        return np.where(lowest < 0, most, value)

    def _lowest_rewards(self) -> FloatArray:
        tables = self.state.tables
        if "lowest_reward" in tables:
            return tables["lowest_reward"]
        offset = np.nextafter(tables["lowest_offset"], np.float32(math.inf))  # rounded when it was kept
        return 0.5 * sum(self._reward_range) + offset.astype(np.float64)

    def _steepest(self, planned: FloatArray) -> FloatArray:
        """The largest y at which no sample can make up for all others: f*(y) and f*'(y) are at most sqrt(samples)."""
        if not self._is_smooth:
            return np.broadcast_to(math.inf, planned.shape)
        root, k = np.sqrt(np.maximum(planned, 1.0)), self._power
        largest = np.minimum(root, (1.0 + k * root) ** (1.0 / k)) if k > 0.0 else root
        slope = np.empty(largest.size)
        self._level.price.slope(np.ravel(largest), slope)
        return slope.reshape(planned.shape)

    def _lower_duals(
        self, eta: FloatArray, weight: FloatArray, slope: FloatArray, least: FloatArray, most: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """eta and weight for an outcome as low as `least`: a ball's weight is free and grows with that distance."""
        eta = np.clip(eta, least, most)
        if not self._level.is_constrained:
            ceiling = least + weight * (slope if self._is_smooth else 1.0)
            return np.minimum(eta, np.where(weight > 0.0, ceiling, least)), weight
        return eta, np.maximum(weight, (eta - least) / slope) if self._is_smooth else eta - least

    @property
    def _power(self) -> float:
        """Cressie and Read's k."""
        return float(self._level.price.k)

    @property
    def _log_odds(self) -> tuple[float, float]:
        """log(1/delta) of each mean: half of delta for lower bounds at the policy's pairs, half for upper ones at all."""
        level, shape = self._level, self._shape
        means = (6 if self._is_smooth else 4) if level.is_constrained else (3 if self._is_smooth else 1)
        return math.log(2.0 * shape.n_states / self._delta), math.log(2.0 * means * shape.n_pairs / self._delta)

    # What the sums say

    def bounds(self, means: type[Means] = Means) -> tuple[FloatArray, FloatArray]:
        """lower <= v of the policy <= best v <= upper, (R, S) each; those that are possible where nothing is known."""
        shape, frozen = self._shape, self.frozen
        discount, (low, high) = shape.discount, shape.value_range
        state_lower = self._lower_values(means)
        state_upper = np.maximum.reduceat(self._upper_values(means), shape.state_ptr[:-1], axis=1)
        v_lower, v_upper = frozen.v_lower[:, :-1], frozen.v_upper[:, :-1]
        # T V >= V holds without samples where V is the least possible value, and at the end.
        state_lower = np.where(v_lower > low, state_lower, v_lower)
        state_upper = np.where(v_upper < high, state_upper, v_upper)
        fall = (state_lower - v_lower).min(axis=1, keepdims=True)
        rise = (state_upper - v_upper).max(axis=1, keepdims=True)
        if shape.can_end:
            fall, rise = np.minimum(fall, 0.0), np.maximum(rise, 0.0)
        lower = state_lower + discount / (1.0 - discount) * fall
        upper = state_upper + discount / (1.0 - discount) * rise
        broken = (self.diverged >= 0)[:, None]
        return np.where(broken, -math.inf, np.maximum(lower, low)), np.where(broken, math.inf, np.minimum(upper, high))

    def _lower_values(self, means: type[Means]) -> FloatArray:
        """At most T_policy V_lower, (R, S)."""
        frozen, level, (earned, most_earned) = self.frozen, self._level, self._earned
        eta, weight = frozen.eta_lower, frozen.weight_lower
        least, most = self._outcomes(frozen.v_lower)
        low, high = (self._dual(eta, weight, x) for x in (least, most))
        count, centre = (np.take_along_axis(table, frozen.policy, axis=1) for table in (self._count, frozen.centre))
        sums = self.sums["lower"].reshape(*eta.shape, 2)
        found = means(count, centre, sums, earned + low, most_earned + high).lower(self._log_odds[0])
        if level.is_constrained:
            radius = np.take_along_axis(np.broadcast_to(level.numbers, frozen.eta.shape), frozen.policy, axis=1)
            found = found - np.where(weight > 0.0, weight * radius, 0.0)
        return np.maximum(found, earned + least)

    @property
    def _count(self) -> npt.NDArray[np.uint32]:
        return self.sums["count"].reshape(self.frozen.eta.shape)

    def _dual(self, eta: FloatArray, weight: FloatArray, x: FloatArray) -> FloatArray:
        """J at one outcome."""
        x = np.broadcast_to(x, eta.shape)
        if not self._level.is_robust:
            return x
        cut = np.minimum(x, eta)
        return np.where(weight > 0.0, self._tilt(eta, weight, x)[0], cut) if self._is_smooth else cut

    def _tilt(self, eta: FloatArray, weight: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """J, t and f(t) at one outcome per cell; of no meaning where the weight is 0."""
        found = np.empty((3, eta.size))
        weight = np.where(weight > 0.0, weight, 1.0)
        columns = (np.ascontiguousarray(np.ravel(np.broadcast_to(part, eta.shape))) for part in (eta, weight, x))
        self._level.price.tilt(*columns, *found)
        dual, ratio, cost = (part.reshape(eta.shape) for part in found)
        return dual, ratio, cost

    def _means(self, means: type[Means], name: str, centre: Any, low: Any, high: Any) -> Means:
        shape = self.frozen.eta.shape
        centre, low, high = (np.broadcast_to(part, shape) for part in (centre, low, high))
        return means(self._count, centre, self.sums[name].reshape(*shape, 2), low, high)

    def _upper_values(self, means: type[Means]) -> FloatArray:
        """At least T V_upper of each pair, (R, P)."""
        frozen, (_, earned) = self.frozen, self._earned
        found = self._upper_ball(means) if self._level.is_constrained else self._upper_price(means)
        trivial = earned + self._outcomes(frozen.v_upper)[1]
        return np.where(np.isnan(found), trivial, np.minimum(found, trivial))

    def _upper_price(self, means: type[Means]) -> FloatArray:
        """E J, and where t = f*' has another mean than 1, what t/E t costs beyond that: a term of second order.

        With a = E t and s = 1/a, the value of t/a is at most E J + (s-1) w E t (f'(st) - f'(t)), because s -> the value
        of s t is convex and x + w f'(t) = eta wherever t > 0. For Cressie and Read's divergences the expectation is
        E t^k (s^(k-1) - 1)/(k-1).
        """
        frozen, (earned, most_earned) = self.frozen, self._earned
        eta, weight, odds = frozen.eta, frozen.weight, self._log_odds[1]
        least, most = frozen.floor, self._outcomes(frozen.v_upper)[1]
        low, high = (self._dual(eta, weight, x) for x in (least, most))
        found = self._means(means, "dual", frozen.centre, earned + low, most_earned + high).upper(odds)
        if not self._is_smooth:
            return found
        (_, largest, _), (_, smallest, _) = self._tilt(eta, weight, least), self._tilt(eta, weight, most)
        ratio = self._means(means, "ratio", 1.0, smallest, largest)
        extra = [
            self._second_order(bound, weight, smallest, largest) for bound in (ratio.lower(odds), ratio.upper(odds))
        ]
        return np.where(weight > 0.0, found + np.maximum(*extra), found)

    def _second_order(
        self, mean: FloatArray, weight: FloatArray, smallest: FloatArray, largest: FloatArray
    ) -> FloatArray:
        k = self._power
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            s = 1.0 / mean
            growth = np.log(s) if k == 1.0 else (s ** (k - 1.0) - 1.0) / (k - 1.0)
            power = mean**k if 0.0 <= k <= 1.0 else mean * np.maximum(smallest ** (k - 1.0), largest ** (k - 1.0))
            return (s - 1.0) * weight * power * growth

    def _upper_ball(self, means: type[Means]) -> FloatArray:
        """E of t x/E t, mixed with E x until D(t/E t) <= radius, which s^k E f(t) bounds, s = 1/E t."""
        frozen, odds, typical = self.frozen, self._log_odds[1], self._typical_reward
        eta, weight, centre = frozen.eta, frozen.weight, frozen.centre - typical  # of outcomes
        least, most = frozen.floor, self._outcomes(frozen.v_upper)[1]
        earned = self._means(means, "dual", typical, *self._earned).upper(odds)
        nominal = centre + self._means(means, "outcome", 0.0, least - centre, most - centre).upper(odds)
        # Total variation: mass above the ceiling moves to the lowest outcome that has been seen.
        smallest = largest = np.ones(eta.shape)
        most_cost, most_tilted = np.ones(eta.shape), most - centre
        if self._is_smooth:
            (_, ratio_at_least, cost_at_least), (_, ratio_at_most, cost_at_most) = (
                self._tilt(eta, weight, x) for x in (least, most)
            )
            smooth = weight > 0.0
            smallest, largest = np.where(smooth, ratio_at_most, 1.0), np.where(smooth, ratio_at_least, 1.0)
            most_cost = np.where(smooth, np.maximum(cost_at_least, cost_at_most), 1.0)  # f falls, then rises
            at_centre = self._tilt(eta, weight, centre)[1]  # t falls, so t (x - centre) is at most this beyond the centre
            most_tilted = np.where(smooth, at_centre * np.maximum(most - centre, 0.0), most_tilted)
        cost = self._means(means, "cost", 0.0, 0.0, most_cost).upper(odds)
        tilted = self._means(means, "tilted", 0.0, np.minimum(largest * (least - centre), 0.0), most_tilted).upper(odds)
        mean_low = mean_high = np.ones(eta.shape)
        if self._is_smooth:
            ratio = self._means(means, "ratio", 1.0, smallest, largest)
            mean_low, mean_high = (np.where(smooth, bound, 1.0) for bound in (ratio.lower(odds), ratio.upper(odds)))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            distance = self._distance(cost, mean_low, mean_high)
            share = np.minimum(1.0, np.where(distance > 0.0, self._level.numbers / distance, 1.0))
            worst = centre + np.maximum(tilted / mean_low, tilted / mean_high)
            return earned + np.where(share > 0.0, share * np.minimum(worst, nominal) + (1.0 - share) * nominal, nominal)

    def _distance(self, cost: FloatArray, mean_low: FloatArray, mean_high: FloatArray) -> FloatArray:
        """A bound of D(t/E t), from E f(t) and E t."""
        if not self._is_smooth:
            return cost
        powers = np.maximum(mean_low**-self._power, mean_high**-self._power)
        return cost * np.maximum(powers, 1.0) + self._level.price.renormalisation * np.log(np.maximum(mean_high, 1.0))

    # On disk

    def _own(self) -> Tables:
        return {f"certificate_{name}": table for name, table in self.sums.items()} | {
            f"margin_{name}": table for name, table in self.margins.items()
        }

    def save(self) -> Tables:
        return self.state.save() | self._own()

    def load(self, saved: Tables) -> None:
        own = self._own()
        self.state.load({name: table for name, table in saved.items() if name not in own})
        expected = {
            name: Expected(table.dtype, table.shape, *(() if table.dtype == np.uint32 else _FINITE))
            for name, table in own.items()
        }
        check_tables({name: saved[name] for name in own.keys() & saved.keys()}, expected)
        for name, table in own.items():
            table[...] = saved[name]


def _greedy(q: FloatArray, state_ptr: npt.NDArray[Any]) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """The largest q of each state, and the first pair that has it; q is (R, P)."""
    starts, sizes = state_ptr[:-1], np.diff(state_ptr)
    top = np.maximum.reduceat(q, starts, axis=1)
    candidates = np.where(q == np.repeat(top, sizes, axis=1), np.arange(q.shape[1]), q.shape[1])
    return top, np.minimum.reduceat(candidates, starts, axis=1)


def check_certifiable(ambiguity: Ambiguity, shape: Shape) -> Level:
    """Refuse, before learning starts, what has no certificate."""
    if shape.reward_range is None:
        _checks.fail("a certificate must know the rewards: give reward_range=(smallest, largest)")
    level = level_of(ambiguity, shape)
    _checks.must(
        not (level.is_robust and level.is_smooth) or hasattr(level.price, "renormalisation"),
        f"a certificate needs a built-in divergence: got {ambiguity!r}",
    )
    return level


@dataclass(frozen=True)
class Certified:
    """A learner whose first samples teach and whose later ones, a `share` of all, certify."""

    learner: Any
    confidence: float
    share: float

    def __post_init__(self) -> None:
        _checks.must(
            hasattr(self.learner, "eta_steps"),
            f"a certificate needs a learner with a dual variable: got {type(self.learner).__name__}",
        )
        for name in ("confidence", "share"):
            number = _checks.finite_number(name, getattr(self, name))
            _checks.must(0.0 < number < 1.0, f"{name} must lie between 0 and 1: got {number:g}")

    @property
    def ambiguity(self) -> Ambiguity:
        """How far the truth may be."""
        found: Ambiguity = self.learner.ambiguity
        return found

    @property
    def behaviour(self) -> Any:
        """Who chooses the actions, while certifying as while learning."""
        return self.learner.behaviour

    @property
    def generative(self) -> bool:
        """Does a step visit every pair?"""
        return bool(self.learner.generative)

    @property
    def one_by_one(self) -> bool:
        """Does each replication need a run of its own?"""
        return getattr(self.learner, "one_by_one", False)

    def samples_per_step(self, shape: Shape) -> int:
        """Those of the learner."""
        return int(self.learner.samples_per_step(shape))

    def initial_state(self, source: Source, replications: int, steps: int) -> CertifiedState:
        """Fresh tables; of a log whose length only reading tells, the expected part teaches."""
        shape = source.shape
        check_certifiable(self.ambiguity, shape)
        learning = math.ceil((1.0 - self.share) * steps)
        _checks.must(learning < steps, f"a certificate needs at least two steps: got {steps}")
        margins = 0 if self.generative else math.floor(_MARGIN_SHARE * learning)
        return CertifiedState(
            self.learner.initial_state(source, replications, learning - margins),
            self.ambiguity,
            shape,
            generative=self.generative,
            steps=(learning - margins, margins, steps - learning),
            rounds=self.samples_per_step(shape) // shape.n_pairs if self.generative else 1,
            confidence=self.confidence,
        )


register(Certified)
