"""What the page's tables say, against tables made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import robustmdp as rm
from app.study.reading import section, sections_html, tables, text
from robustmdp.app.study import Analysis

GOOD, BAD = 1, 2


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    """A bet that may be lost against a sure thing: trusting it bets, a robust policy does not."""
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, [GOOD, BAD]] = 0.7, 0.3
    transitions[0, 1, 0] = 1.0
    transitions[GOOD:, :, 0] = 1.0
    rewards = np.array([[0.0, 0.5], [2.0, 2.0], [-0.2, -0.2]])
    mdp = rm.MDP.from_arrays(
        transitions, rewards, 0.9, state_names=["table", "won", "lost"], action_names=["bet", "leave"]
    )
    worlds = []
    for chance in np.linspace(0.38, 0.8, 21):
        other = transitions.copy()
        other[0, 0, [GOOD, BAD]] = chance, 1 - chance
        worlds.append(rm.MDP.from_arrays(other, rewards, 0.9))
    return rm.analyse(mdp, held_out=worlds, initial=0)


def test_a_lead_does_not_hide_the_advice(analysis: Analysis, tmp_path: Path) -> None:
    """It stands first; what the model and its data advise then opens the decision."""
    page = replace(analysis, lead="Bet no more.").write(tmp_path / "page.html").read_text()
    assert '<p class="lead">Bet no more.</p>' in page
    advice = analysis.headline
    assert f"<p>The advice from this model and its data alone: {advice[0].lower()}{advice[1:]}</p>" in page
    assert "alone:" not in analysis.write(tmp_path / "own.html").read_text()


def test_where_the_decision_changes(analysis: Analysis) -> None:
    """Who does what, what it gains, and which way nature moves chances."""
    table, _ = tables(section(analysis, "Where robustness changes the decision"))
    assert table.caption == "A better action in 1 state"
    ((state, nominal, robust, gain, moved, still),) = table.rows
    assert (state, nominal, robust) == ("table", "bet", "leave")
    q = analysis.study.robust.q
    assert float(gain) == pytest.approx(q[0, 1] - q[0, 0], rel=1e-3)
    assert float(gain) > 0
    assert moved.endswith("from won to lost")
    assert "from" not in still


def test_the_best_is_best_in_the_worst_tenth(analysis: Analysis) -> None:
    """Not on average, where betting is better."""
    table = tables(section(analysis, "When the world is not the model"))[0]
    names = [row[0] for row in table.rows]
    values = {name: analysis.study.stress.outcomes.where(policy=name, family="held out")["value"] for name in names}
    tails = {name: np.sort(value)[:2].mean() for name, value in values.items()}
    best = max(tails.values())
    assert {names[at] for at in table.marked} == {name for name in names if tails[name] > best - 1e-5}
    assert "nominal" not in {names[at] for at in table.marked}
    assert [float(row[1]) for row in table.rows] == pytest.approx([values[name].mean() for name in names], abs=1e-2)


def test_the_error_of_the_curves_is_the_largest(analysis: Analysis) -> None:
    errors = [bound for sweep in analysis.study.sweeps for bound in sweep.curve["error_bound"]]
    assert f"every worst case on a curve is known to within {max(errors):.1g}" in text(sections_html(analysis))
