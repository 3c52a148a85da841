"""Worst cases of rows for a divergence that is known only by f* and f*', many rows at a time.

Outcomes are measured from the row's minimum in units of its spread: rises in [0, 1], weights in units of the spread,
theta = 1/weight. With s = anchor - (theta * rise + shift) and t = f*'(s), the dual of the penalty is
    E rise - weight * E(f*(s) - s),
concave in the shift with the derivative weight * E(t - 1). The anchor is f'(1), or f'(inf) where the row's minimum
comes close to it. Where f* has a kink, E t jumps over 1 between two neighbouring shifts, and nature's answer is the
mixture of both sides that sums to 1. Likewise E f(t) may jump over the radius between two neighbouring weights.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robustmdp._arrays import BoolArray, FloatArray
from robustmdp.ambiguity._bracketing import Bracketing, choose, put, take
from robustmdp.ambiguity.rowwise import EPS, sum_rows
from robustmdp.divergences.functions import Conjugate

FAST = 1e-12  # of the spread: what a sweep's values may miss
EXACT = 4e-15  # the same for bounds and distributions
_SHIFT_STEPS, _WEIGHT_STEPS = 200, 120
_LONGEST_STEP = math.log(1e4)  # of a weight
_LARGEST_COST = 1e300  # what is no number was too large for one
_LARGEST_LOGARITHM = math.log(1e200)  # of a weight


def blend(share: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """share * low + (1 - share) * high, where what has no share need not be a number."""
    return np.where(share == 0.0, high, np.where(share == 1.0, low, share * low + (1.0 - share) * high))


class Scaled(NamedTuple):
    """Rows in units of their spread."""

    p: FloatArray  # (longest, count)
    rise: FloatArray  # (longest, count), (x - min x)/spread
    mean: FloatArray  # (count,), E rise

    @property
    def lowest_mass(self) -> FloatArray:
        """The mass of all minimisers."""
        return sum_rows(self.p * (self.rise == 0.0))

    @property
    def variance(self) -> FloatArray:
        """Var rise"""
        return sum_rows(self.p * (self.rise - self.mean) ** 2)


class Point(NamedTuple):
    """What one shift gives, (count,) each; `miss` and `excess` are infinite where the shift was not tried."""

    shift: FloatArray
    miss: FloatArray  # E t - 1
    excess: FloatArray  # E(f*(s) - s)
    cost: FloatArray  # E f(t), f'(1) = 0
    mean: FloatArray  # E t rise


def _untried(shift: FloatArray, miss: float) -> Point:
    zero = np.zeros_like(shift)
    return Point(shift, np.full_like(shift, miss), np.full_like(shift, np.inf), zero, zero)


class Tilt(NamedTuple):
    """Both sides of the shift at which E t = 1; `share` is that of `low` in nature's answer."""

    theta: FloatArray
    at_edge: BoolArray  # whether the anchor is f'(inf)
    low: Point  # E t >= 1
    high: Point  # E t <= 1
    share: FloatArray
    slope: FloatArray  # -d(log E t)/d(shift)

    @property
    def best(self) -> Point:
        """The side with the higher dual value."""
        return choose(self.low.excess < self.high.excess, self.low, self.high)

    @property
    def mean(self) -> FloatArray:
        """E t rise of nature's answer."""
        return blend(self.share, self.low.mean, self.high.mean)

    @property
    def rest(self) -> FloatArray:
        """Mass that f*' leaves over at the edge of its domain: it goes to the minimisers, at a price of f'(inf)."""
        return np.where((self.share == 0.0) & self.at_edge, -self.high.miss, 0.0)


class Start(NamedTuple):
    """Where a search begins, from an earlier one; NaN where nothing is known."""

    height: FloatArray  # (eta - min x)/weight
    slope: FloatArray  # -d(log E t)/d(shift)


class Ball(NamedTuple):
    """Both sides of the weight at which E f(t) is the radius; `share` is that of `low` in nature's answer."""

    low: Tilt  # smaller weight, E f(t) >= radius
    high: Tilt  # larger weight, E f(t) <= radius
    cost_low: FloatArray  # infinite where no such weight was tried
    cost_high: FloatArray  # minus infinite where no such weight was tried
    share: FloatArray
    rate: FloatArray

    def best(self, radius: FloatArray) -> Tilt:
        """The side with the higher dual value."""
        low, high = ((tilt.best.excess + radius) / tilt.theta for tilt in (self.low, self.high))
        return choose(np.isinf(self.cost_high) | ((low < high) & np.isfinite(self.cost_low)), self.low, self.high)


