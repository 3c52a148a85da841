"""Dirichlet(a p) rows around a row p: their mean is p, and the concentration a sets their mean divergence from it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from robustmdp._arrays import FloatArray, IndexArray
from robustmdp.divergences import FDivergence

_STEP = 0.25
_LOG_CONCENTRATIONS = np.arange(-7.0, 21.0, _STEP)
_LOGITS = np.arange(-36.0, 12.0, _STEP)
_NODES = 121
_REACH = 45.0  # scales of decay on either side of a beta density, beyond which exp(-45) is left
_TINY = float(np.finfo(float).tiny)  # the least probability that is drawn, so that the support stays


def draw(p: FloatArray, indptr: IndexArray, concentration: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A row of Dirichlet(a p) for each row of p, (nnz,); p itself where a, (n_pairs,), is infinite."""
    lengths = np.diff(indptr)
    each = np.repeat(concentration, lengths)
    spread = np.isfinite(each)
    shape = np.where(spread, each, 1.0) * p
    # If G is of Gamma(b + 1) and U uniform, G U^(1/b) is of Gamma(b); most are too small for a number where b is.
    logs = np.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential(len(p)) / shape
    mass = np.maximum(np.exp(logs - np.repeat(np.maximum.reduceat(logs, indptr[:-1]), lengths)), _TINY)
    return np.where(spread, mass / np.repeat(np.add.reduceat(mass, indptr[:-1]), lengths), p)


def concentration(divergence: FDivergence, p: FloatArray, indptr: IndexArray, target: FloatArray) -> FloatArray:
    """The a of each row, (n_pairs,), with E D_f(Dirichlet(a p) || p) = target.

    The mean falls from that of random point masses, at a = 0, to 0. Targets above the former get the least a of the
    table, e^-7; rows with one successor, and targets of 0, get inf.

    The mean is a sum over entries, E D = sum p_i E f(X_i/p_i) with X_i of Beta(a p_i, a (1 - p_i)), so that one table
    over (a, p_i) serves all rows. Its entries are p E f (a + 1)/(1 - p), which for chi-square is 1 everywhere.

    >>> from robustmdp import ChiSquare
    >>> row, whole = np.array([0.2, 0.3, 0.5]), np.array([0, 3])
    >>> concentration(ChiSquare(), row, whole, np.array([0.02])).round(1)  # E D = 2/(a + 1)
    array([99.])
    """
    table, entries = _table(divergence), _Entries(p, indptr)
    low, high = np.zeros(len(target), np.int64), np.full(len(target), len(table) - 1)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        far = entries.log_mean(table, middle) >= np.log(np.maximum(target, _TINY))
        low, high = np.where(far, middle, low), np.where(far, high, middle)
    below, above = entries.log_mean(table, low), entries.log_mean(table, low + 1)
    with np.errstate(invalid="ignore", over="ignore"):
        part = (below - np.log(np.maximum(target, _TINY))) / (below - above)
        found = np.exp(_LOG_CONCENTRATIONS[low] + _STEP * np.maximum(part, 0.0))
    return np.where((target > 0.0) & (np.diff(indptr) > 1), found, np.inf)


class _Entries:
    """Where the probabilities of rows lie in the table."""

    def __init__(self, p: FloatArray, indptr: IndexArray) -> None:
        with np.errstate(divide="ignore"):
            place = (np.log(p) - np.log1p(-p) - _LOGITS[0]) / _STEP
        place = np.clip(place, 0.0, len(_LOGITS) - 1.000001)
        self._column = place.astype(np.int64)
        self._part, self._rest = place - self._column, 1.0 - p
        self._starts, self._lengths = indptr[:-1], np.diff(indptr)

    def log_mean(self, table: FloatArray, number: IndexArray) -> FloatArray:
        """Log E D of each row at the concentration with this number, (n_pairs,)."""
        row = np.repeat(number, self._lengths)
        logs = (1.0 - self._part) * table[row, self._column] + self._part * table[row, self._column + 1]
        sums = np.add.reduceat(self._rest * np.exp(logs), self._starts)
        with np.errstate(divide="ignore"):
            log: FloatArray = np.log(sums) - np.log1p(np.exp(_LOG_CONCENTRATIONS[number]))
        return log


@lru_cache(maxsize=16)
def _table(divergence: FDivergence) -> FloatArray:
    """Log of p E f(X/p) (a + 1)/(1 - p), a row per concentration, a column per p."""
    return np.array([_means(divergence, log_a) for log_a in _LOG_CONCENTRATIONS])


def _means(divergence: FDivergence, log_a: float) -> FloatArray:
    """A row of the table, by the trapezoidal rule in y = logit X, which is stretched by sinh to reach both tails.

    Probabilities are drawn no smaller than the least number, so what lies below is taken there.
    """
    from scipy.special import betainc, betaln, expit, log_expit

    log_p, log_rest = log_expit(_LOGITS), log_expit(-_LOGITS)
    alpha, beta = np.exp(log_a + log_p), np.exp(log_a + log_rest)
    centre = np.log((alpha + 1.0) / (beta + 1.0))
    width = np.sqrt(1.0 / (alpha + 1.0) + 1.0 / (beta + 1.0))
    left = np.maximum(-_REACH * (width + 1.0 / alpha), np.log(_TINY) - centre)
    right = np.minimum(_REACH * (width + 1.0 / beta), -np.log(_TINY) - centre)
    s = np.linspace(np.arcsinh(left / width), np.arcsinh(right / width), _NODES)
    y = centre + width * np.sinh(s)
    weight = np.exp(alpha * log_expit(y) + beta * log_expit(-y) - betaln(alpha, beta)) * width * np.cosh(s)
    weight *= (s[1] - s[0]) * np.where(np.arange(_NODES) % (_NODES - 1) == 0, 0.5, 1.0)[:, None]
    weight[0] += betainc(alpha, beta, expit(y[0]))
    weight[-1] += betainc(beta, alpha, expit(-y[-1]))
    ratio = np.exp(log_expit(y) - log_p)
    with np.errstate(over="ignore", invalid="ignore"):
        cost = divergence.f(ratio) - divergence.slope_at_one * (ratio - 1.0)
        mean = np.where(weight > 0.0, weight * cost, 0.0).sum(axis=0)
    scale = log_p + np.log1p(np.exp(log_a)) - log_rest
    logs: FloatArray = np.clip(np.log(np.maximum(mean, _TINY)) + scale, -700.0, 700.0)
    return logs
