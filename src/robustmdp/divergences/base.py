"""What every divergence offers: f, f*, f*', and the few numbers that a solver needs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class Kernel(NamedTuple):
    """How compiled code knows a divergence: f = scale * (kind, k in normal form) + slope_at_one * (t - 1)."""

    kind: int
    k: float
    scale: float


class FDivergence(ABC):
    """D_f(P || P0) = sum p0 f(p/p0), f convex, f(1) = 0, for P absolutely continuous with respect to P0.

    Subclasses are frozen and hold only what defines f.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name shown to people."""

    @property
    @abstractmethod
    def kernel(self) -> Kernel:
        """Code and parameters for compiled code."""

    @property
    def scale(self) -> float:
        """f = scale * (normal form, with f'(1) = 0) + slope_at_one * (t - 1)."""
        return self.kernel.scale

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
    def domain(self) -> tuple[float, float]:
        """The interval on which f* is finite, edges not included."""
        return -math.inf, self.slope_at_infinity

    @property
    def edge(self) -> float:
        """f'(inf) in normal form."""
        return (self.slope_at_infinity - self.slope_at_one) / self.kernel.scale

    def specialise(self, entry: Any) -> Any:
        """The compiled kernel `entry` for this divergence; built-in ones share one copy."""
        return entry

    def f(self, t: npt.ArrayLike) -> FloatArray:
        """f(t), infinite for t < 0."""
        from robustmdp.divergences.kernels import generators

        kind, k, scale = self.kernel
        ratios = np.asarray(t, dtype=np.float64)
        endless = np.isposinf(ratios)
        finite = np.where(endless, 1.0, ratios)
        out = np.empty(ratios.size)
        generators(kind, k, finite.ravel(), out)
        return np.where(endless, np.inf, scale * out.reshape(ratios.shape) + self.slope_at_one * (finite - 1.0))

    def conjugate(self, s: npt.ArrayLike) -> FloatArray:
        """f*(s) = sup over t >= 0 of s t - f(t), infinite beyond the domain."""
        kind, k, scale = self.kernel

        def one(s: float) -> float:
            from robustmdp.divergences.kernels import conjugate

            y = (s - self.slope_at_one) / scale
            if y > self.edge:
                return math.inf
            if y == -math.inf:
                return -float(self.f(0.0))
            return float(scale * conjugate(kind, k, self.edge, False, -y) + self.slope_at_one)

        return _elementwise(one, s)

    def conjugate_derivative(self, s: npt.ArrayLike) -> FloatArray:
        """f*'(s), the t at which the supremum is attained."""
        kind, k, scale = self.kernel

        def one(s: float) -> float:
            from robustmdp.divergences.kernels import tilt

            y = (s - self.slope_at_one) / scale
            return tilt(kind, k, self.edge, False, -y)[0] if y <= self.edge else math.inf

        return _elementwise(one, s)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _elementwise(function: Callable[[float], float], argument: npt.ArrayLike) -> FloatArray:
    """Apply a function of a number to an array of any shape."""
    values = np.asarray(argument, dtype=np.float64)
    flat = np.fromiter((function(float(value)) for value in values.ravel()), np.float64, values.size)
    return flat.reshape(values.shape)
