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

    name = "Jensen-Shannon"

    @property
    def core(self) -> Any:
        from robustmdp import _core

        return _core.JensenShannon()

    slope_at_one = 0.0
    curvature_at_one = 0.5
    value_at_zero = math.log(2.0)
    slope_at_infinity = math.log(2.0)
