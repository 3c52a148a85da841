"""From which states a goal is reached surely, depending on who wants it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from robustmdp.operators import RobustBellman
from robustmdp.planning.totals import graphs

BoolArray = npt.NDArray[np.bool_]


def reached_surely(bellman: RobustBellman, goal: BoolArray, *, player_wants: bool, nature_wants: bool) -> BoolArray:
    """The states from which the goal is reached with probability 1, (S,), its own included.

    The greatest X such that from all of X a path inside X leads to the goal, where those who want it choose the path
    and the others cannot leave X: each round keeps the states from which that is so within the last X.
    """
    if not player_wants and not nature_wants:
        return ~_may_fail(bellman, goal)
    kept = np.ones(bellman.mdp.n_states, dtype=bool)
    while True:
        reached = _reached_within(bellman, goal, kept, player_wants=player_wants, nature_wants=nature_wants)
        if (reached == kept).all():
            return kept
        kept = reached


def _may_fail(bellman: RobustBellman, goal: BoolArray) -> BoolArray:
    """States from which a path leads to the end, or to a set that can be kept for ever."""
    mdp = bellman.mdp
    usable = ~goal[mdp.states]
    endless = graphs.end_components(bellman, usable, goal, is_fixed=False, payoff=True).label >= 0
    if bellman.ambiguity.invents and endless.any():
        return ~goal  # nature may lead from anywhere to anywhere
    sources, targets = graphs.edges(mdp, usable)
    endless[sources[targets == mdp.n_states]] = True
    return graphs.can_reach(sources, targets, endless & ~goal)


def _reached_within(
    bellman: RobustBellman, goal: BoolArray, kept: BoolArray, *, player_wants: bool, nature_wants: bool
) -> BoolArray:
    """States of `kept` from which the goal is reached with positive probability before anybody can leave `kept`."""
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
        return graphs.can_reach(*graphs.edges(mdp, usable), goal) & (kept | goal)
    reached = goal.copy()
    while True:
        hits = np.append(reached, False)[mdp.indices] & inside
        if nature_wants:
            gets_there = stays & np.logical_or.reduceat(hits, mdp.indptr[:-1])
        else:
            gets_there = stays & ~bellman.can_avoid(hits)
        combine = np.logical_or if player_wants else np.logical_and
        following = reached | (kept & combine.reduceat(gets_there, mdp.state_ptr[:-1]))
        if (following == reached).all():
            return reached
        reached = following
