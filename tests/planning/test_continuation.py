"""Level by level against cold solves; starts near, far and absurd; what was left out must not have mattered."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles import naive_mdp
from oracles.naive_mdp import DIVERGENCES, FORMS, LEVELS
from robustmdp.planning import continuation
from robustmdp.planning.continuation import Stage, extrapolated, solve_along

TOL = 1e-6
WORLDS: dict[str, Callable[[], rm.MDP]] = {
    "grid": lambda: rm.problems.grid_world(8),
    "garnet": lambda: rm.problems.garnet(60, 4, 5, 0.95, seed=1),
    "inventory": lambda: rm.problems.inventory(8),
    "lake": lambda: rm.MDP.from_gymnasium("FrozenLake-v1", 0.95),
}
each_divergence = pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
each_form = pytest.mark.parametrize("form", FORMS)
each_world = pytest.mark.parametrize("name", WORLDS)


@pytest.fixture(params=[continuation._LARGE, 0], ids=["all pairs", "few pairs"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small worlds are solved whole; as if they were large, without the pairs that cannot matter."""
    monkeypatch.setattr(continuation, "_LARGE", request.param)


def place(level: float) -> float:
    return math.log(level) if 0.0 < level < math.inf else math.copysign(1e3, level - 1.0)


def along(form: Any, divergence: Any, levels: Any) -> list[tuple[float, Any]]:
    return [(place(level), form(divergence, level)) for level in levels]


def same(stage: Stage | rm.Solution, cold: rm.Solution) -> bool:
    """Neither interval lies beside the other: both hold the same number."""
    return bool(np.all(stage.lower <= cold.upper) and np.all(cold.lower <= stage.upper))


def check(mdp: rm.MDP, family: list[tuple[float, Any]], tol: float = TOL) -> list[Stage]:
    """Each stage against a cold solve, and its policy against what it promises."""
    stages = list(solve_along(mdp, family, tol=tol))
    for (_, ambiguity), stage in zip(family, stages, strict=True):
        assert stage.converged, (ambiguity, stage.status)
        assert stage.error_bound <= tol * max(1.0, np.abs(stage.value).max())
        assert stage.ambiguity == ambiguity
        assert same(stage, rm.solve(mdp, ambiguity, tol=tol)), ambiguity
        assert np.all(stage.lower <= rm.evaluate(mdp, stage.policy, ambiguity, tol=tol).upper), ambiguity
    return stages


@pytest.mark.usefixtures("how")
@each_divergence
@each_form
@each_world
def test_each_level_is_what_a_cold_solve_finds(name: str, form: Any, divergence: Any) -> None:
    mdp = WORLDS[name]()
    check(mdp, along(form, divergence, rm.levels_for(mdp, divergence, count=6, form=form)))


@pytest.mark.usefixtures("how")
@pytest.mark.parametrize("seed", range(12))
@each_form
def test_any_order_and_the_boundary_levels(form: Any, seed: int) -> None:
    """Also from more to less robust, with repetitions, jumps, and the ends at which nature has all or no choice."""
    mdp, _ = naive_mdp.random_world(seed)
    rng = np.random.default_rng(seed)
    levels = [*(10.0 ** rng.uniform(-3, 2, 4)).tolist(), 0.0, math.inf]
    chosen = rng.choice(levels, 8).tolist()
    check(mdp, along(form, DIVERGENCES[seed % len(DIVERGENCES)], chosen))


@pytest.mark.usefixtures("how")
@pytest.mark.parametrize("name", ["garnet", "inventory"])
@each_form
def test_levels_per_pair_and_from_the_nominal_model_on(form: Any, name: str) -> None:
    mdp = WORLDS[name]()
    table = np.random.default_rng(0).uniform(0.5, 2.0, (mdp.n_states, mdp.n_actions))
    table[mdp.table(np.zeros(mdp.n_pairs), fill=1.0) == 1.0] = np.nan
    shares = (0.01, 0.1, 0.5, 1.0)
    family: list[tuple[float, Any]] = [(-1e3, rm.Nominal())]
    for share in shares:
        family.append((math.log(share), form(rm.KL(), share * table if form is rm.Constrained else table / share)))
    check(mdp, [*family, (0.0, rm.Nominal()), (1.0, rm.Penalized(rm.ChiSquare(), 1.0)), family[2]])


