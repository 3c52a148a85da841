"""From which states a goal is reached surely, depending on who wants it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp.operators import RobustBellman
from robustmdp.planning.totals import graphs

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


class Surely(NamedTuple):
    """The states from which the goal is reached with probability 1, (S,).

    `spoiling` (S,) has, for the other states, a pair with which a player who does not want it prevents that.
    """

    states: BoolArray
    spoiling: IntArray


def reached_surely(bellman: RobustBellman, goal: BoolArray, *, player_wants: bool, nature_wants: bool) -> Surely:
    """The greatest X such that from all of X a path inside X leads to the goal.

    Those who want it choose the path, the others cannot leave X: each round keeps the states from which that is so
    within the last X.
    """
    if not player_wants and not nature_wants:
        return _may_fail(bellman, goal)
    mdp = bellman.mdp
    kept = np.ones(mdp.n_states, dtype=bool)
    spoiling = mdp.state_ptr[:-1].copy()
    while True:
        reached, gets_there = _reached_within(bellman, goal, kept, player_wants=player_wants, nature_wants=nature_wants)
        lost = kept & ~reached
        if not lost.any():
            return Surely(kept, spoiling)
        pairs = np.flatnonzero(~gets_there & lost[mdp.states])
        spoiling[mdp.states[pairs]] = pairs
        kept = reached


def _may_fail(bellman: RobustBellman, goal: BoolArray) -> Surely:
    """Nobody wants it: from where does a path lead to the end, or to a set that can be kept for ever?"""
    mdp = bellman.mdp
    usable = ~goal[mdp.states]
    groups = graphs.end_components(bellman, usable, goal, is_fixed=False, payoff=True)
    spoiling = mdp.state_ptr[:-1].copy()
    endless = groups.label >= 0
    if bellman.ambiguity.invents and endless.any():  # nature may lead from anywhere to anywhere
        spoiling[mdp.states[groups.internal]] = np.flatnonzero(groups.internal)
        return Surely(goal.copy(), spoiling)
    sources, targets = graphs.edges(mdp, usable)
    ending = np.zeros(mdp.n_states, dtype=bool)
    ending[sources[targets == mdp.n_states]] = True
    fails, towards = graphs.paths_to(sources, targets, (endless | ending) & ~goal)
    lengths = np.diff(mdp.indptr)
    entries = np.flatnonzero(mdp.indices == np.repeat(towards[mdp.states], lengths))
    pairs = np.searchsorted(mdp.indptr, entries, side="right") - 1
    spoiling[mdp.states[pairs]] = pairs
    out = np.searchsorted(mdp.indptr, np.flatnonzero(mdp.indices == mdp.n_states), side="right") - 1
    spoiling[mdp.states[out]] = out
    spoiling[mdp.states[groups.internal]] = np.flatnonzero(groups.internal)
    return Surely(~fails, spoiling)


def _reached_within(
    bellman: RobustBellman, goal: BoolArray, kept: BoolArray, *, player_wants: bool, nature_wants: bool
) -> tuple[BoolArray, BoolArray]:
    """States of `kept` from which the goal is reached with positive probability before anybody can leave `kept`.

    And the pairs, (n_pairs,), after which that is so.
    """
    mdp = bellman.mdp
    inside = np.append(kept, False)[mdp.indices]
    if nature_wants:
        stays = bellman.can_avoid(~inside)
    else:
        stays = np.logical_and.reduceat(inside, mdp.indptr[:-1])
        if bellman.ambiguity.invents:
            stays &= kept.all()
    if player_wants and (nature_wants or bellman.ambiguity.keeps_support):
        usable = stays & kept[mdp.states] & ~goal[mdp.states]
        return graphs.can_reach(*graphs.edges(mdp, usable), goal) & (kept | goal), stays
    reached = goal.copy()
    combine = np.logical_or if player_wants else np.logical_and
    while True:
        hits = np.append(reached, False)[mdp.indices] & inside
        if nature_wants:
            gets_there = stays & np.logical_or.reduceat(hits, mdp.indptr[:-1])
        else:
            gets_there = stays & ~bellman.can_avoid(hits)
        following = reached | (kept & combine.reduceat(gets_there, mdp.state_ptr[:-1]))
        if (following == reached).all():
            return reached, gets_there
        reached = following
