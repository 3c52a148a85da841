"""A user's own divergence, given by its conjugate."""

from __future__ import annotations

import math
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.divergences.base import FDivergence
from robustmdp.divergences.functions import Conjugate, UserFunction

_ROUNDING = 1e-9
_FARTHEST = 1e300
_AROUND = np.concatenate([-np.geomspace(1e2, 1e-4, 60), np.geomspace(1e-4, 1e2, 60)])


class Divergence(FDivergence):
    """An f-divergence from its conjugate f* and f*', functions of a number, of an array, or of both.

    No compiler is needed: rows are solved in blocks, with the functions called on whole arrays where they take them.
    Large models use machine code: where Numba is installed and can compile the functions, or where they are given as
    `scipy.LowLevelCallable` with the signature double(double).

    Where f* has a kink, f*' may return any slope between the two sides. Assumption 2.1 of the paper is checked: sup
    over s of s - f*(s) is f(1), which must be 0, and f*' must be non-negative and non-decreasing. A divergence that is
    flat at 1, so that D = 0 for distributions other than the model, is refused.

    Parameters
    ----------
    name : str
    conjugate, conjugate_derivative : callable, float -> float or array -> array, or LowLevelCallable
    slope_at_infinity : float
        f'(inf); f* is infinite beyond it.

    >>> import math
    >>> mine = Divergence("my KL", lambda s: math.exp(s - 1), lambda s: math.exp(s - 1))
    >>> round(mine.slope_at_one, 12)
    1.0
    """

    is_built_in = False

    def __init__(
        self, name: str, conjugate: Any, conjugate_derivative: Any, *, slope_at_infinity: float = math.inf
    ) -> None:
        self._name = name
        self._edge = float(slope_at_infinity)
        probes = self._inside(_AROUND + (min(self._edge, 1.0) if self._edge < math.inf else 0.0))
        self._conjugate = UserFunction(conjugate, probes)
        self._derivative = UserFunction(conjugate_derivative, probes)
        below, at, above = _where_derivative_is(self, np.array([1.0 - 1e-12, 1.0, 1.0 + 1e-12]))[1].tolist()
        # Where f has a kink at 1, as total variation has, f*' = 1 on an interval: take its middle.
        self._has_kink_at_one = above - below > 1e-6
        self._slope_at_one: float = 0.5 * (below + above) if self._has_kink_at_one else self._rounded(at)
        self._doubt = 0.0 if self._has_kink_at_one else above - below
        _check_assumption(self)

    @property
    def name(self) -> str:
        return self._name

    @cached_property
    def core(self) -> Conjugate:
        """f* and f*' for whole arrays; `ambiguity` has the kernels."""
        steps = np.concatenate([-np.geomspace(1e2, 1e-12, 60), np.geomspace(1e-12, 1e2, 60)])
        samples = np.unique(self._inside(self._slope_at_one + steps))
        return Conjugate(self._conjugate, self._derivative, self._slope_at_one, self._edge, self._doubt, samples)

    @property
    def slope_at_one(self) -> float:
        return self._slope_at_one

    @property
    def curvature_at_one(self) -> float:
        """1/f*''(f'(1)), by differences of f*'."""
        reach = 1e-5 * max(1.0, abs(self._slope_at_one)) ** (1.0 / 3.0)
        below, above = (self._derivative(self._slope_at_one + side * reach) for side in (-1.0, 1.0))
        return 2.0 * reach / (above - below) if above > below else math.inf

    @property
    def slope_at_infinity(self) -> float:
        return self._edge

    @property
    def value_at_zero(self) -> float:
        """f(0) = -f*(-inf), infinite if f* is still falling far out."""
        far, farther = (self._conjugate(s) for s in (-1e150, -_FARTHEST))
        return math.inf if not math.isfinite(farther) or farther < far - 1.0 else 0.0 - farther

    def f(self, t: npt.ArrayLike) -> FloatArray:
        """f(t) = sup over s of s t - f*(s), by bisection on f*'(s) = t."""
        ratios = np.asarray(t, dtype=np.float64)
        flat = ratios.ravel()
        inside = np.where((flat > 0.0) & (flat < math.inf), flat, 1.0)
        s = _where_derivative_is(self, inside)[1]
        with np.errstate(all="ignore"):
            values = s * inside - self._conjugate.of(s)
        # Beyond what f*' ever reaches, f is infinite.
        values = np.where((s >= _FARTHEST) & (self._derivative.of(s) < inside), math.inf, values)
        values = np.where(flat == 0.0, self.value_at_zero, values)
        return np.where((flat < 0.0) | (flat == math.inf), math.inf, values).reshape(ratios.shape)

    def conjugate(self, s: npt.ArrayLike) -> FloatArray:
        return self._up_to_edge(self._conjugate, s)

    def conjugate_derivative(self, s: npt.ArrayLike) -> FloatArray:
        return self._up_to_edge(self._derivative, s)

    def _up_to_edge(self, function: UserFunction, s: npt.ArrayLike) -> FloatArray:
        arguments = np.asarray(s, dtype=np.float64)
        is_inside = arguments <= self._edge
        return np.where(is_inside, function.of(np.where(is_inside, arguments, self._slope_at_one)), math.inf)

    def _rounded(self, s: float) -> float:
        """A number of few digits next to s where f*' = 1 as well, if there is one."""
        short = round(s, 12) + 0.0
        return short if abs(short - s) < 1e-12 and self._derivative(short) == 1.0 else s

    def _inside(self, s: FloatArray) -> FloatArray:
        return s[s < self._edge]

    def _identity(self) -> tuple[Any, ...]:
        return self._name, self._conjugate.identity, self._derivative.identity, self._edge

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Divergence) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __reduce__(self) -> tuple[Any, ...]:
        if self._conjugate.is_low_level or self._derivative.is_low_level:
            raise TypeError(
                f"divergence {self._name!r} must have functions of Python to be pickled: a LowLevelCallable is an "
                "address, which means nothing in another process"
            )
        kind = partial(Divergence, slope_at_infinity=self._edge)
        return kind, (self._name, self._conjugate.given, self._derivative.given)

    def __repr__(self) -> str:
        return f"Divergence({self._name!r})"


