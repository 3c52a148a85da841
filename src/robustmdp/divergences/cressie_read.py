"""The Cressie-Read family and its named members; each is one number k and a convention."""

from __future__ import annotations

import math
from dataclasses import dataclass

from robustmdp import _checks
from robustmdp.divergences.base import FDivergence, Kernel

_CRESSIE_READ = 0  # the code in divergences.kernels, which is not imported here because it loads Numba


class _PowerDivergence(FDivergence):
    """f = scale * (t^k - 1 - k (t-1))/(k (k-1)) + slope_at_one * (t-1)."""

    @property
    def slope_at_one(self) -> float:
        return 0.0

    @property
    def curvature_at_one(self) -> float:
        return self.kernel.scale

    @property
    def value_at_zero(self) -> float:
        _, k, scale = self.kernel
        return scale / k - self.slope_at_one if k > 0.0 else math.inf

    @property
    def slope_at_infinity(self) -> float:
        _, k, scale = self.kernel
        return scale / (1.0 - k) + self.slope_at_one if k < 1.0 else math.inf


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
    def kernel(self) -> Kernel:
        return Kernel(_CRESSIE_READ, self.k, 1.0)

    def __repr__(self) -> str:
        return f"CressieRead({self.k!r})"


@dataclass(frozen=True, repr=False)
class ChiSquare(_PowerDivergence):
    """f(t) = (t-1)^2 and f*(s) = (s/2 + 1)_+^2 - 1, the divergence of the paper's experiments.

    >>> ChiSquare().f([0.0, 1.0, 3.0])
    array([1., 0., 4.])
    """

    @property
    def name(self) -> str:
        return "chi-square"

    @property
    def kernel(self) -> Kernel:
        return Kernel(_CRESSIE_READ, 2.0, 2.0)


@dataclass(frozen=True, repr=False)
class KL(_PowerDivergence):
    """f(t) = t log t and f*(s) = exp(s - 1): the Kullback-Leibler divergence, or relative entropy.

    >>> float(KL().conjugate(1.0))
    1.0
    """

    @property
    def name(self) -> str:
        return "Kullback-Leibler"

    @property
    def kernel(self) -> Kernel:
        return Kernel(_CRESSIE_READ, 1.0, 1.0)

    @property
    def slope_at_one(self) -> float:
        return 1.0


@dataclass(frozen=True, repr=False)
class Burg(_PowerDivergence):
    """f(t) = -log t and f*(s) = -1 - log(-s): Kullback-Leibler with its arguments exchanged.

    >>> float(Burg().conjugate(-1.0))
    -1.0
    """

    @property
    def name(self) -> str:
        return "Burg"

    @property
    def kernel(self) -> Kernel:
        return Kernel(_CRESSIE_READ, 0.0, 1.0)

    @property
    def slope_at_one(self) -> float:
        return -1.0


@dataclass(frozen=True, repr=False)
class Hellinger(_PowerDivergence):
    """f(t) = (sqrt t - 1)^2 and f*(s) = s/(1 - s); twice the normalised squared Hellinger distance of some texts.

    >>> Hellinger().f([0.0, 1.0, 4.0])
    array([1., 0., 1.])
    """

    @property
    def name(self) -> str:
        return "Hellinger"

    @property
    def kernel(self) -> Kernel:
        return Kernel(_CRESSIE_READ, 0.5, 0.5)
