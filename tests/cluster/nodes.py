"""A Ray cluster whose nodes are processes of this machine."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from engine.groups import wait_for

NODE = {"num_cpus": 1, "object_store_memory": 100_000_000}


@contextlib.contextmanager
def two_nodes() -> Iterator[Any]:
    """With a head that has no cores; it notices a lost node soon."""
    import ray
    from ray.cluster_utils import Cluster

    # A node that is gone refuses at once; one that only waits for a core of this machine may take its time.
    soon = {"health_check_period_ms": 500, "health_check_timeout_ms": 10_000, "health_check_failure_threshold": 3}
    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": soon}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(2):
            cluster.add_node(**NODE)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def lose_node(cluster: Any, node: Any) -> None:
    """All of its processes, which a machine takes along; they would live on for a while here."""
    own = shards(cluster, [node])
    cluster.remove_node(node, allow_graceful=False)
    for process in own:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def shards(cluster: Any, nodes: Sequence[Any] | None = None) -> list[int]:
    """The processes of the actors, on some nodes or on all."""
    nodes = cluster.list_all_nodes() if nodes is None else nodes
    raylets = [process.process.pid for node in nodes for process in node.all_processes["raylet"]]
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            is_actor = (entry / "cmdline").read_bytes().startswith(b"ray::RayShard")
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if is_actor and parent in raylets:
            found.append(int(entry.name))
    return sorted(found)


def wait_for_the_end(cluster: Any) -> None:
    """Of all actors."""
    wait_for(lambda: not shards(cluster), 15.0)
