"""What nature does: the rows it bends, and what that takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Ambiguity
from robustmdp.models import MDP
from robustmdp.operators import RobustBellman
from robustmdp.operators.policy import PolicyRows, likeliest, policy_rows
from robustmdp.result import Solution


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
    mdp: MDP, ambiguity: Ambiguity, value: FloatArray, states: npt.ArrayLike, policy: npt.NDArray[Any]
) -> list[Row]:
    """What nature makes of the states' likeliest actions when it answers to a value."""
    actions = likeliest(policy)
    worst = RobustBellman(mdp, ambiguity).worst_case(value).model
    mdp = mdp.without_noise()  # the worst case is one of successors, too
    values = np.append(value, 0.0)
    rows = []
    for state in np.asarray(states, dtype=np.int64).tolist():
        action = int(actions[state])
        before, after = (_entries(model, mdp.pair(state, action), values) for model in (mdp, worst))
        entries = sorted(before | after)  # nature may lead where the model does not, or not where it does
        names = tuple("the end" if s == mdp.n_states else str(s) for s, _ in entries)
        nominal, bent = (np.array([side.get(entry, (0.0, 0.0))[0] for entry in entries]) for side in (before, after))
        outcomes = np.array([(before | after)[entry][1] for entry in entries])
        rows.append(Row(state, action, names, nominal, bent, outcomes))
    return rows


def _entries(model: MDP, pair: int, values: FloatArray) -> dict[tuple[int, int], tuple[float, float]]:
    """Of each entry of a row, its probability and what it is worth; `values` has the end's 0 last.

    An entry is a successor and how often it came before in the row: the end may come several times.
    """
    at = slice(int(model.indptr[pair]), int(model.indptr[pair + 1]))
    outcomes = model.discount * values[model.indices[at]]
    if model.rewards_on_successors:
        outcomes = outcomes + model.rewards[at]
    successors = model.indices[at].tolist()
    entries = [(successor, successors[:place].count(successor)) for place, successor in enumerate(successors)]
    return dict(zip(entries, zip(model.probabilities[at].tolist(), outcomes.tolist(), strict=True), strict=True))


def taken_by_nature(mdp: MDP, ambiguity: Ambiguity, solution: Solution, start: FloatArray) -> FloatArray:
    """What nature takes in each state, (S,): how much lower its row's mean is, times how often the policy is there."""
    worst = RobustBellman(mdp, ambiguity).worst_case(solution.value).model
    before, after = (_means(model, solution.value) for model in (mdp, worst))
    used = policy_rows(mdp, solution.policy)
    taken = np.add.reduceat(used.weights * (before - after)[used.pairs], used.state_ptr[:-1])
    return np.asarray(taken * _occupancy(worst, used, start))


def _means(model: MDP, value: FloatArray) -> FloatArray:
    """What each pair leads to is worth on average, (n_pairs,)."""
    outcomes = model.discount * np.append(value, 0.0)[model.indices]
    if model.rewards_on_successors:
        outcomes = outcomes + model.rewards
    means: FloatArray = np.add.reduceat(model.probabilities * outcomes, model.indptr[:-1])
    return means


def _occupancy(mdp: MDP, used: PolicyRows, start: FloatArray) -> FloatArray:
    """Discounted visits d = start + discount P' d, by sweeps until what is left is small."""
    import scipy.sparse as sp

    size = mdp.n_states
    rows = sp.csr_array((mdp.probabilities, mdp.indices, mdp.indptr), shape=(mdp.n_pairs, size + 1))[used.pairs][
        :, :size
    ]
    rows = sp.csr_array((used.weights, np.arange(len(used.pairs)), used.state_ptr), (size, len(used.pairs))) @ rows
    visits, now = start.copy(), start.copy()
    for _ in range(10_000):
        now = mdp.discount * (rows.T @ now)
        visits += now
        if now.sum() < 1e-6 * visits.sum():
            break
    return visits
