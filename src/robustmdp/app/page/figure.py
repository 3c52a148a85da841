"""What a figure shows, without ink: curves on panels and diagrams of worlds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Scale = Literal["linear", "log"]
Style = Literal["line", "dashed", "dotted", "points", "line+points"]


@dataclass(frozen=True)
class Key:
    """What a colour stands for: equal keys have one colour in every figure of a page, and one entry in its legend.

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
