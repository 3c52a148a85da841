"""A finite number of steps: known answers, a 60-digit referee, shapes, early stops."""

import pickle

import numpy as np
import pytest
from mpmath import mpf

import robustmdp as rm
from oracles import exact_mdp
from oracles.hostile_rows import hostile_world

# The inventory of Puterman (2005), section 4.6.1.
STATE = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3]
ACTION = [0, 1, 2, 3, 0, 1, 2, 0, 1, 0]
REWARD = [0, -1, -2, -5, 5, 0, -3, 6, -1, 5]
DEMAND = [0.25, 0.5, 0.25]


def inventory() -> rm.MDP:
    transitions, rewards = np.zeros((4, 4, 4)), np.zeros((4, 4))
    for s, a, r in zip(STATE, ACTION, REWARD, strict=True):
        rewards[s, a] = r
        for demand, p in enumerate(DEMAND):
            transitions[s, a, max(s + a - demand, 0)] += p
    return rm.MDP.from_arrays(transitions, rewards, 1.0)


def test_puterman() -> None:
    answer = rm.solve(inventory(), rm.Nominal(), criterion=rm.FiniteHorizon(3))
    expected = [[67 / 16, 129 / 16, 194 / 16, 227 / 16], [2, 25 / 4, 10, 21 / 2], [0, 5, 6, 5], [0, 0, 0, 0]]
    np.testing.assert_allclose(answer.value, expected, atol=1e-13)
    assert answer.policy.tolist() == [[3, 0, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0]]
    assert answer.converged
    assert answer.error_bound < 1e-12
    assert answer.q.shape == (3, 4, 4)
    assert answer.q[0, 3, 1] == -np.inf


def test_terminal_values_and_the_discount_count() -> None:
    world = rm.MDP.from_arrays([[[0.0, 1.0]], [[1.0, 0.0]]], [1.0, 2.0], 0.5)
    answer = rm.solve(world, rm.Nominal(), criterion=rm.FiniteHorizon(2, terminal=[8.0, 16.0]))
    np.testing.assert_allclose(answer.value, [[1 + 1 + 2, 2 + 0.5 + 4], [9.0, 6.0], [8.0, 16.0]], atol=1e-13)


SETS = [
    rm.Nominal(),
    rm.Penalized(rm.KL(), 0.7),
    rm.Constrained(rm.ChiSquare(), 0.3),
    rm.Constrained(rm.TotalVariation(), 0.2),
]


@pytest.mark.parametrize("ambiguity", SETS, ids=str)
def test_each_step_is_the_operator(ambiguity) -> None:
    world = rm.problems.garnet(20, 3, 4, 0.95, seed=1)
    answer = rm.solve(world, ambiguity, criterion=rm.FiniteHorizon(5))
    bellman = rm.RobustBellman(world, ambiguity)
    for t in range(5):
        np.testing.assert_allclose(bellman.apply(answer.value[t + 1]), answer.value[t], rtol=1e-9)
    assert answer.converged


@pytest.mark.parametrize("ambiguity", SETS, ids=str)
def test_worst_cases_explain_the_values(ambiguity) -> None:
    world = rm.problems.garnet(8, 2, 3, 0.9, seed=2)
    answer = rm.solve(world, ambiguity, criterion=rm.FiniteHorizon(4))
    assert len(answer.worst_case) == 4
    assert len(answer.worst_case[1:]) == 3
    assert answer.penalty.shape == answer.eta.shape == (4, 8, 2)
    for t in range(4):
        model = answer.worst_case[t].with_extra_rewards(answer.penalty[t])
        step = rm.RobustBellman(model, rm.Nominal())
        np.testing.assert_allclose(step.apply(answer.value[t + 1]), answer.value[t], rtol=1e-7, atol=1e-9)
    with pytest.raises(IndexError):
        answer.worst_case[4]


def test_evaluate_takes_policies_of_four_shapes() -> None:
    world, ambiguity = rm.problems.garnet(6, 3, 3, 0.9, seed=3), rm.Penalized(rm.KL(), 1.0)
    criterion = rm.FiniteHorizon(4)
    best = rm.solve(world, ambiguity, criterion=criterion)
    again = rm.evaluate(world, best.policy, ambiguity, criterion=criterion)
    np.testing.assert_allclose(again.value, best.value, atol=1e-8)
    assert np.array_equal(again.policy, best.policy)
    table = np.eye(3)[best.policy]
    np.testing.assert_allclose(rm.evaluate(world, table, ambiguity, criterion=criterion).value, best.value, atol=1e-8)
    first = rm.evaluate(world, best.policy[0], ambiguity, criterion=criterion)
    np.testing.assert_allclose(
        rm.evaluate(world, table[0], ambiguity, criterion=criterion).value, first.value, atol=1e-8
    )
    assert (first.value <= best.value + 1e-8).all()
    with pytest.raises(ValueError, match=r"policy must have shape .*\(T, S\) = \(4, 6\).*: got \(5, 6\)"):
        rm.evaluate(world, np.zeros((5, 6), int), ambiguity, criterion=criterion)


