"""Wasserstein balls: published answers, what may move where, criteria, mistakes. Random rows are in test_sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import robustmdp as rm
from oracles import exact_totals
from oracles.sets import worst_by_cvxpy

CHAIN = rm.problems.chain(discount=0.9)
LINE = np.arange(10.0)
STEPS = np.abs(np.subtract.outer(np.arange(10), np.arange(10))).astype(float)


def test_published_answer() -> None:
    """SDDP.jl's test of its Wasserstein risk measure."""
    ball = rm.Wasserstein([0.5, 0.3, 0.6, 0.4], 0.1)
    answer = rm.worst_case(ball, [0.1, 0.2, 0.3, 0.4], [1.1, 1.2, 0.6, 1.3])
    assert answer.distribution == pytest.approx([0.0, 1 / 6, 5 / 6, 0.0], abs=1e-15)


@given(
    st.integers(2, 8).flatmap(
        lambda n: st.tuples(
            st.lists(st.integers(0, 4), min_size=n, max_size=n).filter(any),
            st.lists(st.integers(-3, 3), min_size=n, max_size=n),
        )
    ),
    st.sampled_from([0.0, 0.25, 1.0, 3.0]),
)
def test_the_ball_of_the_discrete_metric_is_total_variation(row: tuple[list[int], list[int]], radius: float) -> None:
    weights, values = np.array(row[0], dtype=float), np.array(row[1], dtype=float)
    p = weights / weights.sum()
    apart = 1.0 - np.eye(len(p))
    found = rm.worst_case(rm.Wasserstein(apart, radius), p, values)
    assert found.value == pytest.approx(rm.worst_case(rm.L1(2 * radius, support="all"), p, values).value, abs=1e-14)
    inside = rm.worst_case(rm.Wasserstein(apart, radius, support="model"), p, values)
    assert inside.value == pytest.approx(rm.worst_case(rm.L1(2 * radius), p, values).value, abs=1e-14)
    assert not inside.distribution[p == 0.0].any()


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 3.0), st.floats(0.0, 2.0))
def test_a_larger_radius_gives_no_more(seed: int, radius: float, more: float) -> None:
    rng = np.random.default_rng(seed)
    p, v, points = rng.dirichlet(np.ones(6)), rng.normal(size=6), rng.normal(size=(6, 2))
    near, far = (rm.worst_case(rm.Wasserstein(points, r), p, v).value for r in (radius, radius + more))
    assert far <= near + 1e-14


@pytest.mark.parametrize(
    ("ball", "value"),
    [
        (rm.Wasserstein(STEPS[:3, :3], 0.0), 2.8),
        (rm.Wasserstein(STEPS[:3, :3], np.inf), 1.0),
        (rm.Wasserstein(sp.csr_array(([1.0], ([2], [1])), (3, 3)), np.inf), 1.8),  # from 4 to 2, nothing else
        (rm.Wasserstein(sp.csr_array(([0.0], ([2], [1])), (3, 3)), 0.0), 1.8),  # a move that costs nothing
        (rm.Wasserstein(np.where(np.eye(3) > 0, 0.0, np.inf), np.inf), 2.8),
        (rm.Wasserstein([7.0, 7.0, 7.0], 0.0), 1.0),
        (rm.Wasserstein([0.0, 1.0, 3.0], 1e300), 1.0),
    ],
    ids=repr,
)
def test_edges(ball: rm.Wasserstein, value: float) -> None:
    answer = rm.worst_case(ball, [0.2, 0.3, 0.5], [1.0, 2.0, 4.0])
    assert answer.value == pytest.approx(value, abs=1e-15)
    assert float(answer.distribution @ [1.0, 2.0, 4.0]) == pytest.approx(value, abs=1e-15)


def test_long_rows_with_extreme_distances() -> None:
    rng = np.random.default_rng(3)
    for scale in (1e-90, 1e-6, 1.0, 1e6, 1e90):
        costs = scale * 10.0 ** rng.uniform(-6, 6, (200, 200))
        np.fill_diagonal(costs, 0.0)
        p, v = rng.dirichlet(np.full(200, 0.3)), rng.normal(size=200)
        for radius in (1e-7, 1e-3, 1.0, 1e3):
            answer = rm.worst_case(rm.Wasserstein(costs, scale * radius), p, v)
            assert 0.0 <= answer.gap <= 1e-12
            assert answer.distribution.sum() == pytest.approx(1.0, abs=1e-12)


