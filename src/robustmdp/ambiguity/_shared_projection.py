"""Projections of rows whose divergence is known only by f* and f*', and nature's answers to prices."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity import _conjugate_rows as search
from robustmdp.ambiguity._bracketing import Bracketing, take
from robustmdp.ambiguity._climbing import Peak, Side, Spot, climb
from robustmdp.ambiguity._conjugate_rows import Scaled, Start, Tilt
from robustmdp.ambiguity.rowwise import EPS

LONGEST_STEP = math.log(1e4)  # of theta
_STEEPEST = 1e40  # theta that leaves nothing but the minimum


class Block(NamedTuple):
    """The rows of some states, in units of their spread, and the levels of the states."""

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
        return Block(*parts, owner, self.warm[:, rows], self.level[states])


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


def project(solver: search.ConjugateRows, block: Block, mine: IntArray, u: FloatArray, tolerance: float) -> Projected:
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
            peaks.append(solve(solver, take(scaled, at), target[at], warm, tolerance))
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
        nothing = np.full_like(z, np.nan)
        tilt = solver.find_shift(some, theta, Start(height, slope, nothing, nothing), 0.1 * tolerance)
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
    tilt = solver.find_shift(rows, theta, Start(nothing, nothing, nothing, nothing), 1e-60)
    height = solver.cost(tilt) + theta * tilt.mean
    side = Side(Spot(theta, height, np.zeros_like(theta), theta), tilt)
    return Peak(side, side, np.ones_like(theta))


def answer_prices(
    solver: search.ConjugateRows, block: Block, mine: IntArray, theta: FloatArray, tolerance: float
) -> tuple[Answer, FloatArray, FloatArray]:
    """Nature's answers at theta = 1/price, their excesses and costs."""
    log_theta, height, slope = block.warm[:3, mine]
    within = np.clip(theta, 1.0 / solver.heaviest, _STEEPEST)
    height = np.where(solver.edge < 2.0 * np.exp(log_theta), height, height * within * np.exp(-log_theta))
    nothing = np.full_like(theta, np.nan)
    tilt = solver.find_shift(take(block.scaled, mine), within, Start(height, slope, nothing, nothing), 0.1 * tolerance)
    block.warm[:3, mine] = np.log(within), solver.height(tilt.at_edge, tilt.best.shift), tilt.slope
    answer = Answer(tilt, tilt, np.ones_like(theta), theta > 0.0)
    return answer, tilt.best.excess, solver.cost(tilt)


def _log_odds(mean: FloatArray, whole: FloatArray) -> FloatArray:
    return np.log(np.maximum(mean, 1e-300)) - np.log(np.maximum(whole - mean, 1e-300))


def spread_out(x: FloatArray, at: IntArray, count: int) -> FloatArray:
    whole = np.zeros(count)
    whole[at] = x
    return whole


def _join(one: Any, other: Any) -> Any:
    """Named tuples of arrays, one after the other."""
    return type(one)(
        *(_join(a, b) if isinstance(a, tuple) else np.concatenate([a, b]) for a, b in zip(one, other, strict=True))
    )
