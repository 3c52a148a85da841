"""How policies do when the world is another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Ambiguity, Nominal, check_ambiguity, is_set
from robustmdp.models import MDP
from robustmdp.models.labels import distribution
from robustmdp.planning.solving import solve_or_raise
from robustmdp.result import Solution
from robustmdp.table import Table
from robustmdp.tuning.curve import Progress
from robustmdp.tuning.units import Units
from robustmdp.tuning.worlds import Family, Models, World

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Policy = npt.ArrayLike | Solution | Ambiguity

_TAIL = 0.1  # the worst tenth of worlds
_FINER = 1e-4  # a bound is relative to the largest value, and the start's may be far smaller; chains are quickly solved


@dataclass(frozen=True, eq=False, repr=False)
class StressTable(Table):
    """A row per policy and family of worlds; `outcomes` has every single value.

    `outcomes` is a table of "policy", "family", "world", "value" and "best" (is no policy better there?).
    """

    outcomes: Table = field(default_factory=lambda: Table({}))

    def plot(self, ax: Any = None) -> Figure:
        """A point per world, policy by policy, with the mean and the mean of the worst tenth; needs matplotlib.

        Parameters
        ----------
        ax : a matplotlib axes; a new figure if None
        """
        from robustmdp.pictures import draw_outcomes

        return draw_outcomes(ax, self.outcomes.columns, self.columns)


def stress(
    mdp: MDP,
    policies: Mapping[str, Policy],
    perturbed_worlds: Any,
    *,
    initial: npt.ArrayLike | None = None,
    tol: float = 1e-6,
    threads: int | None = None,
    progress: Progress | None = None,
) -> StressTable:
    """Each policy's value in each world: mean, worst, quantiles, and which policy wins where.

    Parameters
    ----------
    mdp : the model that worlds are perturbations of
    policies : names with (S,) actions, (S, A) probabilities, solutions, or sets to solve the model with
    perturbed_worlds : MDPs and families (`RandomKernels`, `Adversary`, `Models`, `Plausible`, `environments`), one or
        a list of them, or a mapping from names to MDPs or lists of MDPs
    initial : a state by number or name, or (S,) probabilities of the first state; all states alike by default
    tol : to which values differ, in units of rewards (half of what they range over); they are computed to 1e-4 of that
    progress : called with (values so far, values in all)

    Returns
    -------
    StressTable with columns "policy", "family", "worlds" (how many), "mean", "worst", "worst_tenth" (the mean over the
    worst tenth of worlds), "q10", "median", "q90", "wins" (worlds in which no other policy is better).

    >>> from robustmdp import KL, Constrained, Nominal, problems
    >>> machine, doubt = problems.machine_replacement(), Constrained(KL(), 0.2)
    >>> table = stress(machine, {"nominal": Nominal(), "robust": doubt}, [Models([machine], "the model")], initial=0)
    >>> table["policy"].tolist(), table["mean"].round(2).tolist(), table["wins"].tolist()
    (['nominal', 'robust'], [-19.28, -23.23], [1, 0])
    """
    _types.check_arguments(stress, {"mdp": mdp, "tol": tol, "threads": threads, "progress": progress})
    start = distribution(mdp, initial)
    families = families_of(perturbed_worlds)
    chosen = {name: find_policy(mdp, policy, tol, threads) for name, policy in _check_names(policies).items()}
    total = len(chosen) * sum(family.size for family in families)
    rows: list[tuple[str, str, str, float, float, str]] = []
    for family_number, family in enumerate(families):
        for name, policy, number, (label, world) in _trials(mdp, family, chosen):
            place = f"{family_number} {number}"  # labels of worlds need not differ
            rows.append((name, family.name, label, *_value(world, policy, start, tol, threads), place))
            if progress is not None:
                progress(len(rows), total)
    outcomes = _tabulate(rows)
    return StressTable(summarise(outcomes, chosen, [family.name for family in families]).columns, {}, outcomes)


def _trials(
    mdp: MDP, family: Family, policies: Mapping[str, npt.NDArray[Any]]
) -> Iterator[tuple[str, npt.NDArray[Any], int, World]]:
    """Every policy in every world of a family, numbered; a world that does not answer to the policy is made once."""
    if family.answers:
        for name, policy in policies.items():
            for number, world in enumerate(family.worlds(mdp, policy)):
                yield name, policy, number, world
        return
    for number, world in enumerate(family.worlds(mdp, None)):
        _checks.must(
            world.mdp.n_states == mdp.n_states,
            f"a world must have the model's {mdp.n_states} states: {world.label} of {family.name} has "
            f"{world.mdp.n_states}",
        )
        _checks.must(
            world.mdp.n_actions >= mdp.n_actions,
            f"a world must have the model's {mdp.n_actions} actions: {world.label} of {family.name} has "
            f"{world.mdp.n_actions}",
        )
        for name, policy in policies.items():
            yield name, policy, number, world


def summarise(outcomes: Table, policies: Iterable[str], families: Iterable[str]) -> Table:
    """Mean, worst, quantiles and wins of each policy in each family."""
    names = ("policy", "family", "worlds", "mean", "worst", "worst_tenth", "q10", "median", "q90", "wins")
    rows = []
    for family in families:
        for policy in policies:
            found = outcomes.where(policy=policy, family=family)
            values = found["value"]
            quantiles = np.quantile(values, (0.1, 0.5, 0.9)).tolist()
            tail = worst_tenth(values)
            rows.append(
                (policy, family, len(values), values.mean(), values.min(), tail, *quantiles, int(found["best"].sum()))
            )
    return Table(dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True)))


def tail_size(count: int) -> int:
    """How many of so many worlds are the worst tenth: at least one.

    >>> tail_size(4), tail_size(25)
    (1, 3)
    """
    return max(1, int(_TAIL * count + 0.5))


def worst_tenth(values: FloatArray) -> float:
    """The mean over the worst tenth, at least one.

    >>> worst_tenth(np.arange(20.0))
    0.5
    """
    return float(np.sort(values)[: tail_size(len(values))].mean())


def families_of(given: Any) -> list[Family]:
    """Families of worlds from what users bring."""
    parts: Sequence[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
    if isinstance(given, Mapping):
        parts = [_family(str(name), models) for name, models in given.items()]
    plain = [part for part in parts if isinstance(part, MDP)]
    families: list[Family] = [Models(plain)] if plain else []
    for part in parts:
        if not isinstance(part, MDP):
            if not hasattr(part, "worlds"):
                _checks.refuse_type("perturbed_worlds", "MDPs or families of them", part)
            families.append(part)
    _checks.must(bool(families), "perturbed_worlds must hold at least one world: got none")
    names = [family.name for family in families]
    _checks.must(len(set(names)) == len(names), f"families of worlds must have different names: got {names}")
    return families


def _family(name: str, models: Any) -> Models:
    listed = [models] if isinstance(models, MDP) else models
    if not isinstance(listed, (list, tuple)):
        raise TypeError(f"perturbed_worlds[{name!r}] must be an MDP or a list of them: got {type(models).__name__}")
    return Models(listed, name)


def find_policy(mdp: MDP, policy: Policy, tol: float, threads: int | None) -> npt.NDArray[Any]:
    """The policy itself; for a set of nature's choices, the one that is optimal against it."""
    if isinstance(policy, Solution):
        return policy.policy
    if is_set(policy):
        return solve_or_raise(mdp, check_ambiguity(policy), tol=tol, threads=threads).policy
    return np.asarray(policy)


