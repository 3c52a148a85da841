"""Figure "dmin": the rarest pair's share of a trajectory, against the behaviour policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustmdp.paper import curves
from robustmdp.paper.claims import Finding, conclude
from robustmdp.paper.figures import Key, Panel
from robustmdp.paper.params import Behaviours, OnLoop
from robustmdp.paper.runs import build_chain
from robustmdp.paper.work import Drawing, Experiment, Item, Judgements, combine, rows, timed
from robustmdp.table import Table

_ABOUT_UNIFORM = 1.1  # largest over smallest share
_INACCESSIBLE = 0.01  # relative to the uniform share
_NEAR_AN_END = 0.005


@dataclass(frozen=True, kw_only=True)
class Params(OnLoop):
    """min and max over (s, a) of the stationary distribution under pi(1|s) = pi.

    Rows: stay, restart, behaviour, d_min, d_max.
    """

    behaviours: Behaviours = (0.001, 0.005, *(round(0.01 * i, 2) for i in range(1, 100)), 0.995, 0.999)


def tasks(params: Params) -> list[Item]:
    """One per world."""
    return combine(**params.chain, behaviours=[list(params.behaviours)])


@timed
def measure(item: Item) -> Table:
    """The extreme shares under each behaviour."""
    from robustmdp import theory

    mdp = build_chain(item)
    found = [theory.occupancy(mdp, [share, 1.0 - share]) for share in item["behaviours"]]
    smallest, largest = zip(*found, strict=True)
    return rows(item, behaviour=item["behaviours"], d_min=smallest, d_max=largest, pairs=mdp.n_pairs, samples=0)


def judge(records: Table) -> Judgements:
    """Claim 12."""
    return [(12, f"exact stationary distributions, q = {records['restart'][0]:g}", _uniform_in_the_middle(records))]


def _uniform_in_the_middle(records: Table) -> Finding:
    behaviour, d_min, uniform = records["behaviour"], records["d_min"], 1.0 / records["pairs"][0]
    middle = int(np.abs(behaviour - 0.5).argmin())
    ratio = float(records["d_max"][middle] / d_min[middle])
    ends = [int(behaviour.argmin()), int(behaviour.argmax())]
    shares = [float(d_min[end] / uniform) for end in ends]
    at_the_ends = " and ".join(
        f"{share:.2g} of the uniform share at pi = {behaviour[end]:g}" for share, end in zip(shares, ends, strict=True)
    )
    against, unclear = "", ""
    if ratio > _ABOUT_UNIFORM:
        against = f"At pi = {behaviour[middle]:g} one pair is {ratio:.3g} times as frequent as another."
    elif behaviour.min() > _NEAR_AN_END or behaviour.max() < 1.0 - _NEAR_AN_END:
        unclear = "The behaviours do not come near 0 and 1."
    elif max(shares) > _INACCESSIBLE:
        against = f"At an end of the range the rarest pair still has {max(shares):.2g} of the uniform share."
    return conclude(
        f"d_max/d_min = {ratio:.4g} at pi = {behaviour[middle]:g}; d_min is {at_the_ends}",
        f"d_max/d_min ≤ {_ABOUT_UNIFORM:g} in the middle, d_min ≤ {_INACCESSIBLE:.0%} of uniform at the ends",
        against,
        unclear,
    )


def draw(records: Table) -> Drawing:
    """d_min against pi, one curve per stay."""
    drawn, parts = [], []
    for (stay,), of in records.groups("stay"):
        drawn.append(curves.sorted_curve(of, "behaviour", "d_min", Key("p", stay)))
        best = int(of["d_min"].argmax())
        parts.append(f"{of['d_min'][best]:.4f} at π = {of['behaviour'][best]:g} for p = {stay:g}")
    caption = (
        "The smallest probability of the stationary distribution over states and actions against the behaviour policy "
        f"π = π(1|s), in the chain whose last state returns to the first with q = {records['restart'][0]:g}."
    )
    uniform = 1.0 / records["pairs"][0]
    reading = f"The rarest pair is most frequent with a share of {', '.join(parts)}; uniform would be {uniform:g}."
    return caption, reading, (Panel("", "π", "d_min", tuple(drawn)),)


EXPERIMENT = Experiment(
    "dmin", "The rarest state and action", Params, tasks, measure, draw, judge, draws_all_worlds=True
)
