"""A run on disk: one safetensors file whose head is a small JSON record; replaced in one go, never half written.

Nothing is unpickled. The head holds version, settings, seed, step and a checksum of the tables; an MDP's arrays are
kept beside the tables, so that a run in one resumes from the file alone. The checksum finds accidents, not intent:
anybody can compute it. So all that comes from a file is checked before compiled code sees it.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._files import replace_file
from robustmdp.learning import settings
from robustmdp.learning.runs import WATCHED, Learner, Record, Run
from robustmdp.learning.sources.base import check_reward_range
from robustmdp.learning.tables import MOST_SAMPLES, Expected, check_tables
from robustmdp.models import MDP, Noise, columns, consistency

FORMAT = 2
_WORLD, _TABLE = "world.", "table."
_TRACE = {"step": np.int64, "samples": np.int64, "errors": np.float64}
_MOST_STEPS = (1 << 63) - 1
_PROBLEMS = (ValueError, TypeError, ArithmeticError, AttributeError, LookupError, RecursionError, MemoryError)
_LONGEST = 240  # letters of a problem in a message

Count = Annotated[int, msgspec.Meta(ge=0)]
Size = Annotated[int, msgspec.Meta(ge=1)]
Steps = Annotated[int, msgspec.Meta(ge=1, le=_MOST_STEPS)]


class Head(msgspec.Struct, forbid_unknown_fields=True):
    """What a checkpoint says of itself.

    Attributes
    ----------
    step : steps that were done
    steps : the last step; `resume` can move it
    horizon : steps of the first plan, on which a burn-in depends
    """

    format: int
    version: str
    learner: dict[str, Any]
    seed: Count
    step: Count
    steps: Steps
    horizon: Steps
    record_every: Size
    every: Size
    start: Count | None
    discount: Annotated[float, msgspec.Meta(ge=0.0, lt=1.0)] | None
    reward_range: tuple[float, float] | None
    referenced: bool
    world: str
    fingerprint: str
    source: dict[str, Any]
    checksum: str

    def __post_init__(self) -> None:
        _checks.must(self.step <= self.steps, f"step must be at most steps, {self.steps}: got {self.step}")
        if self.reward_range is not None:
            check_reward_range(self.reward_range)


class Notes(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What the arrays of an MDP do not say."""

    n_actions: Annotated[int, msgspec.Meta(ge=1, le=columns.LARGEST + 1)]
    state_names: tuple[str, ...] | None
    action_names: tuple[str, ...] | None
    noise: tuple[Any, ...] | None = None  # its values


