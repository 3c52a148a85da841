"""What nature does: the rows it bends, and what that takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp.ambiguity import Ambiguity
from robustmdp.models import MDP
from robustmdp.operators import RobustBellman
from robustmdp.result import Solution

FloatArray = npt.NDArray[np.float64]


class Row(NamedTuple):
    """One pair: its successors, their probabilities under the model and in the worst case, and their values."""

    state: int
    action: int
    successors: tuple[str, ...]
    nominal: FloatArray
    worst: FloatArray
    values: FloatArray

    @property
    def moved(self) -> float:
        """How much probability nature moves: the total variation."""
        return 0.5 * float(np.abs(self.worst - self.nominal).sum())


def rows_of(
    mdp: MDP, ambiguity: Ambiguity, value: FloatArray, states: npt.ArrayLike, policy: npt.NDArray[np.int64]
) -> list[Row]:
    """What nature makes of the pairs (state, policy[state]) when it answers to a value."""
    worst = RobustBellman(mdp, ambiguity).worst_rows(value)
    values = np.append(value, 0.0)
    rows = []
    for state in np.asarray(states, dtype=np.int64).tolist():
        action = int(policy[state])
        pair = mdp.pair(state, action)
        entries = slice(int(mdp.indptr[pair]), int(mdp.indptr[pair + 1]))
        successors = mdp.indices[entries]
        rewards = mdp.rewards[entries] if mdp.rewards_on_successors else 0.0
        names = tuple("the end" if s == mdp.n_states else str(int(s)) for s in successors)
        outcomes = rewards + mdp.discount * values[successors]
        rows.append(Row(state, action, names, mdp.probabilities[entries], worst[entries], outcomes))
    return rows


def taken_by_nature(mdp: MDP, ambiguity: Ambiguity, solution: Solution, start: FloatArray) -> FloatArray:
    """What nature takes in each state, (S,): how much lower its row's mean is, times how often the policy is there."""
    worst = RobustBellman(mdp, ambiguity).worst_rows(solution.value)
    outcomes = mdp.discount * np.append(solution.value, 0.0)[mdp.indices]
    if mdp.rewards_on_successors:
        outcomes = outcomes + mdp.rewards
    taken = np.add.reduceat((mdp.probabilities - worst) * outcomes, mdp.indptr[:-1])
    pairs = np.array([mdp.pair(state, int(action)) for state, action in enumerate(solution.policy)])
    return np.asarray(taken[pairs] * _occupancy(mdp, worst, pairs, start))


def _occupancy(mdp: MDP, probabilities: FloatArray, pairs: npt.NDArray[np.int64], start: FloatArray) -> FloatArray:
    """Discounted visits d = start + discount P' d, by sweeps until what is left is small."""
    import scipy.sparse as sp

    size = mdp.n_states
    rows = sp.csr_array((probabilities, mdp.indices, mdp.indptr), shape=(mdp.n_pairs, size + 1))[pairs][:, :size]
    visits, now = start.copy(), start.copy()
    for _ in range(10_000):
        now = mdp.discount * (rows.T @ now)
        visits += now
        if now.sum() < 1e-6 * visits.sum():
            break
    return visits
