"""A model of any size that exists only as code; its successors spread over all states: each shard reads from all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import robustmdp as rm


@dataclass(frozen=True)
class Spread:
    """Each pair has `n_successors` successors, one in each of as many equal ranges of states."""

    n_states: int
    n_actions: int
    n_successors: int

    @property
    def nnz(self) -> int:
        """Transitions."""
        return self.n_states * self.n_actions * self.n_successors

    @property
    def nbytes(self) -> int:
        """Of the rows, as an `MDP` has them."""
        n_pairs = self.n_states * self.n_actions
        return 12 * self.nnz + (8 + 8 + 4) * n_pairs + 8 * self.n_states

    def source(self, discount: float = 0.95) -> rm.RowSource:
        """The model."""
        return rm.RowSource(self.rows, self.n_states, self.n_actions, discount)

    def rows(self, first: int, last: int) -> tuple[np.ndarray, ...]:
        """The transitions of some states; each number is a function of its place alone."""
        count = self.n_successors
        pair = np.arange(first * self.n_actions, last * self.n_actions)
        entry = np.arange(pair[0] * count, (pair[-1] + 1) * count)
        edges = np.arange(count + 1) * self.n_states // count
        following = edges[:-1] + (uniform(2 * entry).reshape(-1, count) * np.diff(edges)).astype(np.int64)
        weight = 0.1 + uniform(2 * entry + 1).reshape(-1, count)
        probability = weight / weight.sum(axis=1, keepdims=True)
        state, action = (np.repeat(number, count) for number in divmod(pair, self.n_actions))
        return state, action, following.reshape(-1), probability.reshape(-1), np.repeat(uniform(-1 - pair), count)


def uniform(number: np.ndarray) -> np.ndarray:
    """Numbers in [0, 1), from whole ones (splitmix64)."""
    bits = number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return (bits >> np.uint64(11)) * 2.0**-53
