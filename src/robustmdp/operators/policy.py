"""A policy as the list of pairs that it uses."""

from __future__ import annotations

import reprlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.models import MDP
from robustmdp.models.space import StateActionSpace


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


class PolicyPairs(NamedTuple):
    """The pairs that a policy uses, by rising numbers, and their probabilities, (n,) each."""

    pairs: IntArray
    weights: FloatArray


def likeliest(policy: npt.NDArray[Any]) -> IntArray:
    """The likeliest action of each state, (S,), of (S,) actions or (S, A) probabilities.

    >>> likeliest(np.array([[0.3, 0.7], [1.0, 0.0]])).tolist()
    [1, 0]
    """
    return np.asarray(policy if policy.ndim == 1 else policy.argmax(axis=1), dtype=np.int64)


def probability_of_likeliest(policy: npt.NDArray[Any]) -> FloatArray:
    """(S,): 1 where actions are certain."""
    return np.ones(len(policy)) if policy.ndim == 1 else np.asarray(policy.max(axis=1))


def differ(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> BoolArray:
    """The states in which two policies do not do the same, (S,); each is (S,) actions or (S, A) probabilities.

    >>> differ(np.array([1, 0]), np.array([[0.3, 0.7], [1.0, 0.0]])).tolist()
    [True, False]
    """
    if first.ndim == second.ndim == 1:
        return np.asarray(first != second)
    n_actions = (first if first.ndim > 1 else second).shape[1]
    tables = (policy if policy.ndim > 1 else np.eye(n_actions)[policy] for policy in (first, second))
    return np.asarray((next(tables) != next(tables)).any(axis=1))


def policy_array(policy: npt.ArrayLike) -> npt.NDArray[np.generic]:
    """A copy of a policy, of any shape."""
    try:
        return np.array(policy)
    except ValueError:  # rows of different lengths
        _checks.fail(f"policy must be an array of actions or probabilities: got {reprlib.repr(policy)}")


def policy_pairs(space: StateActionSpace, policy: npt.ArrayLike) -> PolicyPairs:
    """From (S,) actions or (S, A) probabilities, checked against the actions that are available."""
    array = policy_array(policy)
    if array.shape == (space.n_states,):
        return _deterministic(space, array)
    if array.shape == (space.n_states, space.n_actions):
        return _stochastic(space, array.astype(np.float64))
    shapes = f"({space.n_states},) or ({space.n_states}, {space.n_actions})"
    _checks.fail(f"policy must hold actions or probabilities, of shape {shapes}: got {array.shape}")


def policy_rows(mdp: MDP, policy: npt.ArrayLike) -> PolicyRows:
    """The rows of a policy, as `policy_pairs` takes it."""
    pairs, weights = policy_pairs(mdp, policy)
    state_ptr = np.searchsorted(pairs, mdp.state_ptr)
    return rows_of_pairs(mdp, pairs)._replace(weights=weights, state_ptr=state_ptr)


def rows_of_pairs(mdp: MDP, pairs: IntArray) -> PolicyRows:
    """The deterministic policy that uses these pairs, (S,)."""
    starts = np.zeros(len(pairs) + 1, dtype=np.int64)
    np.cumsum(mdp.indptr[pairs + 1] - mdp.indptr[pairs], out=starts[1:])
    return PolicyRows(pairs.copy(), np.ones(len(pairs)), np.arange(len(pairs) + 1), starts)


def _deterministic(space: StateActionSpace, actions: npt.NDArray[np.generic]) -> PolicyPairs:
    if actions.dtype.kind not in "biuf":
        _checks.refuse_type("policy", "numbers of actions", actions)
    whole = actions.astype(np.int64)
    _checks.must(bool(np.all(whole == actions)), "policy must hold whole numbers of actions")
    outside = np.flatnonzero((whole < 0) | (whole >= space.n_actions))
    if outside.size:
        s = outside[0]
        _checks.fail(f"policy must name actions in 0..{space.n_actions - 1}: got {whole[s]} at {space.state_name(s)}")
    if space.actions is None:
        return PolicyPairs(space.state_ptr[:-1] + whole, np.ones(len(whole)))
    table = np.full((space.n_states, space.n_actions), -1, dtype=np.int64)
    table[space.states, space.actions] = np.arange(space.n_pairs)
    pairs = table[np.arange(space.n_states), whole]
    missing = np.flatnonzero(pairs < 0)
    if missing.size:
        _unavailable(space, int(missing[0]), int(whole[missing[0]]))
    return PolicyPairs(pairs, np.ones(len(pairs)))


def _stochastic(space: StateActionSpace, table: FloatArray) -> PolicyPairs:
    wrong = np.argwhere(~(table >= 0) | np.isinf(table))
    if len(wrong):
        s, a = wrong[0]
        _checks.fail(f"policy must be finite and at least 0: got {table[s, a]:g} at policy[{s}, {a}]")
    weights, states = space.pairs(table, "policy"), space.states
    if space.actions is not None:
        left = table.copy()
        left[states, space.actions] = 0.0
        stray = np.argwhere(left > 0)
        if len(stray):
            _unavailable(space, int(stray[0][0]), int(stray[0][1]))
    sums = table.sum(axis=1)
    if (off := _checks.wrong_sums(sums)).size:
        _checks.fail(f"policy[{off[0]}] must sum to 1: got {sums[off[0]]:.9g}")
    pairs = np.flatnonzero(weights > 0)
    return PolicyPairs(pairs, weights[pairs] / sums[states[pairs]])


def _unavailable(space: StateActionSpace, state: int, action: int) -> None:
    place = f"{space.action_name(action)} in {space.state_name(state)}"
    _checks.fail(f"policy must use available actions only: it puts mass on {place}")