class Saved(NamedTuple):
    """A checkpoint in memory."""

    path: Path
    head: Head
    tensors: dict[str, npt.NDArray[Any]]

    def named(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """The tensors whose names begin so, by the rest of their names."""
        return {name.removeprefix(prefix): t for name, t in self.tensors.items() if name.startswith(prefix)}


@contextmanager
def refuse_for(path: Path, what: str) -> Iterator[None]:
    """Turn what anything has against values from a file into one sentence about the file."""
    try:
        yield
    except _PROBLEMS as problem:
        reason = " ".join(f"{problem}".split())[:_LONGEST] or type(problem).__name__
        _checks.fail(f"a checkpoint must {what}: {path} does not ({reason})")


class Saver:
    """Writes a run to a file; a full disk costs a warning and leaves the previous checkpoint."""

    def __init__(self, run: Run, path: Path, every: int) -> None:
        settings.encode(run.learner)  # refuse at once what could not be saved later
        most = max(run.steps, run.horizon)
        _checks.must(most <= _MOST_STEPS, f"steps must be at most {_MOST_STEPS} with a checkpoint: got {most}")
        _checks.must(not path.is_dir(), f"checkpoint must be a file: {path} is a folder")
        if (world := getattr(run.source, "mdp", None)) is not None:
            _describe(world)
        self._path, self._every = path, every

    def __call__(self, run: Run) -> None:
        try:
            write(run, self._path, self._every)
            run.notes.clear()
        except OSError as problem:
            run.notes[:] = [f"The last checkpoint could not be written ({problem})."]
            warnings.warn(
                f"the checkpoint must be writable: {self._path} was not ({problem}); the run goes on, "
                "and an earlier checkpoint is as it was",
                RuntimeWarning,
                stacklevel=3,
            )


def write(run: Run, path: Path, every: int) -> None:
    """To a temporary file beside `path`, then renamed."""
    from safetensors.numpy import save

    tensors = {_TABLE + name: table for name, table in run.state.save().items()}
    for name, kind in _TRACE.items():
        shape = (len(run.trace),) if name == "step" else (len(run.trace), len(run.seeds))
        tensors[f"trace.{name}"] = np.array([getattr(record, name) for record in run.trace], kind).reshape(shape)
    if run.reference is not None:
        tensors["reference"] = run.reference
    if run.watched is not None:
        tensors["watched.q"], tensors["watched.visits"] = run.watched
    world = getattr(run.source, "mdp", None)
    if world is not None:
        tensors |= {_WORLD + name: np.asarray(getattr(world, name)) for name in consistency.TYPES}
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    head = Head(
        format=FORMAT,
        version=version("robustmdp"),
        learner=settings.encode(run.learner),
        seed=run.seeds[0],
        step=run.done,
        steps=run.steps,
        horizon=run.horizon,
        record_every=run.record_every,
        every=every,
        start=None if run.start is None else int(run.start),
        discount=float(run.source.shape.discount),
        reward_range=run.source.shape.reward_range,
        referenced=run.reference is not None,
        world=_describe(world) if world is not None else run.source.name,
        fingerprint=run.source.fingerprint,
        source=run.source.save(),
        checksum="",
    )
    head.checksum = _checksum(head, tensors)
    data = save(tensors, metadata={"robustmdp": msgspec.json.encode(head).decode()})
    with replace_file(path) as part:
        part.write_bytes(data)


def _describe(world: MDP) -> str:
    values = None if world.noise is None else world.noise.to_builtins()
    return msgspec.json.encode(Notes(world.n_actions, world.state_names, world.action_names, values)).decode()


def _checksum(head: Head, tensors: dict[str, npt.NDArray[Any]]) -> str:
    """Of the head without its checksum, and of everything else."""
    digest = hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(head, checksum="")))
    for name in sorted(tensors):
        digest.update(name.encode() + b"\0" + str(tensors[name].dtype).encode() + str(tensors[name].shape).encode())
        digest.update(np.ascontiguousarray(tensors[name]).data)
    return digest.hexdigest()


