"""The command line as tests call it, and files to call it with."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner, Result

import robustmdp as rm
from robustmdp.app.commands import main

COLUMNS = ("state", "action", "reward", "next_state")


def run(*words: object, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(main, [str(word) for word in words])


def record(*words: object) -> dict[str, Any]:
    """What --json prints: one object on one line, and nothing else."""
    outcome = run(*words, "--json")
    assert outcome.exit_code == 0, outcome.output
    assert outcome.stderr == ""
    assert outcome.stdout.count("\n") == 1
    found: dict[str, Any] = json.loads(outcome.stdout)
    return found


def refused(outcome: Result, *parts: str, code: int = 1) -> None:
    """One sentence on stderr, nothing on stdout, no traceback."""
    assert outcome.exit_code == code, outcome.output
    assert outcome.stdout == ""
    last = outcome.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert code == 2 or outcome.stderr.count("\n") == 1
    for part in parts:
        assert part in last


def transitions(mdp: rm.MDP, count: int, seed: int = 0) -> list[tuple[int, int, float, int]]:
    """A walk with random actions."""
    rng = np.random.default_rng(seed)
    rows, state = [], 0
    rewards = mdp.rewards if mdp.rewards_on_successors else np.repeat(mdp.rewards, np.diff(mdp.indptr))
    for _ in range(count):
        pair = int(rng.choice(np.flatnonzero(mdp.states == state)))
        entry = int(rng.choice(np.arange(mdp.indptr[pair], mdp.indptr[pair + 1]), p=_row(mdp, pair)))
        following = int(mdp.indices[entry])
        rows.append((state, int(mdp.actions[pair]), float(rewards[entry]), following))
        state = following
    return rows


def _row(mdp: rm.MDP, pair: int) -> Any:
    return mdp.probabilities[mdp.indptr[pair] : mdp.indptr[pair + 1]]


def write_log(path: Path, rows: Sequence[Sequence[Any]], columns: Sequence[str] = COLUMNS) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
    return path


def write_parquet_log(path: Path, rows: Sequence[Sequence[Any]]) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table(dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))
    parquet.write_table(table, str(path))
    return path


def outcomes_of(models: list[rm.MDP], path: Path) -> Path:
    """One file of several models, by craam's idoutcome."""
    lines = ["idstatefrom,idaction,idoutcome,idstateto,probability,reward"]
    for number, mdp in enumerate(models):
        lengths = np.diff(mdp.indptr)
        rewards = mdp.rewards if mdp.rewards_on_successors else np.repeat(mdp.rewards, lengths)
        columns = (np.repeat(mdp.states, lengths), np.repeat(mdp.actions, lengths), mdp.indices, mdp.probabilities)
        for s, a, t, p, r in zip(*columns, rewards, strict=True):
            lines.append(f"{s},{a},{number},{t},{float(p)!r},{float(r)!r}")
    path.write_text("\n".join(lines) + "\n")
    return path
