"""One model in shards: two simulated nodes against one process, a model larger than its memory, and a cost model.

`python -m benchmarks.cluster SCALE` runs a share of the size, such as 0.01 within a minute. Bars hold for the whole:
small models wait for messages, and processes hold more without a model than its rows take.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import robustmdp as rm
from benchmarks.cluster_cost import cost_model
from benchmarks.figure import Figure
from benchmarks.peak import Sampler, anonymous
from benchmarks.spread import Spread

AMBIGUITY = rm.Penalized(rm.ChiSquare(), 1.0)
SWEEPS = 12
TOL = 1e-4
ROUNDS, REPEATS = 2, 2  # of both in turn, since a machine is not equally fast all the time
STORE = 400_000_000  # bytes of a node's object store
TOY = {"scale": 0.001}
LARGE = 1e8  # transitions from which on bars hold
LIMIT = 1.5e9  # bytes of anonymous memory for the model larger than that


class Times(NamedTuple):
    """The least seconds of a sweep, and of policy iteration once rows are made; a value and its error."""

    sweep: float
    solve: float
    value: float
    error: float


def figures(scale: float = 1.0) -> Iterator[Figure]:
    with simulated_cluster() as engine:
        yield from two_nodes(engine, Spread(max(1000, int(2e6 * scale)), 10, 10))
        yield from cost_model(engine, Spread(max(1000, int(3e5 * scale)), 10, 10), AMBIGUITY)
    yield from larger_than_memory(Spread(max(1000, int(1e6 * scale)), 20, 20))


# Two nodes against one process.


def two_nodes(engine: Any, model: Spread) -> Iterator[Figure]:
    with Sampler("ray::RayShard") as memory:
        time_solves(Spread(1000, 2, 5).source(), engine)  # what processes hold without a model
        time.sleep(0.2)
        shard_before, shard, driver, rounds = memory.largest, 0, 0, []
        for _ in range(ROUNDS):
            alone = Times(*json.loads(in_own_process("alone", model)))
            memory.reset()
            before = anonymous(Path("/proc/self"))
            rounds.append((alone, time_solves(model.source(), engine)))
            shard, driver = max(shard, memory.largest - shard_before), max(driver, memory.own - before)
    alone, together = map(best_of, zip(*rounds, strict=True))
    if abs(together.value - alone.value) > together.error + alone.error:
        raise RuntimeError(f"both must have one value within their bounds: got {alone} and {together}")
    name, vector = f"{model.nnz:.2g} transitions, {model.n_states:.2g} states, 2 nodes", 8 * model.n_states
    bars = (1.6, 1.4, 6.0, 1.0) if model.nnz >= LARGE else (None,) * 4
    yield Figure(f"{name}: one process / a sweep", alone.sweep / together.sweep, bars[0], at_most=False)
    yield Figure(f"{name}: one process / policy iteration", alone.solve / together.solve, bars[1], at_most=False)
    yield Figure(f"{name}: a sweep", together.sweep, unit="s")
    yield Figure(f"{name}: driver's memory / a vector of values", driver / vector, bars[2])
    room = 1.3 * model.nbytes / 2 + 3 * vector
    yield Figure(f"{name}: a shard's memory / (1.3 rows + 3 vectors)", shard / room, bars[3])


def time_solves(source: Any, engine: Any = None, **settings: Any) -> Times:
    """Value iteration and policy iteration, with an engine or without."""
    how = {**settings, **({} if engine is None else {"engine": engine})}
    stamps: list[float] = []

    def stamp(step: Any) -> bool:
        stamps.append(time.perf_counter())
        return len(stamps) > SWEEPS

    rm.solve(source, AMBIGUITY, solver=rm.ValueIteration(), callback=stamp, **how)
    sweep = float(np.diff(stamps).min())
    return best_of([time_policy_iteration(source, sweep, how) for _ in range(REPEATS)])


def best_of(times: Sequence[Times]) -> Times:
    """The least of each time."""
    return times[0]._replace(sweep=min(each.sweep for each in times), solve=min(each.solve for each in times))


def time_policy_iteration(source: Any, sweep: float, how: dict[str, Any]) -> Times:
    """From its first step on; the solution is not kept, since memory is measured."""
    stamps: list[float] = []
    solution = rm.solve(source, AMBIGUITY, tol=TOL, callback=lambda step: stamps.append(time.perf_counter()), **how)
    seconds = time.perf_counter() - stamps[0]
    if not solution.converged:
        raise RuntimeError(str(solution.status))
    return Times(sweep, seconds, float(solution.value[0]), solution.error_bound)


@contextmanager
def simulated_cluster() -> Iterator[Any]:
    """Two nodes of one core each on this machine, and a driver elsewhere; the engine that uses them."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
    )
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1, object_store_memory=STORE)
        ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
        yield rm.engine.Ray(cluster.address)
    finally:
        ray.shutdown()
        cluster.shutdown()


# A model larger than the memory that it may use.


def larger_than_memory(model: Spread) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "model.safetensors"))
        written = float(in_own_process("write", model, path))
        size = Path(path).stat().st_size
        used, before, bound, seconds = json.loads(in_own_process("shards", model, path))
    name = f"{model.nnz:.2g} transitions, {size / 1e9:.2g} GB, 4 shards"
    yield Figure(f"{name}: anonymous memory", used / 1e9, LIMIT / 1e9, unit="GB")
    yield Figure(f"{name}: anonymous memory / the file", (used - before) / size)
    yield Figure(f"{name}: certified error / max |value|", bound, TOL, unit="")
    yield Figure(f"{name}: solve", seconds, unit="s")
    yield Figure(f"{name}: anonymous memory while it is written / the file", written / size)


def write(model: Spread, path: str) -> float:
    """Bytes that it takes to write the file."""
    before = anonymous(Path("/proc/self"))
    with Sampler("ray::RayShard") as memory:
        rm.write(model.source(), path)
    return memory.own - before


def solve_in_shards(model: Spread, path: str) -> list[float]:
    """All bytes in use, those without a model, the certified relative error, and seconds."""
    with Sampler("ray::RayShard") as memory:
        before = anonymous(Path("/proc/self"))
        start = time.perf_counter()
        solution = rm.solve(path, AMBIGUITY, tol=TOL, engine=rm.engine.Serial(4))
        seconds = time.perf_counter() - start
    return [memory.all, before, solution.error_bound / max(1.0, float(abs(solution.value).max())), seconds]


# Processes of their own, so that the memory is theirs.

TASKS: dict[str, Callable[..., Any]] = {
    "alone": lambda model: time_solves(model.source().to_mdp(), threads=1),
    "write": write,
    "shards": solve_in_shards,
}


def in_own_process(task: str, model: Spread, *arguments: str) -> str:
    sizes = map(str, (model.n_states, model.n_actions, model.n_successors))
    call = [sys.executable, "-m", "benchmarks.cluster", task, *sizes, *arguments]
    return subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True).stdout


def main(words: list[str]) -> None:
    if words and words[0] in TASKS:
        model = Spread(*map(int, words[1:4]))
        print(json.dumps(TASKS[words[0]](model, *words[4:])))
        return
    for figure in figures(*map(float, words)):
        print(figure, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
