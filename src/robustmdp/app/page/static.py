"""Figures as pictures: PNG and SVG by matplotlib."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from robustmdp.app.page import geometry
from robustmdp.app.page.colours import Ink, Palette
from robustmdp.app.page.figure import Curve, Diagram, Figure, Panel, Style
from robustmdp.app.page.legend import columns_of, curves_of, keys_of, rows_of, style_of, styles_of
from robustmdp.app.page.resolution import along, fitted, thin, within

MARKERS = {
    "circle": "o",
    "square": "s",
    "triangle-up": "^",
    "diamond": "D",
    "triangle-down": "v",
    "cross": "P",
    "x": "X",
    "star": "*",
}
LINES: dict[Style, str] = {"line": "-", "dashed": "--", "dotted": ":", "points": "none", "line+points": "-"}

_LOOK: dict[Any, Any] = {
    "svg.hashsalt": "robustmdp",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9,
    "axes.formatter.limits": (-3, 5),
    "axes.formatter.use_mathtext": True,
}
_POINTS = 2000
_WIDTHS = {1: 6.4, 2: 9.2, 3: 12.6}  # inches, by columns
_HEIGHT = 3.3  # of a row of panels
_GREY = "#555555"


def draw(figure: Figure, folder: Path, palette: Palette) -> list[Path]:
    """Write <folder>/<figure.name>.png and .svg; equal figures give equal files."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise ImportError("matplotlib must be installed for figures: pip install 'robustmdp[report]'") from None
    folder.mkdir(parents=True, exist_ok=True)
    png, svg = folder / f"{figure.name}.png", folder / f"{figure.name}.svg"
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_LOOK)
        canvas = Canvas(layout="constrained")
        _paint(canvas, figure, palette)
        canvas.savefig(png, dpi=160, metadata={"Software": None})
        canvas.set_layout_engine("none")  # the places that were found are good for both, and finding them is slow
        canvas.savefig(svg, metadata={"Date": None, "Creator": None})
    return [png, svg]


def _paint(canvas: Any, figure: Figure, palette: Palette) -> None:
    """Panels row by row, the title above and the legend below."""
    rows = rows_of(figure)
    diagrams = any(isinstance(panel, Diagram) for panel in figure.panels)
    width = _WIDTHS[3] if diagrams else _WIDTHS[columns_of(figure)]
    heights = [_row_height(figure, row, width) for row in rows]
    canvas.set_size_inches(width, sum(heights) + 0.9)
    places = canvas.add_gridspec(len(rows), 6, height_ratios=heights)
    for r, row in enumerate(rows):
        span = 6 // (1 if isinstance(figure.panels[row[0]], Diagram) else columns_of(figure))
        for c, number in enumerate(row):
            axes = canvas.add_subplot(places[r, c * span : (c + 1) * span])
            panel = figure.panels[number]
            axes.set_title(plain(panel.title, int(9 * width * span / 6)), fontsize=10)
            if isinstance(panel, Diagram):
                _draw_diagram(axes, panel, palette)
            else:
                _draw_panel(axes, panel, palette)
    canvas.suptitle(plain(figure.title, int(9 * width)), fontsize=12, fontweight="bold")
    _add_legend(canvas, figure, palette)


def _row_height(figure: Figure, row: tuple[int, ...], width: float) -> float:
    panel = figure.panels[row[0]]
    if isinstance(panel, Panel):
        return _HEIGHT
    left, right, bottom, top = geometry.extent(panel)
    return min(width * (top - bottom) / (right - left), 2 * _HEIGHT) + 0.3


def plain(text: str, columns: int = 10_000) -> str:
    r"""Text that matplotlib takes literally, in lines of at most so many characters.

    >>> plain("a price of $5 or $6")
    'a price of \\$5 or \\$6'
    """
    return "\n".join(textwrap.wrap(text, columns)).replace("$", r"\$")


def _draw_panel(axes: Any, panel: Panel, palette: Palette) -> None:
    _set_scales(axes, panel)
    axes.set_xlabel(plain(panel.x_label, 60))
    axes.set_ylabel(plain(panel.y_label, 42))
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    for curve in panel.curves:
        _draw_curve(axes, curve, palette[curve.key])
    for axis in (axes.xaxis, axes.yaxis):
        _label_short_log(axis)
    if panel.inset is not None:
        _draw_inset(axes, panel, palette)


