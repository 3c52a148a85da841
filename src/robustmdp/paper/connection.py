"""Figure "connection": how far the robust value is from the nominal one, against lambda."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustmdp.paper import curves
from robustmdp.paper.claims import Finding, conclude
from robustmdp.paper.figures import Key, Panel
from robustmdp.paper.params import AscentSteps, OnChain, Penalties, Sweeps, changes
from robustmdp.paper.runs import algorithm_3, build_chain, build_penalty, solve_exactly
from robustmdp.paper.work import Drawing, Experiment, Item, Judgements, combine, rows, timed
from robustmdp.table import Table


@dataclass(frozen=True, kw_only=True)
class Params(OnChain, Penalties):
    """max |V*_robust - V*| from exact solutions and from Algorithm 3.

    Rows: stay, weight, method, deviation and, of the exact one, its certified error.
    """

    sweeps: Sweeps = 10_000
    ascent_steps: AscentSteps = 1_000
    quick = changes(sweeps=300, ascent_steps=100)


def tasks(params: Params) -> list[Item]:
    """One per world and weight."""
    return combine(**params.chain, **params.penalties, steps=params.sweeps, inner_steps=params.ascent_steps)


@timed
def measure(item: Item) -> Table:
    """The exact deviation with its certified error, and Algorithm 3's."""
    from robustmdp.ambiguity import Nominal

    mdp, ambiguity = build_chain(item), build_penalty(item)
    nominal = solve_exactly(mdp, Nominal(), tol=1e-12)
    exact = solve_exactly(mdp, ambiguity, tol=1e-12)
    values, errors, names = [exact.value], [exact.error_bound + nominal.error_bound], ["exact"]
    if ambiguity.divergence.ascent is not None:
        *_, value = algorithm_3(mdp, ambiguity, item["steps"], item["inner_steps"])
        values, errors, names = [*values, value], [*errors, np.nan], [*names, "algorithm-3"]
    deviations = [float(np.abs(value - nominal.value).max()) for value in values]
    return rows(item, method=names, deviation=deviations, certified=errors, samples=0)


def judge(records: Table) -> Judgements:
    """Claim 1."""
    return [(1, "exact solutions", _falls(records.where(method="exact")))]


def _falls(exact: Table) -> Finding:
    exact = exact.take(np.argsort(exact["weight"]))
    weights, deviations, slack = exact["weight"], exact["deviation"], exact["certified"]
    rises = [
        f"{weights[i]:g} to {weights[i + 1]:g}"
        for i in range(len(weights) - 1)
        if not deviations[i + 1] + slack[i + 1] < deviations[i] - slack[i]
    ]
    return conclude(
        ", ".join(f"{w:g}: {d:.4g}" for w, d in zip(weights, deviations, strict=True)),
        f"certified intervals, half-width at most {slack.max():.1g}, do not overlap",
        f"It does not fall from λ {', '.join(rises)}." if rises else "",
        "One level shows no trend." if len(weights) < 2 else "",
    )


def draw(records: Table) -> Drawing:
    """Deviation against lambda, one curve per stay and method."""
    drawn = []
    for (stay, method), of in records.groups("stay", "method"):
        style, name = ("dashed", "exact solution") if method == "exact" else ("points", "Algorithm 3")
        drawn.append(curves.sorted_curve(of, "weight", "deviation", Key("p", stay), style=style, name=name))
    caption = (
        "Deviation of the optimal robust value from the nominal one against λ (the paper's figure “connection”): exact "
        f"solutions, and Algorithm 3 with T = {records['steps'][0]:,} and T' = {records['inner_steps'][0]:,}."
    )
    return caption, _read(records), (Panel("", "λ", "max |V*robust − V*|", tuple(drawn)),)


def _read(records: Table) -> str:
    exact, other = records.where(method="exact"), records.where(method="algorithm-3")
    lowest, highest = exact["weight"].min(), exact["weight"].max()
    parts = []
    for (stay,), of in exact.groups("stay"):
        first, final = (float(of.where(weight=w)["deviation"][0]) for w in (lowest, highest))
        parts.append(
            f"at p = {stay:g} robustness costs {first:.3g} at λ = {lowest:g} and {final:.3g} at λ = {highest:g}"
        )
    reading = f"The smaller λ, the lower the robust value: {'; '.join(parts)}."
    if not len(other):
        return reading
    gap = max(
        abs(row["deviation"] - exact.where(stay=row["stay"], weight=row["weight"])["deviation"][0]) for row in other
    )
    return f"{reading} Algorithm 3 agrees with the exact solutions to {gap:.1g}."


EXPERIMENT = Experiment(
    "connection", "Connection to the nominal value", Params, tasks, measure, draw, judge, draws_all_worlds=True
)
