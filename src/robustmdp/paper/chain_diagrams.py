"""Figures 1 and 6 of the paper: the two chains with their transition probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robustmdp.paper.figures import Arrow, Diagram, Key
from robustmdp.paper.params import OnLoop
from robustmdp.paper.runs import build_chain
from robustmdp.paper.work import Drawing, Experiment, Item, combine, rows, timed
from robustmdp.table import Table

_ONE, _TWO, _BOTH = (Key("action", name) for name in ("action 1", "action 2", "both actions"))


@dataclass(frozen=True, kw_only=True)
class Params(OnLoop):
    """The chain that ends in its last state, and the one that returns.

    Rows: stay, restart, state, action, next_state, probability, reward.
    """


def tasks(params: Params) -> list[Item]:
    """Two per value of stay."""
    return combine(**{**params.chain, "restart": (0.0, params.restart)})


@timed
def measure(item: Item) -> Table:
    """The transitions of one chain."""
    mdp = build_chain(item)
    pairs = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.indptr))
    return rows(
        item,
        state=mdp.states[pairs] + 1,
        action=mdp.actions[pairs] + 1,
        next_state=mdp.indices.astype(np.int64) + 1,
        probability=mdp.probabilities,
        reward=mdp.rewards[pairs],
        samples=0,
    )


def draw(records: Table) -> Drawing:
    """One diagram per chain."""
    diagrams = [_build_diagram(of) for _, of in records.groups("restart")]
    caption = (
        "Ten states and two actions; every transition pays 1 but those of s10, which pay 0. Above, the first "
        "experiments' chain, where s10 is final; below, that of the Markovian ones, where s10 returns to s1."
    )
    reading = (
        f"Action 1 stays with probability p = {records['stay'][0]:g} and action 2 moves on with the same probability; "
        f"s10 pays nothing. In the second chain s10 returns to s1 with q = {records['restart'].max():g}."
    )
    return caption, reading, diagrams


def _build_diagram(records: Table) -> Diagram:
    last, restart = int(records["state"].max()), float(records["restart"][0])
    title = f"s{last} returns with q = {restart:g}" if restart else f"s{last} is final"
    # The actions of the last state are the same and drawn once.
    arrows = [_build_arrow(row, last) for row in records if row["state"] < last or row["action"] == 1]
    return Diagram(title, tuple(f"s{state}" for state in range(1, last + 1)), tuple(arrows))


def _build_arrow(row: dict[str, Any], last: int) -> Arrow:
    """Action 1 above the line, action 2 below."""
    source, target = row["state"] - 1, row["next_state"] - 1
    key, bend = (_ONE, 0.35) if row["action"] == 1 else (_TWO, -0.35)
    if row["state"] == last:
        key, bend = _BOTH, 0.35 if source == target else 1.4
    return Arrow(source, target, f"{row['probability']:g}", key, bend)


EXPERIMENT = Experiment("chain-diagrams", "The two chains", Params, tasks, measure, draw)
