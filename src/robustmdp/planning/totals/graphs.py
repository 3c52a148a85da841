"""Which states lead where: reachability, and sets of states that can be kept without payoff."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp.models import MDP
from robustmdp.operators.bellman import Chain, RobustBellman

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


class Groups(NamedTuple):
    """End components without payoff: `label` (S,), -1 outside; `internal` (n_pairs,) the pairs that can stay inside."""

    label: IntArray
    internal: BoolArray


def _graph(sources: npt.NDArray[Any], targets: npt.NDArray[Any], size: int) -> Any:
    import scipy.sparse as sp

    ones = np.ones(len(sources), dtype=np.int8)
    return sp.csr_array((ones, (sources, targets)), shape=(size, size))


def components(sources: npt.NDArray[Any], targets: npt.NDArray[Any], size: int) -> IntArray:
    """The strongly connected component of each of `size` states."""
    from scipy.sparse.csgraph import connected_components

    _, label = connected_components(_graph(sources, targets, size), directed=True, connection="strong")
    return np.asarray(label, dtype=np.int64)


def can_reach(sources: npt.NDArray[Any], targets: npt.NDArray[Any], goal: BoolArray) -> BoolArray:
    """The states from which a path along sources -> targets leads to the goal, (S,); its own states included."""
    return paths_to(sources, targets, goal)[0]


def paths_to(sources: npt.NDArray[Any], targets: npt.NDArray[Any], goal: BoolArray) -> tuple[BoolArray, IntArray]:
    """The same, and the next state of a shortest path, (S,), negative where there is none."""
    from scipy.sparse.csgraph import breadth_first_order

    size = len(goal)
    goals = np.flatnonzero(goal)
    inside = targets < size
    backwards = _graph(
        np.concatenate([targets[inside], np.full(len(goals), size)]),
        np.concatenate([sources[inside], goals]),
        size + 1,
    )
    found, following = breadth_first_order(backwards, size, directed=True)
    reached = np.zeros(size + 1, dtype=bool)
    reached[found] = True
    towards = np.where(following[:-1] == size, -1, following[:-1]).astype(np.int64)
    return reached[:-1], towards


def edges(mdp: MDP, pairs: BoolArray) -> tuple[IntArray, IntArray]:
    """State and successor of each transition of these pairs; successor S is the end."""
    kept = np.repeat(pairs, np.diff(mdp.indptr))
    owners = np.repeat(mdp.states, np.diff(mdp.indptr))
    return owners[kept], mdp.indices[kept]


def chain_edges(chain: Chain) -> tuple[IntArray, IntArray]:
    """The same of a chain, without those of no mass."""
    owners = np.repeat(np.arange(len(chain.cost)), np.diff(chain.indptr))
    kept = chain.data > 0.0
    return owners[kept], chain.indices[kept].astype(np.int64)


def without_payoff(mdp: MDP) -> BoolArray:
    """The pairs whose rewards are all 0, (n_pairs,)."""
    if not mdp.rewards_on_successors:
        return np.asarray(mdp.rewards == 0.0)
    return ~np.logical_or.reduceat(mdp.rewards != 0.0, mdp.indptr[:-1])


def end_components(
    bellman: RobustBellman, usable: BoolArray, pinned: BoolArray, *, is_fixed: bool, payoff: bool = False
) -> Groups:
    """The largest sets of states that can be kept for ever without payoff, by those whose choice is left.

    A pair can stay where nature can avoid all successors outside. With `is_fixed` the policy is given: a state stays
    only if all pairs that it uses do. With `payoff` rewards do not matter.
    """
    mdp = bellman.mdp
    states, size = mdp.states, mdp.n_states
    owners = np.repeat(states, np.diff(mdp.indptr))
    alive = usable & ~pinned[states]
    if not payoff:
        alive &= without_payoff(mdp)
    while True:
        if is_fixed:
            broken = np.zeros(size, dtype=bool)
            broken[states[usable & ~alive]] = True
            alive &= ~broken[states]
        if not alive.any():
            return Groups(np.full(size, -1), alive)
        sources, targets = edges(mdp, alive)
        inside = targets < size
        label = np.append(components(sources[inside], targets[inside], size), -1)
        stays = alive & bellman.can_avoid(label[mdp.indices] != label[owners])
        if (stays == alive).all():
            break
        alive = stays
    member = np.zeros(size, dtype=bool)
    member[states[alive]] = True
    return Groups(np.where(member, label[:-1], -1), alive)
