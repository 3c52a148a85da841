"""Projections of rows whose divergence is known only by f* and f*', and nature's answers to prices.

Both are the highest points of concave functions, many at once, each of which may depend on several rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity import _conjugate_rows as search
from robustmdp.ambiguity._bracketing import Bracketing, choose, put, take
from robustmdp.ambiguity._conjugate_rows import FAST, Scaled, Start, Tilt, meet_tangents
from robustmdp.ambiguity.rowwise import EPS

LONGEST_STEP = math.log(1e4)  # of theta
_STEEPEST = 1e40  # theta that leaves nothing but the minimum
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
        gap, cut = _meet(peak)
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


def _meet(peak: Peak) -> tuple[FloatArray, FloatArray]:
    """How far the tangents' meeting point lies above the higher side, and where."""
    left, right = peak.left.spot, peak.right.spot
    rounding = 2.0 * EPS * (np.abs(left.height) + np.abs(right.height))
    noise, gain = np.where(np.isfinite(rounding), rounding, 0.0), right.height - left.height
    gap, cut = meet_tangents(left.slope, -right.slope, right.x - left.x, gain, noise)
    return gap, left.x + cut


def _choose(mask: BoolArray, of_rows: BoolArray, yes: Side, no: Side) -> Side:
    return Side(choose(mask, yes.spot, no.spot), choose(of_rows, yes.rows, no.rows))


def _copy(peak: Peak, groups: IntArray, rows: IntArray) -> Peak:
    left, right = (Side(take(side.spot, groups), take(side.rows, rows)) for side in (peak.left, peak.right))
    return Peak(left, right, peak.share[groups])


def _put(peak: Peak, groups: IntArray, rows: IntArray, values: Peak) -> None:
    for side, value in ((peak.left, values.left), (peak.right, values.right)):
        put(side.spot, groups, value.spot)
        put(side.rows, rows, value.rows)


class Block(NamedTuple):
    """The rows of some states, in units of their spread, and the levels of the states."""

    solver: search.ConjugateRows
    scaled: Scaled
    spread: FloatArray  # (count,)
    base: FloatArray  # (count,), the reward and the least outcome
    terms: FloatArray  # (count,), roundings in a sum over the row
    owner: IntArray  # (count,), ascending
    warm: FloatArray  # (4, count): log theta, height and slope of the shift, (u - floor)/(top - floor)
    level: FloatArray  # (states,)

    @property
    def mean(self) -> FloatArray:
        """Of the model, (count,)."""
        return self.base + self.spread * self.scaled.mean

    @property
    def first(self) -> IntArray:
        """The first row of each state."""
        return np.searchsorted(self.owner, np.arange(len(self.level)))

    def total(self, x: FloatArray) -> FloatArray:
        """Sums over the actions, in their order whatever the block."""
        return np.asarray(np.bincount(self.owner, weights=x, minlength=len(self.level)), dtype=np.float64)

    def largest(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.maximum.reduceat(x, self.first))

    def choose(self, x: FloatArray) -> FloatArray:
        """The policy of the first action with the largest x."""
        attained = np.flatnonzero(x == self.largest(x)[self.owner])
        policy = np.zeros_like(x)
        policy[attained[np.searchsorted(self.owner[attained], np.arange(len(self.level)))]] = 1.0
        return policy

    def only(self, states: IntArray, rows: IntArray) -> Block:
        owner = np.searchsorted(states, self.owner[rows])
        parts = take(self.scaled, rows), self.spread[rows], self.base[rows], self.terms[rows]
        return Block(self.solver, *parts, owner, self.warm[:, rows], self.level[states])


class Answer(NamedTuple):
    """Nature's answers, (count,): mixtures of two tilts where they have `moved`, the model elsewhere."""

    left: Tilt
    right: Tilt
    share: FloatArray
    moved: BoolArray


class Projected(NamedTuple):
    """kappa of rows, -dkappa/du, and nature's answer."""

    cost: FloatArray
    theta: FloatArray
    answer: Answer


