"""Figure "connection": how far the robust value is from the nominal one, against lambda."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from robustmdp.paper.claims import Claim, Finding, Verdict
from robustmdp.paper.figures import Curve, Figure, Key, Panel
from robustmdp.paper.params import OnChain, Penalties
from robustmdp.paper.work import Experiment, Item, build_chain, build_penalty, product, rows, solve_exactly, timed
from robustmdp.table import Table

TITLE = "Connection to the nominal value"


@dataclass(frozen=True, kw_only=True)
class Params(OnChain, Penalties):
    """max |V*_robust - V*| from exact solutions and from Algorithm 3.

    Rows: stay, weight, method, deviation and, of the exact one, its certified error.
    """

    sweeps: Annotated[int, "Outer iterations T of Algorithm 3"] = 10_000
    ascent_steps: Annotated[int, "Inner iterations T' of Algorithm 3"] = 1_000
    quick: ClassVar[Mapping[str, Any]] = {"sweeps": 300, "ascent_steps": 100}


def tasks(params: Params) -> list[Item]:
    """One per world and weight."""
    return [
        {
            **each,
            "restart": 0.0,
            "discount": params.discount,
            "divergence": params.divergence,
            "steps": params.sweeps,
            "inner_steps": params.ascent_steps,
        }
        for each in product(stay=params.stay, weight=params.weights)
    ]


@timed
def measure(item: Item) -> Table:
    """The exact deviation with its certified error, and Algorithm 3's."""
    from robustmdp.ambiguity import Nominal

    mdp, ambiguity = build_chain(item), build_penalty(item)
    nominal = solve_exactly(mdp, Nominal(), tol=1e-12)
    exact = solve_exactly(mdp, ambiguity, tol=1e-12)
    answers, errors = [exact.value], [exact.error_bound + nominal.error_bound]
    names = ["exact"]
    if ambiguity.divergence.ascent is not None:
        answers.append(_algorithm_3(item))
        errors.append(np.nan)
        names.append("algorithm-3")
    deviations = [float(np.abs(value - nominal.value).max()) for value in answers]
    return rows(item, method=names, deviation=deviations, certified=errors, samples=0)


def _algorithm_3(item: Item) -> np.ndarray:
    from robustmdp.paper.iterates import algorithm_3

    *_, value = algorithm_3(build_chain(item), build_penalty(item), item["steps"], item["inner_steps"])
    return value


def check(records: Table) -> list[Claim]:
    """Claim 1."""
    return [Claim(1, "exact solutions", stay, _falls(of)) for (stay,), of in records.groups("stay")]


def _falls(records: Table) -> Finding:
    exact = records.where(method="exact")
    order = np.argsort(exact["weight"])
    weights, deviations = exact["weight"][order], exact["deviation"][order]
    slack = exact["certified"][order]
    rises = [
        f"{weights[i]:g} to {weights[i + 1]:g}"
        for i in range(len(weights) - 1)
        if not deviations[i + 1] + slack[i + 1] < deviations[i] - slack[i]
    ]
    numbers = ", ".join(f"{w:g}: {d:.4g}" for w, d in zip(weights, deviations, strict=True))
    test = f"certified intervals, half-width at most {slack.max():.1g}, do not overlap"
    if len(weights) < 2:
        return Finding("within noise", numbers, test, "One level shows no trend.")
    verdict: Verdict = "does not hold" if rises else "holds"
    why = f"It does not fall from λ {', '.join(rises)}." if rises else ""
    return Finding(verdict, numbers, test, why)


def figure(records: Table) -> Figure:
    """Deviation against lambda, one curve per stay and method."""
    curves = []
    for (stay, method), of in records.groups("stay", "method"):
        order = np.argsort(of["weight"])
        exact = method == "exact"
        name = "exact solution" if exact else "Algorithm 3"
        x, y = of["weight"][order], of["deviation"][order]
        curves.append(Curve(Key("p", stay), x, y, style="dashed" if exact else "points", name=name))
    panel = Panel("", "λ", "max |V*robust − V*|", tuple(curves))
    return Figure(
        "connection",
        TITLE,
        "Deviation of the optimal robust value from the nominal one against λ (the paper's figure “connection”): exact "
        f"solutions, and Algorithm 3 with T = {records['steps'][0]:,} and T' = {records['inner_steps'][0]:,}.",
        _reading(records),
        (panel,),
    )


def _reading(records: Table) -> str:
    exact = records.where(method="exact")
    lowest, highest = exact["weight"].min(), exact["weight"].max()
    parts = []
    for (stay,), of in exact.groups("stay"):
        first, final = (float(of.where(weight=w)["deviation"][0]) for w in (lowest, highest))
        parts.append(
            f"at p = {stay:g} robustness costs {first:.3g} at λ = {lowest:g} and {final:.3g} at λ = {highest:g}"
        )
    other = records.where(method="algorithm-3")
    agree = ""
    if len(other):
        gap = max(
            abs(float(row["deviation"][0]) - float(exact.where(stay=stay, weight=weight)["deviation"][0]))
            for (stay, weight), row in other.groups("stay", "weight")
        )
        agree = f" Algorithm 3 agrees with the exact solutions to {gap:.1g}."
    return f"The smaller λ, the lower the robust value: {'; '.join(parts)}.{agree}"


EXPERIMENT = Experiment("connection", TITLE, Params, tasks, measure, figure, check)
