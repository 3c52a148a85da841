"""Who chooses the actions while learning: fixed probabilities, or epsilon-greedy on the current Q."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.learning import sampling

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[Any]
Chooser = Callable[[int, float, IntArray], int]


@dataclass(frozen=True)
class EpsilonGreedy:
    """The greedy action of the learner's current Q with probability 1 - epsilon, otherwise any action.

    The paper's analysis asks for a fixed behaviour policy; one that follows Q is its other open question.

    >>> EpsilonGreedy(0.1).epsilon
    0.1
    """

    epsilon: float

    def __post_init__(self) -> None:
        epsilon = _checks.finite_number("epsilon", self.epsilon)
        _checks.must(0.0 < epsilon <= 1.0, f"epsilon must lie in (0, 1]: got {epsilon:g}")


@dataclass(frozen=True, eq=False)
class Chances:
    """A behaviour policy for a world: `probabilities` of each pair, (n_pairs,), None for uniform; or an epsilon."""

    probabilities: FloatArray | None
    epsilon: float = -1.0

    @property
    def follows_q(self) -> bool:
        """Must Q be known before each action?"""
        return self.epsilon >= 0.0

    def tables(self, state_ptr: IntArray) -> tuple[Any, ...]:
        """For compiled code: rows of pairs, alias tables, epsilon."""
        n = int(state_ptr[-1]) if self.probabilities is not None else 0
        keep, other = np.empty(n), np.empty(n, np.int32)
        if self.probabilities is not None:
            sampling.alias_tables(state_ptr, self.probabilities, keep, other)
        return state_ptr, keep, other, self.epsilon

    def chooser(self, state_ptr: IntArray) -> Chooser:
        """For Python worlds: (state, u, greedy pairs) -> pair, from one uniform number."""
        first: list[int] = state_ptr.tolist()
        if self.follows_q:
            epsilon = self.epsilon

            def explore(state: int, u: float, greedy: IntArray) -> int:
                if u >= epsilon:
                    return int(greedy[state])
                return first[state] + int(u / epsilon * (first[state + 1] - first[state]))

            return explore
        if self.probabilities is None:
            return lambda state, u, greedy: first[state] + int(u * (first[state + 1] - first[state]))
        edges = [list(accumulate(self.probabilities[a:b])) for a, b in pairwise(first)]

        def draw(state: int, u: float, greedy: IntArray) -> int:
            row = edges[state]
            return first[state] + min(bisect_right(row, u * row[-1]), len(row) - 1)

        return draw


def chances(behaviour: Any, state_ptr: IntArray, actions: IntArray | None, n_actions: int) -> Chances:
    """Check a behaviour policy: None for uniform, (A,) or (S, A) probabilities, or EpsilonGreedy."""
    if behaviour is None:
        return Chances(None)
    if isinstance(behaviour, EpsilonGreedy):
        return Chances(None, behaviour.epsilon)
    try:
        given = np.asarray(behaviour, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"behaviour must be None, probabilities or EpsilonGreedy(...): got {behaviour!r}") from None
    n_states = len(state_ptr) - 1
    _checks.must(
        given.shape in ((n_actions,), (n_states, n_actions)),
        f"behaviour must have shape (A,) = ({n_actions},) or (S, A) = ({n_states}, {n_actions}): got {given.shape}",
    )
    _checks.must(
        bool(np.all(np.isfinite(given) & (given >= 0))), "behaviour must hold probabilities: got a negative or NaN"
    )
    table = np.broadcast_to(given, (n_states, n_actions))
    sums = table.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1.0) > _checks.SUM_TOLERANCE)
    if len(wrong):
        _checks.fail(f"behaviour must sum to 1 in each state: got {sums[wrong[0]]:g} in state {wrong[0]}")
    states = np.repeat(np.arange(n_states), np.diff(state_ptr))
    columns = np.arange(int(state_ptr[-1])) - np.asarray(state_ptr)[states] if actions is None else actions
    chosen = table[states, columns]
    mass = np.add.reduceat(chosen, np.asarray(state_ptr)[:-1])
    lost = np.flatnonzero(mass < 1.0 - _checks.SUM_TOLERANCE)
    if len(lost):
        _checks.fail(
            f"behaviour must choose available actions: {1.0 - mass[lost[0]]:g} of state {lost[0]}'s mass is on others"
        )
    return Chances(chosen / mass[states])
