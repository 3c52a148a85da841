"""Checkpoints: a run that was killed goes on to the same bits, and a file that is not what it was is refused."""

from __future__ import annotations

import ast
import copy
import errno
import json
import os
import pickle
import random
import resource
import signal
import struct
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import robustmdp as rm
from robustmdp.learning import checkpoints, runs

# Short runs miss some pairs, which is not the point here; test_messages tests the warning.
pytestmark = pytest.mark.filterwarnings("ignore:the behaviour policy must visit every pair")

DOUBT = rm.Penalized(rm.ChiSquare(), 1.0)
CHAIN = rm.problems.chain(restart=0.5)
SMALL = rm.MDP.from_rows(
    [0, 0, 0, 1], [0, 1, 1, 0], [1, 0, 1, 0], [1.0, 0.5, 0.5, 1.0], [1.0, 0.0, 2.0, -1.0], 0.9, state_names=("a", "b")
)


@numba.njit
def sample(state, action, rng):
    return 1.0 * (state == 0), rng.integers(0, 3), rng.random() < 0.1


def simulator(compiled: bool) -> rm.Simulator:
    return rm.Simulator(sample if compiled else getattr(sample, "py_func", sample), 3, 2, 0.9, (0.0, 1.0))


def log() -> rm.Trajectory:
    rng = np.random.default_rng(0)
    walk, count = rng.integers(0, 3, 20_001), 20_000
    rewards = (walk[:-1] == 0) + 0.25 * walk[1:]
    return rm.Trajectory(walk[:-1], rng.integers(0, 2, count), rewards, walk[1:], rng.random(count) < 0.1)


def written(kind: str, folder: Path) -> rm.Trajectory:
    """The log as a file."""
    columns = next(log().chunks(size=20_000))._asdict()
    path = folder / f"log.{kind}"
    if kind == "parquet" and not path.exists():
        pq.write_table(pa.table(columns), path, row_group_size=3000)
    if kind == "csv" and not path.exists():
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        path.write_text("\n".join([",".join(columns), *(",".join(map(repr, row)) for row in rows)]) + "\n")
    return rm.read_log(path, discount=0.9)


@dataclass(frozen=True)
class Case:
    """A run that may be interrupted."""

    learner: Any
    world: Callable[[Path], Any]
    steps: int
    options: dict[str, Any] = field(default_factory=dict)

    def run(self, folder: Path, **more: Any) -> rm.Solution:
        told = {"record_every": self.steps // 7, **self.options, **more}
        return self.learner.run(self.world(folder), self.steps, seed=3, **told)

    def resume(self, folder: Path, path: Path, **more: Any) -> rm.Solution:
        world = self.world(folder)
        return rm.resume(path, None if isinstance(world, rm.MDP) else world, **more)


FOLLOW, GREEDY = rm.MarkovianQLearning(DOUBT), rm.MarkovianQLearning(DOUBT, rm.EpsilonGreedy(0.3))
BALL = rm.Constrained(rm.KL(), 0.1)
PRINTED = rm.MarkovianQLearning.paper(DOUBT, d_min=0.05, d_max=0.3)
REFERENCE = {"reference": np.arange(20.0).reshape(10, 2)}
CASES = {
    "generative": Case(rm.GenerativeQLearning(DOUBT), lambda _: CHAIN, 4000),
    "generative ball": Case(rm.GenerativeQLearning(BALL), lambda _: CHAIN, 2000, REFERENCE),
    "generative paper": Case(rm.GenerativeQLearning.paper(DOUBT, inner_steps=5), lambda _: CHAIN, 400),
    "generative Hellinger": Case(rm.GenerativeQLearning(rm.Penalized(rm.Hellinger(), 1.0)), lambda _: CHAIN, 2000),
    "markovian": Case(FOLLOW, lambda _: CHAIN, 40_000, REFERENCE),
    "markovian lame": Case(rm.MarkovianQLearning(rm.Penalized(rm.KL(), 1.0)), lambda _: SMALL, 20_000, {"start": 1}),
    "markovian paper": Case(rm.MarkovianQLearning.paper(DOUBT), lambda _: CHAIN, 40_000),
    "markovian literal": Case(rm.MarkovianQLearning.paper(DOUBT, literal=True), lambda _: CHAIN, 200),
    "behaviour": Case(rm.MarkovianQLearning(DOUBT, [0.2, 0.8]), lambda _: CHAIN, 20_000),
    "epsilon greedy": Case(GREEDY, lambda _: CHAIN, 20_000),
    "epsilon greedy paper": Case(
        rm.MarkovianQLearning.paper(DOUBT, rm.EpsilonGreedy(0.3), d_min=0.01, d_max=0.3), lambda _: CHAIN, 2000
    ),
    "multilevel": Case(rm.MultilevelQLearning(BALL), lambda _: CHAIN, 60),
    "Python": Case(FOLLOW, lambda _: simulator(False), 4000),
    "Python rounds": Case(rm.GenerativeQLearning(DOUBT), lambda _: simulator(False), 500),
    "Python paper": Case(PRINTED, lambda _: simulator(False), 3000),
    "Python greedy": Case(GREEDY, lambda _: simulator(False), 2000),
    "Python multilevel": Case(rm.MultilevelQLearning(BALL), lambda _: simulator(False), 60),
    "compiled": Case(FOLLOW, lambda _: simulator(True), 20_000),
    "compiled greedy": Case(GREEDY, lambda _: simulator(True), 20_000),
    "FrozenLake": Case(FOLLOW, lambda _: gymnasium.make("FrozenLake-v1"), 6000),
    "FrozenLake greedy": Case(GREEDY, lambda _: gymnasium.make("FrozenLake-v1"), 3000),
    "CliffWalking": Case(FOLLOW, lambda _: gymnasium.make("CliffWalking-v1"), 6000, {"discount": 0.9}),
    "arrays": Case(FOLLOW, lambda _: log(), 15_000, {"discount": 0.9}),
    "replay": Case(FOLLOW, lambda _: log().replay(3, seed=1), 60_000),
    "arrays paper": Case(PRINTED, lambda _: log(), 20_000, {"reward_range": (0.0, 1.5)}),
    "csv": Case(FOLLOW, lambda folder: written("csv", folder), 20_000),
    "csv replay": Case(FOLLOW, lambda folder: written("csv", folder).replay(2), 40_000),
    "parquet": Case(FOLLOW, lambda folder: written("parquet", folder), 20_000, {"reward_range": (0.0, 1.5)}),
}
# Compiled anew for each run, which is slow; the same in Python has the same bits.
TWINS = {"compiled": simulator(False), "compiled greedy": simulator(False)}


def undisturbed(name: str, folder: Path) -> rm.Solution:
    """The run that nobody stops."""
    case = CASES[name]
    return (replace(case, world=lambda _: TWINS[name]) if name in TWINS else case).run(folder)


def assert_same(a: rm.Solution, b: rm.Solution) -> None:
    """Equal to the bit in all that was learned and recorded."""
    for name in ("q", "visits", "eta", "value", "policy", "lower", "upper"):
        assert np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True), name
    assert (a.status, a.steps, a.samples) == (b.status, b.steps, b.samples)
    assert a.trace.keys() == b.trace.keys()
    for name in a.trace:
        assert np.array_equal(a.trace[name], b.trace[name], equal_nan=True), name


