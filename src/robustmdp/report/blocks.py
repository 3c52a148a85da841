"""What a page is made of, besides figures: paragraphs, listings, tables; and their HTML."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from robustmdp import _checks
from robustmdp.report.figure import Figure

Cell = str | float | int

_LONG = 40  # characters that deserve a wide column
_BADGES = {"holds": ("yes", "✓"), "does not hold": ("no", "✗"), "within noise": ("open", "≈")}


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

    >>> DataTable(("claim", "verdict"), ((1, "holds"),), "Claims", verdict_columns=(1,)).html().count("badge")
    1
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str
    verdict_columns: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            _checks.must(
                len(row) == len(self.header),
                f"each row of a table must have {len(self.header)} cells: row {number} has {len(row)}",
            )

    def html(self) -> str:
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.header)
        body = "".join(f"<tr>{self._row(row)}</tr>" for row in self.rows)
        caption = escape(self.caption)
        return (
            f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}">'
            f"<table><caption><span>{caption}</span></caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def _row(self, row: tuple[Cell, ...]) -> str:
        first = f'<th scope="row">{_shown(row[0])}</th>' if row else ""
        return first + "".join(self._cell(cell, column) for column, cell in enumerate(row[1:], 1))

    def _cell(self, cell: Cell, column: int) -> str:
        if column in self.verdict_columns:
            return f"<td>{_badge(str(cell))}</td>"
        kind = "number" if not isinstance(cell, str) else "long" if len(cell) > _LONG else "word"
        return f'<td class="{kind}">{_shown(cell)}</td>'


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    heading: str
    body: tuple[Paragraph | Listing | DataTable | Figure, ...]


def slug(text: str) -> str:
    """A name for a place in the page.

    >>> slug("What λ = 0.5 does")
    'what-λ-0-5-does'
    """
    return re.sub(r"\W+", "-", text.lower()).strip("-") or "part"


def _shown(cell: Cell) -> str:
    return escape(cell if isinstance(cell, str) else f"{cell:,}" if isinstance(cell, int) else f"{cell:.4g}")


def _badge(verdict: str) -> str:
    if verdict not in _BADGES:
        return escape(verdict)
    kind, symbol = _BADGES[verdict]
    return f'<span class="badge {kind}"><span aria-hidden="true">{symbol}</span> {escape(verdict)}</span>'