class ConjugateRows:
    """The dual problems of many rows, for one pair of functions f* and f*'."""

    def __init__(self, conjugate: Conjugate) -> None:
        self.conjugate = conjugate
        self.edge = conjugate.edge
        # A user's f*' is never asked at the edge itself, where it may divide by zero.
        top = conjugate.slope_at_infinity
        self.least = 1e-15 * max(1.0, abs(top), abs(conjugate.slope_at_one)) if top < math.inf else 0.0
        # The worst case rises with the weight, so that a weight beyond these still bounds from one side. Below, nothing
        # but the minimum is left; above, arguments of f* differ by less than their rounding.
        self.lightest, self.heaviest = 1e-200, 0.1 / (EPS * (1.0 + abs(conjugate.slope_at_one)))
        self._compiled = conjugate.core
        self.curvature = conjugate.curvature or 1.0
        self.noise = 2.0 * EPS * (1.0 + abs(conjugate.slope_at_one))  # of an excess
        # Whether f*' may leave mass over at the edge: then that is looked at first.
        self.is_bounded = top < math.inf and float(conjugate.slopes(np.array([top - self.least]))[0]) < 1e6

    def anchor(self, at_edge: BoolArray) -> FloatArray:
        """What the argument of f* is measured from."""
        return np.where(at_edge, self.conjugate.slope_at_infinity, self.conjugate.slope_at_one)

    def height(self, at_edge: BoolArray, shift: FloatArray) -> FloatArray:
        """(eta - min x)/weight"""
        return np.where(at_edge, self.edge, 0.0) - shift

    def cost(self, tilt: Tilt) -> FloatArray:
        """E f(t) of nature's answer."""
        rest = tilt.rest * self.edge if self.edge < math.inf else 0.0
        return blend(tilt.share, tilt.low.cost, tilt.high.cost) + rest

    def measure(self, rows: Scaled, theta: FloatArray, at_edge: BoolArray, shift: FloatArray) -> Point:
        """The moments at one shift."""
        if self._compiled is not None:
            miss, excess, cost, mean = (np.empty_like(theta) for _ in range(4))
            self._compiled.moments(rows.p, rows.rise, theta, at_edge, shift, miss, excess, cost, mean)
            return Point(shift, miss, excess, cost, mean)
        conjugate = self.conjugate
        s = self.anchor(at_edge) - (rows.rise * theta + shift)
        t = conjugate.slopes(s)
        y, growth, value = s - conjugate.slope_at_one, t - 1.0, conjugate.values(s)
        half, bend = 0.5 * (y * growth), conjugate.bend * (y * y * y)
        near = np.abs(y) <= conjugate.near
        excess = np.where(near, half - bend, value - s)
        # f(t) = s t - f*(s), less its slope at 1
        cost = np.where(near, half + bend, y * t - (value - conjugate.slope_at_one))
        return Point(
            shift,
            sum_rows(rows.p * growth),
            sum_rows(rows.p * excess),
            sum_rows(rows.p * np.fmin(cost, _LARGEST_COST)),
            sum_rows(rows.p * t * rows.rise),
        )

    def find_shift(self, rows: Scaled, theta: FloatArray, start: Start, tolerance: float) -> Tilt:
        """E t = 1 at given weights, to dual values within `tolerance`."""
        at_edge = self.edge < 2.0 * theta
        pad = self.conjugate.doubt + 8.0 * EPS * (1.0 + abs(self.conjugate.slope_at_one))
        low = np.where(at_edge, np.maximum(self.edge - theta - pad, 0.0), -theta * (1.0 + 8.0 * EPS) - pad)
        high = np.where(at_edge, self.edge, 0.0) + pad
        guess = self.height(at_edge, start.height)  # the shift of a height, and the height of a shift
        near_edge = self.least if self.is_bounded else np.maximum(self.edge - rows.mean * theta, 0.01 * self.edge)
        # eta = E x, or what t = 1/mass of the minimisers needs for a small weight.
        cold = np.where(at_edge, near_edge, -np.minimum(rows.mean * theta, -np.log(rows.lowest_mass) / self.curvature))
        x = np.where((low < guess) & (guess < high), guess, np.clip(cold, low, high))
        rate = np.where(start.slope > 0.0, start.slope, self.curvature)
        rate = np.clip(rate, 1e-6 * self.curvature, 1e6 * self.curvature)
        tilt = Tilt(theta, at_edge, _untried(low, np.inf), _untried(high, -np.inf), np.full_like(theta, np.nan), rate)
        x = np.where(at_edge, np.maximum(x, self.least), x)
        return _search_shift(self, rows, tilt, Bracketing(low, high, rate), x, tolerance)

    def find_weight(
        self, rows: Scaled, radius: FloatArray, start: Start, log_weight: FloatArray, rate: FloatArray, tolerance: float
    ) -> Ball:
        """E f(t) = radius, to dual values within `tolerance`; `rate` is -d(log E f(t))/d(log weight), or NaN."""
        theta = np.sqrt(2.0 * radius / (self.curvature * np.maximum(rows.variance, 1e-12)))
        cold = -np.log(np.clip(theta, 1e-200, 1e3))
        z = np.where(np.abs(log_weight) < _LARGEST_LOGARITHM, log_weight, cold)
        rate = np.where((rate > 0.01) & (rate < 100.0), rate, 2.0)
        limit = np.full_like(radius, _LARGEST_LOGARITHM)
        return _search_weight(self, rows, radius, start, Bracketing(-limit, limit, rate, _LONGEST_STEP), z, tolerance)