@pytest.mark.parametrize("name", CASES)
def test_a_stopped_run_goes_on_to_the_same_bits(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, path = CASES[name], tmp_path / "run"
    whole = undisturbed(name, tmp_path)
    monkeypatch.setattr(runs, "_SECONDS_PER_PIECE", 0.001)  # many places to stop at
    for share in (0.5,) if name in TWINS else (0.001, 0.3, 0.999):
        stop = share * case.steps
        stopped = case.run(tmp_path, checkpoint=path, progress=lambda seen, stop=stop: seen.step >= stop)
        assert stopped.steps < case.steps or share == 0.999
        assert_same(case.resume(tmp_path, path), whole)
    if name not in TWINS:  # once more: the file is now that of the whole run
        assert_same(case.resume(tmp_path, path), whole)


@pytest.mark.parametrize("name", [name for name in CASES if name not in TWINS])
def test_a_killed_run_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    whole, moments = case.run(tmp_path), random.Random(name)
    for attempt in range(2):
        path = tmp_path / f"run{attempt}"
        kill_after_checkpoint(case, tmp_path, path, max(1, case.steps // 40), moments.random() * 0.03)
        assert_same(case.resume(tmp_path, path), whole)


def test_a_compiled_run_killed_in_a_process_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    case, path = CASES["compiled"], tmp_path / "run"
    kill_after_checkpoint(case, tmp_path, path, 100, 0.0)
    assert_same(case.resume(tmp_path, path), undisturbed("compiled", tmp_path))


def kill_after_checkpoint(case: Case, folder: Path, path: Path, every: int, seconds: float) -> None:
    """Kill a child some time after its first checkpoint; it runs again and again, so that it cannot end before."""

    def run_for_ever() -> None:
        while True:
            case.run(folder, checkpoint=path, checkpoint_every=every)

    child = forked(run_for_ever)
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.0005)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL


def forked(work: Callable[[], Any]) -> int:
    """Start a child of this process, which is quicker than a fresh one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of threads, which the child does not touch
        child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


@pytest.mark.parametrize("name", ["Python", "Python rounds", "Python paper", "Python greedy", "Python multilevel"])
@pytest.mark.parametrize("share", [0.01, 0.4, 0.77])
def test_control_c_inside_a_world_leaves_a_checkpoint_to_go_on_from(name: str, share: float, tmp_path: Path) -> None:
    case, path, calls = CASES[name], tmp_path / "run", 0
    whole = case.run(tmp_path)
    moment = int(share * whole.samples)

    def interrupted(state: int, action: int, rng: np.random.Generator) -> Any:
        nonlocal calls
        calls += 1
        if calls == moment:
            signal.raise_signal(signal.SIGINT)
        return getattr(sample, "py_func", sample)(state, action, rng)

    interrupted.__name__ = "sample"
    world = rm.Simulator(interrupted, 3, 2, 0.9, (0.0, 1.0))
    stopped = Case(case.learner, lambda _: world, case.steps).run(tmp_path, checkpoint=path)
    assert stopped.status.code == "interrupted"
    assert_same(rm.resume(path, world), whole)


def test_control_c_inside_an_environment_leaves_a_checkpoint_to_go_on_from(tmp_path: Path) -> None:
    case, path = CASES["FrozenLake"], tmp_path / "run"

    class Interrupting(gymnasium.Wrapper[Any, Any, Any, Any]):
        calls = 0

        def step(self, action: Any) -> Any:
            self.calls += 1
            if self.calls == 3456:
                signal.raise_signal(signal.SIGINT)
            return self.env.step(action)

    world = Interrupting(gymnasium.make("FrozenLake-v1"))
    stopped = Case(case.learner, lambda _: world, case.steps).run(tmp_path, checkpoint=path)
    assert stopped.status.code == "interrupted"
    assert_same(case.resume(tmp_path, path), case.run(tmp_path))


def test_a_model_estimate_goes_on_or_says_at_once_that_it_cannot(tmp_path: Path) -> None:
    learner, path = rm.PlugIn(DOUBT), tmp_path / "run"
    try:
        learner.run(CHAIN, 100, checkpoint=path, progress=lambda seen: seen.step > 50)
    except ValueError:
        assert not path.exists()
    else:
        assert_same(rm.resume(path), learner.run(CHAIN, 100))


# Runs that are extended.

EXTENDED = ("generative", "generative ball", "markovian", "epsilon greedy", "Python", "FrozenLake", "replay", "csv")


@pytest.mark.parametrize("name", EXTENDED)
def test_a_finished_run_is_extended_to_the_bits_of_one_that_was_interrupted(name: str, tmp_path: Path) -> None:
    steps = CASES[name].steps
    case, finished, stopped = replace(CASES[name], steps=steps // 2), tmp_path / "finished", tmp_path / "stopped"
    case.run(tmp_path, checkpoint=finished, record_every=steps // 10)
    case.run(tmp_path, checkpoint=stopped, record_every=steps // 10, progress=lambda seen: seen.step > 0.3 * steps)
    extended = case.resume(tmp_path, finished, steps=steps)
    assert extended.steps == steps
    assert_same(extended, case.resume(tmp_path, stopped, steps=steps))
    assert finished.read_bytes() == stopped.read_bytes()
    assert_same(case.resume(tmp_path, finished), extended)  # the new end is kept
    again = case.resume(tmp_path, finished, steps=steps)
    assert_same(again, extended)


@pytest.mark.parametrize("name", ["generative paper", "markovian paper", "multilevel"])
def test_without_a_burn_in_an_extended_run_is_a_longer_one(name: str, tmp_path: Path) -> None:
    case, path = CASES[name], tmp_path / "run"
    every = case.steps // 4
    replace(case, steps=case.steps // 2).run(tmp_path, checkpoint=path, record_every=every)
    assert_same(case.resume(tmp_path, path, steps=case.steps), case.run(tmp_path, record_every=every))


def test_a_stopped_run_can_end_before_its_plan_but_not_before_what_is_done(saved: Path) -> None:
    done = checkpoints.read(saved).head.step
    assert rm.resume(saved, steps=done, checkpoint=saved.with_name("other")).steps == done
    sentence = f"^steps must be at least the {done} that {saved} has done: got {done - 1}$"
    with pytest.raises(ValueError, match=sentence):
        rm.resume(saved, steps=done - 1)
    with pytest.raises(TypeError, match=r"^steps must be a whole number: got 60\.0$"):
        rm.resume(saved, steps=60.0)  # type: ignore[arg-type]
    assert rm.resume(saved, steps=40).steps == 40


def test_the_progress_of_an_extended_run_counts_to_its_new_end(saved: Path) -> None:
    seen: list[Any] = []
    rm.resume(saved, steps=5000, progress=seen.append)
    assert {progress.steps for progress in seen} == {5000}
    assert seen[-1].step == 5000
    assert seen[-1].seconds_left == 0.0
    assert all(progress.seconds_left > 0.0 for progress in seen[:-1])


def test_more_steps_than_a_checkpoint_can_tell_of_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^steps must be at most \d+ with a checkpoint: got \d+$"):
        FOLLOW.run(SMALL, 2**63, checkpoint=tmp_path / "run")


# What is kept.


@pytest.mark.parametrize(
    "learner",
    [
        rm.GenerativeQLearning.paper(DOUBT, inner_steps=np.int64(3)),
        rm.GenerativeQLearning(DOUBT, burn_in=np.float32(0.25), initial=np.float64(1.5)),
        rm.GenerativeQLearning(rm.Penalized(rm.CressieRead(1.5), np.array([[1.0, np.inf], [0.0, np.nan]]))),
        rm.GenerativeQLearning(rm.Constrained(rm.TotalVariation(), 0.3)),
        rm.GenerativeQLearning(rm.Nominal()),
        rm.GenerativeQLearning(DOUBT, rm.schedules.Polynomial(0.5, 0.8, 3.0, 0.9), rm.schedules.Constant(0.1)),
        rm.MarkovianQLearning(DOUBT, np.array([[0.5, 0.5], [1.0, 0.0]])),
        rm.MarkovianQLearning.paper(DOUBT, literal=True),
    ],
    ids=str,
)
def test_every_setting_survives(learner: Any, tmp_path: Path) -> None:
    path = tmp_path / "run"
    whole = learner.run(SMALL, 200, seed=2**70)
    learner.run(SMALL, 200, seed=2**70, checkpoint=path, progress=lambda seen: seen.step > 20)
    assert_same(learner.resume(path), whole)


def test_the_world_survives_with_its_names(tmp_path: Path) -> None:
    rm.MarkovianQLearning(DOUBT).run(SMALL, 50, checkpoint=tmp_path / "run")
    assert rm.resume(tmp_path / "run").to_frame().index.tolist() == ["a", "b"]


def test_further_checkpoints_go_to_the_same_file_or_where_they_are_told(tmp_path: Path) -> None:
    path, other = tmp_path / "deep" / "run", tmp_path / "other"
    FOLLOW.run(CHAIN, 1000, checkpoint=str(path), progress=lambda seen: seen.step > 100)
    before = path.read_bytes()
    rm.resume(str(path), checkpoint=other)
    assert path.read_bytes() == before
    rm.resume(path)
    assert path.read_bytes() == other.read_bytes() != before
    assert sorted(tmp_path.rglob("*")) == sorted([path.parent, path, other])  # nothing else is left behind


def test_a_checkpoint_stays_small_in_a_world_without_episodes(tmp_path: Path) -> None:
    # Storage is O(|S||A|): what must be repeated to find the place again must not grow with the run.
    class Endless(gymnasium.Env[Any, Any]):
        observation_space, action_space = gymnasium.spaces.Discrete(3), gymnasium.spaces.Discrete(2)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            return 0, {}

        def step(self, action: Any) -> Any:
            return int(self.np_random.integers(3)), 1.0, False, False, {}

    sizes = []
    for steps in (5000, 50_000):
        FOLLOW.run(Endless(), steps, checkpoint=tmp_path / "run", record_every=steps)
        sizes.append((tmp_path / "run").stat().st_size)
    assert sizes[1] < 1.5 * sizes[0]


# What is refused.


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    FOLLOW.run(SMALL, 50, checkpoint=path, record_every=25, progress=lambda seen: seen.step > 20)
    return path


def outcome_of(path: Path) -> str:
    """What `resume` says of a file; one sentence that names it is right."""
    try:
        rm.resume(path, checkpoint=path.parent / "next")
    except ValueError as refusal:
        return "" if str(path) in str(refusal) else f"does not name the file: {refusal}"
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return "accepted"


def test_a_whole_file_is_accepted(saved: Path) -> None:
    assert outcome_of(saved) == "accepted"


def test_a_truncated_file_is_refused(saved: Path) -> None:
    data = saved.read_bytes()
    for length in sorted({0, 1, 7, 8, 9, 100, *range(0, len(data), 97), len(data) - 1}):
        saved.write_bytes(data[:length])
        assert outcome_of(saved) == "", length
    saved.write_bytes(data + b"\0")
    assert outcome_of(saved) == ""


def test_a_flipped_bit_is_refused_wherever_it_is(saved: Path) -> None:
    data = saved.read_bytes()
    wrong = {}
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << (place % 7)
        saved.write_bytes(bytes(changed))
        answer = outcome_of(saved)
        if answer:
            wrong[place] = answer, data[max(0, place - 25) : place + 5]
    assert not wrong, f"{len(wrong)} of {len(data)}, such as {list(wrong.values())[:3]}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (rb"\"seed\":0", rb"\"seed\":7"),
        (rb"\"steps\":50", rb"\"steps\":60"),
        (rb"\"weight\":1.0", rb"\"weight\":2.0"),
        (rb"\"discount\":0.9", rb"\"discount\":0.8"),
        (rb"\"ChiSquare\"", rb"\"Hellinger\""),
        (rb"\"MarkovianQLearning\"", rb"\"os.system_and_the_like\""),
        (rb"\"format\":", rb"\"format\":1"),
        (rb"\"format\":", rb"\"farmat\":"),
    ],
    ids=str,
)
def test_an_edited_head_is_refused(saved: Path, old: bytes, new: bytes) -> None:
    data = saved.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    head = data[8 : 8 + length].rstrip()
    assert old in head
    head = head.replace(old, new)
    head += b" " * (-len(head) % 8)
    saved.write_bytes(struct.pack("<Q", len(head)) + head + data[8 + length :])
    assert outcome_of(saved) == ""


def raw_safetensors(path: Path, kind: str, size: int) -> None:
    head = json.dumps({"x": {"dtype": kind, "shape": [2], "data_offsets": [0, size]}}).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + b"\0" * size)


@pytest.mark.parametrize(("kind", "size"), [("F64", 16), ("BF16", 4), ("F8_E4M3", 2), ("BOOL", 2)])
def test_another_librarys_file_is_refused(tmp_path: Path, kind: str, size: int) -> None:
    raw_safetensors(tmp_path / "model", kind, size)
    assert outcome_of(tmp_path / "model") == ""


def test_another_file_with_our_word_in_it_is_refused(tmp_path: Path) -> None:
    save_file({"x": np.zeros(2)}, tmp_path / "model", {"robustmdp": "{}"})
    assert outcome_of(tmp_path / "model") == ""


# What is refused although its checksum is right: anybody can compute one.

Head, Tables = dict[str, Any], dict[str, Any]
Change = Callable[[Head, Tables], Any]
EDITED = {
    "model": Case(GREEDY, lambda _: SMALL, 50),
    "ball": Case(rm.GenerativeQLearning(BALL), lambda _: SMALL, 50),
    "multilevel": Case(rm.MultilevelQLearning(BALL), lambda _: SMALL, 20),
    "simulator": Case(FOLLOW, lambda _: simulator(False), 200),
    "environment": Case(FOLLOW, lambda _: gymnasium.make("FrozenLake-v1"), 200),
    "log": Case(FOLLOW, lambda _: log(), 20_000),
    "plug-in": Case(rm.PlugIn(DOUBT, trajectory=True), lambda _: log(), 20_000),
}


def rewrite(path: Path, change: Change) -> None:
    """Edit a checkpoint and compute its checksum again, as whoever wants to be believed would."""
    with safe_open(path, framework="numpy") as file:
        head = json.loads(file.metadata()["robustmdp"])
    tensors: Tables = {name: tensor.copy() for name, tensor in load_file(path).items()}
    change(head, tensors)
    text = json.dumps({**head, "checksum": ""})
    with suppress(msgspec.ValidationError):  # no head at all, whatever its checksum
        head["checksum"] = checkpoints._checksum(msgspec.json.decode(text, type=checkpoints.Head), tensors)
    contiguous = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    save_file(contiguous, path, {"robustmdp": json.dumps(head)})


def say(**values: Any) -> Change:
    return lambda head, tensors: head.update(values)


def say_of(part: str, **values: Any) -> Change:
    return lambda head, tensors: head[part].update(values)


def say_of_world(**values: Any) -> Change:
    return lambda head, tensors: head.update(world=json.dumps(json.loads(head["world"]) | values))


def put(name: str, value: Any, place: int = 0) -> Change:
    return lambda head, tensors: tensors[name].reshape(-1).__setitem__(place, value)


def remake(name: str, change: Callable[[Any], Any]) -> Change:
    return lambda head, tensors: tensors.update({name: change(tensors[name])})


def drop(name: str) -> Change:
    return lambda head, tensors: tensors.pop(name)


def nested(depth: int) -> Any:
    inner: Any = []
    for _ in range(depth):
        inner = [inner]
    return inner


def generators(**values: Any) -> Change:
    def change(head: Head, tensors: Tables) -> None:
        both = copy.deepcopy(head["source"]["generators"])
        both[0]["state"] |= values
        head["source"]["generators"] = both

    return change


HOSTILE: dict[str, dict[str, Change]] = {
    "model": {
        "a successor outside": put("world.indices", 10**6),
        "rows that fall": put("world.indptr", 9, 1),
        "a state without actions": put("world.state_ptr", 0, 1),
        "an action twice": put("world.actions", 0, 1),
        "a probability of NaN": put("world.probabilities", np.nan),
        "an infinite reward": put("world.rewards", np.inf),
        "no rewards": drop("world.rewards"),
        "another array": lambda head, tensors: tensors.update({"world.gift": np.zeros(3)}),
        "2**62 actions": say_of_world(n_actions=2**62),
        "2**31 - 2 actions": say_of_world(n_actions=2**31 - 2),
        "a name too few": say_of_world(state_names=["a"]),
        "names that are text": say_of_world(state_names="ab"),
        "a world that is no JSON": say(world="["),
        "greedy in another state": put("table.greedy", 2),
        "greedy far outside": put("table.greedy", 2**31 - 1),
        "greedy before the first": put("table.greedy", -(2**31)),
        "lowest far outside": put("table.lowest", 10**9),
        "lowest below -1": put("table.lowest", -2),
        "a visit too many": put("table.visits", 2**32 - 1),
        "Q of NaN": put("table.q", np.nan),
        "an infinite average": put("table.average", np.inf),
        "Q in single precision": remake("table.q", np.float32),
        "Q too long": remake("table.q", lambda q: np.append(q, 0.0)),
        "Q too short": remake("table.q", lambda q: q[:1]),
        "no Q": drop("table.q"),
        "another table": lambda head, tensors: tensors.update({"table.gift": np.zeros(3)}),
        "another tensor": lambda head, tensors: tensors.update({"gift": np.zeros(3)}),
        "another range of rewards": put("table.extent", -1e300),
        "diverged later": put("table.diverged", 10**6),
        "a trace that goes back": put("trace.step", 1, 1),
        "a trace beyond the step": put("trace.step", 10**6, -1),
        "a trace of other shapes": remake("trace.errors", lambda errors: errors[:1]),
        "a trace without steps": drop("trace.step"),
        "a reference that is not there": say(referenced=True),
        "a reference that is not told": lambda head, tensors: tensors.update(reference=np.zeros(3)),
        "a watch of another shape": lambda head, tensors: tensors.update(
            {"watched.q": np.zeros((1, 99)), "watched.visits": np.zeros((1, 99), np.int64)}
        ),
        "step after the last": say(step=51),
        "step that was not taken": say(step=7),
        "step without end": say(step=2**62, steps=2**63 - 1),
        "step below 0": say(step=-1),
        "no steps": say(step=0, steps=0),
        "steps without end": say(steps=2**70),
        "record_every 0": say(record_every=0),
        "every 0": say(every=0),
        "seed below 0": say(seed=-1),
        "discount 1": say(discount=1.0),
        "no discount": say(discount=None),
        "start outside": say(start=7),
        "rewards the wrong way round": say(reward_range=[2.0, -1.0]),
        "rewards outside their range": say(reward_range=[0.0, 0.0]),
        "a state outside": say_of("source", states=[2]),
        "a state below 0": say_of("source", states=[-1]),
        "a state far outside": say_of("source", states=[2**62]),
        "two states": say_of("source", states=[0, 0]),
        "no state": say_of("source", states=[]),
        "a state that is text": say_of("source", states="0"),
        "another place": say_of("source", gift=1),
        "no place": say(source={}),
        "no learner": say(learner={"type": "ChiSquare"}),
        "an unknown setting": say_of("learner", gift=1),
        "a burn-in that is text": say_of("learner", burn_in="0.05"),
        "a flag that is text": say_of("learner", noisy_rewards="no"),
        "a behaviour that is none": say_of("learner", behaviour={"type": "KL"}),
        "an ambiguity that is none": say_of("learner", ambiguity={"type": "EpsilonGreedy", "epsilon": 0.5}),
        "a number that is none": say_of("learner", initial={"number": "many"}),
        "a deep behaviour": say_of("learner", behaviour=nested(400)),
    },
    "ball": {"a schedule that is text": say_of("learner", q_steps={"type": "Constant", "size": "0.1"})},
    "multilevel": {"samples below 0": put("table.drawn", -1), "samples without end": put("table.drawn", 2**62)},
    "simulator": {
        "a state outside": say_of("source", state=3),
        "a state far outside": say_of("source", state=2**70),
        "one generator": lambda head, tensors: head["source"]["generators"].pop(),
        "another generator": lambda head, tensors: head["source"]["generators"][0].update(bit_generator="MT19937"),
        "a generator that is text": say_of("source", generators=["a", "b"]),
        "a state of 200 bits": generators(state=f"#{2**129}"),
        "a state that is no number": generators(state="#x"),
        "an even increment": generators(inc="#2"),
        "half a generator": lambda head, tensors: head["source"]["generators"][0]["state"].pop("inc"),
        "a watch of another shape": remake("watched.q", lambda q: q[:, :1]),
        "half a watch": drop("watched.visits"),
        "step far outside": say(step=2**61, steps=2**62),
    },
    "environment": {
        "an action outside": say_of("source", actions=[4]),
        "an action below 0": say_of("source", actions=[-1]),
        "actions without end": say_of("source", actions=[0] * 20_000),
        "no seeding": say_of("source", seedings=0),
        "a generator that is text": say_of("source", generator="PCG64"),
        "an infinite reward": put("table.extent", -np.inf),
    },
    "log": {
        "step after the end": say(step=10**6, steps=10**6),
        "another place": say_of("source", row=3),
    },
    "plug-in": {
        "keys that fall": remake("table.keys.0", lambda keys: keys[::-1]),
        "a key outside": put("table.keys.0", 10**9, -1),
        "a key below 0": put("table.keys.0", -1),
        "nothing counted": put("table.counts.0", 0.0),
        "counts of NaN": put("table.counts.0", np.nan),
        "sums without end": put("table.sums.0", np.inf),
        "sums too short": remake("table.sums.0", lambda sums: sums[:-1]),
        "no keys": drop("table.keys.0"),
        "an ending twice": remake("table.endings", lambda rewards: np.append(rewards, rewards[:1])),
        "an infinite ending": put("table.endings", np.inf),
    },
}


@pytest.fixture(scope="module")
def half_done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    for name, case in EDITED.items():
        case.run(folder, checkpoint=folder / name, progress=lambda seen, case=case: seen.step > 0.4 * case.steps)
    return {name: folder / name for name in EDITED}


@pytest.mark.parametrize("name", EDITED)
def test_a_checkpoint_that_was_written_anew_is_accepted(name: str, half_done: dict[str, Path], tmp_path: Path) -> None:
    case, path = EDITED[name], tmp_path / "run"
    path.write_bytes(half_done[name].read_bytes())
    rewrite(path, lambda head, tensors: None)
    assert_same(case.resume(tmp_path, path), case.run(tmp_path))


@pytest.mark.parametrize(("name", "edit"), [(name, edit) for name, edits in HOSTILE.items() for edit in edits])
def test_a_hostile_checkpoint_is_refused_in_one_sentence(
    name: str, edit: str, half_done: dict[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "run"
    path.write_bytes(half_done[name].read_bytes())
    rewrite(path, HOSTILE[name][edit])
    with pytest.raises(ValueError, match=r"\Aa checkpoint('s head)? must [^\n]*\Z") as refusal:
        EDITED[name].resume(tmp_path, path, checkpoint=tmp_path / "next", progress=lambda seen: True)
    assert str(path) in str(refusal.value)
    assert not (tmp_path / "next").exists()


@pytest.mark.parametrize("depth", [400, 900, 1500, 100_000])
def test_a_deep_head_is_refused(saved: Path, depth: int) -> None:
    with safe_open(saved, framework="numpy") as file:
        text = file.metadata()["robustmdp"]
    deep = text.replace('"source":{', f'"source":{{"deep":{"[" * depth}{"]" * depth},')
    save_file(load_file(saved), saved, {"robustmdp": deep})
    assert outcome_of(saved) == ""


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_pickle_is_refused_and_not_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(pickle.dumps(Bomb(tmp_path / "boom")))
    assert outcome_of(tmp_path / "file") == ""
    assert not (tmp_path / "boom").exists()


@pytest.mark.parametrize("module", ["checkpoints", "settings"])
def test_nothing_can_be_unpickled(module: str) -> None:
    text = (Path(checkpoints.__file__).parent / f"{module}.py").read_text()
    names = {alias.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
    assert not names & {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "torch"}
    assert not any(word in text for word in ("np.load", "eval(", "exec(", "__import__"))


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(ValueError, match=f"^a checkpoint must be a file: there is none at {path}$"):
            rm.resume(path)


def test_other_settings_are_refused_and_named(saved: Path) -> None:
    other = rm.MarkovianQLearning(rm.Penalized(rm.ChiSquare(), 2.0), burn_in=0.5)
    with pytest.raises(ValueError, match="a checkpoint must be resumed with its own settings") as refusal:
        other.resume(saved)
    assert str(refusal.value) == (
        f"a checkpoint must be resumed with its own settings: in {saved} ambiguity is "
        "Penalized(ChiSquare(), weight=1.0) there, Penalized(ChiSquare(), weight=2.0) here; "
        "burn_in is 0.05 there, 0.5 here"
    )
    with pytest.raises(ValueError, match=r"is of MarkovianQLearning, not GenerativeQLearning$"):
        rm.GenerativeQLearning(DOUBT).resume(saved)
    assert FOLLOW.resume(saved).steps == 50


def changed(world: Any, **changes: Any) -> Any:
    return rm.Simulator(**{**world.__dict__, **changes})


OTHERS: dict[str, tuple[Any, Any]] = {
    "MDP": (CHAIN, rm.problems.chain(restart=0.4)),
    "kind": (simulator(False), log()),
    "Simulator states": (simulator(False), changed(simulator(False), n_states=4)),
    "Simulator start": (simulator(False), changed(simulator(False), start=1)),
    "Simulator code": (simulator(False), changed(simulator(False), sample=lambda s, a, rng: (0.0, 0, True))),
    "arrays": (log(), rm.Trajectory([0, 1], [0, 1], [0.0, 1.0], [1, 0])),
    "replay": (log().replay(2), log().replay(2, seed=1)),
    "environment": (gymnasium.make("FrozenLake-v1"), gymnasium.make("FrozenLake8x8-v1")),
    "environment options": (gymnasium.make("FrozenLake-v1"), gymnasium.make("FrozenLake-v1", is_slippery=False)),
}


DRAWS = {
    "comprehension": "def draw(state, action, rng):\n    return max([0.0 for _ in range(3)]), action, False",
    "nested function": (
        "def draw(state, action, rng):\n    def pay(x):\n        return min(1.0, 0.5 * x)\n"
        "    return pay(state), int(rng.integers(3)), False"
    ),
    "nested twice": "def draw(state, action, rng):\n    return (lambda: [0.0 for _ in [1]][0])(), 0, state in (1, 2)",
}


def written_anew(text: str) -> Any:
    """A function of its own, as in another process."""
    names: dict[str, Any] = {}
    exec(text, names)
    return names["draw"]


@pytest.mark.parametrize("name", DRAWS)
def test_a_simulator_is_known_by_what_its_code_says(name: str, tmp_path: Path) -> None:
    path, text = tmp_path / "run", DRAWS[name]
    FOLLOW.run(rm.Simulator(written_anew(text), 3, 2, 0.9, (0.0, 1.0)), 100, checkpoint=path)
    assert rm.resume(path, rm.Simulator(written_anew(text), 3, 2, 0.9, (0.0, 1.0))).steps == 100
    other = rm.Simulator(written_anew(text.replace("0.", "0.2")), 3, 2, 0.9, (0.0, 1.0))
    with pytest.raises(ValueError, match=r"is another Simulator$"):
        rm.resume(path, other)


def test_a_simulator_with_whole_numbers_for_rewards_goes_on(tmp_path: Path) -> None:
    path, draw = tmp_path / "run", getattr(sample, "py_func", sample)
    world = rm.Simulator(draw, np.int64(3), 2, np.float64(0.9), (0, 1), start=np.int64(1))
    for start in (None, np.int64(2)):
        FOLLOW.run(world, 100, start=start, checkpoint=path, progress=lambda seen: seen.step > 20)
        assert_same(rm.resume(path, world), FOLLOW.run(world, 100, start=start))


def test_a_simulator_with_a_set_goes_on_in_another_process(tmp_path: Path) -> None:
    # The order of a set of words depends on the process.
    script = tmp_path / "work.py"
    script.write_text(
        "import sys, warnings\nimport robustmdp as rm\nwarnings.simplefilter('ignore')\n"
        "def draw(state, action, rng):\n"
        "    return float(str(state) in {'0', 'one', 'two', 'three', 'four', 'five'}), int(rng.integers(3)), False\n"
        "world = rm.Simulator(draw, 3, 2, 0.9, (0.0, 1.0))\n"
        "learner = rm.MarkovianQLearning(rm.Penalized(rm.ChiSquare(), 1.0))\n"
        "print(rm.resume('run', world) if 'resume' in sys.argv else learner.run(world, 50, checkpoint='run'))\n"
    )
    for seed, word in (("1", "run"), ("2", "resume")):
        call = [sys.executable, str(script), word]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", OTHERS)
def test_another_world_is_refused(name: str, tmp_path: Path) -> None:
    path, (mine, other) = tmp_path / "run", OTHERS[name]
    FOLLOW.run(mine, 2000, checkpoint=path, progress=lambda seen: seen.step > 500)
    with pytest.raises(ValueError, match=f"^a checkpoint must be resumed in its own world: that of {path} is "):
        rm.resume(path, other)
    rm.resume(path, mine)


def test_a_world_that_is_not_an_mdp_must_be_given_again(tmp_path: Path) -> None:
    path = tmp_path / "run"
    FOLLOW.run(simulator(False), 100, checkpoint=path)
    sentence = f"a world that is not an MDP must be given again: {path} was learned from a Simulator"
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        rm.resume(path)


# A full disk.


def full(*arguments: Any, **options: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_a_full_disk_costs_a_warning_only(where: str, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, plain = saved.read_bytes(), FOLLOW.run(SMALL, 1000)
    monkeypatch.setattr(os, where, full)
    sentence = f"the checkpoint must be writable: {saved} was not .*No space left on device.*; the run goes on, and an"
    with pytest.warns(RuntimeWarning, match=sentence):
        learned = FOLLOW.run(SMALL, 1000, checkpoint=saved)
    monkeypatch.undo()
    assert np.array_equal(learned.q, plain.q)
    assert learned.status.code == "step_limit"
    assert learned.status.sentence.count("could not be written") == 1
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]
    assert rm.resume(saved).steps == 50


def test_a_disk_that_has_room_again_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = os.fsync, 0

    def sometimes(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            full()
        real(handle)

    monkeypatch.setattr(os, "fsync", sometimes)
    with pytest.warns(RuntimeWarning, match="must be writable"):
        learned = FOLLOW.run(SMALL, 1000, checkpoint=tmp_path / "run")
    assert calls == 10
    assert "could not be written" not in learned.status.sentence  # the last one was
    assert_same(rm.resume(tmp_path / "run"), FOLLOW.run(SMALL, 1000))


def test_a_real_limit_on_file_sizes_costs_a_warning_only(saved: Path) -> None:
    before = saved.read_bytes()
    report, answer = os.pipe()

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            learned = FOLLOW.run(SMALL, 1000, checkpoint=saved)
        os.write(answer, json.dumps([learned.steps, len(caught), str(caught[0].message)]).encode())

    os.waitpid(forked(limited), 0)
    os.close(answer)
    with os.fdopen(report) as pipe:
        steps, count, message = json.loads(pipe.read())
    assert steps == 1000
    assert count >= 1
    assert "File too large" in message
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_place_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    # A folder will not become a file while the run lasts.
    with pytest.raises(ValueError, match=str(tmp_path)):
        FOLLOW.run(SMALL, 1000, checkpoint=tmp_path)
