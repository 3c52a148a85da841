"""From what users bring to CSR rows, with checks that name the offender."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.models.mdp import MDP, FloatArray, IntArray

_EXACT = 1e-12  # rows closer to 1 than this are kept to the bit, so that a written model reads back equal
Names = tuple[Sequence[str] | None, Sequence[str] | None]


def from_arrays(
    transitions: Any,
    rewards: Any,
    discount: float,
    state_names: Sequence[str] | None,
    action_names: Sequence[str] | None,
) -> MDP:
    """See MDP.from_arrays."""
    sparse = _is_sparse_list(transitions)
    state, action, following, probability, shape = (
        _sparse_entries(transitions) if sparse else _dense_entries(transitions)
    )
    entry_rewards = _rewards_of_entries(rewards, state, action, following, shape)
    return _assemble(
        (state, action, following, probability, entry_rewards),
        shape,
        _checks.discount(discount),
        names=(state_names, action_names),
        where="transitions",
    )


def _is_sparse_list(thing: Any) -> bool:
    return isinstance(thing, (list, tuple)) and len(thing) > 0 and all(hasattr(item, "tocsr") for item in thing)


def _dense_entries(transitions: Any) -> tuple[IntArray, IntArray, IntArray, FloatArray, tuple[int, int]]:
    array = np.asarray(transitions, dtype=np.float64)
    _checks.must(
        array.ndim == 3 and array.shape[0] == array.shape[2] and array.size > 0,
        f"transitions must have shape (S, A, S), or be a list of A sparse (S, S) matrices: got shape {array.shape}",
    )
    state, action, following = np.nonzero(array)
    return state, action, following, array[state, action, following], (array.shape[0], array.shape[1])


def _sparse_entries(matrices: Sequence[Any]) -> tuple[IntArray, IntArray, IntArray, FloatArray, tuple[int, int]]:
    n_states = matrices[0].shape[0]
    parts = []
    for index, matrix in enumerate(matrices):
        _checks.must(
            matrix.shape == (n_states, n_states),
            f"transitions must be square matrices of one size: got {matrix.shape} at transitions[{index}], "
            f"and {matrices[0].shape} at transitions[0]",
        )
        csr = matrix.tocsr()
        state = np.repeat(np.arange(n_states), np.diff(csr.indptr))
        parts.append((state, np.full(csr.nnz, index), csr.indices, csr.data.astype(np.float64)))
    state, action, following, probability = (np.concatenate(column) for column in zip(*parts, strict=True))
    return state, action, following, probability, (n_states, len(matrices))


def _rewards_of_entries(
    rewards: Any, state: IntArray, action: IntArray, following: IntArray, shape: tuple[int, int]
) -> FloatArray:
    """The reward of each transition, whatever the rewards depend on."""
    n_states, n_actions = shape
    if _is_sparse_list(rewards):
        _checks.must(
            len(rewards) == n_actions and all(r.shape == (n_states, n_states) for r in rewards),
            f"rewards must be {n_actions} sparse matrices of shape {(n_states, n_states)}: "
            f"got {len(rewards)} of shape {rewards[0].shape}",
        )
        out = np.empty(len(state))
        for a, matrix in enumerate(rewards):
            chosen = action == a
            out[chosen] = np.asarray(matrix.tocsr()[state[chosen], following[chosen]]).ravel()
        return out
    array = np.asarray(rewards, dtype=np.float64)
    shapes = {(n_states,), (n_states, n_actions), (n_states, n_actions, n_states)}
    _checks.must(
        array.shape in shapes,
        f"rewards must have shape (S,), (S, A) or (S, A, S) with S = {n_states} and A = {n_actions}: got {array.shape}",
    )
    index = (state, action, following)[: array.ndim]
    return array[index]


def from_rows(
    columns: tuple[npt.ArrayLike, ...],
    discount: float,
    *,
    terminated: npt.ArrayLike | None,
    n_states: int | None,
    names: Names,
) -> MDP:
    """See MDP.from_rows."""
    labels = ("state", "action", "next_state", "probability", "reward")
    arrays = [np.asarray(column) for column in columns]
    for label, array in zip(labels, arrays, strict=True):
        _checks.must(
            array.ndim == 1 and len(array) == len(arrays[0]),
            f"{label} must be 1-D and as long as state ({len(arrays[0])}): got shape {array.shape}",
        )
    _checks.must(len(arrays[0]) > 0, "rows must hold at least one transition: got none")
    for label, array in zip(labels[:3], arrays[:3], strict=True):
        _check_index(label, array)
    state, action, following = (array.astype(np.int64, copy=False) for array in arrays[:3])
    probability, reward = (array.astype(np.float64, copy=False) for array in arrays[3:])
    largest = int(max(state.max(), following.max()))
    if n_states is None:
        n_states = largest + 1
    _checks.must(int(state.max()) < n_states, f"state must lie in 0..{n_states - 1}: got {int(state.max())}")
    _checks.must(largest <= n_states, f"next_state must lie in 0..{n_states} ({n_states} is the end): got {largest}")
    ends = None
    if terminated is not None:
        ends = np.asarray(terminated, dtype=bool)
        _checks.must(ends.shape == state.shape, f"terminated must be as long as state ({len(state)}): got {ends.shape}")
    return _assemble(
        (state, action, following, probability, reward),
        (n_states, int(action.max()) + 1),
        _checks.discount(discount),
        names=names,
        where="rows",
        ends=ends,
    )


def _check_index(label: str, array: npt.NDArray[Any]) -> None:
    if not np.issubdtype(array.dtype, np.integer):
        whole = np.issubdtype(array.dtype, np.floating) and bool(np.all(array == np.floor(array)))
        _checks.must(whole, f"{label} must hold whole numbers: got {array.dtype}")
    wrong = np.flatnonzero(array < 0)
    if wrong.size:
        _checks.fail(f"{label} must be at least 0: got {array[wrong[0]]} at {label}[{wrong[0]}]")


def _assemble(
    columns: tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray],
    shape: tuple[int, int],
    discount: float,
    *,
    names: Names,
    where: str,
    ends: npt.NDArray[np.bool_] | None = None,
) -> MDP:
    """Sort, merge, check and store."""
    state, action, following, probability, reward = columns
    n_states, n_actions = shape
    _check_entries(state, action, following, probability, reward, where)
    positive = probability > 0
    if not positive.all():
        state, action, following, probability, reward = (column[positive] for column in columns)
        ends = ends[positive] if ends is not None else None
    # An entry that ends keeps its successor's identity while merging: a hole and a goal are two outcomes.
    key = following if ends is None else following + ends * (n_states + 1)
    row = state * n_actions + action
    row, key, probability, reward = _merged(row, key, probability, reward)
    indices = np.where(key > n_states, n_states, key).astype(np.int32)
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    indptr = np.append(starts, len(row)).astype(np.int64)
    pairs = row[starts]
    pair_states = pairs // n_actions
    _check_actions(pair_states, n_states, names[0])
    probability = _normalised(probability, indptr, pair_states, pairs % n_actions, where)
    return MDP(
        indptr=indptr,
        indices=indices,
        probabilities=probability,
        rewards=_rewards_by_pair(reward, indptr),
        state_ptr=np.searchsorted(pair_states, np.arange(n_states + 1)).astype(np.int64),
        actions=(pairs % n_actions).astype(np.int32),
        n_actions=n_actions,
        discount=discount,
        state_names=_checks.names("state", names[0], n_states),
        action_names=_checks.names("action", names[1], n_actions),
    )


def _check_entries(
    state: IntArray, action: IntArray, following: IntArray, probability: FloatArray, reward: FloatArray, where: str
) -> None:
    for label, wrong, must in (
        ("probability", ~np.isfinite(probability), "be finite"),
        ("probability", probability < 0, "be at least 0"),
        ("reward", ~np.isfinite(reward), "be finite"),
    ):
        first = np.flatnonzero(wrong)
        if first.size:
            i = first[0]
            value = (probability if label == "probability" else reward)[i]
            place = f"{where}[{state[i]}, {action[i]}, {following[i]}]"
            _checks.fail(f"the {label} of each transition must {must}: got {value:g} at {place}")


def _merged(
    row: IntArray, key: IntArray, probability: FloatArray, reward: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Sorted by row and successor, with equal entries merged: probabilities add, rewards take their mean."""
    rising = row[1:] > row[:-1]
    level = (row[1:] == row[:-1]) & (key[1:] >= key[:-1])
    if not np.all(rising | level):
        order = np.lexsort((key, row))
        row, key, probability, reward = row[order], key[order], probability[order], reward[order]
    new = np.ones(len(row), dtype=bool)
    new[1:] = (row[1:] != row[:-1]) | (key[1:] != key[:-1])
    if new.all():
        return row, key, probability, reward
    starts = np.flatnonzero(new)
    total = np.add.reduceat(probability, starts)
    alike = np.maximum.reduceat(reward, starts) == np.minimum.reduceat(reward, starts)
    means = np.add.reduceat(probability * reward, starts) / total
    return row[starts], key[starts], total, np.where(alike, reward[starts], means)


