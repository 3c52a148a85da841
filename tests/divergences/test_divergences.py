"""f, f*, f*' against textbook formulas in 50 digits, and a user's own divergence against the built-in ones."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from mpmath import mp, mpf

import robustmdp as rm
from oracles.random_rows import DIVERGENCES, NAMED

mp.dps = 50
LOG2 = mp.log(2)
EPS = np.finfo(float).eps


class Textbook(NamedTuple):
    """f, f*, f*' and the three numbers, as printed."""

    f: Callable[[mpf], mpf]
    conjugate: Callable[[mpf], mpf]
    derivative: Callable[[mpf], mpf]
    slope_at_one: float
    value_at_zero: float
    slope_at_infinity: float


def xlogx(t: mpf) -> mpf:
    return t * mp.log(t) if t else mpf(0)


def cressie_read(k: float) -> Textbook:
    k = mpf(k)

    def power(s: mpf, exponent: mpf) -> mpf:
        base = max(1 + (k - 1) * s, mpf(0))
        return base**exponent if base else mpf(0)

    def f(t: mpf) -> mpf:
        return mp.inf if t == 0 and k < 0 else (t**k - 1 - k * (t - 1)) / (k * (k - 1))

    return Textbook(
        f,
        lambda s: (power(s, k / (k - 1)) - 1) / k,
        lambda s: power(s, 1 / (k - 1)),
        0.0,
        1 / k if k > 0 else math.inf,
        1 / (1 - k) if k < 1 else math.inf,
    )


TEXTBOOK = {
    rm.ChiSquare(): Textbook(
        lambda t: (t - 1) ** 2,
        lambda s: max(s / 2 + 1, mpf(0)) ** 2 - 1,
        lambda s: max(s / 2 + 1, mpf(0)),
        0.0,
        1.0,
        math.inf,
    ),
    rm.KL(): Textbook(xlogx, lambda s: mp.exp(s - 1), lambda s: mp.exp(s - 1), 1.0, 0.0, math.inf),
    rm.TotalVariation(): Textbook(
        lambda t: abs(t - 1) / 2,
        lambda s: max(s, mpf(-1) / 2),
        lambda s: mpf(1) if s > mpf(-1) / 2 else mpf(0),
        0.0,
        0.5,
        0.5,
    ),
    rm.Burg(): Textbook(
        lambda t: -mp.log(t) if t else mp.inf, lambda s: -1 - mp.log(-s), lambda s: -1 / s, -1.0, math.inf, 0.0
    ),
    rm.Hellinger(): Textbook(
        lambda t: (mp.sqrt(t) - 1) ** 2, lambda s: s / (1 - s), lambda s: 1 / (1 - s) ** 2, 0.0, 1.0, 1.0
    ),
    rm.JensenShannon(): Textbook(
        lambda t: xlogx(t) - (t + 1) * mp.log((t + 1) / 2),
        lambda s: -mp.log(2 - mp.exp(s)),
        lambda s: mp.exp(s) / (2 - mp.exp(s)),
        0.0,
        float(LOG2),
        float(LOG2),
    ),
    **{one: cressie_read(one.k) for one in DIVERGENCES if isinstance(one, rm.CressieRead)},
}

each_divergence = pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
RATIOS = (0.0, 1e-6, 0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 10.0, 1e3)
NEAR_ONE = [1 + sign * 10.0**-digits for digits in (3, 4, 5, 6, 7, 8) for sign in (-1, 1)]


def arguments_of(divergence: Any) -> list[float]:
    """Arguments of f* on both sides of f'(1), well inside the domain: rounding 1 + (k-1) s costs digits at its edge."""
    at = divergence.slope_at_one
    reach = min(divergence.slope_at_infinity - at, 4.0)
    return [at - 10.0, at - 1.5, at - 0.3, at - 0.01, at, at + 0.1 * reach, at + 0.5 * reach]


def exactly(function: Callable[[mpf], mpf], arguments: list[float]) -> list[float]:
    return [float(function(mpf(x))) for x in arguments]


@each_divergence
def test_f_is_the_textbooks(divergence: Any) -> None:
    expected = exactly(TEXTBOOK[divergence].f, list(RATIOS))
    # t^k amplifies the rounding of log t by k log t, up to 140 here.
    np.testing.assert_allclose(divergence.f(RATIOS), expected, rtol=200 * EPS, atol=EPS)
    assert divergence.f(1.0) == 0.0
    assert divergence.f(-0.1) == math.inf
    assert divergence.f(np.ones((2, 3))).shape == (2, 3)


