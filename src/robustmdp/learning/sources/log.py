"""What was recorded or is stepped by a policy: a log, read once in order, and the pairs that a fixed policy uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from robustmdp._arrays import IndexArray
from robustmdp.learning.sources.base import (
    Experience,
    Source,
    check_rewards,
    check_saved,
    full_shape,
    hash_parts,
)
from robustmdp.models import Trajectory
from robustmdp.models.transitions import Transitions


class LogSource(Source):
    """A Trajectory, read once in order."""

    name = "Trajectory"

    def __init__(self, log: Trajectory, discount: float, reward_range: tuple[float, float] | None) -> None:
        self.shape = full_shape(log.n_states, log.n_actions, discount, reward_range, log)
        self.length, self.is_fresh, self.log = log.length, log.in_order, log
        self._rest: Transitions | None = None
        self._pieces: Iterator[Transitions] | None = None

    def follow_policy(self, first: int, room: Experience) -> int:
        """The next transitions; fewer than asked where the log ends."""
        if self._pieces is None:
            self._pieces = self.log.chunks(start=first)
        filled, wanted = 0, room.length
        while filled < wanted:
            piece = self._rest if self._rest is not None else next(self._pieces, None)
            if piece is None:
                break
            taken = min(wanted - filled, len(piece.state))
            self._rest = _cut(piece, slice(taken, None)) if taken < len(piece.state) else None
            piece = _cut(piece, slice(taken))
            check_rewards(piece.reward, self.shape)
            span = slice(filled, filled + taken)
            room.states[span, 0] = piece.state
            room.pairs[span, 0] = piece.state * self.shape.n_actions + piece.action
            room.rewards[span, 0] = piece.reward
            room.following[span, 0] = np.where(piece.terminated, self.shape.n_states, piece.next_state)
            filled += taken
        return filled

    def save(self) -> dict[str, Any]:
        """Nothing: reading starts where the next `follow_policy` says."""
        return {}

    def load(self, saved: dict[str, Any]) -> None:
        check_saved(saved)

    @property
    def fingerprint(self) -> str:
        return hash_parts(self.log.fingerprint, self.shape.n_states, self.shape.n_actions, self.shape.discount)


def _cut(piece: Transitions, part: slice) -> Transitions:
    state, action, reward, following, terminated = piece
    return Transitions(state[part], action[part], reward[part], following[part], terminated[part])


class OnPolicySource(Source):
    """Transitions of a source, in which every action is available everywhere, by some pairs, with rising numbers.

    Transitions by other pairs, in a log, are passed over.
    """

    def __init__(self, source: Source, pairs: IndexArray) -> None:
        self._pairs = pairs.astype(np.int64)
        self._states, actions = np.divmod(self._pairs, source.shape.n_actions)
        self._source = source
        state_ptr = np.searchsorted(self._pairs, source.shape.state_ptr)
        self.shape = replace(source.shape, state_ptr=state_ptr, actions=actions)
        self.name, self.length = source.name, source.length
        self.is_generative, self.is_fresh = source.is_generative, source.is_fresh

    def follow_policy(self, first: int, room: Experience) -> int:
        filled, position = 0, first
        while filled < room.length:
            seen = Experience.empty(1, room.length - filled)
            taken = self._source.follow_policy(position, seen)
            position += taken
            places = np.searchsorted(self._pairs[:-1], seen.pairs[:taken, 0])
            kept = np.flatnonzero(self._pairs[places] == seen.pairs[:taken, 0])
            seen.pairs[:taken, 0] = places
            for column, values in zip(room, seen, strict=True):
                column[filled : filled + len(kept)] = values[kept]
            filled += len(kept)
            if taken < seen.length:
                break
        return filled

    def sample_all_pairs(self, first: int, room: Experience) -> int:
        self._source.sample_in_turn(first, self._states, self._pairs, room)
        return room.length

    @property
    def fingerprint(self) -> str:
        return self._source.fingerprint

    def save(self) -> dict[str, Any]:
        return self._source.save()

    def load(self, saved: dict[str, Any]) -> None:
        self._source.load(saved)
