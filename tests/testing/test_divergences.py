"""`check_divergence`: divergences of ours pass, and each property catches one that breaks it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles.random_rows import DIVERGENCES


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
def test_our_divergences_pass(divergence: Any) -> None:
    rm.testing.check_divergence(divergence)


def triangular(slope_at_infinity: float = 1.0) -> rm.Divergence:
    """f(t) = (t-1)^2/(t+1)"""
    return rm.Divergence(
        "triangular",
        lambda s: np.where(s > -3.0, 4.0 - s - 4.0 * np.sqrt(np.maximum(1.0 - s, 0.0)), -1.0),
        lambda s: np.where(s > -3.0, 2.0 / np.sqrt(np.maximum(1.0 - s, 1e-300)) - 1.0, 0.0),
        slope_at_infinity=slope_at_infinity,
    )


def test_an_own_divergence_is_compared_with_its_formula() -> None:
    rm.testing.check_divergence(triangular(), f=lambda t: (t - 1) ** 2 / (t + 1))
    with pytest.raises(AssertionError, match=r"divergence 'triangular': f must be as printed: f\(2.25.*\) = .*, got "):
        rm.testing.check_divergence(triangular(0.5), f=lambda t: (t - 1) ** 2 / (t + 1) if t < 1e3 else 0.0)


class OffAtOne(rm.ChiSquare):
    def f(self, t: Any) -> Any:
        return super().f(t) + 0.01


class Concave(rm.ChiSquare):
    def f(self, t: Any) -> Any:
        t = np.asarray(t, dtype=float)
        return np.where(t < 0.0, math.inf, np.where(t > 2.0, np.sqrt(np.maximum(t, 1.0) - 1.0), super().f(t)))


class FiniteBelowZero(rm.ChiSquare):
    def f(self, t: Any) -> Any:
        return (np.asarray(t, dtype=float) - 1.0) ** 2


class WrongAtZero(rm.ChiSquare):
    value_at_zero = 2.0


class OfAnother(rm.ChiSquare):
    """Chi-square as a function, with the kernels of Kullback-Leibler."""

    scale, value_at_zero = 1.0, 1.0
    core = rm.KL().core

    def f(self, t: Any) -> Any:
        return rm.ChiSquare().f(t)

    def conjugate(self, s: Any) -> Any:
        return rm.ChiSquare().conjugate(s)

    def conjugate_derivative(self, s: Any) -> Any:
        return rm.ChiSquare().conjugate_derivative(s)


class WrongAtOne(OfAnother):
    slope_at_one = 0.5


class NegativeSlope(rm.ChiSquare):
    def conjugate_derivative(self, s: Any) -> Any:
        return np.asarray(s) / 2.0 + 1.0


class FallingSlope(rm.ChiSquare):
    def conjugate_derivative(self, s: Any) -> Any:
        return np.exp(-np.asarray(s))


class TwiceTheSlope(rm.ChiSquare):
    def conjugate_derivative(self, s: Any) -> Any:
        return 2.0 * super().conjugate_derivative(s)


class LowConjugate(rm.ChiSquare):
    def conjugate(self, s: Any) -> Any:
        return super().conjugate(s) - 0.01


class HighConjugate(rm.ChiSquare):
    def conjugate(self, s: Any) -> Any:
        return super().conjugate(s) + 0.01


class EndsTooSoon(rm.Hellinger):
    slope_at_infinity = 0.5


@pytest.mark.parametrize(
    ("divergence", "sentence"),
    [
        (OffAtOne(), r"f\(1\) must be 0: got 0.01"),
        (Concave(), r"f must be convex: f\(.*\) = .* lies above the chord around it, "),
        (FiniteBelowZero(), r"f must be infinite below 0: got f\(-0.5\) = 2.25"),
        (WrongAtZero(), r"value_at_zero must be f\(0\) = 1: got 2"),
        (WrongAtOne(), r"slope_at_one must be an s with f\*'\(s\) = 1: f\*' goes from 1.2.* to 1.2.* around 0.5"),
        (NegativeSlope(), r"f\*' must be at least 0: got f\*'\(-100\) = -49"),
        (FallingSlope(), r"f\*' must not fall: got f\*'\(-100\) = .* > f\*'"),
        (TwiceTheSlope(), r"f\*' must be the slope of f\*: between s = .* f\* rises by .* per unit"),
        (LowConjugate(), r"f\(t\) \+ f\*\(s\) must be at least s t: it is 0.01 less at t = "),
        (HighConjugate(), r"f\(t\) \+ f\*\(s\) must be s t where t = f\*'\(s\): got .* instead of "),
        (EndsTooSoon(), r"f\* must be finite below slope_at_infinity = 0.5 and infinite beyond: got "),
    ],
    ids=lambda each: type(each).__name__,
)
def test_each_property_catches_a_divergence_that_breaks_it(divergence: Any, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        rm.testing.check_divergence(divergence)


def test_the_worst_cases_of_a_divergence_are_checked() -> None:
    with pytest.raises(AssertionError, match="nature must pay"):
        rm.testing.check_divergence(OfAnother())


def test_what_is_no_divergence_is_refused() -> None:
    with pytest.raises(TypeError, match="divergence must be one"):
        rm.testing.check_divergence(rm.L1(0.1))
