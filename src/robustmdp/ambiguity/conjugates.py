"""Kernels of a divergence that is known only by f* and f*': its penalty and its ball.

Certified bounds are independent of how well the search converged. Below: dual values. Above: every s with t = f*'(s)
makes a plane above the dual function,
    dual(eta, w) <= E t rise + eta (1 - E t) + w (E f(t) - radius),    f(t) = s t - f*(s),
and so does every mixture of such planes. Both are widened by the rounding of f*, f*' and of their arguments.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity import _conjugate_rows as search
from robustmdp.ambiguity._bracketing import take
from robustmdp.ambiguity._conjugate_rows import ConjugateRows, Point, Scaled, Start, Tilt, blend
from robustmdp.ambiguity.rowwise import EPS, Responses, Rows, RowwiseKernel, sum_rows
from robustmdp.divergences.functions import Conjugate

_SLOPE_ROUNDING = 16.0 * EPS  # relative, of a user's f*'

# Number of transitions of a model from which functions of one number are compiled: Numba needs about 1.5 s for its
# import and two functions, and then evaluates them ten times as fast. Functions of arrays gain nothing.
WORTH_COMPILING = 20_000


class Part(NamedTuple):
    """Rows whose level leaves nature some room but not all, in units of their spread, and their places in the block."""

    solver: ConjugateRows
    rows: Scaled
    level: FloatArray  # in units of the spread where it is a price
    memory: FloatArray
    terms: FloatArray  # number of roundings in a sum over the row
    at: IntArray


class Found(NamedTuple):
    """Nature's answer as a mixture, the better dual value and its multipliers, what to remember."""

    tilts: tuple[Tilt, ...]
    shares: tuple[FloatArray, ...]  # of the tilts; what is missing to 1 is the model itself
    value: FloatArray
    height: FloatArray  # (eta - min x)/weight
    weight: FloatArray
    memory: FloatArray


class Plane(NamedTuple):
    """Moments of one answer t of nature's, each bounded from above, (count,)."""

    excess: FloatArray  # E(f*(s) - s)
    lack: FloatArray  # 1 - E t
    surplus: FloatArray  # E t - 1
    cost: FloatArray  # E f(t)
    mean: FloatArray  # E t rise


