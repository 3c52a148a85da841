"""Averages in the long run: published answers, closed forms, exact referees, periods, closed classes, early stops."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robustmdp as rm
import verify_criteria
from verify_worlds import random_case

SEED = 1  # other worlds than those of `make verify`
AVERAGE = rm.AverageReward()
SOLVERS = [None, rm.PolicyIteration(), rm.ValueIteration()]


@pytest.mark.parametrize(("stream", "count"), [("average", 72), ("average-smooth", 6), ("average-others", 36)])
def test_bounds_hold_exact_answers(stream: str, count: int) -> None:
    """Every family with nature in both roles; stopped runs, given policies and closed classes included."""
    verdicts = [verdict for index in range(count) for verdict in verify_criteria.JUDGES[stream](SEED, index)]
    assert [failure for verdict in verdicts for failure in verdict.failures] == []
    assert sum(verdict.outcome == "converged" for verdict in verdicts) >= count // 3


def forest(n_states: int, old: float = 4.0, cut: float = 2.0, fire: float = 0.1) -> rm.MDP:
    """pymdptoolbox's example: wait or cut."""
    p, r = np.zeros((n_states, 2, n_states)), np.zeros((n_states, 2))
    for s in range(n_states):
        p[s, 0, 0] += fire
        p[s, 0, min(s + 1, n_states - 1)] += 1.0 - fire
    p[:, 1, 0] = 1.0
    r[1:, 1] = 1.0
    r[-1] = old, cut
    return rm.MDP.from_arrays(p, r, 0.9)


def howards_taxi() -> rm.MDP:
    """Howard (1960), chapter 4: three towns, rewards per transition."""
    rows = {
        (0, 0): ([1 / 2, 1 / 4, 1 / 4], [10, 4, 8]),
        (0, 1): ([1 / 16, 3 / 4, 3 / 16], [8, 2, 4]),
        (0, 2): ([1 / 4, 1 / 8, 5 / 8], [4, 6, 4]),
        (1, 0): ([1 / 2, 0, 1 / 2], [14, 0, 18]),
        (1, 1): ([1 / 16, 7 / 8, 1 / 16], [8, 16, 8]),
        (2, 0): ([1 / 4, 1 / 4, 1 / 2], [10, 2, 8]),
        (2, 1): ([1 / 8, 3 / 4, 1 / 8], [6, 4, 2]),
        (2, 2): ([3 / 4, 1 / 16, 3 / 16], [4, 0, 8]),
    }
    p, r = np.zeros((3, 3, 3)), np.zeros((3, 3, 3))
    for (s, a), (masses, rewards) in rows.items():
        p[s, a], r[s, a] = masses, rewards
    return rm.MDP.from_arrays(p, r, 0.9)


# pymdptoolbox's small example; Howard's toymaker, whose gain is 2.
SMALL = rm.MDP.from_arrays([[[0.5, 0.5], [0.0, 1.0]], [[0.8, 0.2], [0.1, 0.9]]], [[5.0, 10.0], [-1.0, 2.0]], 0.9)
TOYMAKER = rm.MDP.from_arrays([[[0.5, 0.5], [0.8, 0.2]], [[0.4, 0.6], [0.7, 0.3]]], [[6.0, 4.0], [-3.0, -5.0]], 0.9)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize(
    ("world", "gain", "digits", "policy"),
    [
        (SMALL, 35 / 9, 1e-13, [1, 0]),
        (TOYMAKER, 2.0, 1e-13, [1, 1]),
        (forest(3), 3.24, 1e-13, [0, 0, 0]),
        (forest(10), 1.549681956, 5e-10, [0] * 10),
        (howards_taxi(), 13.34, 5e-3, [1, 1, 1]),
    ],
    ids=["pymdptoolbox", "toymaker", "forest of 3", "forest of 10", "taxi"],
)
def test_published_answers(
    solver: rm.PolicyIteration | None, world: rm.MDP, gain: float, digits: float, policy: list[int]
) -> None:
    """`digits` is what the source rounds to."""
    found = rm.solve(world, rm.Nominal(), criterion=AVERAGE, solver=solver)
    assert found.converged
    assert found.policy.tolist() == policy
    assert (found.gain_lower <= gain + digits).all()
    assert (found.gain_upper >= gain - digits).all()
    assert found.error_bound <= 1e-8 * max(1.0, gain)


