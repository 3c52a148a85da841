"""The sets of the paper: nominal, penalized, constrained."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _core
from robustmdp.ambiguity.base import Ambiguity, Level, Levelled, discounted
from robustmdp.ambiguity.conjugates import ConstrainedRows, PenalizedRows
from robustmdp.ambiguity.shared_rows import SharedBudget, SharedPrice
from robustmdp.divergences import ChiSquare, FDivergence, check_divergence
from robustmdp.divergences.functions import Conjugate


class Nominal(Ambiguity):
    """Nature cannot choose: the model is right.

    >>> from robustmdp import worst_case
    >>> worst_case(Nominal(), [0.5, 0.5], [0.0, 2.0]).value
    1.0
    """

    is_nominal = True
    divergence: FDivergence = ChiSquare()
    level_name = "weight"
    kernel = _core.Nominal()
    level = math.inf

    def __init__(self) -> None:
        super().__init__()

    def __str__(self) -> str:
        return "nominal: the model is taken as true"


class _OfDivergence(Levelled):
    """What the penalized and the constrained form share: a divergence and a level per pair or for all."""

    def __init__(self, divergence: FDivergence, level: npt.ArrayLike) -> None:
        super().__init__(level, divergence=check_divergence(divergence))

    @property
    def label(self) -> str:
        return f"{self.divergence.name} {self._level_label()}"

    @property
    def keeps_support(self) -> bool:
        """Under a price nothing is free; in a ball, where f(0) is infinite, a successor without mass is too far."""
        level = np.asarray(self.level)
        if self.has_weight:
            return bool(np.all((level > 0) | np.isnan(level)))
        return math.isinf(self.divergence.value_at_zero) and bool(np.all((level < math.inf) | np.isnan(level)))

    def paper_multipliers(self, eta: float, weight: float) -> tuple[float, float]:
        weight /= self.divergence.scale
        slope = self.divergence.slope_at_one
        return eta + (weight * slope if slope else 0.0), weight

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.divergence!r}, {self.level_name}={self._level_code()})"


class Penalized(_OfDivergence):
    """inf over P of E_P v + weight * D_f(P || P0): nature picks any P and pays for it; the paper's (3) and (4).

    Parameters
    ----------
    divergence : a divergence
    weight : float or (S, A) array in [0, inf]
        The paper's lambda. 0 gives the minimum over the support, inf the nominal model. With discount 0 the penalty
        vanishes with the future it is paid in.

    >>> from robustmdp import KL, worst_case
    >>> answer = worst_case(Penalized(KL(), 1.0), [0.5, 0.5], [0.0, 2.0])  # -log E exp(-v)
    >>> round(answer.value, 6)
    0.566219
    """

    has_weight = True
    grows = False
    level_name = "weight"
    weight: Level
    """The paper's lambda."""

    def __init__(self, divergence: FDivergence, weight: npt.ArrayLike) -> None:
        super().__init__(divergence, weight)

    @cached_property
    def kernel(self) -> Any:
        core = self.divergence.core
        return PenalizedRows(core) if isinstance(core, Conjugate) else core.penalized()

    def shared_kernel_for(self, model: Any) -> Any:
        core = self.divergence.core
        return SharedPrice(core) if isinstance(core, Conjugate) else _core.state_penalized(core)

    def kernel_level(self, discount: float) -> Level:
        """Discount * weight in the normal form's unit; an infinite weight stays nominal even at discount 0."""
        return discounted(self.level, discount * self.divergence.scale)

    @property
    def eta_shift(self) -> Level:
        slope = self.divergence.slope_at_one
        return slope * self.level if slope else 0.0

    def __str__(self) -> str:
        return f"penalized: nature pays {self._level_text()} per unit of {self.divergence.name} divergence"


class Constrained(_OfDivergence):
    """inf over D_f(P || P0) <= radius of E_P v: nature picks any P in the ball; the paper's (1) and (2).

    Parameters
    ----------
    divergence : a divergence
    radius : float or (S, A) array in [0, inf]
        The paper's rho. 0 gives the nominal model, inf the minimum over the support.

    >>> from robustmdp import TotalVariation, worst_case
    >>> worst_case(Constrained(TotalVariation(), 0.25), [0.5, 0.5], [0.0, 2.0]).value
    0.5
    """

    has_radius = True
    level_name = "radius"
    radius: Level
    """The paper's rho."""

    def __init__(self, divergence: FDivergence, radius: npt.ArrayLike) -> None:
        super().__init__(divergence, radius)

    @cached_property
    def kernel(self) -> Any:
        core = self.divergence.core
        return ConstrainedRows(core) if isinstance(core, Conjugate) else core.constrained()

    def shared_kernel_for(self, model: Any) -> Any:
        core = self.divergence.core
        return SharedBudget(core) if isinstance(core, Conjugate) else _core.state_constrained(core)

    def kernel_level(self, discount: float) -> Level:
        """The radius in the normal form's unit."""
        return self.level / self.divergence.scale

    def __str__(self) -> str:
        return f"constrained: nature stays within {self._level_text()} in {self.divergence.name} divergence"
