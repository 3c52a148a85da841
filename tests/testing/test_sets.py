"""`check_set`: sets of ours pass, and each property catches a set that breaks it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import robustmdp as rm

ROW = [0.2, 0.3, 0.5]
DISTANCE = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
FAMILIES = [  # a set; the same without any choice, and with every one
    (rm.Penalized(rm.KL(), 0.7), rm.Penalized(rm.KL(), math.inf), rm.Penalized(rm.KL(), 0.0)),
    (rm.Constrained(rm.KL(), 0.2), rm.Constrained(rm.KL(), 0.0), rm.Constrained(rm.KL(), math.inf)),
    (rm.L1(0.3), rm.L1(0.0), rm.L1(math.inf)),
    (rm.L1(0.3, support="all"), rm.L1(0.0, support="all"), rm.L1(2.0, support="all")),
    (rm.LInf(0.1), rm.LInf(0.0), rm.LInf(1.0)),
    (rm.L2(0.2), rm.L2(0.0), rm.L2(2.0)),
    (rm.Contamination(0.1), rm.Contamination(0.0), rm.Contamination(1.0)),
    (rm.CVaR(0.3), rm.CVaR(1.0), rm.CVaR(1e-300)),
    (rm.EVaR(0.3), rm.EVaR(1.0), rm.EVaR(1e-300)),
    (rm.EntropicRisk(2.0), rm.EntropicRisk(0.0), rm.EntropicRisk(math.inf)),
    (rm.MeanRisk(0.4, rm.CVaR(0.2)), rm.MeanRisk(0.0, rm.CVaR(0.2)), None),
    (rm.Optimistic(rm.L1(0.2)), rm.Optimistic(rm.L1(0.0)), rm.Optimistic(rm.L1(2.0))),
    (rm.Optimistic(rm.Penalized(rm.KL(), 0.5)), None, None),
    (rm.SRectangular(rm.L1(0.2)), None, None),
]
OF_THREE_SUCCESSORS = [
    rm.Interval([0.1, 0.2, 0.3], [0.4, 0.5, 0.6]),
    rm.Wasserstein(DISTANCE, 0.2),
    rm.L1(0.3, weights=[1.0, 2.0, 3.0]),
]


@pytest.mark.parametrize(("ambiguity", "nominal", "unlimited"), FAMILIES, ids=lambda each: repr(each))
def test_our_sets_pass(ambiguity: Any, nominal: Any, unlimited: Any) -> None:
    rm.testing.check_set(ambiguity, nominal=nominal, unlimited=unlimited)


@pytest.mark.parametrize("ambiguity", OF_THREE_SUCCESSORS, ids=repr)
def test_sets_with_numbers_of_their_own_are_checked_at_a_row(ambiguity: Any) -> None:
    rm.testing.check_set(ambiguity, p=ROW)


@dataclass(frozen=True)
class Own:
    """Contamination, right in everything; the classes below break one property each."""

    level: float = 0.2

    def worst_case(self, p: Any, z: Any, level: float) -> Any:
        lowest = z == z.min()
        q = (1.0 - level) * p + level * np.where(lowest, p, 0.0) / p[lowest].sum()
        value = q @ z
        return value, q, value - 4e-16 * len(z) * np.abs(z).max()


class AboveTheMean(Own):
    def worst_case(self, p: Any, z: Any, level: float) -> Any:
        q = np.where(z == z.max(), 1.0, 0.0) / (z == z.max()).sum()
        return q @ z, q, q @ z


class WithoutBound(Own):
    def worst_case(self, p: Any, z: Any, level: float) -> Any:
        value, q, _ = super().worst_case(p, z, level)
        return value, q, -math.inf


class OfUnnormalised(Own):
    def worst_case(self, p: Any, z: Any, level: float) -> Any:
        value, q, lower = super().worst_case(p, z, level)
        return value, 0.9 * q, lower


class OfUnits(Own):
    """Its share depends on where 0 is."""

    def worst_case(self, p: Any, z: Any, level: float) -> Any:
        return super().worst_case(p, z, level if z.min() > 0.0 else 0.5 * level)


class OfVariance(Own):
    """Mean less a standard deviation, as far down as the least outcome: better outcomes can count as worse."""

    def worst_case(self, p: Any, z: Any, level: float) -> Any:
        mean = p @ z
        value = max(z.min(), mean - math.sqrt(p @ (z - mean) ** 2))
        return value, np.where(z == z.min(), 1.0, 0.0) / (z == z.min()).sum(), value


class OfSpread(Own):
    """The least outcome where all are close, the mean where they are not: the value jumps."""

    def worst_case(self, p: Any, z: Any, level: float) -> Any:
        q = p if np.ptp(z) > 0.26 else np.where(z == z.min(), 1.0, 0.0) / (z == z.min()).sum()
        return q @ z, q, q @ z - 1e-15 * np.abs(z).max()


class BetterOfTwo(Own):
    """The player chooses between two sets after nature: no set has such a value."""

    def worst_case(self, p: Any, z: Any, level: float) -> Any:
        order = np.argsort(z)
        tail = np.empty_like(p)
        tail[order] = np.clip(0.7 - np.append(0.0, np.cumsum(p[order])[:-1]), 0.0, p[order])
        tail /= tail.sum()
        mixed = super().worst_case(p, z, 0.3)
        return mixed if mixed[0] > tail @ z else (tail @ z, tail, tail @ z - 1e-15 * np.abs(z).max())


class TwiceTheRadius(rm.Constrained):
    def kernel_level(self, discount: float) -> Any:
        return 2.0 * super().kernel_level(discount)


class HalfThePrice(rm.Penalized):
    def kernel_level(self, discount: float) -> Any:
        return 0.5 * super().kernel_level(discount)


class _Kernel:
    """A kernel whose distribution is not one."""

    def __init__(self, factors: Any) -> None:
        self.factors = factors

    def worst_case(self, p: Any, x: Any, level: float, out: Any) -> Any:
        out[:] = p
        out[:2] += self.factors if len(out) > 1 else 0.0
        return float(p @ x), 0.0, math.nan, math.nan


class Negative(rm.Nominal):  # type: ignore[misc]
    kernel = _Kernel([1.0, -1.0])


class TooMuch(rm.Nominal):  # type: ignore[misc]
    kernel = _Kernel([0.1, 0.0])


@pytest.mark.parametrize(
    ("ambiguity", "sentence"),
    [
        (AboveTheMean(), "value must lie between the least outcome .* and the mean .*; value .* at p = .*, v = "),
        (WithoutBound(), "lower bound must be at most .* below the value: it is 0.3.* below"),
        (OfUnnormalised(), "must return a distribution that sums to 1: got 0.9; p = .*, v = "),
        (OfUnits(), "value must grow with the outcomes by .*, to .*: got "),
        (BetterOfTwo(), "lower bound .* must hold for every distribution of the set: the one for .* is worth "),
        (TwiceTheRadius(rm.KL(), 0.1), "distribution must be within the radius 0.1: its divergence is "),
        (HalfThePrice(rm.KL(), 1.0), "nature must pay .* for its distribution: it pays "),
        (Negative(), "distribution must be at least 0: got -"),
        (TooMuch(), "distribution must sum to 1: got 1.1"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_each_property_catches_a_set_that_breaks_it(ambiguity: Any, sentence: str) -> None:
    rm.testing.check_set(Own())
    with pytest.raises(AssertionError, match=sentence):
        rm.testing.check_set(ambiguity)


def test_values_that_fall_where_outcomes_rise_are_found() -> None:
    with pytest.raises(AssertionError, match=r"value must not fall where outcomes rise by .*: it changes by -"):
        rm.testing.check_set(OfVariance(), p=[0.45, 0.45, 0.1])


def test_values_that_rise_by_more_than_outcomes_are_found() -> None:
    with pytest.raises(AssertionError, match=r"value must rise by at most .* where outcomes rise by .*: got "):
        rm.testing.check_set(OfSpread(), p=[0.9, 0.1], seed=32)  # a draw that crosses the jump


def test_limits_are_compared() -> None:
    with pytest.raises(AssertionError, match="no choice must give the mean "):
        rm.testing.check_set(Own(), nominal=Own(0.01))
    with pytest.raises(AssertionError, match="every choice must give the least outcome "):
        rm.testing.check_set(Own(), unlimited=Own(0.99))
    rm.testing.check_set(Own(), nominal=Own(0.0), unlimited=Own(1.0))


def test_sets_that_help_are_said_to() -> None:
    with pytest.raises(AssertionError, match="with outcomes negated, as nature helps: no choice must give the mean"):
        rm.testing.check_set(rm.Optimistic(rm.L1(0.1)), nominal=rm.Optimistic(rm.L1(0.1)))


def test_what_is_no_set_is_refused() -> None:
    with pytest.raises(TypeError, match="ambiguity must be a set"):
        rm.testing.check_set(rm.KL())