def _check_actions(pair_states: IntArray, n_states: int, state_names: Sequence[str] | None) -> None:
    missing = np.flatnonzero(np.bincount(pair_states, minlength=n_states) == 0)
    if missing.size:
        name = f" ({state_names[missing[0]]})" if state_names is not None and len(state_names) == n_states else ""
        _checks.fail(f"every state must have at least one action: state {missing[0]}{name} has none")


def _normalised(
    probability: FloatArray, indptr: IntArray, pair_states: IntArray, pair_actions: IntArray, where: str
) -> FloatArray:
    """Rows that sum to 1 within the tolerance, rescaled where they are off by more than rounding."""
    sums = np.add.reduceat(probability, indptr[:-1])
    wrong = np.flatnonzero(np.abs(sums - 1) > _checks.SUM_TOLERANCE)
    if wrong.size:
        i = wrong[0]
        _checks.fail(f"{where}[{pair_states[i]}, {pair_actions[i]}] must sum to 1: got {sums[i]:.9g}")
    rough = np.abs(sums - 1) > _EXACT
    if rough.any():
        probability = probability / np.repeat(np.where(rough, sums, 1.0), np.diff(indptr))
    return np.array(probability, dtype=np.float64)


def _rewards_by_pair(reward: FloatArray, indptr: IntArray) -> FloatArray:
    """One reward per pair where it does not depend on the successor, otherwise one per transition."""
    first = reward[indptr[:-1]]
    low = np.minimum.reduceat(reward, indptr[:-1])
    high = np.maximum.reduceat(reward, indptr[:-1])
    return np.array(first if np.array_equal(low, high) else reward, dtype=np.float64)
