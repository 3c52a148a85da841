"""The codes and formulas of the compiled learners, against the divergences themselves."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp.learning import _kernels as kernels
from robustmdp.learning._codes import Spec, code_of, spec_of, specialise
from robustmdp.learning._kl_ball import worst_mean

pytestmark = pytest.mark.jit_off


def exponential(s: float) -> float:
    return math.exp(s - 1.0)


def hellinger(s: float) -> float:
    return s / (1.0 - s)


def hellinger_slope(s: float) -> float:
    return 1.0 / (1.0 - s) ** 2


OWN_KL = rm.Divergence("my KL", exponential, exponential)
OWN_HELLINGER = rm.Divergence("my Hellinger", hellinger, hellinger_slope, slope_at_infinity=1.0)
POWERS = {
    rm.ChiSquare(): 2.0, rm.KL(): 1.0, rm.Burg(): 0.0, rm.Hellinger(): 0.5,
    rm.CressieRead(3.0): 3.0, rm.CressieRead(-1.0): -1.0, rm.CressieRead(0.3): 0.3,
}  # fmt: skip
SMOOTH = (*POWERS, rm.JensenShannon(), OWN_KL, OWN_HELLINGER)
each_smooth = pytest.mark.parametrize("divergence", SMOOTH, ids=repr)


@pytest.mark.parametrize("divergence", POWERS, ids=repr)
def test_the_code_of_a_power(divergence: Any) -> None:
    assert code_of(divergence) == (kernels.CRESSIE_READ, POWERS[divergence], divergence.curvature_at_one)


def test_the_codes_of_other_divergences() -> None:
    assert code_of(rm.JensenShannon()) == (kernels.JENSEN_SHANNON, 0.0, 1.0)
    assert code_of(rm.TotalVariation()) == (kernels.TOTAL_VARIATION, 0.0, 1.0)
    assert code_of(OWN_KL) == (kernels.OWN, pytest.approx(1.0, abs=1e-12), 1.0)


def test_the_codes_of_sets() -> None:
    assert spec_of(rm.Nominal()).mode == kernels.NOMINAL
    assert spec_of(rm.Penalized(rm.KL(), 2.0)) == Spec(kernels.PENALIZED, kernels.CRESSIE_READ, 1.0, math.inf)
    ball = spec_of(rm.Constrained(rm.Hellinger(), 0.1))
    assert ball == Spec(kernels.CONSTRAINED, kernels.CRESSIE_READ, 0.5, 2.0)  # f'(inf) = 1 = scale * edge


@pytest.mark.parametrize("has_radius", [False, True])
def test_a_set_without_a_code_is_refused(has_radius: bool) -> None:
    other: Any = SimpleNamespace(is_nominal=False, has_weight=False, has_radius=has_radius)
    with pytest.raises(ValueError, match=r"must be Nominal\(\), Penalized\(...\) or Constrained\(...\): got namespace"):
        spec_of(other)


def test_a_divergence_without_a_code_is_refused() -> None:
    other: Any = SimpleNamespace(name="mine")
    with pytest.raises(ValueError, match=r"must be a built-in one or a Divergence\(...\): got namespace"):
        code_of(other)


def test_only_own_divergences_are_compiled_anew() -> None:
    assert specialise(rm.KL(), kernels.tilt) is kernels.tilt
    assert specialise(OWN_KL, kernels.tilt) is not kernels.tilt
    assert specialise(OWN_KL, kernels.tilt) is specialise(OWN_KL, kernels.tilt)
    assert specialise(OWN_KL, kernels.generator) is kernels.generator  # it calls neither function


@each_smooth
def test_conjugates_in_normal_form(divergence: Any) -> None:
    kind, k, scale = code_of(divergence)
    slope = divergence.slope_at_one
    conjugate, tilt = (specialise(divergence, entry) for entry in (kernels.conjugate, kernels.tilt))
    top = min(0.9 * divergence.edge, 3.0)
    for y in (-20.0, -3.0, -0.4, -1e-3, 0.0, 1e-3, 0.5 * top, top):
        s = scale * y + slope
        assert scale * conjugate(kind, k, y) + slope == pytest.approx(float(divergence.conjugate(s)), rel=1e-12)
        ratio, curvature = tilt(kind, k, y)
        assert ratio == pytest.approx(float(divergence.conjugate_derivative(s)), rel=1e-12)
        if kind != kernels.OWN:
            step = 1e-6
            chord = (tilt(kind, k, y + step)[0] - tilt(kind, k, y - step)[0]) / (2.0 * step)
            assert curvature == pytest.approx(chord, rel=1e-6, abs=1e-9)


@each_smooth
def test_slopes_are_where_the_tilt_is_reached(divergence: Any) -> None:
    kind, k, _ = code_of(divergence)
    slope, tilt = (specialise(divergence, entry) for entry in (kernels.slope, kernels.tilt))
    for ratio in (1.0, 1.5, 2.0, 40.0):  # beyond, y is within rounding of the edge
        y = slope(kind, k, divergence.edge, ratio)
        assert tilt(kind, k, y)[0] == pytest.approx(ratio, rel=1e-9)


@pytest.mark.parametrize("divergence", [*POWERS, rm.JensenShannon()], ids=repr)
def test_generators_in_normal_form(divergence: Any) -> None:
    kind, k, scale = code_of(divergence)
    for t in (0.0, 1e-9, 0.3, 0.97, 1.0, 1.0 + 1e-9, 1.02, 2.0, 50.0):
        expected = float(divergence.f(t))
        found = scale * kernels.generator(kind, k, t) + divergence.slope_at_one * (t - 1.0)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-24)


def test_the_worst_mean_over_a_kullback_leibler_ball() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 10, 200):
        for x in (rng.normal(size=size), rng.integers(0, 3, size) * 1.0, 1e6 + rng.normal(size=size), np.ones(size)):
            for radius in (1e-8, 1e-3, 0.1, 0.7, 3.0, 10.0):
                exact = rm.worst_case(rm.Constrained(rm.KL(), radius), np.full(size, 1 / size), x).value
                found = worst_mean(x, radius, np.empty(size))
                assert abs(found - exact) <= 1e-9 * max(1.0, np.abs(x).max())
