"""Policies in other worlds: a point per world, with the mean and the mean of the worst tenth."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp.pictures.canvas import COLOURS, MARKERS, Columns, Figure, escape, finish, open_axes

_GOLDEN = 0.6180339887498949  # spreads points evenly, whatever their number


def draw_outcomes(ax: Any, outcomes: Columns, summary: Columns) -> Figure:
    """A line of points per policy, grouped by family of worlds; `ax` as for `open_axes`.

    Parameters
    ----------
    outcomes : columns policy, family and value, a row per world
    summary : columns policy, family, mean and worst_tenth, a row per policy and family
    """
    policies = list(dict.fromkeys(summary["policy"].tolist()))
    families = list(dict.fromkeys(summary["family"].tolist()))
    lines = len(families) * (len(policies) + 1)
    figure, (axes,) = open_axes(ax, [1.0 + 0.28 * lines], 7.2)
    ticks: dict[int, str] = {}
    for group, family in enumerate(families):
        top = group * (len(policies) + 1)
        axes.text(0.01, top, escape(family), transform=axes.get_yaxis_transform(), va="center", weight="bold")
        for rank, policy in enumerate(policies):
            place = top + 1 + rank
            _draw_line(axes, place, rank, _of(outcomes, policy, family), _of(summary, policy, family), place == 1)
            ticks[place] = escape(policy)
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.set_ylim(lines - 0.4, -0.6)
    finish(axes, xlabel="value at the start (in units of reward)")
    axes.grid(visible=False, axis="y")
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, fontsize="small", frameon=False)
    return figure


def _of(columns: Columns, policy: str, family: str) -> dict[str, npt.NDArray[Any]]:
    rows = (columns["policy"] == policy) & (columns["family"] == family)
    return {name: column[rows] for name, column in columns.items()}


def _draw_line(axes: Any, place: int, rank: int, worlds: Any, summary: Any, is_first: bool) -> None:
    """Points are spread across the line, so that equal values are seen as several."""
    values = worlds["value"]
    spread = 0.5 * ((_GOLDEN * np.arange(len(values))) % 1.0 - 0.5)
    look = {"color": COLOURS[rank % len(COLOURS)], "marker": MARKERS[rank % len(MARKERS)], "linestyle": "none"}
    text = {"world": "a world", "mean": "mean", "tenth": "mean of the worst tenth"} if is_first else {}
    axes.plot(values, place + spread, **look, markersize=3, alpha=0.45, mew=0, label=text.get("world"))
    axes.plot(summary["mean"], [place], "k|", markersize=15, mew=2.0, label=text.get("mean"))
    axes.plot(summary["worst_tenth"], [place], "k<", markersize=6, mfc="white", label=text.get("tenth"))
