"""Random policies against shared budgets: bounds, worst cases, solvers, horizons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import robustmdp as rm
import verify_rectangular
from oracles import rectangular

GARNET = rm.problems.garnet(40, 4, 5, 0.9, seed=1)
SHARED: list[Any] = [
    rm.L1(0.5),
    rm.L1(0.5, weights=np.linspace(0.5, 2.0, 40)),
    rm.L2(0.3),
    rm.Constrained(rm.ChiSquare(), 0.3),
    rm.Constrained(rm.KL(), 0.3),
    rm.Constrained(rm.TotalVariation(), 0.3),
    rm.Penalized(rm.ChiSquare(), 0.5),
    rm.Penalized(rm.Burg(), 0.2),
    rm.Penalized(rm.TotalVariation(), 0.4),
]
each_set = pytest.mark.parametrize("rows", SHARED, ids=repr)


@pytest.mark.parametrize("kind", rectangular.KINDS)
def test_random_worlds_keep_their_bounds(kind: str) -> None:
    verdicts = [verify_rectangular.judge_world(kind, 1, index) for index in range(4)]
    verdicts += [verify_rectangular.judge_horizon(kind, 1, index) for index in range(1, 5)]
    assert not [failure for verdict in verdicts for failure in verdict.failures]


@each_set
def test_solvers_agree(rows: Any) -> None:
    ambiguity = rm.SRectangular(rows)
    found, swept = rm.solve(GARNET, ambiguity), rm.solve(GARNET, ambiguity, solver=rm.ValueIteration())
    assert found.converged
    assert swept.converged
    assert (found.lower <= swept.upper).all()
    assert (swept.lower <= found.upper).all()
    np.testing.assert_allclose(found.policy.sum(axis=1), 1.0, atol=1e-14)


@each_set
def test_no_fixed_policy_is_better_in_the_worst_case(rows: Any) -> None:
    """The world that nature makes has the value, for the policy and for the best answer to that world."""
    ambiguity = rm.SRectangular(rows)
    found = rm.solve(GARNET, ambiguity, tol=1e-10)
    world = found.worst_case.with_extra_rewards(found.penalty)
    again, best = rm.evaluate(world, found.policy, rm.Nominal()), rm.solve(world, rm.Nominal())
    np.testing.assert_allclose(again.value, found.value, atol=1e-6)
    np.testing.assert_allclose(best.value, found.value, atol=1e-6)
    if not rows.has_weight:
        assert not found.penalty.any()


@each_set
def test_given_policies(rows: Any) -> None:
    """The worst case of a policy attains its value, which is at most the best; a certain one is that of rows."""
    ambiguity, rng = rm.SRectangular(rows), np.random.default_rng(4)
    best = rm.solve(GARNET, ambiguity)
    policy = rng.dirichlet(np.ones(4), size=40)
    given = rm.evaluate(GARNET, policy, ambiguity)
    assert (given.lower <= best.upper).all()
    world = given.worst_case.with_extra_rewards(given.penalty)
    np.testing.assert_allclose(rm.evaluate(world, policy, rm.Nominal()).value, given.value, atol=1e-6)
    certain = rng.integers(4, size=40)
    together, apart = rm.evaluate(GARNET, certain, ambiguity), rm.evaluate(GARNET, certain, rows)
    np.testing.assert_allclose(together.value, apart.value, rtol=1e-7)
    as_table = rm.evaluate(GARNET, np.eye(4)[certain], ambiguity)
    np.testing.assert_allclose(as_table.value, apart.value, rtol=1e-7)


@each_set
def test_help_goes_to_one_action(rows: Any) -> None:
    """The best of policies and of worlds is that of sets of rows."""
    shared = rm.solve(GARNET, rm.Optimistic(rm.SRectangular(rows)))
    apart = rm.solve(GARNET, rm.Optimistic(rows))
    np.testing.assert_allclose(shared.value, apart.value, rtol=1e-7)


def test_a_horizon() -> None:
    ambiguity = rm.SRectangular(rm.L1(0.5))
    criterion = rm.FiniteHorizon(4, np.linspace(0.0, 1.0, 40))
    found = rm.solve(GARNET, ambiguity, criterion=criterion)
    assert found.policy.shape == (4, 40, 4)
    value = np.linspace(0.0, 1.0, 40)
    for step in reversed(range(4)):
        value = rm.RobustBellman(GARNET, ambiguity).apply(value)
        np.testing.assert_allclose(found.value[step], value, rtol=1e-12)
    given = rm.evaluate(GARNET, found.policy, ambiguity, criterion=criterion)
    np.testing.assert_allclose(given.value, found.value, rtol=1e-8)


def test_q_is_what_actions_earn_under_the_answer() -> None:
    ambiguity = rm.SRectangular(rm.L1(0.5))
    bellman, found = rm.RobustBellman(GARNET, ambiguity), rm.solve(GARNET, ambiguity, tol=1e-10)
    table = bellman.apply_q(np.where(np.isneginf(found.q), 0.0, found.q))
    np.testing.assert_allclose(table, found.q, atol=1e-8)
    np.testing.assert_allclose(found.q.max(axis=1), found.value, atol=1e-8)
    used = found.policy > 1e-6
    np.testing.assert_allclose(
        np.where(used, found.q, found.value[:, None]), found.value[:, None] * np.ones(4), atol=1e-6
    )
