"""A world of cells in rows and columns: what they are worth, and what is done in them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from html import escape

from robustmdp import _checks
from robustmdp.app.page.cells import FLAT, HATCHING, OUTLINE, SIDE, Cell, Drawing
from robustmdp.app.page.shades import RAMP, Scale

_WIDTH, _HEIGHT, _LARGEST = 960, 560, 84  # pixels at most: of a grid and of the side of a cell
_LEGIBLE = 40  # pixels that a cell needs to hold a number
_MANY = 400  # cells, above which only details are told on hover
_LISTED, _TITLE, _ACTION = 12, 120, 24  # in words: how many cells and actions, and characters of each


@dataclass(frozen=True)
class Grid:
    """Cells coloured by value, from `low` to `high` where given, so that grids can be compared.

    >>> grid = Grid("Policy", 1, 2, (Cell(0, 0, "S", "right", 0.5, changed=True), Cell(0, 1, "G")))
    >>> grid.in_words()
    'Policy: 1 row, 2 columns. Values from 0.5 to 0.5. Actions: right (1). Changed: row 1, column 1.'
    """

    title: str
    rows: int
    columns: int
    cells: tuple[Cell, ...]
    caption: str = ""
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        _checks.positive_integer("rows", self.rows)
        _checks.positive_integer("columns", self.columns)
        taken: set[tuple[int, int]] = set()
        for cell in self.cells:
            _checks.must(
                0 <= cell.row < self.rows and 0 <= cell.column < self.columns,
                f"cells must lie in {self.rows} rows and {self.columns} columns, counted from 0: got {cell.place}",
            )
            _checks.must(cell.place not in taken, f"each cell must have a place of its own: two are at {cell.place}")
            taken.add(cell.place)
        named = (("low", self.low), ("high", self.high))
        ends = [_checks.finite_number(name, end) for name, end in named if end is not None]
        _checks.must(ends == sorted(ends), f"low must not exceed high: got {self.low} and {self.high}")

    @property
    def scale(self) -> Scale | None:
        """From the least to the greatest value among cells with an action, but for an end that is given."""
        values = [cell.value for cell in self.cells if cell.value is not None and cell.arrow]
        given = [end for end in (self.low, self.high) if end is not None]
        if not values + given:
            return None
        low = self.low if self.low is not None else min(values + given)
        return Scale(low, self.high if self.high is not None else max([*values, low]))

    def html(self) -> str:
        size = min(_LARGEST, _WIDTH / self.columns, _HEIGHT / self.rows)
        numbers, telling = size >= _LEGIBLE, self.rows * self.columns <= _MANY
        inside = Drawing(self.rows, self.columns, self.cells, self.scale, numbers, telling).svg()
        caption = f'<p class="note">{escape(self.caption)}</p>' if self.caption else ""
        return (
            f'<div class="world" style="--width: {size * self.columns:.0f}px; --legible: {_LEGIBLE * self.columns}px">'
            f'<p class="name">{escape(self.title)}</p>'
            f'<svg class="cells{"" if telling else " many"}" viewBox="0 0 {SIDE * self.columns} {SIDE * self.rows}" '
            f'role="img" aria-label="{escape(self.in_words())}">{inside}</svg>{self._key()}{caption}</div>'
        )

    def in_words(self) -> str:
        """What the drawing shows, in a few sentences however large it is."""
        values = [cell.value for cell in self.cells if cell.value is not None and cell.arrow]
        actions = Counter(cell.arrow for cell in self.cells if cell.arrow)
        changed = [f"row {cell.row + 1}, column {cell.column + 1}" for cell in self.cells if cell.changed]
        sentences = [f"{self.title[:_TITLE]}: {_count(self.rows, 'row')}, {_count(self.columns, 'column')}"]
        if values:
            sentences.append(f"Values from {min(values):.4g} to {max(values):.4g}")
        if actions:
            sentences.append("Actions: " + _listed([f"{a[:_ACTION]} ({n})" for a, n in actions.most_common()], ", "))
        if changed:
            sentences.append("Changed: " + _listed(changed, "; "))
        return ". ".join(sentences) + "."

    def _key(self) -> str:
        """The scale with its numbers, and what outlines and hatching mean where there are any."""
        parts = []
        if (scale := self.scale) is not None:
            low, high = scale.digits(scale.low), scale.digits(scale.high)
            ramp = f'value {low}<span class="ramp" style="background: {RAMP}"></span>{high}'
            parts.append(ramp if scale.low < scale.high else f"{_swatch(scale.colour(scale.low))}value {low}")
        if any(cell.changed for cell in self.cells):
            outline = f'<path class="changed" d="M2.5 2.5{OUTLINE}"/>'
            parts.append(f"{_swatch('#fff', outline)}another action, certainly better")
        if any(not cell.arrow for cell in self.cells):
            hatching = f'<path class="hatching" d="M0 10{HATCHING}"/>'
            parts.append(f"{_swatch(FLAT, hatching)}nothing to decide")
        return f'<p class="key">{"".join(f"<span>{part}</span>" for part in parts)}</p>' if parts else ""


def _swatch(fill: str, inside: str = "") -> str:
    """A small cell."""
    square = f'<path fill="{fill}" d="M0 0h{SIDE}v{SIDE}h-{SIDE}z"/>'
    return f'<svg width="16" height="16" viewBox="0 0 {SIDE} {SIDE}" aria-hidden="true">{square}{inside}</svg>'


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(items: list[str], between: str) -> str:
    more = len(items) - _LISTED
    return between.join(items[:_LISTED]) + (f"{between}and {more} more" if more > 0 else "")