def _where_derivative_is(divergence: Divergence, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Neighbours with f*'(first) < t <= f*'(second), by bisection; the edge of the domain if f*' stays below t."""
    slope, edge = divergence._derivative.of, divergence.slope_at_infinity
    top = edge - 1e-15 * max(1.0, abs(edge)) if edge < math.inf else _FARTHEST
    high = np.full(t.shape, min(1.0, top))
    low = high - 1.0
    step = 1.0
    while (short := (high < top) & (slope(high) < t)).any():
        low = np.where(short, high, low)
        high = np.where(short, np.minimum(16.0 * high, top), high)
    while (far := (low > -_FARTHEST) & (slope(low) >= t)).any():
        high = np.where(far, low, high)
        low = np.where(far, np.maximum(low - step, -_FARTHEST), low)
        step *= 16.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if ((middle == low) | (middle == high)).all():
            break
        below = slope(middle) < t
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low, high


def _check_assumption(divergence: Divergence) -> None:
    """Assumption 2.1 on samples around f'(1), each violation in one sentence."""
    at, slope = divergence.slope_at_one, divergence._derivative
    name = f"divergence {divergence.name!r}"
    reach = 1e-6 * max(1.0, abs(at))
    below, above = (slope(s) for s in (at - reach, min(at + reach, divergence.slope_at_infinity)))
    _checks.must(
        abs(at) < 1e6 and below <= 1.0 + _ROUNDING and above >= 1.0 - _ROUNDING,
        f"{name} must have an s with f*'(s) = 1, which is f'(1) (Assumption 2.1): "
        f"f*' goes from {below:.6g} to {above:.6g} around s = {round(at, 9):.6g}",
    )
    top = at - divergence._conjugate(at)
    _checks.must(
        abs(top) <= _ROUNDING * max(1.0, abs(at)),
        f"{name} must have f(1) = sup over s of s - f*(s) = 0 (Assumption 2.1): got {top:.6g} "
        f"at s = {round(at, 9):.6g}; "
        f"add that number to f*",
    )
    samples = divergence._inside(_AROUND + at)
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
    _check_strictness(divergence, name)


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


def _check_strictness(divergence: Divergence, name: str) -> None:
    """f must not vanish on both sides of 1.

    There f*' jumps from below 1 to above 1 at f'(1), and every t between costs nothing: an infinite weight or a radius
    of 0 would not give the model.
    """
    if divergence._has_kink_at_one:
        return
    low, high = (float(side[0]) for side in _where_derivative_is(divergence, np.ones(1)))
    width = max(high - low, math.ulp(high))
    slope = divergence._derivative
    below, above = slope(low), slope(min(high, divergence.slope_at_infinity))
    beyond = slope(low - 1000.0 * width), slope(min(high + 1000.0 * width, divergence.slope_at_infinity))
    jumps_down = 1.0 - below > max(_ROUNDING, 0.5 * (1.0 - beyond[0]))
    jumps_up = above - 1.0 > max(_ROUNDING, 0.5 * (beyond[1] - 1.0))
    _checks.must(
        not (jumps_down and jumps_up),
        f"{name} must not be flat at 1: f*' jumps from {below:.6g} to {above:.6g} at f'(1) = {round(high, 9):.6g}, so "
        "that f(t) = 0 between them and distributions other than the model cost nothing; add a term such as "
        "1e-6 (t-1)^2 to f",
    )
