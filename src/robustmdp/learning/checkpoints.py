"""A run on disk: one safetensors file whose head is a small JSON record; replaced in one go, never half written.

Nothing is unpickled. The head holds version, settings, seed, step and a checksum of the tables; an MDP's arrays are
kept beside the tables, so that a run in one resumes from the file alone.
"""

from __future__ import annotations

import hashlib
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._files import whole
from robustmdp.learning import settings
from robustmdp.models import MDP

if TYPE_CHECKING:
    from robustmdp.learning.running import Learner, Run

FORMAT = 1
_WORLD, _TABLE = "world.", "table."
_TRACE = ("step", "samples", "errors")


class Head(msgspec.Struct, forbid_unknown_fields=True):
    """What a checkpoint says of itself."""

    format: int
    version: str
    learner: dict[str, Any]
    seed: int
    step: int
    steps: int
    horizon: int
    record_every: int
    every: int
    start: int | None
    discount: float | None
    reward_range: tuple[float, float] | None
    referenced: bool
    world: str
    fingerprint: str
    source: dict[str, Any]
    checksum: str


class Saved(NamedTuple):
    """A checkpoint in memory."""

    head: Head
    tensors: dict[str, npt.NDArray[Any]]


class Saver:
    """Writes a run to a file; a full disk costs a warning and leaves the previous checkpoint."""

    def __init__(self, run: Run, path: Path, every: int) -> None:
        settings.to_words(run.learner)  # refuse at once what could not be saved later
        _checks.must(not path.is_dir(), f"checkpoint must be a file: {path} is a folder")
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

    tensors = {_TABLE + name: table for name, table in run.pupil.save().items()}
    tensors |= {f"trace.{name}": np.array([getattr(record, name) for record in run.trace]) for name in _TRACE}
    if run.reference is not None:
        tensors["reference"] = run.reference
    if run.watched is not None:
        tensors["watched.q"], tensors["watched.visits"] = run.watched
    world = getattr(run.source, "mdp", None)
    if world is not None:
        tensors |= {_WORLD + name: np.asarray(getattr(world, name)) for name in _ARRAYS}
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    head = Head(
        format=FORMAT,
        version=version("robustmdp"),
        learner=settings.to_words(run.learner),
        seed=run.seeds[0],
        step=run.done,
        steps=run.steps,
        horizon=run.horizon,
        record_every=run.record_every,
        every=every,
        start=run.start,
        discount=run.source.shape.discount,
        reward_range=run.source.shape.reward_range,
        referenced=run.reference is not None,
        world=_describe(world) if world is not None else run.source.name,
        fingerprint=run.source.fingerprint,
        source=run.source.save(),
        checksum="",
    )
    head.checksum = _checksum(head, tensors)
    data = save(tensors, metadata={"robustmdp": msgspec.json.encode(head).decode()})
    with whole(path) as part:
        part.write_bytes(data)


_ARRAYS = ("indptr", "indices", "probabilities", "rewards", "state_ptr", "actions")


def _describe(world: MDP) -> str:
    names = {"n_actions": world.n_actions, "state_names": world.state_names, "action_names": world.action_names}
    return msgspec.json.encode(names).decode()


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
    except msgspec.MsgspecError as problem:
        _checks.fail(f"a checkpoint's head must be readable: that of {path} is not ({problem})")
    except (safetensors.SafetensorError, OSError, TypeError, AttributeError) as problem:
        _checks.fail(f"a checkpoint must be whole: {path} is truncated or altered ({problem})")
    _checks.must(
        head.format == FORMAT,
        f"a checkpoint must have format {FORMAT}: {path} has {head.format}, written by robustmdp {head.version}",
    )
    _checks.must(
        _checksum(head, tensors) == head.checksum,
        f"a checkpoint must be whole: {path} was altered, its checksum differs",
    )
    return Saved(head, tensors)


def learner_of(saved: Saved) -> Learner:
    """The learner with the settings of the run."""
    learner: Learner = settings.from_words(saved.head.learner)
    return learner


def check_same(learner: Learner, saved: Learner, path: Any) -> None:
    """Refuse a checkpoint of other settings and say what differs."""
    _checks.must(
        type(learner) is type(saved),
        f"a checkpoint must be resumed by its own learner: {path} is of {type(saved).__name__}, "
        f"not {type(learner).__name__}",
    )
    mine, theirs = settings.to_words(learner), settings.to_words(saved)
    differing = [name for name in mine if mine[name] != theirs[name]]
    if differing:
        shown = "; ".join(
            f"{name} is {getattr(saved, name)!r} there, {getattr(learner, name)!r} here" for name in differing
        )
        _checks.fail(f"a checkpoint must be resumed with its own settings: in {path} {shown}")


def world_of(saved: Saved, path: Any) -> MDP:
    """The MDP that was saved along."""
    if _WORLD + "indptr" not in saved.tensors:
        _checks.fail(f"a world that is not an MDP must be given again: {path} was learned from a {saved.head.world}")
    names = msgspec.json.decode(saved.head.world)
    arrays = {name: saved.tensors[_WORLD + name] for name in _ARRAYS}
    listed = {kind: tuple(names[kind]) if names[kind] else None for kind in ("state_names", "action_names")}
    fields: dict[str, Any] = {**arrays, **listed, "n_actions": names["n_actions"], "discount": saved.head.discount}
    return MDP(**fields)


def restore(run: Run, saved: Saved, path: Any) -> None:
    """Put the tables, the trace and the place in the world back."""
    from robustmdp.learning.running import Record

    head, tensors = saved
    _checks.must(
        run.source.fingerprint == head.fingerprint,
        f"a checkpoint must be resumed in its own world: that of {path} is another {run.source.name}",
    )
    run.source.load(head.source)
    run.pupil.load({name.removeprefix(_TABLE): t for name, t in tensors.items() if name.startswith(_TABLE)})
    columns = (tensors[f"trace.{name}"] for name in _TRACE)
    run.trace = [Record(int(step), samples, errors) for step, samples, errors in zip(*columns, strict=True)]
    run.reference = tensors.get("reference")
    if "watched.q" in tensors:
        run.watched = tensors["watched.q"], tensors["watched.visits"]
    run.done = head.step
