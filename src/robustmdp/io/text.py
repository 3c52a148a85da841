"""Text of untrusted files: how it is opened, what is a number in it, and how messages quote it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO

from robustmdp._display import listed as listed
from robustmdp._display import shown as shown

WHOLE, NUMBER, TEXT = "a whole number", "a number", "a word"  # what a column may hold
_DECIMAL = re.compile(r"\s*[+-]?((\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)\s*", re.ASCII | re.IGNORECASE)
_LONGEST = 240  # characters of another package's message


def open_text(path: Path) -> IO[str]:
    """UTF-8; what is not can only stand in columns that are not read, or is refused as a number."""
    return path.open(encoding="utf-8-sig", errors="replace")


def is_number(text: str) -> bool:
    """Is it a decimal number in ASCII? Python itself would also take 1_000 and the digits of other scripts."""
    return _DECIMAL.fullmatch(text) is not None


def quote_error(error: Exception) -> str:
    """The first line of another package's message."""
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
