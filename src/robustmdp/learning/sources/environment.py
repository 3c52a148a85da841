"""A Gymnasium environment, stepped through its API."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
import numpy as np

from robustmdp import _checks
from robustmdp.learning.behaviour import BehaviourPolicy
from robustmdp.learning.sources.base import (
    Experience,
    OnlineLearner,
    SavedGenerator,
    Source,
    check_rewards,
    check_saved,
    decode_generator,
    encode_generator,
    full_shape,
    hash_parts,
)
from robustmdp.models import columns

_RESEED_AFTER = 1024  # transitions that a resumed run may have to repeat, but for long episodes
_LONGEST = 10_000


class EnvironmentSource(Source):
    """A Gymnasium environment, stepped through its API and restarted when an episode ends.

    It is seeded anew at the first reset after every 1024 transitions, so that a resumed run finds its place by
    repeating the actions since then. An episode without end is cut after 10,000 transitions, as by a time limit.
    """

    def __init__(
        self,
        env: Any,
        make_policy: Callable[[tuple[int, int]], BehaviourPolicy],
        seed: int,
        discount: float,
        reward_range: tuple[float, float] | None,
    ) -> None:
        self.name = _environment_name(env)
        self._index = _indexer(env.observation_space, "observation_space", self.name)
        self._offset = _action_offset(env.action_space, self.name)
        self.shape = full_shape(
            _size_of(env.observation_space),
            int(env.action_space.n),
            discount=discount,
            reward_range=reward_range,
        )
        policy = make_policy((self.shape.n_states, self.shape.n_actions))
        self._env, self._seed, self._policy, self.learns_online = env, seed, policy, policy.follows_q
        self._rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed).spawn(1)[0]))
        self._seedings, self._journal, self._state = 0, list[int](), -1
        self._reset()

    def _reset(self) -> None:
        if self._seedings == 0 or len(self._journal) >= _RESEED_AFTER:
            fresh = int(np.random.SeedSequence([self._seed, self._seedings]).generate_state(1)[0])
            observation, _ = self._env.reset(seed=fresh)
            self._seedings += 1
            self._journal.clear()
        else:
            observation, _ = self._env.reset()
        self._state = self._index(observation)

    def follow_policy(self, first: int, room: Experience) -> int:
        """One trajectory of episodes."""
        del first
        length = room.length
        states, pairs, rewards, following = [0] * length, [0] * length, [0.0] * length, [0] * length
        n_states, n_actions, offset = self.shape.n_states, self.shape.n_actions, self._offset
        step_env, index, draw, note = self._env.step, self._index, self._policy.build_sampler(), self._journal.append
        for step, u in enumerate(np.asarray(self._rng.random(length)).tolist()):
            state = self._state
            pair = draw(step, state, u)
            action = pair - state * n_actions
            observation, reward, terminated, truncated, _ = step_env(action + offset)
            note(action)
            states[step], pairs[step], rewards[step] = state, pair, reward
            self._state = successor = index(observation)
            following[step] = n_states if terminated else successor
            if terminated or truncated or len(self._journal) >= _LONGEST:
                self._reset()
        for column, values in zip(room, (states, pairs, rewards, following), strict=True):
            column[:, 0] = values
        check_rewards(room.rewards[:, 0], self.shape)
        return length

    def learn_online(self, learner: OnlineLearner, first: int, count: int) -> None:
        """`follow_policy` with an update after every step; apart, because calls are what an update costs here."""
        choose, absorb = learner.build_chooser(self._policy), learner.update.absorb_one
        n_states, n_actions, offset = self.shape.n_states, self.shape.n_actions, self._offset
        low, high = self.shape.reward_range or (-math.inf, math.inf)
        for step, u in enumerate(np.asarray(self._rng.random(count)).tolist(), start=first):
            state = self._state
            pair = choose(0, step, state, u)
            action = pair - state * n_actions
            observation, reward, terminated, truncated, _ = self._env.step(action + offset)
            self._journal.append(action)
            self._state = successor = self._index(observation)
            if not (low <= reward <= high and math.isfinite(reward)):
                check_rewards(np.array([reward], dtype=np.float64), self.shape)
            absorb(step, state, pair, reward, n_states if terminated else successor)
            if terminated or truncated or len(self._journal) >= _LONGEST:
                self._reset()

    def save(self) -> dict[str, Any]:
        """The last seeding and the actions since then."""
        state = encode_generator(self._rng.bit_generator.state)
        return {"seedings": self._seedings, "actions": list(self._journal), "generator": state}

    def load(self, saved: dict[str, Any]) -> None:
        """Seed as then and repeat the actions."""
        seedings, actions = Annotated[int, msgspec.Meta(ge=1)], Annotated[list[int], msgspec.Meta(max_length=_LONGEST)]
        check_saved(saved, seedings=seedings, actions=actions, generator=SavedGenerator)
        columns.whole_numbers("actions", saved["actions"], self.shape.n_actions - 1)
        self._seedings = saved["seedings"] - 1
        self._journal = [0] * _RESEED_AFTER
        self._reset()
        for action in saved["actions"]:
            observation, _, terminated, truncated, _ = self._env.step(action + self._offset)
            self._journal.append(action)
            self._state = self._index(observation)
            if terminated or truncated:
                # The reset itself is repeated, but not its decision to seed anew: that came later, if at all.
                observation, _ = self._env.reset()
                self._state = self._index(observation)
        self._rng.bit_generator.state = decode_generator(saved["generator"])

    @property
    def fingerprint(self) -> str:
        """The environment's name, settings and sizes."""
        spec = getattr(self._env, "spec", None)
        settings = sorted(spec.kwargs.items()) if spec is not None else None
        return hash_parts(self.name, settings, self.shape.n_states, self.shape.n_actions, self.shape.discount)