def test_whole_numbers_are_actions_where_two_shapes_agree() -> None:
    world = rm.problems.garnet(3, 3, 2, 0.9, seed=4)
    actions = np.array([[0, 1, 2], [2, 1, 0], [1, 1, 1]])
    answer = rm.evaluate(world, actions, rm.Nominal(), criterion=rm.FiniteHorizon(3))
    parts = rm.evaluate(world, np.eye(3)[actions], rm.Nominal(), criterion=rm.FiniteHorizon(3))
    np.testing.assert_allclose(answer.value, parts.value, atol=1e-12)
    rm.evaluate(world, np.eye(3), rm.Nominal(), criterion=rm.FiniteHorizon(3))


def check(answer: rm.Solution, truth: list[exact_mdp.Values]) -> None:
    for t, stage in enumerate(truth):
        for s, (low, high) in enumerate(zip(stage.lower, stage.upper, strict=True)):
            assert mpf(float(answer.lower[t, s])) <= high, (t, s)
            assert mpf(float(answer.upper[t, s])) >= low, (t, s)


@pytest.mark.parametrize("seed", range(12))
def test_bounds_hold_wherever_it_stops(seed) -> None:
    world = hostile_world(7, seed)
    rng = np.random.default_rng(seed)
    terminal = rng.normal(size=world.mdp.n_states)
    criterion, k = rm.FiniteHorizon(4, terminal), int(rng.integers(1, 4))
    referee = exact_mdp.build(world.mdp, world.ambiguity)
    truth = exact_mdp.finite_horizon(referee, terminal, 4)
    whole = rm.solve(world.mdp, world.ambiguity, criterion=criterion)
    stopped = rm.solve(world.mdp, world.ambiguity, criterion=criterion, callback=lambda step: step.step >= k)
    assert stopped.status.code == "interrupted"
    for answer in (whole, stopped):
        check(answer, truth)
        own = exact_mdp.finite_horizon(referee, terminal, 4, answer.policy)
        for t, stage in enumerate(own):
            assert all(mpf(float(low)) <= high for low, high in zip(answer.lower[t], stage.upper, strict=True))


def test_an_interrupt_keeps_valid_bounds(monkeypatch) -> None:
    def stop(step: object) -> None:
        raise KeyboardInterrupt

    world = inventory()
    answer = rm.solve(world, rm.Nominal(), criterion=rm.FiniteHorizon(3), callback=stop)
    full = rm.solve(world, rm.Nominal(), criterion=rm.FiniteHorizon(3))
    assert answer.status.code == "interrupted"
    assert (answer.lower <= full.value).all()
    assert (full.value <= answer.upper).all()


def test_tables_and_copies() -> None:
    answer = rm.solve(inventory(), rm.Nominal(), criterion=rm.FiniteHorizon(3))
    frame = answer.to_frame()
    assert frame.index.names == ["step", "state"]
    assert len(frame) == 12
    assert "first step" in repr(answer)
    assert pickle.loads(pickle.dumps(answer)) == answer


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"solver": rm.ValueIteration()}, "FiniteHorizon is solved backwards, without a solver"),
        ({"start": [0.0] * 4}, "FiniteHorizon is solved backwards, without a start"),
        ({"tol": 0.0}, "tol must be a positive number"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, sentence) -> None:
    with pytest.raises(ValueError, match=sentence):
        rm.solve(inventory(), rm.Nominal(), criterion=rm.FiniteHorizon(3), **settings)


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="steps must be at least 1: got 0"):
        rm.FiniteHorizon(0)
    with pytest.raises(ValueError, match="terminal must be finite everywhere"):
        rm.FiniteHorizon(1, [np.inf])
    with pytest.raises(ValueError, match=r"terminal must have shape \(4,\): got \(2,\)"):
        rm.solve(inventory(), rm.Nominal(), criterion=rm.FiniteHorizon(1, [0.0, 1.0]))
    with pytest.raises(TypeError, match=r"^terminal must be an array of numbers: got 'high'$"):
        rm.FiniteHorizon(1, "high")


@pytest.mark.parametrize("criterion", ["horizon", 12, rm.FiniteHorizon, rm.TotalReward], ids=repr)
def test_what_is_no_criterion_is_refused(criterion) -> None:
    sentence = r"^criterion must be one such as FiniteHorizon\(12\), TotalReward\(\) or AverageReward\(\): got"
    with pytest.raises(TypeError, match=sentence):
        rm.solve(inventory(), rm.Nominal(), criterion=criterion)
    with pytest.raises(TypeError, match=sentence):
        rm.evaluate(inventory(), [0] * 4, rm.Nominal(), criterion=criterion)


@pytest.mark.parametrize("criterion", [None, rm.FiniteHorizon(3), rm.TotalReward()], ids=repr)
def test_a_ragged_policy_is_refused(criterion) -> None:
    world = inventory().with_discount(0.5)
    sentence = r"^policy must be an array of actions or probabilities: got \[\[0, 1\], \[0\]\]$"
    with pytest.raises(ValueError, match=sentence):
        rm.evaluate(world, [[0, 1], [0]], rm.Nominal(), criterion=criterion)
