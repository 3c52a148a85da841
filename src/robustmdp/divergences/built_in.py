"""The divergences of the package: the Cressie-Read family, each member one number k and a convention, and others."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core, _plugins
from robustmdp._arrays import FloatArray
from robustmdp.divergences.base import FDivergence


class _PowerDivergence(FDivergence):
    """f = scale * (t^k - 1 - k (t-1))/(k (k-1)) + slope_at_one * (t-1)."""

    @property
    @abstractmethod
    def power(self) -> float:
        """The family's k."""

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

    @property
    def core(self) -> Any:
        named = {0.0: Burg, 0.5: Hellinger, 1.0: KL, 2.0: ChiSquare}.get(self.k)  # they have cheaper formulas
        if named is not None:
            return named.core
        return _core.Cubic() if self.k == 3.0 else _core.Power(self.k)

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
    core = _core.ChiSquare()
    ascent = staticmethod(_core.ascend_chi_square)


@dataclass(frozen=True, repr=False)
class KL(_PowerDivergence):
    """f(t) = t log t and f*(s) = exp(s - 1): the Kullback-Leibler divergence, or relative entropy.

    >>> float(KL().conjugate(1.0))
    1.0
    """

    name = "Kullback-Leibler"
    power = 1.0
    slope_at_one = 1.0
    core = _core.KullbackLeibler()
    ascent = staticmethod(_core.ascend_kullback_leibler)


@dataclass(frozen=True, repr=False)
class Burg(_PowerDivergence):
    """f(t) = -log t and f*(s) = -1 - log(-s): Kullback-Leibler with its arguments exchanged.

    >>> float(Burg().conjugate(-1.0))
    -1.0
    """

    name = "Burg"
    power = 0.0
    slope_at_one = -1.0
    core = _core.Burg()


@dataclass(frozen=True, repr=False)
class Hellinger(_PowerDivergence):
    """f(t) = (sqrt t - 1)^2 and f*(s) = s/(1 - s); twice the normalised squared Hellinger distance of some texts.

    >>> Hellinger().f([0.0, 1.0, 4.0])
    array([1., 0., 1.])
    """

    name = "Hellinger"
    power = 0.5
    scale = 0.5
    core = _core.Hellinger()


@dataclass(frozen=True, repr=False)
class JensenShannon(FDivergence):
    """f(t) = t log t - (t+1) log((t+1)/2) and f*(s) = -log(2 - exp s); twice the normalised one of some texts.

    >>> float(JensenShannon().f(0.0)) == math.log(2)
    True
    """

    name = "Jensen-Shannon"
    core = _core.JensenShannon()
    slope_at_one = 0.0
    curvature_at_one = 0.5
    value_at_zero = math.log(2.0)
    slope_at_infinity = math.log(2.0)


@dataclass(frozen=True, repr=False)
class TotalVariation(FDivergence):
    """f(t) = |t-1|/2, so that the distance lies in [0, 1]; f*(s) = max(s, -1/2) for s <= 1/2.

    >>> TotalVariation().f([0.0, 1.0, 3.0])
    array([0.5, 0. , 1. ])
    """

    name = "total variation"
    core = _core.TotalVariation()
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


_NAMES: dict[str, type[FDivergence]] = {
    "chi2": ChiSquare,
    "kl": KL,
    "tv": TotalVariation,
    "burg": Burg,
    "hellinger": Hellinger,
    "js": JensenShannon,
}


def divergence_named(word: str) -> FDivergence:
    """A divergence by its short name: chi2, kl, tv, burg, hellinger, js, cr:K for Cressie-Read, or that of a package.

    >>> divergence_named("kl")
    KL()
    """
    name, _, parameter = word.lower().partition(":")
    if name == "cr":
        try:
            return CressieRead(float(parameter))
        except ValueError:
            _checks.fail(f"the k of cr:K must be a number: got {parameter!r}")
    if name in _NAMES:
        return _NAMES[name]()
    point = _plugins.find("divergence", word)
    if point is None:
        _checks.nearest("divergence", word, [*_NAMES, "cr:K", *_plugins.names("divergence")])
    wanted = "be a divergence, rm.Divergence(...)"
    found: FDivergence = _plugins.load("divergence", point, wanted, lambda thing: isinstance(thing, FDivergence))
    return found
