"""Reachability and rewards on interval models: our certified bounds against stormpy's robust value iteration."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import robustmdp as rm
from benchmarks.figure import Figure, run_time

TOY = {"sizes": (8,)}
TOL = 1e-6  # Storm's own precision, which it does not prove
LONGEST = 10.0  # seconds, at 170,000 states
WIDTH = 0.05  # of an interval, on each side


class Question(NamedTuple):
    """What is asked, in Storm's words and in ours."""

    formula: str
    arguments: dict[str, Any]


QUESTIONS = {
    "reward": Question('Rmin=? [F "goal"]', {"rewards": True, "minimise": True}),
    "probability": Question('Pmax=? [!"bad" U "goal"]', {"avoid": "bad"}),
}


def grid(size: int) -> tuple[rm.MDP, rm.Interval]:
    """A robot that slips to the sides with 0.1 each, one state in twenty a hazard, the goal in the far corner."""
    states = np.arange(size * size)
    row, column = states // size, states % size
    moves = ((0, 1), (1, 0), (0, -1), (-1, 0))
    parts = []
    for action in range(4):
        for turn, chance in ((0, 0.8), (1, 0.1), (3, 0.1)):
            down, right = moves[(action + turn) % 4]
            to = np.clip(row + down, 0, size - 1) * size + np.clip(column + right, 0, size - 1)
            parts.append((states, np.full(len(states), action), to, np.full(len(states), chance)))
    table = [np.concatenate(each) for each in zip(*parts, strict=True)]
    hazard = np.random.default_rng(0).random(len(states)) < 0.05
    hazard[[0, -1]] = False
    start = np.zeros(len(states))
    start[0] = 1.0
    mdp = rm.MDP.from_rows(*table, np.ones(len(table[0])), 1.0, n_states=len(states))
    mdp = mdp.with_labels({"goal": states == len(states) - 1, "bad": hazard}).with_initial(start)
    return mdp, intervals(mdp)


def intervals(mdp: rm.MDP) -> rm.Interval:
    p = mdp.probabilities
    lower, upper = np.maximum(p - WIDTH, 0.5 * p), np.minimum(p + WIDTH, 1.0)
    return rm.Interval(np.where(p == 1.0, 1.0, lower), upper)


def figures(sizes: tuple[int, ...] = (30, 120, 412)) -> Iterator[Figure]:
    for size in sizes:
        mdp, bounds = grid(size)
        with tempfile.TemporaryDirectory() as folder:
            file = rm.write_interval(mdp, bounds, Path(folder) / "grid.drn")
            storm = _open(file)
        for name, question in QUESTIONS.items():
            for helps in (False, True):
                doubt = rm.Optimistic(bounds) if helps else bounds
                label = f"grid of {mdp.n_states:,}, {name}, nature {'helps' if helps else 'is against it'}"
                rounds = 1 if size > 200 else 3
                own = min(run_time(lambda: _ask(mdp, doubt, question)) for _ in range(rounds))
                yield Figure(f"{label}: seconds", own, LONGEST if size > 400 else None, unit="s")
                if storm is not None:
                    yield Figure(f"{label}: ours / Storm's", own / min(storm(question.formula, helps, rounds)), 1.0)


def _ask(mdp: rm.MDP, doubt: Any, question: Question) -> None:
    found = rm.reach(mdp, doubt, "goal", tol=TOL, threads=1, **question.arguments)
    assert found.converged, found.status


def _open(file: Path) -> Any:
    """How long Storm takes for a formula, or None where it is not installed."""
    try:
        import stormpy
    except ImportError:
        return None
    model = stormpy.build_model_from_drn[stormpy.Interval](str(file))
    modes = stormpy.UncertaintyResolutionMode

    def seconds(formula: str, helps: bool, rounds: int) -> list[float]:
        asked = stormpy.parse_properties(formula)[0]
        mode = modes.COOPERATIVE if helps else modes.ROBUST
        return [
            run_time(lambda: stormpy.model_checking(model, asked, uncertainty_resolution_mode=mode))
            for _ in range(rounds)
        ]

    return seconds
