"""The table of states: what it says of values, actions and nature, beside rows looked up one by one."""

from __future__ import annotations

import numpy as np
import pytest

import robustmdp as rm

MACHINE = rm.problems.machine_replacement()
DOUBT = rm.Constrained(rm.KL(), 0.1)
LAKE = rm.problems.garnet(12, 3, 4, 0.9, seed=3)
SALES = rm.MDP.from_noise(
    lambda stock, order, demand: (
        np.maximum(np.minimum(stock + order, 4) - demand, 0),
        3.0 * np.minimum(np.minimum(stock + order, 4), demand) - order,
    ),
    5,
    3,
    [0.4, 0.3, 0.2, 0.1],
    0.9,
)


def mixed_row(world, state, choice):
    """P(s' | s) when actions have these probabilities, from the rows that users see."""
    out = np.zeros(world.n_states + 1)
    for action, share in enumerate(choice):
        if share > 0:
            row = world.row(state, action)
            for successor, probability in zip(row["successor"], row["probability"], strict=True):
                out[successor] += share * probability
    return out


def naive_moves(world, worst, policy):
    """The successor that gains most at each state and what it gains, state by state."""
    choices = np.eye(world.n_actions)[policy] if policy.ndim == 1 else policy
    for state, choice in enumerate(choices):
        moved = mixed_row(worst, state, choice) - mixed_row(world, state, choice)
        yield ("-", 0.0) if moved.max() < 1e-9 else (int(moved.argmax()), float(moved.max()))


def assert_moves(table, world, worst, policy):
    for row, (successor, rise) in zip(table, naive_moves(world, worst, policy), strict=True):
        named = "the end" if successor == world.n_states else str(successor)
        assert row["likelier"] == named
        assert row["rise"] == pytest.approx(rise, abs=1e-12)


@pytest.mark.parametrize(
    ("world", "ambiguity"),
    [
        *((LAKE, each) for each in (rm.Nominal(), DOUBT, rm.SRectangular(rm.L1(0.4)), rm.L1(0.3, support="all"))),
        (SALES, rm.Penalized(rm.ChiSquare(), 0.5)),
        (SALES, rm.SharedNoise(DOUBT)),
    ],
    ids=repr,
)
def test_what_nature_does(world, ambiguity):
    solution = rm.solve(world, ambiguity)
    table = solution.summary()
    assert_moves(table, world, solution.worst_case, solution.policy)
    for name in ("value", "lower", "upper"):
        np.testing.assert_array_equal(table[name], getattr(solution, name))
    assert (table["rise"] > 0).any() == (ambiguity != rm.Nominal())


def test_each_step_has_its_own_world():
    solution = rm.solve(LAKE, DOUBT, criterion=rm.FiniteHorizon(4))
    table = solution.summary()
    assert len(table) == 4 * LAKE.n_states
    for step in range(4):
        assert_moves(table.where(step=step), LAKE, solution.worst_case[step], solution.policy[step])


def test_an_episode_that_nature_ends():
    world = rm.MDP.from_rows([0, 0], [0, 0], [0, 1], [0.9, 0.1], [1.0, 1.0], 0.9, n_states=1)
    (row,) = rm.solve(world, rm.Constrained(rm.TotalVariation(), 0.2)).summary()
    assert row["likelier"] == "the end"
    assert row["rise"] == pytest.approx(0.2, abs=1e-6)


def test_with_names_and_the_average_reward():
    solution = rm.solve(MACHINE, DOUBT, criterion=rm.AverageReward())
    table = solution.summary()
    assert list(table.columns) == [
        "state",
        "action",
        "gain",
        "gain_lower",
        "gain_upper",
        "bias",
        "likelier",
        "rise",
    ]
    assert table[0]["likelier"] == "broken"
    keep, broken = MACHINE.row("age 0", "keep"), solution.worst_case.row("age 0", "keep")
    assert broken["successor"].tolist() == keep["successor"].tolist() == ["age 1", "broken"]
    assert table[0]["rise"] == pytest.approx(broken["probability"][1] - keep["probability"][1], abs=1e-12)


def test_a_learner_without_a_model_says_nothing_of_nature():
    world = rm.Simulator(lambda s, a, rng: (1.0, 1 - s, False), 2, 1, 0.5, reward_range=(0.0, 1.0))
    learned = rm.GenerativeQLearning(rm.Penalized(rm.KL(), 1.0)).run(world, samples=400)
    assert list(learned.summary().columns) == ["state", "action", "value", "lower", "upper"]


def test_it_is_shown_as_text_and_as_html_and_long_ones_are_shortened():
    solution = rm.solve(rm.problems.garnet(5000, 3, 4, 0.9, seed=3), DOUBT)
    text, html = repr(solution.summary()), solution.summary()._repr_html_()
    assert text.startswith("Solution, converged, certified to ")
    assert len(text.splitlines()) == 23
    assert "\n   4999  " in text
    assert html.count("<tr>") == 22


@pytest.mark.parametrize("world", [MACHINE, rm.solve(MACHINE, DOUBT).worst_case], ids=["model", "worst case"])
def test_a_row_is_a_small_table(world):
    row = world.row("age 5", 0)
    assert list(row.columns) == ["successor", "probability", "reward"]
    assert row["successor"].tolist() == ["age 6", "broken"]
    assert row["probability"].sum() == pytest.approx(1.0)
    assert "successor" in row._repr_html_()
