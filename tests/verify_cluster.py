"""Solves in shards that lose actors, nodes and drivers at random moments: the same bits every time. `make verify`."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cluster.nodes import NODE, lose_node, shards, two_nodes, wait_for_the_end

KILLS = 20
LONGEST = 15.0  # seconds that a loss may cost
SCRIPT = """
import sys
import robustmdp as rm
from cluster.models import walk

source, ambiguity = walk(discount=0.995), rm.Penalized(rm.KL(), 1.0)
print("ready", flush=True)
solution = rm.solve(source, ambiguity, engine=rm.engine.Ray(sys.argv[1]), solver=rm.ValueIteration(), tol=1e-3,
                    checkpoint=sys.argv[2])
arrays = (solution.value, solution.lower, solution.upper, solution.policy)
print(solution.status.code, solution.steps, *(hash(array.tobytes()) for array in arrays))
"""


class Run:
    """One solve, whose driver is a process."""

    def __init__(self, cluster: Any, checkpoint: Path) -> None:
        self.cluster, self.checkpoint = cluster, checkpoint
        self.seconds = 0.0
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-c", SCRIPT, self.cluster.address, str(self.checkpoint)]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        self._since = time.monotonic()

    def lose_driver(self) -> None:
        """Kill it, and start another one with the same call."""
        self.process.kill()
        self.process.wait()
        self.seconds += time.monotonic() - self._since
        self._start()

    def lose_actor(self, draws: random.Random) -> None:
        """Kill one, if there are any yet."""
        found = shards(self.cluster)
        if found:
            os.kill(draws.choice(found), signal.SIGKILL)

    def lose_node(self, draws: random.Random) -> None:
        """Kill one, after another one has come."""
        self.cluster.add_node(**NODE)
        lost = draws.choice(sorted(self.cluster.worker_nodes, key=lambda node: node.node_id))
        lose_node(self.cluster, lost)

    def result(self) -> str:
        """What the driver printed in the end."""
        output, _ = self.process.communicate(timeout=300)
        self.seconds += time.monotonic() - self._since
        return output


def main(kills: int, seed: int) -> int:
    draws, failures, done = random.Random(seed), 0, 0
    with tempfile.TemporaryDirectory() as folder, two_nodes() as cluster:
        undisturbed = Run(cluster, Path(folder, "checkpoint"))
        expected, usual = undisturbed.result(), undisturbed.seconds
        print(f"without losses: {usual:.1f} s, {expected.strip()}", flush=True)
        while done < kills:
            run, losses = Run(cluster, Path(folder, "checkpoint")), []
            for _ in range(draws.choice((1, 1, 2, 3))):
                time.sleep(draws.uniform(0.2, usual / 2))
                if run.process.poll() is not None:
                    break
                kind = draws.choice(("actor", "node", "driver"))
                run.lose_driver() if kind == "driver" else getattr(run, f"lose_{kind}")(draws)
                losses.append(kind)
            result = run.result()
            same, extra = result == expected, run.seconds - usual
            wait_for_the_end(cluster)
            right = same and extra <= LONGEST * len(losses)
            failures += not right
            done += len(losses)
            verdict = "the same bits" if same else f"OTHER OUTPUT: {result}"
            print(f"{done} kills: lost {', '.join(losses) or 'nothing'}; {verdict}, {extra:+.1f} s", flush=True)
    print(f"{done} kills, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*(arguments + [KILLS, 0][len(arguments) :])))
