"""No more points than a screen shows: thinned curves, and what is left of them on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from robustmdp.app.page.figure import Curve, FloatArray, Panel, Scale


def thin(curve: Curve, limit: int) -> Curve:
    """At most `limit` points, dense enough on linear and logarithmic axes alike; ends stay.

    >>> from robustmdp.app.page.figure import Key
    >>> x = np.arange(1.0, 100_001.0)
    >>> thinned = thin(Curve(Key("λ", 1.0), x, 1 / x), 100)
    >>> len(thinned.x) <= 100, thinned.x[:3].tolist(), thinned.x[-1].item()
    (True, [1.0, 2.0, 3.0], 100000.0)
    """
    return curve if len(curve.x) <= limit else _take(curve, _spread(curve.x, limit))


def within(curve: Curve, low: float, high: float) -> Curve:
    """The part over a range of x, with the neighbour on either side, so that lines reach the frame."""
    inside = (curve.x >= low) & (curve.x <= high)
    near = inside.copy()
    near[1:] |= inside[:-1]
    near[:-1] |= inside[1:]
    return _take(curve, np.flatnonzero(near))


def fitted(curves: Iterable[Curve], low: float, high: float, scale: Scale) -> tuple[float, float] | None:
    """The range of y that curves and bands take over a range of x, with some air; None where there is nothing."""
    parts = [
        values[(curve.x >= low) & (curve.x <= high)]
        for curve in curves
        for values in (curve.y, curve.low, curve.high)
        if values is not None
    ]
    values = np.concatenate([np.empty(0), *parts])
    values = values[np.isfinite(values) & ((values > 0) | (scale == "linear"))]
    if not len(values):
        return None
    if scale == "log":
        bottom, top = np.log10(values.min()), np.log10(values.max())
        air = 0.05 * (top - bottom) or 0.1
        return float(10 ** max(bottom - air, -300.0)), float(10 ** min(top + air, 300.0))
    air = 0.05 * np.ptp(values) or 0.1 * abs(float(values[0])) or 1.0
    return float(values.min() - air), float(values.max() + air)


def along(panel: Panel, axis: Literal["x", "y"]) -> FloatArray:
    """All finite numbers of its curves on an axis."""
    values = np.concatenate([np.empty(0), *(curve.x if axis == "x" else curve.y for curve in panel.curves)])
    finite: FloatArray = values[np.isfinite(values)]
    return finite


def _spread(x: FloatArray, limit: int) -> npt.NDArray[np.int64]:
    """Half of the points evenly by number, half evenly by its logarithm."""
    last = len(x) - 1
    even = np.linspace(0, last, limit // 2)
    early = np.geomspace(1, last + 1, limit - limit // 2) - 1
    return np.unique(np.concatenate([even, early]).round().astype(np.int64))


def _take(curve: Curve, rows: npt.NDArray[np.int64]) -> Curve:
    low = None if curve.low is None else curve.low[rows]
    high = None if curve.high is None else curve.high[rows]
    return replace(curve, x=curve.x[rows], y=curve.y[rows], low=low, high=high)
