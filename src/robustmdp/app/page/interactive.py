"""Figures as what plotly draws: traces and layouts, with their numbers in one pool of arrays."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from robustmdp.app.page import geometry
from robustmdp.app.page.colours import Ink, Palette
from robustmdp.app.page.figure import Arrow, Curve, Diagram, Figure, Key, Panel, Scale, Style
from robustmdp.app.page.legend import keys_of
from robustmdp.app.page.resolution import along, fitted, thin, within

Json = dict[str, Any]
Axis = Literal["x", "y"]

DASHES: dict[Style, str] = {"dashed": "8px,5px", "dotted": "3px,4px"}
_AXES: tuple[Axis, ...] = ("x", "y")
_FONT = {"family": "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif", "size": 12, "color": "#222"}
_AXIS = {
    "gridcolor": "#e8e8e8",
    "linecolor": "#888",
    "showline": True,
    "zeroline": False,
    "ticks": "outside",
    "tickcolor": "#888",
    "automargin": True,
    "exponentformat": "power",
    "tickfont": {"size": 11},
}
_CORNER, _NOWHERE = [0.6, 1.0], [0.999, 1.0]  # of width and height
_INSET = {**_AXIS, "domain": _CORNER, "mirror": True, "tickfont": {"size": 10}, "nticks": 4, "automargin": False}
_LAYOUT = {
    "font": _FONT,
    "margin": {"l": 8, "r": 12, "t": 24, "b": 8},
    "showlegend": False,
    "hovermode": "closest",
    "hoverlabel": {"align": "left", "bgcolor": "#fff", "font": _FONT},
    "paper_bgcolor": "#fff",
    "plot_bgcolor": "#fff",
    "autosize": True,
}


@dataclass
class Arrays:
    """The numbers of a page, each array once, in single precision: enough to draw.

    No curve keeps more than `limit` points.
    """

    limit: int
    encoded: list[str] = field(default_factory=list)
    _places: dict[bytes, int] = field(default_factory=dict)

    def add(self, values: npt.ArrayLike) -> int:
        """The place of an array in the pool; what is not finite becomes a gap."""
        with np.errstate(over="ignore", under="ignore"):
            single = np.asarray(values, np.float64).astype("<f4")
        single[~np.isfinite(single)] = np.nan
        data = single.tobytes()
        if data not in self._places:
            self._places[data] = len(self.encoded)
            self.encoded.append(base64.b64encode(data).decode("ascii"))
        return self._places[data]


def literal(text: str) -> str:
    """Text that plotly shows as it is: no tags, no templates.

    >>> literal("<b> & %{x}")
    '&lt;b&gt; &amp; %&#123;x}'
    """
    return escape(text, quote=False).replace("%{", "%&#123;")


def figure_json(figure: Figure, palette: Palette, arrays: Arrays) -> list[Json]:
    """For each panel its traces, its layout and, but for diagrams, the changes that switch the scale of an axis."""
    keys = keys_of(figure)
    return [
        _panel(panel, keys, palette, arrays) if isinstance(panel, Panel) else _diagram(panel, keys, palette, arrays)
        for panel in figure.panels
    ]


def size_of(diagram: Diagram) -> tuple[float, float]:
    """(width, height) in pixels below which labels would touch."""
    left, right, bottom, top = geometry.extent(diagram)
    scale = 88 / (5 * geometry.radius(diagram))
    return (right - left) * scale, (top - bottom) * scale


def _panel(panel: Panel, keys: Sequence[Key], palette: Palette, arrays: Arrays) -> Json:
    traces = [_curve(curve, panel, keys, palette, arrays) for curve in panel.curves]
    layout = {**_LAYOUT, "xaxis": _AXIS | _scale(panel, "x", panel.x_scale)}
    layout["yaxis"] = _AXIS | _scale(panel, "y", panel.y_scale)
    if panel.inset is not None:
        parts = [within(curve, *panel.inset) for curve in panel.curves]
        traces += [_curve(part, panel, keys, palette, arrays) | {"xaxis": "x2", "yaxis": "y2"} for part in parts]
        layout["xaxis2"] = {**_INSET, "anchor": "y2", **_inset_scale(panel, "x", panel.x_scale)}
        layout["yaxis2"] = {**_INSET, "anchor": "x2", **_inset_scale(panel, "y", panel.y_scale)}
    scales = {axis: {scale: _switch(panel, axis, scale) for scale in ("linear", "log")} for axis in _AXES}
    return {"traces": traces, "layout": layout, "scales": scales}


def _curve(whole: Curve, panel: Panel, keys: Sequence[Key], palette: Palette, arrays: Arrays) -> Json:
    """A trace whose x, y, low and high are places in the pool."""
    curve, ink = thin(whole, arrays.limit), palette[whole.key]
    trace = {
        "type": "scatter",
        "key": keys.index(curve.key),
        "x": arrays.add(curve.x),
        "y": arrays.add(curve.y),
        "mode": "markers" if curve.style == "points" else "lines" if curve.style in DASHES else "lines+markers",
        "line": {"color": ink.colour, "width": 2, "dash": DASHES.get(curve.style, "solid")},
        "marker": {
            "color": ink.colour,
            "symbol": ink.marker,
            "size": 7,
            "maxdisplayed": 8 if curve.style == "line" else 0,
            "line": {"color": "#fff", "width": 0.5},
        },
        "hovertemplate": _hover(curve, panel),
        "hoverlabel": {"bordercolor": ink.colour},
    }
    if curve.low is not None and curve.high is not None:
        trace |= {"low": arrays.add(curve.low), "high": arrays.add(curve.high)}
    return trace


def _hover(curve: Curve, panel: Panel) -> str:
    name = f" ({literal(curve.name)})" if curve.name else ""
    band = "<br>band: %{customdata[0]:.4g} to %{customdata[1]:.4g}" if curve.low is not None else ""
    x, y = literal(panel.x_label), literal(panel.y_label)
    return f"<b>{literal(str(curve.key))}</b>{name}<br>{x}: %{{x:.6~g}}<br>{y}: %{{y:.4g}}{band}<extra></extra>"


def _switch(panel: Panel, axis: Axis, scale: Scale) -> Json:
    """The changes of layout that give an axis, and that of the inset, another scale."""
    changes = {f"{axis}axis.{name}": value for name, value in _scale(panel, axis, scale).items()}
    changes[f"{axis}axis.autorange"] = True
    if panel.inset is not None:
        changes |= {f"{axis}axis2.{name}": value for name, value in _inset_scale(panel, axis, scale).items()}
    if panel.inset is not None and axis == "x":
        # The corner is free on the panel's own scale of x; on the other one curves may run through it.
        shown = scale == panel.x_scale
        changes |= {"xaxis2.visible": shown, "yaxis2.visible": shown, "xaxis2.domain": _CORNER if shown else _NOWHERE}
    return changes


def _scale(panel: Panel, axis: Axis, scale: Scale) -> Json:
    """On logarithmic axes digits stand between the powers of ten, in full, and few of them."""
    if scale == "linear":
        return {"type": scale, "nticks": 0, "tickformat": ""}
    values = along(panel, axis)
    positive = values[values > 0]
    large = len(positive) > 0 and positive.min() >= 1 and positive.max() > 2000
    return {"type": scale, "nticks": 4, "tickformat": "~s" if large else "~g"}


def _inset_scale(panel: Panel, axis: Axis, scale: Scale) -> Json:
    assert panel.inset is not None
    look = _scale(panel, axis, scale) | {"nticks": 4}
    span = fitted(panel.curves, *panel.inset, scale) if axis == "y" else panel.inset
    if span is None or (scale == "log" and span[0] <= 0):
        return look | {"autorange": True}
    return look | {"autorange": False, "range": [math.log10(end) if scale == "log" else end for end in span]}


def _diagram(diagram: Diagram, keys: Sequence[Key], palette: Palette, arrays: Arrays) -> Json:
    left, right, bottom, top = geometry.extent(diagram)
    r = geometry.radius(diagram)
    still = {"visible": False, "fixedrange": True}
    layout = {
        **_LAYOUT,
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
        "dragmode": False,
        "xaxis": {**still, "range": [left, right]},
        "yaxis": {**still, "range": [bottom, top], "scaleanchor": "x"},
        "shapes": [
            {
                "type": "circle",
                "x0": node.x - r,
                "x1": node.x + r,
                "y0": node.y - r,
                "y1": node.y + r,
                "fillcolor": "#fff",
                "line": {"color": "#222", "width": 1.5},
                "layer": "below",
            }
            for node in diagram.nodes
        ],
    }
    traces = []
    for number, key in enumerate(keys):
        arrows = [arrow for arrow in diagram.arrows if arrow.key == key]
        traces += [trace | {"key": number} for trace in _arrows(diagram, arrows, palette[key], arrays)]
    return {"traces": [*traces, _nodes(diagram, arrays)], "layout": layout, "config": {"displayModeBar": False}}


def _arrows(diagram: Diagram, arrows: Sequence[Arrow], ink: Ink, arrays: Arrays) -> list[Json]:
    """All lines, all heads and all labels of one colour."""
    if not arrows:
        return []
    strokes = [geometry.stroke(diagram, arrow) for arrow in arrows]
    gap = np.full((1, 2), np.nan)
    lines = np.concatenate([part for stroke in strokes for part in (stroke.line, gap)])
    heads = np.concatenate([part for stroke in strokes for part in (stroke.head, gap)])
    labels = np.array([stroke.label for stroke in strokes])
    drawn = {"type": "scatter", "mode": "lines", "hoverinfo": "skip"}
    text = {"mode": "text", "text": [literal(arrow.label) for arrow in arrows], "textfont": {"color": ink.text}}
    return [
        {**drawn, **_xy(lines, arrays), "line": {"color": ink.colour, "width": 1.8}},
        {**drawn, **_xy(heads, arrays), "line": {"width": 0}, "fill": "toself", "fillcolor": ink.colour},
        {**drawn, **_xy(labels, arrays), **text},
    ]


def _nodes(diagram: Diagram, arrays: Arrays) -> Json:
    """Names in the circles, details on hover."""
    details = [
        f"<b>{literal(node.name)}</b>" + (f"<br>{literal(node.detail)}" if node.detail else "")
        for node in diagram.nodes
    ]
    return {
        "type": "scatter",
        "mode": "markers+text",
        **_xy(np.array([(node.x, node.y) for node in diagram.nodes]).reshape(-1, 2), arrays),
        "text": [literal(node.name) for node in diagram.nodes],
        "textfont": {"size": 13},
        "marker": {"size": 30, "color": "rgba(0,0,0,0)"},
        "customdata": details,
        "hovertemplate": "%{customdata}<extra></extra>",
        "hoverlabel": {"bordercolor": "#222"},
    }


def _xy(points: npt.NDArray[np.float64], arrays: Arrays) -> Json:
    return {"x": arrays.add(points[:, 0]), "y": arrays.add(points[:, 1])}
