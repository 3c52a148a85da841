"""Nature's answer at one row: referees, closed forms, reductions, properties and messages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import robustmdp as rm
from oracles.random_rows import DIVERGENCES, MODES, Problem
from verify_rows import DUAL_ERROR, GAP, ROUNDING, judge, judge_by_cvxpy, judge_by_mpmath

FloatArray = npt.NDArray[np.float64]

ALMOST_SURE = [1 - 1e-11, 1e-11]
PENALIZED_LEVELS = (1e-8, 0.1, 1.0, 1e8)
RADII = (1e-10, 0.1, 1.0, 1e8)

each_divergence = pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
each_mode = pytest.mark.parametrize("mode", MODES)
PROPERTY = settings(max_examples=60, deadline=None, derandomize=True, database=None)


@pytest.mark.parametrize("index", range(5 * len(DIVERGENCES)))
def test_agrees_with_the_dual_in_50_digits(index: int) -> None:
    outcome = judge_by_mpmath(0, index)
    assert outcome.failures == (), outcome.problem


@pytest.mark.parametrize("index", range(33))
def test_agrees_with_an_interior_point_method(index: int) -> None:
    outcome = judge_by_cvxpy(0, index)
    assert outcome.failures == (), outcome.problem


# Each of these was once answered with a wrong value, a gap above 1e-9 or NaN.
ONCE_WRONG = [
    # log1p of a sum near -1: the mass of the minimum was lost against 1.
    (rm.Penalized(rm.KL(), 0.03), ALMOST_SURE, [1.0, 0.0]),
    (rm.Penalized(rm.KL(), 0.001), [1.0, 1e-18], [1.0, 0.0]),
    (rm.Constrained(rm.KL(), 0.5), ALMOST_SURE, [1.0, 0.0]),
    (rm.Constrained(rm.KL(), 0.5), [1.0, 1e-18], [1.0, 0.0]),
    # A weight below the last bit of the outcomes' mean gave values above their maximum.
    (rm.Penalized(rm.ChiSquare(), 1e-20), [0.1, 0.5, 0.4], [0.0, 1.0, 3.0]),
    # mass^(1-k) underflowed, and with it the bracket of the shift.
    (rm.Penalized(rm.CressieRead(-20.0), 1.0), [1 - 1e-14, 1e-14], [1.0, 0.0]),
    (rm.Constrained(rm.CressieRead(-20.0), 1.0), [1 - 1e-15, 1e-15], [1.0, 0.0]),
    (rm.Constrained(rm.CressieRead(-20.0), 1e4), [1.0, 1e-18], [1.0, 0.0]),
    # The distribution was worth less than the value says.
    (rm.Constrained(rm.CressieRead(-20.0), 1.0), [0.99, 0.01], [1.0, 0.0]),
    (rm.Constrained(rm.CressieRead(20.0), 0.3), [0.2, 0.2, 0.3, 0.3], [5.0, 2.0, 1.0, 9.0]),
    (rm.Constrained(rm.CressieRead(20.0), 1.0), [0.5, 0.5], [0.0, 1.0]),
    (rm.Constrained(rm.CressieRead(3.0), 1e7), [1 - 1e-4, 1e-4], [1.0, 0.0]),
    (rm.Constrained(rm.ChiSquare(), 0.005), [1 - 1e-6, 1e-20, 1e-6], [0.9, 0.1, 1.0]),
]


@pytest.mark.parametrize(("ambiguity", "p", "v"), ONCE_WRONG, ids=lambda x: repr(x) if hasattr(x, "level") else "")
def test_rows_that_were_once_wrong(ambiguity: Any, p: list[float], v: list[float]) -> None:
    problem = Problem(ambiguity, np.array(p), np.array(v))
    assert judge(problem).failures == ()


P = np.array([0.1, 0.0, 0.3, 0.2, 0.4])
V = np.array([3.0, -9.0, -1.0, 2.0, 0.5])
SUPPORT = P > 0
MEAN = float(P @ V)
VARIANCE = float(P @ (V - MEAN) ** 2)


@pytest.mark.parametrize("weight", [0.05, 1.0, 40.0])
def test_kl_is_a_log_sum_exp(weight: float) -> None:
    expected = -weight * math.log(P @ np.exp(-V * SUPPORT / weight))
    assert rm.worst_case(rm.Penalized(rm.KL(), weight), P, V).value == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("weight", [1.3, 10.0, 1e8])
def test_penalized_chi_square_is_a_variance_penalty(weight: float) -> None:
    assert 2 * weight >= V.max() - MEAN  # every successor keeps mass
    answer = rm.worst_case(rm.Penalized(rm.ChiSquare(), weight), P, V)
    assert answer.value == pytest.approx(MEAN - VARIANCE / (4 * weight), rel=1e-14)
    np.testing.assert_allclose(answer.distribution, P * (1 - (V - MEAN) / (2 * weight)), rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("radius", [1e-10, 1e-3, 0.15])
def test_constrained_chi_square_is_a_deviation_penalty(radius: float) -> None:
    assert radius * (V.max() - MEAN) ** 2 <= VARIANCE  # every successor keeps mass
    answer = rm.worst_case(rm.Constrained(rm.ChiSquare(), radius), P, V)
    assert answer.value == pytest.approx(MEAN - math.sqrt(radius * VARIANCE), rel=1e-14)


@pytest.mark.parametrize("weight", [0.25, 2.0, 3.5, 100.0])
def test_penalized_total_variation_caps_the_outcomes(weight: float) -> None:
    expected = P @ np.minimum(V, -1.0 + weight)
    assert rm.worst_case(rm.Penalized(rm.TotalVariation(), weight), P, V).value == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("radius", "distribution"),
    [
        (0.05, [0.05, 0, 0.35, 0.2, 0.4]),
        (0.1, [0, 0, 0.4, 0.2, 0.4]),
        (0.25, [0, 0, 0.55, 0.05, 0.4]),
        (0.7, [0, 0, 1, 0, 0]),
        (3.0, [0, 0, 1, 0, 0]),
    ],
)
def test_constrained_total_variation_moves_mass_from_top_to_bottom(radius: float, distribution: list[float]) -> None:
    answer = rm.worst_case(rm.Constrained(rm.TotalVariation(), radius), P, V)
    np.testing.assert_allclose(answer.distribution, distribution, rtol=0, atol=1e-15)
    assert answer.value == pytest.approx(np.dot(distribution, V), rel=1e-14)


@each_divergence
def test_no_room_for_nature_is_nominal(divergence: Any) -> None:
    nominal = rm.worst_case(rm.Nominal(), P, V)
    assert nominal.value == pytest.approx(MEAN, rel=1e-15)
    for ambiguity in (rm.Penalized(divergence, math.inf), rm.Constrained(divergence, 0.0)):
        answer = rm.worst_case(ambiguity, P, V)
        assert (answer.value, answer.gap, answer.multipliers.weight) == (nominal.value, 0.0, math.inf)
        np.testing.assert_array_equal(answer.distribution, nominal.distribution)


@each_divergence
def test_all_room_for_nature_is_the_minimum_over_the_support(divergence: Any) -> None:
    for ambiguity in (rm.Penalized(divergence, 0.0), rm.Constrained(divergence, math.inf)):
        answer = rm.worst_case(ambiguity, [0.25, 0.0, 0.25, 0.5], [1.0, -9.0, 1.0, 4.0])
        assert (answer.value, answer.gap, answer.multipliers.weight) == (1.0, 0.0, 0.0)
        assert answer.distribution.tolist() == [0.5, 0.0, 0.5, 0.0]


@each_divergence
@pytest.mark.parametrize("p", [[1.0], [0.0, 1.0, 0.0]])
def test_one_successor_keeps_its_value_to_the_bit(divergence: Any, p: list[float]) -> None:
    v = [0.1 * math.pi] * len(p)
    levels = [rm.Penalized(divergence, weight) for weight in (0.0, *PENALIZED_LEVELS, math.inf)]
    levels += [rm.Constrained(divergence, radius) for radius in (0.0, *RADII, math.inf)]
    for ambiguity in levels:
        answer = rm.worst_case(ambiguity, p, v)
        assert (answer.value, answer.gap, answer.distribution.tolist()) == (v[0], 0.0, p)


@each_divergence
@each_mode
def test_successors_of_equal_value_act_as_one(divergence: Any, mode: Any) -> None:
    """Also the test of long rows: sums of 3,000 terms lose at most 3,000 bits."""
    rng = np.random.default_rng(0)
    p, which = rng.dirichlet(np.ones(3000)), rng.integers(0, V.size, 3000)
    merged = np.bincount(which, p, minlength=V.size)
    for level in (1e-3, 0.3, 30.0):
        long = rm.worst_case(mode(divergence, level), p, V[which])
        short = rm.worst_case(mode(divergence, level), merged, V)
        assert long.value == pytest.approx(short.value, abs=3000 * 2.3e-16 * 9.0)
        assert long.distribution.sum() == pytest.approx(1.0, abs=ROUNDING)
        np.testing.assert_allclose(np.bincount(which, long.distribution), short.distribution, rtol=1e-6, atol=1e-9)


def test_arguments_are_left_alone() -> None:
    p, v = P.copy(), V.copy()
    rm.worst_case(rm.Penalized(rm.Burg(), 1.0), p, v)
    np.testing.assert_array_equal(p, P)
    np.testing.assert_array_equal(v, V)


@st.composite
def rows(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    """Up to six successors, some of probability zero, some tied."""
    counts = np.array(draw(st.lists(st.integers(0, 30), min_size=1, max_size=6).filter(any)), dtype=np.float64)
    outcomes = st.one_of(st.integers(-2, 2).map(float), st.floats(-1e3, 1e3).map(lambda x: round(x, 6)))
    return counts / counts.sum(), np.array([draw(outcomes) for _ in counts])


divergences = st.sampled_from(DIVERGENCES)
rises = st.lists(st.floats(0.0, 1e3).map(lambda x: round(x, 6)), min_size=6, max_size=6)
levels = st.floats(-3.0, 3.0).map(lambda x: 10.0**x)
ambiguities = st.builds(
    lambda mode, divergence, level: mode(divergence, level), st.sampled_from(MODES), divergences, levels
)
constrained = st.builds(rm.Constrained, divergences, levels)


def scale_of(p: FloatArray, v: FloatArray) -> float:
    return float(np.abs(v[p > 0]).max())


@PROPERTY
@given(ambiguities, rows())
def test_lies_between_the_minimum_and_the_mean(ambiguity: Any, row: tuple[FloatArray, FloatArray]) -> None:
    p, v = row
    value, slack = rm.worst_case(ambiguity, p, v).value, ROUNDING * scale_of(p, v)
    assert v[p > 0].min() - slack <= value <= p @ v + slack


@PROPERTY
@given(ambiguities, rows(), rises)
def test_monotone_and_1_lipschitz_in_the_outcomes(
    ambiguity: Any, row: tuple[FloatArray, FloatArray], more: list[float]
) -> None:
    p, v = row
    rise = np.array(more[: v.size])
    slack = ROUNDING * (scale_of(p, v) + rise.max())
    low, high = (rm.worst_case(ambiguity, p, outcomes).value for outcomes in (v, v + rise))
    assert low - slack <= high <= low + rise[p > 0].max() + slack


@PROPERTY
@given(ambiguities, rows(), st.floats(-1e6, 1e6))
def test_a_common_shift_passes_through(ambiguity: Any, row: tuple[FloatArray, FloatArray], shift: float) -> None:
    p, v = row
    slack = ROUNDING * (scale_of(p, v) + abs(shift))
    assert abs(rm.worst_case(ambiguity, p, v + shift).value - rm.worst_case(ambiguity, p, v).value - shift) <= slack


@PROPERTY
@given(ambiguities, rows(), st.floats(-100.0, 100.0).map(lambda x: 10.0**x))
def test_a_common_factor_passes_through(ambiguity: Any, row: tuple[FloatArray, FloatArray], factor: float) -> None:
    """A weight is measured in the unit of the outcomes, a radius has none."""
    p, v = row
    level = ambiguity.level * (factor if isinstance(ambiguity, rm.Penalized) else 1.0)
    scaled = rm.worst_case(type(ambiguity)(ambiguity.divergence, level), p, factor * v).value
    assert abs(scaled - factor * rm.worst_case(ambiguity, p, v).value) <= ROUNDING * factor * scale_of(p, v)


@PROPERTY
@given(ambiguities, rows(), st.floats(1.0, 1e3))
def test_monotone_in_the_level(ambiguity: Any, row: tuple[FloatArray, FloatArray], factor: float) -> None:
    p, v = row
    larger = type(ambiguity)(ambiguity.divergence, factor * ambiguity.level)
    rise = rm.worst_case(larger, p, v).value - rm.worst_case(ambiguity, p, v).value
    assert (rise if isinstance(ambiguity, rm.Penalized) else -rise) >= -ROUNDING * scale_of(p, v)


@PROPERTY
@given(constrained, rows(), levels)
def test_constrained_is_the_best_penalized_less_the_price(
    ambiguity: Any, row: tuple[FloatArray, FloatArray], other: float
) -> None:
    p, v = row
    divergence, radius = ambiguity.divergence, ambiguity.radius
    answer = rm.worst_case(ambiguity, p, v)

    def bound(weight: float) -> float:
        return rm.worst_case(rm.Penalized(divergence, weight), p, v).value - weight * radius

    assert bound(other) <= answer.value + ROUNDING * (scale_of(p, v) + other * radius)
    assert bound(answer.multipliers.weight) == pytest.approx(answer.value, abs=DUAL_ERROR * scale_of(p, v))


@PROPERTY
@given(ambiguities, rows())
def test_multipliers_give_back_the_value(ambiguity: Any, row: tuple[FloatArray, FloatArray]) -> None:
    """The paper's (2) and (4) at (eta, weight), with the f* that users see."""
    p, v = row[0][row[0] > 0], row[1][row[0] > 0]
    assume(np.ptp(v) > 1e-3)
    value, _, (eta, weight), _ = rm.worst_case(ambiguity, p, v)
    assume(1e-2 * np.ptp(v) < weight < 1e2 * np.ptp(v))
    s = (eta - v) / weight
    assume(s.max() < ambiguity.divergence.slope_at_infinity - 1e-6)  # nearer to the edge, s keeps too few digits
    price = weight * ambiguity.radius if isinstance(ambiguity, rm.Constrained) else 0.0
    dual = eta - weight * (p @ ambiguity.divergence.conjugate(s)) - price
    assert dual == pytest.approx(value, abs=1e-11 * (scale_of(p, v) + weight))


