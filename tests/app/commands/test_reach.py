"""`robustmdp reach`: goals by label, name or number, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from app.commands.calls import record, refused, run

GAMBLE = ([0, 0, 0, 1, 1, 2, 3], [0, 1, 1, 0, 0, 0, 0], [1, 2, 3, 2, 3, 2, 3], [1, 0.3, 0.7, 0.5, 0.5, 1, 1])


@pytest.fixture
def gamble(tmp_path: Path) -> tuple[rm.MDP, Path]:
    """From 0 straight to 2 with probability 0.3, or by way of 1 with 0.5; 3 is lost."""
    mdp = rm.MDP.from_rows(*GAMBLE, [1.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0], 1.0)
    states = np.arange(4)
    mdp = mdp.with_labels({"won": states == 2, "lost": states == 3, "middle": states == 1})
    return mdp, rm.write(mdp, tmp_path / "gamble.drn")


@pytest.mark.parametrize(
    ("words", "ambiguity", "settings", "first"),
    [
        (("--goal", "won"), rm.Nominal(), {"goal": [2]}, 0.5),
        (("--goal", "2"), rm.Nominal(), {"goal": [2]}, 0.5),
        (("--goal", "2,3"), rm.Nominal(), {"goal": [2, 3]}, 1.0),
        (("--goal", "won", "--avoid", "middle"), rm.Nominal(), {"goal": "won", "avoid": [1]}, 0.3),
        (("--goal", "won", "--minimise"), rm.Nominal(), {"goal": "won", "minimise": True}, 0.3),
        (("--goal", "won", "--set", "l1", "--radius", 0.2), rm.L1(0.2), {"goal": "won"}, 0.4),
        (
            ("--goal", "won", "--set", "l1", "--radius", 0.2, "--optimistic"),
            rm.Optimistic(rm.L1(0.2)),
            {"goal": "won"},
            0.6,
        ),
    ],
    ids=str,
)
def test_probabilities(
    gamble: tuple[rm.MDP, Path], words: tuple[Any, ...], ambiguity: Any, settings: dict[str, Any], first: float
) -> None:
    mdp, file = gamble
    given, solution = record("reach", file, *words), rm.reach(mdp, ambiguity, **settings)
    assert given["value"] == pytest.approx(solution.value.tolist(), abs=1e-7)
    assert given["value"][0] == pytest.approx(first, abs=1e-7)
    assert given["ambiguity"] == repr(ambiguity)
    assert given["criterion"] == f"probability of {words[1]}"


def test_steps_and_rewards(gamble: tuple[rm.MDP, Path], tmp_path: Path) -> None:
    mdp, file = gamble
    out = tmp_path / "steps.csv"
    assert record("reach", file, "--goal", "won", "--within", 1, "--out", out)["value"][0][0] == pytest.approx(0.3)
    assert out.read_text().startswith("step,state,action,value")
    given = record("reach", file, "--goal", "2,3", "--rewards")
    assert given["value"] == pytest.approx(rm.reach(mdp, rm.Nominal(), [2, 3], rewards=True).value.tolist())
    said = run("reach", file, "--goal", "won", "--within", 1, "--set", "cvar", "--level", 0.5).stdout
    assert "probability of won within 1 steps" in said
    assert "worst-case probability" in said


def test_values_that_are_infinite_are_said_so(gamble: tuple[rm.MDP, Path]) -> None:
    outcome = run("reach", gamble[1], "--goal", "won", "--rewards", "--minimise")
    assert outcome.exit_code == 0
    assert "inf" in outcome.stdout


@pytest.mark.filterwarnings("default:no transition leads")
def test_a_goal_to_which_nothing_leads_gets_a_warning() -> None:
    outcome = run("reach", "gym:FrozenLake-v1", "--goal", 15)
    assert outcome.exit_code == 0
    assert "no transition leads from another state to the goal; a step that ends the episode" in outcome.stderr


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--goal", "wun"), ("--goal must be one of", "did you mean 'won'?")),
        (("--goal", "2", "--avoid", "losst"), ("did you mean 'lost'?",)),
        (("--goal", "9"), ("--goal must hold states in 0..3: got 9",)),
        (("--goal", "won", "--within", 0), ("--within must be at least 1: got 0",)),
        (("--goal", "won", "--avoid", "lost", "--rewards"), ("give --avoid or --rewards, not both",)),
        (("--goal", "won", "--set", "cvr", "--level", 1), ("did you mean 'cvar'?",)),
    ],
    ids=str,
)
def test_what_is_typed_wrongly(gamble: tuple[rm.MDP, Path], words: tuple[Any, ...], parts: tuple[str, ...]) -> None:
    refused(run("reach", gamble[1], *words), *parts)


def test_a_goal_must_be_given() -> None:
    refused(run("reach", "chain"), "--goal", code=2)
