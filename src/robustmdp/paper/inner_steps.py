"""Figure "convergence", right: Algorithm 1 with fewer inner steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from robustmdp.paper import claims, convergence, curves
from robustmdp.paper.claims import Claim, Finding
from robustmdp.paper.figures import Figure, Key, Panel
from robustmdp.paper.params import OnChain, Penalties, Replications
from robustmdp.paper.work import Experiment, Item, product, seed_groups
from robustmdp.table import Table

TITLE = "The number of inner steps"
_OF_THE_CLAIM = 10.0


@dataclass(frozen=True, kw_only=True)
class Params(OnChain, Penalties, Replications):
    """max |Q - Q*| along Algorithm 1 for several T'.

    Rows: stay, weight, inner_steps, seed, step, samples, error.
    """

    rounds: Annotated[int, "Outer iterations T of Algorithm 1"] = 1000
    inner_levels: Annotated[tuple[int, ...], "Inner iterations T' of Algorithm 1 to compare"] = (10, 50, 100)
    quick: ClassVar[Mapping[str, Any]] = {"seeds": 10, "rounds": 300}


def tasks(params: Params) -> list[Item]:
    """One per world, weight, T' and group of seeds."""
    shared = {"restart": 0.0, "divergence": params.divergence, "discount": params.discount, "steps": params.rounds}
    levels = {"stay": params.stay, "weight": params.weights, "inner_steps": params.inner_levels}
    return [{**item, **shared} for item in product(**levels, seeds=seed_groups(params.seeds))]


def check(records: Table) -> list[Claim]:
    """Claim 8, which is about the largest weight; what the others do is in the figure."""
    found = []
    for (stay,), of in records.groups("stay"):
        weight = _OF_THE_CLAIM if _OF_THE_CLAIM in of.values("weight") else max(of.values("weight"))
        found.append(Claim(8, f"λ = {weight:g}, T = {of['step'].max():,}", stay, _falls(of.where(weight=weight))))
    return found


def _falls(records: Table) -> Finding:
    levels, errors = curves.by_seed(curves.last(records), "inner_steps")
    return claims.trend(errors, [f"{level:g}" for level in levels], -1, "final error", "T'")


def figure(records: Table) -> Figure:
    """One panel per weight, the paper's first."""
    stay = curves.shown(records)
    here = records.where(stay=stay)
    panels = []
    for (weight,), of in sorted(here.groups("weight"), key=lambda group: -group[0][0]):
        drawn = tuple(curves.mean_curve(run, "step", Key("T'", inner)) for (inner,), run in of.groups("inner_steps"))
        panels.append(Panel(f"λ = {weight:g}", "iterations", "max |Qₜ − Q*|", drawn, y_scale="log"))
    caption = (
        "Deviation of Algorithm 1's Q against outer iterations for several numbers T' of inner steps, with 95 % "
        "confidence bands: one panel per λ, the largest, which is the paper's, first."
    )
    return Figure("inner-steps", f"{TITLE} (p = {stay:g})", caption, _reading(stay, here), tuple(panels))


def _reading(stay: float, records: Table) -> str:
    parts = []
    for (weight,), of in curves.last(records).groups("weight"):
        _, errors = curves.by_seed(of, "inner_steps")
        means = errors.mean(axis=0)
        parts.append(f"{means[-1] / means[0]:.2g} at λ = {weight:g}")
    few, many = min(records.values("inner_steps")), max(records.values("inner_steps"))
    return f"At p = {stay:g}, the final error with T' = {many} relative to that with T' = {few}: {', '.join(parts)}."


EXPERIMENT = Experiment("inner-steps", TITLE, Params, tasks, convergence.measure, figure, check)
