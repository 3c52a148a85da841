"""Figures like those of experiments, small."""

from __future__ import annotations

import numpy as np

from robustmdp.app.page import (
    Arrow,
    Cell,
    Code,
    Curve,
    DataTable,
    Diagram,
    Distribution,
    Figure,
    Frame,
    Grid,
    Key,
    Listing,
    Node,
    Panel,
    Paragraph,
    Section,
    Slider,
)

WEIGHTS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0)
HOSTILE = "</script><script>alert('x')</script> <!-- & \" ' $5 $6 %{y}"
LAKE = ("SFFFFFFF", "FFFFFFFF", "FFFHFFFF", "FFFFFHFF", "FFFHFFFF", "FHHFFFHF", "FHFFHFHF", "FFFHFFFG")
PROGRAM = """import robustmdp as rm

lake = rm.MDP.from_gymnasium("FrozenLake8x8-v1", discount=0.99)
doubt = rm.Penalized(rm.KL(), weight=0.5)  # a comment that is long enough to be wider than the screen of a telephone
print(rm.solve(lake, doubt).value[0])
"""


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
    nodes = tuple(Node(f"s{i + 1}", float(i), 0.0, "pays 1") for i in range(n))
    return Figure("chain", "A chain", "States and arrows.", "It moves.", (Diagram("chain", nodes, tuple(arrows)),))


def hostile() -> Figure:
    """Text that would end elements, start templates or be taken for mathematics."""
    x = np.array([1.0, 2.0])
    panel = Panel(HOSTILE, HOSTILE, HOSTILE, (Curve(Key("word", HOSTILE), x, x, name=HOSTILE),))
    nodes = (Node(HOSTILE, 0.0, 0.0, HOSTILE),)
    world = Diagram(HOSTILE, nodes, (Arrow(0, 0, HOSTILE, Key("word", HOSTILE), 0.4),))
    return Figure("hostile", HOSTILE, HOSTILE, HOSTILE, (panel, world))


def awkward() -> Figure:
    """Nothing, gaps, and numbers without a logarithm."""
    x = np.array([-1.0, 0.0, 1.0])
    series = ([np.nan] * 3, [0.0, -1.0, -2.0], [np.inf, np.nan, 1e-300])
    curves = [Curve(Key("λ", k + 1.0), x, np.array(y), np.array(y), np.array(y)) for k, y in enumerate(series)]
    curves.append(Curve(Key("λ", 10.0), np.empty(0), np.empty(0)))
    panels = tuple(Panel(f"curve {k}", "x", "y", (curve,), inset=(-1.0, 1.0)) for k, curve in enumerate(curves))
    return Figure("awkward", "Awkward numbers", "", "", panels)


def sections() -> list[Section]:
    """A page with everything on it."""
    verdicts = ("holds", "does not hold", "within noise")
    rows = tuple(
        (k + 1, f"A statement that is rather long, number {k}. " * 3, v, 0.123456) for k, v in enumerate(verdicts)
    )
    table = DataTable(("claim", "statement", "verdict", "number"), rows, "Claims", verdict_columns=(2,))
    settings = Listing((("seeds", "30"), (HOSTILE, HOSTILE)))
    return [
        Section("Settings", (Paragraph(HOSTILE), settings, table)),
        Section("Figures", (chain(), learning(), styles(), hostile())),
        Section("Figures", ()),
    ]


def lake(weight: float) -> Grid:
    """Eight by eight: worth more near the goal and for large weights; near holes the action changes with the weight."""
    cells = []
    for row, line in enumerate(LAKE):
        for column, mark in enumerate(line):
            near = any(
                LAKE[r][c] == "H" for r in range(row, min(row + 2, 8)) for c in range(column, min(column + 2, 8))
            )
            cautious = near and weight < 0.1 * (1 + row + column)
            arrow = "left" if cautious and column % 2 else "up" if cautious else "right" if row > column else "down"
            value = float(np.exp(-(14 - row - column) / (4 + 10 * weight) - 0.05 / weight))
            mark = mark if mark != "F" else ""
            ends = mark in ("H", "G")
            cells.append(Cell(row, column, mark, "" if ends else arrow, None if ends else value, cautious and not ends))
    caption = "Arrows are actions of the robust policy."
    return Grid("The lake, solved robustly", 8, 8, tuple(cells), caption, low=0.0, high=1.0)


