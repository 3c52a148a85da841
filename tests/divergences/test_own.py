"""A user's own divergence: its functions, compiled or not, and its rows against referees."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import pickle
import sys
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import LowLevelCallable

import robustmdp as rm
from oracles import exact, own_divergences
from oracles.hostile_rows import FAMILIES, HostileRow, build_mdp, hostile_row
from robustmdp.ambiguity import conjugates
from robustmdp.ambiguity.conjugates import ConstrainedRows, PenalizedRows
from robustmdp.divergences import functions

EPS = np.finfo(float).eps
NAMES = [name for name in own_divergences.OWN if name != "flat at 1"]
each_name = pytest.mark.parametrize("name", NAMES)
each_form = pytest.mark.parametrize("form", [rm.Penalized, rm.Constrained])


def exponential(s: float) -> float:
    return math.exp(s - 1)


def quadratic(s: float) -> float:
    return s + s * s / 4 if s > -2.0 else -1.0


def quadratic_slope(s: float) -> float:
    return 1 + s / 2 if s > -2.0 else 0.0


def reverse_logarithm(s: float) -> float:
    return -1 - math.log(-s)


def reverse_logarithm_slope(s: float) -> float:
    return -1 / s


def shannon(s: float) -> float:
    return -math.log(2 - math.exp(s))


def shannon_slope(s: float) -> float:
    return math.exp(s) / (2 - math.exp(s))


def capped(s: float) -> float:
    return max(s, -0.5)


def capped_slope(s: float) -> float:
    return 1.0 if s > -0.5 else 0.0


EQUIVALENTS = [
    (rm.Divergence("my KL", exponential, exponential), rm.KL()),
    (rm.Divergence("my chi-square", quadratic, quadratic_slope), rm.ChiSquare()),
    (rm.Divergence("my Burg", reverse_logarithm, reverse_logarithm_slope, slope_at_infinity=0.0), rm.Burg()),
    (rm.Divergence("my JS", shannon, shannon_slope, slope_at_infinity=math.log(2.0)), rm.JensenShannon()),
    (rm.Divergence("my TV", capped, capped_slope, slope_at_infinity=0.5), rm.TotalVariation()),
]
each_equivalent = pytest.mark.parametrize(("own", "built_in"), EQUIVALENTS, ids=lambda divergence: divergence.name)


@each_form
@each_equivalent
def test_an_own_divergence_solves_like_the_built_in_one(form: Any, own: Any, built_in: Any) -> None:
    mdp = rm.problems.chain(restart=0.5)
    level = 0.7 if form is rm.Penalized else 0.1
    mine, known = rm.solve(mdp, form(own, level)), rm.solve(mdp, form(built_in, level))
    assert mine.converged
    assert np.abs(mine.value - known.value).max() <= mine.error_bound + known.error_bound
    assert np.array_equal(mine.policy, known.policy)
    if built_in != rm.TotalVariation():  # which has many worst cases
        # Nature's answer is known to the root of the value's error.
        assert np.abs(mine.penalty - known.penalty).max() <= 1e-5
        assert np.nanmax(np.abs(mine.eta - known.eta)) <= 1e-5


@each_form
@each_equivalent
def test_rows_agree_with_the_built_in_ones(form: Any, own: Any, built_in: Any) -> None:
    """Ragged rows, endings, rewards on successors, a level per pair, and a second solve from where the first ended."""
    rng = np.random.default_rng(1)
    mdp = ragged_world(rng)
    levels = 10 ** rng.uniform(-2, 1, (mdp.n_states, mdp.n_actions))
    levels[0], levels[1], levels[2] = 0.0, math.inf, 1e-6
    mine, known = (rm.RobustBellman(mdp, form(divergence, levels)) for divergence in (own, built_in))
    for _ in range(3):
        v = rng.normal(0.0, 3.0, mdp.n_states)
        np.testing.assert_allclose(mine.apply(v), known.apply(v), rtol=0, atol=1e-10)
        one, other = mine.bracket(v), known.bracket(v)
        assert np.all(one.q_lower <= other.q_upper)
        assert np.all(one.q_upper >= other.q_lower)
        assert (one.q_upper - one.q_lower).max() <= 1e-10
        model, penalty, _ = mine.worst_case(v)
        explained = rm.RobustBellman(model.with_extra_rewards(penalty), rm.Nominal())
        np.testing.assert_allclose(explained.apply(v), known.apply(v), rtol=0, atol=1e-8)


def ragged_world(rng: np.random.Generator) -> rm.MDP:
    columns = []
    for s in range(40):
        for a in range(3):
            reached = rng.choice(40, size=int(rng.choice([1, 2, 3, 20])), replace=False)
            for following, p in zip(reached, rng.dirichlet(np.ones(reached.size)), strict=True):
                columns.append((s, a, following, p, rng.normal(), rng.random() < 0.1))
    s, a, following, p, r, ends = (np.array(column) for column in zip(*columns, strict=True))
    return rm.MDP.from_rows(s, a, following, p, r, 0.9, terminated=ends, n_states=40)


# the functions


def test_functions_of_numbers_and_of_arrays_give_the_same() -> None:
    number = rm.Divergence("mine", exponential, exponential)
    both = rm.Divergence("mine", lambda s: np.exp(s - 1), lambda s: np.exp(s - 1))
    array = rm.Divergence("mine", exponentials, exponentials)
    assert [one.core.takes_arrays for one in (number, both, array)] == [False, True, True]
    assert float(array.conjugate(1.0)) == 1.0
    for form, level in ((rm.Penalized, 0.3), (rm.Constrained, 0.2)):
        values = [
            rm.worst_case(form(one, level), [0.2, 0.5, 0.3], [1.0, 0.0, 4.0]).value for one in (number, both, array)
        ]
        assert np.ptp(values) <= 1e-14


def exponentials(s: np.ndarray) -> np.ndarray:
    out = np.empty(len(s))  # fails for a number
    out[:] = np.exp(s - 1)
    return out


def test_a_function_that_misuses_arrays_is_called_with_numbers() -> None:
    def sums(s: Any) -> Any:  # takes an array, but not element by element
        return np.exp(s - 1) if np.ndim(s) == 0 else np.full(np.shape(s), np.exp(s - 1).sum())

    def writes(s: Any) -> Any:
        s -= 1
        return np.exp(s)

    for function in (sums, writes, lambda s: [math.exp(s - 1)][0]):
        own = rm.Divergence("mine", function, function)
        assert not own.core.takes_arrays
        assert own.slope_at_one == pytest.approx(1.0, abs=1e-12)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match=r"f\* and f\*' must be functions of a number or of an array: got 3"):
        rm.Divergence("mine", 3, exponential)


def libm(name: str) -> Any:
    function = getattr(ctypes.CDLL(ctypes.util.find_library("m")), name)
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
    return LowLevelCallable(function)


@each_form
def test_low_level_callables(form: Any) -> None:
    own = rm.Divergence("KL in C", libm("expm1"), libm("exp"))
    assert own.slope_at_one == 0.0
    assert own == rm.Divergence("KL in C", libm("expm1"), libm("exp"))
    assert hash(own) == hash(rm.Divergence("KL in C", libm("expm1"), libm("exp")))
    mdp = rm.problems.garnet(60, 3, 5, 0.9, seed=0)
    level = 0.7 if form is rm.Penalized else 0.1
    mine, known = rm.solve(mdp, form(own, level)), rm.solve(mdp, form(rm.KL(), level))
    assert mine.converged
    assert np.abs(mine.value - known.value).max() <= mine.error_bound + known.error_bound
    found = float(own.conjugate(0.5)), float(own.conjugate_derivative(0.5))
    assert found == (math.expm1(0.5), math.exp(0.5))


def test_low_level_callables_that_cannot_be_used() -> None:
    power = ctypes.CDLL(ctypes.util.find_library("m")).pow
    power.restype, power.argtypes = ctypes.c_double, [ctypes.c_double, ctypes.c_double]
    with pytest.raises(TypeError, match=r"signature 'double \(double\)': got 'double \(double, double\)'"):
        rm.Divergence("mine", LowLevelCallable(power), libm("exp"))
    with pytest.raises(TypeError, match="divergence 'KL in C' must have functions of Python to be pickled"):
        pickle.dumps(rm.Divergence("KL in C", libm("expm1"), libm("exp")))


@each_form
@each_name
def test_compiled_functions_change_nothing(form: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    own = own_divergences.build(name)
    mdp = rm.problems.garnet(50, 3, 6, 0.9, seed=0)
    v = np.random.default_rng(0).normal(0.0, 2.0, 50)
    answers = []
    for worth in (math.inf, 0):
        monkeypatch.setattr(conjugates, "WORTH_COMPILING", worth)
        bellman = rm.RobustBellman(mdp, form(own, 0.4))
        bracket = bellman.bracket(v)
        answers.append((bellman.apply(v), bracket.q_lower, bracket.q_upper, bellman.worst_case(v).model.probabilities))
    if not own.core.takes_arrays:
        assert own.core.compiled is not None
    # A distribution is known to the root of its value's error.
    for plain, compiled, error in zip(*answers, (1e-10, 1e-10, 1e-10, 1e-6), strict=True):
        np.testing.assert_allclose(compiled, plain, rtol=0, atol=error)


def test_nothing_needs_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(conjugates, "WORTH_COMPILING", 0)
    functions.compile_function.cache_clear()
    own = rm.Divergence("mine", exponential, exponential)
    assert own.core.compiled is None
    assert rm.solve(rm.problems.chain(), rm.Penalized(own, 1.0)).converged
    functions.compile_function.cache_clear()


def test_what_does_not_compile_runs_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(conjugates, "WORTH_COMPILING", 0)
    table = {"shift": [1]}

    def looked_up(s: float) -> float:
        return math.exp(s - sorted(table.items())[0][1][0])

    own = rm.Divergence("mine", looked_up, looked_up)
    assert own.core.compiled is None
    assert rm.solve(rm.problems.chain(), rm.Penalized(own, 1.0)).converged


@each_form
def test_equal_bits_for_any_split(form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of states over threads, and of rows over blocks."""
    own = rm.Divergence("mine", lambda s: np.exp(s - 1), lambda s: np.exp(s - 1))
    mdp = rm.problems.garnet(1000, 5, 20, 0.9, seed=3)
    v = np.random.default_rng(0).normal(size=1000)
    expected = None
    for threads, block in ((1, 1 << 15), (2, 1 << 15), (3, 1 << 12), (8, 1 << 9)):
        monkeypatch.setattr("robustmdp.ambiguity.rowwise.BLOCK", block)
        bellman = rm.RobustBellman(mdp, form(own, 0.3), threads=threads)
        bracket = bellman.bracket(bellman.apply(v))
        found = (bellman.apply(v), bracket.q_lower, bracket.q_upper, bellman.worst_case(v).model.probabilities)
        expected = expected or found
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


