"""Which colour and marker stands for what: one for each key over all figures of a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.app.page.figure import Figure, Key
from robustmdp.app.page.legend import keys_of

Marker = Literal["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star"]

# Both lists: at least 3:1 against white, and distinct under the common kinds of colour blindness.
# The first darkens steadily towards small weights, so that it stays in order in greyscale.
WEIGHTS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0)
SEQUENCE = ("#100d34", "#342c94", "#7602ce", "#a9218b", "#c93056", "#c07040", "#a89500")
WORDS = ("#d65f01", "#3666ac", "#36a76e", "#ca7bae", "#000000", "#684200", "#4c2ba4", "#656866")
MARKERS: tuple[Marker, ...] = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "triangle-down",
    "cross",
    "x",
    "star",
)

_ALIKE = 0.12  # distance in RGB below which two lines are taken for one


class Ink(NamedTuple):
    """How the lines of a key look: "#rrggbb" and the shape of its points."""

    colour: str
    marker: Marker

    @property
    def text(self) -> str:
        """The colour, darkened until small letters can be read on white (4.5:1).

        >>> Ink("#36a76e", "circle").text, Ink("#000000", "circle").text
        ('#2a8155', '#000000')
        """
        rgb = _rgb(self.colour)
        while contrast(_hex(rgb)) < 4.5:
            rgb = 0.95 * rgb
        return _hex(rgb)


@dataclass(frozen=True)
class Palette:
    """The ink of each key.

    >>> palette = Palette({Key("λ", 1.0): Ink("#342c94", "square")})
    >>> palette[Key("λ", 1)].colour
    '#342c94'
    """

    inks: Mapping[Key, Ink]

    @classmethod
    def of(cls, figures: Iterable[Figure]) -> Palette:
        """Colours for all keys of some figures; keys that meet in a figure differ."""
        groups = [keys_of(figure) for figure in figures]
        keys = list(dict.fromkeys(key for group in groups for key in group))
        weights = [key for key in keys if _is_weight(key)]
        inks = _sequential(sorted(weights, key=lambda key: float(key.value)))
        for key in keys:
            if key not in inks:
                meets = {other for group in groups if key in group for other in group} & inks.keys()
                rank = sum(other.kind == key.kind for other in inks)
                inks[key] = _differing(rank, [inks[other] for other in meets])
        return cls(inks)

    def __getitem__(self, key: Key) -> Ink:
        _checks.must(key in self.inks, f"the palette must hold every key of a figure: {key} has no colour")
        return self.inks[key]


def contrast(colour: str) -> float:
    """Against white, from 1 to 21, as WCAG defines it.

    >>> contrast("#ffffff"), contrast("#000000")
    (1.0, 21.0)
    """
    linear = np.where((rgb := _rgb(colour)) <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(1.05 / (linear @ (0.2126, 0.7152, 0.0722) + 0.05))


def blend(anchors: Sequence[str], count: int) -> list[str]:
    """So many colours in even steps from the first anchor over the others to the last.

    >>> blend(("#000000", "#ffffff"), 3)
    ['#000000', '#808080', '#ffffff']
    """
    rgb = np.array([_rgb(colour) for colour in anchors])
    places = np.linspace(0, len(anchors) - 1, count)
    blended = np.stack([np.interp(places, np.arange(len(anchors)), rgb[:, i]) for i in range(3)], axis=1)
    return [_hex(colour) for colour in blended]


def _is_weight(key: Key) -> bool:
    return key.kind == "λ" and not isinstance(key.value, str)


def _sequential(keys: Sequence[Key]) -> dict[Key, Ink]:
    """The usual weights have their own colours; others take, in order, what these leave, then what lies between."""
    inks = {
        key: Ink(SEQUENCE[WEIGHTS.index(float(key.value))], MARKERS[WEIGHTS.index(float(key.value))])
        for key in keys
        if key.value in WEIGHTS
    }
    others = [key for key in keys if key not in inks]
    taken = {ink.colour for ink in inks.values()}
    free = [colour for colour in SEQUENCE if colour not in taken]
    steps = 1
    while len(free) < len(others):
        steps *= 2
        free = [colour for colour in _between(steps) if colour not in taken]
    spread = np.linspace(0, len(free) - 1, len(others)).round().astype(int).tolist()
    for rank, (key, place) in enumerate(zip(others, spread, strict=True)):
        inks[key] = Ink(free[place], MARKERS[(len(taken) + rank) % len(MARKERS)])
    return inks


def _between(steps: int) -> list[str]:
    """The sequence with `steps` - 1 colours between each two of its own."""
    return blend(SEQUENCE, (len(SEQUENCE) - 1) * steps + 1)


def _differing(rank: int, others: Sequence[Ink]) -> Ink:
    """The first colour, from the key's rank among its kind on, that is unlike the others."""
    n = len(WORDS)
    order = [*range(rank % n, n), *range(rank % n)]
    colours = [WORDS[place] for place in order] + _mixed()
    for least in (_ALIKE, _ALIKE / 2, _ALIKE / 4):
        for number, colour in enumerate(colours):
            if all(_apart(colour, ink.colour) > least for ink in others):
                return Ink(colour, MARKERS[(order[number] if number < n else number) % n])
    return Ink(colours[0], MARKERS[order[0]])


def _mixed() -> list[str]:
    """Darker words, then what lies between two of them."""
    darker = [_hex(0.65 * _rgb(colour)) for colour in WORDS]
    return darker + [_hex(0.5 * (_rgb(one) + _rgb(other))) for one, other in combinations(WORDS, 2)]


def _apart(one: str, other: str) -> float:
    return float(np.linalg.norm(_rgb(one) - _rgb(other)))


def _rgb(colour: str) -> npt.NDArray[np.float64]:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0


def _hex(rgb: npt.NDArray[np.float64]) -> str:
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in rgb)
