"""How far the mean of bounded samples may be from its expectation, whenever one stops to look."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import FloatArray

_BLOCK = 1 << 13  # cells whose sums are looked at together: what the grid of bets multiplies in memory
_BETS = 0.9 * 0.5 ** np.arange(14)
_COSTS = -np.log1p(-_BETS) - _BETS


def deviations(count: npt.ArrayLike, squares: npt.ArrayLike, reach: npt.ArrayLike, log_odds: float) -> FloatArray:
    """d(n) with P(mean_n - d(n) <= E X for all n) >= 1 - exp(-log_odds), where X - c >= -reach; inf for no samples.

    With Y = (X - c)/reach and psi(b) = -log(1-b) - b, exp(b Y - psi(b) Y^2) <= 1 + b Y for every bet b in [0, 1) and
    Y >= -1 (Fan, Grama and Liu 2015), so exp(b sum(X - E X)/reach - psi(b) squares/reach^2) is a supermartingale. So
    is the mean over a grid of bets, and Ville's inequality bounds it at all times (Howard et al. 2021). The mean of X
    is bounded from above in the same way, with -X.

    Parameters
    ----------
    count : number n of samples
    squares : sum of (X - c)^2 around a centre c that was fixed before the first sample
    reach : how far X can fall below the centre
    log_odds : log(1/delta)

    >>> d = deviations([100, 10_000], [25.0, 2_500.0], 0.5, math.log(20))     # a fair coin, c = 1/2
    >>> d.round(4), bool(d[1] > math.sqrt(math.log(20) / 20_000))             # Hoeffding's, which holds at one n alone
    (array([0.1863, 0.0167]), True)
    """
    n, squares, reach = (np.asarray(part, dtype=np.float64) for part in np.broadcast_arrays(count, squares, reach))
    out = np.full(n.shape, math.inf)
    seen = np.flatnonzero(n > 0)
    for block in np.array_split(seen, max(1, math.ceil(len(seen) / _BLOCK))):
        out.flat[block] = _deviations(n.flat[block], squares.flat[block], reach.flat[block], log_odds)
    return out


def _deviations(n: FloatArray, squares: FloatArray, reach: FloatArray, log_odds: float) -> FloatArray:
    gains = _BETS[:, None] * n / reach
    losses = _COSTS[:, None] * squares / reach**2 + math.log(len(_BETS))
    # A union over the bets would do, too; the mean of them is better.
    d: FloatArray = ((log_odds + losses) / gains).min(axis=0)
    for _ in range(6):  # Newton's method on a convex function from the right: every iterate is a valid deviation
        exponents = gains * d - losses
        top = exponents.max(axis=0)
        shares = np.exp(exponents - top)
        total = shares.sum(axis=0)
        d = d - np.maximum(top + np.log(total) - log_odds, 0.0) * total / (shares * gains).sum(axis=0)
    return d


class Means(NamedTuple):
    """Means of samples X in [low, high] from the sums of X - centre and of its squares; entries of one shape each."""

    samples: npt.NDArray[Any]
    centre: FloatArray
    sums: FloatArray  # (..., 2)
    low: FloatArray
    high: FloatArray

    @property
    def mean(self) -> FloatArray:
        """As observed; the centre where nothing was."""
        mean: FloatArray = self.centre + self.sums[..., 0] / np.maximum(self.samples, 1)
        return mean

    def lower(self, log_odds: float) -> FloatArray:
        """At most E X, with probability 1 - exp(-log_odds) each."""
        reach = self._reach(self.centre - self.low)
        return np.maximum(self.mean - deviations(self.samples, self.sums[..., 1], reach, log_odds), self.low)

    def upper(self, log_odds: float) -> FloatArray:
        """At least E X, with probability 1 - exp(-log_odds) each."""
        reach = self._reach(self.high - self.centre)
        return np.minimum(self.mean + deviations(self.samples, self.sums[..., 1], reach, log_odds), self.high)

    def _reach(self, reach: FloatArray) -> FloatArray:
        # More than the truth is always allowed: a centre at the end of its range would leave no room for any bet.
        rounding = 1e-12 * (1.0 + np.abs(self.high) + np.abs(self.low))
        return np.maximum(reach, 0.05 * (self.high - self.low) + rounding)
