"""Levels that were tried in worlds, half of which selected one while the others tested it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp.pictures.canvas import COLOURS, GREY, UNITS, Figure, finish, open_axes

FloatArray = npt.NDArray[np.float64]


class Candidates(NamedTuple):
    """Mean and worst tenth of each level, (n,), over the worlds that selected one and over those that tested it."""

    unit: str
    level: FloatArray
    mean: FloatArray
    worst_tenth: FloatArray
    test_mean: FloatArray
    test_worst_tenth: FloatArray


def draw_candidates(ax: Any, candidates: Candidates, *, chosen: int, title: str) -> Figure:
    """The value of each level over the worlds; `ax` as for `open_axes`.

    Levels stand side by side, the nominal policy first; `chosen` is the row of the selected one.
    """
    figure, (axes,) = open_axes(ax, [4.0])
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
    return figure
