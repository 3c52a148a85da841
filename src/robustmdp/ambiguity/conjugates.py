"""Kernels of a divergence that is known only by f* and f*': its penalty and its ball.

Certified bounds are independent of how well the search converged. Below: dual values. Above: every s with t = f*'(s)
makes a plane above the dual function,
    dual(eta, w) <= E t rise + eta (1 - E t) + w (E f(t) - radius),    f(t) = s t - f*(s),
and so does every mixture of such planes. Both are widened by the rounding of f*, f*' and of their arguments.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp.ambiguity._bracketing import BoolArray, take
from robustmdp.ambiguity._conjugate_rows import EXACT, FAST, LARGEST_THETA, Ball, ConjugateRows, Point, Scaled, Start, Tilt
from robustmdp.ambiguity.base import FloatArray, RowKernel
from robustmdp.ambiguity.rowwise import EPS, Bounds, Responses, Rows, RowwiseKernel, Values
from robustmdp.divergences import FDivergence
from robustmdp.divergences._functions import Conjugate

_SLOPE_ROUNDING = 16.0 * EPS  # relative, of a user's f*'

# Number of transitions from which compiling pays: Numba takes about a second to import and to compile two functions.
WORTH_COMPILING = 10_000
WORTH_COMPILING_ARRAYS = 200_000


def penalized_kernel(divergence: FDivergence) -> RowKernel:
    """The kernel of the penalty of a divergence."""
    core = divergence.core
    kernel: RowKernel = PenalizedRows(core) if isinstance(core, Conjugate) else core.penalized()
    return kernel


def constrained_kernel(divergence: FDivergence) -> RowKernel:
    """The kernel of the ball of a divergence."""
    core = divergence.core
    kernel: RowKernel = ConstrainedRows(core) if isinstance(core, Conjugate) else core.constrained()
    return kernel


class Plane(NamedTuple):
    """Certified moments at one point, (count,) each: bounds of what they would be without rounding."""

    excess: FloatArray  # E(f*(s) - s), from above
    lack: FloatArray  # 1 - E t, from above
    surplus: FloatArray  # E t - 1, from above
    cost: FloatArray  # E f(t), from above
    mean: FloatArray  # E t rise, from above


class _Found(NamedTuple):
    """Nature's answer as a mixture of points, and the multipliers of the better dual value."""

    tilts: tuple[Tilt, ...]
    shares: tuple[FloatArray, ...]  # of the tilts; what is missing to 1 is the model itself
    value: FloatArray
    height: FloatArray
    weight: FloatArray
    memory: FloatArray


