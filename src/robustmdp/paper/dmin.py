"""Figure "dmin": the rarest pair's share of a trajectory, against the behaviour policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from robustmdp.paper.claims import Claim, Finding
from robustmdp.paper.figures import Curve, Figure, Key, Panel
from robustmdp.paper.params import OnLoop
from robustmdp.paper.work import Experiment, Item, build_chain, rows, timed
from robustmdp.table import Table

TITLE = "The rarest state and action"
_ABOUT_UNIFORM = 1.1  # largest over smallest share
_INACCESSIBLE = 0.01  # relative to the uniform share
_NEAR_AN_END = 0.005


@dataclass(frozen=True, kw_only=True)
class Params(OnLoop):
    """min and max over (s, a) of the stationary distribution under pi(1|s) = pi.

    Rows: stay, restart, behaviour, d_min, d_max.
    """

    behaviours: Annotated[tuple[float, ...], "Probabilities pi of action 1"] = (
        0.001,
        0.005,
        *(round(0.01 * i, 2) for i in range(1, 100)),
        0.995,
        0.999,
    )


def tasks(params: Params) -> list[Item]:
    """One per world."""
    shared = {"restart": params.restart, "discount": params.discount, "behaviours": list(params.behaviours)}
    return [{"stay": stay, **shared} for stay in params.stay]


@timed
def measure(item: Item) -> Table:
    """The extreme shares under each behaviour."""
    from robustmdp import theory

    mdp = build_chain(item)
    found = [theory.occupancy(mdp, [share, 1.0 - share]) for share in item["behaviours"]]
    smallest, largest = [float(each.smallest) for each in found], [float(each.largest) for each in found]
    return rows(item, behaviour=item["behaviours"], d_min=smallest, d_max=largest, pairs=mdp.n_pairs, samples=0)


def check(records: Table) -> list[Claim]:
    """Claim 12."""
    return [
        Claim(12, f"exact stationary distributions, q = {of['restart'][0]:g}", stay, _uniform_in_the_middle(of))
        for (stay,), of in records.groups("stay")
    ]


def _uniform_in_the_middle(records: Table) -> Finding:
    behaviour, d_min, uniform = records["behaviour"], records["d_min"], 1.0 / records["pairs"][0]
    middle = int(np.abs(behaviour - 0.5).argmin())
    ratio = float(records["d_max"][middle] / d_min[middle])
    ends = [int(behaviour.argmin()), int(behaviour.argmax())]
    shares = [float(d_min[end] / uniform) for end in ends]
    at_the_ends = " and ".join(
        f"{share:.2g} of the uniform share at pi = {behaviour[end]:g}" for share, end in zip(shares, ends, strict=True)
    )
    numbers = f"d_max/d_min = {ratio:.4g} at pi = {behaviour[middle]:g}; d_min is {at_the_ends}"
    test = f"d_max/d_min ≤ {_ABOUT_UNIFORM:g} in the middle, d_min ≤ {_INACCESSIBLE:.0%} of uniform at the ends"
    if ratio > _ABOUT_UNIFORM:
        why = f"At pi = {behaviour[middle]:g} one pair is {ratio:.3g} times as frequent as another."
        return Finding("does not hold", numbers, test, why)
    if behaviour.min() > _NEAR_AN_END or behaviour.max() < 1.0 - _NEAR_AN_END:
        return Finding("within noise", numbers, test, "The behaviours do not come near 0 and 1.")
    if max(shares) > _INACCESSIBLE:
        why = f"At an end of the range the rarest pair still has {max(shares):.2g} of the uniform share."
        return Finding("does not hold", numbers, test, why)
    return Finding("holds", numbers, test)


def figure(records: Table) -> Figure:
    """d_min against pi, one curve per stay."""
    drawn = tuple(_curve(stay, of) for (stay,), of in records.groups("stay"))
    caption = (
        "The smallest probability of the stationary distribution over states and actions against the behaviour policy "
        f"π = π(1|s), in the chain whose last state returns to the first with q = {records['restart'][0]:g}."
    )
    panel = Panel("", "π", "d_min", drawn)
    return Figure("dmin", TITLE, caption, _reading(records), (panel,))


def _curve(stay: float, records: Table) -> Curve:
    order = np.argsort(records["behaviour"])
    return Curve(Key("p", stay), records["behaviour"][order], records["d_min"][order])


def _reading(records: Table) -> str:
    parts = []
    for (stay,), of in records.groups("stay"):
        best = int(of["d_min"].argmax())
        parts.append(f"{of['d_min'][best]:.4f} at π = {of['behaviour'][best]:g} for p = {stay:g}")
    uniform = 1.0 / records["pairs"][0]
    return f"The rarest pair is most frequent with a share of {', '.join(parts)}; uniform would be {uniform:g}."


EXPERIMENT = Experiment("dmin", TITLE, Params, tasks, measure, figure, check)
