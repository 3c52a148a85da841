"""A user's f* and f*', called with numbers or with whole arrays, and how exact they are."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from robustmdp import _checks, _core, _low_level
from robustmdp._arrays import FloatArray

_AGREEMENT = 1e-12  # how closely a function of an array, or a compiled one, must meet the one of a number
_LARGEST = 1e307  # stands for infinite slopes, so that their product with zero is zero
_EPS = float(np.finfo(np.float64).eps)

_lock = threading.Lock()


@dataclass(frozen=True)
class Compiled:
    """A function double(double) in machine code, and the object that keeps it in memory."""

    address: int
    owner: Any

    def __call__(self, s: float) -> float:
        """Its value at one number."""
        return float(self.of(np.array([s]))[0])

    def of(self, s: FloatArray) -> FloatArray:
        """Its values on an array, (n,)."""
        out = np.empty_like(s)
        _core.call_function(self.address, s, out)
        return out


@lru_cache(maxsize=64)
def compile_function(function: Callable[[float], float]) -> Compiled | None:
    """A plain function compiled by Numba; None where there is no Numba, or none that can compile it.

    Division by zero gives inf or NaN, because compiled code cannot raise.
    """
    with _lock:
        try:
            import numba

            compiled = numba.cfunc("float64(float64)", error_model="numpy")(getattr(function, "py_func", function))
        except Exception:
            return None
        return Compiled(int(compiled.address), compiled)


class UserFunction:
    """One of f*, f*': a function of a number, of an array, of both, or a `scipy.LowLevelCallable`.

    `samples` are numbers on which it is found out whether the function also takes arrays.
    """

    def __init__(self, given: Any, samples: FloatArray) -> None:
        self.given = given
        self.is_low_level = _low_level.is_low_level(given)
        self.identity = given  # what compares and hashes
        self.scalar: Callable[[float], float] = given
        self.compiled: Compiled | None = None
        if self.is_low_level:
            self.identity = _low_level.machine_code(given, "double (double)").address
            self.scalar = self.compiled = Compiled(self.identity, given)
        self.takes_arrays = self.is_low_level
        if not self.is_low_level:
            self._find_out(samples)

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
        try:
            compiled = compile_function(self.given)
        except TypeError:  # an object that cannot be hashed
            return None
        if compiled is None or not _agree(compiled.of(samples), self.of(samples)):
            return None
        same = copy(self)
        same.takes_arrays, same.compiled = True, compiled
        return same

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


@dataclass(eq=False)
class Conjugate:
    """f* and f*' of whole arrays, and what a solver must know of them."""

    conjugate: UserFunction
    derivative: UserFunction
    slope_at_one: float
    slope_at_infinity: float
    doubt: float  # by how much f'(1) may be off
    samples: FloatArray  # around f'(1), ascending: there the rounding of the functions is measured

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
        return self._in_core(conjugate.address, derivative.address)

    @cached_property
    def callable_core(self) -> Any:
        """The same for code that calls them number by number; through Python where they are no machine code."""
        if self.compiled is not None:
            return self.compiled.core
        kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
        self._callbacks = kind(self.conjugate), kind(self.derivative)  # kept as long as their addresses
        return self._in_core(*(ctypes.cast(callback, ctypes.c_void_p).value for callback in self._callbacks))

    def _in_core(self, *addresses: int | None) -> Any:
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
        conjugate, derivative = self.conjugate.compile(self.samples), self.derivative.compile(self.samples)
        if conjugate is None or derivative is None:
            return None
        return replace(self, conjugate=conjugate, derivative=derivative)

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
        s = self.samples
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
