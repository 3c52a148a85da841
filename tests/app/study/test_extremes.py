"""Problems at the edge: one state, one action, no chance, no discount, odd names, odd sizes, thousands of states."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import escape

import robustmdp as rm
from app.study.reading import page_of, text
from robustmdp.app.study import Analysis
from robustmdp.app.study.names import short

HOSTILE = ["<b>x</b>", "ü & “q”", "日本", "</script><script>alert(1)</script>"]


def rows(states: int = 4, actions: int = 2, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).dirichlet(np.ones(states), size=(states, actions))


def rewards(*shape: int, seed: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random(shape)


def told(analysis: Analysis) -> tuple[str, str]:
    """The lead and the whole page."""
    return analysis.headline, page_of(analysis)


PROBLEMS: dict[str, Any] = {
    "one state": lambda: rm.MDP.from_arrays(np.ones((1, 1, 1)), np.ones((1, 1)), 0.9),
    "one action": lambda: rm.MDP.from_arrays(rows(4, 1), rewards(4, 1), 0.9),
    "no chance": lambda: rm.MDP.from_rows([0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1], [1, 0, 2], 0.9),
    "discount 0": lambda: rm.MDP.from_arrays(rows(), rewards(4, 2), 0.0),
    "discount 0, rewards on successors": lambda: rm.MDP.from_arrays(rows(), rewards(4, 2, 4), 0.0),
    "rewards on successors": lambda: rm.MDP.from_arrays(rows(), rewards(4, 2, 4), 0.9),
    "no rewards": lambda: rm.MDP.from_arrays(rows(), np.zeros((4, 2)), 0.9),
    "huge rewards": lambda: rm.MDP.from_arrays(rows(), 1e9 * rewards(4, 2), 0.9),
    "tiny rewards": lambda: rm.MDP.from_arrays(rows(), 1e-9 * rewards(4, 2), 0.9),
    "far sight": lambda: rm.MDP.from_arrays(rows(), rewards(4, 2), 0.9999),
    "uneven actions": lambda: rm.MDP.from_rows([0, 0, 1], [0, 0, 1], [0, 1, 0], [0.5, 0.5, 1], [1, 1, 2], 0.9),
    "ends": lambda: rm.MDP.from_rows(
        [0, 0, 0], [0, 0, 1], [0, 0, 0], [0.5, 0.5, 1], [1, 1, 0.4], 0.9, terminated=[0, 1, 0]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_has_a_page(name: str) -> None:
    mdp = PROBLEMS[name]()
    study = (analysis := rm.analyse(mdp)).study
    lead, page = told(analysis)
    assert lead.startswith(("Keep the nominal policy", "No advice without data."))
    assert page.endswith("</html>\n")
    for word in ("nan", "inf<", ">None<", "-0<"):
        assert word not in page.split("<main")[1].split("<script")[0]
    assert all(point.robust.status.code == "converged" for point in study.sweep.points)
    if np.any(mdp.rewards):
        solution = study.suggestion.solution
        exact = rm.solve(mdp, study.suggestion.ambiguity, tol=1e-10)
        assert (solution.lower <= exact.upper).all()
        assert (solution.upper >= exact.lower).all()


@pytest.mark.parametrize("name", ["one state", "no chance"])
def test_where_nothing_is_left_to_chance_there_is_nothing_to_bend(name: str) -> None:
    analysis = rm.analyse(PROBLEMS[name]())
    assert analysis.study.certain
    lead, page = told(analysis)
    assert "leaves nothing to chance" in lead
    assert "so nature can change nothing" in page
    assert 'class="distribution"' not in page
    assert np.ptp(analysis.study.sweep.curve["worst"]) == pytest.approx(0.0, abs=1e-5)


def test_where_robustness_never_pays() -> None:
    analysis = rm.analyse(rm.problems.river_swim(), initial=0)
    lead, page = told(analysis)
    assert lead.startswith("Keep the nominal policy: at every level that was tried")
    assert isinstance(analysis.study.suggestion.ambiguity, rm.Nominal)
    assert len(analysis.study.changed) == 0
    assert "Nowhere: " in page
    assert "knee" not in page.split("<main")[1].split("<script")[0]  # there is none
    assert "the best possible, if the model is right, is" in page


def test_peaks_below_the_certified_error_are_not_drawn() -> None:
    """The curve of a world without chance showed a spike of 1e-7, magnified to the height of the plot."""
    analysis = rm.analyse(rm.MDP.from_gymnasium("CliffWalking-v1", 0.95), initial=36)
    for line in analysis.figures["curve-weight"].data:
        assert np.ptp(line.y) == 0.0


@pytest.mark.parametrize("divergence", [rm.TotalVariation(), rm.CressieRead(3), rm.Burg(), rm.Hellinger()], ids=repr)
def test_every_divergence(divergence: Any) -> None:
    analysis = rm.analyse(rm.problems.machine_replacement(), divergence, initial=0)
    study = analysis.study
    assert isinstance(study.doubt, rm.Penalized)
    _, page = told(analysis)
    assert f"{divergence.name} divergence" in page
    assert f"rm.{divergence!r}" in analysis.code
    radius = study.matching.get("radius", np.inf)
    answer = rm.worst_case(rm.Constrained(divergence, radius), [0.5, 0.5], [1.0, 0.0])
    coin = f"with a radius of {short(radius)} it may turn a chance of 50 % into {100 * answer.distribution[0]:.0f} %"
    assert (coin in page) == np.isfinite(radius)  # a small price may be worth any radius


def test_names_are_text(tmp_path: Path) -> None:
    mdp = rm.MDP.from_arrays(rows(seed=5), rewards(4, 2, 4), 0.9, state_names=HOSTILE, action_names=["<i>", "\"'"])
    analysis = rm.analyse(
        mdp,
        initial=3,
        title="<title> & “more”",
        facts=[("<from>", "a < b")],
        policies={"</td>": np.zeros(4, int)},
        source="mdp = '</code>'",
    )
    text = analysis.write(tmp_path / "page.html").read_text(encoding="utf-8")
    body = text.split("<main")[1].split("<script")[0]
    assert "<b>x" not in body
    assert "alert(1)</script>" not in body
    for name in (*HOSTILE, "a < b", "</td>", "mdp = '</code>'"):
        assert str(escape(name)) in body
    assert text.count("<script") == 3


def test_states_that_were_never_seen() -> None:
    log = rm.Trajectory([0, 0, 0, 2, 2], [0, 0, 1, 0, 1], [1.0, 1.0, 0.5, 0.0, 0.2], [0, 2, 0, 0, 2], n_states=4)
    model, counts, unseen = rm.estimate(log, 0.9)
    assert {1, 3} <= set(unseen[:, 0].tolist())
    lead, page = told(rm.analyse(model, counts=counts, initial=0))
    assert lead
    assert "plausible given the data" in page
    assert "share of the radii" in page


def test_a_radius_for_each_pair() -> None:
    """The doubt of a log is an array of radii: it has no single level to match."""
    rng = np.random.default_rng(0)
    state, action = rng.integers(0, 3, 200), rng.integers(0, 2, 200)
    lucky = rng.random(200) < 0.7
    reward = np.where(action == 0, 0.45, np.where(lucky, 1.0, -0.8))
    following = np.where(action == 0, state, np.where(lucky, (state + 1) % 3, 0))
    model, counts, _ = rm.estimate(rm.Trajectory(state, action, reward, following), 0.9)
    analysis = rm.analyse(model, counts=counts, initial=0)
    study = analysis.study
    _, page = told(analysis)
    assert study.sweep.name == "share"
    assert study.matching == {}
    assert study.doubt.level == pytest.approx(study.suggestion.radii * study.sweep.points[study.sweep.shown].level)
    assert "advice.radii" in analysis.code
    assert len(study.worse(study.sweep.points[study.sweep.shown].robust.policy)) == 0
    assert "share of the radii that the counts give" in text(page)
    assert "Kullback-Leibler radius per pair" in page


@pytest.mark.parametrize(
    ("name", "caution"),
    [
        ("tiny rewards", "errors are certified to 1e-06: smaller differences do not show"),
        ("discount 0", "At discount 0 a penalty costs nature nothing"),
    ],
)
def test_cautions(name: str, caution: str) -> None:
    assert caution in told(rm.analyse(PROBLEMS[name]()))[1]
    assert caution not in told(rm.analyse(rm.problems.chain()))[1]


def test_five_thousand_states_take_well_below_a_minute(tmp_path: Path) -> None:
    """About 8 s alone on two cores."""
    began = time.monotonic()
    analysis = rm.analyse(rm.problems.garnet(5000, 4, 5, 0.95, seed=0), initial=0)
    page = analysis.write(tmp_path / "page.html")
    assert time.monotonic() - began < 60.0
    assert page.stat().st_size < 3_000_000
    assert "(24 of 5,000 states)" in page.read_text()


@pytest.mark.parametrize(
    ("initial", "words"),
    [
        (None, "any state, equally likely"),
        (3, "age 3"),
        (np.int64(9), "broken"),
        (np.eye(10)[2], "age 2"),
        (np.r_[0.5, 0.5, np.zeros(8)], "one of 2 states, equally likely"),
        (np.r_[0.7, 0.3, np.zeros(8)], "one of 2 states"),
    ],
)
def test_where_it_begins(initial: Any, words: str) -> None:
    analysis = rm.analyse(rm.problems.machine_replacement(), initial=initial)
    assert f"<dt>start</dt><dd>{words}</dd>" in told(analysis)[1]
    written = {0: f", initial={initial}", 1: ", initial=initial"}[np.ndim(initial)] if initial is not None else ""
    assert f"rm.robustness_curve(mdp, rm.KL(), rm.levels_for(mdp, rm.KL(), count=30){written})" in analysis.code
