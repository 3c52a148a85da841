"""A user's own divergence, given by its conjugate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.divergences.base import FDivergence, FloatArray

_ROUNDING = 1e-9


class Divergence(FDivergence):
    """An f-divergence from its conjugate f* and f*', plain Python functions of one number.

    Both are compiled on first use, so they may use only arithmetic, `math` and numbers. Where f* has a kink, f*' may
    return any slope between the two sides. Assumption 2.1 of the paper is checked: sup over s of s - f*(s) is f(1),
    which must be 0, and f*' must be non-negative and non-decreasing.

    Parameters
    ----------
    name : str
    conjugate, conjugate_derivative : callable, float -> float
    slope_at_infinity : float
        f'(inf); f* is infinite beyond it.

    >>> import math
    >>> mine = Divergence("my KL", lambda s: math.exp(s - 1), lambda s: math.exp(s - 1))
    >>> round(mine.slope_at_one, 12)
    1.0
    """

    is_built_in = False

    def __init__(
        self,
        name: str,
        conjugate: Callable[[float], float],
        conjugate_derivative: Callable[[float], float],
        *,
        slope_at_infinity: float = math.inf,
    ) -> None:
        self._name = name
        self._conjugate = conjugate
        self._derivative = conjugate_derivative
        self._edge = float(slope_at_infinity)
        self._slope_at_one = _slope_at_one(self)
        _check_assumption(self)

    @property
    def name(self) -> str:
        return self._name

    @property
    def functions(self) -> tuple[Callable[[float], float], Callable[[float], float]]:
        """f* and f*' as they were given."""
        return self._conjugate, self._derivative

    @property
    def core(self) -> Any:
        raise NotImplementedError

    @property
    def slope_at_one(self) -> float:
        return self._slope_at_one

    @property
    def curvature_at_one(self) -> float:
        """1/f*''(f'(1)), by differences of f*'."""
        reach = 1e-5 * max(1.0, abs(self._slope_at_one))
        below, above = (_call(self._derivative, self._slope_at_one + side * reach) for side in (-1.0, 1.0))
        return 2.0 * reach / (above - below) if above > below else math.inf

    @property
    def slope_at_infinity(self) -> float:
        return self._edge

    @property
    def value_at_zero(self) -> float:
        """f(0) = -f*(-inf), infinite if f* is still falling far out."""
        far, farther = (_call(self._conjugate, s) for s in (-1e150, -1e300))
        return math.inf if not math.isfinite(farther) or farther < far - 1.0 else -farther

    def f(self, t: npt.ArrayLike) -> FloatArray:
        """f(t) = sup over s of s t - f*(s), by bisection on f*'(s) = t."""
        return _elementwise(self._generator, t)

    def conjugate(self, s: npt.ArrayLike) -> FloatArray:
        return _elementwise(lambda one: _call(self._conjugate, one) if one <= self._edge else math.inf, s)

    def conjugate_derivative(self, s: npt.ArrayLike) -> FloatArray:
        return _elementwise(lambda one: _call(self._derivative, one) if one <= self._edge else math.inf, s)

    def _generator(self, t: float) -> float:
        if t < 0.0:
            return math.inf
        if t == 0.0:
            return self.value_at_zero
        s = _where_derivative_is(self, t)
        return s * t - _call(self._conjugate, s)

    def _identity(self) -> tuple[Any, ...]:
        return self._name, self._conjugate, self._derivative, self._edge

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Divergence) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, self._identity()

    def __repr__(self) -> str:
        return f"Divergence({self._name!r})"


def _rebuild(name: str, conjugate: Any, derivative: Any, edge: float) -> Divergence:
    return Divergence(name, conjugate, derivative, slope_at_infinity=edge)


def _elementwise(function: Callable[[float], float], argument: npt.ArrayLike) -> FloatArray:
    """Apply a function of a number to an array of any shape."""
    values = np.asarray(argument, dtype=np.float64)
    flat = np.fromiter((function(float(value)) for value in values.ravel()), np.float64, values.size)
    return flat.reshape(values.shape)


def _call(function: Callable[[float], float], s: float) -> float:
    """The function's value, NaN or infinite where plain Python would raise."""
    try:
        return float(function(s))
    except OverflowError:
        return math.inf
    except (ValueError, ZeroDivisionError):
        return math.nan