class _ConjugateKernel(RowwiseKernel):
    """What the penalty and the ball have in common."""

    def __init__(self, conjugate: Conjugate) -> None:
        self._conjugate = conjugate
        self._solver = ConjugateRows(conjugate)
        self._compiled: ConjugateRows | None = None

    @abstractmethod
    def _is_nominal(self, level: FloatArray) -> BoolArray:
        """Whether nature has no room at this level."""

    @abstractmethod
    def _is_free(self, level: FloatArray) -> BoolArray:
        """Whether nature may do anything."""

    @abstractmethod
    def _find(self, solver: ConjugateRows, rows: Scaled, level: FloatArray, memory: FloatArray, tolerance: float) -> _Found:
        """Solve rows whose level leaves nature some room; levels in units of the spread."""

    @abstractmethod
    def _bound(self, solver: ConjugateRows, rows: Scaled, level: FloatArray, found: _Found, terms: FloatArray) -> Bounds:
        """Certified bounds, in units of the spread; `terms` counts roundings of sums."""

    @abstractmethod
    def _scale_level(self, level: FloatArray, spread: FloatArray) -> FloatArray:
        """The level in units of the spread."""

    @abstractmethod
    def _payment(self, level: FloatArray, cost: FloatArray) -> FloatArray:
        """What nature pays for a divergence."""

    @np.errstate(all="ignore")
    def solve_rows(self, rows: Rows, model: Any) -> Values:
        scaled, lowest, spread = _scale(rows)
        some = self._with_room(rows.level, spread)
        value = np.where(self._is_nominal(rows.level), scaled.mean, 0.0)
        memory = np.full_like(rows.memory, np.nan)
        if some.size:
            level = self._scale_level(rows.level[some], spread[some])
            found = self._find(self._choose(model), take(scaled, some), level, rows.memory[some], FAST)
            value[some], memory[some] = found.value, found.memory
        return Values(rows.reward + (lowest + spread * value), memory)

    @np.errstate(all="ignore")
    def bound_rows(self, rows: Rows, model: Any) -> Bounds:
        scaled, lowest, spread = _scale(rows)
        some = self._with_room(rows.level, spread)
        terms = 4.0 * rows.length + 64.0
        nominal = self._is_nominal(rows.level)
        lower = np.where(nominal, scaled.mean - terms * EPS, 0.0)
        upper = np.where(nominal, scaled.mean + terms * EPS, 0.0)
        if some.size:
            solver, part = self._choose(model), take(scaled, some)
            level = self._scale_level(rows.level[some], spread[some])
            found = self._find(solver, part, level, rows.memory[some], EXACT)
            bounds = self._bound(solver, part, level, found, terms[some])
            lower[some] = np.maximum(bounds.lower, 0.0)
            upper[some] = np.fmin(bounds.upper, part.mean + terms[some] * EPS)
        return Bounds(rows.reward + (lowest + spread * lower), rows.reward + (lowest + spread * upper))

    @np.errstate(all="ignore")
    def respond_rows(self, rows: Rows, model: Any) -> Responses:
        scaled, lowest, spread = _scale(rows)
        some = self._with_room(rows.level, spread)
        nominal, free = self._is_nominal(rows.level), self._is_free(rows.level) & (spread > 0.0)
        lowest_mass = (rows.p * (scaled.rise == 0.0)).sum(axis=0)
        distribution = np.where(free & (scaled.rise > 0.0), 0.0, np.where(free, rows.p / lowest_mass, rows.p))
        value = np.where(nominal, scaled.mean, 0.0)
        eta, primal, penalty = value.copy(), value.copy(), np.zeros_like(value)
        weight = np.where(nominal, np.inf, 0.0)
        if some.size:
            solver, part = self._choose(model), take(scaled, some)
            level = self._scale_level(rows.level[some], spread[some])
            found = self._find(solver, part, level, rows.memory[some], EXACT)
            answer, cost = _mix(solver, part, found, lowest_mass[some])
            distribution[:, some] = answer
            paid = self._payment(level, cost)
            penalty[some], value[some] = paid, found.value
            primal[some] = (answer * part.rise).sum(axis=0) + paid
            eta[some], weight[some] = found.height * found.weight, spread[some] * found.weight
        return Responses(
            distribution,
            rows.reward + (lowest + spread * value),
            spread * (primal - value),
            spread * penalty,
            lowest + spread * eta,
            weight,
        )

    def _with_room(self, level: FloatArray, spread: FloatArray) -> npt.NDArray[np.int64]:
        return np.flatnonzero(~self._is_nominal(level) & ~self._is_free(level) & (spread > 0.0))

    def _choose(self, model: Any) -> ConjugateRows:
        """Machine code for models so large that compiling pays; the choice depends on the model alone."""
        conjugate = self._conjugate
        worth = WORTH_COMPILING_ARRAYS if conjugate.takes_arrays else WORTH_COMPILING
        if conjugate.addresses is not None or model is None or model.indices.size < worth:
            return self._solver
        if self._compiled is None:
            compiled = conjugate.compiled
            self._compiled = self._solver if compiled is None else ConjugateRows(compiled)
        return self._compiled


class PenalizedRows(_ConjugateKernel):
    """inf over P of E_P x + w D_f(P || p)"""

    memory_per_row = 2

    def _is_nominal(self, level: FloatArray) -> BoolArray:
        return np.isinf(level)

    def _is_free(self, level: FloatArray) -> BoolArray:
        return level == 0.0

    def _scale_level(self, level: FloatArray, spread: FloatArray) -> FloatArray:
        # The worst case rises with the weight, so that a bound from this side still holds.
        return np.clip(level / spread, 1.0 / LARGEST_THETA, LARGEST_THETA)

    def _payment(self, level: FloatArray, cost: FloatArray) -> FloatArray:
        return level * cost

    def _find(self, solver: ConjugateRows, rows: Scaled, level: FloatArray, memory: FloatArray, tolerance: float) -> _Found:
        nothing = np.full_like(level, np.nan)
        tilt = solver.find_shift(rows, 1.0 / level, Start(*memory.T, nothing, nothing), tolerance)
        point = tilt.nearest
        value = np.clip(rows.mean - level * point.excess, 0.0, rows.mean)
        height = solver.height(tilt.at_edge, point.shift)
        return _Found((tilt,), (np.ones_like(level),), value, height, level, np.stack([height, tilt.slope], axis=1))

    def _bound(self, solver: ConjugateRows, rows: Scaled, level: FloatArray, found: _Found, terms: FloatArray) -> Bounds:
        (tilt,) = found.tilts
        plane = _plane(solver, rows, tilt, terms)
        # eta lies between min x and max x, up to what is unknown of f'(1).
        doubt = level * solver.conjugate.doubt
        lower = rows.mean * (1.0 - terms * EPS) - level * plane.excess
        upper = plane.mean + level * plane.cost + plane.lack * (1.0 + doubt) + plane.surplus * doubt
        upper = upper * (1.0 + 8.0 * EPS)
        # A weight that was cut bounds from one side only.
        lower = np.where(level <= 1.0 / LARGEST_THETA, 0.0, lower)
        return Bounds(lower, np.where(level >= LARGEST_THETA, np.inf, upper))


