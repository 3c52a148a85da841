"""Diagrams as lines: where arrows run, where their heads and labels stand."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.paper.figures import Arrow, Diagram

_FINE = np.linspace(0.0, 1.0, 1001)[:, None]


class Stroke(NamedTuple):
    """An arrow: its line and its head (points in rows), and where its label stands."""

    line: FloatArray
    head: FloatArray
    label: FloatArray


def radius(diagram: Diagram) -> float:
    """That of nodes: they fill about two fifths of the closest distance between two of them."""
    places = np.array([(node.x, node.y) for node in diagram.nodes]).reshape(-1, 2)
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1)
    apart = distances[distances > 0]
    return 0.2 * float(apart.min()) if len(apart) else 0.2


def stroke(diagram: Diagram, arrow: Arrow) -> Stroke:
    """From the rim of a node to the rim of another, or in a loop back to its own."""
    r = radius(diagram)
    source, target = diagram.nodes[arrow.source], diagram.nodes[arrow.target]
    start, end = np.array([source.x, source.y]), np.array([target.x, target.y])
    curve, outward = _loop(start, arrow.bend, r) if arrow.source == arrow.target else _arc(start, end, arrow.bend, r)
    apart = (np.linalg.norm(curve - start, axis=1) >= r) & (np.linalg.norm(curve - end, axis=1) >= 1.1 * r)
    visible = curve[apart] if apart.sum() > 2 else curve
    return _with_head(visible, 0.5 * r, curve[len(curve) // 2] + 0.6 * r * outward)


def extent(diagram: Diagram) -> tuple[float, float, float, float]:
    """(left, right, bottom, top) that holds nodes, arrows and labels."""
    r = radius(diagram)
    places = [np.array([(node.x, node.y) for node in diagram.nodes]).reshape(-1, 2)]
    for arrow in diagram.arrows:
        drawn = stroke(diagram, arrow)
        places += [drawn.line, drawn.label[None]]
    points = np.concatenate(places) if len(diagram.nodes) else np.zeros((1, 2))
    (left, bottom), (right, top) = points.min(axis=0), points.max(axis=0)
    return float(left - 2 * r), float(right + 2 * r), float(bottom - r), float(top + r)


def _arc(start: FloatArray, end: FloatArray, bend: float, r: float) -> tuple[FloatArray, FloatArray]:
    """A cubic curve of height `bend`; one that passes other nodes leaves outwards, clear of the loops at its ends."""
    span = float(np.linalg.norm(end - start)) or 1.0
    along = (end - start) / span
    left = np.array([-along[1], along[0]])
    reach = min(span / 3, 1.2 * r) if span < 7.5 * r else -min(span / 2, 2.3 * abs(bend))
    controls = (start, start + reach * along + 4 / 3 * bend * left, end - reach * along + 4 / 3 * bend * left, end)
    return _bezier(*controls), left * (1.0 if bend >= 0 else -1.0)


def _loop(centre: FloatArray, bend: float, r: float) -> tuple[FloatArray, FloatArray]:
    """A drop on top of the node (below it where bend is negative) that reaches `bend` beyond its rim."""
    up = np.array([0.0, 1.0 if bend >= 0 else -1.0])
    height = 4 / 3 * (abs(bend) + r) * up
    side = np.array([1.6 * r, 0.0])
    return _bezier(centre, centre + height - side, centre + height + side, centre), up


def _bezier(a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray) -> FloatArray:
    t = _FINE
    curve: FloatArray = (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d
    return curve


def _with_head(line: FloatArray, size: float, label: FloatArray) -> Stroke:
    """A triangle at the end of the line, which stops at its base."""
    tip = line[-1]
    body = line[np.linalg.norm(line - tip, axis=1) >= 0.8 * size]
    body = _sampled(body, size) if len(body) else line[:1]
    along = (tip - body[-1]) / (float(np.linalg.norm(tip - body[-1])) or 1.0)
    base, side = tip - size * along, 0.42 * size * np.array([-along[1], along[0]])
    return Stroke(np.vstack([body, base]), np.stack([tip, base + side, base - side, tip]), label)


def _sampled(line: FloatArray, step: float) -> FloatArray:
    """As many of its points as look smooth."""
    length = float(np.linalg.norm(np.diff(line, axis=0), axis=1).sum())
    count = min(len(line), 12 + int(3 * length / step))
    sampled: FloatArray = line[np.linspace(0, len(line) - 1, count).round().astype(int)]
    return sampled
