"""Radii from counts: closed forms, brute force over boxes, coverage by enumerating every data set."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom, chi2, multinomial

import robustmdp as rm
from robustmdp.ambiguity.distance import distance
from robustmdp.tuning.bootstrap import FEW, KEPT_BACK, Bootstrap
from robustmdp.tuning.confidence import METHODS

SMOOTH = (rm.ChiSquare(), rm.KL(), rm.Burg(), rm.Hellinger(), rm.JensenShannon())
BARRED = SMOOTH[:4]
EVERY = (*SMOOTH, rm.TotalVariation())
CURVATURES = {rm.ChiSquare(): 2.0, rm.KL(): 1.0, rm.Burg(): 1.0, rm.Hellinger(): 0.5, rm.JensenShannon(): 0.5}
each_smooth = pytest.mark.parametrize("divergence", SMOOTH, ids=repr)
each = pytest.mark.parametrize("divergence", EVERY, ids=repr)


def own_kl() -> rm.Divergence:
    return rm.Divergence("my KL", lambda s: math.exp(s - 1), lambda s: math.exp(s - 1))


def shares(counts: np.ndarray) -> np.ndarray:
    """The model around which radii are: (n_i + 1/2)/(n + k/2)."""
    return (counts + 0.5) / (counts.sum(axis=-1, keepdims=True) + 0.5 * counts.shape[-1])


def data_sets(n: int, k: int) -> np.ndarray:
    """Every way in which n observations fall on k successors."""
    bars = np.array(list(combinations(range(n + k - 1), k - 1))).reshape(-1, k - 1)
    return np.diff(bars, axis=1, prepend=-1, append=n + k - 1) - 1


def covered(divergence: Any, n: int, truths: np.ndarray, confidence: float, method: str | None = None) -> np.ndarray:
    """The probability that the radius holds the truth, exactly, for each truth."""
    data = data_sets(n, truths.shape[1])
    radii = rm.radius_from_counts(data, divergence, confidence, method=method)
    inside = distance(divergence, truths[:, None], shares(data)[None]) <= radii
    chance = np.stack([multinomial.pmf(data, n, p) for p in truths])
    return (chance * inside).sum(axis=1)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("counts", [[50, 50], [3, 0, 7], [1] * 12], ids=str)
@each_smooth
def test_asymptotic_is_the_likelihood_ratios_limit(divergence: Any, counts: list[int], confidence: float) -> None:
    expected = CURVATURES[divergence] * chi2.ppf(confidence, len(counts) - 1) / (2 * sum(counts))
    found = rm.radius_from_counts(counts, divergence, confidence, method="asymptotic")
    assert found == pytest.approx(expected, rel=1e-12)


def test_asymptotic_for_any_power_and_a_users_own() -> None:
    expected = chi2.ppf(0.95, 2) / 40
    for divergence in (rm.CressieRead(3.0), rm.CressieRead(-1.0), own_kl()):
        found = rm.radius_from_counts([4, 6, 10], divergence, 0.95, method="asymptotic")
        assert found == pytest.approx(expected, rel=1e-8)


def box(counts: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Clopper and Pearson's intervals, the error shared among those that can fail by themselves."""
    n, k = counts.sum(), len(counts)
    error = (1 - confidence) / (2 if k == 2 else 2 * k)
    low = [beta.ppf(error, c, n - c + 1) if c else 0.0 for c in counts]
    high = [beta.ppf(1 - error, c + 1, n - c) if c < n else 1.0 for c in counts]
    return np.array(low), np.array(high)


def vertices(low: np.ndarray, high: np.ndarray) -> Iterator[np.ndarray]:
    """Of the box cut by sum = 1: all entries but one at an end of theirs."""
    for free, ends in product(range(len(low)), product((False, True), repeat=len(low) - 1)):
        p = np.insert(np.where(ends, np.delete(high, free), np.delete(low, free)), free, 0.0)
        p[free] = 1.0 - p.sum()
        if low[free] - 1e-12 <= p[free] <= high[free] + 1e-12:
            yield p


ROWS = ([8, 2], [30, 1], [5, 5, 5], [12, 3, 1], [20, 6, 3, 2], [9, 8, 1, 1, 1])