def read(path: Path) -> Saved:
    """Read and check a checkpoint."""
    import safetensors
    from safetensors import safe_open

    _checks.must(path.is_file(), f"a checkpoint must be a file: there is none at {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get("robustmdp")
            _checks.must(text is not None, f"a checkpoint must have been written by a learner: {path} was not")
            head = msgspec.json.decode(text or "", type=Head)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        is_whole = _checksum(head, tensors) == head.checksum
    except (msgspec.MsgspecError, RecursionError) as problem:
        _checks.fail(f"a checkpoint's head must be readable: that of {path} is not ({problem})")
    except (safetensors.SafetensorError, OSError, TypeError, AttributeError) as problem:
        _checks.fail(f"a checkpoint must be whole: {path} is truncated or altered ({problem})")
    _checks.must(
        head.format == FORMAT,
        f"a checkpoint must have format {FORMAT}: {path} has {head.format}, written by robustmdp {head.version[:40]!r}",
    )
    _checks.must(is_whole, f"a checkpoint must be whole: {path} was altered, its checksum differs")
    return Saved(path, head, tensors)


def learner_of(saved: Saved) -> Learner:
    """The learner with the settings of the run."""
    with refuse_for(saved.path, "hold the settings of a learner"):
        learner: Learner = settings.decode(saved.head.learner)
        _checks.must(isinstance(learner, Learner), f"the settings must be those of a learner: got {learner!r}")
    return learner


def check_same(learner: Learner, saved: Learner, path: Any) -> None:
    """Refuse a checkpoint of other settings and say what differs."""
    _checks.must(
        type(learner) is type(saved),
        f"a checkpoint must be resumed by its own learner: {path} is of {type(saved).__name__}, "
        f"not {type(learner).__name__}",
    )
    mine, theirs = settings.encode(learner), settings.encode(saved)
    differing = [
        f"{name} is {getattr(saved, name)!r} there, {getattr(learner, name)!r} here"
        for name in mine
        if mine[name] != theirs[name]
    ]
    _checks.must(not differing, f"a checkpoint must be resumed with its own settings: in {path} {'; '.join(differing)}")


def world_of(saved: Saved) -> MDP:
    """The MDP that was saved along, checked as any other."""
    path, head, arrays = saved.path, saved.head, saved.named(_WORLD)
    if not arrays:
        _checks.fail(f"a world that is not an MDP must be given again: {path} was learned from a {head.world[:80]}")
    with refuse_for(path, "hold a model"):
        notes = msgspec.json.decode(head.world, type=Notes)
        parts = msgspec.structs.asdict(notes)
        if notes.noise is not None:
            parts["noise"] = Noise.from_builtins(notes.noise, arrays["probabilities"][: len(notes.noise)], str(path))
        mdp = MDP(**arrays, **parts, discount=head.discount)  # type: ignore[arg-type]
        consistency.check_room(mdp.n_states, mdp.n_actions, mdp.nnz)
    return mdp


def restore(run: Run, saved: Saved) -> None:
    """Put the tables, the trace and the place in the world back."""
    path, head, _ = saved
    _checks.must(
        run.source.fingerprint == head.fingerprint,
        f"a checkpoint must be resumed in its own world: that of {path} is another {run.source.name}",
    )
    with refuse_for(path, "hold what a run has learned"):
        run.source.load(head.source)
        run.state.load(saved.named(_TABLE))
        run.done = head.step
        _check_count(run)
        _restore_records(run, saved)


def _check_count(run: Run) -> None:
    """Refuse a number of steps that the world or the tables contradict."""
    shape, end = run.source.shape, run.source.length
    most = MOST_SAMPLES // run.learner.samples_per_step(shape) if end is None else end
    _checks.must(run.done <= most, f"step must be at most {most} in this world: got {run.done}")
    diverged = int(run.state.diverged[0])
    _checks.must(diverged <= run.done, f"diverged must be at most the step, {run.done}: got {diverged}")
    samples, visits = run.samples(0), int(run.state.tables["visits"].sum(dtype=np.uint64))
    # Those of a pair are counted up to 2**32 - 1, and none once a run has diverged.
    _checks.must(
        visits == samples or samples > visits >= np.iinfo(np.uint32).max or diverged >= 0,
        f"the visits of all pairs must sum to {samples} after {run.done} steps: got {visits}",
    )


def _restore_records(run: Run, saved: Saved) -> None:
    """The trace, the reference, and the values from which the next residual is estimated."""
    tensors = {name: tensor for name, tensor in saved.tensors.items() if not name.startswith((_WORLD, _TABLE))}
    replications, pairs, count = len(run.seeds), run.source.shape.n_pairs, len(tensors.get("trace.step", ()))
    expected = {
        "trace.step": Expected(np.int64, (count,), 1, run.done),
        "trace.samples": Expected(np.int64, (count, replications), 0, MOST_SAMPLES),
        "trace.errors": Expected(np.float64, (count, replications)),
    }
    if saved.head.referenced:
        expected["reference"] = Expected(np.float64, (pairs,))
    if "watched.q" in tensors:
        watched = replications, min(WATCHED, pairs)
        expected["watched.q"] = Expected(np.float64, watched)
        expected["watched.visits"] = Expected(np.int64, watched, 0, MOST_SAMPLES)
    check_tables(tensors, expected)
    steps, samples, errors = (tensors[f"trace.{name}"] for name in _TRACE)
    columns.refuse_where(np.diff(steps, prepend=0) <= 0, "rise", "trace.step", steps)
    run.trace = [Record(int(step), *record) for step, *record in zip(steps, samples, errors, strict=True)]
    run.reference = tensors.get("reference")
    run.watched = (tensors["watched.q"], tensors["watched.visits"]) if "watched.q" in tensors else None