# what is refused, and what only looks like it


def test_a_divergence_that_is_flat_at_one_is_refused() -> None:
    own = own_divergences.OWN["flat at 1"]
    with pytest.raises(ValueError, match=r"divergence 'flat' must not be flat at 1: f\*' jumps from 0\.5 to 1\.5"):
        rm.Divergence("flat", own.conjugate, own.conjugate_derivative)
    # wherever f'(1) is
    with pytest.raises(ValueError, match=r"divergence 'flat' must not be flat at 1: .* at f'\(1\) = 3, so"):
        rm.Divergence("flat", lambda s: own.conjugate(s - 3) + 3, lambda s: own.conjugate_derivative(s - 3))


@pytest.mark.parametrize(
    ("conjugate", "derivative"),
    [
        # flat to one side only: E t = 1 leaves t = 1 alone
        (
            lambda s: s + 0.5 * max(s, 0.0) + 0.25 * s * s if s > -2 else -1.0,
            lambda s: max(1 + 0.5 * s, 0.0) if s <= 0 else 1.5 + 0.5 * s,
        ),
        # (t-1)^4: f*' is continuous, however steep
        (
            lambda s: s + 0.75 * 4 ** (-1 / 3) * abs(s) ** (4 / 3) if s > -4 else -1.0,
            lambda s: max(1 + math.copysign(abs(s / 4) ** (1 / 3), s), 0.0),
        ),
        # 1e-9 (t-1)^2
        (lambda s: s + s * s / 4e-9 if s > -2e-9 else -1e-9, lambda s: max(1 + s / 2e-9, 0.0)),
    ],
    ids=["one side", "fourth power", "steep"],
)
def test_a_divergence_that_is_nearly_flat_is_not(conjugate: Any, derivative: Any) -> None:
    own = rm.Divergence("mine", conjugate, derivative)
    for form, level in ((rm.Penalized, math.inf), (rm.Constrained, 0.0)):
        assert rm.worst_case(form(own, level), [0.3, 0.7], [0.0, 1.0]).value == pytest.approx(0.7, abs=1e-15)
    answer = rm.worst_case(rm.Penalized(own, 1e4), [0.3, 0.7], [0.0, 1.0])
    assert answer.gap <= 1e-9
    assert answer.distribution.sum() == pytest.approx(1.0, abs=1e-15)


