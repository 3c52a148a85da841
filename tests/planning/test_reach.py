"""Probabilities of a goal and rewards until it: closed forms, loops, and the answers that other projects publish."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm

EXTERNAL = Path(__file__).parents[3] / "shared" / "external"
PUBLISHED = [
    # file, goal, other arguments, answers for maxmin, maxmax, minmax, minmin; None where nothing is published
    ("tiny-01.drn", "target", {}, (0.4, 0.5, 0.5, 0.4)),
    ("tiny-03.drn", "target", {}, (0.4, 0.6, 0.5, 0.3)),
    ("tiny-04.drn", "target", {}, (1.0, 1.0, 3 / 7, 0.42)),
    ("tiny-05.drn", "target", {}, (0.3, 0.4, 0.4, 0.3)),
    ("tiny-bounded.drn", "target", {"within": 4}, (0.6528, 0.81, 0.81, 0.6528)),
    ("tiny-bounded.drn", "target", {"within": 2}, (0.32, 0.45, 0.45, 0.32)),
    ("robot_delta0.1.drn", "goal1", {}, (0.4, 0.6, None, None)),
    ("robot_delta0.1.drn", "goal2", {"rewards": True}, (None, None, 31 / 24, None)),
    ("csma2_2_int.drn", "all_delivered", {"avoid": "collision_max_backoff"}, (0.82, 0.92, 0.92, 0.82)),
    (
        "csma2_2_int.drn",
        "all_delivered",
        {"rewards": True},
        (69.06092107, 72.66966316, 68.81219281, None),  # an independent LP gives 65.56165157 for the last
    ),
]
ROLES = ((False, False), (False, True), (True, False), (True, True))  # the player minimises, nature helps him


@pytest.mark.skipif(not EXTERNAL.is_dir(), reason="the files of other projects are not here")
@pytest.mark.parametrize(("file", "goal", "how", "answers"), PUBLISHED)
def test_published_answers(file: str, goal: str, how: dict[str, Any], answers: tuple[float | None, ...]) -> None:
    mdp, intervals = rm.read_interval(EXTERNAL / file)
    assert mdp.initial is not None
    start = int(mdp.initial.argmax())
    for (minimise, helps), answer in zip(ROLES, answers, strict=True):
        if answer is None:
            continue
        ambiguity = rm.Optimistic(intervals) if helps else intervals
        found = rm.reach(mdp, ambiguity, goal, minimise=minimise, **how)
        lower, upper = (x[0][start] if x.ndim == 2 else x[start] for x in (found.lower, found.upper))
        assert found.converged
        assert upper - lower <= 1e-6 * max(1.0, answer)
        assert lower - 5e-9 * max(1.0, answer) <= answer <= upper + 5e-9 * max(1.0, answer)


@pytest.mark.skipif(not EXTERNAL.is_dir(), reason="the files of other projects are not here")
def test_published_answers_of_other_kinds() -> None:
    """A goal of two labels, fractions by hand; and PRISM's 65.56150885, which its own iterations leave 2e-6 too low."""
    robot, intervals = rm.read_interval(EXTERNAL / "robot_delta0.1.drn")
    assert robot.initial is not None
    either = robot.labels["goal1"] | robot.labels["goal2"]
    slowest = rm.reach(robot, intervals, either, rewards=True, minimise=True).value @ robot.initial
    fastest = rm.reach(robot, rm.Optimistic(intervals), either, rewards=True, minimise=True).value @ robot.initial
    assert slowest == pytest.approx(98 / 80, abs=1e-7)
    assert fastest == pytest.approx(min(109 / 90, 1.24), abs=1e-7)
    csma, intervals = rm.read_interval(EXTERNAL / "csma2_2_int.drn")
    assert csma.initial is not None
    found = rm.reach(csma, rm.Optimistic(intervals), "all_delivered", rewards=True, minimise=True)
    assert found.value @ csma.initial == pytest.approx(65.56150885, rel=1e-5)


# From state 0, action 0 tries (half goal, half back), action 1 waits for ever; 1 is the goal, 2 a trap.
LOOP = rm.MDP.from_rows(
    [0, 0, 0, 1, 2], [0, 0, 1, 0, 0], [1, 0, 0, 1, 2], [0.5, 0.5, 1, 1, 1], [1.0, 1.0, 0.0, 0.0, 0.0], 1.0
)


