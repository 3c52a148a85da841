"""How messages show what is wrong: in one line, and not for ever."""

from __future__ import annotations

from collections.abc import Sequence

from robustmdp import _display

_SHOWN = 80  # characters of a wrong word
_SAID = 240  # characters of another package's message


def shown(word: object) -> str:
    """A wrong word.

    >>> shown("1 000"), len(shown("9" * 5000))
    ("'1 000'", 83)
    """
    text = repr(word)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def listed(names: Sequence[str]) -> str:
    """The names of columns."""
    return _display.shortlist([shown(name) for name in names], limit=12)


def said(error: Exception) -> str:
    """The first line of another package's message."""
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return line if len(line) <= _SAID else f"{line[:_SAID]}..."
