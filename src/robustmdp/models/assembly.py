"""CSR rows from sorted transitions, block by block: checked, sorted and stored in one compiled pass.

Memory is that of the result: what comes is never held a second time. The outcome is that of `MDP.from_rows`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.models.building import _EXACT, _merged, _rewards_by_pair
from robustmdp.models.mdp import MDP, FloatArray, IntArray

LARGEST = 2**31 - 2  # states and actions are stored in 32 bits, and the end needs a number, too
_MUST = {
    **dict.fromkeys(("state", "action", "next_state"), f"lie in 0..{LARGEST}"),
    "probability": "be finite and at least 0",
    "reward": "be finite",
    "outcome": "be one for all rows of a pair (read_outcomes returns a model for each)",
}


class Block(NamedTuple):
    """Some transitions: equally long 1-D arrays; `outcome` is empty where there are none."""

    state: npt.NDArray[np.int64]
    action: npt.NDArray[np.int64]
    next_state: npt.NDArray[np.int64]
    probability: npt.NDArray[np.float64]
    reward: npt.NDArray[np.float64]
    outcome: npt.NDArray[np.int64]


class Rows(NamedTuple):
    """One row per pair, sorted by state and action.

    Beside the arrays: the largest state that was named and where, whether a sum may be other than 1, and whether a
    reward may depend on the successor.
    """

    indptr: IntArray
    indices: IntArray
    probabilities: FloatArray
    rewards: FloatArray
    states: IntArray
    actions: IntArray
    top: int
    top_row: int
    rough: bool
    spread: bool


class Origin(Protocol):
    """Where transitions come from, in the words of messages."""

    def label(self, column: str) -> str:
        """What a field of `Block` is called there."""

    def place(self, row: int) -> str:
        """Where a transition stands."""


def assemble(blocks: Iterable[Block], length: int, origin: Origin) -> Rows | None:
    """The rows of at most `length` transitions, or None where these are not sorted by state and action.

    Transitions of probability 0 are left out; those with the same successor are merged: probabilities add, rewards take
    their mean.
    """
    from robustmdp.models import _sorted_rows as kernels

    # Pages that nothing is written to cost nothing, so that a bound on the length will do.
    stored: tuple[Any, ...] = (np.empty(length, np.int32), np.empty(length), np.empty(length))
    pairs: tuple[Any, ...] = (np.empty(length + 1, np.int64), np.empty(length, np.int32), np.empty(length, np.int32))
    memory = np.array([0, 0, -1, -1, 0, 0, 0, 0, -1, -1], np.int64)
    seen = 0
    for block in blocks:
        _checks.must(seen + len(block.state) <= length, f"there must be at most {length} transitions: more came")
        code, row = kernels.append(*map(_read_only, block), *stored, *pairs, memory, seen)
        if code == kernels.UNSORTED:
            return None
        if code != kernels.DONE:
            _refuse(code, block, row, seen, origin)  # the code is the number of the column
        seen += len(block.state)
    entries, count = int(memory[kernels.ENTRIES]), int(memory[kernels.PAIRS])
    pairs[0][count] = entries
    kernels.settle(*stored, pairs[0], memory)
    sizes = (entries, entries, entries, count + 1, count, count)
    for array, size in zip((*stored, *pairs), sizes, strict=True):
        array.resize(size, refcheck=False)  # in place: what lies beyond was never touched
    if memory[kernels.TWICE]:
        _merge(pairs[0], *stored)
    top, row = int(memory[kernels.TOP]), int(memory[kernels.TOP_ROW])
    rough, spread = bool(memory[kernels.ROUGH]), bool(memory[kernels.SPREAD])
    return Rows(pairs[0], stored[0], stored[1], stored[2], pairs[1], pairs[2], top, row, rough, spread)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Always, since Numba would compile the kernel anew for each mixture."""
    view = array.view()
    view.flags.writeable = False
    return view


def _refuse(code: int, block: Block, row: int, seen: int, origin: Origin) -> None:
    name = Block._fields[code]
    value = getattr(block, name)[row - seen].item()
    _checks.fail(f"{origin.label(name)} must {_MUST[name]}: got {value!r} at {origin.place(row)}")


def _merge(indptr: IntArray, *columns: Any) -> None:
    """Make one of the entries of a row that have the same successor, in place; rows without such are not touched."""
    again = np.flatnonzero(columns[0][1:] == columns[0][:-1]) + 1
    row = np.searchsorted(indptr, again, side="right") - 1
    rows = np.unique(row[indptr[row] != again])  # an entry that starts a row does not repeat the one before
    sizes = indptr[rows + 1] - indptr[rows]
    entries = _ranges(indptr[rows], sizes)
    merged_row, *merged = _merged(np.repeat(rows, sizes), *(column[entries] for column in columns))
    counts = np.bincount(np.searchsorted(rows, merged_row), minlength=len(rows))
    places = _ranges(indptr[rows], counts)
    kept = np.ones(len(columns[0]), bool)
    kept[entries] = False
    kept[places] = True
    for column, part in zip(columns, merged, strict=True):
        column[places] = part
        column[: kept.sum()] = column[kept]
        column.resize(int(kept.sum()), refcheck=False)
    fewer = np.zeros(len(indptr), np.int64)
    fewer[rows + 1] = sizes - counts
    indptr -= np.cumsum(fewer)


def _ranges(starts: IntArray, sizes: IntArray) -> IntArray:
    """start, start + 1, ... for each start, one behind the other."""
    return np.asarray(np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum()))


def wrong_sum(rows: Rows) -> tuple[int, float] | None:
    """The first pair whose probabilities do not sum to 1, and their sum."""
    if not rows.rough:
        return None
    sums = np.add.reduceat(rows.probabilities, rows.indptr[:-1])
    wrong = np.flatnonzero(~(np.abs(sums - 1) <= _checks.SUM_TOLERANCE))
    return (int(wrong[0]), float(sums[wrong[0]])) if wrong.size else None


def rescale(rows: Rows) -> None:
    """Make rows sum to 1 where they are off by more than rounding, in place."""
    if not rows.rough:
        return
    sums = np.add.reduceat(rows.probabilities, rows.indptr[:-1])
    rough = np.abs(sums - 1) > _EXACT
    if rough.any():
        scale = np.repeat(np.where(rough, sums, 1.0), np.diff(rows.indptr))
        np.divide(rows.probabilities, scale, out=rows.probabilities)


def to_mdp(
    rows: Rows,
    n_states: int,
    discount: float,
    *,
    n_actions: int | None = None,
    by_pair: bool = True,
    names: tuple[Any, Any] = (None, None),
) -> MDP:
    """The model of complete and checked rows; `by_pair` keeps one reward per pair where that is enough."""
    n_actions = int(rows.actions.max()) + 1 if n_actions is None else n_actions
    return MDP(
        indptr=rows.indptr,
        indices=rows.indices,
        probabilities=rows.probabilities,
        rewards=_rewards(rows) if by_pair else rows.rewards,
        state_ptr=np.searchsorted(rows.states, np.arange(n_states + 1)).astype(np.int64, copy=False),
        actions=rows.actions,
        n_actions=n_actions,
        discount=discount,
        state_names=_checks.names("state", names[0], n_states),
        action_names=_checks.names("action", names[1], n_actions),
    )


def _rewards(rows: Rows) -> FloatArray:
    return _rewards_by_pair(rows.rewards, rows.indptr) if rows.spread else rows.rewards[rows.indptr[:-1]]
