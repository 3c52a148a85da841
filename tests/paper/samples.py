"""Figures like those of experiments, small."""

from __future__ import annotations

import numpy as np

from robustmdp.paper.figures import Arrow, Curve, Diagram, Figure, Key, Panel

WEIGHTS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0)
HOSTILE = "</script><script>alert('x')</script> <!-- & \" ' $5 $6 %{y}"


def learning(weights: tuple[float, ...] = WEIGHTS, points: int = 201) -> Figure:
    """Falling errors with bands that reach below zero, an inset, and a panel on logarithmic axes."""
    x = np.linspace(0.0, 1e6, points)
    curves = []
    for k, weight in enumerate(weights):
        y = 10.0 * np.exp(-x / (1e5 + 1e4 * k)) + 0.1
        curves.append(Curve(Key("λ", weight), x, y, y - 0.2, y + 0.2))
    linear = Panel("on linear axes", "samples", "error", tuple(curves), inset=(8e5, 1e6))
    log = Panel("on a logarithmic axis", "samples", "error", tuple(curves), y_scale="log")
    return Figure("learning", "Learning curves", "Means and bands.", "Errors fall.", (linear, log))


def styles() -> Figure:
    """Every style, with names, and two keys that are words."""
    x = np.array([1.0, 10.0, 100.0])
    named = (("line", "literal"), ("dashed", "fit"), ("dotted", "bound"), ("points", "seen"), ("line+points", "mean"))
    curves = [
        Curve(Key("algorithm", "one"), x, (k + 1) / x, style=style, name=name) for k, (style, name) in enumerate(named)
    ]
    curves.append(Curve(Key("algorithm", "two"), x, 7.0 / x, name="literal"))
    return Figure("styles", "Styles", "All of them.", "", (Panel("styles", "n", "error", tuple(curves), "log", "log"),))


def chain(n: int = 4) -> Figure:
    """A row of states with loops and arcs, and an arrow back."""
    one, two = Key("action", "action 1"), Key("action", "action 2")
    arrows = [Arrow(n - 1, 0, "0.5", one, 1.4)]
    for i in range(n - 1):
        arrows += [Arrow(i, i, "p = 0.8", one, 0.4), Arrow(i, i + 1, "0.2", one, 0.35)]
        arrows += [Arrow(i, i, "p = 0.2", two, -0.4), Arrow(i, i + 1, "0.8", two, -0.35)]
    nodes = tuple(f"s{i + 1}" for i in range(n))
    return Figure("chain", "A chain", "States and arrows.", "It moves.", (Diagram("chain", nodes, tuple(arrows)),))


def hostile() -> Figure:
    """Text that would end elements, start templates or be taken for mathematics."""
    x = np.array([1.0, 2.0])
    panel = Panel(HOSTILE, HOSTILE, HOSTILE, (Curve(Key("word", HOSTILE), x, x, name=HOSTILE),))
    world = Diagram(HOSTILE, (HOSTILE,), (Arrow(0, 0, HOSTILE, Key("word", HOSTILE), 0.4),))
    return Figure("hostile", HOSTILE, HOSTILE, HOSTILE, (panel, world))
