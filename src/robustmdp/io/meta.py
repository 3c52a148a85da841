"""What a format cannot hold: notes within the file, or in a small JSON file beside it, `model.csv.meta.json`.

The files of one model are a unit: they are read together, and no file of another program is replaced.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np

from robustmdp import _checks
from robustmdp.io.arrow import parquet_file
from robustmdp.io.bounds import implies
from robustmdp.io.choices import written_initial_states, written_state_labels
from robustmdp.io.explicit import PARQUET_NOTES, Explicit
from robustmdp.io.labelling import to_pairs, uniform
from robustmdp.io.text import listed, quote_error
from robustmdp.models import MDP

Result = TypeVar("Result")
VERSION = 1
_ATTEMPTS = 3
_PAUSE = 0.005  # seconds, far more than lie between two renames of a writer
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 2)]
Size = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 2)]


class Meta(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Notes on a model.

    Attributes
    ----------
    ends : how many states after the `n_states` real ones stand for the end in the file
        More than one where a pair ends in several ways: the first goes to the first of them, and so on.
    rewards_on_successors : is there one reward per transition?
    actions : the number of each pair's action, where the file only numbers the choices of a state
    rewards : that of each transition, where the file only has their means
    probabilities : that of each transition, where the file has intervals that do not imply them
    labels : the states of each label that the file has no place for
    initial : states and probabilities, where the file has no place for them
    label_names : of the labels in our own format
    noise : its values, in our own format alone; its probabilities are those of each row
    has_initial : are the initial states of the file the model's own? PRISM and Storm must have one
    sha256 : of the files that the notes stand beside; none where they were written before there was one
    """

    version: int
    discount: float
    n_states: Size
    n_actions: Size
    ends: Count = 0
    rewards_on_successors: bool = False
    state_names: tuple[str, ...] | None = None
    action_names: tuple[str, ...] | None = None
    actions: tuple[Count, ...] | None = None
    rewards: tuple[float, ...] | None = None
    probabilities: tuple[float, ...] | None = None
    labels: dict[str, tuple[Count, ...]] | None = None
    initial: tuple[tuple[Count, float], ...] | None = None
    label_names: tuple[str, ...] | None = None
    has_initial: bool = False
    noise: tuple[Any, ...] | None = None
    sha256: tuple[str, ...] | None = None


ReadNotes = Callable[[Path], Meta | None]


def notes_on(model: Explicit, *, choices: bool) -> Meta:
    """All that a table of transitions lacks, and with `choices` what choices with a reward each lack, too."""
    mdp = model.mdp
    return Meta(
        version=VERSION,
        discount=mdp.discount,
        n_states=mdp.n_states,
        n_actions=mdp.n_actions,
        ends=model.ends,
        rewards_on_successors=mdp.rewards_on_successors,
        state_names=mdp.state_names,
        action_names=mdp.action_names,
        actions=tuple(mdp.actions.tolist()) if choices and model.actions_have_gaps else None,
        rewards=tuple(mdp.rewards.tolist()) if choices and mdp.rewards_on_successors else None,
        probabilities=_noted_probabilities(model),
        labels=_noted_labels(mdp, choices=choices),
        initial=_noted_initial(mdp, choices=choices),
        has_initial=choices and mdp.initial is not None,
        noise=None if mdp.noise is None else mdp.noise.to_builtins(),
    )


def _noted_probabilities(model: Explicit) -> tuple[float, ...] | None:
    """Those of a model with intervals, unless reading the bounds gives the same."""
    mdp = model.mdp
    if model.bounds is None or implies(*model.bounds, mdp.indptr, mdp.probabilities):
        return None
    return tuple(mdp.probabilities.tolist())


def _noted_labels(mdp: MDP, *, choices: bool) -> dict[str, tuple[int, ...]] | None:
    """All, or with `choices` those that PRISM and Storm could not read."""
    written = written_state_labels(mdp) if choices else {}
    noted = {name: mask for name, mask in mdp.labels.items() if name not in written}
    return {name: tuple(np.flatnonzero(mask).tolist()) for name, mask in noted.items()} or None


def _noted_initial(mdp: MDP, *, choices: bool) -> tuple[tuple[int, float], ...] | None:
    """All, or with `choices` those that are not the same for every initial state."""
    if mdp.initial is None:
        return None
    implied = uniform(written_initial_states(mdp), mdp.n_states) if choices else None
    return None if implied is not None and np.array_equal(implied, mdp.initial) else to_pairs(mdp.initial)


