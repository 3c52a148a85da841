"""`solve --engine` and `doctor --address`: the answer of a model in shards, and what is refused before any work."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from app.commands.calls import record, refused, run
from robustmdp.app.commands import planning, sharded
from robustmdp.cluster.nodes import Node, own_versions

BALL = ("--divergence", "kl", "--radius", 0.2)
BOTH = ("--engine", "serial", "--workers", 3)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rm.write(rm.problems.machine_replacement(), tmp_path_factory.mktemp("model") / "model.safetensors")


# The answer.


@pytest.mark.parametrize("problem", ["machine-replacement", "model"])
def test_shards_give_the_certified_answer(model: Path, problem: str) -> None:
    """Value iteration has the same bits; so have all facts but Q, which stays with the shards."""
    word = model if problem == "model" else problem
    words = (*BALL, "--solver", "value-iteration", "--tol", 1e-6, "--full")
    alone, cut = record("solve", word, *words), record("solve", word, *words, *BOTH)
    assert cut.pop("q") is None
    assert alone.pop("q")
    assert cut == alone


def test_the_summary_is_that_without_shards(model: Path) -> None:
    words = ("solve", model, *BALL, "--tol", 1e-4, "--rows", 3, "--solver", "value-iteration")
    alone, cut = run(*words), run(*words, *BOTH)
    assert (alone.exit_code, cut.exit_code) == (0, 0)
    assert cut.stdout == alone.stdout
    assert "7 more states: use --rows 10" in cut.stdout


def test_states_by_name_are_those_of_the_file(model: Path) -> None:
    words = ("--set", "l1", "--radius", 0.1, "--support", "age 3", "--solver", "value-iteration")
    alone, cut = record("solve", model, *words), record("solve", model, *words, *BOTH)
    assert cut["value"] == alone["value"]
    refused(run("solve", model, *words[:4], "--support", "age 33", *BOTH), "--support must be one of", "age 3")


def test_out_has_the_worst_case_and_all_tables(model: Path, tmp_path: Path) -> None:
    out, table = tmp_path / "full.safetensors", tmp_path / "policy.csv"
    assert run("solve", model, *BALL, *BOTH, "--out", out).exit_code == 0
    assert run("solve", model, *BALL, *BOTH, "--out", table).exit_code == 0
    expected = rm.solve(rm.read(model), rm.Constrained(rm.KL(), 0.2))
    worst = rm.read(out)
    np.testing.assert_allclose(worst.probabilities, expected.worst_case.probabilities, atol=1e-6)
    np.testing.assert_array_equal(rm.read_policy(table, rm.read(model)), expected.policy)


def test_a_checkpoint_is_gone_when_the_answer_is_there(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "values"
    assert run("solve", model, *BALL, *BOTH, "--checkpoint", path).exit_code == 0
    assert not path.exists()
    path.write_bytes(b"not one" * 100)
    refused(run("solve", model, *BALL, *BOTH, "--checkpoint", path), "values must be a ", "checkpoint")


def test_an_interrupted_solve_goes_on_from_its_checkpoint(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, steps = tmp_path / "values", 0
    words = ("solve", model, *BALL, "--solver", "value-iteration")

    def interrupt(step: Any) -> str:
        nonlocal steps
        steps += 1
        if steps == 40:
            raise KeyboardInterrupt
        return "a step"

    for name in ("_PAUSE", "_SHARE"):
        monkeypatch.setattr(f"robustmdp.cluster.driver.{name}", 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(sharded, "step_text", interrupt)
        stopped = run(*words, *BOTH, "--checkpoint", path, "--out", tmp_path / "full.safetensors")
    assert stopped.exit_code == 130
    out = tmp_path / "full.safetensors"
    assert stopped.stderr.endswith(f", also in {out}; the same command goes on from {path}.\n")
    assert record(*words, *BOTH, "--checkpoint", path)["value"] == record(*words)["value"]
    assert not path.exists()


def test_progress_tells_what_is_moved(model: Path) -> None:
    lines: list[str] = []

    def report(step: Any) -> None:
        lines.append(sharded.step_text(step))

    mdp = rm.problems.garnet(500, 3, 4, 0.9, seed=0)
    rm.solve(mdp, rm.Penalized(rm.KL(), 1.0), engine=rm.engine.Serial(2), callback=report)
    assert lines[0].startswith("Step 1: certified error ")
    assert max(map(len, lines)) < 80
    # Each of two shards reads the 250 values of the other one.
    assert all("sweeps of 0.004 MB, slowest shard" in line for line in lines)
    lines.clear()
    rm.solve(mdp, rm.Nominal(), callback=report)
    assert all("sweeps" not in line for line in lines)


# What is refused, before any work.


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--address", "10.0.0.1:6379"), "--address must come with --engine ray"),
        (("--workers", 2), "--workers must come with --engine ray or serial"),
        (("--checkpoint", "values"), "--checkpoint must come with --engine ray or serial"),
        (("--engine", "rya"), "--engine must be one of ray, serial: got 'rya'; did you mean 'ray'?"),
        (("--engine", "serial", "--address", "10.0.0.1:6379"), "--address must come with --engine ray: got serial"),
        (("--engine", "serial", "--workers", 0), "--workers must be at least 1: got 0"),
        (("--engine", "serial", "--horizon", 3), "--engine must come without --horizon"),
        (("--engine", "serial", "--total"), "--engine must come without --total"),
        (("--engine", "serial", "--average"), "--engine must come without --average"),
        (("--engine", "serial", "--policy", "p.csv"), "--engine must come without --policy"),
        (("--engine", "serial", "--set", "Wasserstein"), "--engine must come without --set wasserstein"),
        (("--engine", "serial", "--solver", "dual-ascent"), "--engine must come with --solver auto, value-iteration"),
        (("--engine", "serial", "--checkpoint", "no/such/folder/values"), "--checkpoint must be a file in a folder"),
        (("--engine", "serial", "--checkpoint", "."), "--checkpoint must be a file: . is a folder"),
        (
            ("--engine", "serial", "--out", "x.txt"),
            " .json or .safetensors",
        ),
        (("--out", "x.safetensors"), "--out must end in .csv or .parquet or .pq or .json:"),
    ],
)
def test_combinations_that_make_no_sense(words: tuple[object, ...], part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_finish", pytest.fail)
    refused(run("solve", "no-such-problem", *words), part)


def test_a_mapped_file_has_its_own_discount(model: Path) -> None:
    refused(run("solve", model, *BOTH, "--discount", 0.5), "--discount must be left out with --engine")
    sums = rm.write(rm.problems.machine_replacement().with_discount(1.0), model.with_name("sums.safetensors"))
    refused(run("solve", sums, *BOTH), "--engine must come with a model whose discount is below 1")
    refused(run("solve", model.with_name("nothing.safetensors"), *BOTH), "nothing.safetensors", "model.safetensors")


@pytest.mark.parametrize("words", [("solve", "no-such-problem", "--engine", "ray"), ("doctor", "--address", "a:1")])
def test_without_ray_it_says_what_to_install(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    refused(run(*words), "ray must be installed for the engine 'ray': pip install 'robustmdp[ray]'")


@pytest.mark.parametrize("words", [("solve", "no-such-problem", "--engine", "ray"), ("doctor",)], ids=lambda w: w[0])
def test_nobody_answers(words: tuple[str, ...]) -> None:
    pytest.importorskip("ray")
    start = time.monotonic()
    refused(run(*words, "--address", "127.0.0.1:1"), "nobody answers at '127.0.0.1:1'")
    assert time.monotonic() - start < 5.0


@pytest.mark.parametrize("address", ["10.0.0.1", "10.0.0.1:", "head:port"])
def test_an_address_without_a_port(address: str) -> None:
    pytest.importorskip("ray")
    words = ("solve", "no-such-problem", "--engine", "ray", "--address", address)
    refused(run(*words), f"address must be auto or HOST:PORT, as in 10.0.0.1:6379: got '{address}'")


@pytest.fixture
def web_server() -> Iterator[str]:
    """It answers, but is no Ray."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10.0)

        def answer() -> None:
            with suppress(TimeoutError):
                line, _ = server.accept()
                with line:
                    line.recv(100)
                    line.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def test_something_else_answers(web_server: str) -> None:
    pytest.importorskip("ray")
    refused(run("doctor", "--address", web_server), f"something else answers at '{web_server}'")