# referees


def bounds_of(ambiguity: Any, p: Any, v: Any) -> tuple[float, float]:
    """Certified bounds of one row with discount 1: of a state whose outcomes pay and end, at discount 0.5."""
    if ambiguity.has_weight:
        ambiguity = rm.Penalized(ambiguity.divergence, 2.0 * ambiguity.level)
    mdp = build_mdp(HostileRow("", ambiguity, np.array(p), np.array(v), 0.5, "transition", 1e-8))
    bracket = rm.RobustBellman(mdp, ambiguity).bracket(np.zeros(mdp.n_states))
    return float(bracket.q_lower[0]), float(bracket.q_upper[0])


ROW, OUTCOMES = [0.25, 0.35, 0.4], [1.0, 3.0, 2.0]


def referee_row(ambiguity: Any, size: float) -> tuple[rm.WorstCase, float]:
    """The answer for one row and the width of its bounds, both checked; size = max(1, |f'(1)|)."""
    lower, upper = bounds_of(ambiguity, ROW, OUTCOMES)
    truth = exact.worst_case(ambiguity, ROW, OUTCOMES)
    assert lower <= truth.upper
    assert upper >= truth.lower
    answer = rm.worst_case(ambiguity, ROW, OUTCOMES)
    assert abs(answer.value - truth.upper) <= 1e-10 * size**0.4
    return answer, upper - lower


