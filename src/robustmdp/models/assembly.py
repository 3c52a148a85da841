"""The one builder of models: CSR rows from sorted transitions, checked and stored block by block in one compiled pass.

Memory is that of the result: what comes is never held a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray, IndexArray, IntArray
from robustmdp.models.columns import LARGEST as LARGEST
from robustmdp.models.rows import ranges

Parts = dict[str, Any]  # of a model, by the names of its fields

_MUST = {
    **dict.fromkeys(("state", "action", "next_state"), f"lie in 0..{LARGEST}"),
    "probability": "be finite and at least 0",
    "reward": "be finite",
    "outcome": "be one for all rows of a pair (read_outcomes returns a model for each)",
}


class Block(NamedTuple):
    """Some transitions: equally long 1-D arrays; `outcome` is empty where there are none."""

    state: IntArray
    action: IntArray
    next_state: IntArray
    probability: FloatArray
    reward: FloatArray
    outcome: IntArray = np.empty(0, np.int64)


class Rows(NamedTuple):
    """One row per pair, sorted by state and action.

    Beside the arrays: the largest state that was named and the transition that names it, and whether a reward may
    depend on the successor.
    """

    indptr: IndexArray
    indices: IndexArray
    probabilities: FloatArray
    rewards: FloatArray
    states: IndexArray
    actions: IndexArray
    largest_state: int = -1
    largest_state_row: int = -1
    rewards_on_successors: bool = True


class Origin(Protocol):
    """Where transitions come from, in the words of messages."""

    def label(self, column: str) -> str:
        """What a field of `Block` is called there."""

    def place(self, row: int) -> str:
        """Where a transition stands."""


class Wording(NamedTuple):
    """An `Origin` of arrays in memory."""

    label: Callable[[str], str]
    place: Callable[[int], str]


def assemble(blocks: Iterable[Block], length: int, origin: Origin) -> Rows | None:
    """The rows of at most `length` transitions, or None where these are not sorted by state and action.

    Transitions of probability 0 are left out; those with the same successor are merged: probabilities add, rewards take
    their mean.
    """
    from robustmdp import _core

    # Pages that nothing is written to cost nothing, so that a bound on the length will do.
    arrays: dict[str, Any] = {
        "indptr": np.empty(length + 1, np.int64),
        "indices": np.empty(length, np.int32),
        "probabilities": np.empty(length),
        "rewards": np.empty(length),
        "states": np.empty(length, np.int32),
        "actions": np.empty(length, np.int32),
    }
    builder = _core.SortedRows(**arrays, largest_index=LARGEST)
    seen = 0
    for block in blocks:
        if not builder.append(*block):
            if builder.flaw is _core.Flaw.order:
                return None
            _refuse(builder, block, seen, length, origin)
        seen += len(block.state)
    builder.finish()
    sizes = {"indptr": builder.n_pairs + 1, "states": builder.n_pairs, "actions": builder.n_pairs}
    for name, array in arrays.items():
        array.resize(sizes.get(name, builder.n_entries), refcheck=False)  # in place: nothing was written beyond
    if builder.repeats_successors:
        _merge_successors(arrays)
    return Rows(
        **arrays,
        largest_state=builder.largest_state,
        largest_state_row=builder.largest_state_row,
        rewards_on_successors=builder.rewards_on_successors,
    )


def _refuse(builder: Any, block: Block, seen: int, length: int, origin: Origin) -> NoReturn:
    name, row = builder.flaw.name, builder.flaw_row
    if name == "capacity":
        _checks.fail(f"there must be at most {length} transitions: more came")
    value = getattr(block, name)[row - seen].item()
    _checks.fail(f"{origin.label(name)} must {_MUST[name]}: got {value!r} at {origin.place(row)}")


def _merge_successors(arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Make one of the entries of a row that have the same successor; rows without such are not touched."""
    names = ("indices", "probabilities", "rewards")
    indptr, indices = arrays["indptr"], arrays["indices"]
    again = np.flatnonzero(indices[1:] == indices[:-1]) + 1
    row = np.searchsorted(indptr, again, side="right") - 1
    rows = np.unique(row[indptr[row] != again])  # an entry that starts a row does not repeat the one before
    sizes = indptr[rows + 1] - indptr[rows]
    entries = ranges(indptr[rows], sizes)
    merged_row, *merged = merge_successors(np.repeat(rows, sizes), *(arrays[name][entries] for name in names))
    counts = np.bincount(np.searchsorted(rows, merged_row), minlength=len(rows))
    places = ranges(indptr[rows], counts)
    kept = np.ones(len(indices), bool)
    kept[entries] = False
    kept[places] = True
    for name, part in zip(names, merged, strict=True):
        arrays[name][places] = part
        arrays[name] = arrays[name][kept]
    fewer = np.zeros(len(indptr), np.int64)
    fewer[rows + 1] = sizes - counts
    indptr -= np.cumsum(fewer)