def test_a_large_world_leaves_out_most_pairs() -> None:
    """Two thirds of these pairs are never looked at again, and the bounds are those of the whole problem."""
    mdp = rm.problems.garnet(1000, 10, 4, 0.9, seed=2)
    assert mdp.nnz >= continuation._LARGE
    walk = continuation.Walk(mdp, TOL, None)
    sizes = []
    for level in (100.0, 50.0, 20.0, 10.0, 5.0):
        stage = walk.step(math.log(level), rm.Penalized(rm.KL(), level))
        assert walk._last is not None
        sizes.append(walk._last.mdp.n_pairs)
        assert same(stage, rm.solve(mdp, rm.Penalized(rm.KL(), level), tol=TOL))
    assert sizes[0] == mdp.n_pairs
    assert min(sizes) < mdp.n_pairs / 3


def test_the_reference_bounds_every_q_with_more_room() -> None:
    """Q of a pair rises by no more than the values, and falls with nature's room: whatever they are."""
    rng = np.random.default_rng(0)
    for seed in range(40):
        mdp, _ = naive_mdp.random_world(seed)
        old, new = rm.Penalized(rm.KL(), 2.0), rm.Penalized(rm.KL(), 0.5)
        v, step = rng.normal(size=(2, mdp.n_states)) * 3.0
        bracket = rm.RobustBellman(mdp, old).bracket(v)
        for values in (v + step, v - np.abs(step), v - 5.0):  # falling everywhere, the end's value stays
            left_out = ~continuation._Reference(mdp, old, v, bracket.q_upper).reach(values)
            q = rm.RobustBellman(mdp, new).q_pairs(values)
            assert np.all(q[left_out] <= values[mdp.states[left_out]])


@pytest.mark.parametrize(
    ("new", "old", "more"),
    [
        (rm.Constrained(rm.KL(), 0.2), rm.Constrained(rm.KL(), 0.1), True),
        (rm.Constrained(rm.KL(), 0.1), rm.Constrained(rm.KL(), 0.2), False),
        (rm.Penalized(rm.KL(), 1.0), rm.Penalized(rm.KL(), 2.0), True),
        (rm.Penalized(rm.KL(), 2.0), rm.Penalized(rm.KL(), 1.0), False),
        (rm.Constrained(rm.KL(), 0.1), rm.Nominal(), True),
        (rm.Nominal(), rm.Constrained(rm.KL(), 0.1), False),
        (rm.Constrained(rm.ChiSquare(), 9.0), rm.Constrained(rm.KL(), 0.1), False),
        (rm.Penalized(rm.KL(), 0.1), rm.Constrained(rm.KL(), 0.1), False),
        (rm.Constrained(rm.KL(), [[0.2, 0.1]]), rm.Constrained(rm.KL(), [[0.1, 0.2]]), False),
        (rm.Constrained(rm.KL(), [[0.2, np.nan]]), rm.Constrained(rm.KL(), [[0.1, np.nan]]), True),
    ],
)
def test_more_room(new: Any, old: Any, more: bool) -> None:
    assert new.contains(old) is more


