"""From what users bring to CSR rows, with checks that name the offender."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import BoolArray, FloatArray, IndexArray
from robustmdp.models import columns, consistency, naming, row_sums
from robustmdp.models.assembly import Block, Parts, Wording, assemble, check_actions, parts_of
from robustmdp.models.frames import Frame
from robustmdp.models.headers import ENDINGS, OUTCOME, find_model_columns
from robustmdp.models.naming import Names


def from_arrays(transitions: Any, rewards: Any, discount: float, names: Names) -> Parts:
    """See MDP.from_arrays."""
    state, action, following, probability, shape = (
        _read_sparse(transitions) if _is_sparse_list(transitions) else _read_dense(transitions)
    )
    reward = _look_up_rewards(rewards, state, action, following, shape)
    block = Block(state, action, following, probability, reward)
    return _build(block, shape, _checks.model_discount(discount), names, "transitions")


def _is_sparse_list(thing: Any) -> bool:
    return isinstance(thing, (list, tuple)) and len(thing) > 0 and all(hasattr(item, "tocsr") for item in thing)


def _read_dense(transitions: Any) -> tuple[IndexArray, IndexArray, IndexArray, FloatArray, tuple[int, int]]:
    array = columns.real_numbers("transitions", transitions)
    _checks.must(
        array.ndim == 3 and array.shape[0] == array.shape[2] and array.size > 0,
        f"transitions must have shape (S, A, S), or be a list of A sparse (S, S) matrices: got shape {array.shape}",
    )
    state, action, following = np.nonzero(array)
    return state, action, following, array[state, action, following], (array.shape[0], array.shape[1])


def _read_sparse(matrices: Sequence[Any]) -> tuple[IndexArray, IndexArray, IndexArray, FloatArray, tuple[int, int]]:
    n_states = matrices[0].shape[0]
    parts = []
    for index, matrix in enumerate(matrices):
        _checks.must(
            matrix.shape == (n_states, n_states) and n_states > 0,
            f"transitions must be square matrices of one size: got {matrix.shape} at transitions[{index}], "
            f"and {matrices[0].shape} at transitions[0]",
        )
        csr = _check_csr(f"transitions[{index}]", matrix)
        state = np.repeat(np.arange(n_states), np.diff(csr.indptr))
        probability = columns.real_numbers(f"the entries of transitions[{index}]", csr.data)
        parts.append((state, np.full(csr.nnz, index), csr.indices.astype(np.int64), probability))
    state, action, following, probability = (np.concatenate(column) for column in zip(*parts, strict=True))
    return state, action, following, probability, (n_states, len(matrices))


def _check_csr(name: str, matrix: Any) -> Any:
    """SciPy does not look at the indices that a matrix was made with."""
    csr = matrix.tocsr()
    try:
        csr.check_format(full_check=True)
    except ValueError as problem:
        _checks.fail(f"{name} must be a valid sparse matrix: {problem}")
    return csr


def _look_up_rewards(
    rewards: Any, state: IndexArray, action: IndexArray, following: IndexArray, shape: tuple[int, int]
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
            found = _check_csr(f"rewards[{a}]", matrix)[state[chosen], following[chosen]]
            out[chosen] = columns.real_numbers(f"the entries of rewards[{a}]", np.asarray(found).ravel())
        return out
    array = columns.real_numbers("rewards", rewards)
    shapes = {(n_states,), (n_states, n_actions), (n_states, n_actions, n_states)}
    _checks.must(
        array.shape in shapes,
        f"rewards must have shape (S,), (S, A) or (S, A, S) with S = {n_states} and A = {n_actions}: got {array.shape}",
    )
    index = (state, action, following)[: array.ndim]
    return array[index]


def from_rows(
    given: tuple[npt.ArrayLike, ...],
    discount: float,
    *,
    terminated: npt.ArrayLike | None,
    n_states: int | None,
    names: Names,
    place: columns.Place | None = None,
) -> Parts:
    """See MDP.from_rows; `place` says where an entry of a column stands."""
    raw = columns.to_columns(dict(zip(columns.NAMES, given, strict=True)))
    _checks.must(len(raw["state"]) > 0, "rows must hold at least one transition: got none")
    named = naming.are_named(raw)
    numbered, names = naming.number_columns(raw, names)
    if n_states is None and named[0]:
        n_states = len(names[0] or ())
    last = None if n_states is None else columns.check_size("n_states", n_states) - 1
    state = columns.whole_numbers("state", numbered["state"], last, place)
    action = columns.whole_numbers("action", numbered["action"], place=place)
    following = columns.whole_numbers("next_state", numbered["next_state"], place=place)
    probability = columns.real_numbers("probability", numbered["probability"], place)
    reward = columns.real_numbers("reward", numbered["reward"], place)
    n_states = int(max(state.max(), following.max())) + 1 if last is None else last + 1
    must = f"lie in 0..{n_states} ({n_states} is the end)"
    columns.refuse_where(following > n_states, must, "next_state", following, place)
    ends = None
    if terminated is not None:
        ends = columns.flags("terminated", terminated, place)
        _checks.must(ends.shape == state.shape, f"terminated must be as long as state ({len(state)}): got {ends.shape}")
    n_actions = len(names[1] or ()) if named[1] else int(action.max()) + 1
    block = Block(state, action, following, probability, reward)
    parts = _build(block, (n_states, n_actions), _checks.model_discount(discount), names, "rows", ends)
    consistency.check_room(n_states, n_actions, len(parts["indices"]))
    return parts


def from_frame(frame: Any, discount: float) -> Parts:
    """See MDP.from_frame."""
    table = Frame.of(frame)
    found = find_model_columns(table.names, "the frame")
    _checks.must(
        "outcome" not in found, f"the frame must hold one model: choose one of column {OUTCOME!r} and drop the column"
    )
    other = next((name for name in table.names if name.lower() in ENDINGS and name != "terminated"), None)
    _checks.must(
        other is None, f"the frame must call the column {other!r} 'terminated' if it marks endings, or drop it"
    )
    ended = table.column("terminated") if "terminated" in table.names else None
    given = tuple(table.column(found[name]) for name in columns.NAMES)
    return from_rows(given, discount, terminated=ended, n_states=None, names=(None, None))


def _build(
    block: Block, shape: tuple[int, int], discount: float, names: Names, where: str, ends: BoolArray | None = None
) -> Parts:
    """Sort, merge and check."""
    n_states, n_actions = shape
    pair = block.state * n_actions + block.action
    given: Any = map(np.ascontiguousarray, block)
    if (pair[1:] < pair[:-1]).any():
        order = np.argsort(pair, kind="stable")
        given = (*(column[order] for column in block[:-1]), block.outcome)
        ends = None if ends is None else ends[order]
    block = Block(*given)
    check_actions(block.state, n_states, _checks.names("state", names[0], n_states))
    successor = block.next_state
    if ends is not None:
        # An entry that ends keeps its successor's identity while merging: a hole and a goal are two outcomes.
        ended = np.unique(successor[ends])
        successor = np.where(ends, n_states + 1 + np.searchsorted(ended, successor), successor)
    wording = Wording(
        "the {} of each transition".format,
        lambda row: f"{where}[{block.state[row]}, {block.action[row]}, {block.next_state[row]}]",
    )
    rows = assemble([block._replace(next_state=successor)], len(pair), wording)
    assert rows is not None  # since the block is sorted
    rows = rows._replace(indices=np.minimum(rows.indices, np.int32(n_states)))
    parts = parts_of(rows, n_states, discount, n_actions=n_actions, names=names)
    row_sums.normalise(
        rows.indptr,
        rows.probabilities,
        lambda pair, total: f"{where}[{rows.states[pair]}, {rows.actions[pair]}] must sum to 1: got {total:.9g}",
        in_place=True,
    )
    return parts