def merge_successors(
    row: IndexArray, key: IndexArray, probability: FloatArray, reward: FloatArray
) -> tuple[IndexArray, IndexArray, FloatArray, FloatArray]:
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
    low, high = np.minimum.reduceat(reward, starts), np.maximum.reduceat(reward, starts)
    with np.errstate(over="ignore", invalid="ignore"):  # of rows that are refused later
        total = np.add.reduceat(probability, starts)
        means = np.add.reduceat(probability * reward, starts) / total
    means = np.where(np.isfinite(means), means, np.clip(means, low, high))  # near the largest number
    return row[starts], key[starts], total, np.where(low == high, low, means)


def merge_rows(
    indptr: IndexArray, indices: IndexArray, probabilities: FloatArray, rewards: FloatArray
) -> tuple[IndexArray, IndexArray, FloatArray, FloatArray]:
    """Rows in any order, which may repeat successors, as sorted rows without repetition; all ends become one."""
    lengths = np.diff(indptr)
    row = np.repeat(np.arange(len(lengths)), lengths)
    by_entry = rewards if len(rewards) == len(indices) else np.repeat(rewards, lengths)
    row, indices, probabilities, by_entry = merge_successors(row, indices, probabilities, by_entry)
    indptr = np.searchsorted(row, np.arange(len(lengths) + 1)).astype(np.int64, copy=False)
    return indptr, indices, probabilities, rewards_by_pair(by_entry, indptr)


def parts_of(
    rows: Rows,
    n_states: int,
    discount: float,
    *,
    n_actions: int | None = None,
    by_pair: bool = True,
    names: tuple[Any, Any] = (None, None),
) -> Parts:
    """What `from_checked` takes, of checked rows; `by_pair` keeps one reward per pair where that is enough."""
    n_actions = int(rows.actions.max()) + 1 if n_actions is None else n_actions
    state_names = _checks.names("state", names[0], n_states)
    check_actions(rows.states, n_states, state_names)
    rewards = rows.rewards
    if by_pair:
        same = not rows.rewards_on_successors
        rewards = rewards[rows.indptr[:-1]] if same else rewards_by_pair(rewards, rows.indptr)
    return {
        "indptr": rows.indptr,
        "indices": rows.indices,
        "probabilities": rows.probabilities,
        "rewards": rewards,
        "state_ptr": np.searchsorted(rows.states, np.arange(n_states + 1)).astype(np.int64, copy=False),
        "actions": rows.actions,
        "n_actions": n_actions,
        "discount": discount,
        "state_names": state_names,
        "action_names": _checks.names("action", names[1], n_actions),
    }


def check_actions(states: IndexArray, n_states: int, names: tuple[str, ...] | None) -> None:
    """Refuse a state without a pair; a number of states that nothing justifies takes no memory here."""
    present = states[np.flatnonzero(np.diff(states, prepend=-1))]
    if len(present) < n_states:
        gaps = np.flatnonzero(present != np.arange(len(present)))
        missing = int(gaps[0]) if gaps.size else len(present)
        name = f" ({names[missing]})" if names else ""
        _checks.fail(f"every state must have at least one action: state {missing}{name} has none")


def rewards_by_pair(reward: FloatArray, indptr: IndexArray) -> FloatArray:
    """One reward per pair where it does not depend on the successor, otherwise one per transition."""
    first = reward[indptr[:-1]]
    low = np.minimum.reduceat(reward, indptr[:-1])
    high = np.maximum.reduceat(reward, indptr[:-1])
    return np.array(first if np.array_equal(low, high) else reward, dtype=np.float64)
