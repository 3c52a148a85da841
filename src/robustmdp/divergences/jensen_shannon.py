"""Jensen-Shannon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from robustmdp.divergences.base import FDivergence


@dataclass(frozen=True, repr=False)
class JensenShannon(FDivergence):
    """f(t) = t log t - (t+1) log((t+1)/2) and f*(s) = -log(2 - exp s); twice the normalised one of some texts.

    >>> float(JensenShannon().f(0.0)) == math.log(2)
    True
    """

    @property
    def name(self) -> str:
        return "Jensen-Shannon"

    @property
    def core(self) -> Any:
        from robustmdp import _core

        return _core.JensenShannon()

    @property
    def slope_at_one(self) -> float:
        return 0.0

    @property
    def curvature_at_one(self) -> float:
        return 0.5

    @property
    def value_at_zero(self) -> float:
        return math.log(2.0)

    @property
    def slope_at_infinity(self) -> float:
        return math.log(2.0)