@pytest.mark.parametrize("counts", ROWS, ids=str)
@each_smooth
def test_finite_sample_bounds_every_distribution_of_the_box(divergence: Any, counts: list[int]) -> None:
    """At least the largest D, which a vertex has, and no more than the same with chords in place of convex terms."""
    row = np.array(counts)
    low, high = box(row, 0.95)
    q = shares(row)
    largest = max(float(distance(divergence, np.clip(p, 0.0, 1.0), q)) for p in vertices(low, high))
    found = rm.radius_from_counts(counts, divergence, 0.95, method="finite-sample")
    assert found >= largest * (1 - 1e-12)
    if len(counts) == 2:  # both vertices have both entries at an end
        assert found == pytest.approx(largest, rel=1e-9)
    at_low, at_high = (q * (divergence.f(p / q) - divergence.slope_at_one * (p / q - 1)) for p in (low, high))
    t = cp.Variable(len(counts))
    problem = cp.Problem(
        cp.Maximize(at_low.sum() + (at_high - at_low) @ t), [t >= 0, t <= 1, low.sum() + (high - low) @ t == 1]
    )
    assert found == pytest.approx(problem.solve(cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11), rel=1e-6)


def test_finite_sample_is_infinite_where_a_successor_may_be_impossible() -> None:
    assert rm.radius_from_counts([9, 0], rm.Burg(), 0.95, method="finite-sample") == math.inf
    assert rm.radius_from_counts([9, 0], rm.KL(), 0.95, method="finite-sample") < math.inf


@pytest.mark.parametrize("confidence", [0.9, 0.95])
@each
def test_finite_sample_covers_for_every_truth(divergence: Any, confidence: float) -> None:
    low = np.concatenate([[1e-9, 1e-3], np.linspace(0.01, 0.5, 40)])
    for n in (1, 2, 3, 5, 8, 13, 21, 34, 55):
        found = covered(divergence, n, np.stack([low, 1 - low], axis=1), confidence, "finite-sample")
        assert found.min() >= confidence - 1e-12, n


@each
def test_finite_sample_covers_with_three_successors(divergence: Any) -> None:
    truths = data_sets(10, 3) / 10.0
    truths = np.clip(truths[np.diff(truths, axis=1).min(axis=1) >= 0], 1e-6, None)
    truths /= truths.sum(axis=1, keepdims=True)
    for n in (2, 6, 12):
        assert covered(divergence, n, truths, 0.9, "finite-sample").min() >= 0.9 - 1e-12, n


def test_total_variation_covers_with_many_successors() -> None:
    """Where the mean distance is no longer small beside its spread: 10 successors, few observations."""
    for n in (5, 30, 200):
        data = np.random.default_rng(n).multinomial(n, np.full(10, 0.1), 2000)
        radii = rm.radius_from_counts(data, rm.TotalVariation(), 0.9)
        assert np.mean(0.5 * np.abs(0.1 - shares(data)).sum(axis=1) <= radii) >= 0.9


# Measured over n = 10..1000 and 200 truths each; whole numbers leave steps of up to 0.045 in the coverage.
TOP = {rm.ChiSquare(): 0.989}


@pytest.mark.parametrize("divergence", SMOOTH, ids=repr)
def test_simulated_coverage_with_two_successors(divergence: Any) -> None:
    """Exact, for every truth with n p_i >= 5: the bar is 0.93 to 0.985."""
    for n in (10, 11, 12, 14, 16, 17, 20, 25, 31, 40, 50, 75, 100, 150):
        first = np.arange(n + 1)
        data = np.stack([first, n - first], axis=1)
        radii = rm.radius_from_counts(data, divergence, 0.95)
        p = np.linspace(5 / n, 0.5, 60)
        inside = distance(divergence, np.stack([p, 1 - p], axis=1)[:, None], shares(data)[None]) <= radii
        found = (binom.pmf(first, n, p[:, None]) * inside).sum(axis=1)
        assert found.min() >= 0.93, n
        assert found.max() <= TOP.get(divergence, 0.985), n


@pytest.mark.parametrize("divergence", BARRED, ids=repr)
def test_simulated_coverage_with_few_successors(divergence: Any) -> None:
    """Exact, on a few truths: uniform, one that dominates, between."""
    for n, expected in (
        (15, [5, 5, 5]),
        (24, [8, 8, 8]),
        (24, [14, 5, 5]),
        (30, [10, 10, 10]),
        (30, [17, 8, 5]),
        (20, [5, 5, 5, 5]),
    ):
        (found,) = covered(divergence, n, np.array([expected]) / n, 0.95)
        assert 0.93 <= found <= 0.985, expected


