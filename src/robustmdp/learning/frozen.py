"""What is fixed before the first certifying sample: a policy, two values, and dual variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import FloatArray, IntArray
from robustmdp.learning.dual_function import DualFunction
from robustmdp.learning.sources import Shape
from robustmdp.learning.tables import LearnerState

Samples = Callable[[slice], FloatArray]
_PAIRS_AT_ONCE = 1 << 16
_BELOW = 0.95  # of a ball's ceiling above the floor: outcomes at the ceiling itself, the quantile, must be above it
_LEAST_WEIGHT = 1e-3  # of a ball, in spreads of outcomes


class Frozen(NamedTuple):
    """Tables of R replications of S states and P pairs."""

    policy: npt.NDArray[np.int32]  # (R, K) pairs: K = S, one per state, or K = P where actions are mixed
    v_lower: FloatArray  # (R, S + 1), the end last
    v_upper: FloatArray
    eta: npt.NDArray[np.float32]  # (R, P); without a smooth f* a ceiling of outcomes
    weight: FloatArray  # (R, P)
    floor: npt.NDArray[np.float32]  # (R, P): the lowest outcome that has been seen, rounded upwards
    centre: FloatArray  # (R, P): about the mean of earned + J
    eta_lower: FloatArray  # (R, K), for lower bounds, where nature may find an outcome that was never seen
    weight_lower: FloatArray  # (R, K)


class Block(NamedTuple):
    """Some neighbouring states and their pairs: what has large tables is worked through in blocks."""

    states: slice
    pairs: slice
    starts: npt.NDArray[Any]  # of each state's pairs, within the block
    mixture: FloatArray | None  # of the pairs, where the policy mixes actions

    @property
    def own(self) -> slice:
        """Entries of tables that have one per pair of the policy."""
        return self.states if self.mixture is None else self.pairs

    def over_actions(self, values: FloatArray) -> FloatArray:
        """Of each state the largest value of its pairs, or their mean where the policy mixes actions; (R, pairs)."""
        if self.mixture is not None:
            return self.over_policy(values)
        largest: FloatArray = np.maximum.reduceat(values, self.starts, axis=1)
        return largest

    def over_policy(self, values: FloatArray) -> FloatArray:
        """Of each state the mean over the policy's pairs, (R, own)."""
        if self.mixture is None:
            return values
        mean: FloatArray = np.add.reduceat(self.mixture * values, self.starts, axis=1)
        return mean

    def choose(self, q: FloatArray) -> tuple[FloatArray, IntArray]:
        """Values of the states and pairs of the policy: the first best ones, or all that a given policy mixes."""
        if self.mixture is not None:
            return self.over_policy(q), np.arange(q.shape[1])
        top, last = np.maximum.reduceat(q, self.starts, axis=1), q.shape[1] - 1
        sizes = np.diff(self.starts, append=q.shape[1])
        candidates = np.where(q == np.repeat(top, sizes, axis=1), np.arange(q.shape[1]), last)  # NaN has none
        return top, np.minimum.reduceat(candidates, self.starts, axis=1)


def split_states(shape: Shape) -> Iterator[Block]:
    """All states, in blocks of about 65,536 pairs."""
    state_ptr, first = shape.state_ptr, 0
    while first < len(state_ptr) - 1:
        last = int(np.searchsorted(state_ptr, state_ptr[first] + _PAIRS_AT_ONCE, side="right")) - 1
        last = min(max(last, first + 1), len(state_ptr) - 1)
        pairs = slice(int(state_ptr[first]), int(state_ptr[last]))
        yield Block(
            slice(first, last),
            pairs,
            state_ptr[first:last] - state_ptr[first],
            None if shape.mixture is None else shape.mixture[pairs],
        )
        first = last


def freeze(function: DualFunction, state: LearnerState, samples: Samples, margins: dict[str, Any]) -> Frozen:
    """What was learned; `samples(pairs)` to expect of some pairs; `margins` of V, (R, S + 1), once they are known."""
    shape, replications = function.shape, len(state.diverged)
    low, high = shape.value_range
    q = state.q().reshape(replications, shape.n_pairs)
    if not (q.min() >= low and q.max() <= high):  # the copy is saved where it can be
        q = np.clip(np.nan_to_num(q), low, high)
    v_lower = np.zeros((replications, shape.n_states + 1))
    policy = np.empty((replications, shape.policy_size), np.int32)
    for block in split_states(shape):
        v, pairs = block.choose(q[:, block.pairs])
        v_lower[:, block.states], policy[:, block.own] = np.clip(v, low, high), pairs + block.pairs.start
    v_upper = v_lower
    if margins:
        least, most = (np.append(np.full(shape.n_states, bound), 0.0) for bound in (low, high))
        v_lower = np.maximum(v_lower - margins["lower"], least)
        v_upper = np.minimum(v_upper + margins["upper"], most)
    ball = function.level.is_constrained
    frozen = Frozen(
        policy,
        v_lower,
        v_upper,
        eta=np.empty(q.shape, np.float32),
        weight=np.empty(q.shape) if ball else np.broadcast_to(function.level.numbers, q.shape),
        floor=np.empty(q.shape, np.float32),
        centre=q.copy() if ball else q,
        eta_lower=np.empty(policy.shape),
        weight_lower=np.empty(policy.shape),
    )
    for block in split_states(shape):
        _freeze_block(function, state, samples(block.pairs), frozen, block)
    return frozen


