"""Who should choose the actions: uniform, epsilon-greedy and count-based behaviour at equal samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import FloatArray
from robustmdp.paper import curves
from robustmdp.paper.figures import Key, Panel
from robustmdp.paper.params import Budgets, Divergence, OnLoop, Replications, Seeds, Weight, changes
from robustmdp.paper.runs import build_chain, build_learner, build_penalty, measure_final_errors, solve_exactly
from robustmdp.paper.work import Drawing, Experiment, Item, combine, seed_groups, timed
from robustmdp.table import Table

_CHAIN, _SWIM = "chain", "river-swim"
_WORLDS = {_CHAIN: "chain that returns", _SWIM: "river swim"}
_NAMES = {
    "uniform": "uniform",
    "greedy": "ε-greedy",
    "annealed": "ε-greedy, ε = t^-1/4",
    "counts": "rarely tried actions first",
}


@dataclass(frozen=True, kw_only=True)
class Params(OnLoop, Replications):
    """max |Q - Q*| and the robust value lost at the first state, by the default learner on one trajectory.

    Rows: world, stay, restart, behaviour, budget, seed, samples, error, loss, rarest (visits of a pair).
    """

    seeds: Seeds = 10
    divergence: Divergence = "chi2"
    weight: Weight = 1.0
    epsilon: Annotated[float, "Probability of a random action"] = 0.1
    budgets: Budgets = (1_000, 3_162, 10_000, 31_623)
    quick = changes(seeds=3, budgets=(1_000, 3_162))


def tasks(params: Params) -> list[Item]:
    """One per world, behaviour, budget and group of seeds."""
    return combine(
        world=_WORLDS,
        **params.chain,
        behaviour=_NAMES,
        budget=params.budgets,
        seeds=seed_groups(params.seeds),
        divergence=params.divergence,
        weight=params.weight,
        epsilon=params.epsilon,
    )


def prefer_rare(state: int, step: int, q: FloatArray, visits: npt.NDArray[np.uint32]) -> FloatArray:
    """Probabilities of actions in proportion to 1/(1 + visits).

    >>> prefer_rare(0, 0, np.zeros(2), np.array([0, 3], np.uint32)).tolist()
    [0.8, 0.2]
    """
    del state, step, q
    wanted = 1.0 / (1.0 + visits)
    shares: FloatArray = wanted / wanted.sum()
    return shares


@timed
def measure(item: Item) -> Table:
    """Errors and losses of some replications."""
    from robustmdp import problems
    from robustmdp.learning import EpsilonGreedy
    from robustmdp.learning.schedules import Polynomial

    behaviours: dict[str, Any] = {
        "uniform": None,
        "greedy": EpsilonGreedy(item["epsilon"]),
        "annealed": EpsilonGreedy(Polynomial(1.0, 0.25)),
        "counts": prefer_rare,
    }
    mdp = build_chain(item) if item["world"] == _CHAIN else problems.river_swim(discount=item["discount"])
    ambiguity = build_penalty(item)
    best = float(solve_exactly(mdp, ambiguity).value[0])
    return measure_final_errors(
        item,
        mdp,
        build_learner("markovian", ambiguity, behaviour=behaviours[item["behaviour"]]),
        loss=lambda learned: max(best - solve_exactly(mdp, ambiguity, policy=learned.policy).value[0], 0.0),
        rarest=lambda learned: int(mdp.pairs(np.asarray(learned.visits)).min()),
    )


def draw(records: Table) -> Drawing:
    """Error and loss against samples, for each world."""
    panels, parts = [], []
    for world, title in _WORLDS.items():
        runs = curves.named(records.where(world=world), "behaviour", _NAMES)
        for column, label in (("error", "max |Q − Q*|"), ("loss", "robust value lost at the first state")):
            drawn = tuple(
                curves.mean_curve(of, "budget", Key("behaviour", _NAMES[name]), of=column, style="line+points")
                for name, of in runs
            )
            panels.append(Panel(title, "samples", label, drawn, "log", "log" if column == "error" else "linear"))
        last = [(name, curves.last(of, "budget")) for name, of in runs]
        ends = [f"{_NAMES[name]} {of['error'].mean():.3g} and {of['loss'].mean():.2g}" for name, of in last]
        parts.append(f"{title}: {', '.join(ends)}")
    caption = (
        "Error of Q, and what the learned policy loses of the robust value at the first state, against the samples of "
        f"one trajectory of the default learner: behaviour that is uniform, ε-greedy (ε = {records['epsilon'][0]:g}), "
        f"or prefers actions in proportion to 1/(1 + visits); λ = {records['weight'][0]:g}, means of "
        f"{len(records.values('seed'))} seeds with 95 % bands."
    )
    reading = (
        f"Errors of Q and losses of the policy after {records['budget'].max():,} samples at "
        f"p = {records['stay'][0]:g}. {'; '.join(parts)}."
    )
    return caption, reading, panels


EXPERIMENT = Experiment("exploration", "Behaviour that follows what is learned", Params, tasks, measure, draw)
