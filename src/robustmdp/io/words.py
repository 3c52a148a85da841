"""How messages show what is wrong: in one line, and not for ever."""

from __future__ import annotations

from robustmdp._display import listed as listed
from robustmdp._display import shown as shown

_SAID = 240  # characters of another package's message


def said(error: Exception) -> str:
    """The first line of another package's message."""
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return line if len(line) <= _SAID else f"{line[:_SAID]}..."
