"""A policy as the list of pairs that it uses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.models import MDP

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class PolicyRows(NamedTuple):
    """State s uses pairs[state_ptr[s]:state_ptr[s+1]] with these weights; starts are offsets of their successors."""

    pairs: IntArray
    weights: FloatArray
    state_ptr: IntArray
    starts: IntArray

    def actions(self, mdp: MDP) -> IntArray:
        """The likeliest action of each state, (S,)."""
        table = np.zeros((mdp.n_states, mdp.n_actions))
        table[mdp.states[self.pairs], mdp.actions[self.pairs]] = self.weights
        return np.asarray(table.argmax(axis=1), dtype=np.int64)

    def on(self, mdp: MDP) -> PolicyRows:
        """The same policy on a model with the same pairs and other successors."""
        return rows_of_pairs(mdp, self.pairs)._replace(weights=self.weights, state_ptr=self.state_ptr)


def policy_rows(mdp: MDP, policy: npt.ArrayLike) -> PolicyRows:
    """From (S,) actions or (S, A) probabilities, checked against the actions that are available."""
    array = np.asarray(policy)
    if array.shape == (mdp.n_states,):
        return _deterministic(mdp, array)
    if array.shape == (mdp.n_states, mdp.n_actions):
        return _stochastic(mdp, array.astype(np.float64))
    shapes = f"({mdp.n_states},) or ({mdp.n_states}, {mdp.n_actions})"
    _checks.fail(f"policy must hold actions or probabilities, of shape {shapes}: got {array.shape}")


def rows_of_pairs(mdp: MDP, pairs: IntArray) -> PolicyRows:
    """The deterministic policy that uses these pairs, (S,)."""
    starts = np.zeros(len(pairs) + 1, dtype=np.int64)
    np.cumsum(mdp.indptr[pairs + 1] - mdp.indptr[pairs], out=starts[1:])
    return PolicyRows(pairs.copy(), np.ones(len(pairs)), np.arange(len(pairs) + 1), starts)


def _deterministic(mdp: MDP, actions: npt.NDArray[np.generic]) -> PolicyRows:
    whole = actions.astype(np.int64)
    _checks.must(bool(np.all(whole == actions)), "policy must hold whole numbers of actions")
    table = np.full((mdp.n_states, mdp.n_actions), -1, dtype=np.int64)
    table[mdp.states, mdp.actions] = np.arange(mdp.n_pairs)
    outside = np.flatnonzero((whole < 0) | (whole >= mdp.n_actions))
    if outside.size:
        s = outside[0]
        _checks.fail(f"policy must name actions in 0..{mdp.n_actions - 1}: got {whole[s]} at {mdp.state_name(s)}")
    pairs = table[np.arange(mdp.n_states), whole]
    missing = np.flatnonzero(pairs < 0)
    if missing.size:
        _unavailable(mdp, int(missing[0]), int(whole[missing[0]]))
    return rows_of_pairs(mdp, pairs)


def _stochastic(mdp: MDP, table: FloatArray) -> PolicyRows:
    wrong = np.argwhere(~(table >= 0) | np.isinf(table))
    if len(wrong):
        s, a = wrong[0]
        _checks.fail(f"policy must be finite and at least 0: got {table[s, a]:g} at policy[{s}, {a}]")
    weights = mdp.pairs(table, "policy")
    left = table.copy()
    left[mdp.states, mdp.actions] = 0.0
    stray = np.argwhere(left > 0)
    if len(stray):
        _unavailable(mdp, int(stray[0][0]), int(stray[0][1]))
    sums = table.sum(axis=1)
    off = np.flatnonzero(np.abs(sums - 1) > _checks.SUM_TOLERANCE)
    if off.size:
        _checks.fail(f"policy[{off[0]}] must sum to 1: got {sums[off[0]]:.9g}")
    pairs = np.flatnonzero(weights > 0)
    weights = weights[pairs] / sums[mdp.states[pairs]]
    state_ptr = np.searchsorted(mdp.states[pairs], np.arange(mdp.n_states + 1))
    return rows_of_pairs(mdp, pairs)._replace(weights=weights, state_ptr=state_ptr)


def _unavailable(mdp: MDP, state: int, action: int) -> None:
    _checks.fail(
        f"policy must use available actions only: it puts mass on {mdp.action_name(action)} in {mdp.state_name(state)}"
    )
