"""Tasks of the whole, as a new user would do them: how many lines, how many commands, and is the answer right?"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import nbinom

import robustmdp as rm
from app.commands.calls import run

MOST_LINES = 25
SIZE, TIMES = 4, 1 / 3  # the demand that the planner does not know: negative binomial, mean 8


def shop(demand: Any) -> rm.MDP:
    """A unit sold brings 5, an order costs 4 and 3 per unit, a unit kept 0.1, a unit of unmet demand 1."""

    def step(stock: Any, order: Any, demand: Any) -> Any:
        have = np.minimum(stock + order, 24)
        sold = np.minimum(have, demand)
        return have - sold, 5 * sold - 3 * order - 4 * (order > 0) - 0.1 * (have - sold) - (demand - sold)

    return rm.MDP.from_noise(step, n_states=25, n_actions=15, noise=demand, discount=0.95)


def plan_orders(file: Path) -> tuple[list[str], list[str]]:
    """From a column of daily demand to orders, and what they earn."""
    counts = np.bincount(np.loadtxt(file, dtype=int, skiprows=1))
    model = shop((counts + 0.5) / (counts + 0.5).sum())
    ball = rm.Constrained(rm.KL(), rm.radius_from_counts(counts, rm.KL(), confidence=0.95))
    robust = rm.solve(model, rm.SharedNoise(ball))
    best = rm.evaluate(model, robust.policy, rm.Optimistic(ball))
    orders = robust.policy.argmax(axis=1)
    decision = [f"{stock} in stock: order {order}" for stock, order in enumerate(orders)]
    intervals = [f"{low:.1f} to {high:.1f}" for low, high in zip(robust.lower, best.upper, strict=True)]
    return decision, intervals


def test_from_a_demand_log_to_a_decision_with_intervals(tmp_path: Path) -> None:
    """The intervals hold what the policy earns under the demand that it was never told."""
    assert sum(len(inspect.getsource(part).splitlines()) for part in (shop, plan_orders)) <= MOST_LINES
    days = np.random.default_rng(80).negative_binomial(SIZE, TIMES, size=80)
    (tmp_path / "demand.csv").write_text("demand\n" + "\n".join(map(str, days)) + "\n")
    decision, intervals = plan_orders(tmp_path / "demand.csv")
    orders = [int(line.split()[-1]) for line in decision]
    assert orders[0] > 0 == orders[-1]
    assert (np.diff(orders) <= 0).all()  # the more there is, the less is ordered
    truth = nbinom.pmf(np.arange(80), SIZE, TIMES)
    earned = rm.evaluate(shop(truth / truth.sum()), np.array(orders), rm.Nominal()).value
    for interval, value in zip(intervals, earned, strict=True):
        low, high = map(float, interval.split(" to "))
        assert low <= value <= high


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """A log of 3,000 transitions between named depots; from the last one nothing was ever moved."""
    rng = np.random.default_rng(1)
    depots = [f"depot{number:03d}/zone{zone:02d}" for number in range(3) for zone in range(2)]
    lines = ["state,action,reward,next_state"]
    for _ in range(3000):
        state, action = rng.integers(0, 6), ("hold", "move")[rng.integers(0, 2)]
        after = rng.integers(0, 6) if action == "move" else min(state + rng.integers(0, 2), 5)
        if (depots[state], action) != ("depot002/zone01", "move"):
            lines.append(f"{depots[state]},{action},{state - 2.0 * (action == 'move')},{depots[after]}")
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "visits.csv"


def test_from_a_log_with_names_to_a_page_by_two_commands(visits: Path, tmp_path: Path) -> None:
    model, page = tmp_path / "model.parquet", tmp_path / "page.html"
    estimated = run("estimate", visits, "--discount", 0.9, "--out", model)
    assert estimated.exit_code == 0, estimated.output
    assert "never seen: (depot002/zone01, move)" in estimated.stdout
    analysed = run("analyse", model, "--out", page)
    assert analysed.exit_code == 0, analysed.output
    text = page.read_text(encoding="utf-8")
    for name in ("depot000/zone00", "depot002/zone01", "hold", "move"):
        assert name in text
    assert rm.read(model).state_names == rm.estimate(rm.read_log(visits), 0.9).model.state_names


def test_a_page_from_the_log_itself_and_names_in_every_answer(visits: Path, tmp_path: Path) -> None:
    """With the counts the page also says how far the truth may be."""
    policy = tmp_path / "policy.csv"
    words = [
        ("analyse", visits, "--discount", 0.9, "--out", tmp_path / "page.html"),
        ("suggest", visits, "--discount", 0.9, "--out", policy),
        ("estimate", visits, "--out", tmp_path / "model.csv"),
        ("analyse", tmp_path / "model.csv", "--initial", "depot000/zone00", "--out", tmp_path / "again.html"),
        ("stress", tmp_path / "model.csv", "--policy", policy),
    ]
    for each in words:
        answer = run(*each)
        assert answer.exit_code == 0, answer.output
    assert "depot001/zone01,move," in policy.read_text() or "depot001/zone01,hold," in policy.read_text()
    assert "depot001/zone01" in run("solve", tmp_path / "model.csv").stdout
    assert "state 1" not in (tmp_path / "page.html").read_text(encoding="utf-8")
    wrong = run("suggest", tmp_path / "model.csv", "--initial", "depot000/zone0")
    assert "did you mean 'depot000/zone0" in wrong.stderr
