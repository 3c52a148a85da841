"""Cost and benefit of robustness over levels."""

from __future__ import annotations

from typing import Any

from robustmdp.pictures.canvas import COLOURS, GREY, UNITS, Columns, Figure, finish, open_axes, place_levels

_LINES = (
    ("nominal", "o-", COLOURS[0], "robust policy, if the model is right"),
    ("worst", "s-", COLOURS[1], "robust policy, worst case"),
    ("nominal_worst", "^--", COLOURS[4], "nominal policy, worst case"),
)


def draw_curve(ax: Any, unit: str, curve: Columns, *, best: float | None, knee: int) -> Figure:
    """Values over levels, and below in how many states the robust policy differs; `ax` as for `open_axes`.

    Parameters
    ----------
    curve : columns of the unit's name, nominal, worst, nominal_worst and changed, from the least to the most robust
    best : the value of the nominal policy if the model is right
    knee : the row to mark, -1 for none
    """
    figure, axes = open_axes(ax, [3.4, 1.5])
    levels, size = curve[unit], 4.0 if len(curve[unit]) <= 60 else 2.0
    for number, axis in enumerate(axes):
        place = place_levels(axis, levels)
        if knee >= 0:
            axis.axvline(place[knee], color=GREY, linestyle=":", label=f"knee: {levels[knee]:.3g}")
        if number > 0:
            axis.plot(place, curve["changed"], "o-", color=COLOURS[0], markersize=size, drawstyle="steps-mid")
            axis.set_ylim(0, 1.1 * max(1, int(curve["changed"].max(initial=0))))
            finish(axis, ylabel="states with\nanother action")
            continue
        for column, look, colour, text in _LINES:
            axis.plot(place, curve[column], look, color=colour, markersize=size, label=text)
        finish(axis, ylabel="value at the start\n(in units of reward)")
        if best is not None:
            axis.axhline(best, color=GREY, linewidth=1.0, label="nominal policy, if the model is right")
    axes[0].legend(loc="best", fontsize="small")
    axes[-1].set_xlabel(f"{UNITS.get(unit, unit)}, more robust to the right")
    if len(axes) > 1 and ax is None:
        axes[0].tick_params(labelbottom=False)
    return figure
