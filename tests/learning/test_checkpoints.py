"""Checkpoints: a run that was killed goes on to the same bits, and a file that is not what it was is refused."""

from __future__ import annotations

import ast
import errno
import json
import os
import pickle
import random
import resource
import signal
import struct
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gymnasium
import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

import robustmdp as rm
from robustmdp.learning import checkpoints, running

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
    monkeypatch.setattr(running, "_SECONDS_PER_PIECE", 0.001)  # many places to stop at
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
        child = forked(lambda path=path: case.run(tmp_path, checkpoint=path, checkpoint_every=max(1, case.steps // 40)))
        deadline = time.monotonic() + 30
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.0005)
        time.sleep(moments.random() * 0.03)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert_same(case.resume(tmp_path, path), whole)


def test_a_compiled_run_killed_in_a_process_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    case, path = CASES["compiled"], tmp_path / "run"
    child = forked(lambda: case.run(tmp_path, checkpoint=path, checkpoint_every=100))
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert_same(case.resume(tmp_path, path), undisturbed("compiled", tmp_path))


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
        (rb"\"format\":1", rb"\"format\":2"),
        (rb"\"format\":1", rb"\"farmat\":1"),
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