def test_extrapolation_is_exact_for_a_parabola() -> None:
    a, b, c = np.random.default_rng(0).normal(size=(3, 5))
    points = [(x, a + b * x + c * x * x) for x in (0.5, -1.0, 3.0)]
    for x in (-4.0, 0.0, 3.0, 10.0):
        np.testing.assert_allclose(extrapolated(x, points), a + b * x + c * x * x, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(extrapolated(7.0, points[:1]), points[0][1])
    # A place that comes twice counts once, with what was found there last.
    np.testing.assert_array_equal(extrapolated(7.0, [points[1], (-1.0, a)]), a)


def test_outcomes_too_small_to_square() -> None:
    """Values of 1e-164 once made an inner problem fail, and an infinite bound was 'within' an infinite tolerance."""
    mdp = rm.MDP.from_gymnasium("FrozenLake8x8-v1", 0.99)
    divergence = rm.CressieRead(3.0)
    check(mdp, along(rm.Constrained, divergence, rm.levels_for(mdp, divergence, count=8, form=rm.Constrained)))


def test_a_stage_becomes_a_solution() -> None:
    mdp = rm.problems.machine_replacement()
    (stage,) = solve_along(mdp, along(rm.Constrained, rm.KL(), [0.2]))
    solution = stage.solution(mdp)
    assert solution.converged
    assert same(stage, solution)
    assert np.array_equal(solution.policy, stage.policy)
    assert solution.worst_case.n_pairs == mdp.n_pairs


SOLVERS = [rm.PolicyIteration(), rm.ValueIteration(), rm.ValueIteration(stopping="residual"), rm.DualAscent(steps=400)]


def starts(mdp: rm.MDP, exact: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "the answer": exact,
        "near": exact + 1e-3 * rng.normal(size=mdp.n_states),
        "noise": 100.0 * rng.normal(size=mdp.n_states),
        "far above": np.full(mdp.n_states, 1e7),
        "far below": np.full(mdp.n_states, -1e7),
        "absurd": 1e7 * (-1.0) ** np.arange(mdp.n_states),
    }


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("name", ["inventory", "lake", "9"])
def test_bounds_hold_for_any_start(name: str, solver: Any) -> None:
    mdp = WORLDS[name]() if name in WORLDS else naive_mdp.random_world(int(name))[0]
    ambiguity = rm.Penalized(rm.KL(), 1.0)
    exact = rm.solve(mdp, ambiguity, tol=1e-10)
    for label, start in starts(mdp, exact.value).items():
        given = start.copy()
        solution = rm.solve(mdp, ambiguity, solver=solver, tol=TOL, start=start)
        assert same(solution, exact), label
        assert np.array_equal(start, given)  # the caller's array is not written to
        if not isinstance(solver, rm.DualAscent):
            assert solution.converged, label


@each_form
@each_divergence
def test_evaluate_from_any_start(divergence: Any, form: Any) -> None:
    mdp = WORLDS["lake"]()
    ambiguity = form(divergence, LEVELS[form])
    policy = rm.solve(mdp, rm.Nominal()).policy
    exact = rm.evaluate(mdp, policy, ambiguity, tol=1e-8)
    for label, start in starts(mdp, exact.value).items():
        solution = rm.evaluate(mdp, policy, ambiguity, tol=TOL, start=start)
        assert solution.converged, label
        assert same(solution, exact), label


@pytest.mark.parametrize("solver", SOLVERS[:2], ids=repr)
def test_a_start_at_the_answer_saves_work(solver: Any) -> None:
    mdp, ambiguity = WORLDS["garnet"](), rm.Penalized(rm.KL(), 1.0)
    cold = rm.solve(mdp, ambiguity, solver=solver)
    warm = rm.solve(mdp, ambiguity, solver=solver, start=cold.value)
    assert warm.converged
    assert warm.steps == 1 < cold.steps
    assert warm.trace["rows"][-1] < cold.trace["rows"][-1]


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (np.zeros(3), r"^start must have shape \(10,\): got \(3,\)$"),
        (np.zeros((10, 1)), r"^start must have shape \(10,\): got \(10, 1\)$"),
        (0.0, r"^start must have shape \(10,\): got \(\)$"),
        ([math.nan] * 10, "^start must be finite everywhere$"),
        ([0.0] * 9 + [math.inf], "^start must be finite everywhere$"),
    ],
)
def test_starts_that_cannot_be(start: Any, message: str) -> None:
    mdp = rm.problems.chain()
    for solver in SOLVERS:
        with pytest.raises(ValueError, match=message):
            rm.solve(mdp, rm.Penalized(rm.KL(), 1.0), solver=solver, start=start)
    with pytest.raises(ValueError, match=message):
        rm.evaluate(mdp, [0] * 10, rm.Nominal(), start=start)


def test_threads_do_not_change_a_bit() -> None:
    mdp = rm.problems.garnet(3000, 4, 5, 0.9, seed=3)
    family = along(rm.Constrained, rm.ChiSquare(), [0.01, 0.03, 0.1])
    one, two = (list(solve_along(mdp, family, tol=TOL, threads=n)) for n in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.lower, b.lower)
        assert np.array_equal(a.upper, b.upper)
        assert np.array_equal(a.policy, b.policy)
