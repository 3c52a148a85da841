"""A policy as a map: states as cells of a grid, coloured by value, with their actions as arrows."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import FloatArray
from robustmdp.app.study.names import Names
from robustmdp.app.study.numbers import decimals, short

SHADES = 32
_ARROWS = {"up": "↑", "down": "↓", "left": "←", "right": "→", "stay": "•"}
_LONGEST = 9  # letters of a word in a cell
_LISTED = 12  # actions and cells that the description names
_NUMBERED = 20  # columns up to which cells have room for numbers
_TELLING = 400  # cells up to which each says on hover what it is


def policy_map(
    names: Names,
    policy: npt.NDArray[Any],
    value: FloatArray,
    changed: set[int],
    title: str,
    *,
    span: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """What the page draws: cells row by row, the ends of the scale, and the same in words."""
    layout = names.layout
    assert layout is not None
    open_states = [state for state in range(layout.n_states) if state not in layout.closed]
    low, high = span or _span(value[open_states])
    digits = min(max(decimals(high - low, 2), 0), 6)
    actions = {state: names.choice(policy, state) for state in open_states}
    cells = []
    for state in range(layout.n_states):
        number = f"{value[state] + 0.0:.{digits}f}" if state in actions and layout.columns <= _NUMBERED else ""
        kind = _kind(value[state], low, high, changed=state in changed) if state in actions else "closed"
        detail = _detail(names, state, actions.get(state), value[state]) if layout.n_states <= _TELLING else ""
        action = _glyph(actions.get(state, ""))
        cells.append({"kind": kind, "mark": layout.mark(state), "action": action, "value": number, "detail": detail})
    return {
        "title": title,
        "columns": layout.columns,
        "cells": cells,
        "low": short(low, 3),
        "high": short(high, 3),
        "ramp": [shade for shade, _ in shades()[::4]],
        "changed": bool(changed),
        "closed": bool(layout.closed),
        "text": _text(names, title, actions, changed, low, high),
    }


@cache
def shades() -> list[tuple[str, str]]:
    """Colours from the least to the greatest value, pale to dark, each with the ink that is easier to read on it."""
    from plotly.colors import sample_colorscale, unlabel_rgb

    found = []
    for colour in sample_colorscale("YlGnBu", SHADES):
        rgb = np.array(unlabel_rgb(colour)) / 255.0
        luminance = float(rgb**2.2 @ (0.2126, 0.7152, 0.0722))
        found.append(
            ("#" + "".join(f"{round(255 * part):02x}" for part in rgb), "#000" if luminance > 0.179 else "#fff")
        )
    return found


def _span(values: FloatArray) -> tuple[float, float]:
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)


def _kind(value: float, low: float, high: float, *, changed: bool) -> str:
    """The classes of a cell: its shade, and whether its action is another one."""
    share = (value - low) / (high - low) if high > low else 0.5
    shade = round((SHADES - 1) * min(max(share, 0.0), 1.0))
    return f"s{shade} changed" if changed else f"s{shade}"


def _glyph(action: str) -> str:
    return _ARROWS.get(action, action if len(action) <= _LONGEST else f"{action[: _LONGEST - 1]}…")


def _detail(names: Names, state: int, action: str | None, value: float) -> str:
    return names.state(state) if action is None else f"{names.state(state)}: {action}, {short(float(value))}"


def _text(names: Names, title: str, actions: dict[int, str], changed: set[int], low: float, high: float) -> str:
    """What the map shows, in a few sentences however large it is."""
    common = Counter(actions.values()).most_common(_LISTED)
    sentences = [
        f"{title}: {len(actions):,} states, values from {short(low)} to {short(high)}",
        "Actions: " + ", ".join(f"{action} ({count})" for action, count in common),
    ]
    if changed:
        listed = [names.state(state) for state in sorted(changed)]
        more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
        sentences.append("Changed: " + "; ".join(listed[:_LISTED]) + more)
    return ". ".join(sentences) + "."