def _set_scales(axes: Any, panel: Panel) -> None:
    """Those of the panel, but linear where there is nothing that has a logarithm."""
    axes.set_xscale(panel.x_scale if (along(panel, "x") > 0).any() else "linear")
    axes.set_yscale(panel.y_scale if (along(panel, "y") > 0).any() else "linear")


def _label_short_log(axis: Any) -> None:
    """Over less than two decades, powers of ten alone say too little."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if axis.get_scale() == "log" and 0 < low < high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(lambda value, _: _short(value))
        axis.set_minor_formatter(NullFormatter())


def _short(value: float) -> str:
    """A number for an axis; beyond a few digits as a multiple of a power of ten."""
    if 1e-3 <= value < 1e5:
        return f"{value:g}"
    digits, power = f"{value:.0e}".split("e")
    return rf"${digits}\times10^{{{int(power)}}}$"


def _draw_curve(axes: Any, whole: Curve, ink: Ink) -> None:
    curve = thin(whole, _POINTS)
    if not np.isfinite(curve.y).any():
        return
    if curve.low is not None and curve.high is not None:
        if curve.style == "points":  # these have an interval each
            axes.vlines(curve.x, curve.low, curve.high, color=ink.colour, linewidth=1.2)
        else:
            axes.fill_between(curve.x, curve.low, curve.high, color=ink.colour, alpha=0.18, linewidth=0)
    axes.plot(curve.x, curve.y, **_look(curve.style, ink), markevery=0.14 if curve.style == "line" else None)


def _look(style: Style, ink: Ink) -> dict[str, Any]:
    marker = "none" if style in ("dashed", "dotted") else MARKERS[ink.marker]
    return {
        "color": ink.colour,
        "linestyle": LINES[style],
        "linewidth": 1.4,
        "marker": marker,
        "markersize": 4.5,
        "markeredgecolor": "white" if style != "points" else ink.colour,
        "markeredgewidth": 0.4,
    }


def _draw_inset(axes: Any, panel: Panel, palette: Palette) -> None:
    """The range of x once more, in the corner that falling curves leave free."""
    assert panel.inset is not None
    inset = axes.inset_axes((0.56, 0.55, 0.43, 0.43))
    _set_scales(inset, panel)
    for curve in panel.curves:
        _draw_curve(inset, within(curve, *panel.inset), palette[curve.key])
    if inset.get_xscale() == "linear" or panel.inset[0] > 0:
        inset.set_xlim(panel.inset)
    inset.set_ylim(fitted(panel.curves, *panel.inset, panel.y_scale))
    inset.tick_params(labelsize=7)
    inset.grid(color="#e6e6e6", linewidth=0.5)
    inset.set_axisbelow(True)
    inset.spines[:].set(visible=True, color="#999999")


def _draw_diagram(axes: Any, diagram: Diagram, palette: Palette) -> None:
    from matplotlib.patches import Circle, Polygon

    left, right, bottom, top = geometry.extent(diagram)
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    axes.set_axis_off()
    for arrow in diagram.arrows:
        stroke, ink = geometry.stroke(diagram, arrow), palette[arrow.key]
        axes.plot(*stroke.line.T, color=ink.colour, linewidth=1.3)
        axes.add_patch(Polygon(stroke.head, color=ink.colour, linewidth=0))
        axes.text(*stroke.label, plain(arrow.label), color=ink.text, ha="center", va="center")
    for node in diagram.nodes:
        axes.add_patch(Circle((node.x, node.y), geometry.radius(diagram), facecolor="white", edgecolor="#222222"))
        axes.text(node.x, node.y, plain(node.name), ha="center", va="center", fontsize=10)


def _add_legend(canvas: Any, figure: Figure, palette: Palette) -> None:
    """One entry for each key, and a grey sample of each style that has a name."""
    from matplotlib.lines import Line2D

    marked = {curve.key for curve in curves_of(figure)}
    arrow = {"linestyle": "-", "marker": "none"}
    handles = [
        Line2D(
            [],
            [],
            **_look(style_of(figure, key), palette[key]) | ({} if key in marked else arrow),
            label=plain(str(key)),
        )
        for key in keys_of(figure)
    ]
    grey = Ink(_GREY, "circle")
    handles += [Line2D([], [], **_look(style, grey), label=plain(name)) for style, name in styles_of(figure)]
    if handles:
        wanted = sum(0.55 + 0.07 * len(str(handle.get_label())) for handle in handles)
        columns = math.ceil(len(handles) / math.ceil(wanted / canvas.get_figwidth()))
        canvas.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)
