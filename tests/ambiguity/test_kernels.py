"""The compiled pieces: a fast exponential, and rows that do not depend on what they remember."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import robustmdp as rm
from oracles.random_rows import DIVERGENCES, MODES, moderate_problem
from robustmdp.ambiguity._exponential import LANE, expm1, expm1_all, log1p
from robustmdp.ambiguity._rows import rows

FloatArray = npt.NDArray[np.float64]

EPS = np.finfo(float).eps
MEMORIES = (math.nan, math.inf, -math.inf, 0.0, 1e-300, 1e-15, -1.0, 1.0, 1e15, -1e15, 1e300, -1e300)


@pytest.mark.jit_off
def test_expm1_is_that_of_the_c_library() -> None:
    """One EPS is what 3 million arguments showed at worst; the C library's own rounding is part of it."""
    rng = np.random.default_rng(0)
    arguments = np.concatenate([sign * 10 ** rng.uniform(-20, np.log10(700), 2000) for sign in (-1, 1)])
    arguments = np.concatenate([arguments, rng.uniform(-2, 2, 2000), np.arange(-40, 41) * math.log(2) / 2])
    for y in arguments:
        assert abs(expm1(y) - math.expm1(y)) <= 2 * EPS * max(abs(y), math.exp(y))


@pytest.mark.jit_off
@pytest.mark.parametrize(("y", "cut"), [(-1e300, -700.0), (-math.inf, -700.0), (800.0, 700.0), (math.inf, 700.0)])
def test_expm1_is_cut_where_it_would_overflow(y: float, cut: float) -> None:
    assert expm1(y) == expm1(cut)


@pytest.mark.jit_off
def test_expm1_of_nothing_and_of_many() -> None:
    assert expm1(0.0) == 0.0
    many = np.linspace(-5, 5, 2 * LANE)
    expected = [*(math.expm1(y) for y in many[:LANE]), *many[LANE:]]
    expm1_all(many, LANE - 3)  # whole lanes are computed, nothing beyond
    assert many.tolist() == pytest.approx(expected, rel=4 * EPS)


@pytest.mark.jit_off
def test_log1p_is_that_of_the_c_library() -> None:
    """The series ends at s^6: what is left is s^6/7 of the value, 1e-19 at its end."""
    for s in np.concatenate(
        [np.linspace(-2e-3, 2e-3, 1001), [-0.999, -0.5, 0.5, 1e3, 1e-300, 9.99999e-4, -9.99999e-4]]
    ):
        assert log1p(s) == pytest.approx(math.log1p(s), rel=2 * EPS, abs=0)


def solve_block(ambiguity: Any, p: FloatArray, v: FloatArray, memory: list[float]) -> tuple[FloatArray, FloatArray]:
    """(values, what to remember) of a block that holds the same row once per memory, in larger arrays full of NaN."""
    n, count = p.size, len(memory)
    padded_p = np.full(n + 5, math.nan)
    padded_p[2 : 2 + n] = p
    x = np.full(n * count + 3, math.nan)
    x[: n * count] = np.tile(v, count)
    starts, offsets = np.full(count, 2, dtype=np.uint64), n * np.arange(count + 1, dtype=np.uint64)
    levels = np.full(count, ambiguity.kernel_level(1.0))
    remembered, values = np.array(memory), np.full(count, math.nan)
    rows(
        tuple(ambiguity.spec),
        padded_p,
        starts,
        x,
        offsets,
        count,
        levels,
        remembered,
        values,
        np.full(x.size + LANE, math.nan),
    )
    return values, remembered


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("index", range(4))
def test_a_row_has_one_value_whatever_it_remembers(divergence: Any, mode: Any, index: int) -> None:
    _, p, v = moderate_problem(0, index)
    for level in (0.0, 1e-4, 0.05, 1.0, 20.0, math.inf):
        ambiguity = mode(divergence, level)
        memories = [*MEMORIES, *v]
        for factor in (1.0, 1.001, 0.1, 10.0, 1e-16, 1e16):  # the last sweep may have seen little but rounding
            _, (memory,) = solve_block(ambiguity, p, factor * v, [math.nan])
            memories.append(memory)
        values, _ = solve_block(ambiguity, p, v, memories)
        expected = rm.worst_case(ambiguity, p, v).value
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12 * np.abs(v).max(), err_msg=f"level {level}")
