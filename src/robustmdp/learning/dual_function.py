"""J, its ratio and its cost at frozen dual variables, and the outcomes that are possible in a world."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Ambiguity
from robustmdp.learning.levels import Level, level_of
from robustmdp.learning.sources import Shape

_FEW = 4.0  # samples, so that some ratio above 1 is allowed everywhere


class Tilt(NamedTuple):
    """J(eta; x) = x - w (f*(y) - y), t = f*'(y) and f(t) at y = (eta - x)/w."""

    dual: FloatArray
    ratio: FloatArray
    cost: FloatArray


class DualFunction:
    """What nature's price says of outcomes x = r + discount V(s'), discounted and in normal form.

    Rewards in nature's hands are paid and part of the outcome, others are earned beside it.
    """

    def __init__(self, ambiguity: Ambiguity, shape: Shape, inside: bool) -> None:
        rewards = shape.require_rewards("a certificate")
        self._ambiguity, self.shape = ambiguity, shape
        _checks.must(
            not self.is_smooth or hasattr(self.level.price, "renormalisation"),
            f"a certificate needs a built-in divergence: got {ambiguity!r}",
        )
        nothing = (0.0, 0.0)
        self.paid, self.earned = (rewards, nothing) if inside else (nothing, rewards)
        self.typical_earned = 0.5 * sum(self.earned)

    @cached_property
    def level(self) -> Level:
        """The level, with the compiled price, which does not travel."""
        return level_of(self._ambiguity, self.shape)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "level"}

    @property
    def is_smooth(self) -> bool:
        """Has f* derivatives?"""
        return self.level.is_robust and self.level.is_smooth

    @property
    def power(self) -> float:
        """k, in bounds of t^k."""
        return float(self.level.price.k)

    def outcome_range(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least and the largest outcome at values (R, S + 1), the end last: (R, 1) each."""
        reachable, discount = v if self.shape.can_end else v[:, :-1], self.shape.discount
        return (
            self.paid[0] + discount * reachable.min(axis=1, keepdims=True),
            self.paid[1] + discount * reachable.max(axis=1, keepdims=True),
        )

    def value(self, eta: FloatArray, weight: FloatArray, x: FloatArray) -> FloatArray:
        """J at one outcome per cell; min(x, eta) for total variation and for a weight of 0."""
        x = np.broadcast_to(x, eta.shape)
        if not self.level.is_robust:
            return x
        cut = np.minimum(x, eta)
        return np.where(weight > 0.0, self.tilt(eta, weight, x).dual, cut) if self.is_smooth else cut

    def tilt(self, eta: FloatArray, weight: FloatArray, x: FloatArray) -> Tilt:
        """Of a smooth f* at one outcome per cell; of no meaning where the weight is 0."""
        found = np.empty((3, eta.size))
        weight = np.where(weight > 0.0, weight, 1.0)
        columns = (np.ascontiguousarray(np.broadcast_to(part, eta.shape)).reshape(-1) for part in (eta, weight, x))
        self.level.price.tilt(*columns, *found)
        return Tilt(*(part.reshape(eta.shape) for part in found))

    def steepest(self, samples: FloatArray) -> FloatArray:
        """The largest y at which no sample can make up for all others: f*(y) and f*'(y) are at most sqrt(samples)."""
        if not self.is_smooth:
            return np.broadcast_to(math.inf, samples.shape)
        root, k = np.sqrt(np.maximum(samples, _FEW)), self.power
        largest = np.minimum(root, (1.0 + k * root) ** (1.0 / k)) if k > 0.0 else root
        slope = np.empty(largest.size)
        self.level.price.slope(largest.reshape(-1), slope)
        return slope.reshape(samples.shape)
