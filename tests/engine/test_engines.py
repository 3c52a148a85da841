"""What holds on every engine; Ray has a file of its own, for it is slow to start."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp.engine import ENGINES, Engine, Processes, Ray, Serial, TaskFailed, engine_of

pytest.importorskip("joblib")

each_engine = pytest.mark.parametrize("engine", [Serial(), Processes(2)], ids=repr)


def walk() -> Callable[[dict[str, Any]], np.ndarray]:
    # Made here, not at the top: what is defined in a function is pickled by value.
    def draw(item: dict[str, Any]) -> np.ndarray:
        return np.random.default_rng(item["seed"]).normal(size=100).cumsum()

    return draw


def dividing() -> Callable[[dict[str, Any]], float]:
    def run_task(item: dict[str, Any]) -> float:
        return item["weight"] / len(item["seeds"])

    return run_task


@each_engine
def test_results_come_in_order_and_equal_to_the_bit(engine: Engine) -> None:
    items = [{"seed": seed} for seed in range(12)]
    results = engine.map(walk(), items)
    assert [result.tobytes() for result in results] == [walk()(item).tobytes() for item in items]
    assert all(result.flags.writeable for result in results)


@each_engine
def test_each_says_which_one_ended(engine: Engine) -> None:
    assert sorted(engine.each(abs, [-3, 2, -1])) == [(0, 3), (1, 2), (2, 1)]


@each_engine
def test_no_items(engine: Engine) -> None:
    assert engine.map(abs, []) == []


@each_engine
def test_a_failure_names_its_parameters(engine: Engine) -> None:
    with pytest.raises(TaskFailed) as caught:
        engine.map(dividing(), [{"weight": 1.0, "seeds": [0]}, {"weight": 2.0, "seeds": []}])
    assert str(caught.value) == "run_task failed with weight=2.0, seeds=[]: ZeroDivisionError: float division by zero"
    told = [repr(caught.value.__cause__), *getattr(caught.value, "__notes__", [])]
    assert any("ZeroDivisionError" in text for text in told)


@each_engine
def test_long_parameters_are_cut(engine: Engine) -> None:
    def fail(item: Any) -> None:
        raise KeyError

    with pytest.raises(TaskFailed, match=r"^fail failed with \[0, 0, .*,\.\.\.: KeyError") as caught:
        engine.map(partial(fail), [[0] * 1000])
    assert len(str(caught.value)) < 100


def test_the_good_results_come_before_the_failure() -> None:
    def invert(n: int) -> float:
        return 1 / n

    seen: list[int] = []
    with pytest.raises(TaskFailed, match="invert failed with 0"):
        seen.extend(position for position, _ in Processes(1).each(invert, [1, 2, 0]))
    assert seen == [0, 1]


def test_an_interrupt_passes_through() -> None:
    def interrupt(item: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Serial().map(interrupt, [1])


def test_what_cannot_travel_is_named() -> None:
    def come(item: Any) -> Any:
        return (n for n in range(3))

    with pytest.raises(TaskFailed, match=r"come failed with <generator .* it cannot be sent to another process"):
        Processes(1).map(come, [come(0)])
    with pytest.raises(TaskFailed, match="come failed with 1: TypeError"):
        Processes(1).map(come, [1])


@each_engine
def test_replications_of_a_learner(engine: Engine) -> None:
    learner = rm.GenerativeQLearning(rm.Penalized(rm.ChiSquare(), 1.0))
    here = learner.run_many(rm.problems.chain(), 50, seeds=4)
    there = learner.run_many(rm.problems.chain(), 50, seeds=4, engine=engine)
    assert [one.q.tobytes() for one in here] == [one.q.tobytes() for one in there]


def test_engines_by_name() -> None:
    made = [engine_of("serial"), engine_of("processes", 3), engine_of("ray", 2, "somewhere:6379")]
    assert made == [Serial(), Processes(3), Ray("somewhere:6379", 2)]
    assert ENGINES == ("serial", "processes", "ray")
    assert engine_of("serial", 1) == Serial()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("proceses",), "engine must be one of serial, processes, ray: got 'proceses'; did you mean 'processes'?"),
        (("serial", 4), "workers must be 1 for the engine 'serial': got 4"),
        (("processes", 0), "workers must be at least 1: got 0"),
        (("ray", 0), "workers must be at least 1: got 0"),
        (("processes", 2, "x:1"), "address must come with the engine 'ray': got 'x:1' for 'processes'"),
    ],
)
def test_refusals(arguments: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        engine_of(*arguments)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(("engine", "library"), [(Processes(1), "joblib"), (Ray(), "ray")], ids=repr)
def test_a_missing_library_is_named(engine: Engine, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "path", [])
    extra = "processes" if library == "joblib" else "ray"
    with pytest.raises(ImportError) as caught:
        engine.map(abs, [1])
    assert str(caught.value) == (
        f"{library} must be installed for the engine {extra!r}: pip install 'robustmdp[{extra}]'"
    )


def test_the_room_is_light() -> None:
    script = "import sys, robustmdp.engine; print({'numpy', 'numba', 'joblib', 'ray'} & set(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert printed.stdout.strip() == "set()"
