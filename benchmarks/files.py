"""A Parquet model of 10 million transitions, against pyarrow's own reader; memory in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.figure import Figure, best_time
from benchmarks.peak import peak

TOY = {"n_states": 1_000, "rounds": 1}


def figures(n_states: int = 500_000, rounds: int = 5) -> list[Figure]:
    import pyarrow.parquet as pq

    import robustmdp as rm
    from robustmdp.io import read, write

    with tempfile.TemporaryDirectory() as folder:
        path = write(rm.problems.garnet(n_states, 4, 5, 0.95, seed=0), Path(folder) / "model.parquet")
        # In turns, since what else runs on the machine comes and goes.
        ours, theirs = zip(
            *((best_time(lambda: read(path), 1), best_time(lambda: pq.read_table(path), 1)) for _ in range(rounds)),
            strict=True,
        )
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.files", str(path)], check=True, capture_output=True, text=True
        )
    what = f"{20 * n_states:,} transitions from Parquet"
    return [
        Figure(f"{what}: time / pyarrow's read_table", min(ours) / min(theirs), 3.0),
        Figure(f"{what}: peak memory / the model's arrays", float(done.stdout), 3.0),
    ]


def measure(path: Path) -> float:
    import robustmdp as rm
    from robustmdp.io import read, write

    with tempfile.TemporaryDirectory() as folder:
        read(write(rm.problems.garnet(1_000, 4, 5, 0.95, seed=0), Path(folder) / "warm.parquet"))
    before = peak()
    mdp = read(path)
    return (peak() - before) / mdp.nbytes


if __name__ == "__main__":
    print(measure(Path(sys.argv[1])))
