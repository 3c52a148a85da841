"""What is fixed before the first certifying sample: a policy, two values, and dual variables."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp.learning.dual_function import DualFunction
from robustmdp.learning.tables import LearnerState

FloatArray = npt.NDArray[np.float64]
_BELOW = 0.95  # of a ball's ceiling above the floor: outcomes at the ceiling itself, the quantile, must be above it
_LEAST_WEIGHT = 1e-3  # of a ball, in spreads of outcomes


class Frozen(NamedTuple):
    """Tables of R replications of S states and P pairs."""

    policy: npt.NDArray[np.int32]  # (R, S) pairs
    v_lower: FloatArray  # (R, S + 1), the end last
    v_upper: FloatArray
    eta: FloatArray  # (R, P); without a smooth f* a ceiling of outcomes
    weight: FloatArray  # (R, P)
    floor: FloatArray  # (R, P): the lowest outcome that has been seen
    centre: FloatArray  # (R, P): about the mean of earned + J
    eta_lower: FloatArray  # (R, S), for lower bounds, where nature may find an outcome that was never seen
    weight_lower: FloatArray  # (R, S)


def freeze(function: DualFunction, state: LearnerState, samples: FloatArray, margins: dict[str, Any]) -> Frozen:
    """What was learned; `samples` to expect of each pair, (R, P); `margins` of V, (R, S + 1), once they are known."""
    shape = function.shape
    low, high = shape.value_range
    q = state.q().reshape(-1, shape.n_pairs)
    v, policy = greedy_pairs(q, shape.state_ptr)
    v_lower = v_upper = np.hstack([np.clip(v, low, high), np.zeros((len(v), 1))])
    if margins:
        v_lower = np.maximum(v_lower - margins["lower"], min(low, 0.0))
        v_upper = np.minimum(v_upper + margins["upper"], max(high, 0.0))
    floor, most = _floors(function, state, v_upper), function.outcome_range(v_upper)[1]
    weight, slope = _weights(function, state, floor, most), function.steepest(samples)
    eta = floor + (_BELOW if function.level.is_constrained else 1.0) * weight
    if function.is_smooth:
        learned = state.eta(slice(0, q.size)).reshape(q.shape)
        learned = np.where(np.isnan(learned), floor, np.clip(learned, floor, floor + weight * slope))
        eta = np.where(weight > 0.0, learned, eta)
    chosen = np.stack([np.take_along_axis(table, policy, axis=1) for table in (eta, weight, slope)])
    eta_lower, weight_lower = _lower_duals(function, chosen, *function.outcome_range(v_lower))
    centre = q
    if function.level.is_constrained:  # of a reward and of an outcome, each within its range
        centre = function.typical_earned + np.clip(q - function.typical_earned, floor, most)
    return Frozen(policy.astype(np.int32), v_lower, v_upper, eta, weight, floor, centre, eta_lower, weight_lower)


def greedy_pairs(q: FloatArray, state_ptr: npt.NDArray[Any]) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """The largest q of each state, and the first pair that has it; q is (R, P)."""
    starts, sizes = state_ptr[:-1], np.diff(state_ptr)
    top = np.maximum.reduceat(q, starts, axis=1)
    candidates = np.where(q == np.repeat(top, sizes, axis=1), np.arange(q.shape[1]), q.shape[1])
    return top, np.minimum.reduceat(candidates, starts, axis=1)


def _floors(function: DualFunction, state: LearnerState, v_upper: FloatArray) -> FloatArray:
    """The lowest outcome that a pair is known to have, (R, P), which is not below the lowest one it has."""
    least, most = function.outcome_range(v_upper)
    if "lowest" not in state.tables:  # no doubt, or a printed algorithm that has no use for it
        return np.broadcast_to(least, (len(v_upper), function.shape.n_pairs))
    lowest = state.tables["lowest"].reshape(len(v_upper), -1).astype(np.int64)
    value = function.shape.discount * np.take_along_axis(v_upper, np.maximum(lowest, 0), axis=1)
    if state.inside:
        value = value + _lowest_rewards(function, state).reshape(lowest.shape)
    return np.where(lowest < 0, most, value)


def _lowest_rewards(function: DualFunction, state: LearnerState) -> FloatArray:
    if "lowest_reward" in state.tables:
        return state.tables["lowest_reward"]
    offset = np.nextafter(state.tables["lowest_offset"], np.float32(math.inf))  # rounded when it was kept
    return 0.5 * sum(function.paid) + offset.astype(np.float64)


def _weights(function: DualFunction, state: LearnerState, floor: FloatArray, most: FloatArray) -> FloatArray:
    if not function.level.is_constrained:
        return np.broadcast_to(function.level.numbers, floor.shape)
    learned = state.tables["weight"].reshape(floor.shape)
    # Far below the spread of outcomes, ratios are 0 or too large; a radius of inf has a weight of 0.
    return np.where(learned > 0.0, np.maximum(learned, _LEAST_WEIGHT * (most - floor)), learned)


def _lower_duals(
    function: DualFunction, chosen: FloatArray, least: FloatArray, most: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """eta and weight for an outcome as low as `least`: a ball's weight is free and grows with that distance.

    `chosen` are eta, weight and steepest slope of the policy's pairs, (3, R, S).
    """
    eta, weight, slope = chosen
    eta = np.clip(eta, least, most)
    if not function.level.is_constrained:
        ceiling = least + weight * (slope if function.is_smooth else 1.0)
        return np.minimum(eta, np.where(weight > 0.0, ceiling, least)), weight
    return eta, np.maximum(weight, (eta - least) / slope) if function.is_smooth else eta - least
