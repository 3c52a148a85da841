"""A world that the core draws from: a model, or a simulator in machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _core
from robustmdp._arrays import FloatArray, IndexArray
from robustmdp.learning.behaviour import BehaviourPolicy
from robustmdp.learning.sources.base import (
    Experience,
    OnlineLearner,
    Shape,
    Source,
    check_saved,
)
from robustmdp.models import columns


class CoreSource(Source):
    """Transitions drawn in compiled code, one stream of numbers per seed; subclasses make the core's `world`."""

    is_generative = learns_online = True

    def __init__(self, shape: Shape, policy: BehaviourPolicy, seeds: npt.ArrayLike, start: int) -> None:
        self.shape, self.start = shape, start
        self._policy, self.follows_q = policy, policy.follows_q
        self._keys = keys_of(seeds)
        self._states = np.full(len(self._keys), start, np.int64)

    @property
    def _streams(self) -> dict[str, Any]:
        """What every world of the core is made with: a key per seed, and who acts."""
        policy = self._policy
        epsilon = None if policy.epsilon is None else _core.Steps(*policy.epsilon)
        return {"keys": self._keys, "behaviour": policy.probabilities, "epsilon": epsilon}

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

    def sample_in_turn(self, first: int, states: IndexArray, pairs: IndexArray, room: Experience) -> None:
        """Some pairs in turn, one draw each."""
        self.world.sample_in_turn(first, states, pairs, *room)

    def sample_pair(self, first: int, pair: int, rewards: FloatArray, following: IndexArray) -> None:
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
                self._states[replication] = successor if successor < self.shape.n_states else self.start
            learner.update.absorb(step, *room)

    def number(self, replication: int, position: int) -> float:
        """A uniform number of a replication's stream."""
        return float(self.world.number(replication, position))

    def draws(self, replication: int, first: int, pair: int, count: int) -> tuple[FloatArray, IndexArray]:
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
        self._states[:] = columns.whole_numbers("states", saved["states"], self.shape.n_states - 1)


def keys_of(seeds: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    """One stream key per seed, far apart even for seeds 0, 1, 2, ..."""
    return np.array([np.random.SeedSequence(int(seed)).generate_state(1, np.uint64)[0] for seed in np.ravel(seeds)])