@pytest.mark.parametrize("divergence", BARRED, ids=repr)
@pytest.mark.parametrize(
    ("n", "expected"),
    [(100, [55.0] + [5.0] * 9), (60, [6.0] * 10), (630, 630 * 0.5 ** np.arange(1, 7) * 64 / 63)],
    ids=["dominant", "uniform", "geometric"],
)
def test_simulated_coverage_with_more_successors(divergence: Any, n: int, expected: Any) -> None:
    """Measured: the share of R data sets is off by sqrt(c (1-c)/R); four of these beyond the bar is a failure."""
    replications = 250
    p = np.array(expected) / np.sum(expected)
    data = np.random.default_rng(7).multinomial(n, p, replications)
    found = np.mean(distance(divergence, p, shares(data)) <= rm.radius_from_counts(data, divergence, 0.95))
    low, high = 0.93, 0.985
    assert found >= low - 4 * math.sqrt(low * (1 - low) / replications)
    assert found <= high + 4 * math.sqrt(high * (1 - high) / replications)


@pytest.mark.parametrize("divergence", SMOOTH, ids=repr)
@pytest.mark.parametrize("k", [20, 30])
def test_simulated_coverage_with_many_successors(divergence: Any, k: int) -> None:
    """The bar again, less three standard errors of 2,500 data sets. Chi-square needs more of each successor."""
    replications = 2500
    expected = 8 if divergence == rm.ChiSquare() else 5
    for n in (expected * k, 4 * expected * k):  # all alike, and one that dominates
        p = np.full(k, expected / n)
        p[0] = 1.0 - p[1:].sum()
        data = np.random.default_rng(n).multinomial(n, p, replications)
        found = np.mean(distance(divergence, p, shares(data)) <= rm.radius_from_counts(data, divergence, 0.95))
        assert found >= 0.93 - 3 * math.sqrt(0.93 * 0.07 / replications), n
        assert found <= 0.985 + 3 * math.sqrt(0.985 * 0.015 / replications), n


def test_chi_square_asks_a_high_price_for_a_successor_that_was_missed() -> None:
    """Of 20 that are expected five times each, one is missed in 13 % of all data sets, at a price of 4.5^2/0.5."""
    k, n = 20, 100
    missed = 1 - (1 - math.exp(-5)) ** k
    assert missed == pytest.approx(0.126, abs=0.001)
    radius = rm.radius_from_counts([5] * k, rm.ChiSquare(), 0.95)
    assert (5 - 0.5) ** 2 / 0.5 / (n + k / 2) > 0.5 * radius


@pytest.mark.parametrize(
    "counts", [[5, 5, 12], [1, 2, 30], [0, 0, 3, 40], [60, 70, 80], [3, 500, 900], [4] * 8], ids=str
)
@each_smooth
def test_tabulated_draws_give_the_quantile_of_drawn_data(divergence: Any, counts: list[int]) -> None:
    """Both are samples of 4,000: 4 standard errors of their difference, and 1 % of probability for the table itself."""
    row, level = np.array(counts, float), 1 - (1 - KEPT_BACK) * 0.05
    one = Bootstrap(divergence, 0.95, seed=1)
    drawn = np.random.default_rng(3)
    truths = drawn.dirichlet(row + 0.5, 20_000)
    truths = np.clip(truths, 1e-300, None) / truths.sum(axis=1, keepdims=True) * (1 - 1e-15)
    data = drawn.multinomial(int(row.sum()), truths)
    covered = np.mean(distance(divergence, truths, shares(data)) <= one._tabulate(row))
    assert abs(covered - level) <= 4 * math.sqrt(level * (1 - level) * (1 / 4000 + 1 / 20_000)) + 0.01


@pytest.mark.parametrize("count", [65, 100, 3_000, 1_000_000])
def test_counts_between_those_of_the_table(count: int) -> None:
    """Far up the limit is reached, f''(1) chi2/(2n) at the level that is left, in the table or not."""
    level, n = 1 - (1 - KEPT_BACK) * 0.05, 5 * count + 10
    rows = np.array([count, count + 1, count + 2, count + 3, count + 4])
    found = rm.radius_from_counts(rows, rm.KL(), 0.95)
    slack = 4 * math.sqrt(level * (1 - level) / 4000) + 1.0 / count
    assert abs(chi2.cdf(2 * n * found, 4) - level) <= slack


