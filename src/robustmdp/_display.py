"""How objects show themselves: a title and a few labelled lines, as text and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

Fields = Sequence[tuple[str, str]]


def as_text(title: str, fields: Fields) -> str:
    """A title and one aligned line per field."""
    width = max((len(label) for label, _ in fields), default=0)
    return "\n".join([title, *(f"  {label:<{width}}  {value}" for label, value in fields)])


def as_html(title: str, fields: Fields) -> str:
    """The same as a small table."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(label)}</th><td style='text-align:left'>{escape(value)}</td></tr>"
        for label, value in fields
    )
    return f"<table><caption style='text-align:left'><b>{escape(title)}</b></caption>{rows}</table>"


def shortlist(items: Sequence[str], limit: int = 6) -> str:
    """The first few items, and how many more there are."""
    shown = ", ".join(items[:limit])
    return shown if len(items) <= limit else f"{shown}, ... ({len(items)} in all)"