@pytest.mark.parametrize("radius", [1e-3, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14])
@each_name
def test_small_balls(name: str, radius: float) -> None:
    """What is lost is a rounding of f'(1) per unit of sqrt(radius); it is in the bounds."""
    own = own_divergences.build(name)
    size = max(1.0, abs(own.slope_at_one))
    answer, width = referee_row(rm.Constrained(own, radius), size)
    # Where the formula of f* - s has no digit left, the slopes still bound it by the order of sqrt(radius).
    assert width <= min(100 * EPS * size / math.sqrt(radius), 6 * math.sqrt(radius)) + 1000 * EPS
    conjugate, scale = own_divergences.normal_form(own, mp)
    masses = zip(answer.distribution.tolist(), ROW, strict=True)
    spent = scale * mp.fsum(mpf(b) * conjugate.f(mpf(a) / mpf(b)) for a, b in masses)
    assert spent <= radius * (1 + 1e-6) + 1e3 * (EPS * size) ** 2


@pytest.mark.parametrize("weight", [1e-300, 1e-20, 1e-3, 1.0, 1e3, 1e6, 1e9, 1e14, 1e30, 1e300])
@each_name
def test_weights_of_every_size(name: str, weight: float) -> None:
    own = own_divergences.build(name)
    size = max(1.0, abs(own.slope_at_one))
    _, width = referee_row(rm.Penalized(own, weight), size)
    assert width <= min(100 * EPS * size * weight, 10.0 / weight) + 1000 * EPS * size


def test_a_multiple_of_t_less_one_changes_no_answer() -> None:
    """`t log t + 1e5 (t-1)` was certified to be 0.40 off."""
    plain, shifted = (own_divergences.build(name) for name in ("t log t", "t log t + 1e5 (t-1)"))
    rng = np.random.default_rng(0)
    for _ in range(40):
        p, v = rng.dirichlet(np.ones(4)), rng.normal(size=4)
        for form, level in ((rm.Constrained, 10 ** rng.uniform(-12, 0)), (rm.Penalized, 10 ** rng.uniform(-2, 4))):
            expected = rm.worst_case(form(rm.KL(), level), p, v).value
            for own in (plain, shifted):
                lower, upper = bounds_of(form(own, level), p, v)
                assert lower <= expected + 1e-13
                assert upper >= expected - 1e-13
                assert abs(rm.worst_case(form(own, level), p, v).value - expected) <= 1e-8


def test_errors_of_the_user_are_in_the_bounds() -> None:
    """f* with a constant that cancels is exact to 1e-11 only, which samples show; f(1) is off by 5e-10."""
    rough = rm.Divergence("mine", lambda s: (math.exp(s - 1) + 1e5) - 1e5, exponential)
    shifted = rm.Divergence("mine", lambda s: math.exp(s - 1) + 5e-10, exponential)
    p, v = [0.2, 0.5, 0.3], [1.0, 0.0, 4.0]
    for form, level in ((rm.Penalized, 300.0), (rm.Constrained, 1e-5)):
        truth = rm.worst_case(form(rm.KL(), level), p, v).value
        for own in (rough, shifted):
            lower, upper = bounds_of(form(own, level), p, v)
            assert lower <= truth <= upper


