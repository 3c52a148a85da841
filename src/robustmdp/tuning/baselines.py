"""Policies that a robust one should beat: simpler ways not to rely on every detail of a model."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np

from robustmdp.models import MDP

_HORIZON_SHARES = (0.7, 0.5, 0.35, 0.2, 0.1)


def shorter_discounts(discount: float) -> list[float]:
    """Discounts whose horizons 1/(1 - discount) are shares of the model's, of at least one step.

    >>> [round(each, 3) for each in shorter_discounts(0.9)]
    [0.857, 0.8, 0.714, 0.5, 0.0]
    """
    found = {max(0.0, 1.0 - (1.0 - discount) / share) for share in _HORIZON_SHARES}
    return sorted((each for each in found if each < discount), reverse=True)


def mean_model(mdp: MDP, worlds: Iterable[MDP]) -> MDP:
    """The mean of probabilities and rewards over worlds, for the pairs of a model.

    >>> from robustmdp import problems
    >>> others = [problems.two_state(stay, 0.9) for stay in (0.4, 0.8)]
    >>> mean_model(problems.two_state(0.5, 0.9), others).probabilities.round(6).tolist()
    [0.6, 0.4, 1.0]
    """
    chances, earned = reduce(
        lambda sums, more: (sums[0] + more[0], sums[1] + more[1]), (_rows_of(mdp, world) for world in worlds)
    )
    mass, total = np.asarray(chances.sum(axis=1)), chances.tocoo()
    pair, successor = total.coords
    return MDP.from_rows(
        mdp.states[pair],
        mdp.actions[pair],
        successor,
        total.data / mass[pair],
        np.asarray(earned[pair, successor]) / total.data,
        mdp.discount,
        n_states=mdp.n_states,
    )


def _rows_of(mdp: MDP, world: MDP) -> tuple[Any, Any]:
    """Sparse (n_pairs, S + 1): a world's probabilities, and its rewards times those, at the pairs of a model."""
    from scipy.sparse import csr_array

    width = max(mdp.n_actions, world.n_actions)
    own, others = (each.states * width + each.actions for each in (mdp, world))
    shared = np.flatnonzero(np.isin(others, own))
    lift = csr_array(
        (np.ones(len(shared)), (np.searchsorted(own, others[shared]), shared)), shape=(mdp.n_pairs, world.n_pairs)
    )
    rewards = world.rewards if world.rewards_on_successors else np.repeat(world.rewards, np.diff(world.indptr))
    chances, earned = (
        lift @ csr_array((data, world.indices, world.indptr), shape=(world.n_pairs, mdp.n_states + 1))
        for data in (world.probabilities, world.probabilities * rewards)
    )
    return chances, earned