@pytest.mark.parametrize("counts", [[4, 9], [0, 7], [900, 1200], [3, 6, 11], [0, 2, 5, 9, 20]], ids=str)
@each_smooth
def test_simulated_is_the_quantile_that_it_says(divergence: Any, counts: list[int]) -> None:
    """Truths from Jeffreys' posterior, data from each, against 40,000 draws of our own."""
    row, draws = np.array(counts), 40_000
    rng = np.random.default_rng(12345)
    mass = rng.gamma(row + 0.5, size=(draws, len(row)))
    truths = np.clip(mass / mass.sum(axis=1, keepdims=True), 1e-300, None)
    data = np.array([rng.multinomial(row.sum(), p / p.sum() * (1 - 1e-15)) for p in truths])
    found = distance(divergence, truths, shares(data))
    radius = rm.radius_from_counts(counts, divergence, 0.95)
    level = 1 - (1 - KEPT_BACK) * 0.05
    # Both sides are samples, ours of 40,000 and theirs of 4,000 where it is no enumeration.
    slack = 4 * math.sqrt(level * (1 - level) * (1 / draws + 1 / 4000))
    assert np.mean(found <= radius * (1 + 1e-9)) >= level - slack
    assert np.mean(found < radius * (1 - 1e-9)) <= level + slack