def _where_derivative_is(divergence: Divergence, t: float) -> float:
    """An s with f*'(s-) <= t <= f*'(s+), by bisection; the edge of the domain if f*' stays below t."""
    edge = divergence.slope_at_infinity
    high = min(1.0, edge - 1e-15 * max(1.0, abs(edge))) if edge < math.inf else 1.0
    limit = high if edge < math.inf else 1e6
    while high < limit and _call(divergence._derivative, high) < t:
        high = 2.0 * high
    low = high - 1.0
    while _call(divergence._derivative, low) > t and low > -1e12:
        low = high - 2.0 * (high - low)
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        value = _call(divergence._derivative, middle)
        low, high = (middle, high) if value < t else (low, middle)
    return high


def _slope_at_one(divergence: Divergence) -> float:
    """f'(1): where f*' = 1; where that is an interval, as for total variation, its middle."""
    just_below = _where_derivative_is(divergence, 1.0 - 1e-12)
    just_above = _where_derivative_is(divergence, 1.0 + 1e-12)
    middle = 0.5 * (just_below + just_above)
    # A smooth f* gives two points 2e-12 apart: then the direct root is the more exact answer.
    return middle if just_above - just_below > 1e-6 else _where_derivative_is(divergence, 1.0)


def _check_assumption(divergence: Divergence) -> None:
    """Assumption 2.1 on samples around f'(1), each violation in one sentence."""
    at = divergence.slope_at_one
    name = f"divergence {divergence.name!r}"
    reach = 1e-6 * max(1.0, abs(at))
    below, above = (
        _call(divergence._derivative, s) for s in (at - reach, min(at + reach, divergence.slope_at_infinity))
    )
    _checks.must(
        abs(at) < 1e6 and below <= 1.0 + _ROUNDING and above >= 1.0 - _ROUNDING,
        f"{name} must have an s with f*'(s) = 1, which is f'(1) (Assumption 2.1): "
        f"f*' goes from {below:.6g} to {above:.6g} around s = {round(at, 9):.6g}",
    )
    top = at - _call(divergence._conjugate, at)
    _checks.must(
        abs(top) <= _ROUNDING * max(1.0, abs(at)),
        f"{name} must have f(1) = sup over s of s - f*(s) = 0 (Assumption 2.1): got {top:.6g} "
        f"at s = {round(at, 9):.6g}; "
        f"add that number to f*",
    )
    around = np.concatenate([-np.geomspace(1e2, 1e-4, 60), np.geomspace(1e-4, 1e2, 60)]) + at
    samples = around[around < divergence.slope_at_infinity]
    slopes = divergence.conjugate_derivative(samples)
    known = np.isfinite(slopes)
    samples, slopes = samples[known], slopes[known]
    negative = np.flatnonzero(slopes < -_ROUNDING)
    if negative.size:
        s, value = samples[negative[0]], slopes[negative[0]]
        _checks.fail(f"{name} must have f*' >= 0 because f is infinite below 0: got f*'({s:.6g}) = {value:.6g}")
    falling = np.flatnonzero(np.diff(slopes) < -_ROUNDING * (1.0 + np.abs(slopes[:-1])))
    if falling.size:
        i = falling[0]
        _checks.fail(
            f"{name} must have a non-decreasing f*', or f* is not convex (Assumption 2.1): "
            f"got f*'({samples[i]:.6g}) = {slopes[i]:.6g} > f*'({samples[i + 1]:.6g}) = {slopes[i + 1]:.6g}"
        )
    _check_derivative(divergence, name, samples, slopes)


def _check_derivative(divergence: Divergence, name: str, samples: FloatArray, slopes: FloatArray) -> None:
    """f*' must be the slope of f*: each chord's slope lies between the derivatives at its ends."""
    values = divergence.conjugate(samples)
    with np.errstate(invalid="ignore", over="ignore"):
        chords = np.diff(values) / np.diff(samples)
        slack = 1e-6 * (1.0 + np.abs(slopes[:-1]) + np.abs(slopes[1:]))
        wrong = np.flatnonzero((chords < slopes[:-1] - slack) | (chords > slopes[1:] + slack))
    if wrong.size:
        i = wrong[0]
        _checks.fail(
            f"{name} must have conjugate_derivative equal to the slope of conjugate: between s = {samples[i]:.6g} and "
            f"{samples[i + 1]:.6g} the conjugate rises by {chords[i]:.6g} per unit, but the derivative goes from "
            f"{slopes[i]:.6g} to {slopes[i + 1]:.6g}"
        )
