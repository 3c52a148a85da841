"""The files of one model are a unit: they are read together, and no file of another program is replaced."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from robustmdp import _checks
from robustmdp.io.formats import Format, model_files
from robustmdp.io.meta import Meta, beside, read_meta

Result = TypeVar("Result")
_ATTEMPTS = 3
_PAUSE = 0.005  # seconds, far more than lie between two renames of a writer


def read_together(file: Path, format: Format, build: Callable[[Meta | None], Result]) -> Result:
    """What `build` makes of a file and its notes; tried again where a writer replaced them meanwhile."""
    for _ in range(_ATTEMPTS):
        before = _identities(file, format)
        try:
            found = _read_once(file, format, build)
        except (ValueError, OSError):
            time.sleep(_PAUSE)
            if _identities(file, format) == before:
                raise
        else:
            if _identities(file, format) == before:
                return found
    _checks.fail(f"{file.name} must not be replaced while it is read: another program writes to it, so try again later")


def _read_once(file: Path, format: Format, build: Callable[[Meta | None], Result]) -> Result:
    notes = None if format.read_notes is None else format.read_notes(file)
    found = build(notes)
    if notes is not None and notes.sha256 is not None:
        _checks.must(
            notes.sha256 == checksums(model_files(file, format)),
            f"{beside(file).name} must belong to {file.name}: its checksum is of another content; write the model "
            'again, or remove the entry "sha256" if you changed the file yourself',
        )
    return found


def _identities(file: Path, format: Format) -> list[tuple[int, ...] | None]:
    """What tells the content of each file from that of its successor."""
    return [_identity(path) for path in (*model_files(file, format), beside(file))]


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


def check_replaceable(file: Path, format: Format) -> None:
    """Refuse to write a model over companions or notes that this package did not write beside that file."""
    if format.read_notes is None:
        return
    companions = [path for path in model_files(file, format)[1:] if path.exists()]
    notes = read_meta(file)
    if notes is not None and notes.sha256 is None:  # an earlier version wrote them
        return
    known = () if notes is None else notes.sha256 or ()
    for path, checksum in zip(companions, checksums(companions), strict=True):
        _checks.must(
            checksum in known,
            f"{path.name} must not be replaced: it is not as {file.name} was written with it; move it away, or choose "
            "another name",
        )
