"""v = cost + discount P v for one chain: plain sweeps where it mixes fast, otherwise a preconditioned Krylov method."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _core
from robustmdp.operators.bellman import Chain

FloatArray = npt.NDArray[np.float64]

_TRIAL_SWEEPS = 12
_MOST_SWEEPS = 150
_MOST_KRYLOV = 400
_STALE = 12  # Krylov steps with an old factorisation after which a new one is cheaper
_NARROW = 4.0  # bandwidths, in square roots of the size, that factorise without filling in


class ChainSolver:
    """Solves the chains of one run; an earlier chain's factorisation preconditions the next ones."""

    def __init__(self, can_end: bool) -> None:
        self._can_end = can_end
        self._narrow: bool | None = None
        self._factors: Any = None

    def solve(self, chain: Chain, start: FloatArray, accuracy: float) -> FloatArray:
        """V with an error of at most `accuracy`, in the sup norm, or the best that was reached."""
        v = np.append(start, 0.0)
        target = 2.0 * accuracy * (1.0 - chain.discount) / max(chain.discount, 1e-300)
        scratch = np.empty_like(v)
        view = (chain.indptr, chain.indices, chain.data, chain.cost, chain.discount)
        tried, first, span = _core.chain_sweeps(*view, self._can_end, v, scratch, target, _TRIAL_SWEEPS)
        if span <= target:
            return v[:-1]
        rate = (span / first) ** (1.0 / (tried - 1)) if 0.0 < span < first else 1.0
        if rate < 1.0 and math.log(target / span) / math.log(rate) <= _MOST_SWEEPS:
            _, _, span = _core.chain_sweeps(*view, self._can_end, v, scratch, target, 2 * _MOST_SWEEPS)
            if span <= target:
                return v[:-1]
        return self._krylov(chain, v[:-1].copy(), target)

    def _krylov(self, chain: Chain, v: FloatArray, target: float) -> FloatArray:
        if self._narrow is None:
            self._narrow = factorises_well(chain)
        if not self._narrow:
            return bicgstab(chain, v, target, self._can_end, None, _MOST_KRYLOV)[0]
        if self._factors is not None:
            v, reached = bicgstab(chain, v, target, self._can_end, self._factors.solve, _STALE)
            if reached:
                return v
        self._factors = factorise(chain)
        return bicgstab(chain, v, target, self._can_end, self._factors.solve, _STALE)[0]


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

    return splu(_matrix(chain).tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0)


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
    precondition: Callable[[FloatArray], FloatArray] | None,
    limit: int,
) -> tuple[FloatArray, bool]:
    """Van der Vorst's method on (I - discount P) v = cost, judged by the span of the residual; best iterate so far."""
    padded = np.zeros(len(v) + 1)
    view = (chain.indptr, chain.indices, chain.data, chain.discount)

    def product(x: FloatArray) -> FloatArray:
        padded[:-1] = x
        out = np.empty_like(x)
        _core.residual_product(*view, padded, out)
        return out

    def span(residual: FloatArray) -> float:
        low, high = float(residual.min()), float(residual.max())
        return max(high, 0.0) - min(low, 0.0) if can_end else high - low

    dot = _core.dot
    solve = precondition or (lambda x: x)
    residual = chain.cost - product(v)
    best, best_span = v.copy(), span(residual)
    shadow = residual.copy()
    rho, direction = 1.0, np.zeros_like(v)
    moved, alpha, omega = np.zeros_like(v), 1.0, 1.0
    for _ in range(limit):
        if best_span <= target:
            break
        following = dot(shadow, residual)
        if following == 0.0 or omega == 0.0:
            shadow, following = residual.copy(), dot(residual, residual)
            rho, alpha, omega = 1.0, 1.0, 1.0
            direction[:], moved[:] = 0.0, 0.0
        direction = residual + (following / rho) * (alpha / omega) * (direction - omega * moved)
        rho = following
        towards = solve(direction)
        moved = product(towards)
        alpha = rho / dot(shadow, moved)
        half = residual - alpha * moved
        correction = solve(half)
        image = product(correction)
        size = dot(image, image)
        omega = dot(image, half) / size if size > 0.0 else 0.0
        v = v + alpha * towards + omega * correction
        residual = half - omega * image
        now = span(residual)
        if not math.isfinite(now):
            break
        if now < best_span:
            best, best_span = v, now
    return _centred(chain, best, product, can_end), best_span <= target


def _centred(chain: Chain, v: FloatArray, product: Callable[[FloatArray], FloatArray], can_end: bool) -> FloatArray:
    """The middle of the bounds v + [min, max](residual)/(1 - discount); v itself where the end's value is fixed."""
    if can_end:
        return v
    residual = chain.cost - product(v)
    return v + 0.5 * (float(residual.min()) + float(residual.max())) / (1.0 - chain.discount)