def test_the_bias_is_relative_to_the_first_state() -> None:
    """Howard's relative values of the taxi are -1.18, 12.66 and 0."""
    found = rm.solve(howards_taxi(), rm.Nominal(), criterion=AVERAGE)
    np.testing.assert_allclose(found.value, np.array([-1.18, 12.66, 0.0]) + 1.18, atol=0.01)
    assert found.value[0] == 0.0
    np.testing.assert_allclose(found.q.max(axis=1), found.value, atol=1e-7)
    assert np.isnan(found.lower).all()
    assert np.isnan(found.upper).all()


def queue(capacity: int, arrive: float) -> rm.MDP:
    """A queue that grows with probability `arrive` and else shrinks, walls hold; each customer costs 1 per step."""
    n = capacity + 1
    p = np.zeros((n, 1, n))
    for s in range(n):
        p[s, 0, min(s + 1, capacity)] += arrive
        p[s, 0, max(s - 1, 0)] += 1.0 - arrive
    return rm.MDP.from_arrays(p, -np.arange(n, dtype=float), 0.9)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize(
    ("doubt", "shift"), [(rm.Nominal(), 0.0), (rm.L1(0.1), 0.05), (rm.Optimistic(rm.L1(0.1)), -0.05)]
)
def test_a_queue_has_a_closed_form(solver: rm.PolicyIteration | None, doubt: rm.Nominal, shift: float) -> None:
    """Lengths have probabilities rho^n; nature moves half of the radius to the longer queue, or to the shorter one."""
    capacity, arrive = 20, 0.4
    weights = ((arrive + shift) / (1.0 - arrive - shift)) ** np.arange(capacity + 1)
    exact = -float(weights @ np.arange(capacity + 1) / weights.sum())
    found = rm.solve(queue(capacity, arrive), doubt, criterion=AVERAGE, solver=solver)
    assert found.converged
    assert found.gain_lower[0] <= exact + 1e-13  # of the closed form in floats
    assert found.gain_upper[0] >= exact - 1e-13


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("length", [2, 3, 7])
def test_periodic_worlds_converge(solver: rm.PolicyIteration | None, length: int) -> None:
    """A cycle that pays 1, 2, ..., length."""
    p = np.roll(np.eye(length), 1, axis=1)[:, None]
    cycle = rm.MDP.from_arrays(p, 1.0 + np.arange(length), 0.9)
    for doubt in (rm.Nominal(), rm.Penalized(rm.KL(), 1.0), rm.Constrained(rm.ChiSquare(), 0.1)):
        found = rm.solve(cycle, doubt, criterion=AVERAGE, solver=solver)
        assert found.converged
        assert found.gain_lower[0] <= (length + 1) / 2 <= found.gain_upper[0]


@pytest.mark.parametrize("coupling", [1e-2, 1e-4, 1e-6])
def test_slowly_mixing_chains(coupling: float) -> None:
    """Two states that are left with probabilities e and 2e: two thirds of the time is spent in the first."""
    p = [[[1.0 - coupling, coupling]], [[2.0 * coupling, 1.0 - 2.0 * coupling]]]
    found = rm.solve(rm.MDP.from_arrays(p, [1.0, 2.0], 0.9), rm.Nominal(), criterion=AVERAGE)
    assert found.converged
    # The rows hold 1 - e in floats, of a relative error of 1e-16/e.
    assert abs(found.gain[0] - 4 / 3) <= found.error_bound + 1e-16 / coupling


def test_a_slow_grid() -> None:
    found = rm.solve(rm.problems.grid_world(30), rm.Penalized(rm.ChiSquare(), 1.0), criterion=AVERAGE, tol=1e-6)
    again = rm.solve(found.worst_case.with_extra_rewards(found.penalty), rm.Nominal(), criterion=AVERAGE, tol=1e-6)
    assert found.converged
    assert abs(again.gain[0] - found.gain[0]) <= again.error_bound + found.error_bound


NAMED = re.compile(r"it is about (\S+) from (.+) and (\S+) from (.+); take")


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_multichain_worlds_name_two_states(solver: rm.PolicyIteration | None) -> None:
    """Two states that are never left pay 1 and 2; from the third either may come."""
    p = [[[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]], [[0.5, 0.5, 0.0]]]
    world = rm.MDP.from_arrays(p, [1.0, 2.0, 9.0], 0.9, state_names=["poor", "rich", "young"])
    found = rm.solve(world, rm.L1(0.1), criterion=AVERAGE, solver=solver)
    assert found.status.code == "stalled"
    assert NAMED.search(found.status.sentence).groups() == ("1", "poor", "2", "rich")
    assert found.gain_lower.max() <= 1.0
    assert found.gain_upper.min() >= 2.0
    assert found.error_bound == pytest.approx(0.5, abs=1e-5)


