"""The referee itself: its conjugates by their definition, its values by closed forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import robustmdp as rm
from oracles import dual, exact, exact_mdp, naive_mdp, own_divergences
from oracles.hostile_rows import NAMED, POWERS
from oracles.random_rows import MODERATE, MODES, Problem, moderate_problem, normal_form, reference

DIVERGENCES = (*NAMED, *map(rm.CressieRead, POWERS))
CONJUGATES = {
    **{repr(divergence): normal_form(divergence)[0] for divergence in DIVERGENCES},
    **{name: own.referee() for name, own in own_divergences.OWN.items()},
}
P = [0.2, 0.5, 0.05, 0.25]
V = [1.5, -0.25, 3.0, 0.5]


def mean(p: list[float], v: list[Any]) -> mpf:
    return mp.fsum(mpf(a) * x for a, x in zip(p, v, strict=True)) / mp.fsum(map(mpf, p))


def variance(p: list[float], v: list[float]) -> mpf:
    return mean(p, [(mpf(x) - mean(p, v)) ** 2 for x in v])


def holds(enclosure: exact.Enclosure, value: mpf) -> bool:
    near = mpf(10) ** -25
    return enclosure.lower - near <= value <= enclosure.upper + near and enclosure.upper - enclosure.lower <= near


@pytest.mark.parametrize("name", CONJUGATES)
def test_conjugates_fulfil_the_inequality_of_young_with_equality_at_the_derivative(name: str) -> None:
    with mp.workdps(80):
        f = CONJUGATES[name]
        anchor = f.edge if f.edge < mp.inf else mpf(0)
        near = mpf(10) ** -40
        assert abs(f.f(mpf(1))) < near
        for y in map(mpf, (-30, -5, -3, -2, -1.5, -1, -0.7, -0.3, -0.01, 0, 0.01, 0.3, 0.45, 0.9, 2, 5)):
            if y >= f.edge:
                continue
            u = anchor - y
            best = f.derivative(u)
            assert best >= 0
            if best > 0 or f.f(best) < mp.inf:
                assert abs(best * y - f.f(best) - f.value(u)) <= near * (1 + abs(f.value(u)))
            for t in map(mpf, (0, 1e-6, 0.1, 0.5, 0.9, 1, 1.1, 1.5, 2, 7, 50)):
                assert f.f(t) >= t * y - f.value(u) - near * (1 + abs(f.value(u)))


@pytest.mark.parametrize("weight", [4.0, 30.0, 1e8])
def test_chi_square_penalty_with_all_outcomes_active(weight: float) -> None:
    enclosure = exact.worst_case(rm.Penalized(rm.ChiSquare(), weight), P, V)
    assert holds(enclosure, mean(P, list(map(mpf, V))) - variance(P, V) / (4 * mpf(weight)))


@pytest.mark.parametrize("radius", [1e-12, 1e-6, 0.01])
def test_chi_square_ball_with_all_outcomes_active(radius: float) -> None:
    enclosure = exact.worst_case(rm.Constrained(rm.ChiSquare(), radius), P, V)
    assert holds(enclosure, mean(P, list(map(mpf, V))) - mp.sqrt(mpf(radius) * variance(P, V)))


@pytest.mark.parametrize(
    "p", [P, [1e-300, 0.5, 0.25, 0.25], [5e-324, 1.0, 1e-310, 1e-9]], ids=["", "rare", "subnormal"]
)
@pytest.mark.parametrize("weight", [1e-3, 0.1, 1.0, 1e5])
def test_kullback_leibler_penalty(p: list[float], weight: float) -> None:
    with mp.workdps(400):
        w = mpf(weight)
        expected = -w * mp.log(mean(p, [mp.exp(-mpf(x) / w) for x in V]))
        assert holds(exact.worst_case(rm.Penalized(rm.KL(), weight), p, V), expected)


@pytest.mark.parametrize("weight", [1e-3, 0.4, 2.0, 1e6])
def test_total_variation_penalty(weight: float) -> None:
    expected = dual.total_variation_penalized(P, V, weight)
    assert holds(exact.worst_case(rm.Penalized(rm.TotalVariation(), weight), P, V), expected)


@pytest.mark.parametrize("radius", [1e-9, 0.03, 0.3, 0.49999, 0.6, 2.0])
def test_total_variation_ball(radius: float) -> None:
    expected = dual.total_variation_constrained(P, V, radius)
    assert holds(exact.worst_case(rm.Constrained(rm.TotalVariation(), radius), P, V), expected)


@pytest.mark.parametrize("index", range(0, 4 * len(MODERATE), 5))
def test_two_referees_agree(index: int) -> None:
    problem = moderate_problem(5, index)
    enclosure = exact.worst_case(problem.ambiguity, problem.p.tolist(), problem.v.tolist())
    assert enclosure.upper - enclosure.lower <= mpf(10) ** -25 * problem.scale
    assert abs(enclosure.lower - reference(problem)) <= mpf(10) ** -15 * problem.scale


@pytest.mark.parametrize("index", range(0, 4 * len(MODERATE), 3))
def test_brackets_hold_the_value(index: int) -> None:
    problem = moderate_problem(6, index)
    row = problem.ambiguity, problem.p.tolist(), problem.v.tolist()
    lower, upper = exact.bracket(*row)
    truth = exact.worst_case(*row)
    assert lower <= truth.upper
    assert truth.lower <= upper
    assert upper - lower <= 1e-13 * problem.scale


@pytest.mark.parametrize("form", MODES)
@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
def test_the_distribution_is_feasible_and_worth_the_upper_bound(divergence: Any, form: Any) -> None:
    level = 0.3 if form is rm.Penalized else 0.05
    enclosure = exact.worst_case(form(divergence, level), P, V)
    with mp.workdps(80):
        q = enclosure.distribution
        conjugate, scale = normal_form(divergence)
        total = mp.fsum(map(mpf, P))
        distance = mpf(scale) * mp.fsum(mpf(a) / total * conjugate.f(b * total / a) for a, b in zip(P, q, strict=True))
        worth = mp.fsum(b * x for b, x in zip(q, V, strict=True))
        near = mpf(10) ** -30
        assert min(q) >= 0
        assert abs(mp.fsum(q) - 1) <= near
        if form is rm.Penalized:
            worth += mpf(level) * distance
            assert abs(enclosure.penalty - mpf(level) * distance) <= near
        else:
            assert distance <= mpf(level) + near
        assert abs(worth - enclosure.upper) <= near


@pytest.mark.parametrize("radius", [0.0, 1.0, 2.9, 3.1])
def test_beyond_the_vertex_the_worst_case_is_the_minimum(radius: float) -> None:
    problem = Problem(rm.Constrained(rm.ChiSquare(), radius), np.array([0.25, 0.75]), np.array([0.0, 1.0]))
    assert exact.vertex_radius(rm.ChiSquare(), [0.25, 0.75], [0.0, 1.0]) == 3
    enclosure = exact.worst_case(problem.ambiguity, [0.25, 0.75], [0.0, 1.0])
    assert holds(enclosure, max(mpf(0), mpf(0.75) - mp.sqrt(mpf(3) / 16 * mpf(radius))))


@pytest.mark.parametrize("weight", [1e-3, 0.3, 10.0, math.inf])
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99])
def test_values_of_two_states(discount: float, weight: float) -> None:
    world = exact_mdp.build(rm.problems.two_state(0.5, discount), rm.Penalized(rm.ChiSquare(), weight))
    values = exact_mdp.solve(world, [0.0, 0.0])
    assert float(values.lower[0]) == pytest.approx(rm.problems.two_state_value(0.5, discount, weight), rel=1e-14)
    assert values.upper[0] - values.lower[0] <= mpf(10) ** -20


@pytest.mark.parametrize("seed", range(2, 5))
@pytest.mark.parametrize("ambiguity", [rm.Nominal(), rm.Penalized(rm.KL(), 0.5), rm.Constrained(rm.Hellinger(), 0.1)])
def test_values_are_fixed_points_of_the_naive_operator_from_any_start(seed: int, ambiguity: Any) -> None:
    mdp, naive = naive_mdp.random_world(seed)
    world = exact_mdp.build(mdp, ambiguity)
    cold, warm = exact_mdp.solve(world, np.zeros(mdp.n_states)), exact_mdp.solve(world, np.full(mdp.n_states, 7.0))
    v = np.array([float(x) for x in cold.lower])
    scale = max(1.0, float(np.abs(v).max()))
    assert np.abs(naive_mdp.bellman(naive, ambiguity, v) - v).max() <= 1e-9 * scale
    assert max(abs(a - b) for a, b in zip(cold.lower, warm.upper, strict=True)) <= mpf(10) ** -20 * scale
    own = exact_mdp.evaluate(world, cold.policy, np.zeros(mdp.n_states))
    assert max(abs(a - b) for a, b in zip(cold.lower, own.upper, strict=True)) <= mpf(10) ** -20 * scale
