"""Where transitions come from: a model, code, an environment or a log, behind one small interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robustmdp import _checks
from robustmdp.learning.behaviour import check_behaviour
from robustmdp.learning.sources.base import Experience as Experience
from robustmdp.learning.sources.base import Shape as Shape
from robustmdp.learning.sources.base import Source as Source
from robustmdp.learning.sources.base import check_reward_range
from robustmdp.learning.sources.core import LowLevelSource, simulator_shape
from robustmdp.learning.sources.core import ModelSource as ModelSource
from robustmdp.learning.sources.environment import EnvironmentSource
from robustmdp.learning.sources.log import LogSource as LogSource
from robustmdp.learning.sources.log import OnPolicySource as OnPolicySource
from robustmdp.learning.sources.simulator import SimulatorSource
from robustmdp.models import MDP, Simulator, Trajectory
from robustmdp.models.space import place_of_name

DEFAULT_DISCOUNT = 0.95  # for worlds that have none of their own, as for Gymnasium ids on the command line


def source_of(
    world: Any,
    behaviour: Any,
    seeds: Sequence[int],
    *,
    discount: float | None,
    reward_range: tuple[float, float] | None,
    start: int | str | None,
) -> Source:
    """The world as a source of transitions."""
    if isinstance(world, Source):
        return world
    if reward_range is not None:
        reward_range = check_reward_range(reward_range)
    if isinstance(world, MDP) and isinstance(start, str):
        start = place_of_name("start", start, world.state_names)
    if start is not None and (isinstance(start, bool) or not isinstance(start, int | np.integer)):
        raise TypeError(f"start must be a whole number: got {start!r}")
    if isinstance(world, MDP):
        world = world.with_discount(_checks.discount(world.discount if discount is None else discount))
        return ModelSource(world, check_behaviour(behaviour, world), seeds, start or 0, reward_range)
    if isinstance(world, Simulator):
        changes: dict[str, Any] = {"discount": discount, "start": start, "reward_range": reward_range}
        world = replace(world, **{name: value for name, value in changes.items() if value is not None})
        policy = check_behaviour(behaviour, simulator_shape(world))
        if world.is_low_level:
            return LowLevelSource(world, policy, seeds)
        return SimulatorSource(world, policy, _single(seeds, world))
    seed = _single(seeds, world)
    _checks.must(start is None, "start must be given for an MDP or a Simulator: other worlds begin where they begin")
    if isinstance(world, Trajectory) and discount is None:
        discount = world.discount
    gamma = _checks.discount(DEFAULT_DISCOUNT if discount is None else discount)
    if isinstance(world, Trajectory):
        return LogSource(world, gamma, reward_range)
    if hasattr(world, "step") and hasattr(world, "observation_space"):
        return EnvironmentSource(world, behaviour, seed, gamma, reward_range)
    raise TypeError(
        f"world must be an MDP, a Simulator, a Trajectory or a Gymnasium environment: got {type(world).__name__}"
    )


def is_drawn_by_core(world: Any) -> bool:
    """Does the core draw the transitions, of several replications side by side and without the GIL?"""
    return isinstance(world, MDP) or (isinstance(world, Simulator) and world.is_low_level)


def _single(seeds: Sequence[int], world: Any) -> int:
    _checks.must(len(seeds) == 1, f"several replications at once need an MDP: got a {type(world).__name__}")
    return seeds[0]