class _ConjugateKernel(RowwiseKernel):
    """What the penalty and the ball have in common."""

    is_priced: ClassVar[bool]

    def __init__(self, conjugate: Conjugate) -> None:
        self._conjugate = conjugate
        self._solver = ConjugateRows(conjugate)

    def is_nominal(self, level: FloatArray) -> BoolArray:
        """Whether the level leaves nature no room."""
        return np.isinf(level) if self.is_priced else np.asarray(level == 0.0)

    def is_free(self, level: FloatArray) -> BoolArray:
        """Whether nature may do anything."""
        return np.asarray(level == 0.0) if self.is_priced else np.isinf(level)

    @abstractmethod
    def find(self, part: Part, tolerance: float) -> Found:
        """Solve rows."""

    @abstractmethod
    def bound(self, part: Part, found: Found) -> tuple[FloatArray, FloatArray]:
        """Certified bounds, in units of the spread from the minimum on."""

    @np.errstate(all="ignore")
    def solve_rows(self, rows: Rows, model: Any) -> tuple[FloatArray, FloatArray]:
        scaled, lowest, spread = scale_rows(rows)
        value = np.where(self.is_nominal(rows.level), scaled.mean, 0.0)
        memory = np.full_like(rows.memory, np.nan)
        if (part := self._with_room(rows, scaled, spread, model)) is not None:
            found = self.find(part, search.FAST)
            value[part.at], memory[part.at] = found.value, found.memory
        return rows.reward + (lowest + spread * value), memory

    @np.errstate(all="ignore")
    def bound_rows(self, rows: Rows, model: Any) -> tuple[FloatArray, FloatArray]:
        scaled, lowest, spread = scale_rows(rows)
        nominal, rounding = self.is_nominal(rows.level), count_terms(rows) * EPS
        lower = np.where(nominal, scaled.mean - rounding, 0.0)
        upper = np.where(nominal, scaled.mean + rounding, 0.0)
        if (part := self._with_room(rows, scaled, spread, model)) is not None:
            low, high = self.bound(part, self.find(part, search.EXACT))
            # The minimum and the mean are bounds as well.
            lower[part.at] = np.fmax(low, 0.0)
            upper[part.at] = np.fmin(high, (scaled.mean + rounding)[part.at])
        return rows.reward + (lowest + spread * lower), rows.reward + (lowest + spread * upper)

    @np.errstate(all="ignore")
    def respond_rows(self, rows: Rows, model: Any) -> Responses:
        scaled, lowest, spread = scale_rows(rows)
        nominal, free = self.is_nominal(rows.level), self.is_free(rows.level) & (spread > 0.0)
        at_bottom = np.where(scaled.rise == 0.0, rows.p / scaled.lowest_mass, 0.0)
        distribution = np.where(free, at_bottom, rows.p)
        value = np.where(nominal, scaled.mean, 0.0)
        eta, primal, penalty, weight = value.copy(), value.copy(), np.zeros_like(value), np.where(nominal, np.inf, 0.0)
        if (part := self._with_room(rows, scaled, spread, model)) is not None:
            found = self.find(part, search.EXACT)
            answer, cost = mix_answer(part, found, at_bottom[:, part.at])
            distribution[:, part.at] = answer
            value[part.at], penalty[part.at] = found.value, part.level * cost if self.is_priced else 0.0
            primal[part.at] = sum_rows(answer * part.rows.rise) + penalty[part.at]
            eta[part.at], weight[part.at] = found.height * found.weight, spread[part.at] * found.weight
        return Responses(
            distribution,
            rows.reward + (lowest + spread * value),
            spread * (primal - value),
            spread * penalty,
            lowest + spread * eta,
            weight,
        )

    def _with_room(self, rows: Rows, scaled: Scaled, spread: FloatArray, model: Any) -> Part | None:
        at = np.flatnonzero(~self.is_nominal(rows.level) & ~self.is_free(rows.level) & (spread > 0.0))
        if not at.size:
            return None
        level = rows.level[at]
        if self.is_priced:
            level = np.clip(level / spread[at], self._solver.lightest, self._solver.heaviest)
        return Part(self.choose_solver(model), take(scaled, at), level, rows.memory[at], count_terms(rows)[at], at)

    def choose_solver(self, model: Any) -> ConjugateRows:
        """Machine code where it pays; that depends on the model alone, so that a repeated solve gives equal bits."""
        is_small = model is None or model.indices.size < WORTH_COMPILING
        return self._solver if self._conjugate.takes_arrays or is_small else self._compiled

    @cached_property
    def _compiled(self) -> ConjugateRows:
        compiled = self._conjugate.compiled
        return self._solver if compiled is None else ConjugateRows(compiled)


class PenalizedRows(_ConjugateKernel):
    """inf over P of E_P x + w D_f(P || p)"""

    memory_per_row = 2
    is_priced = True

    def find(self, part: Part, tolerance: float) -> Found:
        solver, rows, level = part.solver, part.rows, part.level
        height, slope = part.memory.T
        tilt = solver.find_shift(rows, 1.0 / level, Start(height, slope), tolerance)
        best = tilt.best
        value = np.clip(rows.mean - level * best.excess, 0.0, rows.mean)
        height = solver.height(tilt.at_edge, best.shift)
        return Found((tilt,), (np.ones_like(level),), value, height, level, np.stack([height, tilt.slope], axis=1))

    def bound(self, part: Part, found: Found) -> tuple[FloatArray, FloatArray]:
        level, (tilt,) = part.level, found.tilts
        plane = certify_answer(part, tilt)
        # eta lies between min x and max x, up to what is unknown of f'(1).
        doubt = level * part.solver.conjugate.doubt
        lower = part.rows.mean * (1.0 - part.terms * EPS) - level * plane.excess
        upper = plane.mean + level * plane.cost + plane.lack * (1.0 + doubt) + plane.surplus * doubt
        lower = np.where(level <= part.solver.lightest, 0.0, lower)
        return lower, np.where(level >= part.solver.heaviest, np.inf, upper * (1.0 + 8.0 * EPS))


