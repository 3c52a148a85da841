"""The Cressie-Read family and its named members; each is one number k and a convention."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from robustmdp import _checks
from robustmdp.divergences.base import FDivergence


class _PowerDivergence(FDivergence):
    """f = scale * (t^k - 1 - k (t-1))/(k (k-1)) + slope_at_one * (t-1)."""

    @property
    @abstractmethod
    def power(self) -> float:
        """The family's k."""

    @property
    def core(self) -> Any:
        from robustmdp import _core

        # The named members have cheaper formulas.
        named = {0.0: "Burg", 0.5: "Hellinger", 1.0: "KullbackLeibler", 2.0: "ChiSquare", 3.0: "Cubic"}.get(self.power)
        return getattr(_core, named)() if named else _core.Power(self.power)

    slope_at_one = 0.0

    @property
    def curvature_at_one(self) -> float:
        return self.scale

    @property
    def value_at_zero(self) -> float:
        return self.scale / self.power - self.slope_at_one if self.power > 0.0 else math.inf

    @property
    def slope_at_infinity(self) -> float:
        return self.scale / (1.0 - self.power) + self.slope_at_one if self.power < 1.0 else math.inf


@dataclass(frozen=True, repr=False)
class CressieRead(_PowerDivergence):
    """f(t) = (t^k - 1 - k (t-1))/(k (k-1)) for any real k, by its limits at k = 0 and 1.

    D, value and distribution tend to those of `Burg` as k tends to 0 and of `KL` as k tends to 1 (f and eta differ by
    an affine term); k = 2 is half of `ChiSquare`, k = 1/2 is twice `Hellinger`.

    >>> CressieRead(2.0).f([0.0, 1.0, 3.0])
    array([0.5, 0. , 2. ])
    """

    k: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", _checks.finite_number("k", self.k))

    @property
    def name(self) -> str:
        return f"Cressie-Read({self.k:g})"

    @property
    def power(self) -> float:
        return self.k

    def __repr__(self) -> str:
        return f"CressieRead({self.k!r})"


@dataclass(frozen=True, repr=False)
class ChiSquare(_PowerDivergence):
    """f(t) = (t-1)^2 and f*(s) = (s/2 + 1)_+^2 - 1, the divergence of the paper's experiments.

    >>> ChiSquare().f([0.0, 1.0, 3.0])
    array([1., 0., 4.])
    """

    name = "chi-square"
    power = 2.0
    scale = 2.0

    @property
    def ascent(self) -> Any:
        from robustmdp import _core

        return _core.ascend_chi_square


@dataclass(frozen=True, repr=False)
class KL(_PowerDivergence):
    """f(t) = t log t and f*(s) = exp(s - 1): the Kullback-Leibler divergence, or relative entropy.

    >>> float(KL().conjugate(1.0))
    1.0
    """

    name = "Kullback-Leibler"
    power = 1.0
    slope_at_one = 1.0

    @property
    def ascent(self) -> Any:
        from robustmdp import _core

        return _core.ascend_kullback_leibler


@dataclass(frozen=True, repr=False)
class Burg(_PowerDivergence):
    """f(t) = -log t and f*(s) = -1 - log(-s): Kullback-Leibler with its arguments exchanged.

    >>> float(Burg().conjugate(-1.0))
    -1.0
    """

    name = "Burg"
    power = 0.0
    slope_at_one = -1.0


@dataclass(frozen=True, repr=False)
class Hellinger(_PowerDivergence):
    """f(t) = (sqrt t - 1)^2 and f*(s) = s/(1 - s); twice the normalised squared Hellinger distance of some texts.

    >>> Hellinger().f([0.0, 1.0, 4.0])
    array([1., 0., 1.])
    """

    name = "Hellinger"
    power = 0.5
    scale = 0.5