@pytest.mark.parametrize("index", range(120))
def test_hostile_rows(index: int) -> None:
    row = hostile_row(11, index * len(FAMILIES) + list(FAMILIES).index("own divergence"))
    solution = rm.solve(build_mdp(row), row.ambiguity, tol=row.tol)
    outcomes = row.v * (1.0 if row.pays == "transition" else row.discount)
    truth = exact.worst_case(row.ambiguity, row.p.tolist(), outcomes.tolist(), discount=row.discount)
    assert solution.lower[0] <= truth.upper, str(row)
    assert solution.upper[0] >= truth.lower, str(row)


@pytest.mark.parametrize("index", range(72))
def test_hostile_rows_of_every_family(index: int) -> None:
    """Rare outcomes, radii near the vertex, subnormal probabilities, tiny and huge weights, ties, offsets."""
    rng = np.random.default_rng([5, index])
    families = [draw for family, draw in FAMILIES.items() if family != "own divergence"]
    own = own_divergences.build(NAMES[index // len(families) % len(NAMES)])
    ambiguity, p, v = families[index % len(families)](rng, own)
    row = HostileRow("", ambiguity, p, v, 0.5, "transition", 1e-8)
    solution = rm.solve(build_mdp(row), ambiguity)
    truth = exact.worst_case(ambiguity, p.tolist(), v.tolist(), discount=0.5)
    assert solution.lower[0] <= truth.upper, str(row)
    assert solution.upper[0] >= truth.lower, str(row)


def kinked_cost(p: Any, q: Any) -> Any:
    return cp.sum(cp.abs(q - p)) + cp.sum(cp.multiply(1 / p, cp.square(q - p)))


def huber_cost(p: Any, q: Any) -> Any:
    return cp.sum(cp.multiply(p, cp.huber(cp.multiply(1 / p, q - p), 0.5)))


@pytest.mark.parametrize(("name", "cost"), [("|t-1| + (t-1)^2", kinked_cost), ("Huber", huber_cost)])
@pytest.mark.parametrize("seed", range(10))
def test_kinks_agree_with_a_convex_solver(name: str, cost: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    own = own_divergences.build(name)
    n = int(rng.integers(2, 6))
    p, v = rng.dirichlet(np.full(n, 5.0)), np.round(rng.normal(size=n), 1)
    q = cp.Variable(n, nonneg=True)
    weight, radius = 10 ** rng.uniform(-1, 0.7), 10 ** rng.uniform(-2, 0.2)
    for ambiguity, objective, limits in (
        (rm.Penalized(own, weight), q @ v + weight * cost(p, q), []),
        (rm.Constrained(own, radius), q @ v, [cost(p, q) <= radius]),
    ):
        expected = cp.Problem(cp.Minimize(objective), [cp.sum(q) == 1, *limits]).solve(solver="CLARABEL")
        answer = rm.worst_case(ambiguity, p, v)
        assert answer.value == pytest.approx(expected, abs=1e-6)
        assert -1e-12 <= answer.gap <= 1e-9
        assert answer.distribution.sum() == pytest.approx(1.0, abs=1e-14)
        paid = cost(p, answer.distribution).value
        assert (paid <= radius * (1 + 1e-9)) if ambiguity.has_radius else True
        price = weight * paid if ambiguity.has_weight else 0.0
        assert answer.distribution @ v + price == pytest.approx(answer.value, abs=1e-9)


# memory


@each_form
@each_name
def test_a_row_has_one_value_whatever_it_remembers(form: Any, name: str) -> None:
    own = own_divergences.build(name)
    kernel = (PenalizedRows if form is rm.Penalized else ConstrainedRows)(own.core)
    memories = (math.nan, math.inf, -math.inf, 0.0, 1e-300, 1e-15, -1.0, 1.0, 1e15, -1e15, 1e300)
    rng = np.random.default_rng(0)
    p, v = rng.dirichlet(np.ones(4)), np.append(rng.normal(size=4), 0.0)
    world = rm.MDP.from_arrays(np.tile(p, (4, 1, 1)), np.zeros((4, 1)), 0.9)
    model = rm.RobustBellman(world, rm.Nominal()).model
    for level in (1e-4, 0.05, 1.0, 20.0):
        expected = rm.worst_case(form(own, level), p, v[:4]).value
        for remembered in memories:
            memory = np.full(4 * kernel.memory_per_row, remembered)
            q = np.empty(4)
            kernel.values(model, np.array([level]), v, None, 0, 4, memory, q)
            error = 1e-10 * abs(own.slope_at_one or 1.0) ** 0.4
            np.testing.assert_allclose(q, expected, rtol=0, atol=error, err_msg=f"level {level}, memory {remembered}")
