"""Compiled functions of one number: `scipy.LowLevelCallable`, and what Numba makes of plain functions."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from robustmdp import _low_level
from robustmdp._arrays import FloatArray

SIGNATURE = "double (double)"

_lock = threading.Lock()


class Compiled(NamedTuple):
    """A function double(double) in machine code, and the object that keeps it in memory."""

    address: int
    owner: Any

    def __call__(self, s: float) -> float:
        """Its value at one number."""
        return float(self.of(np.array([s]))[0])

    def of(self, s: FloatArray) -> FloatArray:
        """Its values on an array, (n,)."""
        from robustmdp import _core

        out = np.empty_like(s)
        _core.call_function(self.address, s, out)
        return out


def from_low_level(function: Any) -> Compiled | None:
    """A `scipy.LowLevelCallable`, which must have the signature double(double); None if it is something else."""
    if not _low_level.is_low_level(function):
        return None
    return Compiled(_low_level.machine_code(function, SIGNATURE).address, function)


def as_python(compiled: Compiled) -> Callable[[float], float]:
    """A function of Python, which Numba can compile as well."""
    pointer = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(compiled.address)

    def call(s: float) -> float:
        return float(pointer(s))

    return call


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
