"""The sets of the paper: nominal, penalized, constrained."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.ambiguity.base import Ambiguity, Level, RowKernel, StateKernel
from robustmdp.ambiguity.conjugates import constrained_kernel, penalized_kernel
from robustmdp.ambiguity.levelled import Levelled
from robustmdp.ambiguity.shared_rows import shared_budget_kernel, shared_price_kernel
from robustmdp.divergences import ChiSquare, FDivergence, check_divergence


class Nominal(Ambiguity):
    """Nature cannot choose: the model is right.

    >>> from robustmdp import worst_case
    >>> worst_case(Nominal(), [0.5, 0.5], [0.0, 2.0]).value
    1.0
    """

    is_nominal = True
    divergence: FDivergence = ChiSquare()
    level_name = "weight"

    @property
    def level(self) -> float:
        """An infinite weight."""
        return math.inf

    @property
    def kernel(self) -> RowKernel:
        from robustmdp import _core

        kernel: RowKernel = _core.Nominal()
        return kernel

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Nominal has nothing to change")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nominal)

    def __hash__(self) -> int:
        return hash(Nominal)

    def __repr__(self) -> str:
        return "Nominal()"

    def __str__(self) -> str:
        return "nominal: the model is taken as true"


class _OfDivergence(Levelled):
    """What the penalized and the constrained form share: a divergence and a level per pair or for all."""

    def __init__(self, divergence: FDivergence, level: npt.ArrayLike) -> None:
        super().__init__(level, divergence=check_divergence(divergence))

    @property
    def label(self) -> str:
        per_pair = "per pair" if isinstance(self.level, np.ndarray) else f"{self.level:.3g}"
        return f"{self.divergence.name} {self.level_name} {per_pair}"

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
        level = f"{self.level!r}" if isinstance(self.level, float) else f"<{self._level_text()}>"
        return f"{type(self).__name__}({self.divergence!r}, {self.level_name}={level})"


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

    def __init__(self, divergence: FDivergence, weight: npt.ArrayLike) -> None:
        super().__init__(divergence, weight)

    @property
    def weight(self) -> Level:
        """The paper's lambda."""
        return self.level

    @cached_property
    def kernel(self) -> RowKernel:
        return penalized_kernel(self.divergence)

    def shared_kernel_for(self, model: Any) -> StateKernel:
        return shared_price_kernel(self.divergence)

    def kernel_level(self, discount: float) -> Level:
        """Discount * weight in the normal form's unit; an infinite weight stays nominal even at discount 0."""
        factor = discount * self.divergence.scale
        level = self.level
        if isinstance(level, float):
            return level if level == math.inf else factor * level
        return np.where(np.isinf(level), np.inf, factor * np.where(np.isinf(level), 0.0, level))

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

    def __init__(self, divergence: FDivergence, radius: npt.ArrayLike) -> None:
        super().__init__(divergence, radius)

    @property
    def radius(self) -> Level:
        """The paper's rho."""
        return self.level

    @cached_property
    def kernel(self) -> RowKernel:
        return constrained_kernel(self.divergence)

    def shared_kernel_for(self, model: Any) -> StateKernel:
        return shared_budget_kernel(self.divergence)

    def kernel_level(self, discount: float) -> Level:
        """The radius in the normal form's unit."""
        del discount
        return self.level / self.divergence.scale

    def __str__(self) -> str:
        return f"constrained: nature stays within {self._level_text()} in {self.divergence.name} divergence"


def is_set(thing: object) -> bool:
    """Whether this can serve as a set: one of ours, or a user's object with `worst_case(p, z, level)`."""
    return isinstance(thing, Ambiguity) or (not isinstance(thing, type) and _is_own_set(thing))


def _is_own_set(thing: object) -> bool:
    return callable(getattr(thing, "worst_case", None)) and hasattr(thing, "level")


def check_ambiguity(ambiguity: object) -> Ambiguity:
    """Refuse anything but a set; a user's own is wrapped."""
    if isinstance(ambiguity, Ambiguity):
        return ambiguity
    if is_set(ambiguity):
        from robustmdp.ambiguity.own import OwnSet

        return OwnSet(ambiguity)
    _checks.refuse_type("ambiguity", "a set such as Nominal(), Penalized(...) or Constrained(...)", ambiguity)
