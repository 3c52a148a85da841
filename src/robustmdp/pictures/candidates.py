"""Levels that were tried in worlds, half of which selected one while the others tested it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp.pictures.canvas import COLOURS, GREY, UNITS, Figure, escape, finish, open_axes

FloatArray = npt.NDArray[np.float64]


class Candidates(NamedTuple):
    """Mean and worst tenth of each level, (n,), over the worlds that selected one and over those that tested it."""

    unit: str
    level: FloatArray
    mean: FloatArray
    worst_tenth: FloatArray
    test_mean: FloatArray
    test_worst_tenth: FloatArray


class Gains(NamedTuple):
    """Paired gains of policies on the nominal one in the worlds that tested, (n,), with intervals."""

    policy: npt.NDArray[np.str_]
    gain: FloatArray
    gain_low: FloatArray
    gain_high: FloatArray
    tail_gain: FloatArray
    tail_gain_low: FloatArray
    tail_gain_high: FloatArray


def draw_candidates(
    ax: Any, candidates: Candidates, gains: Gains, *, chosen: int, title: str, intervals: str
) -> Figure:
    """The value of each level over the worlds, and below the gains; `ax` as for `open_axes`.

    Levels stand side by side, the nominal policy first; `chosen` is the row of the selected one.
    """
    figure, all_axes = open_axes(ax, [4.0, 1.0 + 0.4 * len(gains.policy)])
    axes = all_axes[0]
    texts = ["nominal", *(f"{level:.3g}" for level in candidates.level[1:])]
    place = np.arange(len(texts))
    axes.axvspan(chosen - 0.4, chosen + 0.4, color="#e6e6e6", label=f"selected: {texts[chosen]}")
    for name, selecting, testing, colour, marker in (
        ("mean", candidates.mean, candidates.test_mean, COLOURS[0], "o"),
        ("worst tenth", candidates.worst_tenth, candidates.test_worst_tenth, COLOURS[1], "s"),
    ):
        axes.plot(place, selecting, f"{marker}-", color=colour, label=f"{name}, worlds that selected")
        axes.plot(place, testing, f"{marker}:", color=colour, mfc="white", label=f"{name}, worlds that tested")
        axes.axhline(testing[0], color=GREY, linewidth=0.8)
    axes.set_xticks(place, texts, rotation=40, ha="right", rotation_mode="anchor")
    finish(
        axes,
        xlabel=f"{UNITS.get(candidates.unit, candidates.unit)}, more robust to the right",
        ylabel="value at the start\n(in units of reward)",
    )
    axes.set_title(title, fontsize="medium", loc="left")
    axes.legend(loc="best", fontsize="small")
    if len(all_axes) > 1:
        _draw_gains(all_axes[1], gains, intervals)
    return figure


def _draw_gains(axes: Any, gains: Gains, intervals: str) -> None:
    """Policies from top to bottom; an interval that lies right of 0 is a certain gain."""
    place = np.arange(len(gains.policy))
    for name, (middle, low, high), shift, marker, colour in (
        ("mean", gains[1:4], -0.12, "o", COLOURS[0]),
        ("worst tenth", gains[4:7], 0.12, "s", COLOURS[1]),
    ):
        reach = np.abs([middle - low, high - middle])
        axes.errorbar(middle, place + shift, xerr=reach, fmt=marker, color=colour, capsize=4, label=name)
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    axes.set_yticks(place, [escape(name) for name in gains.policy])
    axes.set_ylim(len(place) - 0.5, -0.5)
    finish(axes, xlabel=f"gain on the nominal policy in the worlds that tested, {intervals}\n(in units of reward)")
    axes.legend(loc="best", fontsize="small")
