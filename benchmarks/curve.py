"""What 50 levels cost, in solves of one of them: each starts from the last, and most actions need no second look."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import robustmdp as rm
from benchmarks.figure import Figure, best_time
from robustmdp.planning.continuation import solve_along

LEVELS = 50


def figures() -> Iterator[Figure]:
    worlds = {
        "garnet 10,000 x 10 x 10": rm.problems.garnet(10_000, 10, 10, 0.95, seed=0),
        "garnet 2,000 x 5 x 10": rm.problems.garnet(2_000, 5, 10, 0.99, seed=0),
        "grid 100 x 100": rm.problems.grid_world(100),
        "inventory, 21 states": rm.problems.inventory(),
    }
    for name, mdp in worlds.items():
        spread = float(np.ptp(rm.solve(mdp, rm.Nominal(), tol=1e-6).value))
        for divergence in (rm.ChiSquare(), rm.KL()):
            for form in (rm.Penalized, rm.Constrained):
                penalized = form is rm.Penalized
                levels = np.geomspace(100, 0.01, LEVELS) * spread if penalized else np.geomspace(1e-3, 1, LEVELS)
                yield from _ratios(f"{name}, {divergence.name}", mdp, form, divergence, levels)


def _ratios(name: str, mdp: rm.MDP, form: type, divergence: object, levels: np.ndarray) -> Iterator[Figure]:
    ambiguities = [form(divergence, level) for level in levels]
    some = [ambiguities[at] for at in np.linspace(0, LEVELS - 1, 10).astype(int)]  # from end to end
    how = {"tol": 1e-6, "threads": 1}
    one = best_time(lambda: [rm.solve(mdp, ambiguity, **how) for ambiguity in some], 2) / len(some)
    family = [(float(np.log(ambiguity.level)), ambiguity) for ambiguity in ambiguities]
    along = best_time(lambda: list(solve_along(mdp, family, **how)), 2)
    kind = "weights" if form is rm.Penalized else "radii"
    whole = best_time(lambda: rm.robustness_curve(mdp, divergence, **{kind: levels}, **how), 2)
    yield Figure(f"{name}, {LEVELS} {kind} / one solve", along / one, 25.0)
    yield Figure(f"{name}, robustness_curve over {LEVELS} {kind} / one solve", whole / one)