@PROPERTY
@given(ambiguities, rows())
def test_the_distribution_attains_the_value(ambiguity: Any, row: tuple[FloatArray, FloatArray]) -> None:
    p, v = row[0][row[0] > 0], row[1][row[0] > 0]
    answer = rm.worst_case(ambiguity, p, v)
    divergence = p @ ambiguity.divergence.f(answer.distribution / p)
    worth = answer.distribution @ v
    # f with f'(1) != 0 weighs the rounding of the distribution's sum.
    slack = GAP * scale_of(p, v)
    if isinstance(ambiguity, rm.Penalized):
        worth += ambiguity.weight * divergence
        slack += 1e-15 * ambiguity.weight
    else:
        assert divergence <= ambiguity.radius * (1 + 1e-9) + 1e-15
    assert worth == pytest.approx(answer.value, abs=slack)
    assert -ROUNDING * scale_of(p, v) <= answer.gap <= GAP * scale_of(p, v)
    assert answer.distribution.sum() == pytest.approx(1.0, abs=ROUNDING)


AMBIGUITY = rm.Penalized(rm.KL(), 1.0)


@pytest.mark.parametrize(
    ("p", "v", "sentence"),
    [
        ([0.5, 0.4], [0.0, 1.0], r"p must sum to 1: got 0\.9$"),
        ([0.0, 0.0], [0.0, 1.0], r"p must sum to 1: got 0$"),
        ([1.5, -0.5], [0.0, 1.0], r"p must be finite and at least 0: got -0\.5 at p\[1\]"),
        ([math.nan, 1.0], [0.0, 1.0], r"p must be finite and at least 0: got nan at p\[0\]"),
        ([0.0, math.inf], [0.0, 1.0], r"p must be finite and at least 0: got inf at p\[1\]"),
        ([0.5, 0.5], [0.0, math.nan], r"v must be finite: got nan at v\[1\]"),
        ([0.5, 0.5], [-math.inf, 0.0], r"v must be finite: got -inf at v\[0\]"),
        ([0.5, 0.5], [0.0, 1.0, 2.0], r"p and v must be 1-D and equally long: got shapes \(2,\) and \(3,\)"),
        ([[0.5, 0.5]], [[0.0, 1.0]], r"p and v must be 1-D and equally long: got shapes \(1, 2\) and \(1, 2\)"),
        ([], [], r"p and v must be 1-D and equally long: got shapes \(0,\) and \(0,\)"),
    ],
)
def test_bad_rows_are_refused(p: Any, v: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        rm.worst_case(AMBIGUITY, p, v)


@pytest.mark.parametrize(("mode", "name"), [(rm.Penalized, "weight"), (rm.Constrained, "radius")])
@pytest.mark.parametrize(
    ("level", "error", "sentence"),
    [
        (-1.0, ValueError, "must be at least 0: got -1"),
        (math.nan, ValueError, r"must be a number in \[0, inf\]: got nan"),
        ([[[1.0, 2.0]]], ValueError, r"must be a number or an \(S, A\) array: got shape \(1, 1, 2\)"),
        ([[1.0, -2.0]], ValueError, r"must be at least 0: got -2 at (weight|radius)\[0, 1\]"),
        ("much", TypeError, r"must be a number or an \(S, A\) array: got 'much'"),
    ],
)
def test_bad_levels_are_refused(mode: Any, name: str, level: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=f"{name} {sentence}"):
        mode(rm.KL(), level)


@pytest.mark.parametrize(("mode", "name"), [(rm.Penalized, "weight"), (rm.Constrained, "radius")])
def test_one_row_takes_one_level(mode: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be one number for one distribution: got an array"):
        rm.worst_case(mode(rm.KL(), np.ones((2, 2))), P, V)


@each_mode
@pytest.mark.parametrize("stranger", ["KL", rm.KL, None])
def test_only_divergences_measure(mode: Any, stranger: Any) -> None:
    with pytest.raises(TypeError, match=r"divergence must be one, such as rm\.KL\(\): got"):
        mode(stranger, 1.0)


@pytest.mark.parametrize("stranger", [rm.KL(), rm.Nominal, 0.5])
def test_only_the_three_records_are_ambiguities(stranger: Any) -> None:
    with pytest.raises(
        TypeError, match=r"ambiguity must be a set such as Nominal\(\), Penalized\(...\) or Constrained\(...\): got"
    ):
        rm.worst_case(stranger, P, V)


def test_a_ball_that_ends_among_outcomes_closer_than_rounding() -> None:
    # The tilt that fills the ball is 1e25; a tilt a little outside was once pulled back towards p, at a price of 6e-4.
    p = np.array([1, 1, 1, 1, 11, 1, 1, 1, 3]) / 21
    x = [0, 2.0396377e-12, 6.97324682e-13, 1.1188257e-12, 3.16968873e-26, 7.6380164e-13, 0, 3.8869586e-13, 1 / 3]
    answer = rm.worst_case(rm.Constrained(rm.KL(), 0.5), p, x)
    assert 0.0 <= answer.gap <= 1e-15
    assert answer.distribution[-1] <= 1e-12


@pytest.mark.parametrize("exponent", [-1000, -545, -400, 400, 545, 1000])
@each_mode
@each_divergence
def test_outcomes_whose_squares_are_not_numbers(divergence: Any, mode: Any, exponent: int) -> None:
    """Chi-square answered NaN at 1e160, Hellinger at 1e-164; a power of two changes no digit of the right answer."""
    p, v, factor = [0.2, 0.3, 0.5], np.array([1.0, 0.0, 0.5]), 2.0**exponent
    wanted = rm.worst_case(mode(divergence, 0.15), p, v)
    found = rm.worst_case(mode(divergence, 0.15 * (factor if mode is rm.Penalized else 1.0)), p, factor * v)
    assert found.value / factor == pytest.approx(wanted.value, abs=ROUNDING)
    assert found.distribution == pytest.approx(
        wanted.distribution, abs=1e-7
    )  # the square root of what the value misses
    assert abs(found.gap) / factor <= GAP