def _check_names(policies: Mapping[str, Policy]) -> dict[str, Policy]:
    if not isinstance(policies, Mapping):
        raise TypeError(f"policies must be a dict from names to policies: got {type(policies).__name__}")
    _checks.must(bool(policies), "policies must hold at least one policy: got none")
    return {str(name): policy for name, policy in policies.items()}


def _value(
    world: MDP, policy: npt.NDArray[Any], start: FloatArray, tol: float, threads: int | None
) -> tuple[float, float]:
    """What a policy earns from the start, and by how much another value must differ not to be the same."""
    units = Units.of(world)
    found = solve_or_raise(units.standardise(world), Nominal(), policy=policy, tol=_FINER * tol, threads=threads).value
    value = float(start @ found)
    return units.value(value, world.discount), 2.0 * tol * units.unit * max(1.0, abs(value))


def _tabulate(rows: Sequence[tuple[str, str, str, float, float, str]]) -> Table:
    policy, family, world, value, slack, place = (np.array(column) for column in zip(*rows, strict=True))
    worlds = np.unique(place, return_inverse=True)[1]
    top = np.full(worlds.max() + 1, -np.inf)
    np.maximum.at(top, worlds, value)
    # Values closer than their certified errors are the same value.
    best = value >= top[worlds] - slack
    return Table({"policy": policy, "family": family, "world": world, "value": value, "best": best})
