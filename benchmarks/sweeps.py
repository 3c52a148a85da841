"""Bars 4 and 7: a robust sweep against the nominal one, scipy, the reading of memory, and a second core."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import robustmdp as rm
from benchmarks.figure import Figure, best_time


def figures(n_states: int = 200_000) -> list[Figure]:
    mdp = rm.problems.garnet(n_states, 10, 10, 0.95, seed=0)
    rng = np.random.default_rng(0)
    # Successive iterates differ a little, as in a solver: nothing starts from its own answer.
    first = rng.random(n_states) * 10.0
    iterates = [first + 0.05 * rng.random(n_states) for _ in range(3)]

    def sweep_time(ambiguity: rm.Nominal | rm.Penalized | rm.Constrained, threads: int) -> float:
        bellman = rm.RobustBellman(mdp, ambiguity, threads=threads)
        out = np.empty(n_states)
        turn = iter(range(1_000))
        return best_time(lambda: bellman.apply(iterates[next(turn) % 3], out), 9)

    nominal = sweep_time(rm.Nominal(), 1)
    matrix = sp.csr_array((mdp.probabilities, mdp.indices, mdp.indptr), shape=(mdp.n_pairs, n_states))
    scipy = best_time(lambda: (mdp.rewards + 0.95 * (matrix @ first)).reshape(n_states, 10).max(axis=1), 9)
    reading = best_time(lambda: (mdp.probabilities.sum(), mdp.indices.view(np.int64).sum(), mdp.rewards.sum()), 9)
    found = [
        Figure("nominal sweep / scipy CSR product plus max, one core", nominal / scipy, 1.0),
        Figure("nominal sweep / reading the model's arrays once", nominal / reading),
    ]
    cases = [
        ("chi-square penalty", rm.Penalized(rm.ChiSquare(), 1.0), 3.0),
        ("total variation penalty", rm.Penalized(rm.TotalVariation(), 1.0), 2.0),
        ("Kullback-Leibler penalty", rm.Penalized(rm.KL(), 1.0), 3.0),
        ("chi-square ball", rm.Constrained(rm.ChiSquare(), 0.5), 12.0),
        ("Kullback-Leibler ball", rm.Constrained(rm.KL(), 0.2), 12.0),
        ("total variation ball", rm.Constrained(rm.TotalVariation(), 0.2), None),
        ("Hellinger penalty", rm.Penalized(rm.Hellinger(), 1.0), None),
        ("Burg penalty", rm.Penalized(rm.Burg(), 1.0), None),
        ("Jensen-Shannon penalty", rm.Penalized(rm.JensenShannon(), 1.0), None),
    ]
    one_core = {}
    for name, ambiguity, bar in cases:
        one_core[name] = sweep_time(ambiguity, 1)
        found.append(Figure(f"{name} sweep / nominal sweep, one core", one_core[name] / nominal, bar))
    for name, ambiguity in (("nominal", rm.Nominal()), *((name, ambiguity) for name, ambiguity, _ in cases[:3])):
        alone = nominal if name == "nominal" else one_core[name]
        found.append(Figure(f"one core / two cores, {name} sweep", alone / sweep_time(ambiguity, 2), 1.6, False))
    return found
