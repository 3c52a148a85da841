"""Roots of many decreasing functions at once."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from robustmdp._arrays import BoolArray, FloatArray, IntArray

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


def choose(mask: BoolArray, yes: Arrays, no: Arrays) -> Arrays:
    """np.where for named tuples of arrays."""
    pairs = zip(yes, no, strict=True)
    return type(yes)(*(choose(mask, a, b) if isinstance(a, tuple) else np.where(mask, a, b) for a, b in pairs))


def take(arrays: Arrays, at: IntArray) -> Arrays:
    """Some entries of named tuples of arrays, along the last axis."""
    return type(arrays)(*(take(a, at) if isinstance(a, tuple) else np.take(a, at, axis=-1) for a in arrays))


def put(arrays: Arrays, at: IntArray, values: Arrays) -> None:
    """Write entries of named tuples of arrays, along the last axis."""
    for a, b in zip(arrays, values, strict=True):
        if isinstance(a, tuple):
            put(a, at, b)
        else:
            a[..., at] = b


class Bracketing:
    """Brackets of the roots of decreasing functions g, (count,) each: g >= 0 at `low` and g <= 0 at `high`.

    Both ends may be limits at which g is not known. Regula falsi as modified by Anderson and Björck (1973); where it
    stalls, a proposal of the caller's and bisection take turns. While only one side is known, steps are secants, no
    longer than `longest`.
    """

    def __init__(self, low: FloatArray, high: FloatArray, rate: FloatArray, longest: float = np.inf) -> None:
        self.low, self.high = low.copy(), high.copy()
        self.rate = rate.copy()  # -dg/dx: a guess, then measured
        self.is_measured = np.zeros(low.shape, dtype=bool)
        self._at_low, self._at_high = np.full(low.shape, np.inf), np.full(low.shape, -np.inf)
        self._x, self._g = np.full(low.shape, np.nan), np.full(low.shape, np.nan)
        self._least = np.full(low.shape, np.inf)  # |g|
        self._widths, self._leasts = [high - low] * 2, [self._least] * 2  # of the last two steps
        self._longest = longest
        self._steps = 0

    @property
    def is_closed(self) -> BoolArray:
        """Whether both sides are known."""
        return np.asarray(np.isfinite(self._at_low) & np.isfinite(self._at_high))

    def narrow(self, x: FloatArray, g: FloatArray, h: FloatArray) -> None:
        """Use the values g at x; h, of the same sign, is what is interpolated between two sides."""
        left = g > 0.0
        closed = self.is_closed
        # The end that stays has its value reduced, so that the next point falls on the other side.
        for stays, same in ((self._at_high, left & (self._g > 0.0)), (self._at_low, ~left & (self._g <= 0.0))):
            kept = 1.0 - h / np.where(left, self._at_low, self._at_high)
            np.multiply(stays, np.where(kept > 0.0, kept, 0.5), out=stays, where=same & closed)
        # f*' of extreme arguments is clipped, so that the secant's slope may vanish.
        rate = (g - self._g) / (self._x - x)
        self.is_measured = np.isfinite(rate) & (rate > 0.0)
        self.rate = np.where(self.is_measured, rate, self.rate)
        self.low, self._at_low = np.where(left, x, self.low), np.where(left, h, self._at_low)
        self.high, self._at_high = np.where(left, self.high, x), np.where(left, self._at_high, h)
        self._x, self._g = x, g
        self._least = np.minimum(self._least, np.abs(g))
        self._steps += 1

    def propose(self, cut: FloatArray) -> FloatArray:
        """Where to look next; `cut` is the caller's proposal."""
        low, high = self.low, self.high
        width = high - low
        falsi = low + width * (self._at_low / (self._at_low - self._at_high))
        # One side known: a secant step, from the second on too far, and ever more so, to find the other side.
        beyond = 1.0 if self._steps == 1 else 1.5 * 2.0 ** min(0.5 * (self._steps - 1) * (self._steps - 2), 1000.0)
        secant = self._x + np.clip(beyond * self._g / self.rate, -self._longest, self._longest)
        proposal = np.where(self.is_closed, falsi, secant)
        # Two steps have neither halved the bracket nor come ten times closer.
        stalled = self.is_closed & (width > 0.5 * self._widths[0]) & (self._least > 0.1 * self._leasts[0])
        proposal = np.where(stalled, np.nan if self._steps % 2 else cut, proposal)
        self._widths, self._leasts = [self._widths[1], width], [self._leasts[1], self._least]
        inside = (low < proposal) & (proposal < high)
        # A bracket over several orders of magnitude is halved by its logarithm.
        small, large = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
        wide = (low * high > 0.0) & (large > 16.0 * small)
        middle = np.where(wide, np.sign(low) * np.sqrt(small) * np.sqrt(large), low + 0.5 * width)
        return np.where(inside, proposal, middle)

    def keep(self, at: IntArray) -> None:
        """Go on with some of the functions."""
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(self, name, value[at])
            elif isinstance(value, list):
                setattr(self, name, [one[at] for one in value])
