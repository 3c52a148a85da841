"""v = cost + discount P v for one chain: plain sweeps where it mixes fast, otherwise preconditioned Krylov methods."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from robustmdp import _core
from robustmdp._arrays import FloatArray
from robustmdp.operators.bellman import Chain

CLOSEST = 1e-3  # of the bound, where a step of policy iteration solves a chain
TRIAL_SWEEPS = 12
MOST_SWEEPS = 150
_MOST_CLIMBS = 100  # Krylov steps that cost as much as a factorisation
_MOST_KRYLOV = 400
_STALE = 12  # Krylov steps with an old factorisation after which a new one is cheaper
_NARROW = 4.0  # bandwidths, in square roots of the size, that factorise without filling in


class ChainSolver:
    """Solves the chains of one run; an earlier chain's factorisation preconditions the next ones.

    With `by_graph` states are ordered by the chain's graph, otherwise by their values.
    """

    loosest = CLOSEST  # products with a chain cost little beside a sweep over all actions

    def __init__(self, can_end: bool, *, by_graph: bool = False) -> None:
        self._can_end = can_end
        self._by_graph = by_graph
        self._mixes_fast = True
        self._climbs = True  # do values fall along paths?
        self._narrow: bool | None = None
        self._factors: Any = None

    def solve(self, chain: Chain, start: FloatArray, accuracy: float) -> FloatArray:
        """V with an error of at most `accuracy`, in the sup norm, or the best that was reached."""
        target = 2.0 * accuracy * (1.0 - chain.discount) / max(chain.discount, 1e-300)
        try:
            v = self.reduce_residual(chain, start, target)
        except ZeroDivisionError:  # a Krylov method that broke down
            return start
        return v if np.isfinite(v).all() else start

    def reduce_residual(self, chain: Chain, start: FloatArray, target: float) -> FloatArray:
        """V whose residual cost + discount P v - v has a span of at most `target`, or the best that was reached."""
        v = np.append(start, 0.0)
        if not self._mixes_fast or not self._sweep(chain, v, target):
            self._mixes_fast = False  # the next chain will be much like this one
            return self._krylov(chain, v, target)
        return v[:-1]

    def _sweep(self, chain: Chain, v: FloatArray, target: float) -> bool:
        """Sweep v in place, if that will do."""
        view = (chain.indptr, chain.indices, chain.data, chain.cost, chain.discount, self._can_end)
        scratch = np.empty_like(v)
        tried, first, span = _core.chain_sweeps(*view, v, scratch, target, TRIAL_SWEEPS)
        if span > target and lasts(tried, first, span, target):
            _, _, span = _core.chain_sweeps(*view, v, scratch, target, 2 * MOST_SWEEPS)
        return bool(span <= target)

    def _krylov(self, chain: Chain, v: FloatArray, target: float) -> FloatArray:
        if self._climbs or not self._factorises_well(chain):
            limit = _MOST_CLIMBS if self._climbs else _MOST_KRYLOV
            view = (chain.indptr, chain.indices, chain.data, chain.cost, chain.discount)
            reached = _core.climb_chain(*view, self._can_end, v, target, limit, self._by_graph) <= target
            self._climbs &= reached
            if reached or not self._factorises_well(chain):
                return _centred(chain, v[:-1], self._can_end)
        v = v[:-1].copy()
        if self._factors is not None:
            v, reached = bicgstab(chain, v, target, self._can_end, self._factors.solve, _STALE)
            if reached:
                return v
        self._factors = factorise(chain)
        return bicgstab(chain, v, target, self._can_end, self._factors.solve, _STALE)[0]

    def _factorises_well(self, chain: Chain) -> bool:
        if self._narrow is None:
            self._narrow = factorises_well(chain)
        return self._narrow


def lasts(sweeps: int, first: float, span: float, target: float) -> bool:
    """Will sweeps that went from span `first` to this one reach the target soon enough?"""
    rate = (span / first) ** (1.0 / (sweeps - 1)) if 0.0 < span < first and sweeps > 1 else 1.0
    return rate < 1.0 and math.log(target / span) / math.log(rate) <= MOST_SWEEPS


def factorises_well(chain: Chain) -> bool:
    """Would a direct factorisation stay sparse? Yes if some order of the states makes the matrix narrow."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    matrix = _matrix(chain)
    pattern = sp.csr_array(matrix + matrix.T)
    size = pattern.shape[0]
    place = np.empty(size, dtype=np.int64)
    place[reverse_cuthill_mckee(pattern, symmetric_mode=True)] = np.arange(size)
    rows = np.repeat(place, np.diff(pattern.indptr))
    # The mean distance, not the largest: a few long links (a restart) do little harm.
    reach = float(np.abs(rows - place[pattern.indices]).mean())
    return reach <= _NARROW * math.sqrt(size) and reach * size <= 1e8


def factorise(chain: Chain) -> Any:
    """LU of I - discount P: diagonally dominant by rows, so it needs no pivoting."""
    from scipy.sparse.linalg import splu

    # Without SymmetricMode the elimination tree is that of A^T A: the same factors, 15 times slower.
    options = {"SymmetricMode": True}
    return splu(_matrix(chain).tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)


def _matrix(chain: Chain) -> Any:
    import scipy.sparse as sp

    size = len(chain.cost)
    with_end = sp.csr_array((chain.data, chain.indices, chain.indptr), shape=(size, size + 1))
    return sp.csr_array(sp.eye_array(size) - chain.discount * with_end[:, :size])


def bicgstab(
    chain: Chain,
    v: FloatArray,
    target: float,
    can_end: bool,
    precondition: Callable[[FloatArray], FloatArray],
    limit: int,
) -> tuple[FloatArray, bool]:
    """Van der Vorst's method on (I - discount P) v = cost, judged by the span of the residual; best iterate so far."""

    def span(residual: FloatArray) -> float:
        low, high = float(residual.min()), float(residual.max())
        return max(high, 0.0) - min(low, 0.0) if can_end else high - low

    dot = chain.dot
    residual = chain.cost - chain.product(v)
    best, best_span = v.copy(), span(residual)
    shadow = residual.copy()
    rho, direction = 1.0, 0.0 * v
    moved, alpha, omega = 0.0 * v, 1.0, 1.0
    for _ in range(limit):
        if best_span <= target:
            break
        following = dot(shadow, residual)
        if following == 0.0 or omega == 0.0:
            shadow, following = residual.copy(), dot(residual, residual)
            rho, alpha, omega, direction, moved = 1.0, 1.0, 1.0, 0.0 * v, 0.0 * v
        direction = residual + (following / rho) * (alpha / omega) * (direction - omega * moved)
        rho = following
        towards = precondition(direction)
        moved = chain.product(towards)
        alpha = rho / dot(shadow, moved)
        half = residual - alpha * moved
        correction = precondition(half)
        image = chain.product(correction)
        size = dot(image, image)
        omega = dot(image, half) / size if size > 0.0 else 0.0
        v = v + alpha * towards + omega * correction
        residual = half - omega * image
        now = span(residual)
        if not math.isfinite(now):
            break
        if now < best_span:
            best, best_span = v, now
    return _centred(chain, best, can_end), best_span <= target


def _centred(chain: Chain, v: FloatArray, can_end: bool) -> FloatArray:
    """The middle of the bounds v + [min, max](residual)/(1 - discount); v itself where the end's value is fixed."""
    if can_end:
        return v
    residual = chain.cost - chain.product(v)
    return v + 0.5 * (float(residual.min()) + float(residual.max())) / (1.0 - chain.discount)
