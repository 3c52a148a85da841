"""The HTML around the plots of a figure: heading, legend, switches, places to draw, caption."""

from __future__ import annotations

from collections.abc import Collection
from html import escape

from robustmdp.app.page.colours import Ink, Palette
from robustmdp.app.page.figure import Diagram, Figure, Panel, Style
from robustmdp.app.page.interactive import DASHES, size_of
from robustmdp.app.page.legend import columns_of, curves_of, keys_of, style_of, styles_of

_SHAPES = {
    "circle": '<circle cx="16" cy="7" r="4"/>',
    "square": '<path d="M12.5 3.5h7v7h-7z"/>',
    "triangle-up": '<path d="M16 2.5l4.5 8h-9z"/>',
    "diamond": '<path d="M16 2l4.5 5-4.5 5-4.5-5z"/>',
    "triangle-down": '<path d="M16 11.5l4.5-8h-9z"/>',
    "cross": '<path d="M14.5 2.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z"/>',
    "x": '<path d="M13.5 2.5L16 5l2.5-2.5 2 2L18 7l2.5 2.5-2 2L16 9l-2.5 2.5-2-2L14 7l-2.5-2.5z"/>',
    "star": '<path d="M16 2l1.3 3.4 3.6.2-2.8 2.3.9 3.5-3-2-3 2 .9-3.5-2.8-2.3 3.6-.2z"/>',
}
_GREY = "#555555"


def figure_html(figure: Figure, anchor: str, palette: Palette) -> str:
    """A <figure> whose plots are drawn when the page is opened."""
    panels = "".join(_panel(panel) if isinstance(panel, Panel) else _diagram(panel) for panel in figure.panels)
    return (
        f'<figure id="{escape(anchor)}" data-figure="{escape(figure.name)}">\n'
        f"<h3>{escape(figure.title)}</h3>\n{reading_html(figure.reading)}"
        f'<div class="controls">{_legend(figure, palette)}{_switches(figure)}</div>\n'
        f'<div class="panels columns-{columns_of(figure)}">{panels}</div>\n'
        f"<figcaption>{escape(figure.caption)}</figcaption>\n</figure>"
    )


def reading_html(text: str) -> str:
    """What the numbers say, where anything is said."""
    return f'<p class="reading"><strong>What it shows:</strong> {escape(text)}</p>' if text else ""


def _legend(figure: Figure, palette: Palette) -> str:
    """A button for each key, and samples of the styles that have names."""
    marked = {curve.key for curve in curves_of(figure)}
    buttons = "".join(
        f'<button type="button" aria-pressed="true" data-key="{number}">'
        f"{_swatch(palette[key], style, marked=key in marked and style not in DASHES)}{escape(str(key))}</button>"
        for number, key in enumerate(keys_of(figure))
        for style in (style_of(figure, key),)
    )
    grey = Ink(_GREY, "circle")
    samples = "".join(
        f'<span class="sample">{_swatch(grey, style, marked=style not in DASHES)}{escape(name)}</span>'
        for style, name in styles_of(figure)
    )
    return f'<div class="legend" role="group" aria-label="Show or hide">{buttons}{samples}</div>'


def _swatch(ink: Ink, style: Style, *, marked: bool) -> str:
    dash = f' stroke-dasharray="{DASHES[style]}"' if style in DASHES else ""
    line = "" if style == "points" else f'<path d="M1 7h30" stroke="{ink.colour}" stroke-width="2.5"{dash}/>'
    shape = _SHAPES[ink.marker] if marked else ""
    return f'<svg width="32" height="14" fill="{ink.colour}" aria-hidden="true">{line}{shape}</svg>'


def _switches(figure: Figure) -> str:
    """Buttons that make the axes of all panels logarithmic or linear."""
    panels = [panel for panel in figure.panels if isinstance(panel, Panel)]
    if not panels:
        return ""
    scales = {"x": {panel.x_scale for panel in panels}, "y": {panel.y_scale for panel in panels}}
    buttons = "".join(
        f'<button type="button" data-axis="{axis}" aria-pressed="{_pressed(found)}">log {axis}</button>'
        for axis, found in scales.items()
    )
    return f'<div class="switches" role="group" aria-label="Logarithmic axes">{buttons}</div>'


def _pressed(scales: Collection[str]) -> str:
    return "mixed" if len(scales) > 1 else str("log" in scales).lower()


def _panel(panel: Panel) -> str:
    what = f"{panel.title}: {panel.y_label} against {panel.x_label}"
    return (
        f'<div class="panel"><h4>{escape(panel.title)}</h4><p class="y-label">{escape(panel.y_label)}</p>'
        f'<div class="plot" role="img" aria-label="{escape(what)}"></div>'
        f'<p class="x-label">{escape(panel.x_label)}</p></div>'
    )


def _diagram(diagram: Diagram) -> str:
    """In its own proportions, scrolled sideways where the screen is narrower than its labels need."""
    width, height = size_of(diagram)
    shape = f"min-width: {width:.0f}px; max-width: {1.6 * width:.0f}px; aspect-ratio: {width:.0f} / {height:.0f}"
    return (
        f'<div class="panel diagram"><h4>{escape(diagram.title)}</h4>'
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(diagram.title)}">'
        f'<div class="plot" role="img" aria-label="{escape(_in_words(diagram))}" style="{shape}"></div></div></div>'
    )


def _in_words(diagram: Diagram) -> str:
    names = [node.name for node in diagram.nodes]
    arrows = [f"{names[a.source]} to {names[a.target]}, {a.key}, {a.label}" for a in diagram.arrows]
    return f"{diagram.title}: {len(names)} states. " + "; ".join(arrows)
