"""Lost shards and lost drivers, in one process: whatever happens when, the run ends with the same bits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from cluster.models import ragged
from cluster.test_bits import assert_same_bits
from engine.groups import started, wait_for
from robustmdp.cluster import InProcessExchange, ShardLost, solve_in_shards
from robustmdp.cluster.checkpoint import read_checkpoint, write_checkpoint
from robustmdp.cluster.shard import Program

MDP = ragged(40, on_successors=True)
PROBLEMS: dict[str, tuple[rm.Ambiguity, Any]] = {
    "vi": (rm.Penalized(rm.KL(), 0.5), rm.ValueIteration()),
    "pi": (rm.Constrained(rm.ChiSquare(), 0.3), rm.PolicyIteration()),
    "s-rectangular pi": (rm.SRectangular(rm.L2(0.4)), rm.PolicyIteration()),
    "s-rectangular vi": (rm.SRectangular(rm.L1(0.4)), rm.ValueIteration()),
    "nominal": (rm.Nominal(), rm.ValueIteration()),
}
TOL = 1e-4
each_problem = pytest.mark.parametrize("problem", PROBLEMS)


@pytest.fixture(autouse=True)
def _many_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robustmdp.cluster.driver._PAUSE", 0.0)
    monkeypatch.setattr("robustmdp.cluster.driver._SHARE", 0.0)
    monkeypatch.setattr("robustmdp._files._flush", lambda path: None)  # the disk need not have it
    for module in ("operators.bellman", "cluster.operator"):
        monkeypatch.setattr(f"robustmdp.{module}.FORGETS", 3)


class FlakyExchange(InProcessExchange):
    """Loses a shard at each of these calls: a new one has its rows, but none of its vectors."""

    def __init__(self, losses: Sequence[int] = ()) -> None:
        super().__init__(3, 1)
        self.losses, self.calls = losses, 0

    def run(self, programs: Sequence[Program], *, last: bool) -> list[Any]:
        self._lose()
        return super().run(programs, last=last)

    def ask(self, shard: int, *instruction: Any) -> Any:
        self._lose()
        return super().ask(shard, *instruction)

    def _lose(self) -> None:
        self.calls += 1
        if self.calls in self.losses:
            lost = self._shards[self.calls % 3]
            lost._vectors.clear()
            lost._columns[:-1] = np.nan
            for bellman in lost._operators.values():
                bellman.forget(0)
            raise ShardLost("a shard ended")


@dataclass(frozen=True)
class Flaky:
    """An engine with this exchange."""

    made: FlakyExchange

    @contextmanager
    def exchange(self, threads: int | None) -> Iterator[FlakyExchange]:
        del threads
        yield self.made

    def solve(self, *arguments: Any) -> rm.Solution:
        return solve_in_shards(arguments[0], arguments[1], arguments[2], self, arguments[3])


def solve(problem: str, exchange: InProcessExchange, **settings: Any) -> rm.Solution:
    ambiguity, solver = PROBLEMS[problem]
    return rm.solve(MDP, ambiguity, **({"solver": solver, "engine": Flaky(exchange), "tol": TOL} | settings))


@each_problem
def test_a_shard_lost_at_any_moment(problem: str) -> None:
    whole = FlakyExchange()
    expected = solve(problem, whole)
    assert whole.calls > 20
    for moment in range(1, whole.calls + 1, 1 + whole.calls // 16):
        assert_same_bits(solve(problem, FlakyExchange([moment])), expected)
    rng = np.random.default_rng(0)
    for _ in range(5):
        moments = rng.integers(1, whole.calls, 6).tolist()
        assert_same_bits(solve(problem, FlakyExchange(moments)), expected)


def test_shards_that_are_always_lost() -> None:
    with pytest.raises(RuntimeError, match=r"^the solve ended because shards were lost 10 times in a row: a"):
        solve("vi", FlakyExchange(range(30, 1000)))


class DriverLost(Exception):
    """What a callback raises."""


def stop_after(step: int) -> Any:
    def callback(at: Any) -> None:
        if at.step == step:
            raise DriverLost

    return callback


@each_problem
def test_a_driver_lost_at_any_step(problem: str, tmp_path: Path) -> None:
    whole, path = FlakyExchange(), tmp_path / "checkpoint"
    expected = solve(problem, whole)
    saved = []
    for step in range(1, expected.steps, 1 + expected.steps // 12):
        with pytest.raises(DriverLost):
            solve(problem, FlakyExchange(), checkpoint=path, callback=stop_after(step))
        saved.append(path.exists())
        resumed = FlakyExchange()
        assert_same_bits(solve(problem, resumed, checkpoint=path), expected)
        assert not path.exists()
        if step > 5:
            assert resumed.calls < whole.calls  # it did not begin anew
    assert saved[-1]


@each_problem
def test_drivers_lost_again_and_again(problem: str, tmp_path: Path) -> None:
    """Each goes on where the last one saved, and a shard is lost as well."""
    path, expected = tmp_path / "checkpoint", solve(problem, FlakyExchange())
    for step in range(2, expected.steps, 3):
        with pytest.raises(DriverLost):
            solve(problem, FlakyExchange([7 * step]), checkpoint=path, callback=stop_after(step))
    assert_same_bits(solve(problem, FlakyExchange([5]), checkpoint=path, engine=rm.engine.Serial(2)), expected)


def test_a_run_that_leaves_the_course_of_its_checkpoint(tmp_path: Path) -> None:
    """Stopped before the place where it was saved, it has the values of the step at which it stopped."""
    path = tmp_path / "checkpoint"
    with pytest.raises(DriverLost):
        solve("vi", FlakyExchange(), checkpoint=path, callback=stop_after(12))
    data = path.read_bytes()
    stopped = solve("vi", FlakyExchange(), checkpoint=path, callback=lambda step: step.step == 4)
    assert stopped.status.code == "interrupted"
    assert path.exists()
    ambiguity, solver = PROBLEMS["vi"]
    assert_same_bits(stopped, rm.solve(MDP, ambiguity, solver=solver, tol=TOL, callback=lambda step: step.step == 4))
    path.write_bytes(data)
    other = solve("vi", FlakyExchange(), checkpoint=path, start=np.ones(40))
    assert_same_bits(other, rm.solve(MDP, ambiguity, solver=solver, tol=TOL, start=np.ones(40)))


def test_an_interrupt_leaves_the_checkpoint(tmp_path: Path) -> None:
    path, expected = tmp_path / "checkpoint", solve("vi", FlakyExchange())

    def interrupt(step: Any) -> None:
        if step.step == 12:
            raise KeyboardInterrupt

    exchange = FlakyExchange()
    assert solve("vi", exchange, checkpoint=path, callback=interrupt).status.code == "interrupted"
    assert path.exists()
    assert not exchange._shards
    assert_same_bits(solve("vi", FlakyExchange(), checkpoint=path), expected)


# What a checkpoint must be of.


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint"
    with pytest.raises(DriverLost):
        solve("vi", FlakyExchange(), checkpoint=path, callback=stop_after(12))
    return path


@pytest.mark.parametrize(
    ("mdp", "ambiguity", "settings", "part"),
    [
        (ragged(40, seed=3, on_successors=True), *PROBLEMS["vi"][:1], {}, "model is 40 states"),
        (MDP.with_discount(0.8), *PROBLEMS["vi"][:1], {}, "model is 40 states"),
        (MDP.with_rewards(MDP.rewards + 1.0), *PROBLEMS["vi"][:1], {}, "model is 40 states"),
        (MDP, rm.Penalized(rm.KL(), 0.25), {}, "set is Penalized(KL(), weight=0.25)"),
        (MDP, rm.Penalized(rm.KL(), np.full((40, 5), 0.5)), {}, "set is Penalized"),
        (MDP, PROBLEMS["vi"][0], {"tol": 1e-5}, "tol is 1e-05"),
        (MDP, PROBLEMS["vi"][0], {"solver": rm.PolicyIteration()}, "solver is PolicyIteration(max_steps=1000)"),
    ],
)
def test_another_problem(mdp: rm.MDP, ambiguity: Any, settings: Any, part: str, checkpoint: Path) -> None:
    given = {
        "solver": rm.ValueIteration(),
        "engine": rm.engine.Serial(2),
        "checkpoint": checkpoint,
        "tol": TOL,
    } | settings
    with pytest.raises(ValueError, match=f"^checkpoint must be a checkpoint of this problem, whose {re.escape(part)}"):
        rm.solve(mdp, ambiguity, **given)
    assert checkpoint.exists()


def test_levels_that_print_alike(tmp_path: Path) -> None:
    path, engine = tmp_path / "checkpoint", rm.engine.Serial(2)
    settings: Any = {"solver": rm.ValueIteration(), "engine": engine, "checkpoint": path}
    one, other = (rm.Penalized(rm.KL(), np.linspace(0.1, most, 200).reshape(40, 5)) for most in (1.0, 1.1))
    with pytest.raises(DriverLost):
        rm.solve(MDP, one, callback=stop_after(12), **settings)
    with pytest.raises(ValueError, match=r"^checkpoint must be a checkpoint of this problem, whose set is"):
        rm.solve(MDP, other, **settings)


def test_damaged_checkpoints(checkpoint: Path) -> None:
    data = checkpoint.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(40):
        damaged = bytearray(data)
        damaged[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        checkpoint.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"^checkpoint must be "):
            solve("vi", FlakyExchange(), checkpoint=checkpoint)
    for length in (0, 5, 16, 17, len(data) // 2, len(data) - 1):
        checkpoint.write_bytes(data[:length])
        with pytest.raises(ValueError, match=r"^checkpoint must be "):
            solve("vi", FlakyExchange(), checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("vectors", "sentence"),
    [
        (
            [(1, "values", [np.zeros(3)])],
            "checkpoint must hold vectors of 40 states or 89 pairs: got values of 3 float64",
        ),
        (
            [(1, "values", [np.zeros(40, int)])],
            "checkpoint must hold vectors of 40 states or 89 pairs: got values of 40",
        ),
        ([(1, "policy", [np.zeros(3)])], "checkpoint must hold vectors of 40 states or 89 pairs: got policy of 3"),
        ([(1, "chain", [np.zeros(40)])], "checkpoint must be a checkpoint of a solve: Invalid enum value"),
        (
            [(1, "policy", [np.full(40, 99)])],
            "a checkpoint must hold policies of the model's actions: got other numbers",
        ),
        ([(1, "policy", [np.zeros(89)])], "a checkpoint must hold policies of the model's actions: got other numbers"),
        ([(1, "policy", [np.full(89, np.nan)])], "a checkpoint must hold policies of the model's actions: got other"),
    ],
)
def test_a_strangers_checkpoint(vectors: Any, sentence: str, checkpoint: Path) -> None:
    """With the right checksum, and the problem of this run."""
    assert (MDP.n_states, MDP.n_pairs) == (40, 89)
    own = read_checkpoint(checkpoint, {}, 40, 89).head
    write_checkpoint(checkpoint, own.problem, 1, 0, [], vectors)
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        solve("vi", FlakyExchange(), checkpoint=checkpoint)


KILLED = """
import sys
import numpy as np
import robustmdp as rm
from cluster.models import walk
import robustmdp.cluster.driver as driver

driver._PAUSE = driver._SHARE = 0.0
def callback(step):
    if step.step == 50:
        print("at work", flush=True)

solution = rm.solve(walk(discount=0.99), rm.Penalized(rm.KL(), 1.0), solver=rm.ValueIteration(), tol=1e-8,
                    engine=rm.engine.Serial(2), checkpoint=sys.argv[1], callback=callback)
print(solution.value.tobytes().hex()[-64:], solution.steps)
"""


def test_a_driver_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    with started(KILLED, tmp_path / "other") as process:
        expected = process.communicate(timeout=60)
    with started(KILLED, path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        wait_for(path.exists)
        process.kill()
    assert path.exists()
    with started(KILLED, path) as process:
        assert process.communicate(timeout=60) == expected
    assert not path.exists()
