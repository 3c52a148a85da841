"""The figure and its axes, colours that colour-blind readers and printers tell apart, and labels that fit."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks

try:
    from matplotlib.backends import BackendFilter, backend_registry
    from matplotlib.figure import Figure as Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
except ImportError:
    raise ImportError("matplotlib must be installed for plot(): pip install 'robustmdp[plot]'") from None

FloatArray = npt.NDArray[np.float64]
Columns = Mapping[str, npt.NDArray[Any]]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00")  # Okabe and Ito
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#666666"
UNITS = {
    "weight": "price of a deviation (weight)",
    "radius": "distance from the model (radius)",
    "share": "share of the radii",
}

_MOST_TICKS = 24  # names that fit side by side
_FEW_TICKS = 8  # of states that are too many to be named each
_LONGEST = 18  # characters of a name
_PER_INCH = 12.5  # characters side by side
_TILTED = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}


class Picture(Figure):
    """A figure that notebooks show as it is."""

    def _repr_png_(self) -> bytes:
        with io.BytesIO() as buffer:
            self.savefig(buffer, format="png", dpi=96)
            return buffer.getvalue()


def open_axes(ax: Any, heights: Sequence[float], width: float = 6.4) -> tuple[Figure, list[Any]]:
    """The figure, and an axes for each drawing that there is room for.

    Parameters
    ----------
    ax : None for a new figure with all drawings one below the other, an axes for the first drawing, or a list of them
    heights : of the drawings, in inches
    """
    if ax is None:
        figure = _new_figure(figsize=(width, sum(heights) + 0.3), layout="constrained")
        axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
        return figure, list(axes)
    given = np.ravel(np.asarray(ax, dtype=object)).tolist()
    _checks.must(
        1 <= len(given) <= len(heights), f"ax must be an axes or a list of at most {len(heights)}: got {len(given)}"
    )
    for one in given:
        if not hasattr(one, "figure"):
            raise TypeError(f"ax must be a matplotlib axes or a list of them: got {type(one).__name__}")
    return given[0].figure, given


def _new_figure(**settings: Any) -> Figure:
    """Known to pyplot where that can open a window; elsewhere alone, so that nothing shows it twice or keeps it."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        windows = backend_registry.list_builtin(BackendFilter.INTERACTIVE)
        if pyplot.get_backend().lower() in windows:
            figure: Figure = pyplot.figure(FigureClass=Picture, **settings)
            return figure
    return Picture(**settings)


def escape(text: Any) -> str:
    r"""Text that matplotlib takes literally.

    >>> escape("a price of $5")
    'a price of \\$5'
    """
    return str(text).replace("$", r"\$")


def shorten(name: Any) -> str:
    """The beginning of a long name."""
    text = str(name)
    return escape(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


def label_numbers(axis: Any, names: Sequence[str] | None, count: int, what: str) -> None:
    """Ticks for the numbers 0..count-1: their names, some of their names, or some of the numbers."""
    if names is None:
        axis.set_major_locator(MaxNLocator(_FEW_TICKS, integer=True, min_n_ticks=1))
        axis.set_label_text(f"{what} (number)")
        return
    places = np.arange(count) if count <= _MOST_TICKS else np.linspace(0, count - 1, _FEW_TICKS).round().astype(int)
    texts = [shorten(names[place]) for place in places]
    room = _PER_INCH * axis.axes.bbox.width / axis.axes.figure.dpi
    is_tight = axis.axis_name == "x" and sum(len(text) + 1 for text in texts) > room
    axis.set_ticks(places, texts, **(_TILTED if is_tight else {}))
    axis.set_label_text(what if len(places) == count else f"{what} ({len(places)} of {count:,} names)")


def place_levels(axes: Any, levels: npt.NDArray[Any]) -> FloatArray:
    """Where levels stand on the x axis: to scale, or side by side where 0 or infinity is among them."""
    numbers = np.asarray(levels, dtype=np.float64)
    if not len(numbers) or not np.isfinite(numbers).all() or (numbers <= 0).any():
        places = np.arange(float(len(numbers)))
        shown = np.linspace(0, len(numbers) - 1, min(len(numbers), _FEW_TICKS)).round().astype(int)
        axes.set_xticks(places[shown], [f"{numbers[place]:.3g}" for place in shown])
        return places
    if numbers.max() > 10 * numbers.min():
        axes.set_xscale("log")
        label_powers(axes.xaxis, numbers)
    if numbers[0] > numbers[-1]:
        axes.xaxis.set_inverted(True)
    return numbers


def label_powers(axis: Any, numbers: npt.NDArray[Any]) -> None:
    """Ticks of a logarithmic axis: over less than two decades, powers of ten alone say too little."""
    is_short = numbers.max() < 100 * numbers.min()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if is_short else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 100 else f"{value:.3g}"))
    axis.set_minor_formatter(NullFormatter())


def widen(axes: Any) -> None:
    """Leave values that differ by less than a thousandth, such as those that only errors tell apart, on one height."""
    low, high = axes.get_ylim()
    missing = 1e-3 * max(abs(low), abs(high)) - (high - low)
    if missing > 0:
        axes.set_ylim(low - 0.5 * missing, high + 0.5 * missing)
    axes.ticklabel_format(axis="y", useOffset=False)


def finish(axes: Any, **labels: str) -> None:
    """Labels, a light grid behind the data and no frame above."""
    axes.set(**labels)
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
