"""A policy state by state: what it is worth, between which bounds, and what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp.pictures.canvas import (
    COLOURS,
    MARKERS,
    Figure,
    escape,
    finish,
    label_numbers,
    label_powers,
    open_axes,
    widen,
)

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_APART = 60  # states whose points and bars can be told apart
_SMALL = 500  # states whose squares can be told apart
_MOST = 20_000  # states that are drawn one by one
_BINS = 500  # into which more of them are gathered


class Values(NamedTuple):
    """What each state is worth, (S,) each, and what the axes say of it.

    `bounds_text` is the legend's word for the bounds; infinite ones are not drawn.
    """

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    names: Sequence[str] | None
    label: str
    bounds_text: str
    title: str


class Choices(NamedTuple):
    """What is done: entry i takes an action in a state with a probability, or `stages` (T, S) where steps differ."""

    state: IntArray
    action: IntArray
    probability: FloatArray
    names: Sequence[str] | None
    n_actions: int
    stages: IntArray | None = None


class Progress(NamedTuple):
    """What is left to learn after so many samples."""

    samples: IntArray
    error: FloatArray
    label: str


def draw_solution(ax: Any, values: Values, choices: Choices, progress: Progress | None = None) -> Figure:
    """Values above the policy and, of a learner, what was left to learn; `ax` as for `open_axes`."""
    rows = min(choices.n_actions, 8) if choices.stages is None else 6
    width = (6.4 if len(values.value) <= _APART else 9.0) + (choices.stages is not None)  # a scale of colours beside
    figure, axes = open_axes(ax, [3.0, 1.0 + 0.2 * rows, *([2.2] if progress else [])], width)
    _draw_values(axes[0], values)
    if len(axes) > 1:
        _draw_choices(axes[1], choices, values)
        if ax is None:
            axes[0].tick_params(labelbottom=False)
            axes[0].set_xlabel("")
    if progress is not None and len(axes) > 2:
        _draw_progress(axes[2], progress)
    return figure


def _draw_values(axes: Any, values: Values) -> None:
    place, name = np.arange(len(values.value)), values.label.partition("\n")[0]
    lower, upper = (np.where(np.isfinite(bound), bound, np.nan) for bound in (values.lower, values.upper))
    if np.isfinite(lower + upper).any():
        if len(place) <= _APART:
            middle, reach = 0.5 * (lower + upper), 0.5 * (upper - lower)
            axes.errorbar(place, middle, reach, fmt="none", color=COLOURS[1], capsize=4, label=values.bounds_text)
        else:
            _fill(axes, lower, upper, COLOURS[1], values.bounds_text)
    if len(place) <= _MOST:
        axes.plot(place, values.value, **_point(len(place)), color=COLOURS[0], label=name)
    else:
        _fill(axes, values.value, values.value, COLOURS[0], name)
    label_numbers(axes.xaxis, values.names, len(place), "state")
    _set_limits(axes, len(place))
    widen(axes)
    finish(axes, ylabel=values.label)
    axes.set_title(escape(values.title), fontsize="medium", loc="left")
    axes.legend(loc="best", fontsize="small")


def _fill(axes: Any, low: FloatArray, high: FloatArray, colour: str, text: str) -> None:
    """What lies between low and high, of each state or, where they are very many, of each bin."""
    place = np.arange(float(len(low)))
    if len(low) > _MOST:
        starts, text = _bin_starts(len(low)), f"{text}, lowest to highest nearby"
        place = 0.5 * (starts + np.append(starts[1:], len(low)) - 1)
        low, high = np.fmin.reduceat(low, starts), np.fmax.reduceat(high, starts)
    axes.fill_between(place, low, high, step="mid", color=colour, alpha=0.4, lw=0, label=text)


def _bin_starts(n_states: int) -> IntArray:
    return np.linspace(0, n_states, _BINS, endpoint=False).astype(np.int64)


def _point(count: int) -> dict[str, Any]:
    size = 5.0 if count <= _APART else 3.0 if count <= _SMALL else 1.5
    return {"linestyle": "none", "marker": "o", "markersize": size, "rasterized": count > _SMALL}


def _set_limits(axes: Any, n_states: int) -> None:
    axes.set_xlim(-0.5 - 0.01 * n_states, n_states - 0.5 + 0.01 * n_states)


def _draw_choices(axes: Any, choices: Choices, values: Values) -> None:
    n_states = len(values.value)
    label_numbers(axes.xaxis, values.names, n_states, "state")
    if choices.stages is not None:
        _draw_stages(axes, choices, choices.stages)
        return
    if n_states <= _SMALL:
        side = np.clip(260.0 / n_states, 1.5, 9.0)  # points
        look = {"marker": "s", "color": COLOURS[0], "linewidths": 0}
        axes.scatter(choices.state, choices.action, s=side**2 * choices.probability, **look)
        note = "\n(area: its probability)" if (choices.probability < 0.995).any() else ""
    else:
        _draw_shares(axes, choices, n_states)
        note = "\n(dark: most states)"
    label_numbers(axes.yaxis, choices.names, choices.n_actions, "action")
    axes.set_ylim(-0.6, choices.n_actions - 0.4)
    axes.yaxis.set_inverted(choices.names is not None)  # names are read from the top, numbers rise
    _set_limits(axes, n_states)
    finish(axes, ylabel=f"action{note}")


def _draw_shares(axes: Any, choices: Choices, n_states: int) -> None:
    """How many of the states of a bin take an action, in shades of grey."""
    starts = _bin_starts(n_states)
    share = np.zeros((choices.n_actions, len(starts)))
    np.add.at(share, (choices.action, np.searchsorted(starts, choices.state, side="right") - 1), choices.probability)
    share /= np.diff(np.append(starts, n_states))
    extent = (-0.5, n_states - 0.5, -0.5, choices.n_actions - 0.5)
    axes.imshow(share, cmap="Greys", vmin=0.0, vmax=1.0, origin="lower", extent=extent, aspect="auto")


def _draw_stages(axes: Any, choices: Choices, stages: IntArray) -> None:
    """Steps from top to bottom; colours from dark to light, so that a grey print keeps the order of the actions."""
    from matplotlib import colormaps
    from matplotlib.colors import BoundaryNorm

    edges = np.arange(choices.n_actions + 1) - 0.5
    norm = BoundaryNorm(edges, 256)
    image = axes.imshow(stages, aspect="auto", interpolation="nearest", cmap=colormaps["cividis"], norm=norm)
    bar = axes.figure.colorbar(image, ax=axes, ticks=np.arange(choices.n_actions)[:: 1 + choices.n_actions // 12])
    if choices.names is not None:
        bar.set_ticklabels([escape(choices.names[int(tick)]) for tick in bar.get_ticks()])
    bar.set_label("action")
    label_numbers(axes.yaxis, None, len(stages), "step")
    axes.set_ylabel("step")


def _draw_progress(axes: Any, progress: Progress) -> None:
    known = np.isfinite(progress.error) & (progress.error > 0) & (progress.samples > 0)
    samples, error = progress.samples[known], progress.error[known]
    axes.plot(samples, error, color=COLOURS[0], marker=MARKERS[0], markersize=3)
    if known.any():
        axes.set(xscale="log", yscale="log")
        label_powers(axes.xaxis, samples)
        label_powers(axes.yaxis, error)
    finish(axes, xlabel="samples (transitions drawn)", ylabel=progress.label)
