"""A user's f* and f*', called with numbers or with whole arrays, and how exact they are."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.divergences import _compiled

_AGREEMENT = 1e-12  # how closely a function of an array, or a compiled one, must meet the one of a number
_LARGEST = 1e307  # stands for infinite slopes, so that their product with zero is zero
_EPS = float(np.finfo(np.float64).eps)


class UserFunction:
    """One of f*, f*': a function of a number, of an array, of both, or a `scipy.LowLevelCallable`.

    `samples` are numbers on which it is found out whether the function also takes arrays.
    """

    def __init__(self, given: Any, samples: FloatArray) -> None:
        self.given = given
        self.compiled = _compiled.from_low_level(given)
        self.takes_arrays = self.compiled is not None
        self.scalar: Callable[[float], float] = given if self.compiled is None else _compiled.as_python(self.compiled)
        if self.compiled is None:
            self._find_out(samples)

    @property
    def is_low_level(self) -> bool:
        """Whether the user brought machine code."""
        return self.compiled is not None and self.compiled.owner is self.given

    @property
    def identity(self) -> Any:
        """What compares and hashes."""
        return self.compiled.address if self.compiled is not None and self.is_low_level else self.given

    def __call__(self, s: float) -> float:
        """Its value at a number; NaN or infinite where plain Python would raise."""
        try:
            return float(self.scalar(s))
        except OverflowError:
            return math.inf
        except (ValueError, ZeroDivisionError):
            return math.nan

    def of(self, s: FloatArray) -> FloatArray:
        """Its values on an array of any shape."""
        flat = np.ascontiguousarray(s, dtype=np.float64).reshape(-1)
        if self.compiled is not None:
            values = self.compiled.of(flat)
        elif self.takes_arrays:
            values = self._of_array(flat)
        else:
            values = np.fromiter(map(self, flat.tolist()), np.float64, flat.size)
        return values.reshape(np.shape(s))

    def compile(self, samples: FloatArray) -> UserFunction | None:
        """The same function in machine code; None where that cannot be had, or differs on the samples."""
        if self.compiled is not None:
            return self
        compiled = _compiled.compile_function(self.given) if _is_hashable(self.given) else None
        if compiled is None or not _agree(compiled.of(samples), self.of(samples)):
            return None
        copy = object.__new__(UserFunction)
        copy.given, copy.scalar, copy.takes_arrays, copy.compiled = self.given, self.scalar, True, compiled
        return copy

    def _of_array(self, s: FloatArray) -> FloatArray:
        frozen = s.view()
        frozen.flags.writeable = False
        with np.errstate(all="ignore"):
            return np.asarray(self.given(frozen), dtype=np.float64)

    def _find_out(self, samples: FloatArray) -> None:
        """Set `takes_arrays`; a function of arrays alone gets a scalar version."""
        if not callable(self.given):
            _checks.refuse_type("f* and f*'", "functions of a number or of an array", self.given)
        try:
            values = self._of_array(samples)
        except Exception:  # a function of a number may do anything with an array
            return
        if values.shape != samples.shape:
            return
        try:
            one_by_one = np.array([self(s) for s in samples.tolist()])
        except (TypeError, IndexError, AttributeError):
            self.takes_arrays = True
            self.scalar = lambda s: float(self._of_array(np.array([s]))[0])
            return
        self.takes_arrays = _agree(values, one_by_one)


def _agree(values: FloatArray, expected: FloatArray) -> bool:
    known = np.isfinite(expected)
    with np.errstate(invalid="ignore"):
        close = np.abs(values - expected) <= _AGREEMENT * np.maximum(1.0, np.abs(expected))
    return bool(known.any() and close[known].all())


def _is_hashable(function: Any) -> bool:
    try:
        hash(function)
    except TypeError:
        return False
    return True


class Conjugate:
    """f* and f*' of whole arrays, and what a solver must know of them.

    Parameters
    ----------
    conjugate, derivative : UserFunction
    slope_at_one : f'(1)
    slope_at_infinity : f'(inf)
    doubt : by how much f'(1) may be off
    samples : numbers around f'(1), ascending, on which the functions' rounding is measured
    """

    def __init__(
        self,
        conjugate: UserFunction,
        derivative: UserFunction,
        slope_at_one: float,
        slope_at_infinity: float,
        doubt: float,
        samples: FloatArray,
    ) -> None:
        self.conjugate, self.derivative = conjugate, derivative
        self.slope_at_one, self.slope_at_infinity, self.doubt = slope_at_one, slope_at_infinity, doubt
        self._samples = samples

    @property
    def edge(self) -> float:
        """f'(inf) - f'(1)"""
        return self.slope_at_infinity - self.slope_at_one

    @cached_property
    def core(self) -> Any:
        """Both functions for the compiled core where they are machine code, otherwise None."""
        conjugate, derivative = self.conjugate.compiled, self.derivative.compiled
        if conjugate is None or derivative is None:
            return None
        from robustmdp import _core

        return _core.OwnConjugate(
            conjugate.address, derivative.address, self.slope_at_one, self.slope_at_infinity, self.near, self.bend
        )

    @cached_property
    def callable_core(self) -> Any:
        """The same for code that calls them number by number; through Python where they are no machine code."""
        if self.compiled is not None:
            return self.compiled.core
        from robustmdp import _core

        kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
        self._callbacks = kind(self.conjugate), kind(self.derivative)  # kept as long as their addresses
        addresses = (ctypes.cast(callback, ctypes.c_void_p).value for callback in self._callbacks)
        return _core.OwnConjugate(*addresses, self.slope_at_one, self.slope_at_infinity, self.near, self.bend)

    @property
    def takes_arrays(self) -> bool:
        """Whether both functions take whole arrays."""
        return self.conjugate.takes_arrays and self.derivative.takes_arrays

    def values(self, s: FloatArray) -> FloatArray:
        """f*"""
        return self.conjugate.of(s)

    def slopes(self, s: FloatArray) -> FloatArray:
        """f*', in [0, 1e307]; what is no number is too far up."""
        return np.fmax(np.fmin(self.derivative.of(s), _LARGEST), 0.0)

    @cached_property
    def compiled(self) -> Conjugate | None:
        """The same in machine code; None where Numba is not installed or cannot compile the functions."""
        if self.core is not None:
            return self
        conjugate, derivative = self.conjugate.compile(self._samples), self.derivative.compile(self._samples)
        if conjugate is None or derivative is None:
            return None
        return Conjugate(conjugate, derivative, self.slope_at_one, self.slope_at_infinity, self.doubt, self._samples)

    def value_error(self, s: FloatArray, value: FloatArray, slope: FloatArray) -> FloatArray:
        """A bound on the rounding error of f* at s.

        Four units in the last place of the largest of 1, f'(1) and f*, and of the change of f* by a rounding of s,
        times what the samples show beyond that; and by what f(1) is not 0.
        """
        return self._noise * self._unit_error(s, value, slope) + self._offset

    def _unit_error(self, s: FloatArray, value: FloatArray, slope: FloatArray) -> FloatArray:
        size = np.maximum(max(1.0, abs(self.slope_at_one)), np.abs(value)) + np.abs(s) * slope
        return np.asarray(4.0 * _EPS * size)

    @cached_property
    def _noise(self) -> float:
        """By what factor samples break f*'(a) (b-a) <= f*(b) - f*(a) <= f*'(b) (b-a)."""
        s = self._samples
        value, slope = self.values(s), self.slopes(s)
        known = np.isfinite(value) & (slope < _LARGEST)
        s, value, slope = s[known], value[known], slope[known]
        error = self._unit_error(s, value, slope)
        step, rise = np.diff(s), np.diff(value)
        broken = np.maximum(slope[:-1] * step - rise, rise - slope[1:] * step) / (error[1:] + error[:-1])
        return max(1.0, 2.0 * float(broken.max(initial=0.0)))

    @cached_property
    def _offset(self) -> float:
        return abs(self.conjugate(self.slope_at_one) - self.slope_at_one)

    @cached_property
    def near(self) -> float:
        """Up to which |y| the excess f* - y is better taken as y (f*' - 1)/2 - bend y^3, with y = s - f'(1).

        The plain formula is off by a rounding of f'(1), the other one by the order of y^4; 0 where f*' has no slope at
        f'(1).
        """
        y = (_EPS * (1.0 + abs(self.slope_at_one))) ** 0.25
        if y >= self.edge:
            return 0.0
        chords = self._chords(y * np.array([-1.0, -0.5, -0.25, 0.25, 0.5, 1.0]))
        return y if np.ptp(chords) <= 0.1 * np.abs(chords).max() else 0.0

    @cached_property
    def bend(self) -> float:
        """About f*'''(f'(1))/12, from (f*'(y) - 1)/y = f*'' + y f*'''/2."""
        if self.near == 0.0:
            return 0.0
        below, above = self._chords(self.near * np.array([-1.0, 1.0]))
        return float((above - below) / (12.0 * self.near))

    @cached_property
    def curvature(self) -> float:
        """About f*''(f'(1))."""
        return float(self._chords(np.array([-1e-4, 1e-4 * min(1.0, self.edge)])).mean())

    def _chords(self, y: FloatArray) -> FloatArray:
        s = self.slope_at_one + y
        return (self.slopes(s) - 1.0) / (s - self.slope_at_one)