# Forms of distances.


def test_all_forms_of_a_distance_are_the_same_set() -> None:
    forms = [LINE, LINE[:, None], STEPS, sp.coo_array(STEPS), np.column_stack([LINE, np.ones(10)])]
    values = [rm.solve(CHAIN, rm.Wasserstein(form, 0.3)).value for form in forms]
    for value in values[1:]:
        assert np.abs(value - values[0]).max() <= 1e-8


def test_square_arrays_are_distances_where_the_diagonal_is_zero() -> None:
    assert not rm.Wasserstein(STEPS, 1.0).coordinates
    assert rm.Wasserstein(np.eye(3), 1.0).coordinates
    assert rm.Wasserstein(STEPS, 1.0, coordinates=True).coordinates


@pytest.mark.parametrize(
    ("distance", "settings", "message"),
    [
        ("near", {}, "distance must be an array of numbers or a sparse matrix: got str"),
        (np.zeros((2, 2, 2)), {}, r"distance must have shape \(S, S\), \(S, d\) or \(S,\): got \(2, 2, 2\)"),
        (
            [[0.0, -1.0], [1.0, 0.0]],
            {},
            r"distance must be 0, inf or in \[1e-100, 1e\+100\]: got -1 at distance\[0, 1\]",
        ),
        ([[0.0, np.nan], [1.0, 0.0]], {}, r"got nan at distance\[0, 1\]"),
        (np.eye(2), {"coordinates": False}, r"distance must be 0 on the diagonal: got 1 at distance\[0, 0\]"),
        ([[1.0, 2.0, 3.0]], {"coordinates": False}, r"distance must have shape \(S, S\): got \(1, 3\)"),
        ([np.inf, 1.0], {}, r"coordinates must be at most 1e\+100 in size: got inf at distance\[0, 0\]"),
        (sp.csr_array([[0.0, -2.0], [1.0, 0.0]]), {}, r"got -2 at distance\[0, 1\]"),
        (sp.csr_array([[0.0, 2.0]]), {}, r"distance must have shape \(S, S\): got \(1, 2\)"),
        (sp.csr_array([[0.0]]), {"coordinates": True}, "coordinates must be an array: got a sparse matrix"),
        ([0.0, 1.0], {"support": "any"}, "support must be one of model, all: got 'any'"),
    ],
    ids=str,
)
def test_mistakes(distance: Any, settings: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        rm.Wasserstein(distance, 1.0, **settings)


def test_distances_must_fit_the_model() -> None:
    with pytest.raises(ValueError, match=r"one row of coordinates per state \(10\): got shape \(3, 1\)"):
        rm.solve(CHAIN, rm.Wasserstein([0.0, 1.0, 2.0], 1.0))
    with pytest.raises(ValueError, match=r"one row of distances per successor \(3\): got shape \(10, 10\)"):
        rm.worst_case(rm.Wasserstein(STEPS, 1.0), [0.2, 0.3, 0.5], [1.0, 2.0, 4.0])
    with pytest.raises(ValueError, match="at most 16,777,216 moves, which are all kept: got 24,995,000"):
        rm.solve(rm.problems.garnet(5000, 1, 2, 0.9, seed=0), rm.Wasserstein(np.arange(5000.0), 1.0))


def test_many_states_with_short_moves_or_few_successors() -> None:
    world = rm.problems.garnet(6000, 2, 3, 0.9, seed=0)
    points = np.random.default_rng(0).random(6000)
    order = np.argsort(points)
    neighbours = sp.coo_array((np.diff(points[order]), (order[1:], order[:-1])), (6000, 6000))
    for ball in (rm.Wasserstein(neighbours, 1e-4), rm.Wasserstein(points, 0.1, support="model")):
        solution = rm.solve(world, ball, tol=1e-6)
        assert solution.converged
        assert (solution.value < rm.solve(world, rm.Nominal(), tol=1e-6).value).any()


# What nature may do.


def test_worst_cases_lie_in_the_ball_and_end_where_the_model_ends() -> None:
    """The distance from the model, by cvxpy; the end neither gives nor takes."""
    rng = np.random.default_rng(1)
    n = 6
    rows = rng.dirichlet(np.ones(n + 1), (n, 2)) * (rng.random((n, 2, n + 1)) < 0.6)
    rows[..., 0] += 1.0 - rows.sum(axis=2)
    state, action, following = np.nonzero(rows)
    rewards = rng.normal(size=len(state))
    world = rm.MDP.from_rows(state, action, following, rows[state, action, following], rewards, 0.9, n_states=n)
    points, radius = rng.normal(size=(n, 2)), rng.uniform(0.0, 0.5, (n, 2))
    solution = rm.solve(world, rm.Wasserstein(points, radius, coordinates=True))
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    for s, a in itertools.product(range(n), range(2)):
        before, after = (_full_row(model, s, a) for model in (world, solution.worst_case))
        assert after[n] == pytest.approx(before[n], abs=1e-15)
        if before[n] == 1.0:
            continue
        p, q = (x[:n] / x[:n].sum() for x in (before, after))
        assert _distance(apart, p, q) * (1.0 - before[n]) <= radius[s, a] + 1e-7


def _full_row(model: rm.MDP, state: int, action: int) -> np.ndarray:
    pair = model.pair(state, action)
    row = slice(int(model.indptr[pair]), int(model.indptr[pair + 1]))
    full = np.zeros(model.n_states + 1)
    full[model.indices[row]] = model.probabilities[row]
    return full


def _distance(apart: np.ndarray, p: np.ndarray, q: np.ndarray) -> float:
    import cvxpy as cp

    from oracles.primal import minimise

    coupling = cp.Variable(apart.shape, nonneg=True)
    limits = [cp.sum(coupling, axis=1) == p, cp.sum(coupling, axis=0) == q]
    return float(minimise(cp.sum(cp.multiply(apart, coupling)), limits))


def test_nature_leads_to_states_that_the_model_does_not_lead_to() -> None:
    ball = rm.Wasserstein(LINE, 0.3)
    assert ball.invents
    assert "where the model does not lead" in str(ball)
    assert "new successors" in ball.label
    inside = rm.Wasserstein(LINE, 0.3, support="model")
    assert not inside.invents
    assert "may" not in str(inside)
    new, kept = (rm.solve(CHAIN, each) for each in (ball, inside))
    assert (new.value <= kept.value + 1e-8).all()
    assert set(kept.worst_case.indices) <= set(CHAIN.indices)


def test_records() -> None:
    ball = rm.Wasserstein(sp.coo_array(STEPS), 0.5, support=[1])
    assert repr(ball) == "Wasserstein(<10 x 10 distances>, radius=0.5, support=(1,))"
    assert repr(rm.Wasserstein(LINE, 0.5)) == "Wasserstein(<10 x 1 coordinates>, radius=0.5)"
    assert ball != rm.Wasserstein(STEPS, 0.5, support=[1])
    assert ball != rm.Wasserstein(sp.coo_array(2.0 * STEPS), 0.5, support=[1])
    assert rm.Wasserstein(STEPS, 0.5).contains(rm.Wasserstein(STEPS, 0.4))
    assert rm.Wasserstein(STEPS, 0.5).largest_distance == 9.0
    assert rm.Wasserstein(LINE, 0.5).largest_distance == 9.0


# Criteria.


def _vertices(p: Sequence[Fraction], costs: Sequence[Sequence[int | None]], radius: Fraction) -> set[Any]:
    """Transports in which each source has one receiver, and mixtures of two that differ in one and meet the budget."""
    options = [[j for j, c in enumerate(row) if c is not None] for row in costs]
    plans = {f: sum(a * (costs[i][f[i]] or 0) for i, a in enumerate(p)) for f in itertools.product(*options)}
    found = {_arrived(p, f) for f, cost in plans.items() if cost <= radius}
    for (f, low), (g, high) in itertools.permutations(plans.items(), 2):
        if low < radius < high and sum(a != b for a, b in zip(f, g, strict=True)) == 1:
            share = (radius - low) / (high - low)
            mixed = zip(_arrived(p, f), _arrived(p, g), strict=True)
            found.add(tuple((1 - share) * a + share * b for a, b in mixed))
    return found


def _arrived(p: Sequence[Fraction], receivers: Sequence[int]) -> tuple[Fraction, ...]:
    return tuple(sum((a for a, f in zip(p, receivers, strict=True) if f == j), Fraction(0)) for j in range(len(p)))


def _worlds(count: int, seed: int) -> Iterator[tuple[exact_totals.World, rm.MDP, rm.Wasserstein, int]]:
    """Two states and an end, rewards of one sign or both, some moves forbidden."""
    n = 2
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        sign, radius = (1, -1, 0)[index % 3], Fraction(int(rng.integers(1, 8)), 10)
        costs = [
            [0 if i == j else int(rng.integers(1, 3)) if rng.random() < 0.7 else None for j in range(n)]
            for i in range(n)
        ]
        world, columns = [], []
        for s in range(n):
            pairs = []
            for a in range(int(rng.integers(1, 3))):
                parts = (
                    rng.multinomial(10, [0.5, 0.3, 0.2])
                    if rng.random() < 0.7
                    else np.array([10, 0, 0])[rng.permutation(3)]
                )
                p = [Fraction(int(x), 10) for x in parts]
                reward = int(rng.choice([0, 0, 1, 2])) * (sign or int(rng.choice([-1, 1])))
                stays = [[*row, None] for row in costs] + [[None, None, 0]]
                pairs.append(exact_totals.Pair(a, (0, 1, 2), tuple(_vertices(p, stays, radius)), Fraction(reward)))
                columns += [(s, a, t, float(x), float(reward)) for t, x in enumerate(p) if x > 0]
            world.append(pairs)
        mdp = rm.MDP.from_rows(*zip(*columns, strict=True), 0.5, n_states=n)
        distance = [[np.inf if c is None else float(c) for c in row] for row in costs]
        yield world, mdp, rm.Wasserstein(distance, float(radius)), sign


def test_sums_without_a_discount() -> None:
    """Every policy against every vertex in rationals: bounds hold, or one sentence refuses."""
    solved = 0
    for world, mdp, ball, sign in _worlds(40, seed=4):
        truth = exact_totals.play(world, max, min)
        if sign == 0 and not truth.proper:
            continue
        try:
            solution = rm.solve(mdp, ball, criterion=rm.TotalReward())
        except ValueError as refusal:
            assert str(refusal).count(". ") == 0  # noqa: PT017
            continue
        solved += solution.converged
        for low, high, value in zip(solution.lower, solution.upper, truth.value, strict=True):
            assert low <= value <= high
        own = truth.policies[tuple(solution.policy.tolist())]
        assert all(low <= value for low, value in zip(solution.lower, own, strict=True))
    assert solved >= 20


def test_a_finite_horizon_is_a_row_problem_per_step() -> None:
    world = rm.problems.garnet(6, 2, 3, 0.9, seed=5)
    ball = rm.Wasserstein(np.random.default_rng(5).normal(size=6), 0.2)
    found = rm.solve(world, ball, criterion=rm.FiniteHorizon(3))
    v = np.zeros(6)
    for t in (2, 1, 0):
        q = [[_pair_value(world, ball, s, a, v) for a in range(2)] for s in range(6)]
        v = np.max(q, axis=1)
        assert found.value[t] == pytest.approx(v, abs=1e-6)


def _pair_value(world: rm.MDP, ball: Any, state: int, action: int, v: np.ndarray) -> float:
    row = _full_row(world, state, action)[:-1]
    return float(world.mean_rewards()[world.pair(state, action)]) + worst_by_cvxpy(ball, row, world.discount * v)


@pytest.mark.parametrize("support", ["all", "model", [3, 4]], ids=str)
def test_threads_do_not_change_a_bit(support: Any) -> None:
    world = rm.problems.garnet(300, 3, 50, 0.9, seed=2)  # enough transitions for two threads
    ball = rm.Wasserstein(np.random.default_rng(2).normal(size=(300, 2)), 0.1, support=support)
    one, three = (rm.RobustBellman(world, ball, threads=count) for count in (1, 3))
    v = np.random.default_rng(0).normal(size=world.n_states)
    assert np.array_equal(one.apply(v), three.apply(v))
    assert all(np.array_equal(a, b) for a, b in zip(one.bracket(v), three.bracket(v), strict=True))
    assert np.array_equal(one.worst_case(v).model.probabilities, three.worst_case(v).model.probabilities)
