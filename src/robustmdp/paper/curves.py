"""From records to what is drawn: means over seeds with their 95 % bands, and fitted exponents."""

from __future__ import annotations

import math

import numpy as np

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.paper.figures import Curve, Key, Style
from robustmdp.table import Table


def weight_key(weight: float) -> Key:
    """One colour per lambda, in every figure."""
    return Key("λ", weight)


def by_seed(records: Table, along: str, of: str = "error") -> tuple[FloatArray, FloatArray]:
    """(levels,), (seeds, levels): a column as a matrix, one row per seed."""
    levels, seeds = np.unique(records[along]), np.unique(records["seed"])
    _checks.must(
        len(records) == len(levels) * len(seeds),
        f"every seed must have one row per {along}, {len(seeds)} times {len(levels)}: got {len(records)}",
    )
    order = np.lexsort((records[along], records["seed"]))
    return levels.astype(np.float64), records[of][order].reshape(-1, len(levels)).astype(np.float64)


def samples_and_errors(records: Table) -> tuple[FloatArray, FloatArray]:
    """(budgets,) samples that were taken, in the mean, and (seeds, budgets) errors."""
    _, errors = by_seed(records, "budget")
    _, samples = by_seed(records, "budget", "samples")
    return samples.mean(axis=0), errors


def shown(records: Table) -> float:
    """The world that is drawn where there are several: the usual one, else the first."""
    stays = records.values("stay")
    return 0.8 if 0.8 in stays else float(stays[0])


def last(records: Table) -> Table:
    """The rows of the last step."""
    return records.take(records["step"] == records["step"].max())


def band(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean over seeds (rows) and the ends of its 95 % interval."""
    from scipy import stats

    n = len(values)
    mean = values.mean(axis=0)
    if n < 2:
        return mean, mean, mean
    margin = float(stats.t.ppf(0.975, n - 1)) * values.std(axis=0, ddof=1) / math.sqrt(n)
    return mean, mean - margin, mean + margin


def mean_curve(
    records: Table,
    along: str,
    key: Key,
    *,
    of: str = "error",
    bands: bool = True,
    style: Style = "line",
    name: str = "",
) -> Curve:
    """The mean over seeds of a column against another, with its band."""
    x, values = by_seed(records, along, of)
    mean, low, high = band(values)
    return Curve(key, x, mean, low if bands else None, high if bands else None, style, name)


def points_by_weight(records: Table) -> tuple[Curve, ...]:
    """One point with its 95 % interval per lambda, in the colour of that lambda."""
    found = []
    for (weight,), of in records.groups("weight"):
        mean, low, high = band(of["error"][:, None].astype(np.float64))
        found.append(Curve(weight_key(weight), np.array([weight]), mean, low, high, "points"))
    return tuple(found)


def time_below(x: FloatArray, y: FloatArray, share: float) -> float:
    """The x after which y stays below a share of its first value; the last x if it does not.

    >>> time_below(np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 0.4, 0.6, 0.1]), 0.5)
    3.0
    """
    above = np.flatnonzero(y > share * y[0])
    return float(x[min(int(above[-1]) + 1, len(x) - 1)]) if len(above) else float(x[0])


def exponent(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """b and a of y ~ a x^b, by least squares on logarithms.

    >>> b, a = exponent(np.array([1.0, 10.0, 100.0]), np.array([3.0, 0.3, 0.03]))
    >>> round(b, 9), round(a, 9)
    (-1.0, 3.0)
    """
    slope, intercept = np.polyfit(np.log(x), np.log(y), 1)
    return float(slope), float(np.exp(intercept))
