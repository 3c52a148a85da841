"""What 50 levels cost, in solves of one of them: each starts from the last, and most actions need no second look."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import numpy as np

import robustmdp as rm
from benchmarks.figure import Figure, best_time
from robustmdp.planning.continuation import solve_along

TOY = {"scale": 100, "count": 4}


def figures(scale: int = 1, count: int = 50) -> Iterator[Figure]:
    """`count` levels; of states there are `scale` times fewer."""
    large, small, side = 10_000 // scale, 2_000 // scale, isqrt(10_000 // scale)
    worlds = {
        f"garnet {large:,} x 10 x 10": rm.problems.garnet(large, 10, 10, 0.95, seed=0),
        f"garnet {small:,} x 5 x 10": rm.problems.garnet(small, 5, 10, 0.99, seed=0),
        f"grid {side} x {side}": rm.problems.grid_world(side),
        "inventory, 21 states": rm.problems.inventory(),
    }
    for name, mdp in worlds.items():
        spread = float(np.ptp(rm.solve(mdp, rm.Nominal(), tol=1e-6).value))
        for divergence in (rm.ChiSquare(), rm.KL()):
            for form in (rm.Penalized, rm.Constrained):
                penalized = form is rm.Penalized
                levels = np.geomspace(100, 0.01, count) * spread if penalized else np.geomspace(1e-3, 1, count)
                yield from _ratios(f"{name}, {divergence.name}", mdp, form, divergence, levels)


def _ratios(name: str, mdp: rm.MDP, form: type, divergence: object, levels: np.ndarray) -> Iterator[Figure]:
    ambiguities = [form(divergence, level) for level in levels]
    some = [ambiguities[at] for at in np.linspace(0, len(levels) - 1, 10).astype(int)]  # from end to end
    how = {"tol": 1e-6, "threads": 1}
    one = best_time(lambda: [rm.solve(mdp, ambiguity, **how) for ambiguity in some], 2) / len(some)
    family = [(float(np.log(ambiguity.level)), ambiguity) for ambiguity in ambiguities]
    along = best_time(lambda: list(solve_along(mdp, family, **how)), 2)
    kind = "weights" if form is rm.Penalized else "radii"
    whole = best_time(lambda: rm.robustness_curve(mdp, divergence, **{kind: levels}, **how), 2)
    yield Figure(f"{name}, {len(levels)} {kind} / one solve", along / one, 25.0)
    yield Figure(f"{name}, robustness_curve over {len(levels)} {kind} / one solve", whole / one)
