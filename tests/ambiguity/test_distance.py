"""D(p || p0) against 50 digits, its properties, and the conventions where a probability is zero."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import robustmdp as rm
from oracles.random_rows import DIVERGENCES, normal_form
from robustmdp.ambiguity.distance import distance

EPS = np.finfo(float).eps
each_divergence = pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
NAMED = DIVERGENCES[:6]


def exactly(divergence: Any, p: np.ndarray, p0: np.ndarray) -> mpf:
    """Sum p0 f(p/p0) over p0 > 0 in 50 digits, from the referee's f; both made to sum to 1 by neither side."""
    pairs = [(mpf(float(a)), mpf(float(b))) for a, b in zip(p, p0, strict=True) if b > 0]
    if isinstance(divergence, rm.TotalVariation):
        return mp.fsum(abs(a - b) for a, b in pairs) / 2
    conjugate, scale = normal_form(divergence)
    return mpf(scale) * mp.fsum(b * conjugate.f(a / b) for a, b in pairs)


@pytest.mark.parametrize("apart", [1.0, 1e-3, 1e-6])
@each_divergence
def test_fifty_digits(divergence: Any, apart: float) -> None:
    """However close the two are: what cancels has been taken out of f."""
    rng = np.random.default_rng(0)
    p0 = rng.dirichlet(np.ones(6))
    p = p0 + apart * (rng.dirichlet(np.ones(6)) - p0)
    # A ratio near 1 is known to a rounding of 1, which is 2 EPS/|ratio - 1| of the squared difference.
    least = float(np.abs(p / p0 - 1.0).max())
    close = 1e-13 + 16 * EPS / least
    assert float(distance(divergence, p, p0)) == pytest.approx(float(exactly(divergence, p, p0)), rel=close, abs=0.0)


@each_divergence
def test_shapes_and_broadcasting(divergence: Any) -> None:
    rng = np.random.default_rng(1)
    p, p0 = rng.dirichlet(np.ones(4), (3, 5)), rng.dirichlet(np.ones(4), 5)
    found = distance(divergence, p, p0)
    assert found.shape == (3, 5)
    for i, j in np.ndindex(3, 5):
        assert found[i, j] == distance(divergence, p[i, j], p0[j])
    assert np.shape(distance(divergence, p[0, 0].tolist(), p0[0].tolist())) == ()


@each_divergence
def test_where_a_probability_is_zero(divergence: Any) -> None:
    p0 = np.array([0.2, 0.3, 0.5, 0.0])
    inside, outside = np.array([0.6, 0.1, 0.3, 0.0]), np.array([0.6, 0.1, 0.29, 0.01])
    assert distance(divergence, inside, p0) == distance(divergence, inside[:3], p0[:3])
    assert distance(divergence, outside, p0) == math.inf  # nature invents no transitions
    gone = distance(divergence, [0.4, 0.0, 0.6, 0.0], p0)
    if math.isinf(divergence.value_at_zero):
        assert gone == math.inf
    else:
        f = divergence.f([2.0, 0.0, 1.2])
        assert gone == pytest.approx(float(p0[:3] @ f), rel=1e-12)


@each_divergence
def test_all_mass_on_one_successor(divergence: Any) -> None:
    """m f(1/m) + (1-m) f(0), the radius from which a ball holds a point mass."""
    m = 0.3
    expected = m * float(divergence.f(1 / m)) + (1 - m) * divergence.value_at_zero
    assert distance(divergence, [1.0, 0.0], [m, 1 - m]) == pytest.approx(expected, rel=1e-12)


mass = st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=6)


@pytest.mark.parametrize("divergence", NAMED, ids=repr)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data(), first=mass)
def test_properties(divergence: Any, data: Any, first: list[float]) -> None:
    draw = st.lists(st.floats(1e-6, 1.0), min_size=len(first), max_size=len(first))
    p, q, p0 = (np.array(m) / np.sum(m) for m in (first, data.draw(draw), data.draw(draw)))
    found = float(distance(divergence, p, p0))
    scale = 1e-12 * (1.0 + found)
    assert found >= 0.0
    assert distance(divergence, p0, p0) == 0.0
    order = np.array(data.draw(st.permutations(range(len(p)))))
    assert float(distance(divergence, p[order], p0[order])) == pytest.approx(found, abs=scale)
    # Convex in p, and merging two successors can only bring distributions closer.
    middle = float(distance(divergence, 0.5 * (p + q), p0))
    assert middle <= 0.5 * (found + float(distance(divergence, q, p0))) + scale
    merged = float(distance(divergence, [p[0] + p[1], *p[2:]], [p0[0] + p0[1], *p0[2:]]))
    assert merged <= found + scale


@settings(max_examples=60, deadline=None, derandomize=True)
@given(first=mass, seed=st.integers(0, 2**32 - 1))
def test_inequalities_between_divergences(first: list[float], seed: int) -> None:
    """Pinsker and its relatives: a factor of 2 in any convention would break one of them."""
    p = np.array(first) / np.sum(first)
    p0 = np.random.default_rng(seed).dirichlet(np.ones(len(p)))
    tv, kl, burg, hellinger, chi, js = (
        float(distance(d, p, p0))
        for d in (rm.TotalVariation(), rm.KL(), rm.Burg(), rm.Hellinger(), rm.ChiSquare(), rm.JensenShannon())
    )
    slack = 1e-12
    assert 2.0 * tv**2 <= min(kl, burg) + slack
    assert hellinger / 2 <= tv + slack
    assert tv <= math.sqrt(hellinger * (1.0 - hellinger / 4)) + slack
    assert kl <= math.log1p(chi) + slack * (1 + kl)
    assert js <= 2.0 * math.log(2.0) * tv + slack
    assert burg == pytest.approx(float(distance(rm.KL(), p0, p)), rel=1e-9, abs=1e-12)
