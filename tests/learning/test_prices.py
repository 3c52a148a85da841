"""J(eta; x) and its gradient as learners take them, against the divergences themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp import _core
from robustmdp.learning.levels import price_of


def exponential(s: float) -> float:
    return math.exp(s - 1.0)


def hellinger(s: float) -> float:
    return s / (1.0 - s)


def hellinger_slope(s: float) -> float:
    return 1.0 / (1.0 - s) ** 2


OWN_KL = rm.Divergence("my KL", exponential, exponential)
OWN_HELLINGER = rm.Divergence("my Hellinger", hellinger, hellinger_slope, slope_at_infinity=1.0)
SMOOTH = (
    rm.ChiSquare(), rm.KL(), rm.Burg(), rm.Hellinger(), rm.JensenShannon(), rm.CressieRead(3.0), rm.CressieRead(-1.0),
    rm.CressieRead(0.3), OWN_KL, OWN_HELLINGER,
)  # fmt: skip
STEP = _core.Steps(1.0, 1.0, 0.0, 0.0, math.inf, 1.0)


@pytest.mark.parametrize("weight", [1.0, 0.01, 1e9])
@pytest.mark.parametrize("divergence", SMOOTH, ids=repr)
def test_a_step_of_ascent(divergence: Any, weight: float) -> None:
    """eta <- eta + w (1 - f*'(y)), and J = eta - w f*(y) before it, with y = eta/w as x = 0."""
    scale, slope = divergence.scale, divergence.slope_at_one
    top = min(0.9 * divergence.edge, 0.9)  # beyond, the lowest outcome so far bounds eta
    for y in (-20.0, -3.0, -0.4, -1e-3, 0.0, 1e-3, 0.1 * top, 0.3 * top):
        value = np.empty(1)
        eta = price_of(divergence).ascend(STEP, y * weight, -math.inf, math.inf, weight, np.zeros(1), value)
        s = scale * y + slope
        conjugate = (float(divergence.conjugate(s)) - slope) / scale
        assert value[0] == pytest.approx(weight * (y - conjugate), rel=1e-11, abs=1e-13 * weight)
        moved = weight * (y + 1.0 - float(divergence.conjugate_derivative(s)))
        assert eta == pytest.approx(moved, rel=1e-11, abs=1e-13 * weight)


def test_own_functions_need_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learners call them through Python where Numba is not installed, to the same digits."""
    import sys

    learner, world = rm.GenerativeQLearning(rm.Penalized(rm.KL(), 1.0)), rm.problems.chain()
    monkeypatch.setitem(sys.modules, "numba", None)
    own = rm.Divergence("my own KL", lambda s: math.exp(s) - 1.0, lambda s: math.exp(s))
    mine = rm.GenerativeQLearning(rm.Penalized(own, 1.0)).run(world, 50)
    assert np.abs(mine.q - learner.run(world, 50).q).max() <= 1e-9


@pytest.mark.parametrize("size", [2, 4, 10, 200])
def test_multilevel_differences(size: int) -> None:
    rng = np.random.default_rng(size)
    for x in (rng.normal(size=size), rng.integers(0, 3, size) * 1.0, 1e6 + rng.normal(size=size), np.ones(size)):
        for radius in (1e-8, 1e-3, 0.1, 0.7, 3.0, 10.0):
            ball = rm.Constrained(rm.KL(), radius)
            whole, even, odd = (
                rm.worst_case(ball, np.full(len(part), 1 / len(part)), part).value for part in (x, x[::2], x[1::2])
            )
            found = _core.multilevel_difference(x, radius)
            assert abs(found - (whole - 0.5 * (even + odd))) <= 1e-10 * max(1.0, np.abs(x).max())