def test_nature_may_divide_the_world() -> None:
    """State 1 is left with probability 0.1: a radius of 0.2 is enough to prevent that, 0.1 is not."""
    world = rm.MDP.from_arrays([[[1.0, 0.0]], [[0.1, 0.9]]], [1.0, 0.0], 0.9)
    together = rm.solve(world, rm.L1(0.1), criterion=AVERAGE)
    assert together.converged
    assert together.gain_lower[0] <= 1.0 <= together.gain_upper[0]
    apart = rm.solve(world, rm.L1(0.2), criterion=AVERAGE)
    assert NAMED.search(apart.status.sentence).groups() == ("0", "state 1", "1", "state 0")
    assert apart.gain_lower[0] <= 0.0
    assert apart.gain_upper[0] >= 1.0


def test_what_ends_surely_has_gain_0() -> None:
    ends = rm.MDP.from_rows([0, 0], [0, 0], [0, 1], [0.75, 0.25], [1.0, 1.0], 1.0, n_states=1)
    found = rm.solve(ends, rm.L1(0.2), criterion=AVERAGE)
    assert found.converged
    assert found.gain_lower[0] <= 0.0 <= found.gain_upper[0]
    assert found.value[0] == pytest.approx(1.0 / 0.35, abs=1e-6)  # the total reward, since the end's bias is 0
    stays = rm.MDP.from_rows([0, 0], [0, 1], [0, 1], [1.0, 1.0], [1.0, 1.0], 1.0, n_states=1)
    found = rm.solve(stays, rm.Nominal(), criterion=AVERAGE)
    assert NAMED.search(found.status.sentence).groups() == ("0", "the end", "1", "state 0")


DOUBTS = [
    rm.Penalized(rm.KL(), 0.5),
    rm.Constrained(rm.Burg(), 0.1),
    rm.L1(0.2, support="all"),
    rm.CVaR(0.3),
    rm.Optimistic(rm.L2(0.2)),
]


@pytest.mark.parametrize("doubt", DOUBTS, ids=str)
def test_worst_cases_attain_the_gain(doubt: rm.Nominal) -> None:
    """The worst case as a nominal model, its penalty as a reward; and the policy by itself."""
    world = rm.problems.garnet(12, 3, 4, 0.9, seed=5)
    found = rm.solve(world, doubt, criterion=AVERAGE)
    assert found.converged
    model = found.worst_case.with_extra_rewards(found.penalty)
    for again in (
        rm.solve(model, rm.Nominal(), criterion=AVERAGE),
        rm.evaluate(world, found.policy, doubt, criterion=AVERAGE),
    ):
        assert abs(again.gain[0] - found.gain[0]) <= again.error_bound + found.error_bound
    policy = rm.evaluate(world, np.full((12, 3), 1 / 3), doubt, criterion=AVERAGE)
    assert policy.policy.shape == (12, 3)
    assert policy.gain_lower[0] <= found.gain_upper[0]


@given(seed=st.integers(0, 10_000), scale=st.floats(0.1, 100.0), shift=st.floats(-100.0, 100.0))
@settings(max_examples=20, deadline=None)
def test_the_gain_scales_with_the_rewards(seed: int, scale: float, shift: float) -> None:
    """Balls and norms do not know units; more room for nature is never better."""
    world = rm.problems.garnet(6, 2, 3, 0.9, seed=seed)
    other = world.with_rewards(scale * world.rewards + shift)
    for doubt, wider in ((rm.Constrained(rm.KL(), 0.1), rm.Constrained(rm.KL(), 0.2)), (rm.L1(0.1), rm.L1(0.2))):
        here, there = (rm.solve(each, doubt, criterion=AVERAGE) for each in (world, other))
        rounding = 1e-14 * (scale + abs(shift))  # of the other rewards
        assert there.gain_lower.max() <= scale * here.gain_upper.min() + shift + rounding
        assert there.gain_upper.min() >= scale * here.gain_lower.max() + shift - rounding
        assert rm.solve(world, wider, criterion=AVERAGE).gain_lower.max() <= here.gain_upper.min()


