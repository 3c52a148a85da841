"""What a model in shards is made from: an MDP, a file in our own format, or a RowSource."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from robustmdp._arrays import IntArray
from robustmdp.cluster.shard import Source, block_size
from robustmdp.io.mapped import MappedModel
from robustmdp.models import MDP, RowSource
from robustmdp.models.part import Outline, Sizes, slice_rows
from robustmdp.models.row_source import Rows


class MappedSource(NamedTuple):
    """A model in our own format, which every node opens for itself."""

    path: Path

    def part(self, first: int, last: int) -> Rows:
        return MappedModel.open(self.path).part(first, last)


class ArraySource(NamedTuple):
    """Rows that are sent to their shard."""

    rows: Rows

    def part(self, first: int, last: int) -> Rows:
        del first, last
        return self.rows


@dataclass(frozen=True)
class ModelSource:
    """A model whose rows have not been read yet."""

    model: MDP | MappedModel | RowSource

    @staticmethod
    def of(given: Any) -> ModelSource:
        """From what a user may give."""
        if isinstance(given, MDP | RowSource):
            return ModelSource(given)
        if isinstance(given, str | os.PathLike):
            return ModelSource(MappedModel.open(given))
        kind = type(given).__name__
        raise TypeError(f"mdp must be an MDP, a RowSource or the path of a .safetensors model: got {kind}")

    def cut(self, count: int) -> list[int]:
        """Where shards begin and end: between blocks, with about as many transitions each where these are known."""
        n_states = self.model.n_states
        edges = np.append(np.arange(0, n_states, block_size(n_states)), n_states)
        blocks = len(edges) - 1
        count = min(count, blocks)
        work = self._transitions_before(edges)
        chosen = [0]
        for i in range(1, count):
            at = int(np.searchsorted(work, work[-1] * i / count))
            chosen.append(min(max(at, chosen[-1] + 1), blocks - (count - i)))
        return [*edges[chosen].tolist(), n_states]

    def _transitions_before(self, states: IntArray) -> IntArray:
        """How many transitions the states before these have, or something proportional."""
        if isinstance(self.model, MDP):
            return np.asarray(self.model.indptr[self.model.state_ptr[states]])
        return states if isinstance(self.model, RowSource) else self.model.transitions_before(states)

    def sources(self, cuts: Sequence[int]) -> list[Source]:
        """One for each shard."""
        if isinstance(self.model, MDP):
            return [ArraySource(slice_rows(self.model, low, high)) for low, high in pairwise(cuts)]
        source = self.model if isinstance(self.model, RowSource) else MappedSource(self.model.path)
        return [source] * (len(cuts) - 1)

    def outline(self, sizes: Sizes) -> Outline:
        """The model without its rows, whose sizes are known by now."""
        model = self.model
        names = () if isinstance(model, RowSource) else (model.state_names, model.action_names)
        noise = None if isinstance(model, RowSource) else model.noise
        return Outline(sizes, model.n_actions, model.discount, model.rewards_on_successors, noise, *names)
