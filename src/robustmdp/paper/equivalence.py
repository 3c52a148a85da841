"""Theorem 3.1 as a picture: a penalty and a radius that give the same value, for each divergence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from robustmdp.paper import curves
from robustmdp.paper.figures import Curve, Figure, Key, Panel
from robustmdp.paper.params import OnChain
from robustmdp.paper.work import Experiment, Item, build_chain, product, rows, solve_exactly, timed
from robustmdp.table import Table

TITLE = "Penalty and radius (Theorem 3.1)"
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
    quick: ClassVar[Mapping[str, Any]] = {"levels": 13}


def tasks(params: Params) -> list[Item]:
    """One per world, divergence and lambda."""
    weights = np.geomspace(0.05, 50.0, params.levels).tolist()
    radii = np.geomspace(1e-3, 10.0, params.levels).tolist()
    levels = list(zip(weights, radii, strict=True))
    shared = {"restart": 0.0, "discount": params.discount}
    return [
        {"stay": each["stay"], "divergence": each["divergence"], **shared, "weight": w, "level": r}
        for each in product(stay=params.stay, divergence=params.divergences)
        for w, r in levels
    ]


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


def figure(records: Table) -> Figure:
    """Value against lambda, against rho, and the curve of matching levels."""
    stay = curves.shown(records)
    here = records.where(stay=stay)
    groups = [(Key("divergence", _NAMES.get(name, name)), of) for (name,), of in here.groups("divergence")]

    def panel(title: str, x: str, y: str, labels: tuple[str, str], **scales: str) -> Panel:
        drawn = []
        for key, of in groups:
            order = np.argsort(of[x])
            usable = order[np.isfinite(of[y][order]) & (of[y][order] > 0)]  # beyond it, total variation matches 0
            drawn.append(Curve(key, of[x][usable], of[y][usable]))
        return Panel(title, *labels, tuple(drawn), **scales)  # type: ignore[arg-type]

    panels = (
        panel("Penalized", "weight", "penalized", ("λ", "V*(s1)"), x_scale="log"),
        panel("Constrained", "level", "constrained", ("ρ", "V*(s1)"), x_scale="log"),
        panel("Matching levels", "weight", "radius", ("λ", "ρ with the same V*(s1)"), x_scale="log", y_scale="log"),
    )
    caption = (
        "Optimal robust value of the first state with a penalty λ (left) and within a radius ρ (middle), and the "
        "radius that gives the same value as a penalty (right), for six divergences."
    )
    return Figure("equivalence", f"{TITLE} (p = {stay:g})", caption, _reading(stay, here), panels)


def _reading(stay: float, records: Table) -> str:
    gaps = np.abs(records["penalized"] - records["matched"])
    at = records.take(np.abs(np.log(records["weight"])) == np.abs(np.log(records["weight"])).min())
    matches = ", ".join(f"{_NAMES.get(name, name)} {of['radius'][0]:.3g}" for (name,), of in at.groups("divergence"))
    return (
        f"At p = {stay:g}, every λ has a ρ with the same value: over all divergences the two differ by at most "
        f"{gaps.max():.1g}. The radius that matches λ = {at['weight'][0]:.3g}: {matches}."
    )


EXPERIMENT = Experiment("equivalence", TITLE, Params, tasks, measure, figure)
