"""Results on disk: nothing is done twice, nothing half done counts."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.groups import started
from robustmdp.engine import Engine, Kept, Processes, Serial, TaskFailed

pytest.importorskip("joblib")


def save(path: Path, result: Any) -> None:
    path.write_text(json.dumps(result))


def load(path: Path) -> Any:
    return json.loads(path.read_text())


def kept(folder: Path, engine: Engine | None = None, **options: Any) -> Kept:
    return Kept(engine or Serial(), folder, save, load, ".json", **options)


def counting(runs: Path, fails: int | None = None) -> Callable[[dict[str, int]], int]:
    """n * n, with a line in a file for every time it was run."""

    def square(item: dict[str, int]) -> int:
        with open(runs, "a") as file:
            file.write(f"{item['n']}\n")
        if item["n"] == fails:
            raise ValueError("not this one")
        return item["n"] ** 2

    return square


def items(*numbers: int) -> list[dict[str, int]]:
    return [{"n": n} for n in numbers]


@pytest.mark.parametrize("engine", [Serial(), Processes(1)], ids=repr)
def test_nothing_is_repeated_after_a_failure(engine: Engine, tmp_path: Path) -> None:
    runs, folder = tmp_path / "runs", tmp_path / "deep" / "folder"
    with pytest.raises(TaskFailed, match="square failed with n=2: ValueError: not this one"):
        kept(folder, engine).map(counting(runs, fails=2), items(0, 1, 2, 3))
    assert runs.read_text().split()[:3] == ["0", "1", "2"]
    runs.unlink()
    assert kept(folder, engine).map(counting(runs), items(0, 1, 2, 3)) == [0, 1, 4, 9]
    assert runs.read_text().split() in (["2"], ["2", "3"])  # a process may have begun the next one, and ended it


def test_closing_keeps_what_came(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    results = kept(tmp_path).each(counting(runs), items(3, 4))
    assert next(results) == (0, 9)
    results.close()  # type: ignore[attr-defined]
    assert list(kept(tmp_path).each(counting(runs), items(4, 3))) == [(1, 9), (0, 16)]
    assert runs.read_text().split() == ["3", "4"]


def test_equal_items_run_once(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    told: list[tuple[int, bool]] = []
    engine = kept(tmp_path, done=lambda item, fresh: told.append((item["n"], fresh)))
    assert engine.map(counting(runs), items(2, 3, 2)) == [4, 9, 4]
    assert runs.read_text().split() == ["2", "3"]
    assert told == [(2, True), (2, True), (3, True)]
    told.clear()
    engine.map(counting(runs), items(3, 5))
    assert told == [(3, False), (5, True)]


def test_the_order_within_an_item_does_not_matter(tmp_path: Path) -> None:
    def join(item: dict[str, Any]) -> str:
        return ",".join(item)

    assert kept(tmp_path).map(join, [{"a": 1, "b": [2.5]}, {"b": [2.5], "a": 1}]) == ["a,b", "a,b"]


def test_tasks_do_not_take_each_others_results(tmp_path: Path) -> None:
    assert kept(tmp_path).map(abs, [-1.5]) == [1.5]
    assert kept(tmp_path).map(round, [-1.5]) == [-2]
    assert kept(tmp_path).map(partial(pow, 2), [3]) == [8]
    assert kept(tmp_path).map(partial(pow, 3), [3]) == [27]


def test_a_damaged_file_is_run_again(tmp_path: Path) -> None:
    runs, folder = tmp_path / "runs", tmp_path / "folder"
    kept(folder).map(counting(runs), items(1, 2))
    for path in folder.iterdir():
        if path.read_text() == "4":
            path.write_text("{")
    assert kept(folder).map(counting(runs), items(1, 2)) == [1, 4]
    assert runs.read_text().split() == ["1", "2", "2"]
    assert sorted(path.read_text() for path in folder.iterdir()) == ["1", "4"]


def test_a_file_is_never_seen_half_written(tmp_path: Path) -> None:
    def fail(path: Path, result: Any) -> None:
        path.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        Kept(Serial(), tmp_path, fail, load, ".json").map(abs, [1])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("item", [{"n": 1j}, {"n": {1}}, b"bytes", {"n": len}, {(1, 2): 3}], ids=repr)
def test_items_must_be_json(item: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^an item must be made of numbers, strings, lists and dicts to be kept: got "):
        kept(tmp_path).map(str, [item])


def test_tasks_must_have_a_name(tmp_path: Path) -> None:
    class Task:
        def __call__(self, item: int) -> int:
            return item

    with pytest.raises(TypeError, match=r"^a task must be a function to be kept: got "):
        kept(tmp_path).map(Task(), [1])


KILLED = """
import json, sys, time
from pathlib import Path
from robustmdp.engine import Kept, Processes

def square(item):
    with open(item["runs"], "a") as file:
        file.write(f"{item['n']} ")
    if item["n"] >= 3 and Path(item["gate"]).exists():
        time.sleep(300)
    return item["n"] ** 2

def save(path, result):
    path.write_text(json.dumps(result))
    if result == 4 and Path(gate).exists():
        path.write_text("half")
        print("saving", flush=True)
        time.sleep(300)

def load(path):
    return json.loads(path.read_text())

folder, runs, gate = sys.argv[1:]
items = [{"n": n, "runs": runs, "gate": gate} for n in range(6)]
print(Kept(Processes(1), Path(folder), save, load, ".json").map(square, items))
"""


def test_a_killed_run_takes_up_where_it_stopped(tmp_path: Path) -> None:
    folder, runs, gate = tmp_path / "folder", tmp_path / "runs", tmp_path / "gate"
    gate.touch()
    with started(KILLED, folder, runs, gate) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "saving\n"
        os.kill(process.pid, signal.SIGKILL)
    names = {path.name for path in folder.iterdir()}
    assert len(names) == 3  # those of 0 and 1, and that of 2, half written under another name
    assert sum(name.startswith(".part-") for name in names) == 1

    gate.unlink()
    runs.write_text("")
    with started(KILLED, folder, runs, gate) as process:
        said, complaints = process.communicate(timeout=60)
    assert (said, complaints) == ("[0, 1, 4, 9, 16, 25]\n", "")
    assert runs.read_text().split() == ["2", "3", "4", "5"]
    assert not [path for path in folder.iterdir() if path.name.startswith(".part-")]


def test_a_result_that_is_not_there_is_never_loaded(tmp_path: Path) -> None:
    """Loading it may make something of nothing, which would be taken for a result."""

    def load(path: Path) -> int:
        return int(path.read_text()) if path.exists() else 0

    kept = Kept(Serial(), tmp_path, lambda path, result: path.write_text(str(result)), load, ".txt")
    assert kept.map(abs, [-1, -2]) == [1, 2]