def test_waiting_for_ever_does_not_count_as_reaching() -> None:
    best = rm.reach(LOOP, rm.Nominal(), [1])
    assert best.value[:2] == pytest.approx([1.0, 1.0], abs=1e-8)
    assert best.value[2] == 0.0
    assert best.policy[0] == 0
    least = rm.reach(LOOP, rm.Nominal(), [1], minimise=True)
    assert least.value[0] == 0.0
    assert least.policy[0] == 1
    assert np.isneginf(least.q[1, 1])


def test_rewards_until_a_goal_are_infinite_where_it_is_not_reached() -> None:
    until = rm.reach(LOOP, rm.Nominal(), [1], minimise=True, rewards=True)
    assert until.value[0] == pytest.approx(2.0, abs=1e-7)  # a geometric number of tries
    assert np.isposinf(until.value[2])
    assert until.converged
    assert np.isposinf(rm.reach(LOOP, rm.Nominal(), [1], rewards=True).value[0])


def test_doubt_lowers_the_probability() -> None:
    walk = rm.MDP.from_rows([0, 0, 1, 2], [0] * 4, [1, 2, 1, 2], [0.5, 0.5, 1, 1], [0.0] * 4, 1.0)
    for ambiguity, value in ((rm.L1(0.2), 0.4), (rm.Optimistic(rm.L1(0.2)), 0.6), (rm.CVaR(0.8), 0.375)):
        found = rm.reach(walk, ambiguity, [1])
        assert found.value[0] == pytest.approx(value, abs=1e-8)
        assert found.lower[0] <= value <= found.upper[0]


def test_new_successors_are_those_that_the_set_names() -> None:
    """From 2 and 3 the goal, 1, cannot be reached, nor does the set lead there: it adds 0, which is no goal either."""
    walk = rm.MDP.from_rows(
        [0, 1, 2, 2, 3, 3, 3],
        [0, 0, 0, 0, 0, 0, 1],
        [0, 1, 3, 4, 2, 4, 1],
        [1, 1, 0.6, 0.4, 0.6, 0.4, 1],
        [0.0] * 7,
        1.0,
        n_states=4,
    )
    found = rm.reach(walk, rm.L1(0.2, support=[0]), [1], minimise=True)
    assert found.converged
    assert found.upper[2:].tolist() == [0.0, 0.0]
    assert rm.reach(walk, rm.L1(0.2, support=[1]), [1], minimise=True).value[2] > 0.1


def test_nature_may_leave_a_loop_for_a_state_that_it_adds() -> None:
    """It keeps 1 with the mass that may move, and leads a little of it to the goal, 0, again and again."""
    walk = rm.MDP.from_rows(
        [0, 1, 1, 2, 2], [0] * 5, [0, 1, 2, 2, 3], [1, 0.9, 0.1, 0.5, 0.5], [0.0] * 5, 1.0, n_states=3
    )
    found = rm.reach(walk, rm.L1(0.3, support="all"), [0], minimise=True)
    assert found.converged
    assert found.value[1] == pytest.approx(1.0, abs=1e-7)


def test_nature_may_keep_away_from_the_goal_by_a_state_that_it_adds() -> None:
    """0.2 from the goal back to 1 would cost 0.8, to 2 it costs 0.5."""
    walk = rm.MDP.from_rows([0, 1, 1, 2], [0] * 4, [0, 0, 1, 2], [1.0, 0.2, 0.8, 1.0], [0.0] * 4, 1.0)
    limits = rm.L1(0.6, weights=[2.0, 2.0, 0.5], support=[2])
    found = rm.reach(walk, rm.Optimistic(limits), [0], minimise=True)
    assert found.converged
    assert found.upper[1] == 0.0


# From 0 half goes to the goal, 1, the rest back; 2 stays for ever. Each step pays 1.
APART = rm.MDP.from_rows([0, 0, 1, 2], [0] * 4, [0, 1, 1, 2], [0.5, 0.5, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0], 1.0)


