"""The dual objective's constants against closed forms and brute force."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import robustmdp as rm
from robustmdp import theory

DIVERGENCES = [
    rm.ChiSquare(),
    rm.KL(),
    rm.TotalVariation(),
    rm.Burg(),
    rm.Hellinger(),
    rm.JensenShannon(),
    rm.CressieRead(3.0),
    rm.CressieRead(-0.5),
]
# Cressie-Read with k < 1, Jensen-Shannon: f*' is infinite at the edge of its domain.
STEEP = (rm.Burg, rm.Hellinger, rm.JensenShannon)

each_divergence = pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)


def is_steep(divergence: Any) -> bool:
    return isinstance(divergence, STEEP) or divergence == rm.CressieRead(-0.5)


def objective(divergence: Any, weight: float, eta: Any, v: Any) -> np.ndarray:
    return np.asarray(eta) - weight * divergence.conjugate((np.asarray(eta) - v) / weight)


def grid(theta: tuple[float, float], values: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """A grid over Theta and the values, ends included; the upper end is open where f* ends there."""
    eta = np.linspace(theta[0], theta[1] - 1e-12 * (theta[1] - theta[0]), 101)
    return np.meshgrid(eta, np.linspace(*values, 41), indexing="ij")


@each_divergence
@pytest.mark.parametrize("weight", [0.3, 2.0])
def test_the_tight_interval_holds_the_maximiser(divergence: Any, weight: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        v, p = rng.uniform(-3.0, 5.0, 6), rng.dirichlet(np.ones(6))
        low, high = theory.dual_interval(divergence, weight, (v.min(), v.max()))

        def mean(eta: float, v: np.ndarray = v, p: np.ndarray = p) -> float:
            return float(p @ objective(divergence, weight, eta, v))

        best = rm.worst_case(rm.Penalized(divergence, weight), p, v).value
        found = minimize_scalar(lambda eta: -mean(eta), bounds=(low, high), method="bounded", options={"xatol": 1e-9})
        # A slope of at most 1e3 near the maximum times the search's 1e-9.
        assert -found.fun == pytest.approx(best, abs=1e-6)
        for distance in np.geomspace(1e-3, 5.0, 10):
            assert max(mean(low - distance), mean(high + distance)) <= best + 1e-9


def test_the_papers_intervals() -> None:
    weight, values = 0.5, (0.0, 10.0)
    assert theory.dual_interval(rm.ChiSquare(), weight, values, "section-4.1") == (-1.0, 21.0)
    assert theory.dual_interval(rm.ChiSquare(), weight, values, "lemma-a.1") == (-0.5, 21.0)
    assert theory.dual_interval(rm.ChiSquare(), weight, (-2.0, 8.0), "section-4.1") == (-3.0, 19.0)


@each_divergence
def test_a_shift_of_the_values_shifts_the_interval(divergence: Any) -> None:
    there = theory.dual_interval(divergence, 0.7, (3.0, 9.0))
    here = theory.dual_interval(divergence, 0.7, (0.0, 6.0))
    assert np.subtract(there, here) == pytest.approx([3.0, 3.0])


def test_the_edge_cuts_the_interval() -> None:
    assert theory.dual_interval(rm.TotalVariation(), 1.0, (2.0, 10.0)) == (2.0, 2.5)
    assert theory.dual_interval(rm.Hellinger(), 1.0, (0.0, 10.0)) == (0.0, 1.0)
    assert theory.dual_interval(rm.Hellinger(), 20.0, (0.0, 10.0)) == (0.0, 10.0)


@each_divergence
@pytest.mark.parametrize("weight", [0.8, 5.0, 50.0])
def test_true_suprema_by_brute_force(divergence: Any, weight: float) -> None:
    values = (-1.0, 3.0)
    theta = theory.dual_interval(divergence, weight, values)
    eta, v = grid(theta, values)
    slopes = np.abs(1.0 - divergence.conjugate_derivative((eta - v) / weight))
    outcomes = np.abs(objective(divergence, weight, eta, v))
    steepest = theory.gradient_bound(divergence, weight, values, theta)
    largest = theory.outcome_bound(divergence, weight, values, theta)
    assert steepest >= slopes.max() - 1e-6
    assert largest >= outcomes.max() - 1e-6
    cut = math.isclose(theta[1], values[0] + weight * divergence.slope_at_infinity)
    if cut and is_steep(divergence):
        assert steepest == np.inf
    else:
        assert steepest == pytest.approx(slopes.max(), abs=1e-6)
        assert largest == pytest.approx(outcomes.max(), abs=1e-6)


@pytest.mark.parametrize("form", ["tight", "section-4.1", "lemma-a.1"])
@pytest.mark.parametrize("weight", [0.5, 3.0, 40.0])
def test_chi_square_suprema_by_brute_force(form: Any, weight: float) -> None:
    values = (0.0, 10.0)
    theta = theory.dual_interval(rm.ChiSquare(), weight, values, form)
    eta, v = grid(theta, values)
    slopes = np.abs(1.0 - rm.ChiSquare().conjugate_derivative((eta - v) / weight))
    outcomes = np.abs(objective(rm.ChiSquare(), weight, eta, v))
    assert theory.gradient_bound(rm.ChiSquare(), weight, values, theta) == pytest.approx(slopes.max(), abs=1e-6)
    # The maximum over eta is interior: a grid misses it by at most f*'' spacing^2/(8 weight), 1/16 spacing^2/weight.
    spacing = (theta[1] - theta[0]) / 100
    assert theory.outcome_bound(rm.ChiSquare(), weight, values, theta) == pytest.approx(
        outcomes.max(), abs=1e-6 + spacing**2 / (16 * weight)
    )


def test_the_printed_constants_are_too_small() -> None:
    weight, values = 0.5, (0.0, 10.0)
    theta = theory.dual_interval(rm.ChiSquare(), weight, values, "section-4.1")
    world = rm.ChiSquare(), weight, values, theta
    assert theory.outcome_bound(*world) == pytest.approx(220.5)  # paper-notes: 220
    assert theory.outcome_bound(*world, form="printed") == 10.0
    assert theory.gradient_bound(*world, form="printed") == pytest.approx(17.0)
    assert theory.gradient_bound(*world) == pytest.approx(21.0)  # (high - low)/weight + 1
    assert theory.gradient_bound(*world, form="lemma-4.1") == pytest.approx(32.0)


@each_divergence
@pytest.mark.parametrize("weight", [0.8, 5.0, 50.0])
def test_lemma_4_1_bounds_the_true_supremum(divergence: Any, weight: float) -> None:
    values = (0.0, 4.0)
    world = divergence, weight, values, theory.dual_interval(divergence, weight, values)
    assert theory.gradient_bound(*world, form="lemma-4.1") >= theory.gradient_bound(*world)


@each_divergence
def test_strong_convexity_is_the_smallest_curvature(divergence: Any) -> None:
    for ratios in ((0.5, 2.0), (0.1, 0.9), (1.0, 7.0)):
        t = np.linspace(*ratios, 201)
        h = 1e-4
        curvature = (divergence.f(t + h) - 2 * divergence.f(t) + divergence.f(t - h)) / h**2
        kinks = isinstance(divergence, rm.TotalVariation)
        # The difference quotient is off by f'''' h^2/12 and rounding of 1e-16/h^2.
        assert theory.strong_convexity(divergence, ratios) == pytest.approx(
            0.0 if kinks else curvature.min(), rel=1e-3, abs=1e-6
        )
    everywhere = theory.strong_convexity(divergence)
    assert everywhere == (2.0 if divergence == rm.ChiSquare() else 0.0)


@pytest.mark.parametrize("weight", [0.1, 1.0, 10.0])
def test_curvature_holds_and_is_attained(weight: float) -> None:
    discount, rng = 0.8, np.random.default_rng(1)
    kappa = theory.curvature(weight, discount)
    assert theory.curvature(weight, discount, form="printed") < kappa
    theta = theory.dual_interval(rm.ChiSquare(), weight, (0.0, 5.0), "section-4.1")
    tightest = np.inf
    for trial in range(200):
        v = rng.uniform(0.0, 5.0, 4) if trial else np.full(4, 5.0)
        p = rng.dirichlet(np.ones(4))
        best = rm.worst_case(rm.Penalized(rm.ChiSquare(), weight), p, v).multipliers.eta
        eta = np.linspace(*theta, 301)
        eta = eta[np.abs(eta - best) > 1e-3]
        slope = 1.0 - np.maximum(eta[:, None] + 2 * weight - v, 0.0) @ p / (2 * weight)
        ratio = -slope / (eta - best)
        assert ratio.min() >= kappa * (1 - 1e-9)
        tightest = min(tightest, ratio.min())
    assert tightest == pytest.approx(kappa, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.dual_interval(rm.KL(), 1.0, (0.0, 1.0), "section-4.1"), "must be ChiSquare"),
        (lambda: theory.dual_interval(rm.KL(), 0.0, (0.0, 1.0)), "weight must be positive: got 0"),
        (lambda: theory.dual_interval(rm.KL(), np.inf, (0.0, 1.0)), "weight must be finite: got inf"),
        (lambda: theory.dual_interval(rm.KL(), 1.0, (2.0, 1.0)), "low <= high: got \\(2, 1\\)"),
        (lambda: theory.dual_interval(rm.KL(), 1.0, (0.0, 1.0), "tigt"), "did you mean 'tight'"),
        (lambda: theory.gradient_bound(rm.KL(), 1.0, (0.0, 1.0), (0.0, 1.0), "printed"), "must be ChiSquare"),
        (lambda: theory.curvature(1.0, 1.0), "discount must lie in"),
        (lambda: theory.strong_convexity(rm.KL(), (2.0, 1.0)), "ratios must be"),
        (
            lambda: theory.strong_convexity(rm.Divergence("own", lambda s: s + s * s / 4, lambda s: 1 + s / 2)),
            "must",
        ),
    ],
)
def test_what_cannot_be(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
