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

TOY = {"states": 2_000, "rows": 2_000, "certified": False}
ACTIONS = 10


def figures(states: int = 2_000_000, rows: int = 20_000_000, certified: bool = True) -> Iterator[Figure]:
    """Bytes a pair of the simulator, megabytes of the log, each in a process of its own."""
    pairs = states * ACTIONS
    bytes_a_pair = _measured("simulator", states) / pairs
    yield Figure(f"compiled simulator, {pairs:,} pairs: bytes a pair", bytes_a_pair, 40.0, unit="B")
    if certified:
        bytes_a_pair = _measured("certified", states) / pairs
        yield Figure("the same with a certificate: bytes a pair", bytes_a_pair, 96.0, unit="B")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "log.parquet")
        write(path, rows)
        yield Figure(f"Parquet log of {rows:,} transitions", _measured("log", rows, path) / 1e6, 300.0, unit="MB")


def _measured(*arguments: object) -> float:
    command = [sys.executable, "-m", "benchmarks.learning_memory", *map(str, arguments)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def simulator(states: int, confidence: float | None = None) -> float:
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
    solution = learner.run(rm.Simulator(sample, states, *sizes), 2, confidence=confidence)
    if solution.samples != 2 * states * ACTIONS:
        raise RuntimeError(str(solution.status))
    return float(peak() - before)


def write(path: str, rows: int) -> None:
    """A log of independent transitions of 1000 states and 4 actions."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    columns = {
        "state": rng.integers(0, 1000, rows),
        "action": rng.integers(0, 4, rows),
        "reward": rng.random(rows),
        "next_state": rng.integers(0, 1000, rows),
    }
    pq.write_table(pa.table(columns), path)


def log(rows: int, path: str) -> float:
    """One pass over the log."""
    import robustmdp as rm

    learner = rm.MarkovianQLearning(rm.Penalized(rm.ChiSquare(), 1.0))
    learner.run(rm.Trajectory([0, 1], [0, 0], [0.0, 1.0], [1, 0], discount=0.9))
    before = peak()
    solution = learner.run(rm.read_log(path, discount=0.9))
    if solution.samples != rows:
        raise RuntimeError(str(solution.status))
    return float(peak() - before)


if __name__ == "__main__":
    os.environ.setdefault("ROBUSTMDP_THREADS", "1")
    parts = {"simulator": simulator, "certified": lambda states: simulator(states, 0.95), "log": log}
    part, size, *paths = sys.argv[1:]
    print(parts[part](int(size), *paths))
