"""From records to what is drawn: means over seeds with their 95 % bands, and fitted exponents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.paper.figures import Curve, Key
from robustmdp.table import Table


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
    _, samples = by_seed(records, "budget", "samples")
    return samples.mean(axis=0), by_seed(records, "budget")[1]


def last(records: Table, along: str = "step") -> Table:
    """The rows of the last step, or of the largest of what another column has."""
    return records.take(records[along] == records[along].max())


def half_width(values: FloatArray, level: float = 0.05) -> Any:
    """Half of the t interval of the mean over seeds (rows); NaN of one seed."""
    from scipy import stats

    n = len(values)
    if n < 2:
        return np.full(values.shape[1:], np.nan)
    return stats.t.ppf(1.0 - 0.5 * level, n - 1) * values.std(axis=0, ddof=1) / math.sqrt(n)


def band(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean over seeds (rows) and the ends of its 95 % interval."""
    mean = values.mean(axis=0)
    margin = half_width(values) if len(values) > 1 else 0.0
    return mean, mean - margin, mean + margin


def mean_curve(records: Table, along: str, key: Key, *, of: str = "error", bands: bool = True, **look: Any) -> Curve:
    """The mean over seeds of a column against another, or of errors against the samples taken, with its band."""
    x, values = samples_and_errors(records) if along == "samples" else by_seed(records, along, of)
    mean, low, high = band(values)
    return Curve(key, x, mean, low if bands else None, high if bands else None, **look)


def mean_curves(records: Table, by: str, along: str, kind: str, **look: Any) -> tuple[Curve, ...]:
    """`mean_curve` of each value of a column, which is a quantity of that kind."""
    return tuple(mean_curve(of, along, Key(kind, value), **look) for (value,), of in records.groups(by))


def points_by_weight(records: Table) -> tuple[Curve, ...]:
    """One point with its 95 % interval per lambda, in the colour of that lambda."""
    return tuple(
        Curve(Key("λ", weight), np.array([weight]), *band(of["error"][:, None].astype(np.float64)), "points")
        for (weight,), of in records.groups("weight")
    )


def sorted_curve(records: Table, x: str, y: str, key: Key, **look: Any) -> Curve:
    """A column against another, in the order of x."""
    order = np.argsort(records[x])
    return Curve(key, records[x][order].astype(np.float64), records[y][order].astype(np.float64), **look)


def named(records: Table, column: str, names: Iterable[str] | Mapping[str, str]) -> list[tuple[str, Table]]:
    """The rows of each name in a column that occurs, in the order of the names."""
    found = [(name, records.where(**{column: name})) for name in names]
    return [(name, of) for name, of in found if len(of)]


def labels(levels: Iterable[Any]) -> list[str]:
    """Numbers as they are written in findings; words stay."""
    return [level if isinstance(level, str) else f"{level:g}" for level in levels]


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
