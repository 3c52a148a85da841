"""Shards on a Ray cluster of two nodes on this machine, of which actors, nodes and drivers are lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from cluster.models import SCATTERED, NoShard, intervals, ragged, walk
from cluster.nodes import NODE, lose_node, shards, two_nodes, wait_for_the_end
from cluster.test_bits import assert_same_bits
from engine.groups import started
from robustmdp.cluster.ray_exchange import RayExchange

ray = pytest.importorskip("ray")
# The cluster of these tests leaves sockets and processes to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

WALK = walk()
AMBIGUITY = rm.Penalized(rm.KL(), 1.0)
SETTINGS: dict[str, Any] = {"solver": rm.ValueIteration(), "tol": 1e-3}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with two_nodes() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def expected() -> rm.Solution:
    return rm.solve(WALK, AMBIGUITY, engine=rm.engine.Serial(), **SETTINGS)


def at_step(number: int, act: Any) -> Any:
    def callback(step: Any) -> None:
        if step.step == number:
            act()

    return callback


def solve(cluster: Any, **settings: Any) -> rm.Solution:
    engine = rm.engine.Ray(cluster.address, settings.pop("workers", None))
    return rm.solve(settings.pop("source", WALK), AMBIGUITY, engine=engine, **(SETTINGS | settings))


@pytest.mark.parametrize("workers", [None, 3])
def test_the_bits_are_those_of_one_process(cluster: Any, workers: int | None, expected: rm.Solution) -> None:
    steps: list[Any] = []
    assert_same_bits(solve(cluster, workers=workers, callback=steps.append), expected)
    assert steps[0].traffic.bytes_sent == 8 * 2 * ((workers or 2) - 1)  # two values on each side of a cut
    wait_for_the_end(cluster)


def test_a_model_with_links_everywhere(cluster: Any, tmp_path: Path) -> None:
    mdp = ragged(60, on_successors=True)
    for ambiguity in (rm.SRectangular(rm.L1(0.3)), intervals(mdp)):
        solutions = [
            rm.solve(mdp, ambiguity, tol=1e-3, engine=engine)
            for engine in (rm.engine.Ray(cluster.address), rm.engine.Serial(3))
        ]
        assert_same_bits(*solutions)
    files = [
        solution.write(tmp_path / f"{i}.safetensors").read_bytes()  # type: ignore[attr-defined]
        for i, solution in enumerate(solutions)
    ]
    assert files[0] == files[1]


def test_a_killed_actor(cluster: Any, expected: rm.Solution) -> None:
    def kill() -> None:
        os.kill(shards(cluster)[0], signal.SIGKILL)

    assert_same_bits(solve(cluster, callback=at_step(40, kill)), expected)


def test_an_actor_killed_while_operators_are_made(
    cluster: Any, expected: rm.Solution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its replacement makes its operator once: rows are not kept for a second one."""
    prepare, killed = RayExchange._prepare, []

    def prepare_and_kill(self: RayExchange, shard: int) -> Any:
        reference = prepare(self, shard)
        if not killed:
            killed.append(shard)
            ray.kill(self._actors[shard])
        return reference

    monkeypatch.setattr(RayExchange, "_prepare", prepare_and_kill)
    assert_same_bits(solve(cluster), expected)
    assert killed
    wait_for_the_end(cluster)


def test_a_slow_shard_is_not_a_lost_one(cluster: Any, expected: rm.Solution) -> None:
    """Even while another one is replaced, which needs the slow one's answer."""
    seen: list[list[int]] = []

    def stop() -> None:
        slow, lost = shards(cluster)
        seen.append([slow, lost])
        os.kill(slow, signal.SIGSTOP)
        os.kill(lost, signal.SIGKILL)
        os.posix_spawn("/bin/sh", ["sh", "-c", f"sleep 3; kill -CONT {slow}"], os.environ)

    start = time.monotonic()
    solution = solve(cluster, callback=lambda step: stop() if step.step == 40 else seen.append(shards(cluster)))
    assert_same_bits(solution, expected)
    assert time.monotonic() - start > 3.0
    slow, lost = seen[39]
    assert slow in seen[-1]
    assert lost not in seen[-1]


def test_a_full_object_store(cluster: Any) -> None:
    """The shards send 160 kB each, which go to the store."""
    expected = rm.solve(SCATTERED, AMBIGUITY, engine=rm.engine.Serial(), **SETTINGS)
    ray.init(cluster.address, log_to_driver=False, configure_logging=False)
    try:
        fill = ray.remote(num_cpus=1, scheduling_strategy="SPREAD")(lambda: np.zeros(90_000_000, np.uint8))
        filled = [fill.remote() for _ in range(2)]
        ray.wait(filled, num_returns=2)
        assert_same_bits(solve(cluster, source=SCATTERED), expected)
        assert [ray.get(each).nbytes for each in filled] == [90_000_000] * 2
    finally:
        ray.shutdown()


def test_a_node_that_cannot_open_the_file(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from robustmdp.cluster.sources import MappedSource, ModelSource

    path = rm.write(WALK, tmp_path / "model.safetensors")
    nowhere = MappedSource(tmp_path / "nowhere.safetensors")
    monkeypatch.setattr(ModelSource, "sources", lambda self, cuts: [nowhere] * (len(cuts) - 1))
    where = r"path must exist: there is no file .*nowhere\.safetensors.* \(on node [0-9.]+\)"
    with pytest.raises(ValueError, match=f"^{where}$"):
        solve(cluster, source=path)
    wait_for_the_end(cluster)


def test_a_node_without_this_package(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robustmdp.cluster.ray_exchange.RayShard", NoShard)
    sentence = "robustmdp must be able to start on every node of the cluster: ModuleNotFoundError: No module named"
    with pytest.raises(RuntimeError, match=f"^{sentence} 'robustmdp'$"):
        solve(cluster)


SCRIPT = """
import sys
import robustmdp as rm
import robustmdp.cluster.driver as driver
from cluster.models import walk

driver._PAUSE = driver._SHARE = 0.0
def callback(step):
    if step.step == 100:
        print("at work", flush=True)
        while sys.argv[3] == "wait":
            pass

solution = rm.solve(walk(), rm.Penalized(rm.KL(), 1.0), engine=rm.engine.Ray(sys.argv[1]), tol=1e-3,
                    solver=rm.ValueIteration(), checkpoint=sys.argv[2], callback=callback)
print(solution.status.code, solution.steps)
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_driver_that_ends(cluster: Any, end: int, expected: rm.Solution, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    with started(SCRIPT, cluster.address, path, "wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        process.send_signal(end)
        output, errors = process.communicate(timeout=60)
    if end == signal.SIGINT:
        assert (output, errors) == ("interrupted 100\n", "")
    assert path.exists()
    wait_for_the_end(cluster)
    assert_same_bits(solve(cluster, checkpoint=path), expected)
    assert not path.exists()


def test_a_lost_node(cluster: Any, expected: rm.Solution) -> None:
    """The other nodes take its shards. A node may have been lost to the machine's load before: there is a new one."""
    cluster.add_node(**NODE)
    seen: list[list[int]] = []

    def callback(step: Any) -> None:
        if step.step == 40:
            node = next(node for node in cluster.worker_nodes if shards(cluster, [node]))
            seen.extend([shards(cluster), shards(cluster, [node])])
            lose_node(cluster, node)
        if step.step == 60:
            seen.append(shards(cluster))

    assert_same_bits(solve(cluster, callback=callback), expected)
    before, lost, after = seen
    assert lost
    assert len(after) == len(before) >= 2
    assert set(before) - set(after) == set(lost)
    wait_for_the_end(cluster)