@each_divergence
def test_conjugate_is_the_textbooks(divergence: Any) -> None:
    book, arguments = TEXTBOOK[divergence], arguments_of(divergence)
    np.testing.assert_allclose(
        divergence.conjugate(arguments), exactly(book.conjugate, arguments), rtol=1e-14, atol=1e-15
    )
    slopes = exactly(book.derivative, arguments)
    np.testing.assert_allclose(divergence.conjugate_derivative(arguments), slopes, rtol=1e-14, atol=0)
    assert divergence.conjugate(divergence.slope_at_infinity * (1 + EPS) + EPS) == math.inf


@each_divergence
def test_the_three_numbers_are_the_textbooks(divergence: Any) -> None:
    book = TEXTBOOK[divergence]
    assert divergence.slope_at_one == book.slope_at_one
    assert divergence.value_at_zero == pytest.approx(float(book.value_at_zero), rel=2 * EPS)
    assert divergence.slope_at_infinity == pytest.approx(float(book.slope_at_infinity), rel=2 * EPS)
    assert divergence.f(0.0) == divergence.value_at_zero
    assert divergence.domain == (-math.inf, divergence.slope_at_infinity)


@each_divergence
def test_f_keeps_its_digits_near_one(divergence: Any) -> None:
    """Without its tangent, f is of order (t-1)^2: the plain formula would lose all digits at t - 1 = 1e-8."""
    book = TEXTBOOK[divergence]
    for t in NEAR_ONE:
        exact = book.f(mpf(t)) - mpf(book.slope_at_one) * (mpf(t) - 1)
        out = np.empty(1)
        if hasattr(divergence.core, "f"):
            divergence.core.f(np.array([t]), out)
            assert divergence.scale * out[0] == pytest.approx(float(exact), rel=8 * EPS)
        assert divergence.f(t) == pytest.approx(float(book.f(mpf(t))), rel=8 * EPS)


@each_divergence
def test_fenchel_young(divergence: Any) -> None:
    """s t <= f(t) + f*(s), with equality at t = f*'(s)."""
    s = np.array(arguments_of(divergence))
    conjugate, attained = divergence.conjugate(s), divergence.conjugate_derivative(s)
    for t in RATIOS:
        assert (s * t <= divergence.f(t) + conjugate + 1e-13 * (1 + np.abs(s) * t)).all()
    np.testing.assert_allclose(divergence.f(attained) + conjugate, s * attained, rtol=1e-13, atol=1e-13)


@each_divergence
def test_f_and_its_conjugate_are_convex(divergence: Any) -> None:
    rng = np.random.default_rng(0)
    t = 10 ** rng.uniform(-4, 2, (2, 200))
    edge = min(divergence.slope_at_infinity, 3.0)
    s = edge - 10 ** rng.uniform(-2, 1, (2, 200))
    for function, (a, b) in ((divergence.f, t), (divergence.conjugate, s)):
        middle, ends = function((a + b) / 2), (function(a) + function(b)) / 2
        assert (middle <= ends + 1e-13 * (np.abs(function(a)) + np.abs(function(b)) + 1)).all()


@each_divergence
def test_curvature_at_one_is_the_textbooks(divergence: Any) -> None:
    """f''(1) in 50 digits, where differences lose none that count; a kink has none that is finite."""
    if isinstance(divergence, rm.TotalVariation):
        assert divergence.curvature_at_one == math.inf
        return
    f, h = TEXTBOOK[divergence].f, mpf("1e-15")
    exact = (f(1 + h) - 2 * f(mpf(1)) + f(1 - h)) / h**2
    assert divergence.curvature_at_one == pytest.approx(float(exact), rel=1e-9)
    # All divergences are half of it times (t-1)^2 near 1; the next term is smaller by a factor of about k |t-1|.
    t = 1.0 + np.array([-1e-6, 1e-6])
    rest = divergence.f(t) - divergence.slope_at_one * (t - 1.0)
    np.testing.assert_allclose(rest, 0.5 * divergence.curvature_at_one * (t - 1.0) ** 2, rtol=1e-4)


@each_divergence
def test_the_ends_are_limits(divergence: Any) -> None:
    """They were NaN, with a warning."""
    assert divergence.f(np.inf) == np.inf
    assert divergence.conjugate(-np.inf) == -divergence.f(0.0)
    assert np.isnan(divergence.f(np.nan))


