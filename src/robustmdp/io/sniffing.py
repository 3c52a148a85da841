"""What a file holds, by the names of its columns alone."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from robustmdp.io.arrow import parquet_file
from robustmdp.io.text import open_text
from robustmdp.models.headers import kind_of_table

_LONGEST_LINE = 1 << 16
_MOST_BLANK = 100  # lines above a table


def kind_of_file(path: Path) -> Literal["log", "model", "either", None]:
    """The kind of its table, see `kind_of_table`; None where it is no table.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "table.csv")
    >>> _ = file.write_text("state,action,reward,next_state")
    >>> kind_of_file(file)
    'log'
    """
    suffix = path.suffix.lower()
    names: list[str] = []
    if suffix == ".csv" and path.is_file():
        with open_text(path) as file:
            lines = (file.readline(_LONGEST_LINE) for _ in range(_MOST_BLANK))
            names = next((line for line in lines if line.strip()), "").split(",")
    elif suffix in (".parquet", ".pq") and path.is_file():
        with parquet_file(path) as file:
            names = file.schema_arrow.names
    return kind_of_table(name.strip(' "\r\n').lower() for name in names)
