"""Figures as PNG and SVG, by matplotlib."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from robustmdp._arrays import FloatArray, IntArray
from robustmdp.paper import diagrams
from robustmdp.paper.figures import (
    Curve,
    Diagram,
    Figure,
    Key,
    Panel,
    Scale,
    Style,
    columns_of,
    curves_of,
    keys_of,
    rows_of,
    style_of,
    styles_of,
)

MARKERS = "os^DvPX*"
_QUALITATIVE = (("Dark2", 8), ("tab20b", 20))  # colour maps and how many colours they have
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


class Ink(NamedTuple):
    """How the lines of a key look."""

    colour: str
    marker: str


Palette = Mapping[Key, Ink]


def palette_of(figures: Iterable[Figure]) -> Palette:
    """Colours for all keys of some figures: weights from dark to light, the rest by a qualitative map.

    >>> list(palette_of([Figure("", "", "", "", (Panel("", "", "", ()),))]))
    []
    """
    mpl = _matplotlib()
    groups = [keys_of(figure) for figure in figures]
    keys = list(dict.fromkeys(key for group in groups for key in group))
    weights = sorted({key for key in keys if key.kind == "λ" and not isinstance(key.value, str)}, key=lambda k: k.value)
    shades = mpl.colormaps["plasma"](np.linspace(0.0, 0.8, len(weights)))
    found = {
        key: Ink(mpl.colors.to_hex(shade), MARKERS[k % 8])
        for k, (key, shade) in enumerate(zip(weights, shades, strict=True))
    }
    words = [mpl.colors.to_hex(mpl.colormaps[name](k)) for name, count in _QUALITATIVE for k in range(count)]
    for key in keys:
        if key not in found:
            taken = {found[other].colour for group in groups if key in group for other in group if other in found}
            rank = sum(other.kind == key.kind for other in found)
            order = [(rank + step) % len(words) for step in range(len(words))]
            place = next((each for each in order if words[each] not in taken), rank % len(words))
            found[key] = Ink(words[place], MARKERS[place % 8])
    return found


def _matplotlib() -> Any:
    try:
        import matplotlib as mpl
    except ImportError:
        raise ImportError("matplotlib must be installed for figures: pip install 'robustmdp[plot]'") from None
    return mpl


def draw(figure: Figure, folder: Path, palette: Palette) -> list[Path]:
    """Write <folder>/<figure.name>.png and .svg; equal figures give equal files."""
    mpl = _matplotlib()
    from matplotlib.figure import Figure as Canvas

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
    left, right, bottom, top = diagrams.extent(panel)
    return min(width * (top - bottom) / (right - left), 2 * _HEIGHT) + 0.3


def plain(text: str, columns: int = 10_000) -> str:
    r"""Text that matplotlib takes literally, in lines of at most so many characters.

    >>> plain("a price of $5 or $6")
    'a price of \\$5 or \\$6'
    """
    from robustmdp.pictures.canvas import escape

    return escape("\n".join(textwrap.wrap(text, columns)))


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
    marker = "none" if style in ("dashed", "dotted") else ink.marker
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

    left, right, bottom, top = diagrams.extent(diagram)
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    axes.set_axis_off()
    for arrow in diagram.arrows:
        stroke, ink = diagrams.stroke(diagram, arrow), palette[arrow.key]
        axes.plot(*stroke.line.T, color=ink.colour, linewidth=1.3)
        axes.add_patch(Polygon(stroke.head, color=ink.colour, linewidth=0))
        axes.text(*stroke.label, plain(arrow.label), color=ink.colour, ha="center", va="center")
    for node in diagram.nodes:
        axes.add_patch(Circle((node.x, node.y), diagrams.radius(diagram), facecolor="white", edgecolor="#222222"))
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
    grey = Ink(_GREY, "o")
    handles += [Line2D([], [], **_look(style, grey), label=plain(name)) for style, name in styles_of(figure)]
    if handles:
        wanted = sum(0.55 + 0.07 * len(str(handle.get_label())) for handle in handles)
        columns = math.ceil(len(handles) / math.ceil(wanted / canvas.get_figwidth()))
        canvas.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)


def thin(curve: Curve, limit: int) -> Curve:
    """At most `limit` points, dense enough on linear and logarithmic axes alike; ends stay.

    >>> x = np.arange(1.0, 100_001.0)
    >>> thinned = thin(Curve(Key("λ", 1.0), x, 1 / x), 100)
    >>> len(thinned.x) <= 100, thinned.x[:3].tolist(), thinned.x[-1].item()
    (True, [1.0, 2.0, 3.0], 100000.0)
    """
    return curve if len(curve.x) <= limit else _take(curve, _spread(curve.x, limit))


def within(curve: Curve, low: float, high: float) -> Curve:
    """The part over a range of x, with the neighbour on either side, so that lines reach the frame."""
    inside = (curve.x >= low) & (curve.x <= high)
    near = inside.copy()
    near[1:] |= inside[:-1]
    near[:-1] |= inside[1:]
    return _take(curve, np.flatnonzero(near))


def fitted(curves: Iterable[Curve], low: float, high: float, scale: Scale) -> tuple[float, float] | None:
    """The range of y that curves and bands take over a range of x, with some air; None where there is nothing."""
    parts = [
        values[(curve.x >= low) & (curve.x <= high)]
        for curve in curves
        for values in (curve.y, curve.low, curve.high)
        if values is not None
    ]
    values = np.concatenate([np.empty(0), *parts])
    values = values[np.isfinite(values) & ((values > 0) | (scale == "linear"))]
    if not len(values):
        return None
    if scale == "log":
        bottom, top = np.log10(values.min()), np.log10(values.max())
        air = 0.05 * (top - bottom) or 0.1
        return float(10 ** max(bottom - air, -300.0)), float(10 ** min(top + air, 300.0))
    air = 0.05 * np.ptp(values) or 0.1 * abs(float(values[0])) or 1.0
    return float(values.min() - air), float(values.max() + air)


def along(panel: Panel, axis: Literal["x", "y"]) -> FloatArray:
    """All finite numbers of its curves on an axis."""
    values = np.concatenate([np.empty(0), *(curve.x if axis == "x" else curve.y for curve in panel.curves)])
    finite: FloatArray = values[np.isfinite(values)]
    return finite


def _spread(x: FloatArray, limit: int) -> IntArray:
    """Half of the points evenly by number, half evenly by its logarithm."""
    last = len(x) - 1
    even = np.linspace(0, last, limit // 2)
    early = np.geomspace(1, last + 1, limit - limit // 2) - 1
    return np.unique(np.concatenate([even, early]).round().astype(np.int64))


def _take(curve: Curve, rows: IntArray) -> Curve:
    low = None if curve.low is None else curve.low[rows]
    high = None if curve.high is None else curve.high[rows]
    return replace(curve, x=curve.x[rows], y=curve.y[rows], low=low, high=high)