def project(block: Block, mine: IntArray, u: FloatArray, tolerance: float) -> Projected:
    """kappa of some rows at u, (len(mine),)."""
    scaled, spread = take(block.scaled, mine), block.spread[mine]
    target = np.maximum(u - block.base[mine], 0.0) / np.where(spread > 0.0, spread, 1.0)
    target = np.where(target <= 4.0 * EPS, 0.0, target)
    moved = (spread > 0.0) & (target < scaled.mean)
    inner, bottom = np.flatnonzero(moved & (target > 0.0)), np.flatnonzero(moved & (target <= 0.0))
    bottom = bottom if inner.size or bottom.size else np.zeros(1, dtype=np.int64)
    place = np.zeros(len(mine), dtype=np.int64)
    peaks: list[Peak] = []
    for at, solve in ((inner, _descend), (bottom, _settle)):
        if at.size:
            place[at] = (len(peaks[0].share) if peaks else 0) + np.arange(len(at))
            warm = block.warm[:, mine[at]]
            peaks.append(solve(block.solver, take(scaled, at), target[at], warm, tolerance))
            block.warm[:, mine[at]] = warm
    peak = take(peaks[0] if len(peaks) == 1 else _join(*peaks), place)
    left, right, is_left = peak.left, peak.right, peak.best
    cost = np.maximum(np.where(is_left, left.spot.height, right.spot.height), 0.0)
    theta = np.where(is_left, left.spot.x, right.spot.x) / spread
    answer = Answer(left.rows, right.rows, peak.share, moved)
    return Projected(np.where(moved, cost, 0.0), np.where(moved, theta, 0.0), answer)


def _descend(
    solver: search.ConjugateRows, rows: Scaled, target: FloatArray, warm: FloatArray, tolerance: float
) -> Peak:
    """The highest points of theta (E rise - target) - E(f*(s) - s) in theta, where E_P rise is the target."""
    wanted = _log_odds(target, rows.mean)

    def look(at: IntArray, mine: IntArray, z: FloatArray) -> tuple[FloatArray, FloatArray, Side]:
        some, theta = take(rows, at), np.exp(z)
        log_theta, height, slope = warm[:3, at]
        # eta stays, or the distance from the edge.
        height = np.where(solver.edge < 2.0 * np.exp(log_theta), height, height * np.exp(z - log_theta))
        tilt = solver.find_shift(some, theta, Start(height, slope), 0.1 * tolerance)
        warm[:3, at] = z, solver.height(tilt.at_edge, tilt.best.shift), tilt.slope
        mean = tilt.mean
        spot = Spot(theta, theta * (some.mean - target[at]) - tilt.best.excess, mean - target[at], theta)
        return np.clip(_log_odds(mean, some.mean) - wanted[at], -700.0, 700.0), theta, Side(spot, tilt)

    cold = np.log((rows.mean - target) / (solver.curvature * np.maximum(rows.variance, 1e-300)))
    low, high = np.full_like(target, -np.log(solver.heaviest)), np.full_like(target, np.log(_STEEPEST))
    z = np.clip(np.where(np.isfinite(warm[0]), warm[0], cold), low + 1.0, high - 1.0)
    bracket = Bracketing(low, high, np.ones_like(z), LONGEST_STEP)
    return climb(look, np.arange(len(z)), bracket, z, np.inf, np.log, tolerance)


def _settle(solver: search.ConjugateRows, rows: Scaled, target: FloatArray, warm: FloatArray, tolerance: float) -> Peak:
    """All mass on the minimisers, or nearly so: there theta is as good as infinite."""
    theta, nothing = np.full_like(target, _STEEPEST), np.full_like(target, np.nan)
    tilt = solver.find_shift(rows, theta, Start(nothing, nothing), 1e-60)
    height = solver.cost(tilt) + theta * tilt.mean
    side = Side(Spot(theta, height, np.zeros_like(theta), theta), tilt)
    return Peak(side, side, np.ones_like(theta))


def answer_prices(
    block: Block, mine: IntArray, theta: FloatArray, tolerance: float
) -> tuple[Answer, FloatArray, FloatArray]:
    """Nature's answers at theta = 1/price, their excesses and costs."""
    solver = block.solver
    log_theta, height, slope = block.warm[:3, mine]
    within = np.clip(theta, 1.0 / solver.heaviest, _STEEPEST)
    height = np.where(solver.edge < 2.0 * np.exp(log_theta), height, height * within * np.exp(-log_theta))
    tilt = solver.find_shift(take(block.scaled, mine), within, Start(height, slope), 0.1 * tolerance)
    block.warm[:3, mine] = np.log(within), solver.height(tilt.at_edge, tilt.best.shift), tilt.slope
    answer = Answer(tilt, tilt, np.ones_like(theta), theta > 0.0)
    return answer, tilt.best.excess, solver.cost(tilt)


def _log_odds(mean: FloatArray, whole: FloatArray) -> FloatArray:
    return np.log(np.maximum(mean, 1e-300)) - np.log(np.maximum(whole - mean, 1e-300))


def _join(one: Any, other: Any) -> Any:
    """Named tuples of arrays, one after the other."""
    return type(one)(
        *(_join(a, b) if isinstance(a, tuple) else np.concatenate([a, b]) for a, b in zip(one, other, strict=True))
    )
