"""A log, read once in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

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

    def __init__(self, log: Trajectory, discount: float, reward_range: tuple[float, float] | None) -> None:
        self.shape = full_shape(
            log.n_states,
            log.n_actions,
            discount=discount,
            reward_range=reward_range,
            state_names=log.state_names,
            action_names=log.action_names,
        )
        self.name, self.length, self.is_fresh = "Trajectory", log.length, log.in_order
        self._log = log
        self._rest: Transitions | None = None
        self._pieces: Iterator[Transitions] | None = None
        self._read = 0

    @property
    def expected_length(self) -> int:
        """How many transitions there are, estimated where only reading would tell."""
        return self._log.expected_length

    def follow_policy(self, first: int, room: Experience) -> int:
        """The next transitions; fewer than asked where the log ends."""
        if self._pieces is None:
            self._pieces = self._log.chunks(start=first)
        filled, wanted = 0, room.length
        while filled < wanted:
            piece = self._rest if self._rest is not None else next(self._pieces, None)
            if piece is None:
                break
            taken = min(wanted - filled, len(piece.state))
            self._rest = _after(piece, taken) if taken < len(piece.state) else None
            span = slice(filled, filled + taken)
            room.states[span, 0] = piece.state[:taken]
            room.pairs[span, 0] = piece.state[:taken] * self.shape.n_actions + piece.action[:taken]
            check_rewards(piece.reward[:taken], self.shape)
            room.rewards[span, 0] = piece.reward[:taken]
            ended = piece.terminated[:taken]
            room.following[span, 0] = np.where(ended, self.shape.n_states, piece.next_state[:taken])
            filled += taken
        return filled

    def save(self) -> dict[str, Any]:
        """Nothing: the number of transitions read says it all."""
        return {}

    def load(self, saved: dict[str, Any]) -> None:
        """Reading starts where the next `follow_policy` says."""
        check_saved(saved)

    @property
    def fingerprint(self) -> str:
        """A hash of the log."""
        return hash_parts(self._log.fingerprint, self.shape.n_states, self.shape.n_actions, self.shape.discount)


def _after(piece: Transitions, taken: int) -> Transitions:
    state, action, reward, following, terminated = piece
    return Transitions(state[taken:], action[taken:], reward[taken:], following[taken:], terminated[taken:])
