"""A Ray cluster of two nodes on this machine, one of which goes away; and a local Ray that is interrupted."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.groups import started, wait_for
from robustmdp.engine import Ray, Serial, TaskFailed

pytest.importorskip("ray")
# The cluster of these tests leaves sockets and processes to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    soon = {"health_check_period_ms": 500, "health_check_timeout_ms": 1000, "health_check_failure_threshold": 2}
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": soon}  # a lost node is noticed soon
    cluster = Cluster(initialize_head=True, head_node_args=head)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def test_a_node_that_goes_away_changes_nothing(cluster: Any) -> None:
    def walk(item: dict[str, int]) -> np.ndarray:
        time.sleep(0.3)
        return np.random.default_rng(item["seed"]).normal(size=50_000).cumsum()

    node = cluster.add_node(num_cpus=1)
    items = [{"seed": seed} for seed in range(10)]
    results = {}
    for position, result in Ray(cluster.address).each(walk, items):
        results[position] = result
        if len(results) == 3:
            cluster.remove_node(node, allow_graceful=False)
    expected = Serial().map(walk, items)
    assert [results[position].tobytes() for position in range(10)] == [result.tobytes() for result in expected]
    assert all(result.flags.writeable for result in results.values())


def test_failures_and_deaths(cluster: Any, tmp_path: Path) -> None:
    import ray

    def run_task(item: dict[str, Any]) -> float:
        if item["kind"] == "dies once" and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os._exit(9)
        if item["kind"] == "always dies":
            os._exit(9)
        return 1 / item["n"]

    engine = Ray(cluster.address, workers=1)
    assert engine.map(run_task, [{"n": 2, "kind": "dies once"}, {"n": 4, "kind": "sound"}]) == [0.5, 0.25]
    assert not ray.is_initialized()
    with pytest.raises(TaskFailed) as caught:
        engine.map(run_task, [{"n": 0, "kind": "sound"}])
    assert str(caught.value) == "run_task failed with n=0, kind='sound': ZeroDivisionError: division by zero"
    assert "in run_task" in caught.value.__notes__[0]
    with pytest.raises(TaskFailed, match="run_task failed with n=1, kind='always dies': WorkerCrashedError"):
        engine.map(run_task, [{"n": 1, "kind": "always dies"}])


def test_an_address_where_nobody_answers() -> None:
    with pytest.raises(
        ConnectionError, match=r"^address must be that of a running Ray: nobody answers at '127.0.0.1:1'"
    ):
        Ray("127.0.0.1:1").map(abs, [1])


INTERRUPTED = """
import sys, time
from pathlib import Path
from robustmdp.engine import Kept, Ray

def wait(n):
    time.sleep(0.01 if n < 2 else 300)
    return n

def save(path, n):
    path.write_text(str(n))

def load(path):
    return int(path.read_text())

engine = Kept(Ray(workers=2), Path(sys.argv[1]), save, load, ".txt")
try:
    engine.map(wait, list(range(5)))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_ends_a_local_ray(tmp_path: Path) -> None:
    with started(INTERRUPTED, tmp_path) as process:
        wait_for(lambda: len(list(tmp_path.glob("[!.]*.txt"))) == 2)
        os.killpg(process.pid, signal.SIGINT)
        said, complaints = process.communicate(timeout=60)
    assert (said, complaints) == ("interrupted\n", "")
