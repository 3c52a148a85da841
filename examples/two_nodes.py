"""Do two machines that share a model come to the same certified answer as one machine that has all of it?"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

import robustmdp as rm

ROOM = 150  # customers that a station can hold, and the empty station
ARRIVAL = 0.25  # chance of a new customer in a step
SERVICE = 0.3  # chance that a station finishes a customer
EXTRA = 0.15  # more of it where the third worker helps
WAGE = 0.5  # of the third worker
DOUBT = rm.Constrained(rm.KL(), 0.02)
TOL = 1e-6


class Found(NamedTuple):
    """The solutions on one machine and on two, and what the two sent each other."""

    alone: rm.Solution
    together: Any
    steps: list[Any]


def rows(first: int, last: int) -> tuple[np.ndarray, ...]:
    """Two stations in a row: customers at both, and where the third worker helps (nowhere, first, second)."""
    state = np.arange(first, last).repeat(3)
    action = np.tile([0, 1, 2], last - first)
    one, two = divmod(state, ROOM)
    to_two = np.where(one > 0, SERVICE + EXTRA * (action == 1), 0.0)
    leaves = np.where(two > 0, SERVICE + EXTRA * (action == 2), 0.0) * (1 - SERVICE - EXTRA)
    comes = np.where(one < ROOM - 1, ARRIVAL, 0.0) * (1 - SERVICE - EXTRA)
    stays = 1.0 - to_two - leaves - comes
    following = np.stack([state - ROOM + (two < ROOM - 1), state - 1, state, state + ROOM], axis=1)
    probability = np.stack([to_two, leaves, stays, comes], axis=1)
    pair, successor = probability.nonzero()
    reward = -1.0 * (one + two) - WAGE * (action > 0)
    return state[pair], action[pair], following[pair, successor], probability[pair, successor], reward[pair]


def main() -> Found:
    """Solve on one machine, then on a cluster of two."""
    stations = rm.RowSource(rows, n_states=ROOM * ROOM, n_actions=3, discount=0.95)
    alone = rm.solve(stations.to_mdp(), DOUBT, tol=TOL)
    steps: list[Any] = []
    cluster = start_cluster()
    try:
        engine = rm.engine.Ray(cluster.address)  # one shard on each node
        together = rm.solve(stations, DOUBT, tol=TOL, engine=engine, callback=steps.append)
    finally:
        cluster.shutdown()
    tell(Found(alone, together, steps))
    return Found(alone, together, steps)


def start_cluster() -> Any:
    """Two nodes of one core, simulated on this machine; a real one has an address that you know."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    store = {"object_store_memory": 100_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **store})
    for _ in range(2):
        cluster.add_node(num_cpus=1, **store)
    return cluster


def tell(found: Found) -> None:
    """Both answers, and what the nodes sent each other."""
    alone, together, last = found.alone, found.together, found.steps[-1]
    both = alone.error_bound + together.error_bound
    apart = float(abs(alone.value - together.value).max())
    print(f"{ROOM * ROOM:,} states, {DOUBT}")
    for name, solution in (("one machine", alone), ("two nodes", together)):
        value, error = solution.value[0], solution.error_bound
        print(f"{name:>12}: {value:.6f} when both stations are empty, certified to {error:.1g}")
    sent = last.traffic.bytes_sent
    print(f"The nodes send each other {sent:,} bytes a sweep: {sent // 8} of {ROOM * ROOM:,} values, those at the cut.")
    same = "same" if (alone.policy == together.policy).all() else "other"
    agree = "agree" if apart <= both else "DISAGREE"
    print(f"Their values {agree}: they differ by at most {apart:.1g}, the bounds allow {both:.1g}; {same} policy.")


if __name__ == "__main__":
    main()
