"""Bar 6: a million states. Run in a process of its own, so that the peak is this model's."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.figure import Figure
from benchmarks.peak import peak


def figures(n_states: int = 1_000_000) -> list[Figure]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", str(n_states)], check=True, capture_output=True, text=True
    )
    return [Figure("1,000,000 x 4 x 5: peak memory / the model's arrays", float(done.stdout), 3.0)]


def measure(n_states: int) -> float:
    import robustmdp as rm

    ambiguity = rm.Penalized(rm.ChiSquare(), 1.0)
    rm.solve(rm.problems.garnet(1_000, 4, 5, 0.95, seed=0), ambiguity, tol=1e-6)
    before = peak()
    mdp = rm.problems.garnet(n_states, 4, 5, 0.95, seed=0)
    solution = rm.solve(mdp, ambiguity, tol=1e-6)
    if not solution.converged:
        raise RuntimeError(str(solution.status))
    return (peak() - before) / mdp.nbytes


if __name__ == "__main__":
    print(measure(int(sys.argv[1])))
