"""Proofs of bounds, by one certified sweep each. What was proposed, and how, does not matter here."""

from __future__ import annotations

import numpy as np

from robustmdp._arrays import BoolArray, FloatArray
from robustmdp.models import MDP
from robustmdp.operators.policy import PolicyRows
from robustmdp.planning.run import NEGLIGIBLE
from robustmdp.planning.totals.problem import Problem, Rule

_EPS = float(np.finfo(float).eps)
_MOST_LEVELS = 32  # values at which a nature that adds successors is asked to stay; one sweep each


def proves_upper(problem: Problem, u: FloatArray) -> bool:
    """Does T u <= u hold in the way that the rule asks for? Then the value is at most u."""
    bellman = problem.bellman
    bracket = bellman.bracket(u, problem.policy)
    upper = bracket.upper + _policy_rounding(problem.policy, bracket.q_upper) + NEGLIGIBLE
    if problem.upper_rule is Rule.PROGRESS:
        holds = (upper < u) | (problem.idle_is_zero & (u >= 0.0))
        return bool((holds | bellman.pinned).all())
    states = bellman.mdp.states
    fits = bracket.q_upper + NEGLIGIBLE <= u[states]
    fits |= ~problem.usable | bellman.pinned[states]
    holds = (upper <= u) if problem.policy is not None else np.logical_and.reduceat(fits, bellman.mdp.state_ptr[:-1])
    if (holds | bellman.pinned).all():
        return True
    fits |= _stays(problem, u, ~fits & _never_pays(bellman.mdp), rises=True)
    return bool((_every_pair(bellman.mdp, fits) | holds | bellman.pinned).all())


def proves_lower(problem: Problem, policy: PolicyRows, l: FloatArray) -> bool:  # noqa: E741
    """Does l <= T l hold for the policy in the way that the rule asks for? Then its value is at least l."""
    bellman = problem.bellman
    bracket = bellman.bracket(l, policy)
    lower = bracket.lower - _policy_rounding(policy, bracket.q_lower) - NEGLIGIBLE
    if problem.lower_rule is Rule.PROGRESS:
        holds = (lower > l) | (problem.idle_is_zero & (l <= 0.0))
        return bool((holds | bellman.pinned).all())
    holds = (lower >= l) | bellman.pinned
    if holds.all():
        return True
    states = bellman.mdp.states
    unused = np.ones(bellman.mdp.n_pairs, dtype=bool)
    unused[policy.pairs] = False
    fits = unused | (bracket.q_lower - NEGLIGIBLE >= l[states])
    fits |= _stays(problem, l, ~fits & _never_costs(bellman.mdp), rises=False)
    return bool((_every_pair(bellman.mdp, fits) | holds).all())


def _every_pair(mdp: MDP, fits: BoolArray) -> BoolArray:
    holds: BoolArray = np.logical_and.reduceat(fits, mdp.state_ptr[:-1])
    return holds


def _policy_rounding(policy: PolicyRows | None, q: FloatArray) -> float:
    """What summing over the actions of a state may lose; nothing where one of them is used."""
    if policy is None or len(policy.pairs) == len(policy.state_ptr) - 1:
        return 0.0
    longest = int(np.diff(policy.state_ptr).max())
    return (longest + 2) * _EPS * float(np.max(np.abs(q[policy.pairs])))


def _stays(problem: Problem, bound: FloatArray, asked: BoolArray, *, rises: bool) -> BoolArray:
    """Pairs of those asked after which the bound cannot be on its wrong side: above it (`rises`), or below.

    A nature that is against that bound's owner must find no such successor; one that is for it may avoid them.
    """
    bellman = problem.bellman
    mdp = bellman.mdp
    padded = np.append(np.where(bellman.pinned, bellman.values, bound), 0.0)
    before = np.repeat(bound[mdp.states], np.diff(mdp.indptr))
    after = padded[mdp.indices]
    marked = after > before if rises else after < before
    if problem.nature_helps == rises:
        found = np.logical_or.reduceat(marked, mdp.indptr[:-1])
        anywhere = padded[bellman.ambiguity.candidates(mdp.n_states)]
        if len(anywhere):
            beyond = bound[mdp.states] < anywhere.max() if rises else bound[mdp.states] > anywhere.min()
            found |= bellman.leads_anywhere & beyond
        return asked & ~found
    if not bellman.ambiguity.invents:
        return asked & bellman.can_avoid(marked)
    stays = np.zeros(mdp.n_pairs, dtype=bool)
    for level in np.unique(bound[mdp.states[asked]])[:_MOST_LEVELS]:
        beyond = padded > level if rises else padded < level
        stays |= (bound[mdp.states] == level) & bellman.can_avoid_states(beyond)
    return asked & stays


def _never_pays(mdp: MDP) -> BoolArray:
    if not mdp.rewards_on_successors:
        return np.asarray(mdp.rewards <= 0.0)
    return ~np.logical_or.reduceat(mdp.rewards > 0.0, mdp.indptr[:-1])


def _never_costs(mdp: MDP) -> BoolArray:
    if not mdp.rewards_on_successors:
        return np.asarray(mdp.rewards >= 0.0)
    return ~np.logical_or.reduceat(mdp.rewards < 0.0, mdp.indptr[:-1])
