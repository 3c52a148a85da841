"""What a figure of an experiment shows: curves on panels, and diagrams of chains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from robustmdp._arrays import FloatArray

Scale = Literal["linear", "log"]
Style = Literal["line", "dashed", "dotted", "points", "line+points"]


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

    `name` tells apart curves of one key: it is in the legend where a figure has several styles.
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
class Arrow:
    """A transition from node to node, by position, labelled; a loop where both are the same.

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
    """A chain: named nodes in a row, one apart, and arrows between them."""

    title: str
    nodes: tuple[str, ...]
    arrows: tuple[Arrow, ...]


@dataclass(frozen=True)
class Figure:
    """Panels side by side or diagrams one below the other, what they show, and what is to be read off them.

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
