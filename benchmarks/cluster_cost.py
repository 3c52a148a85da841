"""What a sweep in shards costs: a formula, its numbers from this machine, and what it predicts for larger clusters.

seconds = transitions c / cores + states s / nodes + 8 states (1 - 1/nodes) / bandwidth + a + b nodes

where all shards read all values. A policy's chain has one pair for each state, without a worst case.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import robustmdp as rm
from benchmarks.figure import Figure
from benchmarks.spread import Spread

NETWORK = 1.25e9  # bytes per second: 10 Gbit/s
CORES = 16  # of a node
PAIRS, SUCCESSORS, ACTIONS = 1e9, 10, 10
FULL_SWEEPS, CHAIN_SWEEPS = 8, 60  # of a policy iteration at discount 0.95, to 1e-4


class Costs(NamedTuple):
    """Seconds per transition and per state on one core, per exchange, per exchange and shard; bytes per second."""

    transition: float
    state: float
    exchange: float
    shard: float
    bandwidth: float

    def sweep(self, n_states: float, nnz: float, shards: int, cores: int) -> float:
        """Predicted seconds of one sweep."""
        work = self.transition * nnz / cores + self.state * n_states / min(shards, cores)
        moved = 8.0 * n_states * (1.0 - 1.0 / shards) / self.bandwidth
        return work + moved + self.exchange + self.shard * shards


def cost_model(engine: Any, model: Spread, ambiguity: Any) -> Iterator[Figure]:
    """Measured costs, how they predict this machine's own shards, and larger clusters."""
    costs = measure(engine, model, ambiguity)
    for name, factor, unit in (("transition", 1e9, "ns"), ("state", 1e9, "ns"), ("exchange", 1e3, "ms")):
        yield Figure(f"cost of a {name}", factor * getattr(costs, name), unit=unit)
    yield Figure("cost of a shard in an exchange", 1e3 * costs.shard, unit="ms")
    yield Figure("bytes through the object store of this machine", costs.bandwidth / 1e9, unit="GB/s")
    for shards in (1, 2, 4):
        seconds = sweep_seconds(model, ambiguity, rm.engine.Ray(engine.address, shards))
        ratio = seconds / costs.sweep(model.n_states, model.nnz, shards, min(shards, 2))
        yield Figure(f"{model.nnz:.2g} transitions, {shards} local shards: a sweep, measured / predicted", ratio)
    for nodes in (10, 100, 1000):
        cluster = costs._replace(bandwidth=NETWORK)
        full = cluster.sweep(PAIRS / ACTIONS, PAIRS * SUCCESSORS, nodes, nodes * CORES)
        chain = cluster.sweep(PAIRS / ACTIONS, PAIRS / ACTIONS * SUCCESSORS, nodes, nodes * CORES)
        solve = FULL_SWEEPS * full + CHAIN_SWEEPS * chain
        yield Figure(f"predicted, {PAIRS:.0e} pairs on {nodes} nodes: a sweep", full, unit="s")
        yield Figure(f"predicted, {PAIRS:.0e} pairs on {nodes} nodes: policy iteration", solve, unit="s")


def measure(engine: Any, model: Spread, ambiguity: Any) -> Costs:
    """From sweeps of models that differ in one size."""
    few, many = (Spread(model.n_states, actions, model.n_successors) for actions in (1, model.n_actions))
    here = [sweep_seconds(each, ambiguity, rm.engine.Serial()) for each in (few, many)]
    transition = (here[1] - here[0]) / (many.nnz - few.nnz)
    state = max(0.0, here[0] / model.n_states - transition * few.nnz / model.n_states)
    counts = (1, 2, 4, 8)
    tiny = Spread(4096, 1, 2)
    waits = [sweep_seconds(tiny, ambiguity, rm.engine.Ray(engine.address, count)) for count in counts]
    shard, exchange = np.polyfit(counts, waits, 1)
    moved = Spread(4 * model.n_states, 1, 2)
    alone, both = (sweep_seconds(moved, ambiguity, rm.engine.Ray(engine.address, count)) for count in (1, 2))
    waiting = both - shard - 0.5 * (alone - exchange - shard) - exchange - shard
    bandwidth = 4.0 * moved.n_states / waiting if waiting > 0 else np.inf
    return Costs(transition, state, float(exchange), float(shard), float(bandwidth))


def sweep_seconds(model: Spread, ambiguity: Any, engine: Any, sweeps: int = 12) -> float:
    """Of one step of value iteration."""
    stamps: list[float] = []

    def stamp(step: Any) -> bool:
        stamps.append(time.perf_counter())
        return len(stamps) > sweeps

    solver = rm.ValueIteration()
    rm.solve(model.source(), ambiguity, solver=solver, callback=stamp, engine=engine, threads=1)
    return float(np.median(np.diff(stamps)))
