"""Average reward: seconds to a certified gain, nominal and robust, beside pymdptoolbox's relative value iteration."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import robustmdp as rm
from benchmarks.figure import Figure, best_time
from benchmarks.reach import intervals

TOY = {"n_states": 100, "size": 6}
TOL = 1e-6

SETS: dict[str, Callable[[rm.MDP], Any]] = {
    "nominal": lambda mdp: rm.Nominal(),
    "chi-square penalty": lambda mdp: rm.Penalized(rm.ChiSquare(), 1.0),
    "chi-square ball": lambda mdp: rm.Constrained(rm.ChiSquare(), 0.1),
    "intervals": intervals,
}


def figures(n_states: int = 10_000, size: int = 100) -> Iterator[Figure]:
    """`size` is that of the grid, whose best chain needs hundreds of steps from corner to corner."""
    worlds = {
        f"garnet of {n_states:,}": rm.problems.garnet(n_states, 10, 10, 0.95, seed=0),
        f"grid {size} x {size}": rm.problems.grid_world(size),
    }
    for label, mdp in worlds.items():
        times = {}
        for name, make in SETS.items():
            doubt = make(mdp)
            times[name] = best_time(lambda mdp=mdp, doubt=doubt: _solve(mdp, doubt), repeats=3, limit=10.0)
            yield Figure(f"average, {label}, {name}: seconds", times[name], unit="s")
        peer = _relative_value_iteration(mdp)
        if peer is not None:
            theirs = best_time(peer, repeats=1, limit=10.0)
            for name, seconds in times.items():
                bar = 1.0 if name == "nominal" else None
                yield Figure(f"average, {label}, {name} / pymdptoolbox's nominal", seconds / theirs, bar)


def _solve(mdp: rm.MDP, doubt: Any) -> None:
    found = rm.solve(mdp, doubt, criterion=rm.AverageReward(), tol=TOL, threads=1)
    assert found.converged, found.status


def _relative_value_iteration(mdp: rm.MDP) -> Callable[[], None] | None:
    """Until the span is TOL, or for 10,000 sweeps; None where it is not installed."""
    try:
        from mdptoolbox.mdp import RelativeValueIteration
    except ImportError:
        return None
    shape, n_actions = (mdp.n_pairs, mdp.n_states), mdp.n_actions
    rows = sp.csr_matrix((mdp.probabilities, mdp.indices, mdp.indptr), shape=shape)
    transitions = [rows[action::n_actions] for action in range(n_actions)]
    rewards = np.asarray(mdp.mean_rewards()).reshape(mdp.n_states, n_actions)
    with contextlib.redirect_stdout(io.StringIO()):
        problem = RelativeValueIteration(transitions, rewards, epsilon=TOL, max_iter=10_000)

    def run() -> None:
        problem.V, problem.gain, problem.iter = np.zeros(mdp.n_states), 0, 0
        with contextlib.redirect_stdout(io.StringIO()):
            problem.run()

    return run
