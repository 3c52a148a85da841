"""Section 4.1 alone: eta by stochastic ascent, against Theorem 4.1 and the exact worst case."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles import learning as naive
from robustmdp.learning import schedules

SMOOTH = (
    rm.ChiSquare(), rm.KL(), rm.Hellinger(), rm.Burg(), rm.JensenShannon(), rm.CressieRead(0.3), rm.CressieRead(3.0),
)  # fmt: skip
P, V = [0.2, 0.5, 0.3], [0.0, 4.0, 10.0]
RANGE = (0.0, 10.0)
each_smooth = pytest.mark.parametrize("divergence", SMOOTH, ids=repr)


def stream(length: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).choice(V, length, p=P)


def objective(divergence: Any, weight: float, eta: float) -> float:
    """J(eta) from the divergence's own conjugate."""
    tilted = divergence.conjugate((eta - np.array(V)) / weight)
    return eta - weight * float(np.dot(P, tilted))


def shortfall(weight: float, steps: int, seeds: int) -> float:
    """Mean over seeds of sup J - J(eta_T), chi-square."""
    best = rm.worst_case(rm.Penalized(rm.ChiSquare(), weight), P, V).value
    found = [
        objective(rm.ChiSquare(), weight, rm.learn_worst_case(rm.Penalized(rm.ChiSquare(), weight), x, RANGE).eta)
        for x in (stream(steps, seed) for seed in range(seeds))
    ]
    return float(best - np.mean(found))


@pytest.mark.parametrize("weight", [0.5, 2.0, 10.0])
def test_theorem_4_1_holds(weight: float) -> None:
    diameter = 20.0 + 4.0 * weight
    theta = (-2.0 * weight, 20.0 + 2.0 * weight)
    slope = rm.theory.gradient_bound(rm.ChiSquare(), weight, RANGE, theta, "printed")
    for steps in (1, 10, 100, 1000, 10_000):
        bound = rm.theory.inner_rate(steps, diameter=diameter, gradient_bound=slope)
        assert -1e-12 <= shortfall(weight, steps, seeds=20) <= bound


@pytest.mark.parametrize("weight", [0.5, 2.0, 10.0])
def test_the_error_falls_like_the_root_of_the_number_of_samples(weight: float) -> None:
    lengths = [100, 1000, 10_000, 100_000]
    gaps = [shortfall(weight, steps, seeds=40) for steps in lengths]
    exponent = np.polyfit(np.log(lengths), np.log(gaps), 1)[0]
    # With a curved J the squared noise of eta, and so the gap, falls like the step, T^-1/2. The mean of forty squares
    # has a relative error of sqrt(2/40), which over three decades moves the fit by 0.05.
    assert exponent <= -0.4


@pytest.mark.parametrize("weight", [0.5, 10.0])
def test_ascent_does_what_is_printed(weight: float) -> None:
    x = stream(300, 1)
    diameter = 20.0 + 4.0 * weight
    slope = (diameter + 10.0) / (2.0 * weight)
    eta, seen = 1.5, []
    for t, outcome in enumerate(x.tolist()):
        seen.append(naive.outcome(eta, outcome, weight))
        step = diameter / (slope * math.sqrt(t + 1)) * naive.outcome_derivative(eta, outcome, weight)
        eta = naive.projected(eta + step, -2 * weight, 20.0 + 2 * weight)
    learned = rm.learn_worst_case(rm.Penalized(rm.ChiSquare(), weight), x, RANGE, eta=1.5)
    assert learned.steps == 300
    assert learned.eta == pytest.approx(eta, rel=1e-12)
    assert learned.value == pytest.approx(np.mean(seen[150:]), rel=1e-12)


@pytest.mark.parametrize("weight", [0.3, 2.0, 20.0])
@each_smooth
def test_the_estimate_comes_to_the_worst_case(divergence: Any, weight: float) -> None:
    doubt = rm.Penalized(divergence, weight)
    exact = rm.worst_case(doubt, P, V)
    errors = [
        [abs(rm.learn_worst_case(doubt, stream(n, seed), RANGE).value - exact.value) for seed in range(8)]
        for n in (300, 30_000)
    ]
    few, many = np.mean(errors, axis=1)
    assert many <= max(few / 2, 0.02)  # a factor of 10 is expected where the start has not been right by chance
    assert many <= 0.1 * np.ptp(V)


@pytest.mark.parametrize("weight", [1e-6, 1e-3, 0.1, 1e6])
@each_smooth
def test_nothing_is_ever_infinite(divergence: Any, weight: float) -> None:
    for seed in range(5):
        learned = rm.learn_worst_case(rm.Penalized(divergence, weight), stream(2000, seed), RANGE)
        assert math.isfinite(learned.eta)
        assert math.isfinite(learned.value)


@pytest.mark.parametrize("length", [1, 7, 65_535, 65_536, 65_537, 200_000])
def test_iterables_are_arrays(length: int) -> None:
    doubt, x = rm.Penalized(rm.KL(), 2.0), stream(length, 3)
    whole = rm.learn_worst_case(doubt, x, RANGE)

    def one_by_one() -> Iterator[float]:
        yield from x.tolist()

    for other in (x.tolist(), tuple(x.tolist()), one_by_one(), map(float, x)):
        learned = rm.learn_worst_case(doubt, other, RANGE)
        assert (learned.value, learned.eta, learned.steps) == (whole.value, whole.eta, length)


def test_a_schedule_may_be_given() -> None:
    doubt, x = rm.Penalized(rm.ChiSquare(), 2.0), stream(2, 0)
    learned = rm.learn_worst_case(doubt, x[:1], RANGE, steps=schedules.Constant(0.5), eta=3.0)
    assert learned.eta == pytest.approx(3.0 + 0.5 * naive.outcome_derivative(3.0, float(x[0]), 2.0), rel=1e-14)


@pytest.mark.parametrize(
    ("doubt", "outcomes", "values", "message"),
    [
        (rm.Penalized(rm.TotalVariation(), 1.0), [1.0], RANGE, "smooth conjugate"),
        (rm.Constrained(rm.KL(), 1.0), [1.0], RANGE, "is for a penalty"),
        (rm.Nominal(), [1.0], RANGE, "is for a penalty"),
        (rm.Penalized(rm.KL(), 0.0), [1.0], RANGE, r"weight must be one number in \(0, inf\)"),
        (rm.Penalized(rm.KL(), math.inf), [1.0], RANGE, r"weight must be one number in \(0, inf\)"),
        (rm.Penalized(rm.KL(), np.ones((2, 2))), [1.0], RANGE, r"weight must be one number in \(0, inf\)"),
        (rm.Penalized(rm.KL(), 1.0), [], RANGE, "outcomes must hold at least one number"),
        (rm.Penalized(rm.KL(), 1.0), iter([]), RANGE, "outcomes must hold at least one number"),
        (rm.Penalized(rm.KL(), 1.0), [1.0, 11.0], RANGE, r"outcomes must lie in value_range \[0, 10\]: got 11 at 1"),
        (rm.Penalized(rm.KL(), 1.0), [1.0, math.nan], RANGE, "got nan at 1"),
        (rm.Penalized(rm.KL(), 1.0), [1.0], (1.0, 0.0), r"value_range must be \(low, high\)"),
        (rm.Penalized(rm.KL(), 1.0), [1.0], (0.0, math.inf), "value_range"),
    ],
)
def test_what_is_refused(doubt: Any, outcomes: Any, values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rm.learn_worst_case(doubt, outcomes, values)