class ConstrainedRows(_ConjugateKernel):
    """inf of E_P x over D_f(P || p) <= radius"""

    memory_per_row = 4

    def _is_nominal(self, level: FloatArray) -> BoolArray:
        return level == 0.0

    def _is_free(self, level: FloatArray) -> BoolArray:
        return np.isinf(level)

    def _scale_level(self, level: FloatArray, spread: FloatArray) -> FloatArray:
        return level

    def _payment(self, level: FloatArray, cost: FloatArray) -> FloatArray:
        return np.zeros_like(level)

    def _find(self, solver: ConjugateRows, rows: Scaled, level: FloatArray, memory: FloatArray, tolerance: float) -> _Found:
        ball = solver.find_weight(rows, level, Start(*memory.T), tolerance)
        tilt = ball.nearest(level)
        point = tilt.nearest
        weight = 1.0 / tilt.theta
        value = np.clip(rows.mean - weight * (point.excess + level), 0.0, rows.mean)
        height = solver.height(tilt.at_edge, point.shift)
        # An answer outside the ball is drawn back to the model: D is convex.
        alone = np.isinf(ball.cost_high)
        share = np.where(alone, np.minimum(level / ball.cost_low, 1.0), ball.share)
        rest = np.where(alone, 0.0, 1.0 - ball.share)
        memory = np.stack([height, tilt.slope, np.log(weight), ball.rate], axis=1)
        return _Found((ball.low, ball.high), (share, rest), value, height, weight, memory)

    def _bound(self, solver: ConjugateRows, rows: Scaled, level: FloatArray, found: _Found, terms: FloatArray) -> Bounds:
        mean = rows.mean * (1.0 + terms * EPS)
        low, high = (_plane(solver, rows, tilt, terms) for tilt in found.tilts)
        lower = np.zeros_like(level)
        for tilt, plane in zip(found.tilts, (low, high), strict=True):
            dual = rows.mean * (1.0 - terms * EPS) - (plane.excess + level * (1.0 + 4.0 * EPS)) / tilt.theta
            lower = np.fmax(lower, dual)
        # Weights beyond E rise/radius are not optimal.
        doubt = solver.conjugate.doubt * np.maximum(found.weight, mean / level)
        share = np.nan_to_num(np.clip((level - high.cost) / (low.cost - high.cost), 0.0, 1.0))
        upper = mean
        for part in (np.zeros_like(level), np.ones_like(level), share):
            mixed = Plane(*(_blend(part, a, b) for a, b in zip(low, high, strict=True)))
            value = mixed.mean + mixed.lack * (1.0 + doubt) + mixed.surplus * doubt
            # D is convex: an answer outside the ball is drawn back to the model.
            inside = np.minimum(1.0, level / np.maximum(mixed.cost, 1e-320)) * (1.0 - 8.0 * EPS)
            upper = np.fmin(upper, inside * value + (1.0 - inside) * mean)
        return Bounds(lower, upper * (1.0 + 8.0 * EPS))


