"""Random worlds."""

from __future__ import annotations

import numpy as np

from robustmdp import _checks, _types
from robustmdp.models import MDP, row_sums
from robustmdp.models.mdp import from_checked

_CHUNK = 1 << 16


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
