"""A model that exists only as code: a function gives the transitions of a range of states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray, IndexArray
from robustmdp.models import assembly, columns, consistency, row_sums
from robustmdp.models.mdp import MDP, from_checked

_FIRST = 1000  # states in the first block
_GROWTH = 8  # how many times as many a block may have as the one before: rows may be longer there
_BLOCK = 250_000  # transitions in a block, about: making them takes 80 bytes for each


class Rows(NamedTuple):
    """The arrays of a run of states, as an `MDP` has them.

    `indptr` and `state_ptr` start at 0. `indices` are the numbers of successors in the whole model, whose `n_states` is
    the end. `rewards` has one entry per pair, or per transition where a reward depends on the successor.
    """

    indptr: IndexArray
    indices: IndexArray
    probabilities: FloatArray
    rewards: FloatArray
    state_ptr: IndexArray
    actions: IndexArray


@dataclass(frozen=True)
class RowSource:
    """A model whose transitions are computed where they are needed.

    Parameters
    ----------
    rows : function
        `rows(first, last)` returns all transitions of the states first <= s < last: the columns `state`, `action`,
        `next_state`, `probability` and `reward`, equally long 1-D arrays, as a tuple or by name. They are sorted by
        state, action and next state, none of which comes twice; next state `n_states` is the end. Each state has an
        action; transitions of probability 0 are left out. The same states must give the same transitions every time.
    n_states, n_actions : int
    discount : float in [0, 1]
    rewards_on_successors : do the rewards of a pair differ between its successors?

    >>> def walk(first, last):
    ...     state = np.repeat(np.arange(first, last), 2)
    ...     step = np.tile([0, 1], last - first)
    ...     return state, 0 * state, np.minimum(state + step, 3), np.full(len(state), 0.5), state / 4.0
    >>> source = RowSource(walk, n_states=3, n_actions=1, discount=0.9)
    >>> source.part(1, 3).indices
    array([1, 2, 2, 3], dtype=int32)
    >>> source.to_mdp().rewards
    array([0.  , 0.25, 0.5 ])
    """

    rows: Callable[[int, int], Any]
    n_states: int
    n_actions: int
    discount: float
    rewards_on_successors: bool = False

    def __post_init__(self) -> None:
        if not callable(self.rows):
            _checks.refuse_type("rows", "a function of the first state and the one after the last", self.rows)
        for name in ("n_states", "n_actions"):
            object.__setattr__(self, name, columns.check_size(name, getattr(self, name), columns.LARGEST))
        object.__setattr__(self, "discount", _checks.model_discount(self.discount))

    def part(self, first: int, last: int) -> Rows:
        """The checked rows of the states first <= s < last; little more memory is used than they take."""
        _checks.must(
            0 <= first < last <= self.n_states,
            f"a part must have states first <= s < last within 0..{self.n_states}: got {first} and {last}",
        )
        return _join(self._blocks(first, last))

    def parts(self) -> Iterator[Rows]:
        """The rows of all states, in blocks of about 250,000 transitions."""
        return self._blocks(0, self.n_states)

    def _blocks(self, first: int, stop: int) -> Iterator[Rows]:
        count = _FIRST
        while first < stop:
            last = min(first + count, stop)
            rows = self._rows_of_block(first, last)
            yield rows
            first, count = last, max(1, min(_GROWTH * count, count * _BLOCK // len(rows.indices)))

    def _rows_of_block(self, first: int, last: int) -> Rows:
        """The checked rows of what one call returns."""
        call = f"rows({first}, {last})"
        block, place = self._block(first, last, call)
        wording = assembly.Wording(str, lambda row: place("", row))
        found = assembly.assemble([block], len(block.state), wording)
        assert found is not None  # since the block is sorted
        state_ptr = np.searchsorted(found.states, np.arange(first, last + 1)).astype(np.int64, copy=False)
        lacking = state_ptr[1:] == state_ptr[:-1]
        if lacking.any():
            _checks.fail(f"every state must have an action: state {first + int(lacking.argmax())} has none in {call}")

        def name_pair(pair: int) -> str:
            return f"state {found.states[pair]}, action {found.actions[pair]} in {call}"

        probabilities = row_sums.normalise(
            found.indptr,
            found.probabilities,
            lambda pair, total: f"probabilities must sum to 1: got {total:.9g} at {name_pair(pair)}",
            in_place=True,
        )
        rewards = found.rewards if self.rewards_on_successors else _rewards_of_pairs(found, name_pair)
        return Rows(found.indptr, found.indices, probabilities, rewards, state_ptr, found.actions)

    def to_mdp(self) -> MDP:
        """The whole model in memory, equal to that of `MDP.from_rows` of all transitions.

        With `rewards_on_successors` it has one reward per transition, whether they differ or not.
        """
        rows = self.part(0, self.n_states)
        consistency.check_room(self.n_states, self.n_actions, len(rows.indices))
        return from_checked(MDP, **rows._asdict(), n_actions=self.n_actions, discount=self.discount)

    def _block(self, first: int, last: int, call: str) -> tuple[assembly.Block, columns.Place]:
        """The function's columns, with whole numbers in their ranges, sorted, and where an entry stands in them."""
        try:
            given = self.rows(first, last)
        except Exception as error:
            kind = type(error).__name__
            raise ValueError(
                f"rows must return the transitions of states {first} to {last - 1}: {call} raised {kind}: {error}"
            ) from error
        found = columns.to_columns(_name_columns(given, call), f" in {call}")
        raw = {name: np.asarray(column) for name, column in found.items()}
        _checks.must(len(raw["state"]) > 0, f"{call} must return transitions of every state: got none")

        def place(name: str, row: int) -> str:
            return f"state {raw['state'][row]}, action {raw['action'][row]} (row {row} of {call})"

        state = columns.whole_numbers("state", raw["state"], columns.LARGEST, place)
        outside = (state < first) | (state >= last)
        columns.refuse_where(outside, f"lie in {first}..{last - 1}", "state", state, place)
        block = assembly.Block(
            state,
            columns.whole_numbers("action", raw["action"], self.n_actions - 1, place),
            columns.whole_numbers("next_state", raw["next_state"], self.n_states, place),
            columns.real_numbers("probability", raw["probability"], place),
            columns.real_numbers("reward", raw["reward"], place),
        )
        _check_order(block, call)
        return block, place


