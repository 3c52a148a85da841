"""Figures as PNG and SVG, by matplotlib."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.paper.figures import Arrow, Curve, Diagram, Figure, Key, Panel, Style, curves_of, keys_of

_MARKERS = "os^DvPX*"
_LINES: dict[Style, str] = {"line": "-", "dashed": "--", "dotted": ":", "points": "none", "line+points": "-"}
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "robustmdp",
    "font.size": 9,
    "axes.formatter.limits": (-3, 5),
    "axes.formatter.use_mathtext": True,
}
_WIDTHS = {1: 6.4, 2: 9.2, 3: 12.6}  # inches, by columns
_HEIGHT, _DIAGRAM_HEIGHT = 3.3, 2.8  # of a row
_MOST_NAMES = 3  # curves of one style that the legend tells apart
_RADIUS = 0.2  # of a node


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
    keys = list(dict.fromkeys(key for figure in figures for key in keys_of(figure)))
    weights = sorted((key for key in keys if key.kind == "λ"), key=lambda key: float(key.value))
    shades = [mpl.colors.to_hex(shade) for shade in mpl.colormaps["plasma"](np.linspace(0.0, 0.8, len(weights)))]
    others = [mpl.colors.to_hex(colour) for name in ("Dark2", "tab20b") for colour in mpl.colormaps[name].colors]
    found, ranks = {}, Counter[str]()
    for key in [*weights, *(key for key in keys if key.kind != "λ")]:
        colours, rank = shades if key.kind == "λ" else others, ranks[key.kind]
        found[key] = Ink(colours[rank % len(colours)], _MARKERS[rank % len(_MARKERS)])
        ranks[key.kind] += 1
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
        mpl.rcParams.update(_SETTINGS)
        canvas = Canvas(layout="constrained")
        _paint(canvas, figure, palette)
        canvas.savefig(png, dpi=160, metadata={"Software": None})
        canvas.set_layout_engine("none")  # the places that were found are good for both, and finding them is slow
        canvas.savefig(svg, metadata={"Date": None, "Creator": None})
    return [png, svg]


def _paint(canvas: Any, figure: Figure, palette: Palette) -> None:
    """Panels row by row, the title above and the legend below."""
    count = len(figure.panels)
    has_diagrams = any(isinstance(panel, Diagram) for panel in figure.panels)
    columns = 1 if has_diagrams else 2 if count == 4 else min(count, 3)
    width = _WIDTHS[3 if has_diagrams else columns]
    rows = math.ceil(count / columns)
    canvas.set_size_inches(width, rows * (_DIAGRAM_HEIGHT if has_diagrams else _HEIGHT) + 0.9)
    places = canvas.add_gridspec(rows, columns)
    for number, panel in enumerate(figure.panels):
        axes = canvas.add_subplot(places[divmod(number, columns)])
        axes.set_title(plain(panel.title, int(9 * width / columns)), fontsize=10)
        if isinstance(panel, Diagram):
            _draw_diagram(axes, panel, palette)
        else:
            _draw_panel(axes, panel, palette)
    canvas.suptitle(plain(figure.title, int(9 * width)), fontsize=12, fontweight="bold")
    _add_legend(canvas, figure, palette)


def plain(text: str, columns: int = 10_000) -> str:
    r"""Text that matplotlib takes literally, in lines of at most so many characters.

    >>> plain("a price of $5 or $6")
    'a price of \\$5 or \\$6'
    """
    from robustmdp.pictures.canvas import escape

    return escape("\n".join(textwrap.wrap(text, columns)))


def _draw_panel(axes: Any, panel: Panel, palette: Palette) -> None:
    from robustmdp.pictures.canvas import finish, label_powers

    _draw_curves(axes, panel, palette)
    finish(axes, xlabel=plain(panel.x_label, 60), ylabel=plain(panel.y_label, 42))
    for axis in (axes.xaxis, axes.yaxis):
        ends = np.array(axis.get_view_interval())
        if axis.get_scale() == "log" and 0 < ends[0] < ends[1] < 100 * ends[0]:
            label_powers(axis, ends)
    if panel.inset is None:
        return
    inset = axes.inset_axes((0.56, 0.55, 0.43, 0.43))  # the corner that falling curves leave free
    _draw_curves(inset, replace(panel, curves=tuple(_cut(curve, *panel.inset) for curve in panel.curves)), palette)
    inset.set_xlim(panel.inset)
    finish(inset)
    inset.tick_params(labelsize=7)
    inset.spines[:].set(visible=True, color="#999999")


def _cut(curve: Curve, low: float, high: float) -> Curve:
    """The part over a range of x."""
    inside = (curve.x >= low) & (curve.x <= high)
    columns = {name: getattr(curve, name) for name in ("x", "y", "low", "high")}
    return replace(curve, **{name: column[inside] for name, column in columns.items() if column is not None})


def _draw_curves(axes: Any, panel: Panel, palette: Palette) -> None:
    """On the scales of the panel, but linear where there are no two numbers that have a logarithm."""
    for axis, scale in (("x", panel.x_scale), ("y", panel.y_scale)):
        values = np.concatenate([np.empty(0), *(getattr(curve, axis) for curve in panel.curves)])
        has_range = len(np.unique(values[(values > 0) & (values < np.inf)])) > 1
        axes.set(**{f"{axis}scale": scale if has_range else "linear"})
    for curve in panel.curves:
        if not np.isfinite(curve.y).any():
            continue
        ink = palette[curve.key]
        if curve.low is not None and curve.style == "points":
            axes.vlines(curve.x, curve.low, curve.high, color=ink.colour, linewidth=1.2)
        elif curve.low is not None:
            axes.fill_between(curve.x, curve.low, curve.high, color=ink.colour, alpha=0.18, linewidth=0)
        axes.plot(curve.x, curve.y, **_look(curve.style, ink), markevery=0.14 if curve.style == "line" else None)


def _look(style: Style, ink: Ink) -> dict[str, Any]:
    return {
        "color": ink.colour,
        "linestyle": _LINES[style],
        "linewidth": 1.4,
        "marker": "none" if style in ("dashed", "dotted") else ink.marker,
        "markersize": 4.5,
        "markeredgecolor": "white" if style != "points" else ink.colour,
        "markeredgewidth": 0.4,
    }


def _draw_diagram(axes: Any, diagram: Diagram, palette: Palette) -> None:
    from matplotlib.patches import Circle, FancyArrowPatch
    from matplotlib.path import Path

    for arrow in diagram.arrows:
        line, label, colour = *_trace(arrow), palette[arrow.key].colour
        axes.add_patch(
            FancyArrowPatch(path=Path(line), arrowstyle="-|>", mutation_scale=9, color=colour, linewidth=1.3)
        )
        axes.text(*label, plain(arrow.label), color=colour, ha="center", va="center")
        axes.update_datalim([*line, label])
    for place, name in enumerate(diagram.nodes):
        axes.add_patch(Circle((place, 0.0), _RADIUS, facecolor="white", edgecolor="#222222"))
        axes.text(place, 0.0, plain(name), ha="center", va="center", fontsize=10)
    axes.set_aspect("equal")
    axes.margins(0.02, 0.08)
    axes.set_axis_off()


def _trace(arrow: Arrow) -> tuple[FloatArray, FloatArray]:
    """The points of an arrow outside its nodes, on a cubic curve of height `bend`, and where its label stands."""
    from matplotlib.bezier import BezierSegment

    start, end = np.array([arrow.source, 0.0]), np.array([arrow.target, 0.0])
    along, up = np.array([1.0, 0.0]), np.array([0.0, 1.0 if arrow.bend >= 0 else -1.0])
    span = arrow.target - arrow.source
    if span == 0:
        height, reach = abs(arrow.bend) + _RADIUS, -1.6 * _RADIUS
    else:
        up, height = up * np.sign(span), abs(arrow.bend)
        # One that passes other nodes leaves outwards, clear of the loops at its ends.
        reach = np.sign(span) * (1.2 * _RADIUS if abs(span) == 1 else -min(abs(span) / 2, 2.3 * height))
    towards = 4 / 3 * height * up
    controls = (start, start + towards + reach * along, end + towards - reach * along, end)
    curve = BezierSegment(controls)(np.linspace(0.0, 1.0, 201))
    outside = np.all([np.linalg.norm(curve - node, axis=1) >= 1.1 * _RADIUS for node in (start, end)], axis=0)
    return curve[outside], curve[100] + 0.6 * _RADIUS * up


def _add_legend(canvas: Any, figure: Figure, palette: Palette) -> None:
    """One entry for each key, and a grey sample of each style that has a name, where there are several styles."""
    from matplotlib.lines import Line2D

    curves = curves_of(figure)
    entries: list[tuple[str, dict[str, Any]]] = []
    for key in keys_of(figure):
        styles = {curve.style for curve in curves if curve.key == key}
        look = _look(styles.pop() if len(styles) == 1 else "line", palette[key])
        entries.append((str(key), look if any(curve.key == key for curve in curves) else look | {"marker": "none"}))
    names: dict[Style, dict[str, None]] = {}
    for curve in curves:
        names.setdefault(curve.style, {}).update({curve.name: None} if curve.name else {})
    for style, named in names.items():
        if len(names) > 1 and 1 <= len(named) <= _MOST_NAMES:
            entries.append((", ".join(named), _look(style, Ink("#555555", "o"))))
    if entries:
        handles = [Line2D([], [], **look, label=plain(label)) for label, look in entries]
        wanted = sum(0.55 + 0.07 * len(str(handle.get_label())) for handle in handles)
        columns = math.ceil(len(handles) / math.ceil(wanted / canvas.get_figwidth()))
        canvas.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)
