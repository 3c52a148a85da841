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
from robustmdp.learning.states import LearnerState, TransitionState
from robustmdp.learning.tables import LARGEST_FLOAT, Tables

FloatArray = npt.NDArray[np.float64]
_PREFIX = "certificate_"


class Frozen(NamedTuple):
    """What is fixed before the first certifying sample; R replications of S states and P pairs."""

    policy: npt.NDArray[np.int32]  # (R, S) pairs
    v_lower: FloatArray  # (R, S + 1), the end last
    v_upper: FloatArray
    is_lower: npt.NDArray[np.bool_]  # (R, S): is it expected to be visited often enough?
    is_upper: npt.NDArray[np.bool_]
    least: FloatArray  # (R, 1): the least outcome at v_lower
    most: FloatArray  # (R, 1): the largest one at v_upper
    eta: FloatArray  # (R, P), of total variation the ceiling of outcomes
    weight: FloatArray  # (R, P)
    centre: FloatArray  # (R, P)


class CertifiedState(TransitionState):
    """Learns for some steps, then counts for the others; 36 bytes a pair beside those of the learner, 68 for a ball."""

    def __init__(
        self,
        state: LearnerState,
        ambiguity: Ambiguity,
        shape: Shape,
        *,
        generative: bool,
        inside: bool,
        steps: tuple[int, int],
        rounds: int,
        confidence: float,
    ) -> None:
        self.state, self._shape, self.generative = state, shape, generative
        self._ambiguity, self._inside, self._rounds = ambiguity, inside, rounds
        self._learning, self._certifying = steps
        self._delta = 1.0 - confidence
        self._level = level_of(ambiguity, shape)
        self.extent, self.diverged = state.extent, state.diverged
        self.q_steps, self.by_visits = state.q_steps, state.by_visits
        cells, states = len(self.diverged) * shape.n_pairs, len(self.diverged) * shape.n_states
        names = ["dual"] + ["ratio"] * self._is_smooth + ["cost", "tilted", "outcome"] * self._level.is_constrained
        self.sums: Tables = {"count": np.zeros(cells, np.uint32), "lower": np.zeros((states, 2))}
        self.sums |= {name: np.zeros((cells, 2)) for name in names}

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
        """Learn up to the last learning step, then count."""
        last = first + count
        learning = min(last, self._learning) - first
        done = self.state.advance(source, first, learning) if learning > 0 else 0
        if done == count or done < learning:
            return done
        unit = self._rounds if self.generative else 1
        return done + super().advance(source, (first + done) * unit, (count - done) * unit) // unit

    @cached_property
    def update(self) -> Any:
        """The compiled sums, at what has been learned."""
        shape, level, frozen = self._shape, self._level, self.frozen
        settings = _core.LearnerSettings(
            levels=level.numbers,
            discount=shape.discount,
            inside=self._inside,
            can_end=shape.can_end,
            constrained=level.is_constrained,
        )
        evidence = _core.Evidence(
            **{name: table.reshape(-1) for name, table in self.sums.items()},
            **{name: np.ravel(getattr(frozen, name)) for name in ("policy", "v_lower", "v_upper", "least", "eta")},
            centre=np.ravel(frozen.centre),
            typical_reward=self._typical_reward,
        )
        return level.price.certifier(self.state._core_state, settings, evidence)

    @property
    def _typical_reward(self) -> float:
        return 0.0 if self._inside else 0.5 * sum(self._reward_range)

    @property
    def _reward_range(self) -> tuple[float, float]:
        assert self._shape.reward_range is not None
        return self._shape.reward_range

    @property
    def _paid(self) -> tuple[float, float]:
        """The range of rewards in nature's hands."""
        return self._reward_range if self._inside else (0.0, 0.0)

    @property
    def _earned(self) -> tuple[float, float]:
        """The range of the other rewards."""
        return (0.0, 0.0) if self._inside else self._reward_range

    # What is frozen

    @cached_property
    def frozen(self) -> Frozen:
        """What was learned, and where enough samples can be expected to certify it."""
        shape, level = self._shape, self._level
        low, high = shape.value_range
        q = np.maximum(self.state.q().reshape(-1, shape.n_pairs), -LARGEST_FLOAT)
        v, policy = _greedy(q, shape.state_ptr)
        v = np.clip(v, low, high)
        planned = self._planned_counts()
        enough = planned >= 2.0 * self._log_odds[1] / (1.0 - shape.discount)
        is_lower = np.take_along_axis(enough, policy, axis=1)
        is_upper = np.logical_and.reduceat(enough, shape.state_ptr[:-1], axis=1)
        end = np.zeros((len(v), 1))
        v_lower = np.hstack([np.where(is_lower, v, low), end])
        v_upper = np.hstack([np.where(is_upper, v, high), end])
        least, most = self._outcomes(v_lower)[0], self._outcomes(v_upper)[1]
        weight = self._weights(q.shape)
        eta = self._ceilings(v_upper, most) + weight if level.is_robust else np.zeros(q.shape)
        if self._is_smooth:
            eta = np.where(weight > 0.0, self._dual_variables(least, most, weight, planned), eta)
        return Frozen(policy.astype(np.int32), v_lower, v_upper, is_lower, is_upper, least, most, eta, weight, q)

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

    def _weights(self, shape: tuple[int, int]) -> FloatArray:
        level = self._level
        if level.is_constrained:
            return self.state.tables["weight"].reshape(shape)
        return np.broadcast_to(level.numbers, shape)

    def _ceilings(self, v_upper: FloatArray, most: FloatArray) -> FloatArray:
        """The lowest outcome that a pair is known to have, (R, P), which is not below the lowest one it has."""
        lowest = self.state.tables["lowest"].reshape(len(v_upper), -1).astype(np.int64)
        value = self._shape.discount * np.take_along_axis(v_upper, np.maximum(lowest, 0), axis=1)
        if self._inside:
            value = value + self._lowest_rewards().reshape(lowest.shape)
        return np.where(lowest < 0, most, value)

    def _lowest_rewards(self) -> FloatArray:
        tables = self.state.tables
        if "lowest_reward" in tables:
            return tables["lowest_reward"]
        offset = np.nextafter(tables["lowest_offset"], np.float32(math.inf))  # rounded when it was kept
        return 0.5 * sum(self._reward_range) + offset.astype(np.float64)

    def _dual_variables(
        self, least: FloatArray, most: FloatArray, weight: FloatArray, planned: FloatArray
    ) -> FloatArray:
        """The learned eta, where no sample can make up for all others: f*(y) and f*'(y) stay below sqrt(samples)."""
        eta = self.state.eta(slice(None)).reshape(weight.shape)
        eta = np.clip(np.where(np.isnan(eta), least, eta), least, most)
        root, k = np.sqrt(np.maximum(planned, 1.0)), self._power
        largest = np.minimum(root, (1.0 + k * root) ** (1.0 / k)) if k > 0.0 else root
        slope = np.empty(largest.size)
        self._level.price.slope(np.ravel(largest), slope)
        return np.minimum(eta, least + weight * slope.reshape(weight.shape))

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
        state_lower = np.where(frozen.is_lower, state_lower, v_lower)
        state_upper = np.where(frozen.is_upper, state_upper, v_upper)
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
        most = self._outcomes(frozen.v_lower)[1]
        at = lambda table: np.take_along_axis(table.reshape(frozen.eta.shape), frozen.policy, axis=1)  # noqa: E731
        eta, weight, centre, count = (at(each) for each in (frozen.eta, frozen.weight, frozen.centre, self._count))
        ceiling = frozen.least + weight
        low, high = (self._dual(eta, weight, ceiling, x) for x in (frozen.least, most))
        sums = self.sums["lower"].reshape(*eta.shape, 2)
        found = means(count, centre, sums, earned + low, most_earned + high).lower(self._log_odds[0])
        if level.is_constrained:
            radius = at(np.broadcast_to(level.numbers, frozen.eta.shape))
            found = found - np.where(weight > 0.0, weight * np.where(np.isinf(radius), 0.0, radius), 0.0)
        return np.maximum(found, earned + frozen.least)

    @property
    def _count(self) -> npt.NDArray[np.uint32]:
        return self.sums["count"].reshape(self.frozen.eta.shape)

    def _dual(self, eta: FloatArray, weight: FloatArray, ceiling: FloatArray, x: FloatArray) -> FloatArray:
        """J at one outcome."""
        x = np.broadcast_to(x, eta.shape)
        if not self._level.is_robust:
            return x
        cut = np.minimum(x, ceiling)
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
        trivial = earned + frozen.most
        return np.where(np.isnan(found), trivial, np.minimum(found, trivial))

    def _upper_price(self, means: type[Means]) -> FloatArray:
        """E J, and where t = f*' has another mean than 1, what t/E t costs beyond that: a term of second order.

        With a = E t and s = 1/a, the value of t/a is at most E J + (s-1) w E t (f'(st) - f'(t)), because s -> the value
        of s t is convex and x + w f'(t) = eta wherever t > 0. For Cressie and Read's divergences the expectation is
        E t^k (s^(k-1) - 1)/(k-1).
        """
        frozen, (earned, most_earned) = self.frozen, self._earned
        eta, weight, odds = frozen.eta, frozen.weight, self._log_odds[1]
        least, most = self._outcomes(frozen.v_upper)
        low, high = (self._dual(eta, weight, eta, x) for x in (least, most))
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
        eta, weight, centre = frozen.eta, frozen.weight, frozen.centre - typical
        least, most = self._outcomes(frozen.v_upper)
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

    def save(self) -> Tables:
        return {**self.state.save(), **{_PREFIX + name: table for name, table in self.sums.items()}}

    def load(self, saved: Tables) -> None:
        own = {name: saved.pop(_PREFIX + name, None) for name in self.sums}
        self.state.load(saved)
        for name, table in self.sums.items():
            given = own[name]
            _checks.must(
                given is not None and given.dtype == table.dtype and given.shape == table.shape,
                f"{_PREFIX + name} must be {table.dtype} of shape {table.shape}",
            )
            _checks.must(bool(np.isfinite(given).all()), f"{_PREFIX + name} must be finite")
            table[...] = given


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
        return CertifiedState(
            self.learner.initial_state(source, replications, learning),
            self.ambiguity,
            shape,
            generative=self.generative,
            inside=rewards_are_inside(self.learner, source),
            steps=(learning, steps - learning),
            rounds=self.samples_per_step(shape) // shape.n_pairs if self.generative else 1,
            confidence=self.confidence,
        )


register(Certified)
