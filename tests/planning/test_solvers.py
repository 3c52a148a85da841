"""Solvers against each other, closed forms, brute force and naive sweeps; bounds that hold wherever a run stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles import naive_mdp
from oracles.naive_mdp import DIVERGENCES, FORMS, LEVELS

WORLDS: dict[str, Callable[[], rm.MDP]] = {
    "chain": rm.problems.chain,
    "restarting chain": lambda: rm.problems.chain(restart=0.5),
    "two states": lambda: rm.problems.two_state(0.7, 0.9),
    "garnet": lambda: rm.problems.garnet(60, 4, 5, 0.95, seed=1),
    "machine replacement": rm.problems.machine_replacement,
    "river swim": rm.problems.river_swim,
    "inventory": lambda: rm.problems.inventory(8),
    "grid": lambda: rm.problems.grid_world(8),
}
each_divergence = pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
each_form = pytest.mark.parametrize("form", FORMS)
each_world = pytest.mark.parametrize("name", WORLDS)


def target(solution: rm.Solution, tol: float) -> float:
    return tol * max(1.0, float(np.abs(solution.value).max()))


def agree(one: rm.Solution, other: rm.Solution) -> bool:
    """Both values lie within their own bound of the truth."""
    return float(np.abs(one.value - other.value).max()) <= one.error_bound + other.error_bound


@each_divergence
@each_form
@each_world
def test_value_and_policy_iteration_agree(name: str, form: Any, divergence: Any) -> None:
    mdp, ambiguity = WORLDS[name](), form(divergence, LEVELS[form])
    swept, newton = (rm.solve(mdp, ambiguity, solver=s, tol=1e-6) for s in (rm.ValueIteration(), rm.PolicyIteration()))
    for solution in (swept, newton):
        assert solution.status.code == "converged"
        assert solution.error_bound <= target(solution, 1e-6)
        assert np.array_equal(solution.value, 0.5 * (solution.lower + solution.upper))
    assert agree(swept, newton)
    assert agree(rm.evaluate(mdp, newton.policy, ambiguity, tol=1e-6), newton)


@pytest.mark.parametrize("weight", [0.0, 1e-3, 0.05, 0.3, 1.0, 10.0, 1e6, np.inf])
@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("stay", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("solver", [rm.ValueIteration(), rm.PolicyIteration()], ids=["sweeps", "newton"])
def test_closed_form_of_two_states(solver: Any, stay: float, discount: float, weight: float) -> None:
    ambiguity = rm.Penalized(rm.ChiSquare(), weight)
    solution = rm.solve(rm.problems.two_state(stay, discount), ambiguity, solver=solver, tol=2e-13)
    exact = rm.problems.two_state_value(stay, discount, weight)
    # The rounding of the closed form itself, beside the certified bound.
    assert abs(solution.value[0] - exact) <= solution.error_bound + 4 * np.spacing(exact)
    # Sweeps start in the middle of the value range, 1/(1-discount) wide, and round at that size.
    assert abs(solution.value[0] - exact) <= 1e-12 * (exact if solver == rm.PolicyIteration() else 1 / (1 - discount))


@pytest.mark.parametrize("seed", range(3))
@each_divergence
@each_form
def test_the_best_policy_is_deterministic_and_best_everywhere(form: Any, divergence: Any, seed: int) -> None:
    mdp, world = naive_mdp.random_world(100 + seed, n_states=3)
    ambiguity = form(divergence, LEVELS[form])
    best = rm.solve(mdp, ambiguity)
    values = np.array([rm.evaluate(mdp, policy, ambiguity).value for policy in naive_mdp.policies(world)])
    slack = best.error_bound + target(best, 1e-8)  # evaluate converges to 1e-8 relative to its own, smaller values
    assert len(values) > 1
    assert np.all(values <= best.value + slack)
    assert np.abs(values.max(axis=0) - best.value).max() <= slack
    assert np.any(np.all(values >= best.value - slack, axis=1))


@each_divergence
@each_form
@pytest.mark.parametrize("name", ["restarting chain", "inventory", "7", "9"])
def test_the_worst_case_world_explains_the_value(name: str, form: Any, divergence: Any) -> None:
    mdp = WORLDS[name]() if name in WORLDS else naive_mdp.random_world(int(name))[0]
    solution = rm.solve(mdp, form(divergence, LEVELS[form]), tol=1e-7)
    if form is rm.Constrained:
        assert not solution.penalty.any()
    else:
        assert solution.penalty.min() >= 0.0
        assert solution.penalty.max() > 0.0
    explained = solution.worst_case.with_extra_rewards(solution.penalty)
    assert explained.n_pairs == mdp.n_pairs
    nominal = rm.solve(explained, rm.Nominal(), tol=1e-10)
    assert np.all(nominal.upper >= solution.lower)
    assert np.all(nominal.lower <= solution.upper)
    kept = rm.evaluate(explained, solution.policy, rm.Nominal(), tol=1e-10)
    assert np.all(kept.upper >= solution.lower)  # and lower is within 2 bounds of the best that is possible


def stopped_early(mdp: rm.MDP, ambiguity: Any, seed: int) -> rm.Solution:
    steps = 1 + seed % 5
    if seed % 3 == 0:
        return rm.solve(mdp, ambiguity, solver=rm.ValueIteration(max_steps=steps), tol=1e-12)
    solver = rm.ValueIteration() if seed % 3 == 1 else rm.PolicyIteration()
    return rm.solve(mdp, ambiguity, solver=solver, tol=1e-12, callback=lambda step: step.step >= steps)


@each_divergence
@each_form
def test_bounds_hold_wherever_a_run_stops(form: Any, divergence: Any) -> None:
    rng = np.random.default_rng(0)
    wide = 0
    for seed in range(64):  # 1,024 worlds over all forms and divergences
        mdp, _ = naive_mdp.random_world(1000 * FORMS.index(form) + 10_000 * DIVERGENCES.index(divergence) + seed)
        ambiguity = form(divergence, float(10.0 ** rng.uniform(-2, 1)))
        early, exact = stopped_early(mdp, ambiguity, seed), rm.solve(mdp, ambiguity, tol=1e-12)
        # Neither interval may lie beside the other: both hold the same number.
        assert np.all(early.lower <= exact.upper), (seed, ambiguity)
        assert np.all(early.upper >= exact.lower), (seed, ambiguity)
        # Rows are solved to a gap of 1e-9 of their outcomes at worst, and the discount is at most 0.95.
        assert exact.error_bound <= 2e-8 * max(1.0, np.abs(exact.value).max())
        reached = rm.evaluate(mdp, early.policy, ambiguity, tol=1e-12)
        assert np.all(early.lower <= reached.upper), (seed, ambiguity)
        wide += early.error_bound > 1e-6
    assert wide >= 10  # otherwise nothing was stopped early


@pytest.mark.parametrize("policy_iteration", [False, True])
def test_statuses(policy_iteration: bool) -> None:
    mdp, ambiguity = rm.problems.garnet(60, 4, 5, 0.95, seed=1), rm.Penalized(rm.KL(), 0.3)
    solver = rm.PolicyIteration if policy_iteration else rm.ValueIteration
    exact = rm.solve(mdp, ambiguity, tol=1e-12)

    def interrupt(step: Any) -> None:
        raise KeyboardInterrupt

    ends = {
        "step_limit": rm.solve(mdp, ambiguity, solver=solver(max_steps=2), tol=1e-12),
        "interrupted": rm.solve(mdp, ambiguity, solver=solver(), callback=lambda step: step.step == 2),
        "stalled": rm.solve(mdp, ambiguity, solver=solver(), tol=1e-18),
        "converged": rm.solve(mdp, ambiguity, solver=solver()),
    }
    remedies = {
        "step_limit": "allow more steps",
        "interrupted": "Stopped from outside",
        "stalled": "choose a tol above it",
    }
    for code, solution in ends.items():
        assert solution.status.code == code
        assert solution.converged == (code == "converged")
        assert remedies.get(code, "within the tolerance") in solution.status.sentence
        assert str(solution.status).startswith(code + ": ")
        check_trace(solution)
        assert np.all((solution.lower <= exact.upper) & (exact.lower <= solution.upper))
    assert ends["step_limit"].steps == ends["interrupted"].steps == 2
    assert ends["stalled"].error_bound <= 1e-11
    stopped = rm.solve(mdp, ambiguity, solver=solver(), callback=interrupt)
    assert (stopped.status.code, stopped.steps) == ("interrupted", 1)
    assert np.isfinite(stopped.error_bound)
    assert np.all((stopped.lower <= exact.upper) & (exact.lower <= stopped.upper))


def check_trace(solution: rm.Solution) -> None:
    assert set(solution.trace) == {"steps", "residual", "error_bound", "rows"}
    assert {len(column) for column in solution.trace.values()} == {solution.steps}
    assert np.all(np.diff(solution.trace["rows"]) > 0)
    assert np.array_equal(solution.trace["steps"], np.arange(1, solution.steps + 1))


def test_the_callback_sees_the_trace() -> None:
    seen: list[Any] = []
    solution = rm.solve(rm.problems.chain(), rm.Penalized(rm.KL(), 1.0), callback=seen.append)
    # The last step ends the run before anybody is asked.
    assert [step.rows for step in seen] == solution.trace["rows"].tolist()[: len(seen)]
    assert len(seen) >= solution.steps - 1


@pytest.mark.parametrize("tol", [0.0, -1.0, np.nan, np.inf])
def test_tol_must_be_positive(tol: float) -> None:
    with pytest.raises(ValueError, match="tol must be a positive number"):
        rm.solve(rm.problems.chain(), rm.Nominal(), tol=tol)


@pytest.mark.parametrize("rule", ["span", "residual"])
def test_stopping_rules_of_value_iteration(rule: str) -> None:
    solution = rm.solve(rm.problems.river_swim(), rm.Nominal(), solver=rm.ValueIteration(stopping=rule))
    assert solution.converged
    assert agree(solution, rm.solve(rm.problems.river_swim(), rm.Nominal()))
    with pytest.raises(ValueError, match="did you mean 'span'"):
        rm.ValueIteration(stopping="spam")
    with pytest.raises(ValueError, match="max_steps must be at least 1"):
        rm.ValueIteration(max_steps=0)


@each_divergence
@pytest.mark.parametrize("seed", range(4))
def test_boundary_levels(divergence: Any, seed: int) -> None:
    mdp, _ = naive_mdp.random_world(seed)
    nominal = rm.solve(mdp, rm.Nominal(), tol=1e-11)
    for limit in (rm.Penalized(divergence, np.inf), rm.Constrained(divergence, 0.0)):
        assert agree(rm.solve(mdp, limit, tol=1e-11), nominal)
    lowest, too = (
        rm.solve(mdp, rm.Penalized(divergence, 0.0), tol=1e-11),
        rm.solve(mdp, rm.Constrained(divergence, np.inf), tol=1e-11),
    )
    assert agree(lowest, too)
    assert np.all(lowest.lower <= nominal.upper)


@each_divergence
@each_form
def test_levels_per_pair(form: Any, divergence: Any) -> None:
    mdp, world = naive_mdp.random_world(11)
    level = LEVELS[form]
    constant = np.full((mdp.n_states, mdp.n_actions), level)
    constant[mdp.table(np.zeros(mdp.n_pairs), fill=1.0) == 1.0] = np.nan
    assert np.isnan(constant).any()
    scalar, array = (rm.solve(mdp, form(divergence, value)) for value in (level, constant))
    assert scalar == array
    varying = np.random.default_rng(0).uniform(0.0, 2.0, constant.shape)
    solution = rm.solve(mdp, form(divergence, varying))
    naive = naive_mdp.fixed_point(world, form(divergence, varying))
    assert np.abs(solution.value - naive).max() <= solution.error_bound + 1e-11
    constant[mdp.states[0], mdp.actions[0]] = np.nan
    with pytest.raises(
        ValueError, match=rf"must be a number where an action is available: got nan at \[0, {mdp.actions[0]}\]"
    ):
        rm.solve(mdp, form(divergence, constant))


@pytest.mark.parametrize(
    "ambiguity", [rm.Nominal()] + [form(d, LEVELS[form]) for form in FORMS for d in DIVERGENCES[:5]], ids=repr
)
@pytest.mark.parametrize("solver", [rm.ValueIteration(), rm.PolicyIteration()], ids=["sweeps", "newton"])
def test_threads_do_not_change_a_bit(ambiguity: Any, solver: Any) -> None:
    mdp = rm.problems.garnet(3000, 4, 5, 0.9, seed=3)
    assert mdp.nnz >= 40_000  # enough for two threads
    serial, parallel = (rm.solve(mdp, ambiguity, solver=solver, tol=1e-6, threads=n) for n in (1, 2))
    assert serial == parallel
    assert np.array_equal(serial.penalty, parallel.penalty)
    assert serial.worst_case == parallel.worst_case
    policy = serial.policy
    assert rm.evaluate(mdp, policy, ambiguity, threads=1) == rm.evaluate(mdp, policy, ambiguity, threads=2)


def test_the_environment_chooses_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from robustmdp.operators.threads import thread_count

    monkeypatch.setenv("ROBUSTMDP_THREADS", "3")
    assert thread_count(None) == 3
    assert thread_count(2) == 2
    for bad in ("0", "two", "-1", "1.5"):
        monkeypatch.setenv("ROBUSTMDP_THREADS", bad)
        with pytest.raises(ValueError, match=f"ROBUSTMDP_THREADS must be a whole number >= 1: got '{bad}'"):
            rm.solve(rm.problems.chain(), rm.Nominal())
    with pytest.raises(ValueError, match="threads must be at least 1"):
        rm.solve(rm.problems.chain(), rm.Nominal(), threads=0)


@pytest.mark.parametrize("weight", [0.01, 0.1, 1.0])
def test_where_the_joint_step_diverges(weight: float) -> None:
    mdp, ambiguity = rm.problems.grid_world(40, discount=0.99), rm.Penalized(rm.ChiSquare(), weight)
    newton, swept = (rm.solve(mdp, ambiguity, solver=s, tol=1e-6) for s in (rm.PolicyIteration(), rm.ValueIteration()))
    assert newton.converged
    assert swept.converged
    assert agree(newton, swept)


@pytest.mark.parametrize("seed", range(2))
@each_divergence
@each_form
def test_evaluate_is_the_naive_fixed_point(form: Any, divergence: Any, seed: int) -> None:
    mdp, world = naive_mdp.random_world(40 + seed, n_states=3)
    ambiguity = form(divergence, LEVELS[form])
    rng = np.random.default_rng(seed)
    mixed = np.where(np.isfinite(mdp.table(np.zeros(mdp.n_pairs))), rng.random((mdp.n_states, mdp.n_actions)), 0.0)
    mixed /= mixed.sum(axis=1, keepdims=True)
    for policy in (mixed, mixed.argmax(axis=1)):
        solution = rm.evaluate(mdp, policy, ambiguity, tol=1e-9)
        naive = naive_mdp.fixed_point(world, ambiguity, policy)
        assert solution.converged
        assert np.abs(solution.value - naive).max() <= solution.error_bound + 1e-11
        assert np.array_equal(solution.policy, policy)
        assert solution.policy.dtype == (np.int64 if policy.ndim == 1 else np.float64)
        assert np.all(rm.solve(mdp, ambiguity).upper >= solution.lower)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([0, 0, 2], "policy must name actions in 0..1: got 2 at c"),
        ([0, -1, 0], "policy must name actions in 0..1: got -1 at b"),
        ([0, 1, 0], "policy must use available actions only: it puts mass on stop in b"),
        ([[1, 0], [0.5, 0.5], [1, 0]], "policy must use available actions only: it puts mass on stop in b"),
        ([[1, 0], [0.9, 0], [1, 0]], r"policy\[1\] must sum to 1: got 0.9"),
        ([[2, -1], [1, 0], [1, 0]], r"policy must be finite and at least 0: got -1 at policy\[0, 1\]"),
        ([[np.nan, 1], [1, 0], [1, 0]], r"policy must be finite and at least 0: got nan at policy\[0, 0\]"),
        ([0.5, 0.0, 0.0], "policy must hold whole numbers"),
        ([0, 0], r"of shape \(3,\) or \(3, 2\): got \(2,\)"),
        ([[1, 0, 0]] * 3, r"of shape \(3,\) or \(3, 2\): got \(3, 3\)"),
    ],
)
def test_policies_that_cannot_be(policy: Any, message: str) -> None:
    transitions = np.zeros((3, 2, 3))
    transitions[:, 0, 0] = transitions[[0, 2], 1, 2] = 1.0
    mdp = rm.MDP.from_arrays(transitions, np.zeros(3), 0.9, state_names="abc", action_names=["go", "stop"])
    with pytest.raises(ValueError, match=message):
        rm.evaluate(mdp, policy, rm.Nominal())


@pytest.mark.parametrize(
    "solver", [None, rm.ValueIteration(), rm.PolicyIteration()], ids=["default", "sweeps", "newton"]
)
@pytest.mark.parametrize(
    "ambiguity", [rm.Nominal()] + [form(d, LEVELS[form]) for form in FORMS for d in DIVERGENCES], ids=repr
)
def test_an_ending_is_worth_nothing(ambiguity: Any, solver: Any) -> None:
    mdp = rm.MDP.from_rows([0], [0], [0], [1.0], [1.0], 0.9, terminated=[True])
    solution = rm.solve(mdp, ambiguity, solver=solver)
    assert solution.converged
    assert abs(solution.value[0] - 1.0) <= solution.error_bound
    stopped = rm.solve(mdp, ambiguity, solver=rm.ValueIteration(max_steps=1))
    assert stopped.lower[0] <= 1.0 <= stopped.upper[0]


@pytest.mark.parametrize("name", ["chain", "restarting chain", "garnet"])
@pytest.mark.parametrize("divergence", [rm.ChiSquare(), rm.KL()], ids=repr)
def test_dual_ascent_reaches_the_exact_solution(divergence: Any, name: str) -> None:
    mdp, ambiguity = WORLDS[name](), rm.Penalized(divergence, 1.0)
    ascent, exact = rm.solve(mdp, ambiguity, solver=rm.DualAscent(steps=300)), rm.solve(mdp, ambiguity, tol=1e-11)
    assert ascent.steps == len(ascent.trace["steps"]) == 300
    assert agree(ascent, exact)
    # discount^300 of the value range is left, and what the inner loops have not found.
    left = mdp.discount**300 * (mdp.value_range[1] - mdp.value_range[0])
    assert np.abs(ascent.value - exact.value).max() <= left + 1e-6


@pytest.mark.parametrize("weight", [0.5, 1.0, 10.0])
@pytest.mark.parametrize("warm", [False, True])
def test_dual_ascent_as_in_the_paper(weight: float, warm: bool) -> None:
    mdp, ambiguity = rm.problems.chain(), rm.Penalized(rm.ChiSquare(), weight)
    exact = rm.solve(mdp, ambiguity, tol=1e-11)
    ascent = rm.solve(mdp, ambiguity, solver=rm.DualAscent(steps=100, inner_steps=100, warm_start=warm))
    assert ascent.steps == 100
    # T = 100 leaves 10 * 0.9^100 = 2.66e-4 (paper-notes 14).
    assert np.abs(ascent.base - exact.value).max() <= 3e-4
    assert np.all((ascent.lower <= exact.upper) & (exact.lower <= ascent.upper))


@pytest.mark.parametrize(
    ("ambiguity", "message"),
    [
        (rm.Nominal(), "DualAscent needs a chi-square or Kullback-Leibler penalty"),
        (rm.Constrained(rm.KL(), 0.1), "DualAscent needs a chi-square or Kullback-Leibler penalty"),
        (rm.Penalized(rm.Burg(), 1.0), "DualAscent needs a chi-square or Kullback-Leibler penalty"),
        (rm.Penalized(rm.KL(), 0.0), r"DualAscent needs weights in \(0, inf\)"),
        (rm.Penalized(rm.KL(), np.inf), r"DualAscent needs weights in \(0, inf\)"),
    ],
    ids=repr,
)
def test_dual_ascent_refuses(ambiguity: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rm.solve(rm.problems.chain(), ambiguity, solver=rm.DualAscent(steps=2))


@pytest.mark.parametrize("settings", [{"steps": 0}, {"inner_steps": 0}, {"step": 0.0}, {"step": -1.0}])
def test_dual_ascent_checks_its_settings(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(settings))} must be"):
        rm.DualAscent(**settings)


@pytest.mark.parametrize("bad", [None, "nominal", rm.KL()])
def test_wrong_types(bad: Any) -> None:
    with pytest.raises(TypeError, match="ambiguity must be a set such as Nominal"):
        rm.solve(rm.problems.chain(), bad)
    with pytest.raises(TypeError, match="mdp must be an MDP"):
        rm.solve(bad, rm.Nominal())


@each_divergence
def test_without_a_future_the_penalty_vanishes(divergence: Any) -> None:
    # The penalty vanishes with the future it is paid in: nature takes the least reward of the support.
    mdp = rm.MDP.from_arrays([[[0.5, 0.5]], [[0.0, 1.0]]], [[[3.0, 1.0]], [[0.0, 2.0]]], 0.0)
    solution = rm.solve(mdp, rm.Penalized(divergence, 1.0))
    assert np.abs(solution.value - [1.0, 2.0]).max() <= solution.error_bound