# A cluster.


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 80_000_000}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    on_ray = ("--engine", "ray", "--address", cluster.address)
    refused(run("solve", "chain", *on_ray), "the cluster must have a node with a core: it has none")
    cluster.add_node(num_cpus=1, object_store_memory=100_000_000)
    yield cluster.address
    cluster.shutdown()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_on_a_cluster(address: str, model: Path) -> None:
    found = record("doctor", "--address", address)
    assert [node["cores"] for node in found["nodes"]] in ([0, 1], [1, 0])
    assert {100_000_000, 80_000_000} == {node["object_store"] for node in found["nodes"]}
    assert all(node["differences"] == [] and node["memory"] > 0 for node in found["nodes"])
    assert found["versions"] == own_versions()
    told = run("doctor", "--address", address).stdout
    assert "Nodes with cores: 1; cores: 1; memory for" in told
    assert told.count("none") == 2
    words = (*BALL, "--solver", "value-iteration", "--tol", 1e-4)
    cut = record("solve", model, *words, "--engine", "ray", "--address", address, "--workers", 2)
    assert cut["value"] == record("solve", model, *words)["value"]


def test_versions_that_differ_are_named() -> None:
    here = {"python": "3.11.7", "numpy": "2.4.6"}
    node = Node("10.0.0.1", 4, 10, 10, {"python": "3.11.7", "numpy": "1.26.0"})
    assert node.differences(here) == ["numpy 1.26.0"]
    assert node._replace(versions=None).differences(here) == ["no answer"]
    assert json.loads(json.dumps(own_versions())).keys() == {"python", "robustmdp", "numpy", "ray"}
