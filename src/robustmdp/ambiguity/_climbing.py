"""The highest points of many concave functions at once, each of which may depend on several rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity._bracketing import Bracketing, choose, put, take
from robustmdp.ambiguity._conjugate_rows import FAST
from robustmdp.ambiguity.rowwise import EPS

_STEPS = 160


class Spot(NamedTuple):
    """What a function is at one x, (groups,) each."""

    x: FloatArray
    height: FloatArray
    slope: FloatArray
    unit: FloatArray  # of heights


class Side(NamedTuple):
    """A spot, and what is known of the rows there, (rows,)."""

    spot: Spot
    rows: Any


class Peak(NamedTuple):
    """Both sides of the highest points; `share` is that of `left` where the slopes of both cancel."""

    left: Side
    right: Side
    share: FloatArray

    @property
    def best(self) -> BoolArray:
        """Whether the left side is the higher one."""
        is_higher = self.left.spot.height > self.right.spot.height
        return np.asarray(np.isinf(self.right.spot.slope) | (is_higher & np.isfinite(self.left.spot.slope)))


# At some z of some groups with their rows: g, decreasing in z, with the sign of the slope; dx/dz; the side.
Look = Callable[[IntArray, IntArray, FloatArray], tuple[FloatArray, FloatArray, Side]]


def climb(
    look: Look,
    owner: IntArray,
    bracket: Bracketing,
    z: FloatArray,
    far: float,
    to_z: Callable[[FloatArray], FloatArray],
    tolerance: float,
    *,
    starts_at_low: bool = False,
) -> Peak:
    """The highest points between x = 0 and x = `far`, within `tolerance` units; both sides unless FAST.

    `owner` is the group of each row, ascending. The lower end is a point to look at where it `starts_at_low`.
    """
    at, mine = np.arange(len(z)), np.arange(len(owner))
    g, stretch, side = look(at, mine, z)
    peak = _between(side, far)
    found = _copy(peak, at, mine)
    for step in range(_STEPS):
        up = g > 0.0
        whose = up[np.searchsorted(at, owner[mine])]
        peak = Peak(_choose(up, whose, side, peak.left), _choose(up, whose, peak.right, side), peak.share)
        bracket.narrow(z, g, np.tanh(0.25 * g))
        gap, cut = _meet_tangents(peak)
        unit = side.spot.unit
        done = (gap <= tolerance * unit) | (
            bracket.high - bracket.low <= 4.0 * EPS * np.maximum(1.0, np.abs(bracket.low))
        )
        if starts_at_low:
            done |= (bracket.high <= bracket.low) & ~up
        if tolerance >= FAST:
            # A rate across a kink says nothing about what is left.
            expected = np.abs(side.spot.slope * stretch * g) / np.minimum(bracket.rate, 4.0)
            done |= bracket.is_measured & (np.abs(g) < 0.1) & (expected <= 0.01 * tolerance * unit)
        gone = done[np.searchsorted(at, owner[mine])]
        _put(found, at[done], mine[gone], _copy(peak, np.flatnonzero(done), np.flatnonzero(gone)))
        if done.all():
            break
        left, stays = np.flatnonzero(~done), np.flatnonzero(~gone)
        peak, z, cut = _copy(peak, left, stays), z[left], cut[left]
        bracket.keep(left)
        at, mine = at[left], mine[stays]
        with np.errstate(all="ignore"):
            z = bracket.propose(to_z(cut))
        if starts_at_low and step > 0:
            z = np.where(np.isinf(peak.left.spot.slope), bracket.low, z)
        g, stretch, side = look(at, mine, z)
    else:
        _put(found, at, mine, peak)
    below, above = -found.right.spot.slope, found.left.spot.slope
    share = np.where(np.isinf(above), 0.0, np.where(np.isinf(below), 1.0, below / (above + below)))
    return found._replace(share=np.nan_to_num(share))


def _between(side: Side, far: float) -> Peak:
    """Nothing is known."""
    nothing = np.full_like(side.spot.x, -math.inf)
    left = side._replace(spot=side.spot._replace(x=np.zeros_like(nothing), height=nothing, slope=-nothing))
    right = side._replace(spot=side.spot._replace(x=np.full_like(nothing, far), height=nothing, slope=nothing))
    return Peak(left, right, np.full_like(nothing, math.nan))


def _meet_tangents(peak: Peak) -> tuple[FloatArray, FloatArray]:
    """How far the tangents' meeting point lies above the higher side, and where."""
    left, right = peak.left.spot, peak.right.spot
    rise, fall, width = left.slope, -right.slope, right.x - left.x
    gain = right.height - left.height
    cut = (gain + fall * width) / (rise + fall)
    rounding = 2.0 * EPS * (np.abs(left.height) + np.abs(right.height))
    gap = np.maximum(rise * cut - np.maximum(gain, 0.0), 0.0) + np.where(np.isfinite(rounding), rounding, 0.0)
    # A slope of its own bounds the function, too.
    return np.fmin(gap, np.minimum(rise, fall) * width), left.x + cut


def _choose(mask: BoolArray, of_rows: BoolArray, yes: Side, no: Side) -> Side:
    return Side(choose(mask, yes.spot, no.spot), choose(of_rows, yes.rows, no.rows))


def _copy(peak: Peak, groups: IntArray, rows: IntArray) -> Peak:
    left, right = (Side(take(side.spot, groups), take(side.rows, rows)) for side in (peak.left, peak.right))
    return Peak(left, right, peak.share[groups])


def _put(peak: Peak, groups: IntArray, rows: IntArray, values: Peak) -> None:
    for side, value in ((peak.left, values.left), (peak.right, values.right)):
        put(side.spot, groups, value.spot)
        put(side.rows, rows, value.rows)
