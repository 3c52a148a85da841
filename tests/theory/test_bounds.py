"""Bounds against the formulas of the paper, against each other, and against runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp import theory

CONSTANTS: dict[str, Any] = {
    "n_pairs": 20,
    "discount": 0.9,
    "diameter": 22.0,
    "gradient_bound": 21.0,
    "outcome_bound": 220.5,
}


def test_inner_rate_by_hand() -> None:
    base = 22.0 * 21.0 * (2 + math.log(100)) / 10.0
    given: dict[str, Any] = {"diameter": 22.0, "gradient_bound": 21.0}
    assert theory.inner_rate(100, **given) == pytest.approx(base)
    assert theory.inner_rate(100, n_pairs=20, **given) == pytest.approx(base * (4 * math.sqrt(2 * math.log(20)) + 1))
    assert theory.inner_rate(100, n_pairs=20, form="proved", **given) == pytest.approx(20 * base)


@pytest.mark.parametrize("weight", [0.3, 2.0])
def test_inner_rate_bounds_a_run(weight: float) -> None:
    """The last iterate of stochastic gradient ascent, its mean over many runs."""
    v, p = np.array([0.0, 0.4, 1.0]), np.array([0.2, 0.5, 0.3])
    world = rm.ChiSquare(), weight, (0.0, 1.0)
    low, high = theory.dual_interval(*world)
    slope_bound = theory.gradient_bound(*world, (low, high))
    runs, steps = 2000, 400
    rng = np.random.default_rng(0)
    eta = np.full(runs, low)
    for t in range(1, steps + 1):
        drawn = rng.choice(v, runs, p=p)
        slope = 1.0 - np.maximum(eta + 2 * weight - drawn, 0.0) / (2 * weight)
        eta = np.clip(eta + (high - low) / (slope_bound * math.sqrt(t)) * slope, low, high)
    value = -(np.maximum(eta[:, None] + 2 * weight - v, 0.0) ** 2) @ p / (4 * weight) + weight + eta
    gap = rm.worst_case(rm.Penalized(rm.ChiSquare(), weight), p, v).value - value
    assert 0.0 < gap.mean() <= theory.inner_rate(steps, diameter=high - low, gradient_bound=slope_bound)


def test_generative_bound_by_hand() -> None:
    noise = 2 * math.sqrt(2 * (1 + 0.9 * 220.5) ** 2 * math.log(40))
    assert theory.noise_constant(20, 0.9, 220.5) == pytest.approx(noise)
    outer = 10 / (1 + 0.1 * 1000) + 2 * noise / math.sqrt(0.1**3 * 1000) + noise / math.sqrt(1 + 0.1 * 1000)
    inner = 22 * 21 * (2 + math.log(50)) / (0.1 * math.sqrt(50))
    assert theory.generative_bound(1000, 50, **CONSTANTS) == pytest.approx(outer + inner)
    factor = 4 * math.sqrt(2 * math.log(20)) + 1
    assert theory.generative_bound(1000, 50, form="theorem-4.1", **CONSTANTS) == pytest.approx(outer + factor * inner)
    assert theory.generative_bound(1000, 50, form="proved", **CONSTANTS) == pytest.approx(outer + 20 * inner)
    start = theory.generative_bound(1000, 50, initial_error=0.0, **CONSTANTS)
    assert start == pytest.approx(outer + inner - 10 / 101)


@pytest.mark.parametrize("form", ["printed", "theorem-4.1", "proved"])
@pytest.mark.parametrize("epsilon", [0.1, 5.0, 1e6])
def test_generative_samples_are_the_smallest(form: Any, epsilon: float) -> None:
    needed = theory.generative_samples(epsilon, form=form, **CONSTANTS)
    bound = theory.generative_bound(needed.steps, needed.inner_steps, form=form, **CONSTANTS)
    assert bound <= epsilon
    assert needed.total == 20 * needed.steps * (needed.inner_steps + 1)
    if needed.inner_steps > 1:
        assert theory.generative_bound(needed.steps, needed.inner_steps - 1, form=form, **CONSTANTS) > epsilon
    # The even split is near the best one: halving or doubling T and mending T' saves little.
    assert epsilon > 1e5 or needed.total <= 1.2 * _best_total(epsilon, form)


def _best_total(epsilon: float, form: Any) -> float:
    totals = []
    even = theory.generative_samples(epsilon, form=form, **CONSTANTS)
    for factor in (0.5, 0.7, 0.85, 1.2, 1.5, 2.0):
        steps = int(even.steps * factor)
        inner = np.unique(np.geomspace(1, 1e3 * even.inner_steps, 4000).astype(np.int64))
        enough = [t for t in inner if theory.generative_bound(steps, int(t), form=form, **CONSTANTS) <= epsilon]
        if enough:
            totals.append(20 * steps * (int(enough[0]) + 1))
    return min(totals)


def test_sample_complexity_orders() -> None:
    # Up to logarithms Theorem 4.2 asks for epsilon^-4, Theorem 3.2 for epsilon^-2, Theorem 5.1 for epsilon^-3.
    small: dict[str, Any] = {"n_states": 4, "n_actions": 2, "discount": 0.6, "weight": 1.0}
    chain: dict[str, Any] = {"occupancy": (0.1, 0.15), "mixing": (1.0, 0.5)}
    for method, order in (("plug-in", 2), ("generative", 4), ("markovian", 3)):
        extra = chain if method == "markovian" else {}
        coarse, fine = (theory.samples_needed(epsilon, method=method, **small, **extra) for epsilon in (1e-3, 1e-6))
        assert math.log(fine / coarse) / math.log(1e3) == pytest.approx(order, abs=0.3)


def test_samples_needed_invert_the_bounds() -> None:
    small: dict[str, Any] = {"discount": 0.9, "weight": 2.0}
    total = theory.samples_needed(0.3, n_states=10, n_actions=2, delta=0.1, **small)
    each = total // 20
    assert total == 20 * each
    assert theory.statistical_upper_bound(each, n_pairs=20, delta=0.1, **small) <= 0.3
    assert theory.statistical_upper_bound(each - 1, n_pairs=20, delta=0.1, **small) > 0.3
    chain = {"occupancy": (0.05, 0.05), "mixing": (1.0, 0.9)}
    steps = theory.samples_needed(0.3, n_states=10, n_actions=2, method="markovian", **chain, **small)
    setting = theory.MarkovianSetting.chi_square(2.0, 0.9, 20, **chain)
    assert theory.markovian_bound(steps, setting) <= 0.3 < theory.markovian_bound(int(0.999 * steps), setting)


def test_statistical_upper_bound_by_hand() -> None:
    given: dict[str, Any] = {"n_pairs": 20, "discount": 0.9, "weight": 0.5, "delta": 0.1}
    net = 1 + 8 * 20 * math.sqrt(2000)
    log = math.log(2 * 20 / 0.1 * net)
    scale = 16 * 0.9 / 0.1 * 200
    assert theory.statistical_upper_bound(1000, form="printed", **given) == pytest.approx(scale * math.sqrt(log / 2000))
    assert theory.statistical_upper_bound(1000, form="proved", **given) == pytest.approx(
        scale * (1 + math.sqrt(log)) / math.sqrt(2000)
    )
    assert theory.statistical_upper_bound(1000, **given) == pytest.approx(
        9 * (10 + 100 / 2 + 10 * 10 / 1) * math.sqrt(math.log(80 / 0.1) / 2000)
    )


@pytest.mark.parametrize("weight", [0.01, 0.3, 2.0, 1e3])
@pytest.mark.parametrize("discount", [0.3, 0.9, 0.99])
def test_the_sharp_bound_is_below_the_proved_one(weight: float, discount: float) -> None:
    given: dict[str, Any] = {"n_pairs": 20, "discount": discount, "weight": weight}
    sharp = theory.statistical_upper_bound(500, **given)
    assert sharp < theory.statistical_upper_bound(500, form="proved", **given)


def estimated(mdp: rm.MDP, n: int, rng: np.random.Generator) -> rm.MDP:
    rows = zip(mdp.indptr[:-1], mdp.indptr[1:], strict=True)
    counts = [rng.multinomial(n, mdp.probabilities[first:last]) for first, last in rows]
    return mdp.with_probabilities(np.concatenate(counts) / n)


@pytest.mark.parametrize(("discount", "weight", "n"), [(0.5, 1.0, 2000), (0.9, 1.0, 1_000_000), (0.9, 20.0, 50_000)])
def test_plug_in_error_is_below_the_bound(discount: float, weight: float, n: int) -> None:
    mdp, ambiguity = rm.problems.chain(discount=discount), rm.Penalized(rm.ChiSquare(), weight)
    bound = theory.statistical_upper_bound(n, n_pairs=20, discount=discount, weight=weight)
    assert bound < 1 / (1 - discount)  # it says something
    truth = rm.solve(mdp, ambiguity).value
    for seed in range(20):
        found = rm.solve(estimated(mdp, n, np.random.default_rng(seed)), ambiguity).value
        assert np.abs(found - truth).max() <= bound


@pytest.mark.parametrize("weight", [0.5, 5.0, 50.0])
def test_the_sharp_bound_at_one_row(weight: float) -> None:
    """|sup J_n - sup J| <= H (1 + 3 H/(4 weight)) sqrt(log(4/delta)/(2n)) but for a share of delta, at the worst p."""
    n, delta, ambiguity = 30, 0.05, rm.Penalized(rm.ChiSquare(), weight)
    v = np.array([0.0, 1.0])
    bound = (1 + 0.75 / weight) * math.sqrt(math.log(4 / delta) / (2 * n))
    for p in (0.1, 0.5, 0.9):
        value = {k: rm.worst_case(ambiguity, _row(k / n), v[_kept(k / n)]).value for k in range(n + 1)}
        truth = rm.worst_case(ambiguity, _row(p), v).value
        drawn = np.random.default_rng(0).binomial(n, p, 4000)
        errors = np.array([abs(value[int(k)] - truth) for k in drawn])
        # 4000 draws of an event with probability at most delta: four standard deviations of the count.
        assert np.mean(errors > bound) <= delta + 4 * math.sqrt(delta / 4000)
        assert errors.max() > 0.02 * bound


def _kept(p: float) -> np.ndarray:
    return np.array([1 - p, p]) > 0


def _row(p: float) -> np.ndarray:
    return np.array([1 - p, p])[_kept(p)]


def test_statistical_lower_bound_by_hand() -> None:
    given: dict[str, Any] = {"n_pairs": 20, "discount": 0.9}
    rate = 20 / (0.1**2 * 0.1**3)
    edge = 0.1 / (0.9 * 1.2)
    for weight in (0.01, 0.99 * edge):
        assert theory.statistical_lower_bound(0.1, weight=weight, **given) == pytest.approx(rate * weight**2)
    between = 1.01 * edge
    assert theory.statistical_lower_bound(0.1, weight=between, **given) == pytest.approx(rate * between * 0.09 / 0.8)
    assert theory.statistical_lower_bound(0.1, weight=9.0, **given) == pytest.approx(rate / 16)
    assert theory.statistical_lower_bound(0.1, weight=9.0, **given) < theory.samples_needed(
        0.1, n_states=10, n_actions=2, discount=0.9, weight=9.0
    )


def setting(**changes: Any) -> theory.MarkovianSetting:
    given: dict[str, Any] = {
        "n_pairs": 3,
        "discount": 0.75,
        "diameter": 5.0,
        "gradient_bound": 7.0,
        "outcome_bound": 11.0,
        "curvature": 0.5,
        "smoothness": 0.25,
        "occupancy": theory.Occupancy(0.125, 0.5),
        "mixing": theory.Mixing(2.0, 0.75),
    }
    return theory.MarkovianSetting(**{**given, **changes})


def test_markovian_constants_by_hand() -> None:
    root = math.sqrt(math.log(6))
    phi_1, phi_2, phi_3 = theory.markovian_constants(setting())
    # Term by term from I_1 ... I_6 of Appendix D, M/(1-rho) = 8, with I_4 twice as Phi_1 has it.
    second = 3 * 5 * 8 * (0.5 * 5 + 2 * 7 + 2 * 0.125 * root) / (0.5 * 0.125**2)
    third = 12 * 5 * 7 * root / (0.5 * 0.125)
    fourth = 2 * 6 * 49 / (0.25 * 0.125**2)
    fifth = 12 * 121 / (0.125**2 * 0.25**2)
    assert phi_1 == pytest.approx(second + third + fourth + fifth)
    assert phi_2 == pytest.approx(5 * 8 * (7 * 0.125 * 5 + 4 * 4 * 11) / 0.125**2)
    assert phi_3 == pytest.approx(2 * 25 / 0.125 + 32 * 121 / (0.125**2 * 0.25**2))


def test_dual_error_bound_by_hand() -> None:
    for form in ("printed", "proved"):
        phi_1, phi_2, phi_3 = theory.markovian_constants(setting(), form)
        assert setting().offsets == (16, 8)
        expected = phi_1 / 10 + (phi_2 * math.log(1000 + 16) + phi_3) / 100
        assert theory.dual_error_bound(1000, setting(), form) == pytest.approx(expected)


@pytest.mark.parametrize("occupancy", [(0.125, 0.5), (0.01, 0.9), (0.3, 0.3)])
def test_the_proved_constants_dominate_their_sums(occupancy: tuple[float, float]) -> None:
    """I_1, I_4, I_5 and I_6 of Appendix D summed one by one, and the recursion that they bound."""
    # Forgets at once, so that the Poisson terms vanish; of the noise one martingale is left.
    given = setting(occupancy=theory.Occupancy(*occupancy), mixing=theory.Mixing(1e-12, 0.5), n_pairs=1)
    d_min, kappa, (p_dagger, p_alpha) = occupancy[0], given.curvature, given.offsets
    t = np.arange(20_000)
    alpha = 1 / (kappa * d_min * (t + p_alpha) ** (2 / 3))
    beta = np.minimum(1.0, 1 / ((1 - given.discount) * d_min * (t + p_dagger)))
    step, moved = 2 * alpha**2 * given.gradient_bound**2, 4 * beta**2 * given.outcome_bound**2
    moved = moved / (kappa * alpha * d_min) + 2 * moved
    sums = alpha * (given.diameter**2 / alpha[0] + np.cumsum((step + moved) / alpha))
    martingale = 12 * given.gradient_bound * given.diameter * math.sqrt(2 * math.log(2)) / (kappa * d_min)
    bound = [theory.dual_error_bound(int(n) + 1, given, "proved") - martingale / (n + 1) ** (1 / 3) for n in t]
    assert np.all(sums <= bound)
    assert sums[-1] > 0.05 * bound[-1]
    square = given.diameter**2
    for n in t:
        square = (1 - kappa * alpha[n] * d_min) * square + step[n] + moved[n]
        assert square <= sums[n] * (1 + 1e-12)


def test_proved_constants_by_hand() -> None:
    root = math.sqrt(2 * math.log(6))
    phi_1, phi_2, phi_3 = theory.markovian_constants(setting(), "proved")
    # I_2 from Lemma E.8 with f = 2 delta^2, at most 2 D^2 = 50, that changes by 4 D (alpha C_g + 2 beta C_M) a step.
    poisson = 8 * (50 * 3 / 0.125**2 + 3 * 4 * 5 * 7 * 3 / (0.5 * 0.125**2) + 6 * 50 * root / 0.125)
    noise = 3 * (4 * 5 * 7) * root / (0.5 * 0.125)
    assert phi_1 == pytest.approx(poisson + noise + 6 * 49 / (0.25 * 0.125**2) + 12 * 121 / (0.125 * 0.25) ** 2)
    assert phi_2 == pytest.approx(8 * (50 / 0.125 + 3 * 4 * 5 * 2 * 11 / (0.25 * 0.125**2)))
    assert phi_3 == pytest.approx(8 * 3 * 50 / 0.125 + 8 ** (2 / 3) * 25 + 24 * 121 / (0.125 * 0.25) ** 2)


def test_markovian_bound_dominates_its_sums() -> None:
    """Lemma E.6 and the bound on B_t of the proof, summed one by one."""
    given = setting()
    gamma, (d_min, d_max), memory, steps = given.discount, given.occupancy, given.memory, 3000
    p_dagger, _ = given.offsets
    beta = 1 / ((1 - gamma) * d_min * (np.arange(steps) + p_dagger))
    squares = [given.diameter**2] + [theory.dual_error_bound(t, given, "proved") for t in range(1, steps)]
    largest, root = given.outcome_bound, np.sqrt(2 * beta * given.log_pairs / d_min)
    change = 3 + np.log(np.arange(1, steps + 1) + p_dagger) + 4 * np.cumsum(beta)
    b = (3 + 12 * (1 + gamma) * memory) * largest * root
    b += 0.5 * gamma * given.smoothness * beta * np.cumsum(squares)
    b += 2 * (1 + gamma) * largest * memory * beta * change
    start = 1 / (1 - gamma)
    summed = beta[-1] / min(1.0, beta[0]) * start + b[-1] + gamma * d_max * beta[-1] * b[:-1].sum()
    assert 0.05 < summed / theory.markovian_bound(steps, given) <= 1.0
    assert theory.markovian_bound(steps, given, initial_error=0.0) < theory.markovian_bound(steps, given)


def test_the_dominating_order() -> None:
    given = setting()
    phi_1 = theory.markovian_constants(given).phi_1
    assert theory.markovian_rate(26, given) == pytest.approx(phi_1 * 0.25 / (0.125 * 0.0625 * 3))
    # In the limit the explicit bound is the order times d_max/d_min and a constant.
    proved = theory.markovian_constants(given, "proved").phi_1
    limit = 1.5 * 0.75 * 0.5 * 0.25 * proved / (0.25 * 0.125) * (1 + 1.5 * 0.75 * 0.5 / (0.25 * 0.125))
    assert theory.markovian_bound(10**45, given) * 10**15 == pytest.approx(limit, rel=1e-3)


def test_chi_square_settings() -> None:
    printed = theory.MarkovianSetting.chi_square(0.5, 0.9, 20, (0.05, 0.05), (1.0, 0.5), "printed")
    assert (printed.diameter, printed.outcome_bound) == (pytest.approx(22.0), pytest.approx(10.0))
    assert (printed.gradient_bound, printed.curvature) == (pytest.approx(17.0), pytest.approx(1 / 63))
    true = theory.MarkovianSetting.chi_square(0.5, 0.9, 20, (0.05, 0.05), (1.0, 0.5))
    assert (true.diameter, true.gradient_bound) == (pytest.approx(10.0), pytest.approx(10.0))
    assert (true.outcome_bound, true.curvature, true.smoothness) == (pytest.approx(50.0), pytest.approx(1 / 11), 1.0)


def test_step_offsets() -> None:
    assert theory.step_offsets(0.05, 0.05, 0.9) == (10, 1)
    assert theory.step_offsets(0.1, 0.1 * (1 + 1e-15), 0.0) == (1, 1)
    assert theory.step_offsets(0.1, 0.4, 0.5) == (8, 8)
    assert theory.step_offsets(0.1, 0.41, 0.5) == (9, 9)
    shares = theory.occupancy(rm.problems.chain(restart=0.5))
    assert theory.step_offsets(*shares, 0.9) == (10, 1)  # the ratio is 1 only up to rounding


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.inner_rate(0, diameter=1.0, gradient_bound=1.0), "inner_steps must be at least 1: got 0"),
        (lambda: theory.generative_bound(1, 1, **{**CONSTANTS, "diameter": -1.0}), "diameter must be positive: got -1"),
        (lambda: theory.generative_bound(1, 1, form="exact", **CONSTANTS), "form must be one of printed"),
        (lambda: theory.generative_samples(0.0, **CONSTANTS), "epsilon must be positive: got 0"),
        (lambda: theory.generative_samples(1e-200, **CONSTANTS), "epsilon must be within reach"),
        (
            lambda: theory.statistical_upper_bound(10, n_pairs=2, discount=0.9, weight=1.0, delta=1.0),
            r"delta must lie in \(0, 1\): got 1",
        ),
        (
            lambda: theory.statistical_lower_bound(0.1, n_pairs=2, discount=0.5, weight=1.0),
            r"discount must lie in \(3/4, 1\) for the lower bound: got 0.5",
        ),
        (lambda: theory.step_offsets(0.0, 0.5, 0.9), "d_min is 0 where a pair is never visited"),
        (lambda: theory.step_offsets(0.5, 0.1, 0.9), "0 < d_min <= d_max <= 1: got 0.5 and 0.1"),
        (lambda: setting(mixing=theory.Mixing(1.0, 1.0)), r"mixing rate must lie in \(0, 1\): got 1"),
        (lambda: setting(discount=0.0), r"discount must lie in \(0, 1\): got 0"),
        (
            lambda: theory.samples_needed(0.1, n_states=2, n_actions=2, discount=0.9, weight=1.0, method="markovian"),
            "occupancy and mixing must be given for the markovian method",
        ),
        (
            lambda: theory.samples_needed(
                0.1,
                n_states=2,
                n_actions=2,
                discount=0.9,
                weight=1.0,
                method="plugin",
            ),
            "did you mean 'plug-in'",
        ),
    ],
)
def test_what_cannot_be(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
