"""What every divergence offers: f, f*, f*', and the few numbers that a solver needs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray


class FDivergence(ABC):
    """D_f(P || P0) = sum p0 f(p/p0), f convex, f(1) = 0, for P absolutely continuous with respect to P0.

    Subclasses are frozen and hold only what defines f.
    """

    is_built_in: ClassVar[bool] = True  # then `repr` is the code that makes it

    @property
    @abstractmethod
    def name(self) -> str:
        """The name shown to people."""

    @property
    def scale(self) -> float:
        """f = scale * (normal form, with f'(1) = 0) + slope_at_one * (t - 1)."""
        return 1.0

    @property
    @abstractmethod
    def core(self) -> Any:
        """The normal form, compiled: f, f* and f*' of arrays, and the kernels of its penalty and its ball."""

    @property
    @abstractmethod
    def slope_at_one(self) -> float:
        """f'(1); a midpoint where f has a kink there."""

    @property
    @abstractmethod
    def value_at_zero(self) -> float:
        """f(0), infinite where nature can never give up a successor."""

    @property
    @abstractmethod
    def slope_at_infinity(self) -> float:
        """f'(inf), the edge of the domain of f*."""

    @property
    @abstractmethod
    def curvature_at_one(self) -> float:
        """f''(1), which is what all divergences look like near the model; infinite where f has a kink there."""

    @property
    def ascent(self) -> Any:
        """Algorithm 3's sweep with gradient steps on eta, compiled; None where the paper has no such step."""
        return None

    @property
    def domain(self) -> tuple[float, float]:
        """The interval on which f* is finite, edges not included."""
        return -math.inf, self.slope_at_infinity

    @property
    def edge(self) -> float:
        """f'(inf) in normal form."""
        return (self.slope_at_infinity - self.slope_at_one) / self.scale

    def f(self, t: npt.ArrayLike) -> FloatArray:
        """f(t), infinite for t < 0."""
        ratios = np.asarray(t, dtype=np.float64)
        out = np.empty(ratios.size)
        self.core.f(ratios.ravel(), out)
        finite = np.where(np.isfinite(ratios), ratios, 1.0)
        return np.asarray(self.scale * out.reshape(ratios.shape) + self.slope_at_one * (finite - 1.0))

    def conjugate(self, s: npt.ArrayLike) -> FloatArray:
        """f*(s) = sup over t >= 0 of s t - f(t), infinite beyond the domain."""
        return self.scale * self._of_conjugate(s, derivative=False) + self.slope_at_one

    def conjugate_derivative(self, s: npt.ArrayLike) -> FloatArray:
        """f*'(s), the t at which the supremum is attained."""
        return self._of_conjugate(s, derivative=True)

    def _of_conjugate(self, s: npt.ArrayLike, derivative: bool) -> FloatArray:
        y = (np.asarray(s, dtype=np.float64) - self.slope_at_one) / self.scale
        out = np.empty(y.size)
        self.core.conjugate(y.ravel(), out, derivative)
        return out.reshape(y.shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def check_divergence(divergence: object) -> FDivergence:
    """Refuse anything but a divergence."""
    if isinstance(divergence, FDivergence):
        return divergence
    _checks.refuse_type("divergence", "one, such as rm.KL()", divergence)