def pair(name: str, weight: float, successors: int = 3) -> Distribution:
    """Equal chances under the model; the worst case leans to small values."""
    values = np.linspace(0.1, 0.9, successors)
    worst = np.exp(-values / weight)
    rows = zip(
        [f"s{i}" for i in range(successors)], [1 / successors] * successors, worst / worst.sum(), values, strict=True
    )
    return Distribution(name, tuple((n, float(p), float(q), float(v)) for n, p, q, v in rows))


def frame(weight: float) -> Frame:
    grid = lake(weight)
    changed = sum(cell.changed for cell in grid.cells)
    rows = tuple((f"s{i}", 0.1 * i, 0.1 * i * weight, "right") for i in range(4))
    table = DataTable(("state", "nominal", "robust", "action"), rows, "States", marked_rows=(1,) if changed else ())
    pairs = (pair("From s21, going right", weight), pair("From s5, going down", weight, 5))
    return Frame(
        f"λ = {weight:.3g}", (Paragraph(f"The action changes in {changed} cells."), grid, *pairs, table), weight
    )


def weights_slider(count: int = 50, name: str = "weights") -> Slider:
    """A slider over weights, with two panels above it: one on a logarithmic axis of x and one on a linear one."""
    x = np.geomspace(0.02, 5.0, count)
    values = [Curve(Key("policy", word), x, x / (x + shift)) for word, shift in (("robust", 0.2), ("nominal", 0.5))]
    cost = Curve(Key("policy", "robust"), x, 0.1 / (1 + x), style="line+points")
    panels = (
        Panel("Worst case", "weight λ", "value", tuple(values), x_scale="log"),
        Panel("Price of robustness", "weight λ", "loss", (cost,)),
    )
    figure = Figure(f"{name}-curve", "Value against weight", "Lines show where the slider stands.", "", panels)
    return Slider(
        name,
        "How much do you trust the model?",
        "Weight λ of nature's penalty",
        tuple(frame(float(weight)) for weight in x),
        count // 2,
        figure,
        "Small weights mean little trust.",
        "Robust values rise with the weight.",
    )


def hostile_slider() -> Slider:
    """Text that would end elements, wherever a slider and its blocks hold text."""
    cell = Cell(0, 0, HOSTILE, HOSTILE, 0.5, True, HOSTILE)
    grid = Grid(HOSTILE, 1, 2, (cell, Cell(0, 1, HOSTILE)), HOSTILE)
    table = DataTable((HOSTILE,), ((HOSTILE,),), HOSTILE, marked_rows=(0,), mark=HOSTILE)
    outcomes = Distribution(HOSTILE, ((HOSTILE, 0.5, 1.0, 1.0),))
    frames = (Frame(HOSTILE, (Paragraph(HOSTILE), grid, outcomes, table, Code(HOSTILE, HOSTILE)), 1.0),)
    return Slider(HOSTILE, HOSTILE, HOSTILE, frames, 0, hostile(), HOSTILE, HOSTILE)


def own_problem(count: int = 50) -> list[Section]:
    """A page on a problem of one's own: a slider with figure, grids, distributions and tables; and code."""
    river = tuple(Cell(0, i, "S" if i == 0 else "", "swim" if i else "rest", i / 5.0) for i in range(6))
    return [
        Section("Summary", (Paragraph("Trusting the model costs more than doubting it."), lake(5.0), lake(0.05))),
        Section("How much robustness", (weights_slider(count),)),
        Section("A river", (Grid("River swim", 1, 6, river), pair("Upstream", 0.3, 20))),
        Section("Run it again", (Code(PROGRAM), Code("robustmdp solve chain --weight 1", "shell"))),
    ]
