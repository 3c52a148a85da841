"""Levels that were tried in worlds, half of which selected one while the others tested it."""

from __future__ import annotations

from typing import Any

import numpy as np

from robustmdp.pictures.canvas import COLOURS, GREY, UNITS, Columns, Figure, escape, finish, open_axes


def draw_candidates(ax: Any, unit: str, candidates: Columns, gains: Columns, *, title: str, intervals: str) -> Figure:
    """The value of each level over the worlds, and below the gains; `ax` as for `open_axes`.

    Levels stand side by side, the nominal policy first.

    Parameters
    ----------
    candidates : columns of the unit's name, mean, worst_tenth, test_mean, test_worst_tenth and chosen, a row per level
    gains : columns policy, gain, tail_gain and the ends of their intervals, _low and _high, a row per policy
    """
    figure, all_axes = open_axes(ax, [4.0, 1.0 + 0.4 * len(gains["policy"])])
    axes, chosen = all_axes[0], int(np.argmax(candidates["chosen"]))
    texts = ["nominal", *(f"{level:.3g}" for level in candidates[unit][1:])]
    place = np.arange(len(texts))
    axes.axvspan(chosen - 0.4, chosen + 0.4, color="#e6e6e6", label=f"selected: {texts[chosen]}")
    for name, column, colour, marker in (
        ("mean", "mean", COLOURS[0], "o"),
        ("worst tenth", "worst_tenth", COLOURS[1], "s"),
    ):
        selecting, testing = candidates[column], candidates[f"test_{column}"]
        axes.plot(place, selecting, f"{marker}-", color=colour, label=f"{name}, worlds that selected")
        axes.plot(place, testing, f"{marker}:", color=colour, mfc="white", label=f"{name}, worlds that tested")
        axes.axhline(testing[0], color=GREY, linewidth=0.8)
    axes.set_xticks(place, texts, rotation=40, ha="right", rotation_mode="anchor")
    finish(
        axes,
        xlabel=f"{UNITS.get(unit, unit)}, more robust to the right",
        ylabel="value at the start\n(in units of reward)",
    )
    axes.set_title(title, fontsize="medium", loc="left")
    axes.legend(loc="best", fontsize="small")
    if len(all_axes) > 1:
        _draw_gains(all_axes[1], gains, intervals)
    return figure


def _draw_gains(axes: Any, gains: Columns, intervals: str) -> None:
    """Policies from top to bottom; an interval that lies right of 0 is a certain gain."""
    place = np.arange(len(gains["policy"]))
    for name, column, shift, marker, colour in (
        ("mean", "gain", -0.12, "o", COLOURS[0]),
        ("worst tenth", "tail_gain", 0.12, "s", COLOURS[1]),
    ):
        middle, low, high = (gains[f"{column}{end}"] for end in ("", "_low", "_high"))
        reach = np.abs([middle - low, high - middle])
        axes.errorbar(middle, place + shift, xerr=reach, fmt=marker, color=colour, capsize=4, label=name)
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    axes.set_yticks(place, [escape(name) for name in gains["policy"]])
    axes.set_ylim(len(place) - 0.5, -0.5)
    finish(axes, xlabel=f"gain on the nominal policy in the worlds that tested, {intervals}\n(in units of reward)")
    axes.legend(loc="best", fontsize="small")
