"""Which states lead where: reachability, and sets of states that can be kept without payoff."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _core
from robustmdp._arrays import BoolArray, IntArray
from robustmdp.models import MDP
from robustmdp.operators.bellman import Chain
from robustmdp.operators.pinned import PinnedBellman


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


class Paths(NamedTuple):
    """Steps of a shortest path to a goal, (S,), and the next state on it; -1 where there is none, or none is needed."""

    distance: IntArray
    following: IntArray


def paths_to(sources: npt.NDArray[Any], targets: npt.NDArray[Any], goal: BoolArray) -> Paths:
    """Shortest paths along sources -> targets; the end, S, is no goal."""
    distance, following = np.empty(len(goal), dtype=np.int64), np.empty(len(goal), dtype=np.int64)
    _core.paths_to(
        sources.astype(np.int64, copy=False),
        targets.astype(np.int32, copy=False),
        goal.astype(np.uint8),
        distance,
        following,
    )
    return Paths(distance, following)


def can_reach(sources: npt.NDArray[Any], targets: npt.NDArray[Any], goal: BoolArray) -> BoolArray:
    """The states from which a path along sources -> targets leads to the goal, (S,); its own states included."""
    return paths_to(sources, targets, goal).distance >= 0


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
    bellman: PinnedBellman, usable: BoolArray, pinned: BoolArray, *, is_fixed: bool, payoff: bool = False
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
    if is_fixed:
        broken = np.zeros(size, dtype=bool)
        broken[states[usable & ~alive]] = True
        alive &= ~broken[states]
    while True:
        alive = _staying(bellman, alive, is_fixed=is_fixed)
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


def level_components(
    bellman: PinnedBellman, usable: BoolArray, pinned: BoolArray, level: IntArray, *, rises: bool
) -> Groups:
    """Sets of states of one `level`, (S + 1,), in which one can move about without payoff, the levels ordered by worth.

    Unlike end components they may leak to levels that are worth less: lower ones where worth `rises` with the level.
    Ways to a level that is worth more leave the set; a set without any is left out unless it is closed.
    """
    mdp = bellman.mdp
    states, starts, lengths = mdp.states, mdp.indptr[:-1], np.diff(mdp.indptr)
    own, following = np.repeat(level[states], lengths), level[mdp.indices]
    stops = np.append(pinned, True)[mdp.indices]
    equal = following == own
    gains = np.logical_or.reduceat((following > own if rises else following < own) | (stops & equal), starts)
    inside = equal & ~stops
    alive = usable & ~pinned[states] & without_payoff(mdp) & ~gains & np.logical_or.reduceat(inside, starts)
    while True:
        sources, targets = edges(mdp, alive)
        kept = inside[np.repeat(alive, lengths)]
        label = np.append(components(sources[kept], targets[kept], mdp.n_states), -1)
        apart = inside & (label[mdp.indices] != np.repeat(label[states], lengths))
        stays = alive & ~np.logical_or.reduceat(apart, starts)
        if (stays == alive).all():
            break
        alive = stays
    leaks = alive & np.logical_or.reduceat(~inside, starts)
    leaves = usable & ~alive & ~pinned[states]
    alive &= np.isin(label[states], label[states[leaves]]) | ~np.isin(label[states], label[states[leaks]])
    member = np.zeros(mdp.n_states, dtype=bool)
    member[states[alive]] = True
    return Groups(np.where(member, label[:-1], -1), alive)


def _staying(bellman: PinnedBellman, alive: BoolArray, *, is_fixed: bool) -> BoolArray:
    """The largest part of these pairs after which one can go on with them; all of a state's, where that is fixed."""
    mdp = bellman.mdp
    if bellman.ambiguity.keeps_support:
        left = alive.astype(np.uint8)
        _core.stay_inside(bellman.model, is_fixed, left)
        return left.astype(bool)
    starts = mdp.state_ptr[:-1]
    wanted = np.add.reduceat(alive, starts, dtype=np.int64) if is_fixed else np.ones(mdp.n_states, dtype=np.int64)
    while True:
        member = np.append(np.add.reduceat(alive, starts, dtype=np.int64) >= np.maximum(wanted, 1), False)
        stays = alive & bellman.can_avoid(~member[mdp.indices]) & member[mdp.states]
        if (stays == alive).all():
            return alive
        alive = stays
