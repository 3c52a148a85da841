"""Sweeps of norm balls, intervals and risk measures against the nominal one, on one core."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import robustmdp as rm
from benchmarks.figure import Figure, run_time
from benchmarks.tasks import garnet, iterates

SETS: dict[str, tuple[Callable[[rm.MDP], object], float | None]] = {
    "intervals": (lambda mdp: rm.Interval(0.7 * mdp.probabilities, np.minimum(1, 1.3 * mdp.probabilities + 0.02)), 2.5),
    "L1": (lambda mdp: rm.L1(0.2), 3.0),
    "CVaR": (lambda mdp: rm.CVaR(0.3), 3.0),
    "LInf": (lambda mdp: rm.LInf(0.05), None),
    "contamination": (lambda mdp: rm.Contamination(0.1), None),
    "mean and CVaR": (lambda mdp: rm.MeanRisk(0.5, rm.CVaR(0.3)), None),
    "L2": (lambda mdp: rm.L2(0.1), None),
    "L1, weighted": (lambda mdp: rm.L1(0.2, weights=np.linspace(0.5, 2.0, mdp.n_states)), None),
    "L1, s-rectangular": (lambda mdp: rm.SRectangular(rm.L1(0.2)), 8.0),
    "chi-square, s-rectangular": (lambda mdp: rm.SRectangular(rm.Constrained(rm.ChiSquare(), 0.2)), 8.0),
    "L1, any successor": (lambda mdp: rm.L1(0.2, support="all"), None),
}


def figures(n_states: int = 200_000, rounds: int = 9) -> Iterator[Figure]:
    mdp = garnet(n_states, 10, 10, 0.95)
    chosen = {"nominal": rm.Nominal(), **{name: make(mdp) for name, (make, _) in SETS.items()}}
    operators = {name: rm.RobustBellman(mdp, ambiguity, threads=1) for name, ambiguity in chosen.items()}
    values, out = iterates(n_states), np.empty(n_states)
    best = dict.fromkeys(operators, np.inf)
    for turn in range(rounds):  # in turn, so that a busy moment does not hit one set alone
        for name, bellman in operators.items():
            best[name] = min(best[name], run_time(lambda: bellman.apply(values[turn % 3], out)))
    for name, (_, bar) in SETS.items():
        yield Figure(f"garnet {n_states:,}: {name} / nominal", best[name] / best["nominal"], bar)