@each_divergence
def test_f_takes_arrays_of_any_shape(divergence: Any) -> None:
    flat = np.array([0.0, 0.1, 0.5, 1.0, 1.1, 2.0, 10.0, 1e3, -0.1, 3.0, 0.25, 7.0])
    flat.flags.writeable = False
    each = np.array([float(divergence.f(t)) for t in flat.tolist()])
    cube = flat.reshape(2, 3, 2)
    for given, expected in (
        (flat, each),
        (flat.tolist(), each),
        (cube, each.reshape(2, 3, 2)),
        (cube.transpose(2, 0, 1), each.reshape(2, 3, 2).transpose(2, 0, 1)),  # not contiguous
        (flat[::-3], each[::-3]),
        (np.empty((0, 3)), np.empty((0, 3))),
    ):
        found = divergence.f(given)
        assert found.dtype == np.float64
        assert np.array_equal(found, expected)
    assert np.shape(divergence.f(2)) == ()
    assert divergence.f(np.array([2, 3], dtype=np.int32)).tolist() == divergence.f([2.0, 3.0]).tolist()


@each_divergence
def test_pickles_compares_and_prints(divergence: Any) -> None:
    again = pickle.loads(pickle.dumps(divergence))
    assert again == divergence
    assert hash(again) == hash(divergence)
    assert eval(f"rm.{divergence!r}") == divergence  # a repr that can be pasted
    assert sum(divergence == other for other in DIVERGENCES) == 1


@pytest.mark.parametrize(
    ("k", "limit"),
    [(1e-9, rm.Burg()), (-1e-9, rm.Burg()), (1 + 1e-9, rm.KL()), (1 - 1e-9, rm.KL()), (0, rm.Burg()), (1, rm.KL())],
)
def test_cressie_read_tends_to_burg_and_kl(k: float, limit: Any) -> None:
    """Up to the affine term; |df/dk| <= |log t|^3 max(t, 1) here, so the distance is at most 1e-9 times that."""
    t = np.array([1e-3, 0.1, 0.5, 0.999, 1.001, 2.0, 10.0])
    difference = rm.CressieRead(k).f(t) - (limit.f(t) - limit.slope_at_one * (t - 1))
    assert (np.abs(difference) <= 1e-9 * np.abs(np.log(t)) ** 3 * np.maximum(t, 1) + 1e-14).all()
    s = np.array([-5.0, -1.0, -0.1, 0.1, 0.5])
    slopes = rm.CressieRead(k).conjugate_derivative(s)
    np.testing.assert_allclose(slopes, limit.conjugate_derivative(s + limit.slope_at_one), rtol=2e-8)


@pytest.mark.parametrize(("k", "factor", "named"), [(2, 0.5, rm.ChiSquare()), (0.5, 2.0, rm.Hellinger())])
def test_cressie_read_meets_its_named_members(k: float, factor: float, named: Any) -> None:
    one = rm.CressieRead(k)
    np.testing.assert_allclose(one.f(RATIOS), factor * named.f(RATIOS), rtol=8 * EPS, atol=EPS)
    p, v = [0.2, 0.5, 0.3], [1.0, 0.0, 4.0]
    for weight in (0.1, 1.0, 10.0):
        halves = (rm.worst_case(rm.Penalized(d, w), p, v).value for d, w in ((one, weight), (named, factor * weight)))
        assert len(set(halves)) == 1


@pytest.mark.parametrize("k", [math.nan, math.inf])
def test_cressie_read_needs_a_finite_power(k: float) -> None:
    with pytest.raises(ValueError, match="k must be finite: got"):
        rm.CressieRead(k)


def exponential(s: float) -> float:
    return math.exp(s - 1)


def hellinger(s: float) -> float:
    return s / (1 - s)


def hellinger_slope(s: float) -> float:
    return 1 / (1 - s) ** 2


def capped(s: float) -> float:
    return max(s, -0.5)


def capped_slope(s: float) -> float:
    return 1.0 if s > -0.5 else 0.0


OWN = [
    (rm.Divergence("my KL", exponential, exponential), rm.KL()),
    (rm.Divergence("my Hellinger", hellinger, hellinger_slope, slope_at_infinity=1), rm.Hellinger()),
    (rm.Divergence("my total variation", capped, capped_slope, slope_at_infinity=0.5), rm.TotalVariation()),
]
each_own = pytest.mark.parametrize(("own", "built_in"), OWN, ids=lambda divergence: divergence.name)


