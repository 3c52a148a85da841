"""How far one distribution is from another."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import FloatArray
from robustmdp.divergences import FDivergence


def distance(divergence: FDivergence, p: npt.ArrayLike, p0: npt.ArrayLike) -> FloatArray:
    """D_f(p || p0) = sum p0 f(p/p0) along the last axis; infinite where p has mass that p0 has not.

    >>> from robustmdp import ChiSquare
    >>> distance(ChiSquare(), [[0.75, 0.25], [0.5, 0.5]], [0.5, 0.5])
    array([0.25, 0.  ])
    """
    p, p0 = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(p0, dtype=np.float64))
    on = p0 > 0
    ratio = np.divide(p, p0, out=np.ones_like(p), where=on)
    # Without its slope at 1, f >= 0: nothing cancels.
    terms = p0 * (divergence.f(ratio) - divergence.slope_at_one * (ratio - 1.0))
    total = np.where(on, terms, 0.0).sum(axis=-1)
    return np.where(((p > 0) & ~on).any(axis=-1), np.inf, np.maximum(total, 0.0))
