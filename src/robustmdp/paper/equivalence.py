"""Theorem 3.1 as a picture: a penalty and a radius that give the same value, for each divergence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from robustmdp.paper import curves
from robustmdp.paper.figures import Key, Panel, Scale
from robustmdp.paper.params import OnChain, changes
from robustmdp.paper.runs import build_chain, solve_exactly
from robustmdp.paper.work import Drawing, Experiment, Item, combine, rows, timed
from robustmdp.table import Table

_NAMES = {
    "chi2": "chi-square",
    "kl": "KL",
    "tv": "total variation",
    "burg": "Burg",
    "hellinger": "Hellinger",
    "js": "Jensen-Shannon",
}


@dataclass(frozen=True, kw_only=True)
class Params(OnChain):
    """V*(s1) with a penalty lambda and with the radius that matches it.

    Rows: stay, divergence, weight, radius, penalized and matched value; level (a rho), constrained value.
    """

    divergences: Annotated[tuple[str, ...], "Divergences to compare"] = tuple(_NAMES)
    levels: Annotated[int, "How many values of lambda, from 0.05 to 50, and of rho, from 0.001 to 10"] = 31
    quick = changes(levels=13)


def tasks(params: Params) -> list[Item]:
    """One per world, divergence and lambda."""
    weights = np.geomspace(0.05, 50.0, params.levels).tolist()
    radii = np.geomspace(1e-3, 10.0, params.levels).tolist()
    worlds = combine(**params.chain, divergence=params.divergences)
    return [{**item, "weight": w, "level": r} for item in worlds for w, r in zip(weights, radii, strict=True)]


@timed
def measure(item: Item) -> Table:
    """The value at one lambda, its matching radius and the value there; and the value at one rho."""
    from robustmdp.ambiguity import Constrained, Penalized
    from robustmdp.divergences import divergence_named
    from robustmdp.tuning import matching_radius

    mdp, divergence = build_chain(item), divergence_named(item["divergence"])
    penalty = Penalized(divergence, item["weight"])
    radius = matching_radius(mdp, penalty, 0, threads=1)
    ambiguities = (penalty, Constrained(divergence, radius), Constrained(divergence, item["level"]))
    penalized, matched, constrained = (solve_exactly(mdp, each) for each in ambiguities)
    return rows(
        item,
        radius=[radius],
        penalized=[penalized.value[0]],
        matched=[matched.value[0]],
        constrained=[constrained.value[0]],
        certified=[penalized.error_bound + matched.error_bound],
        samples=0,
    )


def draw(records: Table) -> Drawing:
    """Value against lambda, against rho, and the curve of matching levels."""
    shown: tuple[tuple[str, str, str, str, str, Scale], ...] = (
        ("Penalized", "weight", "penalized", "λ", "V*(s1)", "linear"),
        ("Constrained", "level", "constrained", "ρ", "V*(s1)", "linear"),
        ("Matching levels", "weight", "radius", "λ", "ρ with the same V*(s1)", "log"),
    )
    panels = []
    for title, x, y, x_label, y_label, scale in shown:
        usable = records.take(np.isfinite(records[y]) & (records[y] > 0))  # beyond it, total variation matches 0
        drawn = [
            curves.sorted_curve(of, x, y, Key("divergence", _NAMES.get(name, name)))
            for (name,), of in usable.groups("divergence")
        ]
        panels.append(Panel(title, x_label, y_label, tuple(drawn), "log", scale))
    caption = (
        "Optimal robust value of the first state with a penalty λ (left) and within a radius ρ (middle), and the "
        "radius that gives the same value as a penalty (right), for six divergences."
    )
    gaps = np.abs(records["penalized"] - records["matched"])
    distance = np.abs(np.log(records["weight"]))
    at = records.take(distance == distance.min())
    matches = ", ".join(f"{_NAMES.get(name, name)} {of['radius'][0]:.3g}" for (name,), of in at.groups("divergence"))
    reading = (
        f"At p = {records['stay'][0]:g}, every λ has a ρ with the same value: over all divergences the two differ by "
        f"at most {gaps.max():.1g}. The radius that matches λ = {at['weight'][0]:.3g}: {matches}."
    )
    return caption, reading, panels


EXPERIMENT = Experiment("equivalence", "Penalty and radius (Theorem 3.1)", Params, tasks, measure, draw)
