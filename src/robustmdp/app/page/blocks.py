"""What a page is made of, besides figures: paragraphs, listings, tables; and their HTML."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Protocol

from robustmdp import _checks

Entry = str | float | int

_SIGN, _MARKED = "◆", '<tr class="marked">'
_NUMBER = ' class="number"'
_LONG = 40  # characters that deserve a wide column
_BADGES = {"holds": ("yes", "✓"), "does not hold": ("no", "✗"), "within noise": ("open", "≈")}


class Block(Protocol):
    """What can stand on a page by itself: all but figures, whose colours depend on the others."""

    def html(self) -> str: ...


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    text: str

    def html(self) -> str:
        return f"<p>{escape(self.text)}</p>"


@dataclass(frozen=True)
class Listing:
    """Labels with values, such as settings."""

    pairs: tuple[tuple[str, str], ...]

    def html(self) -> str:
        items = "".join(f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>" for label, value in self.pairs)
        return f"<dl>{items}</dl>"


@dataclass(frozen=True)
class DataTable:
    """Rows below a header; the words of the verdict columns (by number) become badges.

    The marked rows (by number) have a tint and a sign, which `mark` explains.

    >>> DataTable(("claim", "verdict"), ((1, "holds"),), "Claims", verdict_columns=(1,)).html().count("badge")
    1
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    caption: str
    verdict_columns: tuple[int, ...] = ()
    marked_rows: tuple[int, ...] = ()
    mark: str = "changed"

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            _checks.must(
                len(row) == len(self.header),
                f"each row of a table must have {len(self.header)} cells: row {number} has {len(row)}",
            )
        for number in self.marked_rows:
            _checks.must(
                0 <= number < len(self.rows),
                f"marked rows must be among the {len(self.rows)} of the table: got {number}",
            )

    def html(self) -> str:
        head = "".join(self._head(column, name) for column, name in enumerate(self.header))
        body = "".join(self._row(number, row) for number, row in enumerate(self.rows))
        caption = escape(self.caption)
        key = f'<span class="meaning">{_SIGN} {escape(self.mark)}</span>' if self.marked_rows else ""
        return (
            f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}">'
            f"<table><caption><span>{caption}{key}</span></caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def _head(self, column: int, name: str) -> str:
        """Above numbers, on their side."""
        words = column in (0, *self.verdict_columns) or any(isinstance(row[column], str) for row in self.rows)
        return f'<th scope="col"{"" if words else _NUMBER}>{escape(name)}</th>'

    def _row(self, number: int, row: tuple[Entry, ...]) -> str:
        marked = number in self.marked_rows
        sign = f'<span class="sign" role="img" aria-label="{escape(self.mark)}">{_SIGN}</span> ' if marked else ""
        first = f'<th scope="row">{sign}{_shown(row[0])}</th>' if row else ""
        rest = "".join(self._cell(entry, column) for column, entry in enumerate(row[1:], 1))
        return f"{_MARKED if marked else '<tr>'}{first}{rest}</tr>"

    def _cell(self, entry: Entry, column: int) -> str:
        if column in self.verdict_columns:
            return f"<td>{_badge(str(entry))}</td>"
        kind = "number" if not isinstance(entry, str) else "long" if len(entry) > _LONG else "word"
        return f'<td class="{kind}">{_shown(entry)}</td>'


def _shown(entry: Entry) -> str:
    return escape(entry if isinstance(entry, str) else f"{entry:,}" if isinstance(entry, int) else f"{entry:.4g}")


def _badge(verdict: str) -> str:
    if verdict not in _BADGES:
        return escape(verdict)
    kind, symbol = _BADGES[verdict]
    return f'<span class="badge {kind}"><span aria-hidden="true">{symbol}</span> {escape(verdict)}</span>'
