"""A world that exists only as code: Python code is called transition by transition, a Numba function compiled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from robustmdp import _checks
from robustmdp.learning import _jit, sampling, updates
from robustmdp.learning.behaviour import Chances
from robustmdp.learning.sources.base import (
    Experience,
    Explorer,
    FloatArray,
    IntArray,
    Sweeper,
    full_shape,
    hashed,
    numbers,
    plain,
)
from robustmdp.models import Simulator


class SimulatorSource:
    """A Simulator: Python code is called for each transition, a Numba function from compiled code."""

    length: int | None = None

    sweeper: Sweeper | None = None

    def __init__(self, simulator: Simulator, chances: Chances, seed: int, specialise: Callable[[Any], Any]) -> None:
        low, high = (float(bound) for bound in simulator.reward_range)
        self.shape = full_shape(
            simulator.n_states,
            simulator.n_actions,
            discount=simulator.discount,
            reward_range=(low, high),
            can_end=True,  # only its code knows
            rewards_on_successors=True,
            state_names=simulator.state_names,
            action_names=simulator.action_names,
        )
        self.name = "Simulator"
        self._simulator, self._chances = simulator, chances
        self._world_rng, self._choice_rng = (
            np.random.Generator(np.random.PCG64(part)) for part in np.random.SeedSequence(seed).spawn(2)
        )
        self._state = simulator.start
        self.follows_q = chances.follows_q
        self.explorer: Explorer | None = self._explore if chances.follows_q and simulator.compiled else None
        if simulator.compiled:
            done: dict[Any, Any] = {sampling.simulate: simulator.sample}
            self._wander_and_learn = _jit.respecialise(specialise(updates.explore_simulator), done)
            self._wander = _jit.respecialise(sampling.wander_simulated, done)
            self._tour = _jit.respecialise(sampling.tour_simulated, done)
            self._behaviour = chances.tables(self.shape.state_ptr)
        else:
            self._choose = chances.chooser(self.shape.state_ptr)

    def walk(self, first: int, room: Experience, greedy: IntArray) -> int:
        """One trajectory."""
        del first
        if self._simulator.compiled:
            self._state = self._wander(
                self._behaviour, greedy, self._choice_rng, self._world_rng, self._simulator.start, self._state, room
            )
            self._check(room)
            return room.length
        shape, world = self.shape, self._simulator
        for step, u in enumerate(np.asarray(self._choice_rng.random(room.length)).tolist()):
            state = self._state
            pair = self._choose(state, u, greedy)
            reward, following, terminated = world.outcome(state, pair - state * shape.n_actions, self._world_rng)
            room.states[step, 0], room.pairs[step, 0], room.rewards[step, 0] = state, pair, reward
            room.following[step, 0] = shape.n_states if terminated else following
            self._state = world.start if terminated else following
        return room.length

    def tour(self, first: int, room: Experience) -> int:
        """All pairs in turn, one draw each."""
        shape = self.shape
        if self._simulator.compiled:
            self._tour(shape.n_states, shape.n_actions, self._world_rng, first, room)
            self._check(room)
            return room.length
        for step in range(room.length):
            pair = (first + step) % shape.n_pairs
            room.states[step, 0], room.pairs[step, 0] = pair // shape.n_actions, pair
            self._draw(pair, room.rewards[step], room.following[step])
        return room.length

    def consult(self, first: int, pair: int, rewards: FloatArray, following: IntArray) -> None:
        """Independent draws of one pair."""
        del first
        for draw in range(len(rewards)):
            self._draw(pair, rewards[draw], following[draw])

    def number(self, replication: int, position: int) -> float:
        """The next uniform number."""
        del replication, position
        return float(self._choice_rng.random())

    def draws(self, replication: int, first: int, pair: int, count: int) -> tuple[FloatArray, IntArray]:
        """Rewards and successors of `count` draws of one pair."""
        del replication
        rewards, following = np.empty((count, 1)), np.empty((count, 1), np.int32)
        self.consult(first, pair, rewards, following)
        return rewards[:, 0], following[:, 0]

    def _explore(self, count: int, learner: tuple[Any, ...], update: Callable[..., None]) -> None:
        del update  # it is compiled in
        place = (self._behaviour, self._choice_rng, self._world_rng, self._simulator.start, self.shape.reward_range)
        room = Experience.empty(1, 1)
        self._state = self._wander_and_learn(place, self._state, room, count, learner)
        self._check(room)

    def _draw(self, pair: int, reward: FloatArray, following: IntArray) -> None:
        state, action = divmod(pair, self.shape.n_actions)
        reward[0], successor, terminated = self._simulator.outcome(state, action, self._world_rng)
        following[0] = self.shape.n_states if terminated else successor

    def _check(self, room: Experience) -> None:
        """What compiled code cannot say itself."""
        low, high = self._simulator.reward_range
        following, rewards = room.following, room.rewards
        if following.min() < 0:
            at = int(np.argmax(following[:, 0] < 0))
            where = self.shape.pair_name(int(room.pairs[at, 0]))
            _checks.fail(f"next_state must lie in 0..{self.shape.n_states - 1}: got {rewards[at, 0]:.0f} from {where}")
        if not (rewards.min() >= low and rewards.max() <= high):
            at = int(np.argmax(~((rewards[:, 0] >= low) & (rewards[:, 0] <= high))))
            _checks.fail(
                f"reward must lie in reward_range [{low:g}, {high:g}]: got {rewards[at, 0]} "
                f"from {self.shape.pair_name(int(room.pairs[at, 0]))}"
            )

    def save(self) -> dict[str, Any]:
        """The state and both generators."""
        generators = [rng.bit_generator.state for rng in (self._world_rng, self._choice_rng)]
        return {"state": int(self._state), "generators": [plain(state) for state in generators]}

    def load(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        self._state = saved["state"]
        for rng, state in zip((self._world_rng, self._choice_rng), saved["generators"], strict=True):
            rng.bit_generator.state = numbers(state)

    @property
    def fingerprint(self) -> str:
        """Its sizes and the bytes of its code; what the code calls cannot be known."""
        s = self._simulator
        code = getattr(getattr(s.sample, "py_func", s.sample), "__code__", None)
        body = (code.co_code, code.co_consts, code.co_names) if code is not None else type(s.sample).__name__
        return hashed(s.n_states, s.n_actions, s.discount, tuple(s.reward_range), s.start, body)