class ConstrainedRows(_ConjugateKernel):
    """inf of E_P x over D_f(P || p) <= radius"""

    memory_per_row = 4
    is_priced = False

    def find(self, part: Part, tolerance: float) -> Found:
        solver, rows, radius = part.solver, part.rows, part.level
        height, slope, log_weight, rate = part.memory.T
        ball = solver.find_weight(rows, radius, Start(height, slope), log_weight, rate, tolerance)
        tilt = ball.best(radius)
        weight, best = 1.0 / tilt.theta, tilt.best
        dual = rows.mean - weight * (best.excess + radius)
        height = solver.height(tilt.at_edge, best.shift)
        memory = np.stack([height, tilt.slope, np.log(weight), ball.rate], axis=1)
        # An answer outside the ball is drawn back to the model: D is convex.
        is_alone = np.isinf(ball.cost_high)
        share_low = np.where(is_alone, np.minimum(radius / ball.cost_low, 1.0), ball.share)
        share_high = np.where(is_alone, 0.0, 1.0 - ball.share)
        # At weight 0 the dual is min x.
        weight = np.where(dual > 0.0, weight, 0.0)
        value = np.clip(dual, 0.0, rows.mean)
        return Found((ball.low, ball.high), (share_low, share_high), value, height, weight, memory)

    def bound(self, part: Part, found: Found) -> tuple[FloatArray, FloatArray]:
        radius, rounding = part.level, part.terms * EPS
        mean = part.rows.mean * (1.0 + rounding)
        low, high = (certify_answer(part, tilt) for tilt in found.tilts)
        lower = np.zeros_like(radius)
        for tilt, plane in zip(found.tilts, (low, high), strict=True):
            dual = part.rows.mean * (1.0 - rounding) - (plane.excess + radius * (1.0 + 4.0 * EPS)) / tilt.theta
            lower = np.fmax(lower, dual)
        # Weights beyond E rise/radius are not optimal.
        doubt = part.solver.conjugate.doubt * np.maximum(found.weight, mean / radius)
        share = np.nan_to_num(np.clip((radius - high.cost) / (low.cost - high.cost), 0.0, 1.0))
        upper = mean
        for part_low in (np.zeros_like(radius), np.ones_like(radius), share):
            plane = Plane(*(blend(part_low, a, b) for a, b in zip(low, high, strict=True)))
            value = plane.mean + plane.lack * (1.0 + doubt) + plane.surplus * doubt
            inside = np.minimum(1.0, radius / np.maximum(plane.cost, 1e-320)) * (1.0 - 8.0 * EPS)
            upper = np.fmin(upper, inside * value + (1.0 - inside) * mean)
        return lower, upper * (1.0 + 8.0 * EPS)


def count_terms(rows: Rows) -> FloatArray:
    """Sums of n terms, and probabilities whose sum is 1 to n roundings."""
    return 4.0 * rows.length.astype(np.float64) + 64.0


def scale_rows(rows: Rows) -> tuple[Scaled, FloatArray, FloatArray]:
    """Rows in units of their spread, their minima and their spreads."""
    lowest = rows.x.min(axis=0)
    spread = rows.x.max(axis=0) - lowest
    rise = (rows.x - lowest) / np.where(spread > 0.0, spread, 1.0)
    return Scaled(rows.p, rise, sum_rows(rows.p * rise)), lowest, spread


