"""How far the truth may be, given how often each successor was seen."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp._arrays import FloatArray
from robustmdp.divergences import FDivergence, TotalVariation, check_divergence
from robustmdp.models import Counts
from robustmdp.tuning.bootstrap import Bootstrap, nominal

METHODS = ("simulated", "asymptotic", "finite-sample")


def radius_from_counts(
    counts: Counts | npt.ArrayLike,
    divergence: FDivergence,
    confidence: float,
    *,
    method: str | None = None,
    seed: int = 0,
) -> float | FloatArray:
    """The radius rho with D_f(truth || nominal) <= rho for `confidence` of all data, nominal (n_i + 1/2)/(n + k/2).

    The k successors are those that are listed; nothing is claimed for others: a pair with a single one gets 0, however
    few its visits. Pairs with several that were never seen get inf.

    Parameters
    ----------
    counts : `Counts`, or an array (..., k) of whole numbers, NaN where a successor is not listed
    divergence : a divergence
    confidence : float in (0, 1), for each pair by itself
    method : "simulated" by default, "finite-sample" for total variation
        "simulated": a parametric bootstrap from Jeffreys' posterior, calibrated for whole numbers; covers 0.93 to
        0.985 at confidence 0.95 wherever every successor is expected five times or more; chi-square with more than ten
        successors needs eight times, since one that was missed by chance has a high price there, and reaches 0.988 with
        30, and with two and fewer than 20 observations. Lower confidences cover more than they say.
        "asymptotic": f''(1) chi2(k-1)/(2n), the likelihood ratio's limit, which covers too little for small counts
        (chi-square: 0.84 at n = 50 with ten equal successors). "finite-sample": a bound that holds for every truth, and
        is conservative; the only one for total variation.
    seed : of the simulation, which two successors do not need; a radius depends on the counts and the seed alone, not
        on the order of pairs

    Counts of the noise of a model made by `MDP.from_noise` are one row: their radius is that of every pair, however
    many there are, and holds for all of them at once, since they share the noise.

    Returns
    -------
    A number for one row of counts, an array without the last axis for several, (S, A) for `Counts`.

    >>> from robustmdp import ChiSquare
    >>> radius_from_counts([50, 50], ChiSquare(), 0.95, method="asymptotic").__round__(4)  # 3.84/100
    0.0384
    >>> days = [16, 24, 8, 20, 12]  # on which the demand was 0, 1, 2, 3, 4: one radius for all pairs
    >>> radius_from_counts(days, ChiSquare(), 0.95, method="asymptotic").__round__(4)  # 9.49/80
    0.1186
    """
    _types.check_arguments(radius_from_counts, locals())
    check_divergence(divergence)
    level = _checks.finite_number("confidence", confidence)
    _checks.must(0.0 < level < 1.0, f"confidence must lie between 0 and 1: got {level:g}")
    radius = _choose_method(divergence, level, method, seed)
    if isinstance(counts, Counts):
        rows = np.split(counts.count, counts.indptr[1:-1])
        return counts.table(_compute_radii(rows, radius), math.inf)
    table = _check_counts(counts)
    flat = table.reshape(-1, table.shape[-1])
    found = _compute_radii([row[~np.isnan(row)] for row in flat], radius).reshape(table.shape[:-1])
    return float(found) if found.ndim == 0 else found


def _check_counts(counts: npt.ArrayLike) -> FloatArray:
    try:
        table = np.asarray(counts, dtype=np.float64)
    except (TypeError, ValueError):
        _checks.refuse_type("counts", "Counts or an array of whole numbers", counts)
    _checks.must(
        table.ndim >= 1 and table.size > 0, f"counts must have a row of at least one successor: got {table.shape}"
    )
    wrong = np.argwhere(~np.isnan(table) & ~((table >= 0) & (table == np.floor(table)) & np.isfinite(table)))
    if len(wrong):
        where = tuple(int(i) for i in wrong[0])
        _checks.fail(f"counts must be whole numbers of at least 0: got {table[where]:g} at counts{list(where)}")
    return table


def _compute_radii(rows: list[FloatArray], radius: Callable[[FloatArray], float]) -> FloatArray:
    """The radius of each row; rows with the same numbers in any order share one."""
    known: dict[bytes, float] = {}
    out = np.empty(len(rows))
    for place, row in enumerate(rows):
        ordered = np.sort(row)
        key = ordered.tobytes()
        if key not in known:
            known[key] = _plain(ordered) if len(row) < 2 or row.sum() == 0 else radius(ordered)
        out[place] = known[key]
    return out


def _plain(row: FloatArray) -> float:
    """Nothing to doubt with one successor; nothing known without a count."""
    return 0.0 if len(row) == 1 else math.inf


def _choose_method(
    divergence: FDivergence, confidence: float, method: str | None, seed: int
) -> Callable[[FloatArray], float]:
    kinked = math.isinf(divergence.curvature_at_one)
    chosen = ("finite-sample" if kinked else "simulated") if method is None else method
    if chosen not in METHODS:
        _checks.nearest("method", chosen, METHODS)
    _checks.must(
        not kinked or chosen == "finite-sample",
        f"method must be 'finite-sample' for {divergence.name}, whose f has a kink at 1: got {chosen!r}",
    )
    if chosen == "asymptotic":
        return lambda row: _asymptotic(divergence, confidence, row)
    if chosen == "finite-sample":
        if divergence == TotalVariation():
            return lambda row: _total_variation_bound(confidence, row)
        return lambda row: _box_bound(divergence, confidence, row)
    return Bootstrap(divergence, confidence, seed).radius


def _asymptotic(divergence: FDivergence, confidence: float, row: FloatArray) -> float:
    """n sum (p - q)^2/q tends to chi2(k-1), and D to half of f''(1) times that sum."""
    from scipy.special import chdtri

    return float(0.5 * divergence.curvature_at_one * chdtri(len(row) - 1, 1.0 - confidence) / row.sum())


def _box_bound(divergence: FDivergence, confidence: float, row: FloatArray) -> float:
    """The largest D over all p whose every entry lies in its Clopper-Pearson interval, the error shared among them.

    max of sum g_i(p_i), g_i convex, over l <= p <= u and sum p = 1 is at most, for every mu,
    mu + sum max(g_i(l_i) - mu l_i, g_i(u_i) - mu u_i): the least of these over mu is taken.
    """
    from scipy.special import betaincinv

    total, share = row.sum(), (1.0 - confidence) / (2.0 * len(row) if len(row) > 2 else 2.0)
    low = np.where(row > 0, betaincinv(np.maximum(row, 1e-300), total - row + 1.0, share), 0.0)
    high = np.where(row < total, betaincinv(row + 1.0, np.maximum(total - row, 1e-300), 1.0 - share), 1.0)
    q = nominal(row)
    at_low, at_high = (q * (divergence.f(p / q) - divergence.slope_at_one * (p / q - 1.0)) for p in (low, high))
    if not np.isfinite(at_low).all():
        return math.inf
    # The best mu is a slope at which one entry is indifferent between its ends.
    slopes = (at_high - at_low) / (high - low)
    choices = np.maximum(at_low - slopes[:, None] * low, at_high - slopes[:, None] * high)
    return float(np.min(slopes + choices.sum(axis=1)))


def _total_variation_bound(confidence: float, row: FloatArray) -> float:
    """The better of two bounds on the distance to the frequencies, plus theirs to the nominal; at most the largest D.

    McDiarmid: E TV + sqrt(log(1/delta)/(2n)) with E TV <= sqrt((k-1)/n)/2. Weissman et al. (2003):
    sqrt(log((2^k - 2)/delta)/(2n)).
    """
    n, k, delta = row.sum(), len(row), 1.0 - confidence
    around_mean = 0.5 * math.sqrt((k - 1) / n) + math.sqrt(math.log(1.0 / delta) / (2.0 * n))
    union = math.sqrt((math.log(2.0) * k + math.log1p(-(2.0 ** (1 - k))) - math.log(delta)) / (2.0 * n))
    apart = 0.5 * float(np.abs(row / n - nominal(row)).sum())
    return min(1.0, min(around_mean, union) + apart)
