"""The transitions of a model as rows of probabilities, and what solvers ask of them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from robustmdp import _checks
from robustmdp._arrays import FloatArray, IndexArray
from robustmdp.models.consistency import TYPES
from robustmdp.models.noise import Noise
from robustmdp.models.space import StateActionSpace
from robustmdp.table import Table


class TransitionRows(StateActionSpace):
    """A row per available pair: row k has the entries `indptr[k]:indptr[k+1]`. Attributes are those of `MDP`."""

    indptr: IndexArray
    indices: IndexArray
    probabilities: FloatArray
    rewards: FloatArray
    actions: IndexArray
    noise: Noise | None

    @property
    def nnz(self) -> int:
        """How many transitions have positive probability."""
        return len(self.indices)

    @property
    def nbytes(self) -> int:
        """Bytes in the model's arrays."""
        return sum(getattr(self, name).nbytes for name in TYPES)

    @property
    def n_columns(self) -> int:
        """To how many states rows may lead: their own, or those of the model of which this is a part."""
        return self.n_states

    @cached_property
    def can_end(self) -> bool:
        """Does any transition lead to the end?"""
        return bool(self.nnz) and int(self.indices.max()) == self.n_states

    @cached_property
    def rewards_on_successors(self) -> bool:
        """Do rewards depend on the successor? Then they belong to nature's choice."""
        return len(self.rewards) == self.nnz != self.n_pairs

    @cached_property
    def longest_row(self) -> int:
        """The largest number of successors of a pair."""
        return int(np.diff(self.indptr).max())

    @cached_property
    def reward_range(self) -> tuple[float, float]:
        """The least and the largest reward."""
        return float(self.rewards.min()), float(self.rewards.max())

    @cached_property
    def reward_spread(self) -> float:
        """The largest difference between rewards of one pair."""
        return spread_within_rows(self.rewards, self.indptr) if self.rewards_on_successors else 0.0

    def mean_rewards(self) -> FloatArray:
        """E r(s, a, s'), one per pair, (n_pairs,)."""
        if not self.rewards_on_successors:
            return np.asarray(self.rewards)
        return np.add.reduceat(self.probabilities * self.rewards, self.indptr[:-1])

    def transitions_of(self, pairs: IndexArray) -> IndexArray:
        """The numbers of the transitions of some pairs, one pair after the other."""
        return ranges(self.indptr[pairs], np.diff(self.indptr)[pairs])

    def row(self, state: int | str, action: int | str) -> Table:
        """What a pair, given by numbers or names, leads to: successor, probability and reward; `n_states` is the end.

        Of a model with noise, the value of the noise comes first.

        >>> from robustmdp import problems
        >>> problems.two_state(0.5, 0.9).row(0, 0)
        Table, 2 rows
          successor  probability  reward
          s0                 0.5       1
          s1                 0.5       1
        """
        pair = self.pair(self.state_number(state), self.action_number(action))
        at = slice(int(self.indptr[pair]), int(self.indptr[pair + 1]))
        successors: Any = self.indices[at]
        if self.state_names:
            successors = [self.state_names[s] if s < self.n_states else "the end" for s in successors.tolist()]
        return Table.of(
            **({} if self.noise is None else {"noise": self.noise.column}),
            successor=successors,
            probability=self.probabilities[at],
            reward=self.rewards[at if self.rewards_on_successors else pair],
        )

    def sample(self, state: int, action: int, rng: np.random.Generator) -> tuple[float, int, bool]:
        """One transition: reward, next state, and whether the episode ended (the state is then where it was)."""
        pair = self.pair(state, action)
        row = slice(int(self.indptr[pair]), int(self.indptr[pair + 1]))
        cumulative = np.cumsum(self.probabilities[row])
        entry = row.start + int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
        reward = float(self.rewards[entry if self.rewards_on_successors else pair])
        following = int(self.indices[entry])
        ended = following == self.n_states
        return reward, state if ended else following, ended

    def pair(self, state: int, action: int) -> int:
        """The index of an available pair."""
        _checks.must(0 <= state < self.n_states, f"state must lie in 0..{self.n_states - 1}: got {state}")
        first, last = int(self.state_ptr[state]), int(self.state_ptr[state + 1])
        offset = int(np.searchsorted(self.actions[first:last], action))
        available = first + offset < last and self.actions[first + offset] == action
        _checks.must(
            bool(available), f"action must be available: {self.action_name(action)} is not in {self.state_name(state)}"
        )
        return first + offset


def spread_within_rows(rewards: FloatArray, indptr: IndexArray) -> float:
    """The largest difference between rewards of one row."""
    starts = indptr[:-1]
    return float(np.max(np.maximum.reduceat(rewards, starts) - np.minimum.reduceat(rewards, starts)))


def ranges(starts: IndexArray, sizes: IndexArray) -> IndexArray:
    """start, start + 1, ... for each start, one behind the other."""
    return np.asarray(np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum()))