@pytest.mark.parametrize(
    ("ambiguity", "least", "most"),
    [
        (rm.L1(0.2), (1 / 0.6, np.inf), (1 / 0.4, np.inf)),
        (rm.L1(0.2, support=[0]), (1 / 0.6, 10 + 1 / 0.6), (1 / 0.4, np.inf)),  # from 2 to 0, never from 0 to 2
        (rm.L1(0.2, support="all"), (1 / 0.6, 10.0), (np.inf, np.inf)),
        (rm.L1(0.0, support="all"), (2.0, np.inf), (2.0, np.inf)),
        (rm.L1([[0.0], [0.0], [0.2]], support="all"), (2.0, 10.0), (2.0, np.inf)),
        (rm.LInf(0.1, support=[1]), (1 / 0.6, 10.0), (1 / 0.4, np.inf)),
        (rm.Contamination(0.1, support="all"), (1 / 0.55, 10.0), (np.inf, np.inf)),
    ],
    ids=repr,
)
def test_nature_reaches_the_goal_or_misses_it_by_states_that_it_adds(
    ambiguity: Any, least: tuple[float, float], most: tuple[float, float]
) -> None:
    for minimise in (False, True):
        for helps in (False, True):
            limits = rm.Optimistic(ambiguity) if helps else ambiguity
            found = rm.reach(APART, limits, [1], rewards=True, minimise=minimise)
            expected = np.array(least if minimise == helps else most)
            assert found.converged
            assert (found.lower[[0, 2]] <= expected * (1 + 1e-15)).all()
            assert (found.upper[[0, 2]] >= expected * (1 - 1e-15)).all()
            np.testing.assert_allclose(found.value[[0, 2]], expected, rtol=1e-8)


def test_a_bound_that_is_infinite_is_not_close_to_its_value() -> None:
    """With the first loss, one side is not proved yet at the small tolerance."""
    walk = rm.MDP.from_rows(
        [0, 0, 0, 0, 1, 1, 1, 2],
        [0, 0, 1, 1, 0, 0, 0, 0],
        [0, 1, 0, 2, 0, 1, 2, 2],
        [0.6, 0.4, 0.5, 0.5, 0.05, 0.5, 0.45, 1.0],
        [1.8, 1.8, 1.2, 1.2, -0.3, -0.6, -1.5, 0.0],
        1.0,
    )
    price = rm.Penalized(rm.ChiSquare(), 3.0)
    coarse, fine = (rm.reach(walk, price, [2], minimise=True, rewards=True, tol=tol) for tol in (1e-8, 1e-14))
    assert fine.error_bound <= 1e-11
    assert (coarse.lower <= fine.upper).all()
    assert (fine.lower <= coarse.upper).all()


@pytest.mark.parametrize(("helps", "answer"), [(False, 0.85), (True, 0.95)])
@pytest.mark.parametrize("tol", [1e-6, 1e-10])
def test_a_danger_far_from_most_states_takes_one_step(helps: bool, answer: float, tol: float) -> None:
    """From a bridge one falls into a pit, a state like any other, with 0.05 to 0.15; behind it the goal is sure."""
    size, bridge, pit = 300, 100, 300
    at = np.arange(size)
    onward = np.minimum(at + 1, size - 1)
    fall = np.where(at == bridge, pit, at)
    rows = [(at, at * 0 + a, to, at * 0 + p) for a, p in ((0, 0.9), (1, 0.6)) for to, p in ((onward, p), (fall, 1 - p))]
    rows.append((np.array([pit]), np.array([0]), np.array([pit]), np.array([1.0])))
    table = [np.concatenate(column) for column in zip(*rows, strict=True)]
    mdp = rm.MDP.from_rows(*table, np.zeros(len(table[0])), 1.0)
    p = mdp.probabilities
    intervals = rm.Interval(np.where(p < 1, p - 0.05, 1.0), np.where(p < 1, p + 0.05, 1.0))
    found = rm.reach(mdp, rm.Optimistic(intervals) if helps else intervals, [size - 1], tol=tol)
    truth = np.append(np.where(at <= bridge, answer, 1.0), 0.0)
    assert found.converged
    assert found.steps == 1
    assert (found.lower <= truth + 1e-15).all()  # p + 0.05 in binary
    assert (truth <= found.upper + 1e-15).all()
    assert (found.policy[: size - 1] == 0).all()


