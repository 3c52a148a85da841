"""What is left of a world when a policy is fixed: one pair per state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from robustmdp.learning.sources.base import Experience, Source
from robustmdp.models.space import IntArray


class OnPolicySource(Source):
    """Transitions of a source by the policy's actions; others, in a log, are passed over."""

    learns_online = False

    def __init__(self, source: Source, policy: IntArray) -> None:
        states = np.arange(len(policy) + 1, dtype=np.int64)
        self._chosen = source.shape.state_ptr[:-1] + policy  # every action is available everywhere
        self._source = source
        self.shape = replace(source.shape, state_ptr=states, actions=policy)
        self.name, self.length = source.name, source.length
        self.is_generative, self.is_replayed = source.is_generative, source.is_replayed

    def follow_policy(self, first: int, room: Experience) -> int:
        """The next transitions that the policy could have made."""
        filled, position = 0, first
        while filled < room.length:
            seen = Experience.empty(1, room.length - filled)
            taken = self._source.follow_policy(position, seen)
            position += taken
            kept = np.flatnonzero(seen.pairs[:taken, 0] == self._chosen[seen.states[:taken, 0]])
            for column, values in zip(room, seen, strict=True):
                column[filled : filled + len(kept)] = values[kept]
            filled += len(kept)
            if taken < seen.length:
                break
        room.pairs[:filled] = room.states[:filled]  # the only pair of each state
        return filled

    def sample_all_pairs(self, first: int, room: Experience) -> int:
        """One draw of the policy's pair in each state in turn."""
        n_states = self.shape.n_states
        for step in range(room.length):
            state = (first + step) % n_states
            room.states[step], room.pairs[step] = state, state
            span = slice(step, step + 1)
            self._source.sample_pair(first + step, int(self._chosen[state]), room.rewards[span], room.following[span])
        return room.length

    @property
    def fingerprint(self) -> str:
        return self._source.fingerprint

    def save(self) -> dict[str, Any]:
        return self._source.save()

    def load(self, saved: dict[str, Any]) -> None:
        self._source.load(saved)
