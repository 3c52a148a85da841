"""The cells of a grid and their drawing: colour below, then hatching, outlines, arrows and letters, as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from robustmdp import _checks
from robustmdp.app.page.shades import Scale, ink_on

SIDE = 40  # of a cell, in units of the drawing
HATCHING = "l10-10m10 0l-20 20m0 10l30-30m10 0l-40 40m10 0l30-30m0 10l-20 20m10 0l10-10"  # from (0, 10)
OUTLINE = "h35v35h-35z"  # from (2.5, 2.5)
FLAT, NEUTRAL = "#e9ebef", "#f1f3f6"

# From the middle of a cell.
_ARROWS = {
    "up": "m0 7v-14m-5.5 5.5 5.5-5.5 5.5 5.5",
    "down": "m0-7v14m-5.5-5.5 5.5 5.5 5.5-5.5",
    "left": "m7 0h-14m5.5-5.5-5.5 5.5 5.5 5.5",
    "right": "m-7 0h14m-5.5-5.5 5.5 5.5-5.5 5.5",
    "stay": "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
}
_LONGEST = 9  # letters of a word in a cell


@dataclass(frozen=True)
class Cell:
    """One place of a grid; rows and columns count from 0 at the top left.

    `arrow` is the action: "up", "down", "left", "right" and "stay" are drawn, any other word is written. Without one
    there is nothing to decide, and the cell is hatched, whatever its value. `changed` outlines it; `detail` is shown
    on hover.

    >>> str(Cell(0, 2, mark="S", arrow="left", value=0.25))
    'row 1, column 3 (S): left, value 0.25'
    """

    row: int
    column: int
    mark: str = ""
    arrow: str = ""
    value: float | None = None
    changed: bool = False
    detail: str = ""

    def __post_init__(self) -> None:
        if self.value is not None:
            _checks.finite_number(f"the value of cell {self.place}", self.value)

    def __str__(self) -> str:
        value = "" if self.value is None else f"value {self.value:.4g}"
        said = ", ".join(part for part in (self.arrow, value, "changed" if self.changed else "") if part)
        mark = f" ({self.mark})" if self.mark else ""
        return f"row {self.row + 1}, column {self.column + 1}{mark}{': ' if said else ''}{said}"

    @property
    def place(self) -> tuple[int, int]:
        return self.row, self.column

    def at(self, right: float, down: float) -> str:
        """A point of the cell, in units of the drawing."""
        return f"{SIDE * self.column + right:g} {SIDE * self.row + down:g}"

    def fill(self, scale: Scale | None) -> str:
        if not self.arrow:
            return FLAT
        return NEUTRAL if self.value is None or scale is None else scale.colour(self.value)


@dataclass(frozen=True)
class Drawing:
    """Cells of a world of so many rows and columns; with numbers or without, all told on hover or only details."""

    rows: int
    columns: int
    cells: Sequence[Cell]
    scale: Scale | None
    numbers: bool
    telling: bool

    def svg(self) -> str:
        """What stands inside the <svg>."""
        hatching = "".join(f"M{cell.at(0, 10)}{HATCHING}" for cell in self.cells if not cell.arrow)
        outlines = "".join(f"M{cell.at(2.5, 2.5)}{OUTLINE}" for cell in self.cells if cell.changed)
        above = _path("hatching", hatching) + _path("seams", self._seams())
        above += _path("halo", outlines) + _path("changed", outlines)
        return f'{self._floor()}<g class="above">{above}{self._inked("#000")}{self._inked("#fff")}</g>'

    def _floor(self) -> str:
        """Squares, colour by colour; those that have nothing to tell share one path."""
        fills = [cell.fill(self.scale) for cell in self.cells]
        return "".join(
            f'<g fill="{fill}">{self._squares([c for c, f in zip(self.cells, fills, strict=True) if f == fill])}</g>'
            for fill in dict.fromkeys(fills)
        )

    def _squares(self, cells: Iterable[Cell]) -> str:
        silent, telling = "", ""
        for cell in cells:
            square = f"M{cell.at(0, 0)}h{SIDE}v{SIDE}h-{SIDE}z"
            words = cell.detail or (str(cell) if self.telling else "")
            if words:
                telling += f'<path d="{square}"><title>{escape(words)}</title></path>'
            else:
                silent += square
        return telling + (f'<path d="{silent}"/>' if silent else "")

    def _seams(self) -> str:
        """Lines between cells."""
        across = "".join(f"M0 {SIDE * row}h{SIDE * self.columns}" for row in range(1, self.rows))
        return across + "".join(f"M{SIDE * column} 0v{SIDE * self.rows}" for column in range(1, self.columns))

    def _inked(self, ink: str) -> str:
        """Arrows, words, marks and numbers of the cells on which this ink is the one to read."""
        cells = [cell for cell in self.cells if ink_on(cell.fill(self.scale)) == ink]
        arrows = "".join(
            f"M{cell.at(20, self._middle(cell))}{_ARROWS[cell.arrow]}" for cell in cells if cell.arrow in _ARROWS
        )
        drawn = f'<path class="arrows" stroke="{ink}" d="{arrows}"/>' if arrows else ""
        texts = self._words(cells) + self._marks(cells) + self._digits(cells)
        return drawn + (f'<g fill="{ink}">{texts}</g>' if texts else "")

    def _middle(self, cell: Cell) -> float:
        """How far down arrows and words stand: numbers need room below them."""
        return 14.5 if self.numbers and cell.value is not None else 20

    def _words(self, cells: Iterable[Cell]) -> str:
        words = [(cell, _short(cell.arrow, _LONGEST)) for cell in cells if cell.arrow and cell.arrow not in _ARROWS]
        return "".join(
            _text(cell, "word", 20, self._middle(cell) + 6, word, min(9.5, 60 / len(word))) for cell, word in words
        )

    def _marks(self, cells: Iterable[Cell]) -> str:
        """In the corner, or in the middle where no arrow stands."""
        return "".join(
            _text(cell, "mark", 6.5, 11.5, _short(cell.mark, 3))
            if cell.arrow
            else _text(cell, "name", 20, self._middle(cell) + 5.5, _short(cell.mark, 3))
            for cell in cells
            if cell.mark
        )

    def _digits(self, cells: Iterable[Cell]) -> str:
        scale = self.scale or Scale(0.0, 1.0)
        valued = [(cell, cell.value) for cell in cells if self.numbers and cell.value is not None]
        return "".join(_text(cell, "digits", 20, 32.5, scale.digits(value)) for cell, value in valued)


def _path(name: str, d: str) -> str:
    return f'<path class="{name}" d="{d}"/>' if d else ""


def _text(cell: Cell, kind: str, right: float, down: float, text: str, size: float | None = None) -> str:
    x, y = cell.at(right, down).split()
    font = "" if size is None else f' font-size="{size:.3g}"'
    squeezed = ' textLength="33" lengthAdjust="spacingAndGlyphs"' if kind == "digits" and len(text) > 6 else ""
    return f'<text class="{kind}" x="{x}" y="{y}"{font}{squeezed}>{escape(text)}</text>'


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
