"""`robustmdp learn --paper` in worlds whose rows hold both an end and real successors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import robustmdp as rm
from app.commands.calls import record, run

PAPER = ("--algorithm", "markovian", "--paper", "--weight", 1, "--steps", 1000)


def test_an_end_that_shares_a_row(tmp_path: Path) -> None:
    state, following, ends = [0, 0, 1, 1], [0, 1, 0, 1], [False, False, True, False]
    world = rm.MDP.from_rows(state, [0] * 4, following, [0.5] * 4, np.arange(4.0), 0.9, terminated=ends)
    answer = record("learn", rm.write(world, tmp_path / "world.safetensors"), "--discount", 0.9, *PAPER)
    learned = rm.MarkovianQLearning.paper(rm.Penalized(rm.ChiSquare(), 1.0)).run(world, 1000)
    assert answer["q"] == learned.q.tolist()


def test_a_frozen_lake_meets_no_read_only_array() -> None:
    pytest.importorskip("gymnasium")
    outcome = run("learn", "gym:FrozenLake-v1", *PAPER)
    assert "read-only" not in outcome.output
    # A thousand of the paper's steps leave Q far off; holes, in which nobody ever acts, do not count in d_min.
    assert outcome.exit_code == 3
    assert "diverged: After 1000 steps Q is far off any possible return" in outcome.output
