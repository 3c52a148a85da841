"""What a table is by the names of its columns: a log of transitions, or a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from robustmdp.io.arrow import parquet_file
from robustmdp.models.headers import LOG_COLUMNS, MODEL_COLUMNS

_LONGEST_LINE = 1 << 16
_MOST_BLANK = 100  # lines above a table
_OF_LOGS = {own for name in ("state", "action", "next_state") for own in LOG_COLUMNS[name]}
_ENDS = {*LOG_COLUMNS["terminated"], "done"}


def is_log(path: Path) -> bool:
    """Has it columns of a log, without being a model?

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "table.csv")
    >>> for end in ("", ",probability", ",probability,terminated"):
    ...     _ = file.write_text(f"state,action,reward,next_state{end}")
    ...     is_log(file), is_model(file)
    (True, False)
    (False, True)
    (True, False)
    """
    return bool(_columns(path) & _OF_LOGS) and not is_model(path)


def is_model(path: Path) -> bool:
    """Has it all columns of a model? With endings it is a log, whose `probability` is that of its behaviour policy."""
    names = _columns(path)
    return MODEL_COLUMNS["state"] in names or (names >= set(MODEL_COLUMNS) and not names & _ENDS)


def _columns(path: Path) -> set[str]:
    """The names in small letters, none where it is no table."""
    return {name.strip(' "\r\n').lower() for name in _header(path)}


def _header(path: Path) -> Sequence[str]:
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet", ".pq") or not path.is_file():
        return ()
    if suffix == ".csv":
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            lines = (file.readline(_LONGEST_LINE) for _ in range(_MOST_BLANK))
            return next((line for line in lines if line.strip()), "").split(",")
    with parquet_file(path) as file:
        found: list[str] = file.schema_arrow.names
        return found
