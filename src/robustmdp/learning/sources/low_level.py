"""A simulator in machine code, which the core calls by its address."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy.typing as npt

from robustmdp import _core, _low_level
from robustmdp.learning.behaviour import BehaviourPolicy
from robustmdp.learning.sources.base import hash_parts, simulator_shape
from robustmdp.learning.sources.core import CoreSource
from robustmdp.models import Simulator
from robustmdp.models.simulator import SIGNATURE


class LowLevelSource(CoreSource):
    """A Simulator whose function is a `scipy.LowLevelCallable`."""

    def __init__(self, simulator: Simulator, policy: BehaviourPolicy, seeds: npt.ArrayLike) -> None:
        shape = simulator_shape(simulator)
        self._simulator, self.name = simulator, "Simulator"
        super().__init__(shape, policy, seeds, simulator.start)

    @cached_property
    def world(self) -> Any:
        """The compiled world."""
        code, shape = _low_level.machine_code(self._simulator.sample, SIGNATURE), self.shape
        low, high = shape.reward_range or (0.0, 0.0)
        return _core.SimulatedWorld(
            code.address, code.user_data, shape.state_ptr, shape.n_actions, low, high, **self._streams
        )

    @property
    def fingerprint(self) -> str:
        """Its sizes and its signature: what machine code does cannot be known."""
        shape = self.shape
        sizes = int(shape.n_states), int(shape.n_actions), float(shape.discount), shape.reward_range
        return hash_parts(*sizes, int(self.start), SIGNATURE)
