"""What a sweep in shards costs: a formula, its numbers from this machine, and what it predicts for larger clusters.

seconds = c transitions / cores + s states / cores + 8 states (1 - 1/shards) / bandwidth
          + a + b shards + p shards^2 / min(shards, cores)

where all shards read all values. a, b and p are what an exchange takes by itself, what the driver does for each shard,
and what a shard does for each parcel. A policy's chain has one pair for each state.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

import robustmdp as rm
from benchmarks.figure import Figure
from benchmarks.spread import Spread

NETWORK = 1.25e9  # bytes per second of a node: 10 Gbit/s
CORES = 16  # of a node
PAIRS, ACTIONS, SUCCESSORS = 1e9, 10, 10
SWEEPS, CHAIN_SWEEPS = 8, 60  # of a policy iteration
HERE = 2  # cores of the simulated cluster
COUNTS = (1, 2, 4, 8)
WIDE = 10  # times as many states, with few transitions, to see what moving values costs
_SHORTEST = 1e-4  # seconds that can be told from noise


class Costs(NamedTuple):
    """Seconds per transition and per state on one core, per exchange, shard and parcel; bytes per second."""

    transition: float
    state: float
    exchange: float
    shard: float
    parcel: float
    bandwidth: float

    def sweep(self, n_states: float, nnz: float, shards: int, cores: int) -> float:
        """Predicted seconds of one sweep."""
        work = (self.transition * nnz + self.state * n_states) / cores
        moved = 8.0 * n_states * (1.0 - 1.0 / shards) / self.bandwidth
        return work + moved + self.waiting(shards, cores)

    def waiting(self, shards: int, cores: int) -> float:
        """What an exchange takes, whatever is in it."""
        return self.exchange + self.shard * shards + self.parcel * shards**2 / min(shards, cores)


def cost_model(engine: Any, model: Spread, ambiguity: Any) -> Iterator[Figure]:
    """Measured costs, how they predict this machine's own shards, and larger clusters."""
    costs = measure(engine, model, ambiguity)
    for name, factor, unit in (
        ("transition", 1e9, "ns"),
        ("state", 1e9, "ns"),
        ("exchange", 1e3, "ms"),
        ("shard", 1e3, "ms"),
        ("parcel", 1e3, "ms"),
    ):
        yield Figure(f"cost model: seconds per {name}", factor * getattr(costs, name), unit=unit)
    yield Figure("cost model: bandwidth of the object store here", costs.bandwidth / 1e9, unit="GB/s")
    for shards in (1, 2, 4):
        seconds = sweep_seconds(model, ambiguity, rm.engine.Ray(engine.address, shards))
        predicted = costs.sweep(model.n_states, model.nnz, shards, min(shards, HERE))
        name = f"cost model: {model.nnz:.2g} transitions, {shards} local shards, a sweep"
        yield Figure(f"{name}: measured", seconds, unit="s")
        yield Figure(f"{name}: measured / predicted", seconds / predicted)
    yield from predictions(costs._replace(bandwidth=NETWORK))


def predictions(costs: Costs) -> Iterator[Figure]:
    """For clusters that nobody has measured."""
    n_states = PAIRS / ACTIONS
    for nodes in (10, 100, 1000):
        name = f"prediction: {PAIRS:.0e} pairs x {SUCCESSORS} successors, {nodes} nodes of {CORES} cores"
        sweep, chain = (
            costs.sweep(n_states, pairs * SUCCESSORS, nodes, nodes * CORES) for pairs in (PAIRS, PAIRS / ACTIONS)
        )
        yield Figure(f"{name}: a sweep", sweep, unit="s")
        yield Figure(f"{name}: policy iteration", SWEEPS * sweep + CHAIN_SWEEPS * chain, unit="s")


def measure(engine: Any, model: Spread, ambiguity: Any) -> Costs:
    """From sweeps of models that differ in one size alone."""
    few, many = (Spread(model.n_states, actions, model.n_successors) for actions in (1, model.n_actions))
    here = [sweep_seconds(each, ambiguity, rm.engine.Serial()) for each in (few, many)]
    transition = (here[1] - here[0]) / (many.nnz - few.nnz)
    state = max(0.0, (here[0] - transition * few.nnz) / model.n_states)

    small = Spread(4096, 1, 2)
    waits = [sweep_seconds(small, ambiguity, rm.engine.Ray(engine.address, count)) for count in COUNTS]
    counts = np.array(COUNTS, dtype=float)
    terms = np.column_stack([counts**0, counts, counts**2 / np.minimum(counts, HERE)])
    exchange, shard, parcel = nnls(terms, np.array(waits))[0].tolist()

    wide = Spread(WIDE * model.n_states, 1, 2)
    alone, both = (sweep_seconds(wide, ambiguity, rm.engine.Ray(engine.address, count)) for count in (1, 2))
    costs = Costs(transition, state, exchange, shard, parcel, np.inf)
    work = alone - costs.waiting(1, 1)
    moving = both - costs.waiting(2, HERE) - work / 2
    return costs._replace(bandwidth=4.0 * wide.n_states / max(moving, _SHORTEST))


def sweep_seconds(model: Spread, ambiguity: Any, engine: Any, sweeps: int = 30) -> float:
    """Of one step of value iteration."""
    stamps: list[float] = []

    def stamp(step: Any) -> bool:
        stamps.append(time.perf_counter())
        return len(stamps) > sweeps

    solver = rm.ValueIteration()
    rm.solve(model.source(), ambiguity, solver=solver, callback=stamp, engine=engine, threads=1)
    return float(np.diff(stamps).min())
