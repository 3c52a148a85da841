"""An MDP, sampled in compiled code."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core
from robustmdp.learning.behaviour import BehaviourPolicy
from robustmdp.learning.sources.base import (
    Experience,
    FloatArray,
    IntArray,
    OnlineLearner,
    Shape,
    Source,
    check_saved,
    hash_parts,
)
from robustmdp.models import MDP, columns


class ModelSource(Source):
    """An MDP, sampled in compiled code; one stream of numbers per seed."""

    is_generative = learns_online = True

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
        self.shape = Shape(
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
        self.start = start
        self._policy, self.follows_q = policy, policy.follows_q
        self._keys = keys_of(seeds)
        self._states = np.full(len(self._keys), start, np.int64)

    @cached_property
    def world(self) -> Any:
        """The compiled world."""
        mdp, policy = self.mdp, self._policy
        model = _core.Model(
            mdp.indptr, mdp.indices, mdp.probabilities, mdp.rewards, mdp.state_ptr, mdp.longest_row,
            mdp.rewards_on_successors,
        )  # fmt: skip
        epsilon = None if policy.epsilon is None else _core.Steps(*policy.epsilon)
        return _core.World(model, self._keys, policy.probabilities, epsilon)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "world"}

    def follow_policy(self, first: int, room: Experience) -> int:
        """One trajectory per replication."""
        self.world.follow_policy(first, self.start, self._states, *room)
        return room.length

    def sample_all_pairs(self, first: int, room: Experience) -> int:
        """All pairs in turn, one draw each."""
        self.world.sample_all_pairs(first, *room)
        return room.length

    def sample_pair(self, first: int, pair: int, rewards: FloatArray, following: IntArray) -> None:
        """Independent draws of one pair, (draws, replications)."""
        self.world.sample_pair(first, pair, rewards, following)

    def learn_online(self, learner: OnlineLearner, first: int, count: int) -> None:
        """Compiled, but for a policy that is a function of Python."""
        if self._policy.function is None:
            learner.update.learn_online(self.world, first, count, self.start, self._states)
            return
        choose, room = learner.build_chooser(self._policy), Experience.empty(len(self._keys), 1)
        for step in range(first, first + count):
            for replication, state in enumerate(self._states.tolist()):
                pair = choose(replication, step, state, self.number(replication, 2 * step))
                rewards, following = self.draws(replication, 2 * step + 1, pair, 1)
                reward, successor = rewards[0], following[0]
                for column, value in zip(room, (state, pair, reward, successor), strict=True):
                    column[0, replication] = value
                self._states[replication] = successor if successor < self.mdp.n_states else self.start
            learner.update.absorb(step, *room)

    def number(self, replication: int, position: int) -> float:
        """A uniform number of a replication's stream."""
        return float(self.world.number(replication, position))

    def draws(self, replication: int, first: int, pair: int, count: int) -> tuple[FloatArray, IntArray]:
        """Rewards and successors of `count` draws of one pair for one replication."""
        rewards, following = np.empty(count), np.empty(count, np.int64)
        self.world.draws(replication, first, pair, rewards, following)
        return rewards, following

    def save(self) -> dict[str, Any]:
        """Where the trajectories are."""
        return {"states": self._states.tolist()}

    def load(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        check_saved(saved, states=list[int])
        self._states[:] = columns.whole_numbers("states", saved["states"], self.mdp.n_states - 1)

    @property
    def fingerprint(self) -> str:
        """A hash of the model."""
        m = self.mdp
        return hash_parts(m.indptr, m.indices, m.probabilities, m.rewards, m.state_ptr, m.actions, m.discount)


def keys_of(seeds: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    """One stream key per seed, far apart even for seeds 0, 1, 2, ..."""
    return np.array([np.random.SeedSequence(int(seed)).generate_state(1, np.uint64)[0] for seed in np.ravel(seeds)])
