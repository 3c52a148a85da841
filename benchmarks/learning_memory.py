"""Peak memory of learning above start-up: a compiled simulator of 2e7 pairs, and a Parquet log of 2e7 transitions."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figure import Figure
from benchmarks.peak import peak

STATES, ACTIONS, ROWS = 2_000_000, 10, 20_000_000


def figures() -> Iterator[Figure]:
    """Bytes a pair of the simulator, megabytes of the log, each in a process of its own."""
    pairs = STATES * ACTIONS
    yield Figure("compiled simulator, 2e7 pairs: bytes a pair", _measured("simulator") / pairs, 40.0, unit="B")
    yield Figure("the same with a certificate: bytes a pair", _measured("certified") / pairs, 96.0, unit="B")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "log.parquet")
        subprocess.run([sys.executable, "-m", "benchmarks.learning_memory", "write", path], check=True)
        yield Figure("Parquet log of 2e7 transitions", _measured("log", path) / 1e6, 300.0, unit="MB")


def _measured(*arguments: str) -> float:
    command = [sys.executable, "-m", "benchmarks.learning_memory", *arguments]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def simulator(confidence: float | None = None) -> float:
    """A random walk that no array describes; two rounds over all pairs."""
    import numba

    import robustmdp as rm

    @numba.njit
    def sample(state, action, rng):
        return (state % 7) / 6.0, abs(state - rng.integers(0, 4 + action)), False

    doubt = rm.Penalized(rm.ChiSquare(), 1.0)
    learner, sizes = rm.GenerativeQLearning(doubt), (ACTIONS, 0.9, (0.0, 1.0))
    learner.run(rm.Simulator(sample, 1000, *sizes), 2, confidence=confidence)
    before = peak()
    solution = learner.run(rm.Simulator(sample, STATES, *sizes), 2, confidence=confidence)
    if solution.samples != 2 * STATES * ACTIONS:
        raise RuntimeError(str(solution.status))
    return float(peak() - before)


def write(path: str) -> None:
    """A log of independent transitions of 1000 states and 4 actions."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    columns = {
        "state": rng.integers(0, 1000, ROWS),
        "action": rng.integers(0, 4, ROWS),
        "reward": rng.random(ROWS),
        "next_state": rng.integers(0, 1000, ROWS),
    }
    pq.write_table(pa.table(columns), path)


def log(path: str) -> float:
    """One pass over the log."""
    import robustmdp as rm

    learner = rm.MarkovianQLearning(rm.Penalized(rm.ChiSquare(), 1.0))
    learner.run(rm.Trajectory([0, 1], [0, 0], [0.0, 1.0], [1, 0], discount=0.9))
    before = peak()
    solution = learner.run(rm.read_log(path, discount=0.9))
    if solution.samples != ROWS:
        raise RuntimeError(str(solution.status))
    return float(peak() - before)


if __name__ == "__main__":
    os.environ.setdefault("ROBUSTMDP_THREADS", "1")
    parts = {"simulator": simulator, "certified": lambda: simulator(0.95), "write": write, "log": log}
    answer = parts[sys.argv[1]](*sys.argv[2:])
    if answer is not None:
        print(answer)
