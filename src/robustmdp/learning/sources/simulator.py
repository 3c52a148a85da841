"""A world that exists only as code: Python code is called transition by transition, a Numba function compiled in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import numpy as np

from robustmdp import _checks, _core
from robustmdp._arrays import FloatArray, IndexArray
from robustmdp.learning.behaviour import BehaviourPolicy
from robustmdp.learning.sources.base import (
    Experience,
    OnlineLearner,
    SavedGenerator,
    SteppedSource,
    Transition,
    check_saved,
    decode_generator,
    encode_generator,
)
from robustmdp.learning.sources.core import hash_simulator, simulator_shape
from robustmdp.models import Simulator, columns


class SimulatorSource(SteppedSource):
    """A Simulator: Python code is called for each transition, a Numba function from compiled code."""

    is_generative = True
    name = "Simulator"

    def __init__(self, simulator: Simulator, policy: BehaviourPolicy, seed: int) -> None:
        self.shape = simulator_shape(simulator)
        self._simulator, self._policy = simulator, policy
        self._world_rng, self._choice_rng = (
            np.random.Generator(np.random.PCG64(part)) for part in np.random.SeedSequence(seed).spawn(2)
        )
        self._state = simulator.start
        self.learns_online = policy.follows_q

    @property
    def _loops(self) -> Any:
        """Compiled loops around a compiled function, otherwise None."""
        if not self._simulator.compiled:
            return None
        from robustmdp.learning.sources.compiled import compile_loops  # needs Numba, as the function did

        return compile_loops(self._simulator.sample)

    def follow_policy(self, first: int, room: Experience) -> int:
        if self._loops is None:
            return super().follow_policy(first, room)
        edges, rngs = self._policy.cumulative(), (self._choice_rng, self._world_rng)
        places = self._simulator.start, self._state
        self._state = self._loops.follow_policy(edges, self.shape.n_states, *rngs, *places, *room)
        self._check(room)
        return room.length

    def _act(self, choose: Callable[[int, int, float], int], first: int, count: int) -> Iterator[Transition]:
        world, n_actions = self._simulator, self.shape.n_actions
        for step, u in enumerate(self._choice_rng.random(count).tolist(), start=first):
            state = self._state
            pair = choose(step, state, u)
            reward, following, terminated = world.outcome(state, pair - state * n_actions, self._world_rng)
            self._state = world.start if terminated else following
            yield state, pair, reward, self.shape.n_states if terminated else following

    def sample_all_pairs(self, first: int, room: Experience) -> int:
        shape = self.shape
        if self._loops is not None:
            self._loops.sample_all_pairs(shape.n_states, shape.n_actions, self._world_rng, first, *room)
            self._check(room)
            return room.length
        for step in range(room.length):
            pair = (first + step) % shape.n_pairs
            room.states[step], room.pairs[step] = pair // shape.n_actions, pair
            self.sample_pair(first, pair, room.rewards[step : step + 1], room.following[step : step + 1])
        return room.length

    def sample_pair(self, first: int, pair: int, rewards: FloatArray, following: IndexArray) -> None:
        state, action = divmod(pair, self.shape.n_actions)
        for draw in range(len(rewards)):
            rewards[draw], successor, terminated = self._simulator.outcome(state, action, self._world_rng)
            following[draw] = self.shape.n_states if terminated else successor

    def number(self, replication: int, position: int) -> float:
        return float(self._choice_rng.random())

    def draws(self, replication: int, first: int, pair: int, count: int) -> tuple[FloatArray, IndexArray]:
        rewards, following = np.empty(count), np.empty(count, np.int32)
        self.sample_pair(first, pair, rewards, following)
        return rewards, following

    def learn_online(self, learner: OnlineLearner, first: int, count: int) -> None:
        if self._loops is None or self._policy.epsilon is None:
            super().learn_online(learner, first, count)
            return
        world, shape, epsilons = self._simulator, self.shape, np.empty(count)
        _core.Steps(*self._policy.epsilon).fill(first, epsilons)
        rngs = self._choice_rng, self._world_rng
        place = world.start, *map(float, world.reward_range), first, self._state
        self._state, pair, reward, successor = self._loops.learn_online(
            learner.update.address, epsilons, shape.n_states, shape.n_actions, *rngs, *place
        )
        self._check(Experience(*(np.array([[value]]) for value in (0, pair, reward, successor))))

    def _check(self, room: Experience) -> None:
        """What compiled code cannot say itself."""
        low, high = self._simulator.reward_range
        following, rewards = room.following[:, 0], room.rewards[:, 0]
        wrong = (following < 0) | ~((rewards >= low) & (rewards <= high))
        if not wrong.any():
            return
        at = int(np.argmax(following < 0 if (following < 0).any() else wrong))
        state, action = divmod(int(room.pairs[at, 0]), self.shape.n_actions)
        where = f"from state {state}, action {action}"
        if following[at] < 0:
            _checks.fail(f"next_state must lie in 0..{self.shape.n_states - 1}: got {rewards[at]:.0f} {where}")
        sentence = f"reward must lie in reward_range [{low:g}, {high:g}]: got {rewards[at]} {where}"
        _checks.fail(sentence, argument="reward_range")

    def save(self) -> dict[str, Any]:
        generators = [rng.bit_generator.state for rng in (self._world_rng, self._choice_rng)]
        return {"state": int(self._state), "generators": [encode_generator(state) for state in generators]}

    def load(self, saved: dict[str, Any]) -> None:
        check_saved(saved, state=int, generators=tuple[SavedGenerator, SavedGenerator])
        self._state = int(columns.whole_numbers("state", saved["state"], self.shape.n_states - 1))
        for rng, state in zip((self._world_rng, self._choice_rng), saved["generators"], strict=True):
            rng.bit_generator.state = decode_generator(state)

    @property
    def fingerprint(self) -> str:
        """Its sizes and the bytes of its code; what the code calls cannot be known."""
        sample = self._simulator.sample
        code = getattr(getattr(sample, "py_func", sample), "__code__", None)
        body = type(sample).__name__ if code is None else _describe_code(code)
        return hash_simulator(self.shape, self._simulator.start, body)


def _describe_code(part: Any) -> Any:
    """Code and its constants by what they hold: reprs show addresses of nested functions and sets in any order."""
    if isinstance(part, CodeType):
        return tuple(map(_describe_code, (part.co_code, part.co_consts, part.co_names)))
    if isinstance(part, tuple):
        return tuple(map(_describe_code, part))
    return sorted(repr(_describe_code(entry)) for entry in part) if isinstance(part, frozenset) else part