def test_mixed_policies_have_the_gain_of_their_chain() -> None:
    """By the stationary distribution, a dense solve."""
    world = rm.problems.garnet(8, 2, 4, 0.9, seed=2)
    policy = np.random.default_rng(0).dirichlet([1.0, 1.0], 8)
    p, r = np.zeros((8, 8)), np.zeros(8)
    for pair, (s, a) in enumerate(zip(world.states, world.actions, strict=True)):
        row = slice(world.indptr[pair], world.indptr[pair + 1])
        p[s, world.indices[row]] += policy[s, a] * world.probabilities[row]
        r[s] += policy[s, a] * world.mean_rewards()[pair]
    system = np.vstack([p.T - np.eye(8), np.ones(8)])
    exact = float(np.linalg.lstsq(system, np.append(np.zeros(8), 1.0))[0] @ r)
    found = rm.evaluate(world, policy, rm.Nominal(), criterion=AVERAGE)
    assert found.converged
    assert abs(found.gain[0] - exact) <= found.error_bound + 1e-12


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("stop", [1, 2, 5])
def test_stopped_runs_keep_what_is_known(solver: rm.PolicyIteration | None, stop: int) -> None:
    seen = []
    found = rm.solve(
        SMALL, rm.Nominal(), criterion=AVERAGE, solver=solver,
        callback=lambda step: seen.append(step) or step.step >= stop,
    )  # fmt: skip
    assert found.status.code == "interrupted"
    assert len(seen) == found.steps == stop
    assert (found.gain_lower <= 35 / 9).all()
    assert (found.gain_upper >= 35 / 9).all()
    assert found.trace["rows"].tolist() == sorted(found.trace["rows"])


def test_ctrl_c_and_step_limits() -> None:
    def interrupt(step: object) -> None:
        raise KeyboardInterrupt

    found = rm.solve(SMALL, rm.Nominal(), criterion=AVERAGE, callback=interrupt)
    assert found.status.code == "interrupted"
    limited = rm.solve(SMALL, rm.Nominal(), criterion=AVERAGE, solver=rm.ValueIteration(max_steps=3))
    assert limited.status.code == "step_limit"
    for each in (found, limited):
        assert each.gain_lower[0] <= 35 / 9 <= each.gain_upper[0]


def test_a_start_saves_steps() -> None:
    world = rm.problems.garnet(200, 4, 5, 0.9, seed=3)
    doubt = rm.Constrained(rm.KL(), 0.1)
    first = rm.solve(world, doubt, criterion=AVERAGE)
    again = rm.solve(world, doubt, criterion=AVERAGE, start=first.value + 1000.0)
    assert again.converged
    assert again.steps < first.steps
    assert abs(first.gain[0] - again.gain[0]) <= first.error_bound + again.error_bound


def test_the_same_bits_for_any_number_of_threads() -> None:
    world, doubt = rm.problems.garnet(2000, 4, 6, 0.9, seed=4), rm.Penalized(rm.KL(), 1.0)
    one, two = (rm.solve(world, doubt, criterion=AVERAGE, threads=threads) for threads in (1, 2))
    assert one == two


def test_solutions_show_the_gain() -> None:
    found = rm.solve(SMALL, rm.Nominal(), criterion=AVERAGE)
    assert list(found.columns()) == ["state", "action", "gain", "gain_lower", "gain_upper", "bias"]
    assert "gain    3.88889 to 3.88889, certified to" in repr(found)
    assert "gain" in found._repr_html_()
    assert found.to_frame()["bias"].tolist() == found.value.tolist()
    copied = pickle.loads(pickle.dumps(found))
    assert copied == found
    assert copied.gain.tolist() == found.gain.tolist()
    assert found != rm.solve(SMALL, rm.Nominal())


def test_what_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"the solver must be ValueIteration\(\) or PolicyIteration\(\): got DualAscent"
    ):
        rm.solve(SMALL, rm.Nominal(), criterion=AVERAGE, solver=rm.DualAscent())
    with pytest.raises(ValueError, match=r"start must have shape \(2,\): got \(3,\)"):
        rm.solve(SMALL, rm.Nominal(), criterion=AVERAGE, start=[0.0] * 3)
    with pytest.raises(ValueError, match=r"give a criterion: FiniteHorizon\(steps\), TotalReward\(\) or AverageReward"):
        rm.solve(SMALL.with_discount(1.0), rm.Nominal())
    with pytest.raises(TypeError, match="mdp must be an MDP: got 3"):
        rm.solve(3, rm.Nominal(), criterion=AVERAGE)


def test_a_tolerance_below_rounding_ends() -> None:
    """With a loss of 1e-14 per step, rounding kept the nominal start from its accuracy, for ever."""
    case = random_case("L1, weighted", 3, 0, 18, sign=0, discount=1.0, ends=False)
    found = rm.solve(case.mdp, case.ambiguity, criterion=AVERAGE, tol=1e-14)
    assert found.status.code == "stalled"
    assert found.error_bound <= 1e-12
