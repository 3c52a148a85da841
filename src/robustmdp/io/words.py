"""How messages show what is wrong: in one line, and not for ever."""

from __future__ import annotations

from robustmdp._display import listed as listed
from robustmdp._display import shown as shown

_LONGEST = 240  # characters of another package's message


def quote_error(error: Exception) -> str:
    """The first line of another package's message."""
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