def mix_answer(part: Part, found: Found, at_bottom: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nature's answer, (longest, count), and its divergence; `at_bottom` is p restricted to the minimisers."""
    total, cost = np.zeros_like(part.rows.p), np.zeros_like(part.level)
    left = np.ones_like(part.level)
    for tilt, share in zip(found.tilts, found.shares, strict=True):
        for point, of_tilt in ((tilt.low, tilt.share), (tilt.high, 1.0 - tilt.share)):
            factor = share * of_tilt
            if (factor > 0.0).any():
                slopes = part.solver.conjugate.slopes(_arguments(part, tilt, point))
                total += np.where(factor > 0.0, factor * (part.rows.p * slopes), 0.0)
        total += at_bottom * (share * tilt.rest)
        cost += np.where(share > 0.0, share * part.solver.cost(tilt), 0.0)
        left = left - share
    total += np.maximum(left, 0.0) * part.rows.p
    return total / sum_rows(total), np.maximum(cost, 0.0)


def _shift(tilt: Tilt, point: Point) -> FloatArray:
    return np.where(np.isfinite(point.miss), point.shift, tilt.best.shift)


def _arguments(part: Part, tilt: Tilt, point: Point) -> FloatArray:
    """s, (longest, count)."""
    return part.solver.anchor(tilt.at_edge) - (part.rows.rise * tilt.theta + _shift(tilt, point))


def _certify(part: Part, tilt: Tilt, point: Point) -> Plane:
    """The moments at one point, without rounding.

    A computed f*'(s) is taken to be the slope of f* somewhere within `blur` of s, up to a relative rounding. f* - s at
    the arguments that rounding has moved to s differs from that at s by at most blur * |f*' - 1|.
    """
    conjugate, p = part.solver.conjugate, part.rows.p
    s, anchor, rise = _arguments(part, tilt, point), part.solver.anchor(tilt.at_edge), part.rows.rise * tilt.theta
    blur = 4.0 * EPS * (np.abs(s) + np.abs(anchor) + rise + np.abs(_shift(tilt, point)))
    top = np.nextafter(conjugate.slope_at_infinity, -np.inf)
    value, t = conjugate.values(s), conjugate.slopes(s)
    steepest, flattest = conjugate.slopes(np.minimum(s + blur, top)), conjugate.slopes(s - blur)
    error, off = conjugate.value_error(s, value, steepest), _SLOPE_ROUNDING * t
    y = s - conjugate.slope_at_one
    growth = np.maximum(np.abs(steepest - 1.0), np.abs(flattest - 1.0)) + _SLOPE_ROUNDING * (1.0 + steepest)
    # 0 <= f*(s) - s <= y (f*'(s) - 1), which is the better bound where the plain formula cancels; likewise for f(t).
    excess = np.fmin(value - s + blur * growth + error, (np.abs(y) + blur) * growth)
    cost = y * t - (value - conjugate.slope_at_one) + blur * (steepest - flattest) + error
    cost += (off + 4.0 * EPS * t) * np.abs(y) + 4.0 * EPS * abs(conjugate.slope_at_one)
    cost = np.fmin(cost, (np.abs(y) + blur) * (np.abs(t - 1.0) + off) * (1.0 + 4.0 * EPS))
    widened = 1.0 + part.terms * EPS
    miss = sum_rows(p * (t - 1.0))
    unsure = (_SLOPE_ROUNDING + part.terms * EPS) * (2.0 + np.abs(miss))
    return Plane(
        sum_rows(p * np.maximum(excess, 0.0)) * widened,
        unsure - miss,
        unsure + miss,
        sum_rows(p * np.maximum(cost, 0.0)) * widened,
        sum_rows(p * t * part.rows.rise) * (widened + _SLOPE_ROUNDING),
    )


def certify_answer(part: Part, tilt: Tilt) -> Plane:
    """The plane of nature's answer at one weight."""
    low, high = (_certify(part, tilt, point) for point in (tilt.low, tilt.high))
    mixed = Plane(*(blend(tilt.share, a, b) for a, b in zip(low, high, strict=True)))
    lack = np.maximum(mixed.lack, 0.0)
    # What is left over at the edge of the domain goes to the minimisers: eta <= min x + w f'(inf).
    has_rest = tilt.rest > 0.0
    edge = part.solver.edge * (1.0 + 4.0 * EPS) if part.solver.edge < math.inf else 0.0
    return Plane(
        np.fmin(low.excess, high.excess),  # each dual value is a bound
        np.where(has_rest, 0.0, lack),
        np.maximum(mixed.surplus, 0.0),
        mixed.cost + np.where(has_rest, lack * edge, 0.0),
        mixed.mean,
    )