def _search_shift(
    solver: ConjugateRows, rows: Scaled, tilt: Tilt, bracket: Bracketing, x: FloatArray, tolerance: float
) -> Tilt:
    """E t = 1 in many rows; rows that are done leave the arrays."""
    at = np.arange(len(x))
    found = take(tilt, at)
    resolution = 0.25 * EPS * abs(solver.conjugate.slope_at_one) + 1e-300  # of the arguments of f*
    for _ in range(_SHIFT_STEPS):
        point = solver.measure(rows, tilt.theta, tilt.at_edge, x)
        above = point.miss > 0.0
        low, high = choose(above, point, tilt.low), choose(above, tilt.high, point)
        growth = np.log1p(np.clip(point.miss, EPS - 1.0, None))
        bracket.narrow(x, growth, growth)
        width = bracket.high - bracket.low
        least = np.minimum(low.miss, -high.miss)
        noise = solver.noise + 4.0 * EPS * (low.excess + high.excess)
        gap, cut = meet_tangents(low.miss, -high.miss, width, low.excess - high.excess, noise)
        # Values need one side, distributions both, unless one of them sums to 1.
        has_sides = bracket.is_closed | (tolerance >= FAST) | (least <= tolerance)
        done = ((gap <= tolerance * tilt.theta) & has_sides) | (least <= 4.0 * EPS)
        exhausted = width <= 2.0 * EPS * np.minimum(np.abs(bracket.low), np.abs(bracket.high)) + resolution
        done |= exhausted & (bracket.is_closed | (width <= 0.0))
        done |= tilt.at_edge & (bracket.high <= solver.least)
        if tolerance >= FAST:
            expected = least * np.abs(growth / bracket.rate)
            done |= bracket.is_measured & (expected <= 0.01 * tolerance * tilt.theta)
        tilt = tilt._replace(low=low, high=high, slope=bracket.rate)
        if done.any():
            put(found, at[done], take(tilt, np.flatnonzero(done)))
            if done.all():
                break
            left = np.flatnonzero(~done)
            rows, tilt, at = take(rows, left), take(tilt, left), at[left]
            cut, exhausted = cut[left], exhausted[left]
            bracket.keep(left)
        x = bracket.propose(bracket.low + cut)
        # Nothing is left between one side and a limit: the limit itself is the other side.
        x = np.where(exhausted, np.where(np.isinf(tilt.low.miss), bracket.low, bracket.high), x)
        if solver.is_bounded:  # what lies beyond the edge cannot be found by halving the distance from it
            x = np.where(tilt.at_edge & np.isinf(tilt.low.miss), solver.least, x)
        x = np.where(tilt.at_edge, np.maximum(x, solver.least), x)
    else:
        put(found, at, tilt)
    return found._replace(share=_share(found.low.miss, -found.high.miss, 4.0 * EPS))


