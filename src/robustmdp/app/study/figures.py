"""The figures of a report, built with plotly."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.app.study.study import Study, Sweep
from robustmdp.table import Table

WORST_CASE = "worst case, "  # how names of families begin whose worlds answer to the policy


def figures_of(study: Study, unit: str = "") -> dict[str, Any]:
    """Plotly figures by name: gains over the nominal policy, curves, policy changes, and values in other worlds."""
    of_unit = f", {unit}" if unit else ""
    value, comparison, found = f"value from the start{of_unit}", study.suggestion.comparison, {}
    if comparison is not None and (comparison["gain"].any() or comparison["tail_gain"].any()):
        found["gains"] = _gains(comparison, f"gain over the nominal policy{of_unit}")
    for sweep in study.sweeps:
        found[f"curve-{sweep.name}"] = _curve(sweep, value)
        found[f"changes-{sweep.name}"] = _changes(sweep)
    return {**found, "worlds": _worlds(study.stress, value)}


def _gains(comparison: Table, label: str) -> Any:
    """What each policy earns beyond the nominal one in the test worlds, with the intervals of both means."""
    figure, others = _figure(), comparison.take(comparison["policy"] != "nominal")
    for place, (column, name) in enumerate((("gain", "on average"), ("tail_gain", "in the worst tenth"))):
        gain, low, high = (others[each].astype(float) for each in (column, f"{column}_low", f"{column}_high"))
        figure.add_scatter(
            x=gain,
            y=others["policy"],
            error_x={"array": high - gain, "arrayminus": gain - low, "thickness": 2, "width": 5},
            orientation="h",
            mode="markers",
            name=name,
            marker={"color": _colour(place), "size": 10},
        )
    figure.update_layout(scattermode="group", scattergap=0.6)
    figure.update_xaxes(zeroline=True, zerolinecolor="#555", zerolinewidth=2)
    figure.update_yaxes(automargin=True, autorange="reversed", type="category")
    return _finish(figure, "Gain over the nominal policy, with 95 % intervals", label, "", 8 + 3 * len(others))


def _curve(sweep: Sweep, value: str) -> Any:
    """Values over the levels: if the model is right, and in the worst case of both policies."""
    figure, table = _figure(), sweep.curve
    lines = (
        ("robust, if the model is right", table["nominal"], "solid"),
        ("robust, worst case", _without_noise(table, "worst"), "solid"),
        ("nominal, worst case", _without_noise(table, "nominal_worst"), "dash"),
    )
    for place, (name, y, dash) in enumerate(lines):
        look = {"color": _colour(place), "dash": dash, "width": 2}
        figure.add_scatter(x=table[sweep.name], y=y, mode="lines+markers", name=name, line=look)
    title = "Value at each level" if sweep.name != "weight" else "Value at each λ"
    return _finish(figure, title, _level_axis(figure, sweep), value)


def _changes(sweep: Sweep) -> Any:
    """In how many states the nominal action is certainly worse, over the levels."""
    figure, look = _figure(), {"color": _colour(0), "width": 2}
    x, y = sweep.curve[sweep.name], sweep.curve["changed"]
    figure.add_scatter(x=x, y=y, mode="lines+markers", name="changed states", line=look)
    return _finish(figure, "States with another action", _level_axis(figure, sweep), "states")


def _worlds(table: Any, value: str) -> Any:
    """How the values of each policy spread over the worlds of each family of several worlds."""
    figure, outcomes = _figure(), table.outcomes
    several = [name for name in dict.fromkeys(outcomes["family"].tolist()) if not name.startswith(WORST_CASE)]
    labels = {name: "<br>".join(textwrap.wrap(name, 22)) for name in several}
    shown = outcomes.take(np.isin(outcomes["family"], several))
    policies = list(dict.fromkeys(shown["policy"].tolist()))
    for place, policy in enumerate(policies):
        of = shown.where(policy=policy)
        figure.add_box(
            x=of["value"],
            y=[labels[name] for name in of["family"].tolist()],
            name=policy,
            orientation="h",
            boxpoints="all",
            jitter=0.5,
            pointpos=0,
            marker={"color": _colour(place), "size": 4},
        )
    figure.update_layout(boxmode="group")
    figure.update_yaxes(automargin=True, autorange="reversed", type="category")
    return _finish(figure, "What each policy earns, world by world", value, "", 8 + 3 * len(several) * len(policies))


def _figure() -> Any:
    import plotly.graph_objects as go

    return go.Figure()


def _finish(figure: Any, title: str, x: str, y: str, height: int = 20) -> Any:
    """With titles and a plain look; `height` is in lines of text."""
    figure.update_layout(
        template="none",
        title={"text": title},
        hovermode="closest",
        margin={"l": 60, "r": 12, "t": 50, "b": 50},
        meta={"height": height, "scales": figure.layout.xaxis.type == "log"},
        font={"family": "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif", "size": 12},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
    )
    for update, text in ((figure.update_xaxes, x), (figure.update_yaxes, y)):
        update(title={"text": text}, gridcolor="#e8e8e8", exponentformat="power")
    return figure


def _level_axis(figure: Any, sweep: Sweep) -> str:
    """A logarithmic axis of levels, and what it says."""
    figure.update_xaxes(type="log", dtick=1)
    return f"{'λ' if sweep.name == 'weight' else sweep.name}: hardly robust to the {'left' if sweep.grows else 'right'}"


def _without_noise(curve: Table, column: str) -> FloatArray:
    """A column without what is smaller than its certified error, which would look like a peak where all is flat."""
    values, model = curve[column].astype(float), curve["nominal"].astype(float)
    return np.where(np.abs(values - model) <= 2.0 * curve["error_bound"].astype(float), model, values)


def _colour(place: int) -> str:
    """At least 3:1 against white, and told apart by the common kinds of colour blindness."""
    from plotly.colors import qualitative

    return str(qualitative.Dark2[place % len(qualitative.Dark2)])
