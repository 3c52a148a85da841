"""From which states a goal is reached surely, depending on who wants it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustmdp._arrays import BoolArray, IntArray
from robustmdp.operators.pinned import PinnedBellman
from robustmdp.planning.totals import graphs


class Surely(NamedTuple):
    """The states from which the goal is reached with probability 1, (S,).

    `spoiling` (S,) has, for the other states, a pair with which a player who does not want it prevents that.
    """

    states: BoolArray
    spoiling: IntArray


def reached_surely(bellman: PinnedBellman, goal: BoolArray, *, player_wants: bool, nature_wants: bool) -> Surely:
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


def _may_fail(bellman: PinnedBellman, goal: BoolArray) -> Surely:
    """Nobody wants it: from where does a path lead to the end, or to a set that can be kept for ever?"""
    mdp = bellman.mdp
    usable = ~goal[mdp.states]
    groups = graphs.end_components(bellman, usable, goal, is_fixed=False, payoff=True)
    spoiling = mdp.state_ptr[:-1].copy()
    endless = groups.label >= 0
    sources, targets = graphs.edges(mdp, usable)
    ending = np.zeros(mdp.n_states, dtype=bool)
    ending[sources[targets == mdp.n_states]] = True
    failing = (endless | ending) & ~goal
    paths = graphs.paths_to(sources, targets, failing)
    leaping = np.flatnonzero(usable & bellman.leads_anywhere)
    if (paths.distance[bellman.ambiguity.candidates(mdp.n_states)] >= 0).any():
        spoiling[mdp.states[leaping]] = leaping
        failing[mdp.states[leaping]] = True
        paths = graphs.paths_to(sources, targets, failing)
    lengths = np.diff(mdp.indptr)
    entries = np.flatnonzero(mdp.indices == np.repeat(paths.following[mdp.states], lengths))
    pairs = np.searchsorted(mdp.indptr, entries, side="right") - 1
    spoiling[mdp.states[pairs]] = pairs
    out = np.searchsorted(mdp.indptr, np.flatnonzero(mdp.indices == mdp.n_states), side="right") - 1
    spoiling[mdp.states[out]] = out
    spoiling[mdp.states[groups.internal]] = np.flatnonzero(groups.internal)
    return Surely(paths.distance < 0, spoiling)


def _reached_within(
    bellman: PinnedBellman, goal: BoolArray, kept: BoolArray, *, player_wants: bool, nature_wants: bool
) -> tuple[BoolArray, BoolArray]:
    """States of `kept` from which the goal is reached with positive probability before anybody can leave `kept`.

    And the pairs, (n_pairs,), after which that is so.
    """
    mdp = bellman.mdp
    inside, anywhere = np.append(kept, False), bellman.ambiguity.candidates(mdp.n_states)
    if nature_wants:
        stays = bellman.can_avoid_states(~inside)
    else:
        stays = np.logical_and.reduceat(inside[mdp.indices], mdp.indptr[:-1])
        stays &= ~bellman.leads_anywhere | kept[anywhere].all()
    if player_wants and (bellman.ambiguity.keeps_support or (nature_wants and not bellman.ambiguity.invents)):
        usable = stays & kept[mdp.states] & ~goal[mdp.states]
        return graphs.can_reach(*graphs.edges(mdp, usable), goal) & (kept | goal), stays
    reached = goal.copy()
    combine = np.logical_or if player_wants else np.logical_and
    while True:
        hits = np.append(reached, False) & inside
        if nature_wants:
            gets_there = np.logical_or.reduceat(hits[mdp.indices], mdp.indptr[:-1])
            gets_there = stays & (gets_there | (bellman.leads_anywhere & hits[anywhere].any()))
        else:
            gets_there = stays & ~bellman.can_avoid_states(hits)
        following = reached | (kept & combine.reduceat(gets_there, mdp.state_ptr[:-1]))
        if (following == reached).all():
            return reached, gets_there
        reached = following