def _blend(share: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    return np.where(share == 0.0, high, np.where(share == 1.0, low, share * low + (1.0 - share) * high))


def _scale(rows: Rows) -> tuple[Scaled, FloatArray, FloatArray]:
    """Rows in units of their spread, their minima and their spreads."""
    lowest = rows.x.min(axis=0)
    spread = rows.x.max(axis=0) - lowest
    rise = (rows.x - lowest) / np.where(spread > 0.0, spread, 1.0)
    return Scaled(rows.p, rise, (rows.p * rise).sum(axis=0)), lowest, spread


def _mix(solver: ConjugateRows, rows: Scaled, found: _Found, lowest_mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nature's answer, (longest, count), and its divergence."""
    total, cost = np.zeros_like(rows.p), np.zeros_like(rows.mean)
    left = np.ones_like(rows.mean)
    for tilt, share in zip(found.tilts, found.shares, strict=True):
        for point, part in ((tilt.low, tilt.share), (tilt.high, 1.0 - tilt.share)):
            if (share * part > 0.0).any():
                total += np.where(share * part > 0.0, share * part * (rows.p * _slopes(solver, rows, tilt, point)), 0.0)
        total += np.where(rows.rise == 0.0, rows.p / lowest_mass * (share * tilt.rest), 0.0)
        cost += np.where(share > 0.0, share * solver.cost(tilt), 0.0)
        left = left - share
    total += np.maximum(left, 0.0) * rows.p
    return total / total.sum(axis=0), np.maximum(cost, 0.0)


def _slopes(solver: ConjugateRows, rows: Scaled, tilt: Tilt, point: Point) -> FloatArray:
    tried = np.isfinite(point.miss)
    shift = np.where(tried, point.shift, tilt.nearest.shift)
    return solver.conjugate.slopes(solver.anchor(tilt.at_edge) - (rows.rise * tilt.theta + shift))


def _certify(solver: ConjugateRows, rows: Scaled, tilt: Tilt, point: Point, terms: FloatArray) -> Plane:
    """The moments at a point, each from the side that keeps bounds valid.

    A computed f*'(s) is taken to be the slope of f* within `blur` of s, up to a relative rounding; f* at the arguments
    without rounding differs from that at s by at most blur * |f*' - 1|, once s is taken off.
    """
    conjugate = solver.conjugate
    anchor, theta = solver.anchor(tilt.at_edge), tilt.theta
    shift = np.where(np.isfinite(point.miss), point.shift, tilt.nearest.shift)
    rise = rows.rise * theta
    s = anchor - (rise + shift)
    blur = 4.0 * EPS * (np.abs(s) + np.abs(anchor) + rise + np.abs(shift))
    top = np.nextafter(conjugate.slope_at_infinity, -np.inf)
    t = conjugate.slopes(s)
    steepest, flattest = conjugate.slopes(np.minimum(s + blur, top)), conjugate.slopes(s - blur)
    value = conjugate.values(s)
    error = conjugate.value_error(s, value, steepest)
    y = s - conjugate.slope_at_one
    growth = np.maximum(np.abs(steepest - 1.0), np.abs(flattest - 1.0)) + _SLOPE_ROUNDING * (1.0 + steepest)
    # 0 <= f*(s) - s <= y (f*' - 1), which is the better bound where the plain formula cancels.
    excess = np.fmin(value - s + blur * growth + error, (np.abs(y) + blur) * growth)
    off = _SLOPE_ROUNDING * t
    cost = y * (t - 1.0) - (value - s) + off * np.abs(y) + blur * (steepest - flattest) + error
    cost += 4.0 * EPS * np.abs(y * (t - 1.0))
    cost = np.fmin(cost, (np.abs(y) + blur) * (np.abs(t - 1.0) + off) * (1.0 + 4.0 * EPS))
    widened = 1.0 + terms * EPS
    miss = (rows.p * (t - 1.0)).sum(axis=0)
    unsure = (_SLOPE_ROUNDING + terms * EPS) * (2.0 + np.abs(miss))
    return Plane(
        (rows.p * np.maximum(excess, 0.0)).sum(axis=0) * widened,
        unsure - miss,
        unsure + miss,
        (rows.p * np.maximum(cost, 0.0)).sum(axis=0) * widened,
        (rows.p * t * rows.rise).sum(axis=0) * (widened + _SLOPE_ROUNDING),
    )


def _plane(solver: ConjugateRows, rows: Scaled, tilt: Tilt, terms: FloatArray) -> Plane:
    """The certified plane of nature's answer at one weight."""
    low, high = (_certify(solver, rows, tilt, point, terms) for point in (tilt.low, tilt.high))
    return _mix_planes(solver, tilt, low, high)


def _mix_planes(solver: ConjugateRows, tilt: Tilt, low: Plane, high: Plane) -> Plane:
    """The plane of nature's answer at one weight."""
    mixed = Plane(*(tilt.mix(a, b) for a, b in zip(low, high, strict=True)))
    nearest = np.where(tilt.low.miss <= -tilt.high.miss, low.excess, high.excess)
    # What is left over at the edge of the domain goes to the minimisers: eta <= min x + w f'(inf).
    rest = tilt.rest > 0.0
    edge = solver.edge if solver.edge < math.inf else 0.0
    return Plane(
        nearest,
        np.where(rest, 0.0, np.maximum(mixed.lack, 0.0)),
        np.maximum(mixed.surplus, 0.0),
        mixed.cost + np.where(rest, np.maximum(mixed.lack, 0.0) * edge * (1.0 + 4.0 * EPS), 0.0),
        mixed.mean,
    )
