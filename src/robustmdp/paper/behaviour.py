"""Figure "behaviour": Algorithm 2 under behaviour policies that try one action rarely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.paper import claims, curves, markovian
from robustmdp.paper.claims import Claim, Finding
from robustmdp.paper.figures import Figure, Key, Panel
from robustmdp.paper.params import OnLoop, Penalties, Replications
from robustmdp.paper.work import Experiment, Item, build_chain, product, seed_groups
from robustmdp.table import Table

TITLE = "Behaviour policies"
_BOUND = -3.0  # the power of d_min in Theorem 5.1's rate for chi-square at lambda = 1/(1-gamma)


@dataclass(frozen=True, kw_only=True)
class Params(OnLoop, Penalties, Replications):
    """max |Q - Q*| along Algorithm 2 for several pi.

    Rows: stay, restart, weight, behaviour, seed, step, samples, error.
    """

    weights: Annotated[tuple[float, ...], "Penalties lambda"] = (1.0, 2.0, 5.0, 10.0)
    transitions: Annotated[int, "Transitions T of Algorithm 2"] = 4_000_000
    behaviours: Annotated[tuple[float, ...], "Probabilities pi of action 1"] = (0.001, 0.005, 0.05, 0.1, 0.2, 0.5)
    quick: ClassVar[Mapping[str, Any]] = {"seeds": 8, "transitions": 200_000}


def tasks(params: Params) -> list[Item]:
    """One per world, weight, behaviour and group of seeds."""
    shared = {
        "restart": params.restart,
        "discount": params.discount,
        "divergence": params.divergence,
        "steps": params.transitions,
        "inner_steps": 0,
    }
    levels = {"stay": params.stay, "weight": params.weights, "behaviour": params.behaviours}
    each = product(algorithm=[markovian.PAPER], **levels, seeds=seed_groups(params.seeds))
    return [{**item, **shared} for item in each]


def check(records: Table) -> list[Claim]:
    """Claims 11, for every lambda, and 21."""
    found = []
    for (stay, restart), of in records.groups("stay", "restart"):
        count = len(of.values("weight"))
        parts = [(f"λ = {weight:g}", _falls(each, count)) for (weight,), each in of.groups("weight")]
        setting = f"{markovian.NAMES[markovian.PAPER]}, T = {of['step'].max():,}, q = {restart:g}"
        found.append(Claim(11, setting, stay, claims.together(parts)))
        nearest = min(of.values("weight"), key=lambda weight: abs(weight * (1.0 - of["discount"][0]) - 1.0))
        found.append(Claim(21, f"{setting}, λ = {nearest:g}", stay, _by_d_min(of.where(weight=nearest))))
    return found


def _by_d_min(records: Table) -> Finding:
    """The exponent in d_min from each behaviour to the next: nowhere steeper than the bound."""
    from robustmdp import theory

    mdp = build_chain({name: float(records[name][0]) for name in ("stay", "restart", "discount")})
    shares, errors = curves.by_seed(curves.last(records), "behaviour")
    d_min = np.array([float(theory.occupancy(mdp, [share, 1.0 - share]).smallest) for share in shares])
    order = np.argsort(d_min)
    d_min, errors = d_min[order], errors[:, order]
    steps = [
        (f"{d_min[i]:.2g} to {d_min[i + 1]:.2g}", _slope(d_min[i : i + 2], errors[:, i : i + 2], len(d_min) - 1))
        for i in range(len(d_min) - 1)
        if d_min[i + 1] > 1.01 * d_min[i]
    ]
    test = (
        f"exponents in d_min from each behaviour to the next, bootstrap over {len(errors)} seeds, "
        f"{claims.LEVEL:.0%} for all together, at least {_BOUND:g}"
    )
    if not steps:
        return Finding("within noise", "one behaviour", test, "One level of d_min shows no exponent.")
    overall = f"{curves.exponent(d_min, errors.mean(axis=0))[0]:.2f}"
    numbers = f"exponent {overall} over all, by step {', '.join(f'{name}: {found}' for name, found in steps)}"
    against = ", ".join(name for name, found in steps if found.high < _BOUND)
    if against:
        return Finding("does not hold", numbers, test, f"The error grows faster than d_min^{_BOUND:g} from {against}.")
    unclear = ", ".join(name for name, found in steps if found.low < _BOUND)
    if unclear:
        return Finding("within noise", numbers, test, f"The interval contains {_BOUND:g} from {unclear}.")
    return Finding("holds", numbers, test)


def _slope(d_min: FloatArray, errors: FloatArray, comparisons: int) -> claims.Exponent:
    return claims.fit_exponent(d_min, errors, claims.LEVEL / comparisons)


def _falls(records: Table, parts: int) -> Finding:
    """From the behaviour furthest from 1/2 to the nearest."""
    shares, errors = curves.by_seed(curves.last(records), "behaviour")
    order = np.argsort(-np.abs(shares - 0.5), kind="stable")
    labels = [f"{share:g}" for share in shares[order]]
    return claims.trend(errors[:, order], labels, -1, "final error", "π", parts=parts)


def figure(records: Table) -> Figure:
    """One panel per weight, one curve per behaviour."""
    stay = curves.shown(records)
    here = records.where(stay=stay)
    panels = []
    for (weight,), of in here.groups("weight"):
        drawn = tuple(curves.mean_curve(run, "step", Key("π", share)) for (share,), run in of.groups("behaviour"))
        panels.append(Panel(f"λ = {weight:g}", "transitions", "max |Qₜ − Q*|", drawn, y_scale="log"))
    caption = (
        "Deviation of Algorithm 2's Q (with V projected) against transitions, for behaviour policies that choose "
        f"action 1 with probability π; q = {here['restart'][0]:g}; shaded: 95 % confidence interval."
    )
    return Figure("behaviour", f"{TITLE} (p = {stay:g})", caption, _reading(stay, here), tuple(panels))


def _reading(stay: float, records: Table) -> str:
    parts = []
    for (weight,), of in curves.last(records).groups("weight"):
        shares, errors = curves.by_seed(of, "behaviour")
        means = errors.mean(axis=0)
        parts.append(f"{means[0]:.3g} and {means[-1]:.3g} at λ = {weight:g}")
    return f"At p = {stay:g} the final errors at π = {shares[0]:g} and π = {shares[-1]:g} are {'; '.join(parts)}."


EXPERIMENT = Experiment("behaviour", TITLE, Params, tasks, markovian.measure, figure, check)
