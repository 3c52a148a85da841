"""What is left of a world when a policy is fixed: the pairs that it uses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from robustmdp._arrays import IndexArray
from robustmdp.learning.sources.base import Experience, Source


class OnPolicySource(Source):
    """Transitions of a source, in which every action is available everywhere, by some pairs, with rising numbers.

    Transitions by other pairs, in a log, are passed over.
    """

    learns_online = False

    def __init__(self, source: Source, pairs: IndexArray) -> None:
        n_actions = source.shape.n_actions
        self._states, actions = np.divmod(pairs.astype(np.int64), n_actions)
        self._pairs = pairs.astype(np.int64)
        self._source = source
        state_ptr = np.searchsorted(self._pairs, source.shape.state_ptr)
        self.shape = replace(source.shape, state_ptr=state_ptr, actions=actions)
        self.name, self.length = source.name, source.length
        self.is_generative, self.is_fresh = source.is_generative, source.is_fresh

    def follow_policy(self, first: int, room: Experience) -> int:
        """The next transitions that the policy could have made."""
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
        """One draw of each of the pairs in turn."""
        self._source.sample_in_turn(first, self._states, self._pairs, room)
        return room.length

    @property
    def fingerprint(self) -> str:
        return self._source.fingerprint

    def save(self) -> dict[str, Any]:
        return self._source.save()

    def load(self, saved: dict[str, Any]) -> None:
        self._source.load(saved)