def test_a_walk_that_hardly_drifts_has_the_odds_of_a_gambler() -> None:
    """P(n before 0 from k) = k/n, far from 1 nearly everywhere: there the guess helps little."""
    size = 150
    at = np.arange(1, size)
    rows = [np.concatenate([[0], at, at, [size]]), np.zeros(2 * size, dtype=int)]
    rows += [np.concatenate([[0], at - 1, at + 1, [size]]), np.concatenate([[1.0], at * 0 + 0.5, at * 0 + 0.5, [1.0]])]
    walk = rm.MDP.from_rows(*rows, np.zeros(2 * size), 1.0)
    found = rm.reach(walk, rm.Nominal(), [size], avoid=[0])
    odds = np.arange(size + 1) / size
    assert found.converged
    assert (found.lower <= odds + 1e-15).all()
    assert (odds <= found.upper + 1e-15).all()


@pytest.mark.parametrize(("share", "helps"), [(0.15, False), (0.2, True), (0.25, True)])
def test_rooms_that_one_can_stay_in_for_ten_billion_steps(share: float, helps: bool) -> None:
    """A slippery grid with hazards: where walls shield a player from slips, every step's drift would add up."""
    size = 12
    states, moves = np.arange(size * size), ((0, 1), (1, 0), (0, -1), (-1, 0))
    row, column = np.divmod(states, size)
    rows = []
    for action in range(4):
        for turn, chance in ((0, 0.8), (1, 0.1), (3, 0.1)):
            down, right = moves[(action + turn) % 4]
            to = np.clip(row + down, 0, size - 1) * size + np.clip(column + right, 0, size - 1)
            rows.append((states, states * 0 + action, to, states * 0 + chance))
    table = [np.concatenate(each) for each in zip(*rows, strict=True)]
    mdp = rm.MDP.from_rows(*table, np.zeros(len(table[0])), 1.0)
    hazard = np.random.default_rng(0).random(size * size) < share
    hazard[[0, -1]] = False
    p = mdp.probabilities
    intervals = rm.Interval(np.where(p < 1.0, np.maximum(p - 0.05, 0.5 * p), 1.0), np.minimum(p + 0.05, 1.0))
    doubt = rm.Optimistic(intervals) if helps else intervals
    found = rm.reach(mdp, doubt, [size * size - 1], avoid=hazard, tol=1e-6)
    assert found.converged
    within = rm.reach(mdp, doubt, [size * size - 1], avoid=hazard, within=5_000)
    assert (within.lower[0] <= found.upper).all()  # with more steps the probability only grows


def test_total_reward_until_the_end() -> None:
    ends = rm.MDP.from_rows([0, 0], [0, 0], [0, 1], [0.5, 0.5], [1.0, 1.0], 1.0, n_states=1)
    total = rm.solve(ends, rm.Nominal(), criterion=rm.TotalReward())
    assert total.lower[0] <= 2.0 <= total.upper[0]
    assert total.error_bound <= 1e-7
    longest = rm.solve(ends, rm.Optimistic(rm.L1(0.2)), criterion=rm.TotalReward())  # 1/(1 - 0.6)
    assert longest.value[0] == pytest.approx(2.5, abs=1e-7)


def test_an_end_that_is_never_reached_is_named() -> None:
    with pytest.raises(ValueError, match="from s0 the end may never be reached"):
        rm.solve(rm.problems.two_state(1.0, 0.9), rm.Nominal(), criterion=rm.TotalReward())


def test_a_goal_without_labels() -> None:
    with pytest.raises(ValueError, match=r"^goal must be a list of states: the model has no labels, got 'broken'$"):
        rm.reach(rm.problems.machine_replacement(), rm.Nominal(), "broken")


@pytest.mark.parametrize("goal", ["nowhere", [7], [[0]], [0.5]])
def test_goals_that_cannot_be(goal: Any) -> None:
    with pytest.raises(ValueError, match="goal"):
        rm.reach(LOOP, rm.Nominal(), goal)


def test_mass_that_nature_cannot_remove_is_no_dead_end() -> None:
    """Burg's divergence leaves every successor some mass, here exp(-73) of it: too little to tell from none."""
    walk = rm.MDP.from_rows(
        [0, 0, 0, 1], [0] * 4, [0, 1, 2, 1], [0.69, 0.0055, 0.3045, 1.0], [0.0] * 4, 1.0, n_states=2
    )
    doubt = rm.Optimistic(rm.Constrained(rm.Burg(), 0.4))
    answer = rm.reach(walk, doubt, [1], minimise=True)
    assert answer.status.code == "converged"
    assert 0.0 <= answer.lower[0] <= np.exp(-0.4 / 0.0055) <= answer.upper[0]
