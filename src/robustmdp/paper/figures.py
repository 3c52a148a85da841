"""What a figure of an experiment shows: curves on panels, and diagrams of worlds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from robustmdp._arrays import FloatArray

Scale = Literal["linear", "log"]
Style = Literal["line", "dashed", "dotted", "points", "line+points"]

_MOST_NAMES = 3  # curves of one style that the legend tells apart


@dataclass(frozen=True)
class Key:
    """What a colour stands for: equal keys have one colour in every figure of a reproduction, and one legend entry.

    `kind` is a quantity ("λ", "π", "T'") or what the words are names of ("algorithm", "divergence").
    """

    kind: str
    value: float | str

    def __str__(self) -> str:
        return self.value if isinstance(self.value, str) else f"{self.kind} = {self.value:g}"


@dataclass(frozen=True, eq=False)
class Curve:
    """y against x, in the colour of its key; a band from low to high where given, an interval each for points.

    `name` tells apart curves of one key, on hover and, where styles differ, in the legend.
    """

    key: Key
    x: FloatArray
    y: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None
    style: Style = "line"
    name: str = ""


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes. `inset` is a range of x that is shown once more, enlarged, in the top right corner."""

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    inset: tuple[float, float] | None = None


@dataclass(frozen=True)
class Node:
    """A state at a place; `detail` is shown on hover."""

    name: str
    x: float
    y: float
    detail: str = ""


@dataclass(frozen=True)
class Arrow:
    """A transition from node to node (by position in the list), labelled; a loop where both are the same.

    `bend` is the height of its arc, positive to the left of its direction; a loop stands above its node (positive)
    or below it.
    """

    source: int
    target: int
    label: str
    key: Key
    bend: float


@dataclass(frozen=True)
class Diagram:
    """A world as nodes and arrows, without axes."""

    title: str
    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]


@dataclass(frozen=True)
class Figure:
    """Panels side by side, what they show, and what is to be read off them.

    `name` is that of its files; `caption` says what is drawn, `reading` what the numbers in it say.
    """

    name: str
    title: str
    caption: str
    reading: str
    panels: tuple[Panel | Diagram, ...]


def curves_of(figure: Figure) -> list[Curve]:
    """The curves of all panels."""
    return [curve for panel in figure.panels if isinstance(panel, Panel) for curve in panel.curves]


def keys_of(figure: Figure) -> list[Key]:
    """Its keys, kind by kind: numbers in order, words as they appear."""
    parts = [part for panel in figure.panels for part in (panel.curves if isinstance(panel, Panel) else panel.arrows)]
    found = list(dict.fromkeys(part.key for part in parts))
    kinds = list(dict.fromkeys(key.kind for key in found))
    return sorted(found, key=lambda key: (kinds.index(key.kind), 0.0 if isinstance(key.value, str) else key.value))


def style_of(figure: Figure, key: Key) -> Style:
    """How a key's curves are drawn where they agree, else a plain line."""
    styles = {curve.style for curve in curves_of(figure) if curve.key == key}
    return styles.pop() if len(styles) == 1 else "line"


def styles_of(figure: Figure) -> list[tuple[Style, str]]:
    """Styles with the names of their curves, where there are several styles."""
    names: dict[Style, dict[str, None]] = {}
    for curve in curves_of(figure):
        names.setdefault(curve.style, {}).update({curve.name: None} if curve.name else {})
    if len(names) < 2:
        return []
    return [(style, ", ".join(named)) for style, named in names.items() if 1 <= len(named) <= _MOST_NAMES]


def rows_of(figure: Figure) -> list[tuple[int, ...]]:
    """The numbers of its panels, row by row: diagrams alone, others in up to three columns."""
    rows: list[tuple[int, ...]] = []
    waiting: list[int] = []
    for number, panel in enumerate(figure.panels):
        if isinstance(panel, Panel):
            waiting.append(number)
        if not isinstance(panel, Panel) or len(waiting) == columns_of(figure):
            rows += [tuple(waiting)] if waiting else []
            waiting = []
        if not isinstance(panel, Panel):
            rows.append((number,))
    return rows + ([tuple(waiting)] if waiting else [])


def columns_of(figure: Figure) -> int:
    """How many panels stand side by side."""
    count = sum(isinstance(panel, Panel) for panel in figure.panels)
    return 2 if count == 4 else max(1, min(count, 3))
