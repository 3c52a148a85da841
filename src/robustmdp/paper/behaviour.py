"""Figure "behaviour": Algorithm 2 under behaviour policies that try one action rarely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustmdp.paper import claims, curves, markovian
from robustmdp.paper.claims import Finding
from robustmdp.paper.figures import Panel
from robustmdp.paper.params import Behaviours, OnLoop, Penalties, Replications, Transitions, Weights, changes
from robustmdp.paper.runs import build_chain
from robustmdp.paper.work import Drawing, Experiment, Item, Judgements, combine, seed_groups
from robustmdp.table import Table

_BOUND = -3.0  # the power of d_min in Theorem 5.1's rate for chi-square at lambda = 1/(1-gamma)


@dataclass(frozen=True, kw_only=True)
class Params(OnLoop, Penalties, Replications):
    """max |Q - Q*| along Algorithm 2 for several pi.

    Rows: stay, restart, weight, behaviour, seed, step, samples, error.
    """

    weights: Weights = (1.0, 2.0, 5.0, 10.0)
    transitions: Transitions = 4_000_000
    behaviours: Behaviours = (0.001, 0.005, 0.05, 0.1, 0.2, 0.5)
    quick = changes(seeds=8, transitions=200_000)


def tasks(params: Params) -> list[Item]:
    """One per world, weight, behaviour and group of seeds."""
    return combine(
        algorithm=markovian.PAPER,
        **params.chain,
        **params.penalties,
        behaviour=params.behaviours,
        seeds=seed_groups(params.seeds),
        steps=params.transitions,
        inner_steps=0,
    )


def judge(records: Table) -> Judgements:
    """Claims 11, for every lambda, and 21."""
    setting = f"{markovian.NAMES[markovian.PAPER]}, T = {records['step'].max():,}, q = {records['restart'][0]:g}"
    weights = records.values("weight")
    parts = [(f"λ = {weight:g}", _falls(of, len(weights))) for (weight,), of in records.groups("weight")]
    nearest = min(weights, key=lambda weight: abs(weight * (1.0 - records["discount"][0]) - 1.0))
    by_d_min = _grows_with_d_min(records.where(weight=nearest))
    return [(11, setting, claims.together(parts)), (21, f"{setting}, λ = {nearest:g}", by_d_min)]


def _falls(records: Table, parts: int) -> Finding:
    """From the behaviour furthest from 1/2 to the nearest."""
    shares, errors = curves.by_seed(curves.last(records), "behaviour")
    order = np.argsort(-np.abs(shares - 0.5), kind="stable")
    return claims.trend(errors[:, order], shares[order], -1, "final error", "π", parts=parts)


def _grows_with_d_min(records: Table) -> Finding:
    """The exponent in d_min from each behaviour to the next: nowhere steeper than the bound."""
    from robustmdp import theory

    mdp = build_chain({name: float(records[name][0]) for name in ("stay", "restart", "discount")})
    shares, errors = curves.by_seed(curves.last(records), "behaviour")
    d_min = np.array([theory.occupancy(mdp, [share, 1.0 - share]).smallest for share in shares])
    order = np.argsort(d_min)
    d_min, errors = d_min[order], errors[:, order]
    level = claims.LEVEL / max(1, len(d_min) - 1)
    steps = [
        (f"{d_min[i]:.2g} to {d_min[i + 1]:.2g}", claims.fit_exponent(d_min[i : i + 2], errors[:, i : i + 2], level))
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
    against = ", ".join(name for name, found in steps if found.high < _BOUND)
    unclear = ", ".join(name for name, found in steps if found.low < _BOUND)
    return claims.conclude(
        f"exponent {overall} over all, by step {', '.join(f'{name}: {found}' for name, found in steps)}",
        test,
        f"The error grows faster than d_min^{_BOUND:g} from {against}." if against else "",
        f"The interval contains {_BOUND:g} from {unclear}." if unclear else "",
    )


def draw(records: Table) -> Drawing:
    """One panel per weight, one curve per behaviour."""
    panels, parts = [], []
    for (weight,), of in records.groups("weight"):
        drawn = curves.mean_curves(of, "behaviour", "step", "π")
        panels.append(Panel(f"λ = {weight:g}", "transitions", "max |Qₜ − Q*|", drawn, y_scale="log"))
        shares, errors = curves.by_seed(curves.last(of), "behaviour")
        means = errors.mean(axis=0)
        parts.append(f"{means[0]:.3g} and {means[-1]:.3g} at λ = {weight:g}")
    caption = (
        "Deviation of Algorithm 2's Q (with V projected) against transitions, for behaviour policies that choose "
        f"action 1 with probability π; q = {records['restart'][0]:g}; shaded: 95 % confidence interval."
    )
    reading = (
        f"At p = {records['stay'][0]:g} the final errors at π = {shares[0]:g} and π = {shares[-1]:g} are "
        f"{'; '.join(parts)}."
    )
    return caption, reading, panels


EXPERIMENT = Experiment("behaviour", "Behaviour policies", Params, tasks, markovian.measure, draw, judge)
