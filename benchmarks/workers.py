"""One process per version that runs tasks on request, so that the versions alternate in time within one run.

A request is a line of JSON, [task, arguments, repeats, limit], and its answer a line with seconds: the best of several
runs after a warm-up. What a task has built is kept until the request "forget".
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from benchmarks import baseline
from benchmarks.baseline import COMMIT, Environment, environments
from benchmarks.figure import Figure, best_time


class Request(NamedTuple):
    """A task of `tasks`, by name; peers' tasks run in our environment only."""

    task: str
    arguments: dict[str, Any]
    ours_only: bool = False


class Times(NamedTuple):
    """Best seconds; `baseline` is None where it was not measured."""

    ours: float
    baseline: float | None

    def speedup(self, name: str, bar: float | None = None) -> Iterator[Figure]:
        """How many times faster we are than the baseline."""
        if self.baseline is not None:
            yield Figure(f"{name}: {COMMIT} / ours", self.baseline / self.ours, bar, at_most=False)


class Worker:
    """A process of one environment."""

    def __init__(self, environment: Environment) -> None:
        self.name = environment.name
        self._process = subprocess.Popen(
            [str(environment.python), "-m", "benchmarks.workers"],
            env=environment.variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def measure(self, request: Request, repeats: int, limit: float) -> float:
        """Seconds of one repetition of the task."""
        return float(self._ask([request.task, request.arguments, repeats, limit]))

    def forget(self) -> None:
        """Free what the tasks have built."""
        self._ask(["forget"])

    def close(self) -> None:
        """End the process."""
        with self._process:  # closes both pipes, then waits
            pass

    def _ask(self, request: list[Any]) -> Any:
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process of {self.name} ended while it ran {request}; its error is printed above")
        return json.loads(answer)


class Workers(NamedTuple):
    """Ours first, then the baseline where it is available."""

    workers: list[Worker]

    def measure(
        self, requests: Mapping[str, Request], rounds: int = 3, repeats: int = 3, limit: float = 2.0
    ) -> dict[str, Times]:
        """All requests in turn, `rounds` times; in each turn one version right after the other.

        What takes a version longer than `limit` seconds is measured in the first round only: some sweeps of the
        baseline take most of a minute, and their ratios are far from any bar. A toy runs once.
        """
        if not baseline.is_wanted:
            rounds = repeats = 1
        best: dict[tuple[str, str], float] = {}
        for _ in range(rounds):
            for name, request in requests.items():
                for worker in self.workers[:1] if request.ours_only else self.workers:
                    key = name, worker.name
                    if best.get(key, 0.0) <= limit:
                        best[key] = min(best.get(key, float("inf")), worker.measure(request, repeats, limit))
        for worker in self.workers:
            worker.forget()
        names = [worker.name for worker in self.workers] + ["none"]
        return {name: Times(best[name, names[0]], best.get((name, names[1]))) for name in requests}


@contextmanager
def start_workers() -> Iterator[Workers]:
    """One process for each version."""
    with ExitStack() as stack:
        workers = Workers([Worker(environment) for environment in environments()])
        for worker in workers.workers:
            stack.callback(worker.close)
        yield workers


def serve() -> None:
    """Answer requests until the input ends."""
    from benchmarks.tasks import TASKS

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # peers print to standard output
    prepared = {}
    for line in sys.stdin:
        name, *rest = json.loads(line)
        if name == "forget":
            prepared.clear()
            seconds = 0.0
        else:
            arguments, repeats, limit = rest
            key = json.dumps([name, arguments])
            if key not in prepared:
                prepared[key] = TASKS[name](**arguments)
            task = prepared[key]
            seconds = best_time(task.call, repeats, limit, task.before) / task.count
        print(json.dumps(seconds), file=answers, flush=True)


if __name__ == "__main__":
    serve()
