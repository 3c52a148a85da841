"""Worlds that are places: every state where the environment has it, every arrow where the action leads."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.toy_text.frozen_lake import generate_random_map

import robustmdp as rm
from robustmdp.app.commands.environments import layout_of
from robustmdp.app.study import Layout
from robustmdp.app.study.names import Names
from robustmdp.app.study.policies import policy_map, shades, value_span
from robustmdp.app.study.study import Study

STEPS = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}
LAKES = {
    "4x4": {"map_name": "4x4"},
    "8x8": {"map_name": "8x8"},
    "random": {"desc": generate_random_map(size=6, p=0.7, seed=3)},
    "oblong": {"desc": ["SFFFF", "FHFHF", "FFFFG"]},
}


@pytest.mark.parametrize("name", LAKES)
def test_arrows_on_the_lake_lead_where_they_point(name: str) -> None:
    env: Any = gymnasium.make("FrozenLake-v1", is_slippery=False, **LAKES[name]).unwrapped
    layout = layout_of(env)
    assert layout is not None
    assert (layout.rows, layout.columns) == env.desc.shape
    assert_arrows(env, layout)
    letters = env.desc.astype(str).ravel()
    assert [layout.mark(state) or "F" for state in range(layout.n_states)] == letters.tolist()
    assert layout.closed == {state for state, letter in enumerate(letters) if letter in "HG"}


def test_arrows_on_the_cliff_lead_where_they_point() -> None:
    env: Any = gymnasium.make("CliffWalking-v1").unwrapped
    layout = layout_of(env)
    assert layout is not None
    assert (layout.rows, layout.columns) == (4, 12)
    assert_arrows(env, layout)
    assert layout.name(36) == "row 4, column 1 (S)"
    assert [layout.mark(state) for state in (36, 37, 46, 47)] == ["S", "C", "C", "G"]
    assert layout.closed == set(range(37, 48))
    assert np.flatnonzero(env.initial_state_distrib).tolist() == [36]


def assert_arrows(env: Any, layout: Layout) -> None:
    """From every open state, each action moves by one place in its arrow's direction, or stays at a wall or falls."""
    moved = 0
    for state in range(layout.n_states):
        if state in layout.closed:
            continue
        for action, arrow in enumerate(layout.arrows):
            ((_, following, _, _),) = env.P[state][action]
            here, there = layout.place(state), layout.place(int(following))
            wanted = tuple(np.add(here, STEPS[arrow]).tolist())
            inside = 0 <= wanted[0] < layout.rows and 0 <= wanted[1] < layout.columns
            fell = following == 36 and layout.n_states == 48 and layout.mark(wanted[0] * 12 + wanted[1]) == "C"
            assert fell or there == (wanted if inside else here)
            moved += there == wanted
    assert moved >= layout.n_states - len(layout.closed)


@pytest.mark.parametrize("name", ["Taxi-v4", "Blackjack-v1"])
def test_other_environments_have_no_layout(name: str) -> None:
    assert layout_of(gymnasium.make(name)) is None


def test_a_river_is_one_row() -> None:
    layout = Layout(1, 6, ("drift", "swim"))
    assert [layout.place(state) for state in (0, 5)] == [(0, 0), (0, 5)]
    assert layout.name(2) == "column 3"
    names = Names(rm.problems.river_swim(), layout)
    assert names.state(2) == "bank 2"  # the model's own names come first
    assert names.action(1) == "swim"


def test_the_room_of_a_grid_world() -> None:
    """The ready-made room is laid out row by row: going right from the corner moves on by one."""
    mdp = rm.problems.grid_world(5)
    names = Names(mdp, Layout(5, 5, tuple(mdp.action_names or ())))
    assert set(mdp.action_names or ()) >= {"up", "right", "down", "left"}
    for arrow, (down, right) in STEPS.items():
        action = (mdp.action_names or ()).index(arrow)
        pair = mdp.pair(12, action)
        entries = slice(mdp.indptr[pair], mdp.indptr[pair + 1])
        likeliest = int(mdp.indices[entries][mdp.probabilities[entries].argmax()])
        assert likeliest == 12 + 5 * down + right
        assert names.action(action) == arrow


def test_a_layout_must_have_a_place_for_each_state() -> None:
    with pytest.raises(ValueError, match=r"the layout must have a place for each of the 6 states: got 4"):
        rm.analyse(rm.problems.river_swim(), layout=Layout(2, 2, ("a", "b")))


@pytest.fixture(scope="module")
def lake() -> tuple[Study, Names]:
    env = gymnasium.make("FrozenLake-v1", success_rate=0.8)
    worlds = rm.worlds.environments("FrozenLake-v1", 0.95, success_rate=[0.3, 0.4, 0.5, 0.6])
    analysis = rm.analyse(rm.MDP.from_gymnasium(env, 0.95), held_out=worlds, initial=0, layout=layout_of(env))
    return analysis.study, analysis.names


def test_cells_say_what_the_policy_does(lake: tuple[Study, Names]) -> None:
    study, names = lake
    policy, value = study.robust.policy, study.robust.value
    grid = policy_map(names, policy, value, {3, 6}, "Policy", value_span(names, value))
    arrows = {"left": "←", "down": "↓", "right": "→", "up": "↑"}
    assert names.layout is not None
    assert (grid["columns"], len(grid["cells"])) == (4, 16)
    for state, cell in enumerate(grid["cells"]):
        closed = state in names.layout.closed
        assert cell["action"] == ("" if closed else arrows[names.layout.arrows[int(policy[state])]])
        assert cell["value"] == "" if closed else float(cell["value"]) == pytest.approx(value[state], abs=0.005)
        assert cell["kind"].endswith("changed") == (state in (3, 6))
        assert (cell["kind"] == "closed") == closed
        assert cell["detail"].startswith(names.state(state))


def test_shades_are_in_the_order_of_values(lake: tuple[Study, Names]) -> None:
    study, names = lake
    value = study.robust.value
    grid = policy_map(names, study.robust.policy, value, set(), "Policy", value_span(names, value))
    assert names.layout is not None
    kept = [state for state in range(16) if state not in names.layout.closed]
    order = sorted(kept, key=lambda state: study.robust.value[state])
    found = [int(grid["cells"][state]["kind"][1:]) for state in order]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (0, len(shades()) - 1)


def test_a_rounded_zero_has_no_sign(lake: tuple[Study, Names]) -> None:
    study, names = lake
    grid = policy_map(names, study.robust.policy, np.full(16, -1e-7), set(), "Policy", (-1e-7, 0.9))
    assert {cell["value"] for cell in grid["cells"]} == {"", "0.00"}


def relative_luminance(colour: str) -> float:
    """As WCAG defines it."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    rgb = np.array([int(digits[i : i + 2], 16) for i in (0, 2, 4)]) / 255.0
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def test_text_can_be_read_on_every_shade() -> None:
    for fill, ink in shades():
        one, other = sorted((relative_luminance(fill), relative_luminance(ink)))
        assert (other + 0.05) / (one + 0.05) >= 4.5


def test_large_worlds_are_drawn_once_and_tabled_in_the_slider(tmp_path: Any) -> None:
    """Thirty frames of a thousand cells would make a page too large to be sent."""
    mdp = rm.problems.grid_world(32)
    analysis = rm.analyse(mdp, initial=0, layout=Layout(32, 32, tuple(mdp.action_names or ())))
    page = analysis.write(tmp_path / "page.html")
    text = page.read_text()
    assert page.stat().st_size < 3_000_000
    assert 1 <= text.count('<div class="cells"') <= 2
    assert "(24 of 1,024 states)" in text