def meet_tangents(
    rise: FloatArray, fall: FloatArray, width: FloatArray, gain: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The height of the tangents' meeting point above the higher end of a concave function, and where they meet.

    Between two points that are `width` apart, the function has the slopes `rise` and -`fall`, and its values differ by
    `gain`, known up to `noise`. A kink is found at once; otherwise they meet about the middle.
    """
    cut = (gain + fall * width) / (rise + fall)
    height = rise * cut - np.maximum(gain, 0.0) + noise
    # A slope of its own bounds the function, too, which is all there is while one side is a limit.
    return np.fmin(np.maximum(height, noise), np.minimum(rise, fall) * width), cut


def _share(above: FloatArray, below: FloatArray, negligible: FloatArray | float) -> FloatArray:
    """The share of what is too large by `above`, with which it makes up for what is too small by `below`."""
    share = below / (above + below)
    share = np.where(np.isinf(above), 0.0, np.where(np.isinf(below), 1.0, share))
    return np.where(above <= negligible, 1.0, np.where(below <= negligible, 0.0, share))


def _search_weight(
    solver: ConjugateRows,
    rows: Scaled,
    all_radii: FloatArray,
    start: Start,
    bracket: Bracketing,
    z: FloatArray,
    tolerance: float,
) -> Ball:
    """E f(t) = radius in many rows; rows that are done leave the arrays."""
    radius, at, none = all_radii, np.arange(len(z)), np.full_like(z, np.nan)
    tilt = solver.find_shift(rows, np.exp(-z), start, 0.1 * tolerance)
    ball = Ball(tilt, tilt, np.full_like(z, np.inf), np.full_like(z, -np.inf), none, none)
    found = take(ball, at)
    for _ in range(_WEIGHT_STEPS):
        cost = solver.cost(tilt)
        above = cost > radius
        low, high = choose(above, tilt, ball.low), choose(above, ball.high, tilt)
        cost_low, cost_high = np.where(above, cost, ball.cost_low), np.where(above, ball.cost_high, cost)
        g = np.clip(np.log(np.maximum(cost, 1e-300)) - np.log(radius), -700.0, 700.0)
        bracket.narrow(z, g, np.tanh(0.25 * g))
        ball = Ball(low, high, cost_low, cost_high, ball.share, bracket.rate)
        start = start._replace(slope=tilt.slope)
        gap, cut = _weight_gap(solver, rows, radius, ball)
        done = gap <= tolerance
        done |= bracket.high - bracket.low <= 4.0 * EPS * np.maximum(1.0, np.abs(bracket.low))
        if tolerance >= FAST:
            off = np.minimum(cost_low - radius, radius - cost_high)
            done |= bracket.is_measured & (off * np.exp(z) * np.abs(g / bracket.rate) <= 0.01 * tolerance)
        if done.any():
            put(found, at[done], take(ball, np.flatnonzero(done)))
            if done.all():
                break
            left = np.flatnonzero(~done)
            rows, start, ball, tilt = take(rows, left), take(start, left), take(ball, left), take(tilt, left)
            radius, at, z, cut = radius[left], at[left], z[left], cut[left]
            bracket.keep(left)
        proposal = bracket.propose(np.log(cut))
        # eta stays, or the distance from the edge.
        height = solver.height(tilt.at_edge, tilt.best.shift)
        start = start._replace(height=np.where(tilt.at_edge, height, height * np.exp(z - proposal)))
        z = proposal
        tilt = solver.find_shift(rows, np.exp(-z), start, 0.1 * tolerance)
    else:
        put(found, at, ball)
    share = _share(found.cost_low - all_radii, all_radii - found.cost_high, 4.0 * EPS * all_radii)
    return found._replace(share=share)


def _weight_gap(solver: ConjugateRows, rows: Scaled, radius: FloatArray, ball: Ball) -> tuple[FloatArray, FloatArray]:
    """A bound on what the better of both dual values misses, and the weight at which their tangents meet."""
    light, heavy = 1.0 / ball.low.theta, 1.0 / ball.high.theta
    above, below = ball.cost_low - radius, radius - ball.cost_high
    excess_low, excess_high = ball.low.best.excess + radius, ball.high.best.excess + radius
    gain = light * excess_low - heavy * excess_high
    noise = (light + heavy) * solver.noise + 4.0 * EPS * (light * excess_low + heavy * excess_high)
    closed, cut = meet_tangents(above, below, heavy - light, gain, noise)
    # One side alone: the answer at the larger weight lies in the ball, the other one is drawn back to the model.
    inside = np.minimum(heavy * below, ball.high.mean)
    outside = (1.0 - radius / ball.cost_low) * (rows.mean - ball.low.mean) - light * above
    gap = np.where(np.isinf(above), inside, np.where(np.isinf(below), np.maximum(outside, 0.0), closed))
    return np.minimum(gap, np.where(np.isinf(below), np.inf, inside)), light + cut