@each_own
def test_own_divergence_has_the_same_numbers(own: Any, built_in: Any) -> None:
    assert own.slope_at_one == pytest.approx(built_in.slope_at_one, abs=1e-12)
    assert own.value_at_zero == pytest.approx(built_in.value_at_zero, abs=1e-12)
    assert own.slope_at_infinity == built_in.slope_at_infinity
    # Central differences of f*' over 2e-5: off by 1e-10 of its third derivative, and by rounding/1e-5.
    assert own.curvature_at_one == pytest.approx(built_in.curvature_at_one, rel=1e-8)
    assert own.f(np.ones((2, 0, 3))).shape == (2, 0, 3)
    # By bisection on f*': t to rounding, where f*' is continuous.
    np.testing.assert_allclose(own.f(RATIOS), built_in.f(RATIOS), rtol=1e-11, atol=1e-14)
    s = arguments_of(built_in)
    np.testing.assert_allclose(own.conjugate(s), built_in.conjugate(s), rtol=1e-14, atol=EPS)
    np.testing.assert_allclose(own.conjugate_derivative(s), built_in.conjugate_derivative(s), rtol=1e-14)


@each_own
@pytest.mark.parametrize("mode", [rm.Penalized, rm.Constrained])
@pytest.mark.parametrize("level", [0.0, 1e-3, 0.02, 0.3, 0.45, 1.0, 7.0, 1e3, math.inf])
def test_own_divergence_agrees_with_the_built_in_one(own: Any, built_in: Any, mode: Any, level: float) -> None:
    for p, v in (
        ([0.1, 0.2, 0.0, 0.3, 0.4], [1.0, 3.0, -9.0, -2.0, 0.5]),
        ([0.25, 0.5, 0.25], [1.0, 2.0, 1.0]),
        ([0.9, 0.1], [1e6, 1e6 - 1]),
    ):
        mine, theirs = (rm.worst_case(mode(divergence, level), p, v) for divergence in (own, built_in))
        assert mine.value == pytest.approx(theirs.value, abs=1e-9 * max(v))
        assert -1e-12 * max(v) <= mine.gap <= 1e-9 * max(v)
        assert mine.distribution.sum() == pytest.approx(1.0, abs=1e-12)
        assert (mine.distribution >= 0).all()
        # Total variation has many worst cases: what counts is what one is worth.
        support = np.flatnonzero(p)
        divergence = np.take(p, support) @ built_in.f(np.take(mine.distribution, support) / np.take(p, support))
        price = level * divergence if mode is rm.Penalized and 0 < level < math.inf else 0.0
        assert mine.distribution @ v + price == pytest.approx(theirs.value, abs=1e-9 * max(v))
        assert mode is rm.Penalized or divergence <= level * (1 + 1e-9) + 4 * EPS
        if 0 < level < math.inf and not isinstance(built_in, rm.TotalVariation):
            np.testing.assert_allclose(mine.multipliers, theirs.multipliers, rtol=1e-6, atol=1e-6 * max(v))


def rises_then_falls(s: float) -> float:
    return math.exp(s) - 1 if s < 1 else math.e - 2.5 + 1.5 * s


def rises_then_falls_slope(s: float) -> float:
    return math.exp(s) if s < 1 else 1.5


@pytest.mark.parametrize(
    ("conjugate", "derivative", "sentence"),
    [
        (
            lambda s: math.exp(s - 1) + 0.1,
            exponential,
            r"f\(1\) = .* = 0 .*: got -0\.1 at s = 1; add that number to f\*",
        ),
        (
            lambda s: s + s * s / 4,
            lambda s: 1 + s / 2,
            r"f\*' >= 0 because f is infinite below 0: got f\*'\(-100\) = -49",
        ),
        (rises_then_falls, rises_then_falls_slope, r"non-decreasing f\*', or f\* is not convex"),
        (exponential, lambda s: max(0.0, (1 + s) / 2), "conjugate_derivative equal to the slope of conjugate"),
    ],
    ids=["f(1)", "negative", "decreasing", "not the slope"],
)
def test_what_is_no_divergence_is_refused(conjugate: Any, derivative: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"divergence 'mine' must have .*{sentence}"):
        rm.Divergence("mine", conjugate, derivative)


def test_own_divergence_pickles_compares_and_prints() -> None:
    own, _ = OWN[1]
    again = pickle.loads(pickle.dumps(own))
    assert again == own
    assert hash(again) == hash(own)
    assert again.slope_at_infinity == 1.0
    assert repr(own) == "Divergence('my Hellinger')"
    assert own != OWN[0][0]
    assert own not in NAMED
