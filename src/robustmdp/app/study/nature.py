"""What nature does: the rows it bends, and what that takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Ambiguity
from robustmdp.models import MDP
from robustmdp.operators import RobustBellman
from robustmdp.operators.policy import likeliest, policy_rows
from robustmdp.result import Solution


class Row(NamedTuple):
    """One pair: its successors (`n_states` is the end), their probabilities in model and worst case, their values."""

    state: int
    action: int
    successors: tuple[int, ...]
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
    outcomes = [_outcomes(model, value) for model in (mdp, worst)]
    rows = []
    for state in np.asarray(states, dtype=np.int64).tolist():
        action = int(actions[state])
        pair = mdp.pair(state, action)
        before, after = (_entries(model, pair, of) for model, of in zip((mdp, worst), outcomes, strict=True))
        entries = sorted(before | after)  # nature may lead where the model does not, or not where it does
        nominal, bent = (np.array([side.get(entry, (0.0, 0.0))[0] for entry in entries]) for side in (before, after))
        values = np.array([(before | after)[entry][1] for entry in entries])
        rows.append(Row(state, action, tuple(successor for successor, _ in entries), nominal, bent, values))
    return rows


def _outcomes(model: MDP, value: FloatArray) -> FloatArray:
    """What each transition is worth, without a reward that does not depend on the successor, (nnz,)."""
    outcomes = model.discount * np.append(value, 0.0)[model.indices]
    return outcomes + model.rewards if model.rewards_on_successors else outcomes


def _entries(model: MDP, pair: int, outcomes: FloatArray) -> dict[tuple[int, int], tuple[float, float]]:
    """Of each entry of a row, its probability and what it is worth.

    An entry is a successor and how often it came before in the row: the end may come several times.
    """
    at = slice(int(model.indptr[pair]), int(model.indptr[pair + 1]))
    successors = model.indices[at].tolist()
    entries = [(successor, successors[:place].count(successor)) for place, successor in enumerate(successors)]
    return dict(zip(entries, zip(model.probabilities[at].tolist(), outcomes[at].tolist(), strict=True), strict=True))


def taken_by_nature(mdp: MDP, ambiguity: Ambiguity, solution: Solution, start: FloatArray) -> FloatArray:
    """What nature takes in each state, (S,): how much lower its row's mean is, times how often the policy is there.

    Discounted visits d = start + discount P' d, by sweeps until what is left is small.
    """
    import scipy.sparse as sp

    size, used = mdp.n_states, policy_rows(mdp, solution.policy)
    worst = RobustBellman(mdp, ambiguity).worst_case(solution.value).model
    before, after = (
        np.add.reduceat(model.probabilities * _outcomes(model, solution.value), model.indptr[:-1])
        for model in (mdp, worst)
    )
    policy = sp.csr_array((used.weights, used.pairs, used.state_ptr), (size, mdp.n_pairs))
    rows = sp.csr_array((worst.probabilities, worst.indices, worst.indptr), (mdp.n_pairs, size + 1))
    chain = policy @ rows[:, :size]
    visits, now = start, start
    for _ in range(10_000):
        now = mdp.discount * (chain.T @ now)
        visits = visits + now
        if now.sum() < 1e-6 * visits.sum():
            break
    return np.asarray((policy @ (before - after)) * visits)