@pytest.mark.parametrize("k", [2, 3, 6])
@each_smooth
def test_simulated_tends_to_the_limit(divergence: Any, k: int) -> None:
    """With much data, f''(1) chi2/(2n), at the confidence that is left when whole numbers have had their share."""
    n = 100_000
    level = 1 - (1 - KEPT_BACK) * 0.05
    found = rm.radius_from_counts([n // k] * k, divergence, 0.95)
    total = k * (n // k)
    reached = chi2.cdf(2 * total * found / CURVATURES[divergence], k - 1)
    # 4 standard errors of a quantile of 4000.
    assert abs(reached - level) <= 4 * math.sqrt(level * (1 - level) / 4000)


@each_smooth
def test_enumerating_and_simulating_meet(divergence: Any) -> None:
    below, above = (rm.radius_from_counts([c, 3 * c], divergence, 0.95) * c for c in (FEW, FEW + 1))
    assert above == pytest.approx(below, rel=0.1)  # 4 standard errors of a quantile of 4000, as a share of it


@each
def test_order_and_what_is_not_listed(divergence: Any) -> None:
    rows = np.array([[5, 0, 9, np.nan], [9, 5, 0, np.nan], [np.nan, 0, 9, 5], [5, 0, 9, 0]])
    one, two, three, four = rm.radius_from_counts(rows, divergence, 0.9)
    assert one == two == three == rm.radius_from_counts([0, 5, 9], divergence, 0.9)
    assert four != one  # a successor that is listed and was never seen counts


@each
def test_nothing_to_doubt_and_nothing_known(divergence: Any) -> None:
    table = [[[7, np.nan], [0, 0], [np.nan, np.nan]], [[3, 4], [4, 3], [0, np.nan]]]
    found = rm.radius_from_counts(table, divergence, 0.9)
    assert found.shape == (2, 3)
    assert found[0, 0] == 0.0  # one successor
    assert found[0, 1] == found[0, 2] == math.inf
    assert found[1, 0] == found[1, 1] > 0.0
    assert found[1, 2] == 0.0
    assert isinstance(rm.radius_from_counts([3, 4], divergence, 0.9), float)


def test_counts_give_a_table_by_state_and_action() -> None:
    log = rm.Trajectory([0, 0, 0, 1, 1], [0, 0, 1, 0, 0], [0.0] * 5, [0, 1, 1, 1, 1], [0, 0, 0, 1, 0], n_actions=3)
    counts = rm.Counts.of(log)
    found = rm.radius_from_counts(counts, rm.KL(), 0.9)
    pair = rm.radius_from_counts([1, 1], rm.KL(), 0.9)
    assert found.tolist() == [[pair, 0.0, math.inf], [pair, math.inf, math.inf]]  # an ending is another successor
    assert rm.solve(counts.model(0.9), rm.Constrained(rm.KL(), found[:, :2])).converged


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    row=st.lists(st.integers(0, 40), min_size=2, max_size=5).filter(lambda row: sum(row) > 0),
    divergence=st.sampled_from(EVERY),
    levels=st.tuples(st.floats(0.05, 0.98), st.floats(0.05, 0.98)).map(sorted),
)
def test_more_confidence_is_a_larger_radius(row: list[int], divergence: Any, levels: list[float]) -> None:
    for method in METHODS if divergence.curvature_at_one < math.inf else METHODS[2:]:
        low, high = (rm.radius_from_counts(row, divergence, level, method=method) for level in levels)
        assert 0.0 <= low <= high


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    row=st.lists(st.integers(1, 40), min_size=2, max_size=5),
    divergence=st.sampled_from(EVERY),
    times=st.integers(2, 5),
)
def test_more_data_is_a_smaller_radius(row: list[int], divergence: Any, times: int) -> None:
    smooth = divergence.curvature_at_one < math.inf
    for method in ("finite-sample", "asymptotic") if smooth else ("finite-sample",):
        less, more = (
            rm.radius_from_counts(factor * np.array(row), divergence, 0.9, method=method) for factor in (1, times)
        )
        assert more < less or less == more == 1.0
        if method == "asymptotic":
            assert more == pytest.approx(less / times, rel=1e-12)


def test_the_seed_is_all_there_is_to_chance() -> None:
    rows = np.random.default_rng(0).integers(0, 30, (6, 4))
    one, again, other = (rm.radius_from_counts(rows, rm.KL(), 0.95, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    # Not on the order of pairs, nor on the others.
    assert np.array_equal(rm.radius_from_counts(rows[::-1], rm.KL(), 0.95, seed=3), one[::-1])
    assert rm.radius_from_counts(rows[2], rm.KL(), 0.95, seed=3) == one[2]


def test_a_users_own_divergence_has_the_built_in_ones_radii() -> None:
    for method in METHODS:
        mine, theirs = (rm.radius_from_counts([4, 1, 9], d, 0.9, method=method) for d in (own_kl(), rm.KL()))
        assert mine == pytest.approx(theirs, rel=1e-8)
    kinked = rm.Divergence("mine", lambda s: max(s, -0.5), lambda s: 1.0 if s > -0.5 else 0.0, slope_at_infinity=0.5)
    assert rm.radius_from_counts([4, 1, 9], kinked, 0.9) > 0.0  # by the box, as no limit exists


@pytest.mark.parametrize(
    ("counts", "divergence", "confidence", "more", "kind", "message"),
    [
        ([1, 2], "kl", 0.9, {}, TypeError, r"^divergence must be one, such as rm.KL\(\): got 'kl'$"),
        ([1, 2], rm.KL(), 1.0, {}, ValueError, "^confidence must lie between 0 and 1: got 1$"),
        ([1, 2], rm.KL(), 0.0, {}, ValueError, "^confidence must lie between 0 and 1: got 0$"),
        ([1, 2], rm.KL(), math.nan, {}, ValueError, "^confidence must be finite: got nan$"),
        ([1, 2], rm.KL(), "high", {}, TypeError, "^confidence must be a number: got 'high'$"),
        ([1, -2], rm.KL(), 0.9, {}, ValueError, r"whole numbers of at least 0: got -2 at counts\[1\]$"),
        ([[1, 2], [0.5, 1]], rm.KL(), 0.9, {}, ValueError, r"of at least 0: got 0.5 at counts\[1, 0\]$"),
        ([1, math.inf], rm.KL(), 0.9, {}, ValueError, r"of at least 0: got inf at counts\[1\]$"),
        (5, rm.KL(), 0.9, {}, ValueError, r"^counts must have a row of at least one successor: got \(\)$"),
        (["a"], rm.KL(), 0.9, {}, TypeError, r"^counts must be Counts or an array of whole numbers: got \['a'\]$"),
        ([1, 2], rm.KL(), 0.9, {"method": "simulate"}, ValueError, "did you mean 'simulated'"),
        ([1, 2], rm.TotalVariation(), 0.9, {"method": "asymptotic"}, ValueError, "whose f has a kink at 1"),
    ],
)  # fmt: skip
def test_what_cannot_be(counts: Any, divergence: Any, confidence: Any, more: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        rm.radius_from_counts(counts, divergence, confidence, **more)
