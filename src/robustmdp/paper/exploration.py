"""Who should choose the actions: uniform, epsilon-greedy and count-based behaviour at equal samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import FloatArray
from robustmdp.paper import curves
from robustmdp.paper.figures import Curve, Figure, Key, Panel
from robustmdp.paper.params import OnLoop, Replications
from robustmdp.paper.work import (
    Experiment,
    Item,
    build_chain,
    build_penalty,
    product,
    replicate,
    rows,
    seed_groups,
    solve_exactly,
    timed,
)
from robustmdp.table import Table

if TYPE_CHECKING:
    from robustmdp.models import MDP

TITLE = "Behaviour that follows what is learned"
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

    seeds: Annotated[int, "Replications of each setting"] = 10
    divergence: Annotated[str, "One of chi2, kl, tv, burg, hellinger, js, cr:K"] = "chi2"
    weight: Annotated[float, "Penalty lambda"] = 1.0
    epsilon: Annotated[float, "Probability of a random action"] = 0.1
    budgets: Annotated[tuple[int, ...], "Samples"] = (1_000, 3_162, 10_000, 31_623)
    quick: ClassVar[Mapping[str, Any]] = {"seeds": 3, "budgets": (1_000, 3_162)}


def tasks(params: Params) -> list[Item]:
    """One per world, behaviour, budget and group of seeds."""
    shared = {
        "restart": params.restart,
        "discount": params.discount,
        "divergence": params.divergence,
        "weight": params.weight,
        "epsilon": params.epsilon,
    }
    levels = {"world": _WORLDS, "stay": params.stay, "behaviour": _NAMES, "budget": params.budgets}
    return [{**item, **shared} for item in product(**levels, seeds=seed_groups(params.seeds))]


def prefer_rare(state: int, step: int, q: FloatArray, visits: npt.NDArray[np.uint32]) -> FloatArray:
    """Probabilities of actions in proportion to 1/(1 + visits).

    >>> prefer_rare(0, 0, np.zeros(2), np.array([0, 3], np.uint32)).tolist()
    [0.8, 0.2]
    """
    del state, step, q
    wanted = 1.0 / (1.0 + visits)
    shares: FloatArray = wanted / wanted.sum()
    return shares


def _behaviour(item: Item) -> Any:
    from robustmdp.learning import EpsilonGreedy
    from robustmdp.learning.schedules import Polynomial

    return {
        "uniform": None,
        "greedy": EpsilonGreedy(item["epsilon"]),
        "annealed": EpsilonGreedy(Polynomial(1.0, 0.25)),
        "counts": prefer_rare,
    }[item["behaviour"]]


def _world(item: Item) -> MDP:
    from robustmdp import problems

    return build_chain(item) if item["world"] == _CHAIN else problems.river_swim(discount=item["discount"])


@timed
def measure(item: Item) -> Table:
    """Errors and losses of some replications."""
    from robustmdp.learning import MarkovianQLearning

    mdp, ambiguity = _world(item), build_penalty(item)
    exact = solve_exactly(mdp, ambiguity)
    learner, budget = MarkovianQLearning(ambiguity, _behaviour(item)), item["budget"]
    learned = replicate(learner, mdp, budget, seeds=item["seeds"], reference=exact.q, record_every=budget)
    reached = [solve_exactly(mdp, ambiguity, policy=solution.policy).value[0] for solution in learned]
    return rows(
        item,
        seed=np.array(item["seeds"]),
        samples=np.array([solution.samples for solution in learned]),
        error=np.array([solution.trace["error"][-1] for solution in learned]),
        loss=np.maximum(float(exact.value[0]) - np.array(reached), 0.0),
        rarest=np.array([int(mdp.pairs(np.asarray(solution.visits)).min()) for solution in learned]),
    )


def figure(records: Table) -> Figure:
    """Error and loss against samples, for each world."""
    stay = curves.shown(records)
    here, panels = records.where(stay=stay), []
    for world, title in _WORLDS.items():
        of = here.where(world=world)
        for column, label in (("error", "max |Q − Q*|"), ("loss", "robust value lost at the first state")):
            drawn = tuple(_curve(of.where(behaviour=name), column, _NAMES[name]) for name in _NAMES)
            panels.append(Panel(title, "samples", label, drawn, "log", "log" if column == "error" else "linear"))
    caption = (
        "Error of Q, and what the learned policy loses of the robust value at the first state, against the samples of "
        f"one trajectory of the default learner: behaviour that is uniform, ε-greedy (ε = {here['epsilon'][0]:g}), or "
        f"prefers actions in proportion to 1/(1 + visits); λ = {here['weight'][0]:g}, means of "
        f"{len(here.values('seed'))} seeds with 95 % bands."
    )
    return Figure("exploration", f"{TITLE} (p = {stay:g})", caption, _reading(stay, here), tuple(panels))


def _curve(records: Table, column: str, name: str) -> Curve:
    x, values = curves.by_seed(records, "budget", column)
    return Curve(Key("behaviour", name), x, *curves.band(values), "line+points")


def _reading(stay: float, records: Table) -> str:
    last = records.take(records["budget"] == records["budget"].max())
    parts = []
    for world, title in _WORLDS.items():
        ends = []
        for name, words in _NAMES.items():
            of = last.where(world=world, behaviour=name)
            ends.append(f"{words} {of['error'].mean():.3g} and {of['loss'].mean():.2g}")
        parts.append(f"{title}: {', '.join(ends)}")
    return (
        f"Errors of Q and losses of the policy after {last['budget'][0]:,} samples at p = {stay:g}. {'; '.join(parts)}."
    )


EXPERIMENT = Experiment("exploration", TITLE, Params, tasks, measure, figure)
