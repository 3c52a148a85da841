"""How far the truth may be: three frozen records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _display
from robustmdp.divergences import ChiSquare, FDivergence
from robustmdp.divergences.base import FloatArray

Level = float | FloatArray


class Spec(NamedTuple):
    """An ambiguity as compiled code sees it; the modes are those of ambiguity._rows."""

    mode: int
    kind: int
    k: float
    edge: float


@dataclass(frozen=True)
class Nominal:
    """Nature cannot choose: the model is right.

    >>> from robustmdp import worst_case
    >>> worst_case(Nominal(), [0.5, 0.5], [0.0, 2.0]).value
    1.0
    """

    mode: ClassVar[int] = 0
    divergence: ClassVar[FDivergence] = ChiSquare()
    level: ClassVar[float] = math.inf
    level_name: ClassVar[str] = "weight"
    is_nominal: ClassVar[bool] = True
    has_weight: ClassVar[bool] = False
    has_radius: ClassVar[bool] = False

    @property
    def spec(self) -> Spec:
        """Mode and divergence for compiled code."""
        return Spec(0, self.divergence.kernel.kind, self.divergence.kernel.k, math.inf)

    def kernel_level(self, discount: float) -> Level:
        """The level in normal form, for outcomes that are already discounted."""
        del discount
        return math.inf

    def __str__(self) -> str:
        return "nominal: the model is taken as true"

    def _repr_html_(self) -> str:
        return _display.as_html(type(self).__name__, [("meaning", str(self))])


class _Levelled:
    """What the penalized and the constrained form share: a divergence and a level per pair or for all."""

    mode: ClassVar[int]
    level_name: ClassVar[str]
    is_nominal: ClassVar[bool] = False
    has_weight: ClassVar[bool] = False
    has_radius: ClassVar[bool] = False
    divergence: FDivergence

    def __init__(self, divergence: FDivergence, level: npt.ArrayLike) -> None:
        if not isinstance(divergence, FDivergence):
            raise TypeError(f"divergence must be one, such as rm.KL(): got {divergence!r}")
        checked = _checks.level(self.level_name, level)
        if isinstance(checked, np.ndarray):
            checked = checked.copy()
            checked.flags.writeable = False
        object.__setattr__(self, "divergence", divergence)
        object.__setattr__(self, "_level", checked)

    @property
    def level(self) -> Level:
        """The weight or the radius, whichever this is."""
        level: Level = object.__getattribute__(self, "_level")
        return level

    @property
    def spec(self) -> Spec:
        """Mode and divergence for compiled code."""
        kernel = self.divergence.kernel
        return Spec(self.mode, kernel.kind, kernel.k, self.divergence.edge)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: make a new one to change {name}")

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and isinstance(other, _Levelled)
            and self.divergence == other.divergence
            and np.array_equal(self.level, other.level, equal_nan=True)
        )

    def __hash__(self) -> int:
        return hash((type(self), self.divergence, np.asarray(self.level).tobytes()))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.divergence, self.level)

    def _repr_html_(self) -> str:
        return _display.as_html(type(self).__name__, [("meaning", str(self))])

    def _level_text(self) -> str:
        if isinstance(self.level, float):
            return f"{self.level:g}"
        return f"{np.nanmin(self.level):g} to {np.nanmax(self.level):g}, one per state and action"

    def __repr__(self) -> str:
        level = f"{self.level!r}" if isinstance(self.level, float) else f"<{self._level_text()}>"
        return f"{type(self).__name__}({self.divergence!r}, {self.level_name}={level})"


class Penalized(_Levelled):
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

    mode = 1
    level_name = "weight"
    has_weight = True

    def __init__(self, divergence: FDivergence, weight: npt.ArrayLike) -> None:
        super().__init__(divergence, weight)

    @property
    def weight(self) -> Level:
        """The paper's lambda."""
        return self.level

    def kernel_level(self, discount: float) -> Level:
        """Discount * weight in the normal form's unit; an infinite weight stays nominal even at discount 0."""
        factor = discount * self.divergence.kernel.scale
        level = np.asarray(self.level)
        scaled = np.where(np.isinf(level), np.inf, factor * np.where(np.isinf(level), 0.0, level))
        return float(scaled) if scaled.ndim == 0 else scaled

    def __str__(self) -> str:
        return f"penalized: nature pays {self._level_text()} per unit of {self.divergence.name} divergence"


class Constrained(_Levelled):
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

    mode = 2
    level_name = "radius"
    has_radius = True

    def __init__(self, divergence: FDivergence, radius: npt.ArrayLike) -> None:
        super().__init__(divergence, radius)

    @property
    def radius(self) -> Level:
        """The paper's rho."""
        return self.level

    def kernel_level(self, discount: float) -> Level:
        """The radius in the normal form's unit."""
        del discount
        return self.level / self.divergence.kernel.scale

    def __str__(self) -> str:
        return f"constrained: nature stays within {self._level_text()} in {self.divergence.name} divergence"


Ambiguity = Nominal | Penalized | Constrained


def check_ambiguity(ambiguity: object) -> Ambiguity:
    """Refuse anything but the three records."""
    if isinstance(ambiguity, Nominal | Penalized | Constrained):
        return ambiguity
    raise TypeError(f"ambiguity must be Nominal(), Penalized(...) or Constrained(...): got {ambiguity!r}")
