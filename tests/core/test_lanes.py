"""Our own exp and log: to an ulp or two, and with the same bits for one number and for four."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from mpmath import mp, mpf

from robustmdp import _core

EPS = np.finfo(float).eps
FloatArray = npt.NDArray[np.float64]


def apply(name: str, x: npt.ArrayLike) -> FloatArray:
    arguments = np.asarray(x, dtype=np.float64)
    out = np.empty_like(arguments)
    getattr(_core, name)(arguments, out)
    return out


def spread_out(low: float, high: float, count: int) -> FloatArray:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.uniform(low, high, count), rng.uniform(-2, 2, count)])


CASES: list[tuple[str, Callable[[mpf], mpf], FloatArray]] = [
    ("exponential", mp.exp, spread_out(-700.0, 700.0, 2000)),
    (
        "exponential_less_one",
        mp.expm1,
        np.concatenate([spread_out(-40.0, 40.0, 1000), 10.0 ** np.linspace(-300, 0, 500)]),
    ),
    ("logarithm", mp.log, np.concatenate([10.0 ** np.linspace(-323, 308, 2000), 1.0 + np.linspace(-0.3, 0.5, 2001)])),
]


@pytest.mark.parametrize(("name", "exact", "arguments"), CASES, ids=[case[0] for case in CASES])
def test_right_to_two_ulps(name: str, exact: Callable[[mpf], mpf], arguments: FloatArray) -> None:
    for x, found in zip(arguments, apply(name, arguments), strict=True):
        true = exact(mpf(float(x)))
        assert abs(found - true) <= 2 * EPS * abs(true), x


@pytest.mark.parametrize(("name", "arguments"), [(case[0], case[2]) for case in CASES], ids=[case[0] for case in CASES])
def test_a_number_has_the_same_bits_in_any_lane(name: str, arguments: FloatArray) -> None:
    together = apply(name, arguments)
    np.testing.assert_array_equal(together, [apply(name, [x])[0] for x in arguments])


def test_exponentials_beyond_the_normal_numbers() -> None:
    assert apply("exponential", [-709.0, -1e300, -math.inf]).tolist() == [0.0, 0.0, 0.0]
    assert apply("exponential_less_one", [-709.0, -1e300, -math.inf]).tolist() == [-1.0, -1.0, -1.0]
    np.testing.assert_array_equal(apply("exponential", [710.0, 1e300, math.inf]), apply("exponential", [709.0] * 3))
