"""The quantile of D(p || nominal of data from p) with p from the posterior of the counts: a parametric bootstrap.

Varying p, instead of fixing it at the estimate, smooths the steps that whole numbers put into the quantile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.ambiguity.distance import distance
from robustmdp.divergences import FDivergence

SIMULATIONS = 4000
KEPT_BACK = 0.39  # of the allowed error: counts are whole numbers, and the truth is not the estimate
FEW = 1000  # counts up to which whole numbers show, and two successors are enumerated
_ENUMERATED = 10_000  # outcomes, truths times data
_FEW_OBSERVATIONS = 20  # up to which data are drawn for each row: there are few different rows
_FEW_SUCCESSORS = 10  # up to which the bias of the mean is small against the spread
_EXACT = 64  # counts up to which each has draws of its own; above, eight counts for each factor of 2
_STRIDE = 131  # by which the draws of a count are shifted where a row has it again
_NODES = np.array([-1.0, -0.4, 0.0, 0.4, 1.0])
_TO_COEFFICIENTS = np.linalg.inv(np.vander(_NODES, increasing=True))


def nominal(row: FloatArray) -> FloatArray:
    """(n_i + 1/2)/(n + k/2) along the last axis."""
    shares: FloatArray = (row + 0.5) / (row.sum(axis=-1, keepdims=True) + 0.5 * row.shape[-1])
    return shares


class Bootstrap:
    """Radii at a confidence; each depends on the counts of its row and the seed alone."""

    def __init__(self, divergence: FDivergence, confidence: float, seed: int) -> None:
        self.divergence, self.seed = divergence, seed
        self.level = 1.0 - (1.0 - KEPT_BACK) * (1.0 - confidence)
        self._cells: dict[int, _Cell] = {}

    def radius(self, row: FloatArray) -> float:
        """The radius of sorted counts (k,), two or more."""
        if len(row) == 2 and row[0] <= FEW:
            return self._enumerate(row)
        return self._simulate(row) if row.sum() <= _FEW_OBSERVATIONS else self._tabulate(row)

    def _simulate(self, row: FloatArray) -> float:
        """By drawing data for this row."""
        rng = np.random.default_rng(self.seed)
        truths = rng.dirichlet(row + 0.5, SIMULATIONS)
        # Rounding may lift a sum of probabilities above 1, which the sampler refuses.
        truths = np.clip(truths, np.finfo(float).tiny, None)
        truths /= truths.sum(axis=1, keepdims=True) * (1.0 + 4.0 * np.finfo(float).eps)
        data = rng.multinomial(int(row.sum()), truths)
        distances = distance(self.divergence, truths, nominal(data.astype(np.float64)))
        return float(np.quantile(distances, self.level, method="higher"))

    def _tabulate(self, row: FloatArray) -> float:
        """By adding up draws that are tabulated for each count.

        With m_i from Gamma(n_i + 1/2), p = m / sum m has the posterior; with N_i from Poisson(m_i), N given its sum is
        data from p. Let q_i = N_i + 1/2 and r = sum q / sum m. Then D sum q = sum q_i f(r m_i / q_i), where each term
        is tabulated as a polynomial in log r. The sum of N varies around n, by which D is scaled.
        """
        total = np.zeros((2 + len(_NODES), SIMULATIONS))
        again, last = 0, -1
        for count in row.tolist():
            cell = self._cell(count)
            again = again + 1 if cell.count == last else 0
            last = cell.count
            shift = again * _STRIDE % SIMULATIONS
            terms = cell.terms_at(count)
            total[:, : SIMULATIONS - shift] += terms[:, shift:]
            total[:, SIMULATIONS - shift :] += terms[:, :shift]
        n = row.sum()
        log_ratio = np.log((n + total[1]) / (n + total[0]))
        terms = np.polynomial.polynomial.polyval(log_ratio, total[2:], tensor=False)
        place = math.ceil(self.level * (SIMULATIONS - 1))
        quantile = float(np.partition(terms, place)[place])
        return max(quantile, 0.0) * self._mean_correction(row) / float(n + 0.5 * len(row))

    def _mean_correction(self, row: FloatArray) -> float:
        """How much larger the mean distance is than a bootstrap of the bootstrap finds it.

        The posterior spreads the counts more than the truth does, which biases the mean by a little for each successor.
        With many of them the biases add up to more than the spread, which grows as the root of their number.
        """
        if len(row) <= _FEW_SUCCESSORS:
            return 1.0
        means, again = np.sum([self._cell(count).means for count in row.tolist()], axis=0)
        limit = 0.5 * self.divergence.curvature_at_one  # of the one successor that the sum leaves no freedom
        return max(1.0, float((means - limit) / (again - limit)))

    def _cell(self, count: float) -> _Cell:
        """That of the count, or of one that is near."""
        node = round(count) if count <= _EXACT else round(2.0 ** (round(8.0 * math.log2(count)) / 8.0))
        if node not in self._cells:
            self._cells[node] = _Cell(self.divergence, node, self.seed)
        return self._cells[node]

    def _enumerate(self, row: FloatArray) -> float:
        """The same for two successors without drawing: where steps are highest, noise would be felt most.

        The truths are quantiles of the posterior; the data, all that are likely.
        """
        from scipy.special import betaincinv, betaln, xlogy

        few, total = row[0], row.sum()
        reach = 12.0 * math.sqrt(few + 1.0) + 10.0
        first = np.arange(max(0.0, math.floor(few - reach)), min(total, few + reach) + 1.0)
        count = max(100, _ENUMERATED // len(first))
        share = betaincinv(row[0] + 0.5, row[1] + 0.5, (np.arange(count) + 0.5) / count)
        truths, data = np.stack([share, 1.0 - share], -1)[:, None], np.stack([first, total - first], -1)
        ways = betaln(first + 1.0, total - first + 1.0) + math.log((total + 1.0) * count)
        chance = np.exp(xlogy(data, truths).sum(-1) - ways)
        distances = distance(self.divergence, truths, nominal(data)).ravel()
        order = np.argsort(distances)
        covered = np.cumsum(chance.ravel()[order])
        return float(distances[order[min(int(np.searchsorted(covered, self.level)), len(order) - 1)]])


@dataclass(frozen=True)
class _Cell:
    """Draws for a successor that was seen `count` times."""

    divergence: FDivergence
    count: int
    seed: int

    @cached_property
    def _draws(self) -> tuple[FloatArray, FloatArray]:
        return self._next(np.full(SIMULATIONS, self.count + 0.5), 0)

    @cached_property
    def _terms(self) -> FloatArray:
        """m - count, q - count and the coefficients of the term, (7, SIMULATIONS)."""
        m, q = self._draws
        width = min(0.8, 4.0 / math.sqrt(self.count + 1.0))  # log r has a standard deviation of 1/sqrt(n) or less
        values = np.stack([self._term(m * math.exp(width * node), q) for node in _NODES])
        coefficients = _TO_COEFFICIENTS @ values / width ** np.arange(len(_NODES))[:, None]
        return np.concatenate([[m - self.count, q - self.count], coefficients])

    @cached_property
    def means(self) -> tuple[float, float]:
        """The mean of the term at r = 1, and the same with the drawn counts in place of the count."""
        m, q = self._draws
        return float(self._term(m, q).mean()), float(self._term(*self._next(q, 1)).mean())

    def terms_at(self, count: float) -> FloatArray:
        """The terms of a count that is near: a deviation grows as its root."""
        if count == self.count:
            return self._terms
        root = math.sqrt(count / self.count)
        factors = np.array([root, root, 1.0, root, *[root**2] * (len(_NODES) - 2)])
        return np.asarray(self._terms * factors[:, None])

    def _next(self, shape: FloatArray, step: int) -> tuple[FloatArray, FloatArray]:
        """m from Gamma(shape), and q from Poisson(m) + 1/2."""
        rng = np.random.default_rng([self.seed, self.count, step])
        m: FloatArray = np.maximum(rng.standard_gamma(shape), np.finfo(float).tiny)
        q: FloatArray = rng.poisson(m).astype(np.float64) + 0.5
        return m, q

    def _term(self, m: FloatArray, q: FloatArray) -> FloatArray:
        """q f(m/q) without its slope at 1, which cancels in the sum."""
        return np.asarray(q * (self.divergence.f(m / q) - self.divergence.slope_at_one * (m / q - 1.0)))
