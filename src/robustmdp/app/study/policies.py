"""Policies: as maps, cells coloured by value with their actions as arrows, where states are places; else as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import FloatArray
from robustmdp.app.study.names import Names, alike, decimals, short
from robustmdp.app.study.study import Study
from robustmdp.operators.policy import probability_of_likeliest
from robustmdp.planning.continuation import Stage
from robustmdp.result import Solution

SHADES = 32
_MOST_STATES = 24  # of a table
_LARGEST_MAP = 2_500  # cells
_ARROWS = {"up": "↑", "down": "↓", "left": "←", "right": "→", "stay": "•"}
_LONGEST = 9  # letters of a word in a cell
_LISTED = 12  # actions and cells that the description names
_NUMBERED = 20  # columns up to which cells have room for numbers
_TELLING = 400  # cells up to which each says on hover what it is


def policies(study: Study, names: Names) -> dict[str, Any]:
    """Both policies; one map is enough where they are the same."""
    changed, nominal = set(study.changed.tolist()), study.nominal
    if names.layout is None or names.layout.n_states > _LARGEST_MAP:
        title = "Both policies, and the worst case of the robust one"
        return {"table": policy_table(study, names, study.robust, changed, title)}
    span = value_span(names, nominal.value)
    maps = [policy_map(names, nominal.policy, nominal.value, (), "Nominal policy, and its value", span)]
    if changed:
        title = f"Robust policy, and its value{random_text(study.robust)}"
        span = (min(span[0], value_span(names, study.under_model)[0]), span[1])
        maps.append(policy_map(names, study.robust.policy, study.under_model, changed, title, span))
    return {"maps": maps}


def policy_table(
    study: Study, names: Names, robust: Solution | Stage, changed: Collection[int], title: str
) -> dict[str, Any]:
    """Changed states first, where there is not room for all."""
    order = [*sorted(changed), *(s for s in range(study.mdp.n_states) if s not in changed)][:_MOST_STATES]
    shown = sorted(order)
    columns = ([names.choice(policy, s) for s in shown] for policy in (study.nominal.policy, robust.policy))
    more = "" if len(shown) == study.mdp.n_states else f" ({len(shown)} of {study.mdp.n_states:,} states)"
    return {
        "header": ("state", "nominal", "robust", "worst case"),
        "rows": list(zip(map(names.state, shown), *columns, alike(robust.value[shown]), strict=True)),
        "caption": f"{title}{more}{random_text(robust)}",
        "marked": [place for place, s in enumerate(shown) if s in changed],
        "mark": "another action, certainly better",
    }


def random_text(robust: Solution | Stage) -> str:
    """What a title says of a policy that is random."""
    text = "; the policy is random: a number beside the likeliest action is its probability"
    return text if probability_of_likeliest(robust.policy).min() < 1.0 else ""


def value_span(names: Names, *values: FloatArray) -> tuple[float, float]:
    """From the least to the greatest of values, (S,) each, but for closed states."""
    kept = [state for state in range(names.mdp.n_states) if not (names.layout and state in names.layout.closed)]
    shown = np.array(values)[:, kept] if kept else np.array(values)
    return float(shown.min()), float(shown.max())


def policy_map(
    names: Names,
    policy: npt.NDArray[Any],
    value: FloatArray,
    changed: Collection[int],
    title: str,
    span: tuple[float, float],
) -> dict[str, Any]:
    """What the page draws: cells row by row, the ends of the scale, and the same in words."""
    layout, (low, high) = names.layout, span
    assert layout is not None
    digits = min(max(decimals(high - low, 2), 0), 6)
    actions = {state: names.choice(policy, state) for state in range(layout.n_states) if state not in layout.closed}
    cells = []
    for state, worth in enumerate(value.tolist()):
        kind, number, detail = "closed", "", names.state(state)
        if state in actions:
            share = (worth - low) / (high - low) if high > low else 0.5
            shade = f"s{round((SHADES - 1) * min(max(share, 0.0), 1.0))}"
            kind = f"{shade} changed" if state in changed else shade
            number = f"{round(worth, digits) + 0.0:.{digits}f}" if layout.columns <= _NUMBERED else ""
            detail = f"{detail}: {actions[state]}, {short(worth)}"
        action = actions.get(state, "")
        arrow = _ARROWS.get(action, action if len(action) <= _LONGEST else f"{action[: _LONGEST - 1]}…")
        detail = detail if layout.n_states <= _TELLING else ""
        cells.append({"kind": kind, "mark": layout.mark(state), "action": arrow, "value": number, "detail": detail})
    return {
        "title": title,
        "columns": layout.columns,
        "cells": cells,
        "low": short(low, 3),
        "high": short(high, 3),
        "ramp": [shade for shade, _ in shades()[::4]],
        "changed": bool(changed),
        "closed": bool(layout.closed),
        "text": _describe_map(names, title, actions, changed, span),
    }


def _describe_map(
    names: Names, title: str, actions: dict[int, str], changed: Collection[int], span: tuple[float, float]
) -> str:
    """What the map shows, in a few sentences however large it is."""
    common = Counter(actions.values()).most_common(_LISTED)
    sentences = [
        f"{title}: {len(actions):,} states, values from {short(span[0])} to {short(span[1])}",
        "Actions: " + ", ".join(f"{action} ({count})" for action, count in common),
    ]
    if changed:
        listed = [names.state(state) for state in sorted(changed)]
        more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
        sentences.append("Changed: " + "; ".join(listed[:_LISTED]) + more)
    return ". ".join(sentences) + "."


@cache
def shades() -> list[tuple[str, str]]:
    """Colours from the least to the greatest value, pale to dark, each with the ink that is easier to read on it."""
    from plotly.colors import sample_colorscale, unlabel_rgb

    found = []
    for colour in sample_colorscale("YlGnBu", SHADES):
        rgb = np.array(unlabel_rgb(colour))
        luminance = float((rgb / 255.0) ** 2.2 @ (0.2126, 0.7152, 0.0722))
        found.append(("#" + bytes(rgb.round().astype(np.uint8)).hex(), "#000" if luminance > 0.179 else "#fff"))
    return found
