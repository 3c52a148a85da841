"""Worlds that the core draws from: a model, or a simulator in machine code, which it calls by its address."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core, _low_level
from robustmdp._arrays import FloatArray, IndexArray
from robustmdp.learning.behaviour import BehaviourPolicy
from robustmdp.learning.sources.base import (
    Experience,
    OnlineLearner,
    Shape,
    Source,
    check_saved,
    full_shape,
    hash_parts,
)
from robustmdp.models import MDP, Simulator, columns
from robustmdp.models.simulator import SIGNATURE


class CoreSource(Source):
    """Transitions drawn in compiled code, one stream of numbers per seed; subclasses make the core's `world`."""

    is_generative = learns_online = True

    def __init__(self, shape: Shape, policy: BehaviourPolicy, seeds: npt.ArrayLike, start: int) -> None:
        self.shape, self.start = shape, start
        self._policy, self.follows_q = policy, policy.follows_q
        # One stream key per seed, far apart even for seeds 0, 1, 2, ...
        keys = [np.random.SeedSequence(int(seed)).generate_state(1, np.uint64)[0] for seed in np.ravel(seeds)]
        self._keys = np.array(keys)
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
        self.world.follow_policy(first, self.start, self._states, *room)
        return room.length

    def sample_all_pairs(self, first: int, room: Experience) -> int:
        self.world.sample_all_pairs(first, *room)
        return room.length

    def sample_in_turn(self, first: int, states: IndexArray, pairs: IndexArray, room: Experience) -> None:
        self.world.sample_in_turn(first, states, pairs, *room)

    def sample_pair(self, first: int, pair: int, rewards: FloatArray, following: IndexArray) -> None:
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
        return float(self.world.number(replication, position))

    def draws(self, replication: int, first: int, pair: int, count: int) -> tuple[FloatArray, IndexArray]:
        rewards, following = np.empty(count), np.empty(count, np.int64)
        self.world.draws(replication, first, pair, rewards, following)
        return rewards, following

    def save(self) -> dict[str, Any]:
        return {"states": self._states.tolist()}

    def load(self, saved: dict[str, Any]) -> None:
        check_saved(saved, states=list[int])
        self._states[:] = columns.whole_numbers("states", saved["states"], self.shape.n_states - 1)


class ModelSource(CoreSource):
    """An MDP."""

    name = "MDP"

    def __init__(
        self,
        mdp: MDP,
        policy: BehaviourPolicy,
        seeds: npt.ArrayLike,
        start: int,
        reward_range: tuple[float, float] | None,
    ) -> None:
        rewards = mdp.reward_range
        low, high = reward_range or rewards
        _checks.must(
            low <= rewards[0] and rewards[1] <= high,
            f"reward_range must hold the MDP's rewards, {rewards[0]:g} to {rewards[1]:g}: got {reward_range!r}",
        )
        _checks.must(0 <= start < mdp.n_states, f"start must lie in 0..{mdp.n_states - 1}: got {start}")
        shape = Shape(
            n_actions=mdp.n_actions,
            state_ptr=mdp.state_ptr,
            actions=mdp.actions,
            discount=mdp.discount,
            reward_range=(low, high),
            can_end=mdp.can_end,
            rewards_on_successors=mdp.rewards_on_successors,
            state_names=mdp.state_names,
            action_names=mdp.action_names,
        )
        self.mdp = mdp
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
        m = self.mdp
        return hash_parts(m.indptr, m.indices, m.probabilities, m.rewards, m.state_ptr, m.actions, m.discount)


class LowLevelSource(CoreSource):
    """A Simulator whose function is a `scipy.LowLevelCallable`."""

    name = "Simulator"

    def __init__(self, simulator: Simulator, policy: BehaviourPolicy, seeds: npt.ArrayLike) -> None:
        self._simulator = simulator
        super().__init__(simulator_shape(simulator), policy, seeds, simulator.start)

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
        return hash_simulator(self.shape, self.start, SIGNATURE)  # what machine code does cannot be known


def simulator_shape(simulator: Simulator) -> Shape:
    """That of a world whose function draws the transitions."""
    low, high = (float(bound) for bound in simulator.reward_range)
    return full_shape(simulator.n_states, simulator.n_actions, simulator.discount, (low, high), simulator)


def hash_simulator(shape: Shape, start: int, code: Any) -> str:
    """A hash of its sizes and of what is known of its code."""
    return hash_parts(
        int(shape.n_states), int(shape.n_actions), float(shape.discount), shape.reward_range, int(start), code
    )
