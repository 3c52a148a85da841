"""Does learning still make progress, and how far is it from the truth, while it runs in TensorBoard?"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import robustmdp as rm

STEPS = 2_000  # rounds over all pairs
EVERY = 50


def logger(writer: Any, exact: rm.Solution) -> Callable[[int, Any], None]:
    """A callback that writes how far Q is from the truth, and what it says of the first state."""

    def log(step: int, state: Any) -> None:
        known = np.isfinite(exact.q)
        writer.add_scalar("error of Q", np.abs(state.q - exact.q)[known].max(), step)
        writer.add_scalar("value of the first state", state.q[0].max(), step)
        writer.add_scalar("states with another action", float((state.q.argmax(axis=1) != exact.policy).sum()), step)

    return log


def main(folder: Path = Path("demo")) -> rm.Solution | None:
    """Learn the worst case of a machine from samples, and log it on the way."""
    if find_spec("tensorboard") is None:
        print("The log needs TensorBoard: pip install tensorboard")
        return None
    from tensorboard.summary import Writer

    machine, doubt = rm.problems.machine_replacement(), rm.Penalized(rm.ChiSquare(), 10.0)
    exact = rm.solve(machine, doubt)
    writer = Writer(str(folder / "tensorboard"))
    learned = rm.GenerativeQLearning(doubt).run(
        machine, STEPS, record_every=EVERY, reference=exact.q, callback=logger(writer, exact)
    )
    writer.close()
    learned.plot().savefig(folder / "tensorboard_log.png", dpi=120)
    first, last = learned.trace["error"][[0, -1]]
    print(f"Look at it with: tensorboard --logdir {folder / 'tensorboard'}")
    print(f"Learning makes progress: the largest error of Q fell from {first:.3g} to {last:.3g} in {STEPS:,} rounds.")
    return learned


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