def _join(blocks: Iterator[Rows]) -> Rows:
    """One behind the other."""
    found = next(blocks)
    for number, block in enumerate(blocks):
        if number == 0:  # the source may keep what it returned
            found = Rows(*(array.copy() for array in found))
        n_pairs, nnz = len(found.actions), len(found.indices)
        block = block._replace(indptr=block.indptr[1:] + nnz, state_ptr=block.state_ptr[1:] + n_pairs)
        found = Rows(*map(_extend, found, block))
    return found


def _extend(array: npt.NDArray[Any], more: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array with more entries, in place: where it is large, the system moves its pages instead of copying them."""
    length = len(array)
    array.resize(length + len(more), refcheck=False)
    array[length:] = more
    return array


def _name_columns(given: Any, call: str) -> dict[str, Any]:
    """The five columns of what a function returned."""
    wanted = ", ".join(columns.NAMES)
    if hasattr(given, "keys"):
        came = [str(name) for name in given.keys()]  # noqa: SIM118 - a table of pandas iterates over other things
        missing = [name for name in columns.NAMES if name not in came]
        _checks.must(not missing, f"{call} must return the columns {wanted}: got {', '.join(came) or 'none'}")
        return {name: given[name] for name in columns.NAMES}
    came_as_tuple = isinstance(given, (tuple, list))
    found = f"{len(given)} things" if came_as_tuple else type(given).__name__
    right = came_as_tuple and len(given) == len(columns.NAMES)
    _checks.must(right, f"{call} must return the five columns {wanted}: got {found}")
    return dict(zip(columns.NAMES, given, strict=True))


def _check_order(block: assembly.Block, call: str) -> None:
    """Sorted by state, action and next state, none of which comes twice."""
    state, action, following = block.state, block.action, block.next_state
    same = state[1:] == state[:-1]
    wrong = (state[1:] < state[:-1]) | (same & (action[1:] < action[:-1]))
    same &= action[1:] == action[:-1]
    wrong |= same & (following[1:] <= following[:-1])
    if wrong.any():
        row = int(wrong.argmax()) + 1
        before, after = (f"({state[i]}, {action[i]}, {following[i]})" for i in (row - 1, row))
        _checks.fail(
            "rows must be sorted by state, action and next_state, none twice: "
            f"got {after} behind {before} (row {row} of {call})"
        )


def _rewards_of_pairs(found: assembly.Rows, name_pair: Callable[[int], str]) -> FloatArray:
    """One per pair, which all of its transitions must have."""
    starts = found.indptr[:-1]
    if found.rewards_on_successors:
        low, high = np.minimum.reduceat(found.rewards, starts), np.maximum.reduceat(found.rewards, starts)
        pair = int((low != high).argmax())
        _checks.fail(
            f"the transitions of a pair must have one reward: got {low[pair]:g} and {high[pair]:g} at "
            f"{name_pair(pair)}; rewards_on_successors=True allows that"
        )
    return found.rewards[starts]
