"""A page with all that pages are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from robustmdp.app.page import page_html, write_page
from robustmdp.app.page.page import _environment

HOSTILE = "</script><script>alert('x')</script> <!-- & \" ' $5 $6 %{y}"
COUNT = 50
START = COUNT // 2
LEVELS = np.geomspace(0.02, 5.0, COUNT)
LABELS = [f"λ = {level:.3g}" for level in LEVELS]
PROGRAM = """import robustmdp as rm

lake = rm.MDP.from_gymnasium("FrozenLake8x8-v1", discount=0.99)
doubt = rm.Penalized(rm.KL(), weight=0.5)  # a comment that is long enough to be wider than the screen of a telephone
print(rm.solve(lake, doubt).value[0] < 1)
"""
TEMPLATE = """
{% import "blocks.html.j2" as page with context %}
{% call page.section("Text") %}
<p>{{ hostile }}</p>
{{ page.facts([("seeds", "30"), (hostile, hostile)]) }}
{{ page.table(("claim", "verdict", "number"), rows, "Claims", [1], "best", badges) }}
{% endcall %}
{% call page.section("Levels") %}
<div class="explorer" id="levels">
<div class="panels">{{ page.plot("values", figures["values"]) }}{{ page.plot("changes", figures.changes) }}</div>
{{ page.dial("weight", "Weight", frames, start) }}
<div class="frames">
{% for frame in frames %}
<div class="frame{% if loop.index0 == start %} current{% endif %}"
data-label="{{ frame.label }}" data-x="{{ frame.x }}">
{{ page.facts(frame.facts) }}{{ page.map(frame.map) }}{{ page.bars(frame.row) }}
</div>
{% endfor %}
</div></div>
{% endcall %}
{% call page.section(hostile) %}
{{ page.code(program) }}
{{ page.code("robustmdp solve chain --weight 1", "shell") }}
{% endcall %}
"""


def figure(title: str, names: tuple[str, ...], log: bool) -> Any:
    """Lines over the levels."""
    found = go.Figure()
    for number, name in enumerate(names):
        y = LEVELS / (LEVELS + 0.1 + number)
        found.add_scatter(x=LEVELS, y=y, name=name, mode="lines+markers", line={"color": f"#00{number}"})
    found.update_layout(title={"text": title}, meta={"scales": True})
    found.update_xaxes(title={"text": "weight λ"}, type="log" if log else "linear")
    found.update_yaxes(title={"text": "value"})
    return found


def figures() -> dict[str, Any]:
    """One on a logarithmic axis of x, one on a linear one."""
    return {
        "values": figure("Value", ("robust", "nominal", HOSTILE), log=True),
        "changes": figure("Changes", ("changed",), log=False),
    }


def frame(number: int) -> dict[str, Any]:
    """A level: facts, a map of a river, a row."""
    cells = [
        {"kind": "closed" if place == 2 else "s1", "mark": "", "action": "→", "value": "0.5", "detail": HOSTILE}
        for place in range(3)
    ]
    ramp = {"low": "0", "high": "1", "ramp": ["#fff", "#000"], "changed": True, "closed": True}
    return {
        "label": LABELS[number],
        "x": float(LEVELS[number]),
        "facts": [("number", str(number))] * (1 + number % 3),
        "map": {"title": HOSTILE, "columns": 3, "cells": cells, "text": HOSTILE, **ramp},
        "row": {"title": HOSTILE, "outcomes": [("ahead", 0.75, 0.5, 1.0), (HOSTILE, 0.25, 0.4999, None)]},
    }


def body() -> str:
    """All kinds of blocks."""
    rows = [(1, "holds", 0.123456), (2, "does not hold", 12), (3, HOSTILE, 1e-5)]
    template = _environment().overlay(autoescape=True).from_string(TEMPLATE)
    return str(
        template.render(
            hostile=HOSTILE,
            rows=rows,
            badges={"holds": "yes", "does not hold": "no"},
            figures=figures(),
            frames=[frame(number) for number in range(COUNT)],
            start=START,
            program=PROGRAM,
        )
    )


def html() -> str:
    """The whole page."""
    return page_html(HOSTILE, HOSTILE, body(), figures())


def written(path: Path) -> Path:
    """The same as a file."""
    return write_page(path, HOSTILE, "All kinds of content.", body(), figures())
