"""Worlds that are not the model: what a policy is tried in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Ambiguity, Constrained, check_ambiguity
from robustmdp.divergences import FDivergence
from robustmdp.models import MDP, Counts
from robustmdp.planning.solving import solve_or_raise
from robustmdp.tuning.dirichlet import concentration, draw

RANDOM = "random, up to"  # how the names of such families begin


class World(NamedTuple):
    """A world with a label."""

    label: str
    mdp: MDP


class Family(Protocol):
    """Worlds of one kind."""

    @property
    def name(self) -> str:
        """What tables call it."""

    @property
    def size(self) -> int:
        """How many worlds."""

    @property
    def answers(self) -> bool:
        """Does the world depend on the policy that is tried?"""

    def worlds(self, mdp: MDP, policy: npt.NDArray[Any] | None) -> Iterator[World]:
        """The worlds around a model; `policy` is given where they answer to it."""


@dataclass(frozen=True)
class RandomKernels:
    """Rows drawn at random around the model's, each pair for itself: Dirichlet(a p) for the row p, whose mean is p.

    The concentration a is such that the mean divergence from p is a share of the radius; the share is uniform on
    [0, 1], one for each world. So worlds lie on all sides of the model, and a row may lie outside the radius. A row
    whose mean divergence cannot be as large is drawn as far out as it can: nearly a point mass, at a successor with
    the probability that it has in the model.

    Parameters
    ----------
    divergence : a divergence
    radius : float or (S, A) array in [0, inf]
    count : int
    seed : int

    >>> from robustmdp import KL, problems
    >>> [label for label, _ in RandomKernels(KL(), 0.1, count=2).worlds(problems.chain(), None)]
    ['random 1', 'random 2']
    """

    divergence: FDivergence
    radius: float | FloatArray
    count: int = 100
    seed: int = 0
    answers = False

    def __post_init__(self) -> None:
        Constrained(self.divergence, self.radius)
        _checks.positive_integer("count", self.count)

    @property
    def name(self) -> str:
        radius = f"{self.radius:.3g}" if np.ndim(self.radius) == 0 else "radii per pair"
        return f"{RANDOM} {radius} on average ({self.divergence.name})"

    @property
    def size(self) -> int:
        return self.count

    def worlds(self, mdp: MDP, policy: npt.NDArray[Any] | None) -> Iterator[World]:
        del policy
        single = np.ndim(self.radius) == 0
        radii = np.full(mdp.n_pairs, self.radius, np.float64) if single else mdp.pairs(self.radius, "radius")
        for number in range(self.count):
            rng = np.random.default_rng([self.seed, number])
            share = rng.random()
            target = np.multiply(share, radii, out=np.zeros_like(radii), where=radii > 0)
            scale = concentration(self.divergence, mdp.probabilities, mdp.indptr, target)
            rows = draw(mdp.probabilities, mdp.indptr, scale, rng)
            yield World(f"random {number + 1}", mdp.with_probabilities(rows))


@dataclass(frozen=True)
class Adversary:
    """For each policy the world that nature would answer with: its own worst case.

    Parameters
    ----------
    ambiguity : a set
    label : what tables call the set, by default a few words of its own

    >>> from robustmdp import KL, Constrained
    >>> Adversary(Constrained(KL(), 0.1)).name
    'worst case, Kullback-Leibler radius 0.1'
    """

    ambiguity: Ambiguity
    label: str = ""
    answers = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "ambiguity", check_ambiguity(self.ambiguity))

    @property
    def name(self) -> str:
        return "the model" if self.ambiguity.is_nominal else f"worst case, {self.label or self.ambiguity.label}"

    @property
    def size(self) -> int:
        return 1

    def worlds(self, mdp: MDP, policy: npt.NDArray[Any] | None) -> Iterator[World]:
        assert policy is not None
        yield World("worst case", solve_or_raise(mdp, self.ambiguity, policy=policy, tol=1e-6).worst_case)


@dataclass(frozen=True, eq=False)
class Models:
    """Worlds that the user brings: held-out estimates, other parameters, yesterday's truth.

    >>> from robustmdp import problems
    >>> Models([problems.chain(stay) for stay in (0.7, 0.9)], labels=["0.7", "0.9"]).size
    2
    """

    models: Sequence[MDP]
    name: str = "held out"
    labels: Sequence[str] | None = None
    answers = False

    def __post_init__(self) -> None:
        _checks.must(len(self.models) > 0, f"{self.name} must hold at least one world: got none")
        for number, model in enumerate(self.models):
            if not isinstance(model, MDP):
                raise TypeError(f"{self.name} must hold MDPs: got {type(model).__name__} at number {number}")
        _checks.must(
            self.labels is None or len(self.labels) == len(self.models),
            f"labels must be as many as the worlds ({len(self.models)}): got {len(self.labels or ())}",
        )

    @property
    def size(self) -> int:
        return len(self.models)

    def worlds(self, mdp: MDP, policy: npt.NDArray[Any] | None) -> Iterator[World]:
        del mdp, policy
        labels = self.labels or [f"{self.name} {number + 1}" for number in range(len(self.models))]
        return map(World, labels, self.models)


@dataclass(frozen=True, eq=False)
class Plausible:
    """Models that the counts leave possible, drawn from Jeffreys' posterior.

    >>> from robustmdp import Trajectory
    >>> Plausible(Counts.of(Trajectory([0, 0], [0, 0], [1.0, 1.0], [0, 0])), count=3).size
    3
    """

    counts: Counts
    count: int = 100
    seed: int = 0
    name = "plausible given the data"
    answers = False

    def __post_init__(self) -> None:
        if not isinstance(self.counts, Counts):
            raise TypeError(f"counts must be Counts, such as rm.estimate(log).counts: got {type(self.counts).__name__}")
        _checks.positive_integer("count", self.count)

    @property
    def size(self) -> int:
        return self.count

    def worlds(self, mdp: MDP, policy: npt.NDArray[Any] | None) -> Iterator[World]:
        del policy
        for number in range(self.count):
            rng = np.random.default_rng([self.seed, number])
            yield World(f"draw {number + 1}", self.counts.draw(mdp.discount, rng))


def environments(
    identifier: str,
    discount: float,
    *,
    name: str | None = None,
    fixed: Mapping[str, Any] | None = None,
    **parameters: Any,
) -> Models:
    """A Gymnasium world with other parameters: each combination of those that are lists.

    In an order in which neighbours differ in one parameter: of every two, one of each kind. `fixed` holds parameters
    that are the same in all worlds, which may be lists themselves; `parameters` of the same name take precedence.

    >>> lakes = environments("FrozenLake-v1", 0.95, success_rate=[0.4, 0.8], map_name="4x4")
    >>> lakes.labels
    ['success_rate=0.4', 'success_rate=0.8']
    """
    varied = {key: value for key, value in parameters.items() if isinstance(value, (list, tuple, np.ndarray))}
    _checks.must(bool(varied), f"one of the parameters must be a list of values: got {parameters}")
    same = {**(fixed or {}), **{key: value for key, value in parameters.items() if key not in varied}}
    models, labels = [], []
    for values in _wind([list(values) for values in varied.values()]):
        chosen = dict(zip(varied, values, strict=True))
        models.append(MDP.from_gymnasium(identifier, discount, **{**same, **chosen}))
        labels.append(", ".join(f"{key}={_format(value)}" for key, value in chosen.items()))
    return Models(models, name or f"{identifier} with another {' and '.join(varied)}", labels)


def _wind(axes: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """All combinations, to and fro along each axis.

    >>> list(_wind([(1, 2), "ab"]))
    [(1, 'a'), (1, 'b'), (2, 'b'), (2, 'a')]
    """
    if not axes:
        yield ()
        return
    for number, value in enumerate(axes[0]):
        rest = list(_wind(axes[1:]))
        yield from ((value, *others) for others in (rest[::-1] if number % 2 else rest))


def _format(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
