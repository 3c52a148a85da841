"""Files that are whole or not there."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole(path: Path, prefix: str = "") -> Iterator[Path]:
    """Another path to write to, which takes the name of `path` once it is complete and on the disk, or vanishes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "numbers.txt"
    ...     with whole(target) as part:
    ...         _ = part.write_text("1 2 3")
    ...     target.read_text(), part.exists()
    ('1 2 3', False)
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{prefix or f'.{path.name}.'}{secrets.token_hex(8)}{path.suffix}")
    try:
        yield part
        _flush(part)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def _flush(path: Path) -> None:
    """To the disk itself: a rename must not outrun its content."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())
