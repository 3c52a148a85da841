"""Total variation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import FloatArray
from robustmdp.divergences.base import FDivergence


@dataclass(frozen=True, repr=False)
class TotalVariation(FDivergence):
    """f(t) = |t-1|/2, so that the distance lies in [0, 1]; f*(s) = max(s, -1/2) for s <= 1/2.

    >>> TotalVariation().f([0.0, 1.0, 3.0])
    array([0.5, 0. , 1. ])
    """

    name = "total variation"

    @property
    def core(self) -> Any:
        from robustmdp import _core

        return _core.TotalVariation()

    slope_at_one = 0.0
    curvature_at_one = math.inf
    value_at_zero = 0.5
    slope_at_infinity = 0.5

    def f(self, t: npt.ArrayLike) -> FloatArray:
        ratios = np.asarray(t, dtype=np.float64)
        return np.where(ratios < 0.0, np.inf, 0.5 * np.abs(ratios - 1.0))

    def conjugate(self, s: npt.ArrayLike) -> FloatArray:
        s = np.asarray(s, dtype=np.float64)
        return np.where(s > 0.5, np.inf, np.maximum(s, -0.5))

    def conjugate_derivative(self, s: npt.ArrayLike) -> FloatArray:
        """1 inside (-1/2, 1/2], 0 below, infinite above: a selection at the kinks."""
        s = np.asarray(s, dtype=np.float64)
        return np.where(s > 0.5, np.inf, np.where(s > -0.5, 1.0, 0.0))
