"""An MDP, sampled in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.learning import sampling, updates
from robustmdp.learning.behaviour import Chances
from robustmdp.learning.sources.base import Experience, Explorer, FloatArray, IntArray, Shape, hashed
from robustmdp.learning.streams import keys_of
from robustmdp.models import MDP


class ModelSource:
    """An MDP, sampled in compiled code; one stream of numbers per seed."""

    length: int | None = None

    def __init__(
        self,
        mdp: MDP,
        chances: Chances,
        seeds: npt.ArrayLike,
        start: int,
        specialise: Callable[[Any], Any],
        reward_range: tuple[float, float] | None,
    ) -> None:
        rewards = mdp.reward_range
        if reward_range is not None:
            low, high = reward_range
            _checks.must(
                low <= rewards[0] and rewards[1] <= high,
                f"reward_range must hold the MDP's rewards, {rewards[0]:g} to {rewards[1]:g}: got {reward_range!r}",
            )
        self.shape = Shape(
            n_states=mdp.n_states,
            n_actions=mdp.n_actions,
            state_ptr=np.asarray(mdp.state_ptr),
            actions=np.asarray(mdp.actions),
            discount=mdp.discount,
            reward_range=reward_range or rewards,
            can_end=mdp.can_end,
            rewards_on_successors=mdp.rewards_on_successors,
            state_names=mdp.state_names,
            action_names=mdp.action_names,
        )
        self.mdp, self.name = mdp, "MDP"
        _checks.must(0 <= start < mdp.n_states, f"start must lie in 0..{mdp.n_states - 1}: got {start}")
        self._start = start
        keep, other = np.empty(mdp.nnz), np.empty(mdp.nnz, mdp.indices.dtype)
        sampling.alias_tables(mdp.indptr, mdp.probabilities, keep, other)
        self._world = (mdp.indptr, mdp.indices, mdp.rewards, mdp.rewards_on_successors, keep, other)
        self._behaviour = chances.tables(self.shape.state_ptr)
        self._keys = keys_of(seeds)
        self._states = np.full(len(self._keys), start, np.int64)
        self.follows_q = chances.follows_q
        self.explorer: Explorer | None = self._explore if chances.follows_q else None
        self._specialise = specialise

    def walk(self, first: int, room: Experience, greedy: IntArray) -> int:
        """One trajectory per replication."""
        sampling.wander_all(
            self._world, self._behaviour, greedy, self._keys, 2 * first, self._start, self._states, room
        )
        return room.length

    def tour(self, first: int, room: Experience) -> int:
        """All pairs in turn, one draw each."""
        sampling.tour_all(self._world, self.shape.state_ptr, self._keys, first, room)
        return room.length

    def consult(self, first: int, pair: int, rewards: FloatArray, following: IntArray) -> None:
        """Independent draws of one pair, (draws, replications)."""
        sampling.consult_all(self._world, self._keys, first, pair, rewards, following)

    def sweeper(self, first: int, learner: tuple[Any, ...], rewards: FloatArray, following: IntArray) -> None:
        """All pairs, each asked and refined."""
        self._specialise(updates.sweep_model)(self._world, self._keys, first, learner, rewards, following)

    def _explore(self, count: int, learner: tuple[Any, ...], update: Callable[..., None]) -> None:
        del update  # it is compiled in
        room = Experience.empty(len(self._keys), 1)
        place = (self._world, self._behaviour, self._keys, self._start, self._states)
        self._specialise(updates.explore_model)(place, room, count, learner)

    def number(self, replication: int, position: int) -> float:
        """A uniform number of a replication's stream."""
        return float(sampling.uniform_number(self._keys[replication], position))

    def draws(self, replication: int, first: int, pair: int, count: int) -> tuple[FloatArray, IntArray]:
        """Rewards and successors of `count` draws of one pair for one replication."""
        rewards, following = np.empty((count, 1)), np.empty((count, 1), np.int32)
        sampling.consult_all(self._world, self._keys[replication : replication + 1], first, pair, rewards, following)
        return rewards[:, 0], following[:, 0]

    def save(self) -> dict[str, Any]:
        """Where the trajectories are."""
        return {"states": self._states.tolist()}

    def load(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        self._states[:] = saved["states"]

    @property
    def fingerprint(self) -> str:
        """A hash of the model."""
        m = self.mdp
        return hashed(m.indptr, m.indices, m.probabilities, m.rewards, m.state_ptr, m.actions, m.discount)
