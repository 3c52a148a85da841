"""Who chooses the actions while learning: fixed probabilities, epsilon-greedy on the current Q, or a function."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray, IndexArray
from robustmdp.learning.schedules import Numbers, Schedule, Setting
from robustmdp.models.space import StateActionSpace

OwnBehaviour = Callable[[int, int, FloatArray, IndexArray], npt.ArrayLike]


@dataclass(frozen=True)
class EpsilonGreedy:
    """The greedy action of the learner's current Q with probability 1 - epsilon, otherwise any action.

    Ties, also between actions that were never tried, are broken at random. `epsilon` is a number or a schedule of the
    steps taken so far. The paper's analysis asks for a fixed behaviour policy; one that follows Q is its other open
    question.

    >>> from robustmdp.learning.schedules import Polynomial
    >>> EpsilonGreedy(Polynomial(1.0, 0.5)).at(99)
    0.1
    """

    epsilon: float | Schedule

    def __post_init__(self) -> None:
        if isinstance(self.epsilon, type) or not isinstance(self.epsilon, Schedule):
            epsilon = _checks.finite_number("epsilon", self.epsilon)
            _checks.must(0.0 < epsilon <= 1.0, f"epsilon must lie in (0, 1]: got {epsilon:g}")

    @property
    def numbers(self) -> Numbers:
        """Epsilon as a schedule, at most 1."""
        if not isinstance(self.epsilon, Schedule):
            return Numbers(float(self.epsilon), 1.0, 0.0, 0.0, 1.0)
        numbers = self.epsilon.resolve(Setting(0.0, 1.0, (0.0, 1.0)))
        return numbers._replace(cap=min(numbers.cap, 1.0), per_weight=0.0)

    def at(self, step: int) -> float:
        """Epsilon after `step` steps."""
        return float(self.numbers.at(step))


@dataclass(frozen=True, eq=False)
class BehaviourPolicy:
    """A behaviour policy for a world: one of these, or none for uniform."""

    state_ptr: IndexArray
    probabilities: FloatArray | None = None  # of each pair
    epsilon: Numbers | None = None
    function: OwnBehaviour | None = None

    @property
    def follows_q(self) -> bool:
        """Must Q be known before each action?"""
        return self.epsilon is not None or self.function is not None

    def cumulative(self) -> FloatArray:
        """Running sums of the probabilities within each state, (n_pairs,)."""
        sizes = np.diff(self.state_ptr)
        if self.probabilities is None:
            places = np.arange(int(self.state_ptr[-1])) - np.repeat(self.state_ptr[:-1], sizes)
            edges: FloatArray = (places + 1.0) / np.repeat(sizes, sizes)
            return edges
        rows = [np.cumsum(self.probabilities[a:b]) for a, b in pairwise(self.state_ptr.tolist())]
        return np.concatenate([row / row[-1] for row in rows])

    def build_sampler(self) -> Callable[[int, int, float], int]:
        """For worlds in Python and fixed probabilities: (step, state, u) -> pair, from one uniform number."""
        first: list[int] = self.state_ptr.tolist()
        if self.probabilities is None:
            return lambda step, state, u: first[state] + int(u * (first[state + 1] - first[state]))
        edges = self.cumulative().tolist()
        return lambda step, state, u: min(bisect_right(edges, u, first[state], first[state + 1]), first[state + 1] - 1)


def check_behaviour(behaviour: Any, space: StateActionSpace) -> BehaviourPolicy:
    """Check a behaviour policy: None for uniform, (A,) or (S, A) probabilities, EpsilonGreedy, or a function."""
    state_ptr = space.state_ptr
    if behaviour is None:
        return BehaviourPolicy(state_ptr)
    if isinstance(behaviour, EpsilonGreedy):
        return BehaviourPolicy(state_ptr, epsilon=behaviour.numbers)
    if callable(behaviour):
        return BehaviourPolicy(state_ptr, function=behaviour)
    try:
        given = np.asarray(behaviour, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"behaviour must be None, probabilities, EpsilonGreedy(...) or a function: got {behaviour!r}"
        ) from None
    shapes = (space.n_actions,), (space.n_states, space.n_actions)
    _checks.must(
        given.shape in shapes,
        f"behaviour must have shape (A,) = {shapes[0]} or (S, A) = {shapes[1]}: got {given.shape}",
    )
    _checks.must(
        bool(np.all(np.isfinite(given) & (given >= 0))), "behaviour must hold probabilities: got a negative or NaN"
    )
    table = np.broadcast_to(given, shapes[1])
    sums = table.sum(axis=1)
    if (wrong := _checks.wrong_sums(sums)).size:
        _checks.fail(f"behaviour must sum to 1 in each state: got {sums[wrong[0]]:g} in state {wrong[0]}")
    chosen = space.pairs(table)
    mass = np.add.reduceat(chosen, np.asarray(state_ptr)[:-1])
    short = np.flatnonzero(mass < 1.0 - _checks.SUM_TOLERANCE)
    if len(short):
        rest = f"{1.0 - mass[short[0]]:g} of state {short[0]}'s mass is on others"
        _checks.fail(f"behaviour must choose available actions: {rest}")
    return BehaviourPolicy(state_ptr, chosen / np.repeat(mass, np.diff(state_ptr)))
