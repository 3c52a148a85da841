"""A million states. Each version in a process of its own, so that the peak is this model's."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks.baseline import environments
from benchmarks.figure import Figure
from benchmarks.peak import peak

TOY = {"n_states": 1_000}


def figures(n_states: int = 1_000_000) -> Iterator[Figure]:
    for environment in environments():
        ratio = float(environment.run("-m", "benchmarks.memory", n_states))
        bar = 2.2 if environment.name == "ours" else None
        yield Figure(f"{n_states:,} x 4 x 5, {environment.name}: peak memory / the model's arrays", ratio, bar)


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