def _environment_name(env: Any) -> str:
    spec = getattr(env, "spec", None)
    return str(spec.id) if spec is not None else type(getattr(env, "unwrapped", env)).__name__


def _parts_of(space: Any) -> list[tuple[int, int]] | None:
    """(size, start) of each discrete part of a space, None where it is not discrete."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return [(int(space.n), int(space.start))]
    if isinstance(space, spaces.MultiDiscrete):
        starts = np.broadcast_to(getattr(space, "start", 0), np.shape(space.nvec))
        return [(int(n), int(start)) for n, start in zip(np.ravel(space.nvec), np.ravel(starts), strict=True)]
    if isinstance(space, spaces.MultiBinary):
        return [(2, 0)] * int(np.prod(space.shape))
    if isinstance(space, spaces.Tuple):
        parts = [_parts_of(part) for part in space.spaces]
        return None if None in parts else [pair for part in parts for pair in part or []]
    return None


def _size_of(space: Any) -> int:
    return math.prod(size for size, _ in _parts_of(space) or [])


def _indexer(space: Any, role: str, name: str) -> Callable[[Any], int]:
    """Observations as numbers 0, 1, ...; those of several parts in mixed radix."""
    from gymnasium import spaces

    parts = _parts_of(space)
    if parts is None:
        _checks.fail(f"the environment must have discrete spaces: {role} of {name} is {space}")

    def digit(value: Any, size: int, start: int, observation: Any) -> int:
        place = _whole_number(value, name) - start
        if not 0 <= place < size:
            _checks.fail(f"observations must lie in the space of {name}: got {observation!r}")
        return place

    def index_of_parts(observation: Any) -> int:
        values, place = list(_flat(observation)), 0
        if len(values) != len(parts):
            _checks.fail(f"observations must lie in the space of {name}: got {observation!r}")
        for value, (size, start) in zip(values, parts, strict=True):
            place = place * size + digit(value, size, start, observation)
        return place

    if isinstance(space, spaces.Discrete):
        size, start = parts[0]
        return lambda observation: digit(observation, size, start, observation)
    return index_of_parts


def _whole_number(value: Any, name: str) -> int:
    """An integer of any type, or a float without a fraction; `int` would cut a fraction off."""
    try:
        return operator.index(value)
    except TypeError:
        number = np.asarray(value)
        if number.ndim == 0 and number.dtype.kind in "bf" and float(number).is_integer():
            return int(number)
        _checks.fail(f"observations of {name} must be whole numbers: got {value!r}")


def _flat(observation: Any) -> Iterator[Any]:
    if isinstance(observation, tuple):
        for part in observation:
            yield from _flat(part)
    else:
        yield from np.ravel(observation)


def _action_offset(space: Any, name: str) -> int:
    from gymnasium import spaces

    if not isinstance(space, spaces.Discrete):
        _checks.fail(f"the environment must have discrete spaces: action_space of {name} is {space}")
    return int(space.start)
