"""The same records wherever they are made: in one process, in several, on a cluster that loses a node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from paper import tiny
from paper.tiny import stable
from robustmdp.engine import Processes, Ray, Serial
from robustmdp.paper import NAMES, experiment_named, work
from robustmdp.table import Table

SEEDED = ("statistical", "convergence", "inner-steps", "markovian", "behaviour", "sample-efficiency")


def test_processes_make_the_same_records() -> None:
    # All experiments in one call, to start the processes once.
    def carry_out(asked: tuple[str, int]) -> Table:
        name, number = asked
        experiment = experiment_named(name)
        return experiment.measure(experiment.tasks(tiny.params(name))[number])

    numbers = {name: range(len(experiment_named(name).tasks(tiny.params(name)))) for name in tiny.OTHERS}
    numbers["memory"] = range(6, 7)  # one of its tasks, for each compiles a world
    asked = [(name, number) for name in NAMES for number in numbers[name]]
    parts: dict[str, list[Table]] = {}
    for (name, _), table in zip(asked, Processes(2).map(carry_out, asked), strict=True):
        parts.setdefault(name, []).append(table)
    expected = {name: tiny.records(name) for name in tiny.OTHERS} | {"memory": carry_out(("memory", 6))}
    differing = [name for name in NAMES if stable(Table.concat(parts[name])) != stable(expected[name])]
    assert differing == []


@pytest.mark.parametrize("name", SEEDED)
def test_records_do_not_depend_on_how_seeds_are_grouped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tiny.records(name)
    monkeypatch.setattr(work, "_SEEDS_AT_ONCE", 2 if name != "sample-efficiency" else 1)
    groups = {len(item["seeds"]) for item in experiment_named(name).tasks(tiny.params(name))}
    assert groups == ({1} if name == "sample-efficiency" else {1, 2})
    parts = experiment_named(name).run(tiny.params(name), Serial())
    keys = [column for column in stable(whole).columns if column != "error"]

    def sorted_rows(table: Table) -> list[tuple[Any, ...]]:
        columns = (stable(table)[key].tolist() for key in [*keys, "error"])
        return sorted(zip(*columns, strict=True))

    assert sorted_rows(parts) == sorted_rows(whole)


@pytest.mark.parametrize("name", SEEDED)
def test_more_seeds_are_the_same_and_more(name: str) -> None:
    fewer = experiment_named(name).run(tiny.params(name, seeds=1), Serial())
    assert stable(fewer) == stable(tiny.records(name).where(seed=0))


def test_groups_of_seeds_are_all_seeds() -> None:
    for seeds in (1, 24, 25, 26, 100):
        assert [seed for group in work.seed_groups(seeds) for seed in group] == list(range(seeds))


@pytest.mark.parametrize("name", NAMES)
def test_every_task_is_plain(name: str) -> None:
    import json

    items = experiment_named(name).tasks(tiny.params(name))
    assert items
    assert json.loads(json.dumps(items)) == items


@pytest.mark.parametrize("name", tiny.OTHERS)
def test_records_tell_where_they_come_from(name: str) -> None:
    import dataclasses

    notes = tiny.records(name).notes
    assert notes["parameters"] == dataclasses.asdict(tiny.params(name))
    assert {"version", "started", "wall_seconds", "python", "numpy", "machine"} <= notes.keys()
    assert "seconds" in tiny.records(name).columns
    assert "samples" in tiny.records(name).columns


# A cluster of two nodes on this machine.


@pytest.fixture
def cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    soon = {"health_check_period_ms": 500, "health_check_timeout_ms": 1000, "health_check_failure_threshold": 2}
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": soon}  # a lost node is noticed soon
    made = Cluster(initialize_head=True, head_node_args=head)
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_that_loses_a_node_makes_the_same_records(cluster: Any, tmp_path: Any) -> None:
    from robustmdp.paper.reproduce import Progress, reproduce

    node = cluster.add_node(num_cpus=1)
    seen: list[Progress] = []

    def watch(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == 3:
            cluster.remove_node(node, allow_graceful=False)

    planned = tiny.plan("connection", "convergence")
    made = reproduce(planned, tmp_path, Ray(cluster.address), progress=watch)
    assert [progress.done for progress in seen if progress.experiment != "drawing"] == list(range(1, 10))
    for name in planned:
        assert stable(made.records[name]) == stable(tiny.records(name))
