"""What must hold for f, f* and f*', whatever the divergence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Constrained, Penalized
from robustmdp.divergences import FDivergence
from robustmdp.divergences import check_divergence as check_type
from robustmdp.testing.sets import check_set

_RATIOS = np.concatenate([[0.0], np.geomspace(1e-3, 0.9, 20), [1.0], np.geomspace(1.1, 1e3, 20)])
_FAR = 1e12


def check_divergence(divergence: Any, *, f: Callable[[float], float] | None = None, tol: float = 1e-7) -> None:
    """Check f, its conjugate f*(s) = sup over t >= 0 of s t - f(t), and f*', and the worst cases that they give.

    - f(1) = 0, and f is convex, infinite below 0; `value_at_zero` is f(0).
    - f*' is at least 0, non-decreasing and the slope of f*; f*'(f'(1)) = 1, or 1 lies in its jump there.
    - f(t) + f*(s) >= s t, with equality at t = f*'(s) (Fenchel).
    - `slope_at_infinity` is where f* becomes infinite, and f grows by no more per unit.
    - `check_set` holds for its penalty and its ball.

    Raises AssertionError with the property that fails, and its numbers; `tol` is relative to the terms compared.

    Parameters
    ----------
    divergence : a divergence
    f : function of a number, optional
        f as it is printed, to compare with.

    >>> import robustmdp as rm
    >>> check_divergence(rm.ChiSquare(), f=lambda t: (t - 1) ** 2)
    """
    checks = _Checks(check_type(divergence), tol)
    checks.check_function(f)
    checks.check_conjugate()
    checks.check_pair()
    checks.check_end()
    check_set(Penalized(divergence, 1.0), nominal=Penalized(divergence, math.inf), unlimited=Penalized(divergence, 0.0))
    check_set(
        Constrained(divergence, 0.1),
        nominal=Constrained(divergence, 0.0),
        unlimited=Constrained(divergence, math.inf),
    )


class _Checks:
    def __init__(self, divergence: FDivergence, tol: float) -> None:
        self.divergence, self.tol = divergence, tol
        self.at, self.edge = divergence.slope_at_one, divergence.slope_at_infinity
        reach = min(self.edge - self.at, 2.0)
        self.arguments = self.at + np.concatenate(
            [-np.geomspace(1e2, 1e-3, 30), [0.0], reach * np.linspace(0.05, 0.9, 18)]
        )

    def check_function(self, printed: Callable[[float], float] | None) -> None:
        f = self.divergence.f
        one = float(f(1.0))
        self._must(abs(one) <= self.tol, f"f(1) must be 0: got {one:.9g}")
        self._must(float(f(-0.5)) == math.inf, f"f must be infinite below 0: got f(-0.5) = {float(f(-0.5)):.9g}")
        zero = self.divergence.value_at_zero
        self._must(self._same(float(f(0.0)), zero), f"value_at_zero must be f(0) = {float(f(0.0)):.9g}: got {zero:.9g}")
        values = np.asarray(f(_RATIOS))
        middle = 0.5 * (_RATIOS[:-1] + _RATIOS[1:])
        chords = 0.5 * (values[:-1] + values[1:])
        for t, value, chord in zip(middle, np.asarray(f(middle)), chords, strict=True):
            self._must(
                value <= chord + self.tol * (1.0 + abs(chord)) if math.isfinite(chord) else True,
                f"f must be convex: f({t:.6g}) = {value:.9g} lies above the chord around it, {chord:.9g}",
            )
        for t, value in zip(_RATIOS, values, strict=True) if printed is not None else ():
            with np.errstate(all="ignore"):
                wanted = _evaluate(printed, float(t))  # type: ignore[arg-type]
            self._must(self._same(value, wanted), f"f must be as printed: f({t:.6g}) = {wanted:.9g}, got {value:.9g}")

    def check_conjugate(self) -> None:
        s, values, slopes = self._conjugates()
        for i in range(len(s) - 1):
            low, high = slopes[i], slopes[i + 1]
            slack = self.tol * (1.0 + abs(high))
            self._must(low >= -self.tol, f"f*' must be at least 0: got f*'({s[i]:.6g}) = {low:.9g}")
            self._must(
                low <= high + slack,
                f"f*' must not fall: got f*'({s[i]:.6g}) = {low:.9g} > f*'({s[i + 1]:.6g}) = {high:.9g}",
            )
            chord = (values[i + 1] - values[i]) / (s[i + 1] - s[i])
            slack += 1e-12 * abs(values[i]) / (s[i + 1] - s[i])
            self._must(
                low - slack <= chord <= high + slack,
                f"f*' must be the slope of f*: between s = {s[i]:.6g} and {s[i + 1]:.6g} f* rises by {chord:.9g} per "
                f"unit, and f*' goes from {low:.9g} to {high:.9g}",
            )
        step = 1e-6 * max(1.0, abs(self.at))
        around = self.divergence.conjugate_derivative([self.at - step, self.at + step])
        self._must(
            bool(around[0] <= 1.0 + self.tol and around[1] >= 1.0 - self.tol),
            f"slope_at_one must be an s with f*'(s) = 1: f*' goes from {around[0]:.9g} to {around[1]:.9g} around "
            f"{self.at:.9g}",
        )

    def check_pair(self) -> None:
        """Fenchel's inequality, and equality at t = f*'(s)."""
        s, values, slopes = self._conjugates()
        f = self.divergence.f
        for t, of_t in zip(_RATIOS, np.asarray(f(_RATIOS)), strict=True):
            missing = s * t - values - of_t
            worst = int(np.argmax(missing - self.tol * (np.abs(s * t) + 1.0)))
            self._must(
                missing[worst] <= self.tol * (abs(s[worst] * t) + 1.0),
                f"f(t) + f*(s) must be at least s t: it is {missing[worst]:.9g} less at t = {t:.6g}, "
                f"s = {s[worst]:.6g}",
            )
        for s_i, value, t in zip(s, values, slopes, strict=True):
            of_t = float(f(t))
            self._must(
                abs(of_t + value - s_i * t) <= self.tol * (1.0 + abs(of_t) + abs(value)),
                f"f(t) + f*(s) must be s t where t = f*'(s): got {of_t + value:.9g} instead of {s_i * t:.9g} at "
                f"s = {s_i:.6g}",
            )

    def check_end(self) -> None:
        """The slope of f at infinity is where f* ends."""
        if self.edge == math.inf:
            return
        conjugate = self.divergence.conjugate
        inside, beyond = self.edge - 1e-3 * (self.edge - self.at), self.edge + 1e-6 * max(1.0, abs(self.edge))
        values = np.asarray(conjugate([inside, beyond]))
        self._must(
            bool(math.isfinite(values[0]) and values[1] == math.inf),
            f"f* must be finite below slope_at_infinity = {self.edge:.9g} and infinite beyond: got {values[0]:.6g} at "
            f"{inside:.9g} and {values[1]:.6g} at {beyond:.9g}",
        )
        slope = float((self.divergence.f(2.0 * _FAR) - self.divergence.f(_FAR)) / _FAR)
        self._must(
            slope <= self.edge + self.tol * (1.0 + abs(self.edge)),
            f"slope_at_infinity must be at least the slope of f far out, {slope:.9g}: got {self.edge:.9g}",
        )

    def _conjugates(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        s = self.arguments
        return s, np.asarray(self.divergence.conjugate(s)), np.asarray(self.divergence.conjugate_derivative(s))

    def _same(self, value: float, wanted: float) -> bool:
        return value == wanted or abs(value - wanted) <= self.tol * (1.0 + abs(wanted))

    def _must(self, holds: bool, sentence: str) -> None:
        if not holds:
            raise AssertionError(f"divergence {self.divergence.name!r}: {sentence}")


def _evaluate(printed: Callable[[float], float], t: float) -> float:
    """f as printed; infinite where its formula has no value, such as log 0."""
    try:
        return float(printed(t))
    except (ValueError, ZeroDivisionError, OverflowError):
        return math.inf