def _freeze_block(
    function: DualFunction, state: LearnerState, samples: FloatArray, frozen: Frozen, block: Block
) -> None:
    pairs, ball = block.pairs, function.level.is_constrained
    tables = _tables_of(state, function.shape.n_pairs, pairs)
    most = function.outcome_range(frozen.v_upper)[1]
    frozen.floor[:, pairs] = _round_up(_floors(function, state.inside, tables, frozen.v_upper, samples.shape))
    floor = frozen.floor[:, pairs].astype(np.float64)
    weight, slope = frozen.weight[:, pairs], function.steepest(samples)
    if ball:
        # Far below the spread of outcomes, ratios are 0 or too large; a radius of inf has a weight of 0.
        learned = tables["weight"]
        weight[:] = np.where(learned > 0.0, np.maximum(learned, _LEAST_WEIGHT * (most - floor)), learned)
    eta = floor + (_BELOW if ball else 1.0) * weight
    if function.is_smooth:
        learned = np.clip(tables["eta"], floor, floor + weight * slope)
        eta = np.where(weight > 0.0, np.where(np.isnan(learned), floor, learned), eta)
    frozen.eta[:, pairs] = _round_up(eta)  # a ceiling of min x + w must not be below it
    if ball:  # of a reward and of an outcome, each within its range
        typical = function.typical_earned
        frozen.centre[:, pairs] = typical + np.clip(frozen.centre[:, pairs] - typical, floor, np.maximum(most, floor))
    policy = frozen.policy[:, block.own] - pairs.start
    chosen = np.stack([np.take_along_axis(table, policy, axis=1) for table in (eta, weight, slope)])
    frozen.eta_lower[:, block.own], frozen.weight_lower[:, block.own] = _lower_duals(
        function, chosen, *function.outcome_range(frozen.v_lower)
    )


def _tables_of(state: LearnerState, n_pairs: int, pairs: slice) -> dict[str, npt.NDArray[Any]]:
    """Tables of some pairs, (R, pairs) each, with the learned eta."""
    replications = range(len(state.diverged))
    names = state.tables.keys() & {"lowest", "lowest_reward", "lowest_offset", "weight"}
    tables = {name: state.tables[name].reshape(-1, n_pairs)[:, pairs] for name in names}
    spans = [slice(r * n_pairs + pairs.start, r * n_pairs + pairs.stop) for r in replications]
    return tables | {"eta": np.stack([state.eta(span) for span in spans])}


def _floors(
    function: DualFunction, inside: bool, tables: dict[str, Any], v_upper: FloatArray, shape: tuple[int, ...]
) -> FloatArray:
    """The lowest outcome that a pair is known to have, which is not below the lowest one it has."""
    least, most = function.outcome_range(v_upper)
    if "lowest" not in tables:  # no doubt, or a printed algorithm that has no use for it
        return np.broadcast_to(least, shape)
    lowest = tables["lowest"].astype(np.int64)
    value = function.shape.discount * np.take_along_axis(v_upper, np.maximum(lowest, 0), axis=1)
    if inside and "lowest_reward" in tables:
        value = value + tables["lowest_reward"]
    elif inside:
        offset = _round_up(tables["lowest_offset"])  # rounded when it was kept
        value = value + (0.5 * sum(function.paid) + offset.astype(np.float64))
    return np.where(lowest < 0, most, value)


def _round_up(numbers: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    return np.nextafter(numbers.astype(np.float32), np.float32(math.inf))


def _lower_duals(
    function: DualFunction, chosen: FloatArray, least: FloatArray, most: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """eta and weight for an outcome as low as `least`: a ball's weight is free and grows with that distance.

    `chosen` are eta, weight and steepest slope of the policy's pairs, (3, R, K).
    """
    eta, weight, slope = chosen
    eta = np.clip(eta, least, most)
    if not function.level.is_constrained:
        ceiling = least + weight * (slope if function.is_smooth else 1.0)
        return np.minimum(eta, np.where(weight > 0.0, ceiling, least)), weight
    return eta, np.maximum(weight, (eta - least) / slope) if function.is_smooth else eta - least
