"""Sections of a page: what they hold, and where links find them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from robustmdp.app.page.blocks import Block
from robustmdp.app.page.figure import Figure
from robustmdp.app.page.slider import Slider


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    heading: str
    body: tuple[Block | Figure | Slider, ...]


class Placed(NamedTuple):
    """A section with the anchors of itself and of its figures and sliders, by position in its body."""

    section: Section
    anchor: str
    parts: dict[int, str]


def placed(sections: Sequence[Section]) -> list[Placed]:
    """Every section, with anchors that no two places share."""
    taken: set[str] = {"main", "numbers"}
    return [
        Placed(
            section,
            _unique(section.heading, taken),
            {i: name for i, part in enumerate(section.body) if (name := _anchor(part, taken))},
        )
        for section in sections
    ]


def figures_of(sections: Sequence[Section]) -> list[Figure]:
    """All figures in the order of the page, those of sliders among them."""
    parts = [part for section in sections for part in section.body]
    found = [part.figure if isinstance(part, Slider) else part for part in parts]
    return [figure for figure in found if isinstance(figure, Figure)]


def slug(text: str) -> str:
    """A name for a place in the page.

    >>> slug("What λ = 0.5 does")
    'what-λ-0-5-does'
    """
    return re.sub(r"\W+", "-", text.lower()).strip("-") or "part"


def _anchor(part: Block | Figure | Slider, taken: set[str]) -> str:
    if isinstance(part, Slider):
        return _unique(f"slider-{part.name}", taken)
    return _unique(f"figure-{part.name}", taken) if isinstance(part, Figure) else ""


def _unique(text: str, taken: set[str]) -> str:
    name, count = slug(text), 1
    while name in taken:
        count += 1
        name = f"{slug(text)}-{count}"
    taken.add(name)
    return name
