"""Worlds of any size: one that mixes fast, and one that mixes slowly."""

from __future__ import annotations

import numpy as np

from robustmdp import _checks, _types
from robustmdp.models import MDP, row_sums
from robustmdp.models.mdp import from_checked

_CHUNK = 1 << 16
_MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
_NAMES = ("up", "right", "down", "left")


def garnet(n_states: int, n_actions: int, n_successors: int, discount: float, seed: int) -> MDP:
    """Each pair has `n_successors` different random successors, uniform spacings as probabilities, a uniform reward.

    (Archibald, McKinnon and Thomas 1995.) Such worlds mix fast, which flatters every solver.

    >>> garnet(100, 4, 5, 0.9, seed=0).nnz
    2000
    """
    _types.check_arguments(garnet, locals())
    n, m, k = (
        _checks.positive_integer(name, value)
        for name, value in (("n_states", n_states), ("n_actions", n_actions), ("n_successors", n_successors))
    )
    _checks.must(k <= n, f"n_successors must be at most n_states ({n}): got {k}")
    discount = _checks.model_discount(discount)
    _checks.must(seed >= 0, f"seed must be at least 0: got {seed}")
    rng = np.random.default_rng(seed)
    pairs = n * m
    indices = np.empty((pairs, k), dtype=np.int32)
    probabilities = np.empty((pairs, k))
    for start in range(0, pairs, _CHUNK):
        block = slice(start, min(start + _CHUNK, pairs))
        indices[block] = _distinct(rng, block.stop - block.start, n, k)
        cuts = np.sort(rng.random((block.stop - block.start, k - 1)), axis=1)
        spacings = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
        probabilities[block] = np.maximum(spacings, np.finfo(float).tiny)
    indptr = np.arange(0, pairs * k + 1, k, dtype=np.int64)
    row_sums.normalise(indptr, probabilities.reshape(-1), "row {} sums to {}".format, in_place=True)
    return from_checked(
        MDP,
        indptr=indptr,
        indices=indices.reshape(-1),
        probabilities=probabilities.reshape(-1),
        rewards=rng.random(pairs),
        state_ptr=np.arange(0, pairs + 1, m, dtype=np.int64),
        actions=np.tile(np.arange(m, dtype=np.int32), n),
        n_actions=m,
        discount=discount,
    )


def _distinct(rng: np.random.Generator, rows: int, n: int, k: int) -> np.ndarray:
    """`rows` sorted samples of k different numbers below n."""
    if 4 * k > n:
        return np.sort(np.argsort(rng.random((rows, n)), axis=1)[:, :k], axis=1)
    draws = np.sort(rng.integers(0, n, (rows, k)), axis=1)
    while (again := np.flatnonzero((np.diff(draws, axis=1) == 0).any(axis=1))).size:
        draws[again] = np.sort(rng.integers(0, n, (again.size, k)), axis=1)
    return draws


def grid_world(size: int, slip: float = 0.2, discount: float = 0.99) -> MDP:
    """A size x size room: a step goes as meant, or with probability `slip` to one of the four sides; walls hold.

    The reward is the height of a landscape in [0, 1] with a few large hills and many small ones. The best policy climbs
    a hill nearby and stays there: its chain falls apart into regions that hardly meet, which is as slowly mixing as a
    world can be, so that sweeps contract no faster than the discount.

    >>> grid_world(3).n_states
    9
    """
    n = _checks.positive_integer("size", size)
    slip = _checks.probability("slip", slip)
    row, column = np.divmod(np.arange(n * n), n)
    targets = np.stack([np.clip(row + dr, 0, n - 1) * n + np.clip(column + dc, 0, n - 1) for dr, dc in _MOVES], axis=1)
    meant, side, state = (axis.ravel() for axis in np.indices((4, 4, n * n)))
    chance = slip / 4 + (1.0 - slip) * (side == meant)
    large = np.sin(6.0 * np.pi * row / n) * np.cos(4.0 * np.pi * column / n)
    small = np.sin(0.7 * row) * np.cos(0.9 * column)
    rewards = 0.5 + 0.25 * large + 0.25 * small
    following = targets[state, side]
    return MDP.from_rows(state, meant, following, chance, rewards[state], discount, n_states=n * n, action_names=_NAMES)