def describe_losses(meta: Meta, model: Explicit) -> str:
    """What will not come back without these notes, in words."""
    labels = list(meta.labels or ())
    losses = {
        "the discount": True,
        "the names of states": meta.state_names is not None,
        "the names of actions": meta.action_names is not None,
        "which state is the end": meta.ends > 0,
        "the numbers of actions": meta.actions is not None,
        "the rewards by successor": meta.rewards is not None,
        "the nominal probabilities": meta.probabilities is not None,
        f"the {'label' if len(labels) == 1 else 'labels'} {listed(labels)}": meta.labels is not None,
        "the initial probabilities": meta.initial is not None,
        "how many actions there are": meta.n_actions > int(np.max(model.mdp.actions)) + 1,
    }
    words = [loss for loss, happens in losses.items() if happens]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def beside(path: Path) -> Path:
    """Where the notes on a file are."""
    return path.with_name(f"{path.name}.meta.json")


def read_meta(path: Path) -> Meta | None:
    """The notes on a file, if there are any."""
    file = beside(path)
    return decoded(file.read_bytes(), file.name) if file.is_file() else None


def decoded(text: bytes, name: str) -> Meta:
    """Notes, strictly as they were written."""
    try:
        meta = msgspec.json.decode(text, type=Meta)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _checks.fail(f"{name} must hold notes that this package wrote: {quote_error(error)}")
    _checks.must(meta.version == VERSION, f"{name} must have version {VERSION}: got {meta.version}")
    _checks.must(0.0 <= meta.discount <= 1.0, f"the discount in {name} must lie in [0, 1]: got {meta.discount:g}")
    return meta


def read_parquet_notes(path: Path) -> Meta | None:
    """Those in the metadata; those beside a file that has none, as earlier versions left them."""
    with parquet_file(path) as file:
        text = (file.schema_arrow.metadata or {}).get(PARQUET_NOTES)
    return read_meta(path) if text is None else decoded(text, path.name)


def read_together(
    files: Sequence[Path], read_notes: ReadNotes | None, build: Callable[[Meta | None], Result]
) -> Result:
    """What `build` makes of a file and its notes; tried again where a writer replaced them meanwhile."""
    for _ in range(_ATTEMPTS):
        before = _identities(files)
        try:
            found = _read_once(files, read_notes, build)
        except (ValueError, OSError):
            time.sleep(_PAUSE)
            if _identities(files) == before:
                raise
        else:
            if _identities(files) == before:
                return found
    _checks.fail(
        f"{files[0].name} must not be replaced while it is read: another program writes to it, so try again later"
    )


def _read_once(files: Sequence[Path], read_notes: ReadNotes | None, build: Callable[[Meta | None], Result]) -> Result:
    notes = None if read_notes is None else read_notes(files[0])
    found, name = build(notes), files[0].name
    if notes is not None and notes.sha256 is not None:
        _checks.must(
            notes.sha256 == checksums(files),
            f"{beside(files[0]).name} must belong to {name}: its checksum is of another content; write the model "
            'again, or remove the entry "sha256" if you changed the file yourself',
        )
    return found


def _identities(files: Sequence[Path]) -> list[tuple[int, ...] | None]:
    """What tells the content of each file from that of its successor."""
    return [_identity(path) for path in (*files, beside(files[0]))]


def _identity(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def checksums(files: Sequence[Path]) -> tuple[str, ...]:
    """SHA-256 of each file; empty where it is not there."""
    return tuple(_checksum(path) if path.is_file() else "" for path in files)


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_replaceable(files: Sequence[Path]) -> None:
    """Refuse to write a model over companions or notes that this package did not write beside that file."""
    companions = [path for path in files[1:] if path.exists()]
    notes, name = read_meta(files[0]), files[0].name
    if notes is not None and notes.sha256 is None:  # an earlier version wrote them
        return
    known = () if notes is None else notes.sha256 or ()
    for path, checksum in zip(companions, checksums(companions), strict=True):
        _checks.must(
            checksum in known,
            f"{path.name} must not be replaced: it is not as {name} was written with it; move it away, or choose "
            "another name",
        )
