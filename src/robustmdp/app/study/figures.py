"""The figures of a report, built with plotly."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.app.study.study import Study, Sweep
from robustmdp.table import Table

# plotly's Dark2: at least 3:1 against white, and told apart by the common kinds of colour blindness.
_COLOURS = tuple(
    f"rgb({colour})"
    for colour in (
        "27,158,119", "217,95,2", "117,112,179", "231,41,138", "102,166,30", "230,171,2", "166,118,29", "102,102,102",
    )
)  # fmt: skip
WORST_CASE = "worst case, "  # how names of families begin whose worlds answer to the policy


def figures_of(study: Study, unit: str = "") -> dict[str, Any]:
    """Plotly figures by name: gains over the nominal policy, curves, policy changes, and values in other worlds."""
    of_unit = f", {unit}" if unit else ""
    value, comparison, found = f"value from the start{of_unit}", study.suggestion.comparison, {}
    if comparison is not None and (comparison["gain"].any() or comparison["tail_gain"].any()):
        found["gains"] = _gains(comparison, f"gain over the nominal policy{of_unit}")
    for sweep in study.sweeps:
        found[f"curve-{sweep.name}"] = _curve(sweep, value)
        lines = {"changed states": sweep.curve["changed"]}
        found[f"changes-{sweep.name}"] = _over_levels(sweep, "States with another action", "states", lines)
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
            marker={"color": _COLOURS[place % len(_COLOURS)], "size": 10},
        )
    figure.update_layout(scattermode="group", scattergap=0.6)
    figure.update_xaxes(zeroline=True, zerolinecolor="#555", zerolinewidth=2)
    return _finish(figure, "Gain over the nominal policy, with 95 % intervals", label, "", 8 + 3 * len(others))


def _curve(sweep: Sweep, value: str) -> Any:
    """Values over the levels: if the model is right, and in the worst case of both policies."""
    lines = {
        "robust, if the model is right": sweep.curve["nominal"],
        "robust, worst case": _without_noise(sweep.curve, "worst"),
        "nominal, worst case": _without_noise(sweep.curve, "nominal_worst"),
    }
    return _over_levels(sweep, "Value at each level" if sweep.name != "weight" else "Value at each λ", value, lines)


def _over_levels(sweep: Sweep, title: str, label: str, lines: dict[str, Any]) -> Any:
    """Lines over a logarithmic axis of levels; that of the nominal policy is dashed."""
    figure = _figure()
    figure.update_xaxes(type="log", dtick=1)
    for place, (name, y) in enumerate(lines.items()):
        look = {
            "color": _COLOURS[place % len(_COLOURS)],
            "dash": "dash" if name.startswith("nominal") else "solid",
            "width": 2,
        }
        figure.add_scatter(x=sweep.curve[sweep.name], y=y, mode="lines+markers", name=name, line=look)
    level = "λ" if sweep.name == "weight" else sweep.name
    return _finish(figure, title, f"{level}: hardly robust to the {'left' if sweep.grows else 'right'}", label)


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
            marker={"color": _COLOURS[place % len(_COLOURS)], "size": 4},
        )
    figure.update_layout(boxmode="group")
    return _finish(figure, "What each policy earns, world by world", value, "", 8 + 3 * len(several) * len(policies))


def _figure() -> Any:
    import plotly.graph_objects as go

    return go.Figure()


def _finish(figure: Any, title: str, x: str, y: str, height: int = 20) -> Any:
    """With titles and a plain look; `height` is in lines of text; without a title, y has names."""
    if not y:
        figure.update_yaxes(automargin=True, autorange="reversed", type="category")
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


def _without_noise(curve: Table, column: str) -> FloatArray:
    """A column without what is smaller than its certified error, which would look like a peak where all is flat."""
    values, model = curve[column].astype(float), curve["nominal"].astype(float)
    return np.where(np.abs(values - model) <= 2.0 * curve["error_bound"].astype(float), model, values)
