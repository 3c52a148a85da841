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

    @property
    def name(self) -> str:
        return "total variation"

    @property
    def core(self) -> Any:
        from robustmdp import _core

        return _core.TotalVariation()

    @property
    def slope_at_one(self) -> float:
        return 0.0

    @property
    def curvature_at_one(self) -> float:
        return math.inf

    @property
    def value_at_zero(self) -> float:
        return 0.5

    @property
    def slope_at_infinity(self) -> float:
        return 0.5

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
