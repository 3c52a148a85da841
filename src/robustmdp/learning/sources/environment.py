"""A Gymnasium environment, stepped through its API."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
import numpy as np

from robustmdp import _checks
from robustmdp.learning.behaviour import check_behaviour
from robustmdp.learning.sources.base import (
    Experience,
    SavedGenerator,
    SteppedSource,
    Transition,
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


class EnvironmentSource(SteppedSource):
    """A Gymnasium environment, stepped through its API and restarted when an episode ends.

    It is seeded anew at the first reset after every 1024 transitions, so that a resumed run finds its place by
    repeating the actions since then. An episode without end is cut after 10,000 transitions, as by a time limit.
    """

    def __init__(
        self, env: Any, behaviour: Any, seed: int, discount: float, reward_range: tuple[float, float] | None
    ) -> None:
        spec, space = getattr(env, "spec", None), env.observation_space
        self.name = str(spec.id) if spec is not None else type(getattr(env, "unwrapped", env)).__name__
        self._index = _build_indexer(space, self.name)
        self._offset = _action_offset(env.action_space, self.name)
        n_states = math.prod(size for size, _ in _parts_of(space) or [])
        self.shape = full_shape(n_states, int(env.action_space.n), discount, reward_range)
        self._env, self._seed, self._policy = env, seed, check_behaviour(behaviour, self.shape)
        self.learns_online = self._policy.follows_q
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

    def _act(self, choose: Callable[[int, int, float], int], first: int, count: int) -> Iterator[Transition]:
        n_states, n_actions, offset = self.shape.n_states, self.shape.n_actions, self._offset
        low, high = self.shape.reward_range or (-sys.float_info.max, sys.float_info.max)
        step_env, index, journal = self._env.step, self._index, self._journal
        for step, u in enumerate(self._rng.random(count).tolist(), start=first):
            state = self._state
            pair = choose(step, state, u)
            action = pair - state * n_actions
            observation, reward, terminated, truncated, _ = step_env(action + offset)
            journal.append(action)
            self._state = successor = index(observation)
            if not low <= reward <= high:
                check_rewards(np.array([reward], dtype=np.float64), self.shape)
            if terminated or truncated or len(journal) >= _LONGEST:
                self._reset()
            yield state, pair, reward, n_states if terminated else successor

    def follow_policy(self, first: int, room: Experience) -> int:
        """`_act` without a generator, which is a tenth of what a step of a small environment takes."""
        lists = states, pairs, rewards, following = [[0] * room.length for _ in range(4)]
        n_states, n_actions, offset = self.shape.n_states, self.shape.n_actions, self._offset
        step_env, index, draw, note = self._env.step, self._index, self._policy.build_sampler(), self._journal.append
        for step, u in enumerate(self._rng.random(room.length).tolist()):
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
        for column, values in zip(room, lists, strict=True):
            column[:, 0] = values
        check_rewards(room.rewards[:, 0], self.shape)
        return room.length

    def save(self) -> dict[str, Any]:
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
        spec = getattr(self._env, "spec", None)
        settings = sorted(spec.kwargs.items()) if spec is not None else None
        return hash_parts(self.name, settings, self.shape.n_states, self.shape.n_actions, self.shape.discount)


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


def _build_indexer(space: Any, name: str) -> Callable[[Any], int]:
    """Observations as numbers 0, 1, ...; those of several parts in mixed radix."""
    from gymnasium import spaces

    parts = _parts_of(space)
    if parts is None:
        _checks.fail(f"the environment must have discrete spaces: observation_space of {name} is {space}")

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
