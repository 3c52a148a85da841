"""The figures of a report, built with plotly."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.app.study.study import Study
from robustmdp.app.study.sweep import Sweep
from robustmdp.table import Table

_WORST_CASE = "worst case, "  # how names of families begin whose worlds answer to the policy


def figures_of(study: Study, unit: str = "") -> dict[str, Any]:
    """Plotly figures by name: gains over the nominal policy, curves, policy changes, and values in other worlds."""
    value = f"value from the start{f', {unit}' if unit else ''}"
    comparison, found = study.suggestion.comparison, {}
    if comparison is not None and (comparison["gain"].any() or comparison["tail_gain"].any()):
        found["gains"] = gains(comparison, unit)
    for sweep in study.sweeps:
        found[f"curve-{sweep.name}"] = curve(sweep, value)
        found[f"changes-{sweep.name}"] = changes(sweep)
    return {**found, "worlds": worlds(study.stress, value)}


def gains(comparison: Table, unit: str) -> Any:
    """What each policy earns beyond the nominal one in the test worlds, with the intervals of both means."""
    import plotly.graph_objects as go

    others = comparison.take(comparison["policy"] != "nominal")
    figure = go.Figure()
    for (column, name), colour in zip(
        (("gain", "on average"), ("tail_gain", "in the worst tenth")), _colours(), strict=False
    ):
        gain, low, high = (others[each].astype(float) for each in (column, f"{column}_low", f"{column}_high"))
        interval = {"array": high - gain, "arrayminus": gain - low, "thickness": 2, "width": 5}
        look = {"color": colour, "size": 10}
        points = {"x": gain, "y": others["policy"], "orientation": "h"}
        figure.add_scatter(**points, error_x=interval, mode="markers", name=name, marker=look)
    figure.update_layout(scattermode="group", scattergap=0.6)
    label = f"gain over the nominal policy{f', {unit}' if unit else ''}"
    figure.update_xaxes(zeroline=True, zerolinecolor="#555", zerolinewidth=2)
    figure.update_yaxes(automargin=True, autorange="reversed", type="category")
    return _finished(figure, "Gain over the nominal policy, with 95 % intervals", label, "", 8 + 3 * len(others))


def curve(sweep: Sweep, value: str) -> Any:
    """Values over the levels: if the model is right, and in the worst case of both policies."""
    import plotly.graph_objects as go

    table, x = sweep.curve, sweep.curve[sweep.name]
    lines = (
        ("robust, if the model is right", table["nominal"], "solid"),
        ("robust, worst case", _settled(table, "worst"), "solid"),
        ("nominal, worst case", _settled(table, "nominal_worst"), "dash"),
    )
    figure = go.Figure()
    for (name, y, dash), colour in zip(lines, _colours(), strict=False):
        figure.add_scatter(x=x, y=y, mode="lines+markers", name=name, line={"color": colour, "dash": dash, "width": 2})
    title = "Value at each level" if sweep.name != "weight" else "Value at each λ"
    return _finished(figure, title, _axis(sweep), value, log="x")


def changes(sweep: Sweep) -> Any:
    """In how many states the nominal action is certainly worse, over the levels."""
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.add_scatter(
        x=sweep.curve[sweep.name],
        y=sweep.curve["changed"],
        mode="lines+markers",
        name="changed states",
        line={"color": _colours()[0], "width": 2},
    )
    return _finished(figure, "States with another action", _axis(sweep), "states", log="x")


def worlds(table: Any, value: str) -> Any:
    """How the values of each policy spread over the worlds of each family of several worlds."""
    import plotly.graph_objects as go

    outcomes = table.outcomes
    several = [name for name in dict.fromkeys(outcomes["family"].tolist()) if not name.startswith(_WORST_CASE)]
    shown = outcomes.take(np.isin(outcomes["family"], several))
    labels = {name: "<br>".join(textwrap.wrap(name, 22)) for name in several}
    figure = go.Figure()
    policies = list(dict.fromkeys(shown["policy"].tolist()))
    for number, policy in enumerate(policies):
        of, colour = shown.where(policy=policy), _colours()[number % len(_colours())]
        figure.add_box(
            x=of["value"],
            y=[labels[name] for name in of["family"].tolist()],
            name=policy,
            orientation="h",
            boxpoints="all",
            jitter=0.5,
            pointpos=0,
            marker={"color": colour, "size": 4},
        )
    figure.update_layout(boxmode="group")
    figure.update_yaxes(automargin=True, autorange="reversed", type="category")
    height = 8 + 3 * len(several) * len(policies)
    return _finished(figure, "What each policy earns, world by world", value, "", height)


def _finished(figure: Any, title: str, x: str, y: str, height: int = 20, log: str = "") -> Any:
    """With titles and a plain look; `height` is in lines of text, axes named in `log` are logarithmic."""
    figure.update_layout(
        template="none",
        title={"text": title},
        hovermode="closest",
        margin={"l": 60, "r": 12, "t": 50, "b": 50},
        meta={"height": height, "scales": bool(log)},
        font={"family": "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif", "size": 12},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
    )
    grid = {"gridcolor": "#e8e8e8", "exponentformat": "power"}
    figure.update_xaxes(title={"text": x}, **grid)
    figure.update_yaxes(title={"text": y}, **grid)
    if "x" in log:
        figure.update_xaxes(type="log", dtick=1)
    return figure


def _axis(sweep: Sweep) -> str:
    return f"{'λ' if sweep.name == 'weight' else sweep.name}: hardly robust to the {'left' if sweep.grows else 'right'}"


def _settled(curve: Table, column: str) -> FloatArray:
    """A column without what is smaller than its certified error, which would look like a peak where all is flat."""
    values, model = curve[column].astype(float), curve["nominal"].astype(float)
    return np.where(np.abs(values - model) <= 2.0 * curve["error_bound"].astype(float), model, values)


def _colours() -> list[str]:
    """At least 3:1 against white, and told apart by the common kinds of colour blindness."""
    from plotly.colors import qualitative

    return list(qualitative.Dark2)
