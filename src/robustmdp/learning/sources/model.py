"""An MDP, sampled in compiled code."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy.typing as npt

from robustmdp import _checks, _core
from robustmdp.learning.behaviour import BehaviourPolicy
from robustmdp.learning.sources.base import Shape, hash_parts
from robustmdp.learning.sources.core import CoreSource
from robustmdp.models import MDP


class ModelSource(CoreSource):
    """An MDP."""

    def __init__(
        self,
        mdp: MDP,
        policy: BehaviourPolicy,
        seeds: npt.ArrayLike,
        start: int,
        reward_range: tuple[float, float] | None,
    ) -> None:
        rewards = mdp.reward_range
        if reward_range is not None:
            low, high = reward_range
            _checks.must(
                low <= rewards[0] and rewards[1] <= high,
                f"reward_range must hold the MDP's rewards, {rewards[0]:g} to {rewards[1]:g}: got {reward_range!r}",
            )
        shape = Shape(
            n_actions=mdp.n_actions,
            state_ptr=mdp.state_ptr,
            actions=mdp.actions,
            discount=mdp.discount,
            reward_range=reward_range or rewards,
            can_end=mdp.can_end,
            rewards_on_successors=mdp.rewards_on_successors,
            state_names=mdp.state_names,
            action_names=mdp.action_names,
        )
        self.mdp, self.name = mdp, "MDP"
        _checks.must(0 <= start < mdp.n_states, f"start must lie in 0..{mdp.n_states - 1}: got {start}")
        super().__init__(shape, policy, seeds, start)

    @cached_property
    def world(self) -> Any:
        """The compiled world."""
        mdp = self.mdp
        model = _core.Model(
            mdp.indptr, mdp.indices, mdp.probabilities, mdp.rewards, mdp.state_ptr, mdp.longest_row,
            mdp.rewards_on_successors,
        )  # fmt: skip
        return _core.World(model, **self._streams)

    @property
    def fingerprint(self) -> str:
        """A hash of the model."""
        m = self.mdp
        return hash_parts(m.indptr, m.indices, m.probabilities, m.rewards, m.state_ptr, m.actions, m.discount)
