"""Figure "convergence", right: Algorithm 1 with fewer inner steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from robustmdp.paper import claims, convergence, curves
from robustmdp.paper.figures import Panel
from robustmdp.paper.params import OnChain, Penalties, Replications, Rounds, changes
from robustmdp.paper.work import Drawing, Experiment, Item, Judgements, combine, seed_groups
from robustmdp.table import Table

_OF_THE_CLAIM = 10.0


@dataclass(frozen=True, kw_only=True)
class Params(OnChain, Penalties, Replications):
    """max |Q - Q*| along Algorithm 1 for several T'.

    Rows: stay, weight, inner_steps, seed, step, samples, error.
    """

    rounds: Rounds = 1000
    inner_levels: Annotated[tuple[int, ...], "Inner iterations T' of Algorithm 1 to compare"] = (10, 50, 100)
    quick = changes(seeds=10, rounds=300)


def tasks(params: Params) -> list[Item]:
    """One per world, weight, T' and group of seeds."""
    return combine(
        **params.chain,
        **params.penalties,
        inner_steps=params.inner_levels,
        seeds=seed_groups(params.seeds),
        steps=params.rounds,
    )


def judge(records: Table) -> Judgements:
    """Claim 8, which is about the largest weight; what the others do is in the figure."""
    weights = records.values("weight")
    weight = _OF_THE_CLAIM if _OF_THE_CLAIM in weights else max(weights)
    levels, errors = curves.by_seed(curves.last(records.where(weight=weight)), "inner_steps")
    setting = f"λ = {weight:g}, T = {records['step'].max():,}"
    return [(8, setting, claims.trend(errors, levels, -1, "final error", "T'"))]


def draw(records: Table) -> Drawing:
    """One panel per weight, the paper's first."""
    panels: list[Panel] = []
    parts = []
    for (weight,), of in records.groups("weight"):
        drawn = curves.mean_curves(of, "inner_steps", "step", "T'")
        panels.insert(0, Panel(f"λ = {weight:g}", "iterations", "max |Qₜ − Q*|", drawn, y_scale="log"))
        levels, errors = curves.by_seed(curves.last(of), "inner_steps")
        means = errors.mean(axis=0)
        parts.append(f"{means[-1] / means[0]:.2g} at λ = {weight:g}")
    caption = (
        "Deviation of Algorithm 1's Q against outer iterations for several numbers T' of inner steps, with 95 % "
        "confidence bands: one panel per λ, the largest, which is the paper's, first."
    )
    reading = (
        f"At p = {records['stay'][0]:g}, the final error with T' = {levels[-1]:g} relative to that with "
        f"T' = {levels[0]:g}: {', '.join(parts)}."
    )
    return caption, reading, panels


EXPERIMENT = Experiment("inner-steps", "The number of inner steps", Params, tasks, convergence.measure, draw, judge)
