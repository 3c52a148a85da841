"""From a CSV log with names to a page by two commands: the time beyond `pyarrow.csv.read_csv`, and that of `estimate`.

The bars are for five million rows. `python -m benchmarks.log_to_page --rows 500000` measures another size.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from benchmarks.baseline import ours, run
from benchmarks.figure import Figure, run_time

TOY = {"rows": 20_000}
ROWS = 5_000_000
DEPOTS, ZONES, ACTIONS, SUCCESSORS = 100, 20, ("hold", "move", "restock"), 6
_PIECE = 500_000  # rows that are made at a time


def write_log(path: Path, rows: int, depots: int = DEPOTS) -> Path:
    """Rows in random order, of 2,000 states and three actions, each pair with six successors."""
    rng = np.random.default_rng(0)
    states = pa.array([f"depot{depot:03d}/zone{zone:02d}" for depot in range(depots) for zone in range(ZONES)])
    actions = pa.array(ACTIONS)
    successors = rng.integers(0, len(states), (len(states), len(actions), SUCCESSORS))
    rewards = rng.normal(size=(len(states), len(actions))).round(3)
    schema = pa.schema({"state": pa.string(), "action": pa.string(), "reward": pa.float64(), "next_state": pa.string()})
    with pa.csv.CSVWriter(path, schema) as writer:
        for first in range(0, rows, _PIECE):
            count = min(_PIECE, rows - first)
            state, action = rng.integers(0, len(states), count), rng.integers(0, len(actions), count)
            chosen = (rng.random(count) ** 1.7 * SUCCESSORS).astype(int)  # the first more often than the last
            following = successors[state, action, chosen]
            columns = states.take(state), actions.take(action), rewards[state, action], states.take(following)
            writer.write(pa.table(list(columns), schema=schema))
    return path


def figures(rows: int = ROWS) -> Iterator[Figure]:
    bars = (15.0, 60.0) if rows >= ROWS else (None, None)
    command, variables = ours().command, ours().variables
    with tempfile.TemporaryDirectory() as folder:
        log = write_log(Path(folder, "log.csv"), rows)
        model, page = Path(folder, "model.safetensors"), Path(folder, "page.html")
        reading = run_time(lambda: pa.csv.read_csv(log))
        estimating = run_time(lambda: run([command, "estimate", log, "--out", model, "--quiet"], variables))
        analysing = run_time(lambda: run([command, "analyse", model, "--out", page, "--quiet"], variables))
    yield Figure(f"pyarrow.csv.read_csv, {rows:,} rows", reading, unit="s")
    yield Figure(f"robustmdp estimate, {rows:,} rows", estimating, bars[0], unit="s")
    yield Figure(
        f"estimate and analyse beyond read_csv, {rows:,} rows", estimating + analysing - reading, bars[1], unit="s"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    for figure in figures(parser.parse_args().rows):
        print(figure)
