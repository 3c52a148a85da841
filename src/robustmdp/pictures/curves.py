"""Cost and benefit of robustness over levels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp.pictures.canvas import COLOURS, GREY, UNITS, Figure, finish, open_axes, place_levels

FloatArray = npt.NDArray[np.float64]


class Levels(NamedTuple):
    """Values of the robust and the nominal policy, level by level, from the least to the most robust, (n,) each."""

    unit: str
    level: FloatArray
    nominal: FloatArray
    worst: FloatArray
    nominal_worst: FloatArray
    changed: npt.NDArray[np.int64]


def draw_curve(ax: Any, levels: Levels, *, best: float | None, knee: int) -> Figure:
    """Values over levels, and below in how many states the robust policy differs; `ax` as for `open_axes`.

    `best` is the value of the nominal policy if the model is right; `knee` is the row to mark, -1 for none.
    """
    figure, axes = open_axes(ax, [3.4, 1.5])
    size = 4.0 if len(levels.level) <= 60 else 2.0
    for number, axis in enumerate(axes):
        place = place_levels(axis, levels.level)
        if knee >= 0:
            axis.axvline(place[knee], color=GREY, linestyle=":", label=f"knee: {levels.level[knee]:.3g}")
        (_draw_values if number == 0 else _draw_changes)(axis, place, levels, size)
        if number == 0 and best is not None:
            axis.axhline(best, color=GREY, linewidth=1.0, label="nominal policy, if the model is right")
    axes[0].legend(loc="best", fontsize="small")
    axes[-1].set_xlabel(f"{UNITS.get(levels.unit, levels.unit)}, more robust to the right")
    if len(axes) > 1 and ax is None:
        axes[0].tick_params(labelbottom=False)
    return figure


def _draw_values(axis: Any, place: FloatArray, levels: Levels, size: float) -> None:
    right, worst, doubted = COLOURS[0], COLOURS[1], COLOURS[4]
    axis.plot(place, levels.nominal, "o-", color=right, markersize=size, label="robust policy, if the model is right")
    axis.plot(place, levels.worst, "s-", color=worst, markersize=size, label="robust policy, worst case")
    axis.plot(place, levels.nominal_worst, "^--", color=doubted, markersize=size, label="nominal policy, worst case")
    finish(axis, ylabel="value at the start\n(in units of reward)")


def _draw_changes(axis: Any, place: FloatArray, levels: Levels, size: float) -> None:
    axis.plot(place, levels.changed, "o-", color=COLOURS[0], markersize=size, drawstyle="steps-mid")
    axis.set_ylim(0, 1.1 * max(1, int(levels.changed.max(initial=0))))
    finish(axis, ylabel="states with\nanother action")
