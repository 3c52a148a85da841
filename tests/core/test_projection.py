"""The least budget with which nature brings E z down to u, against cvxpy and against its inverse, the ball."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles import primal
from oracles.random_rows import DIVERGENCES


def rows(count: int) -> list[tuple[Any, Any, float]]:
    rng = np.random.default_rng(0)
    made = []
    for _ in range(count):
        n = int(rng.integers(2, 8))
        p, z = rng.dirichlet(np.ones(n)), rng.normal(size=n)
        share = rng.uniform(0.1, 0.95)
        made.append((p, z, float(share * (p @ z) + (1.0 - share) * z.min())))
    return made


@pytest.mark.parametrize(
    "divergence", [rm.ChiSquare(), rm.KL(), rm.TotalVariation(), rm.Burg(), rm.Hellinger()], ids=repr
)
def test_agrees_with_cvxpy(divergence: Any) -> None:
    for p, z, target in rows(12):
        found = divergence.core.project(p, z, target) * divergence.scale
        assert found == pytest.approx(primal.projection(divergence, p, z, target), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
def test_is_the_inverse_of_the_ball(divergence: Any) -> None:
    """The ball of radius kappa(u) has the worst case u."""
    for p, z, target in rows(40):
        radius = divergence.core.project(p, z, target) * divergence.scale
        assert rm.worst_case(rm.Constrained(divergence, radius), p, z).value == pytest.approx(target, abs=1e-8)


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
def test_limits(divergence: Any) -> None:
    p, z = np.array([0.25, 0.25, 0.5]), np.array([0.0, 1.0, 2.0])
    core = divergence.core
    assert core.project(p, z, 1.25) == 0.0
    assert core.project(p, z, 5.0) == 0.0
    assert core.project(p, z, -0.1) == np.inf
    vertex = divergence.f(4.0) * 0.25 + divergence.f(0.0) * 0.75
    assert core.project(p, z, 0.0) * divergence.scale == pytest.approx(float(vertex), rel=1e-12)
