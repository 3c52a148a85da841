"""Files that are complete or not there."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path


@contextlib.contextmanager
def replace_file(path: Path, prefix: str = "") -> Iterator[Path]:
    """Another path to write to, which takes the name of `path` once it is complete and on the disk, or vanishes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "numbers.txt"
    ...     with replace_file(target) as part:
    ...         _ = part.write_text("1 2 3")
    ...     target.read_text(), part.exists()
    ('1 2 3', False)
    """
    with replace_files([path], prefix) as (part,):
        yield part


@contextlib.contextmanager
def replace_files(paths: Iterable[Path], prefix: str = "") -> Iterator[list[Path]]:
    """The same for files that belong together: all are on the disk before the first takes its name.

    A file that was there keeps its permissions. A link stays: the file that it leads to is replaced.
    """
    targets = [resolve_target(path) for path in paths]
    parts = [path.with_name(f"{prefix or f'.{path.name}.'}{secrets.token_hex(8)}{path.suffix}") for path in targets]
    for target in targets:
        target.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield parts
        for part, target in zip(parts, targets, strict=True):
            _flush(part)
            _copy_permissions(target, part)
        for part, target in zip(parts, targets, strict=True):
            os.replace(part, target)
    except BaseException:
        for part in parts:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
        raise


def resolve_target(path: Path, name: str = "path") -> Path:
    """The file that a path to write to leads to; refused unless it is an ordinary one that may be written, or new."""
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):  # the second is left to who writes
        return target
    kinds = {stat.S_ISDIR: "folder", stat.S_ISFIFO: "pipe", stat.S_ISSOCK: "socket"}
    if not stat.S_ISREG(mode):
        kind = next((kind for holds, kind in kinds.items() if holds(mode)), "device")
        raise ValueError(f"{name} must be a file: {path} is a {kind}")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return target


def _flush(path: Path) -> None:
    """To the disk itself: a rename must not outrun its content."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def _copy_permissions(source: Path, target: Path) -> None:
    """Mode, and where the system allows it owner and group; those of a new file are left as they are."""
    if not source.exists():
        return
    status = source.stat()
    with contextlib.suppress(OSError, AttributeError):  # only some may give files away, and not on every system
        os.chown(target, status.st_uid, status.st_gid)
    target.chmod(stat.S_IMODE(status.st_mode))
