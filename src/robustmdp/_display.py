"""How objects show themselves: a title and a few labelled lines, as text and as HTML for notebooks."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

Fields = Sequence[tuple[str, str]]

_MOST_ROWS = 20  # of a table that is printed
_SHOWN = 80  # characters of a wrong word
_COMMANDS = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control, format and surrogate characters, separators of lines


def printable(text: str, *, keep: str = "") -> str:
    r"""Text without characters that a terminal obeys or that hide others: these as Python writes them, but for `keep`.

    >>> print(printable("depot\x1b[2J\n"))
    depot\x1b[2J\n
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        repr(letter)[1:-1] if unicodedata.category(letter) in _COMMANDS and letter not in keep else letter
        for letter in text
    )


def as_text(title: str, fields: Fields) -> str:
    """A title and one aligned line per field."""
    width = max((len(label) for label, _ in fields), default=0)
    texts = [(label, printable(value, keep="\n")) for label, value in fields]
    return "\n".join([title, *(f"  {label:<{width}}  {text}" for label, text in texts)])


def as_html(title: str, fields: Fields) -> str:
    """The same as a small table."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(label)}</th><td style='text-align:left'>{escape(value)}</td></tr>"
        for label, value in fields
    )
    return f"<table><caption style='text-align:left'><b>{escape(title)}</b></caption>{rows}</table>"


class Described:
    """What shows itself by the name of its class and labelled lines."""

    def _fields(self) -> Fields:
        raise NotImplementedError

    def __repr__(self) -> str:
        return as_text(type(self).__name__, self._fields())

    def _repr_html_(self) -> str:
        return as_html(type(self).__name__, self._fields())


def choice_text(action: str, probability: float) -> str:
    """What is done: an action, with its probability where that is not 1.

    >>> choice_text("keep", 1.0), choice_text("keep", 0.7)
    ('keep', 'keep 0.70')
    """
    return action if probability >= 0.995 else f"{action} {probability:.2f}"


def shortlist(items: Sequence[str], limit: int = 6) -> str:
    """The first few items, and how many more there are."""
    shown = ", ".join(items[:limit])
    return shown if len(items) <= limit else f"{shown}, ... ({len(items)} in all)"


def shown(word: object) -> str:
    """A wrong word.

    >>> shown("1 000"), len(shown("9" * 5000))
    ("'1 000'", 83)
    """
    text = repr(word)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def listed(names: Sequence[str]) -> str:
    """The names of columns."""
    return shortlist([shown(name) for name in names], limit=12)


def grid_text(title: str, columns: Mapping[str, Any]) -> str:
    """A title and aligned columns, numbers to the right; of long tables the first and the last rows."""
    texts = {name: [printable(cell) for cell in (name, *_cells(column))] for name, column in columns.items()}
    widths = {name: max(map(len, text)) for name, text in texts.items()}
    left = {name for name, column in columns.items() if column.dtype.kind not in "fiu"}
    lines = [
        "  ".join(f"{cell:{'<' if name in left else '>'}{widths[name]}}" for name, cell in zip(texts, row, strict=True))
        for row in zip(*texts.values(), strict=True)
    ]
    return "\n".join([title, *(f"  {line}".rstrip() for line in lines)])


def grid_html(title: str, columns: Mapping[str, Any]) -> str:
    """The same as a table."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = zip(*(_cells(column) for column in columns.values()), strict=True)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption style='text-align:left'><b>{escape(title)}</b></caption><tr>{head}</tr>{body}</table>"


def _cells(column: Any) -> list[str]:
    """Six digits, which tell a level from its neighbours; an ellipsis where rows are left out."""
    half = _MOST_ROWS // 2
    shown = column if len(column) <= _MOST_ROWS else [*column[:half], None, *column[-half:]]
    return ["…" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value) for value in shown]
