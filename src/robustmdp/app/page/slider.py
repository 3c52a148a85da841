"""One question asked many times: a range to move along, and what stands at each place of it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from robustmdp import _checks
from robustmdp.app.page.blocks import Block
from robustmdp.app.page.colours import Palette
from robustmdp.app.page.figure import Figure
from robustmdp.app.page.flow import flow_html
from robustmdp.app.page.markup import figure_html, reading_html


@dataclass(frozen=True)
class Frame:
    """What is shown at one place of a slider; `x` is where that is in its figure, on the axis of every panel."""

    label: str
    body: tuple[Block, ...]
    x: float | None = None

    def __post_init__(self) -> None:
        for part in self.body:
            kind = type(part).__name__
            _checks.must(hasattr(part, "html"), f"a frame must hold blocks such as tables and grids: got a {kind}")
        if self.x is not None:
            _checks.finite_number(f"x of frame {self.label!r}", self.x)


@dataclass(frozen=True)
class Slider:
    """Frames of which one is seen at a time, at first the one numbered `start`; the figure above shows where it is.

    `name` is that of its place in the page, `label` says what is moved, `caption` and `reading` are as in figures.

    >>> Slider("half", "A weight", "λ", (Frame("λ = 1", ()), Frame("λ = 2", ())), start=2)
    Traceback (most recent call last):
    ValueError: start must be the number of one of the 2 frames, counted from 0: got 2
    """

    name: str
    title: str
    label: str
    frames: tuple[Frame, ...]
    start: int
    figure: Figure | None = None
    caption: str = ""
    reading: str = ""

    def __post_init__(self) -> None:
        count = len(self.frames)
        _checks.must(count > 0, f"a slider must have frames: {self.name!r} has none")
        _checks.must(
            0 <= self.start < count,
            f"start must be the number of one of the {count} frames, counted from 0: got {self.start}",
        )


def slider_html(slider: Slider, anchor: str, palette: Palette) -> str:
    """The figure, the dial below it, and all frames on top of each other, so that the tallest one makes the room."""
    # No anchor of the page has a dot in it, so that these two are free.
    figure = "" if slider.figure is None else figure_html(slider.figure, f"{anchor}.figure", palette) + "\n"
    frames = "".join(_frame(frame, number == slider.start) for number, frame in enumerate(slider.frames))
    caption = f'<p class="note">{escape(slider.caption)}</p>\n' if slider.caption else ""
    return (
        f'<div class="slider" id="{escape(anchor)}" data-slider="{escape(slider.name)}">\n'
        f"<h3>{escape(slider.title)}</h3>\n{reading_html(slider.reading)}{figure}{_dial(slider, anchor)}\n"
        f'<div class="frames">\n{frames}</div>\n{caption}</div>'
    )


def _dial(slider: Slider, anchor: str) -> str:
    """What is moved, where it stands, and three ways to move it."""
    place, label, now = f"{escape(anchor)}.range", escape(slider.label), escape(slider.frames[slider.start].label)
    first, last = (escape(slider.frames[end].label) for end in (0, -1))
    return (
        f'<div class="dial"><p><label for="{place}">{label}</label><output for="{place}">{now}</output></p>'
        f'<div class="turn"><button type="button" data-step="-1" aria-label="Previous: {label}">&lsaquo;</button>'
        f'<input type="range" id="{place}" min="0" max="{len(slider.frames) - 1}" step="1" value="{slider.start}" '
        f'aria-valuetext="{now}" autocomplete="off">'
        f'<button type="button" data-step="1" aria-label="Next: {label}">&rsaquo;</button></div>'
        f'<p class="ends" aria-hidden="true"><span>{first}</span><span>{last}</span></p></div>'
    )


def _frame(frame: Frame, current: bool) -> str:
    shown = " current" if current else ""
    x = "" if frame.x is None else f' data-x="{float(frame.x)!r}"'
    return f'<div class="frame{shown}" data-label="{escape(frame.label)}"{x}>\n{flow_html(frame.body)}</div>\n'
