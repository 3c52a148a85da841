"""Some states of a model with their rows, and what they need to know of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from robustmdp._arrays import IndexArray
from robustmdp.models.mdp import MDP, from_checked
from robustmdp.models.noise import Noise
from robustmdp.models.row_source import Rows
from robustmdp.models.rows import spread_within_rows
from robustmdp.models.space import StateActionSpace


class Sizes(NamedTuple):
    """Sizes and ranges of a model, or of a part of it."""

    n_states: int
    n_pairs: int
    nnz: int
    longest_row: int
    reward_range: tuple[float, float]
    reward_spread: float
    can_end: bool

    @classmethod
    def of(cls, rows: Rows, n_states: int, rewards_on_successors: bool) -> Sizes:
        """Those of some rows of a model with `n_states` states."""
        return cls(
            n_states=len(rows.state_ptr) - 1,
            n_pairs=len(rows.actions),
            nnz=len(rows.indices),
            longest_row=int(np.diff(rows.indptr).max()),
            reward_range=(float(rows.rewards.min()), float(rows.rewards.max())),
            reward_spread=spread_within_rows(rows.rewards, rows.indptr) if rewards_on_successors else 0.0,
            can_end=int(rows.indices.max()) == n_states,
        )

    @classmethod
    def combine(cls, parts: Sequence[Sizes]) -> Sizes:
        """Those of the model that consists of these parts."""
        return cls(
            n_states=sum(part.n_states for part in parts),
            n_pairs=sum(part.n_pairs for part in parts),
            nnz=sum(part.nnz for part in parts),
            longest_row=max(part.longest_row for part in parts),
            reward_range=(min(part.reward_range[0] for part in parts), max(part.reward_range[1] for part in parts)),
            reward_spread=max(part.reward_spread for part in parts),
            can_end=any(part.can_end for part in parts),
        )


@dataclass(eq=False)
class Outline(StateActionSpace):
    """A model without its rows: sizes, discount, names."""

    sizes: Sizes
    n_actions: int
    discount: float
    rewards_on_successors: bool
    noise: Noise | None = None
    state_names: tuple[str, ...] | None = None
    action_names: tuple[str, ...] | None = None
    nnz: int = field(init=False)
    actions = None

    def __post_init__(self) -> None:
        self.__dict__.update(self.sizes._asdict())

    @property
    def n_columns(self) -> int:
        return self.n_states


class Part(MDP):
    """States first, first + 1, ... of a model, under numbers from 0 on; their rows lead to columns.

    A column is a state of the whole model, in rising order: all states, or those alone that the rows lead to and the
    part's own. The end is the column behind the last one.

    Attributes
    ----------
    outline : the whole model without its rows
    first : the number of the part's first state in the model
    columns : (n_columns,) the states behind the columns, or None where they are all states
    """

    outline: Outline
    first: int
    columns: IndexArray | None

    @classmethod
    def of(cls, rows: Rows, outline: Outline, first: int, *, compact: bool = False) -> Part:
        """The part with these rows; `compact` leaves out states that they do not lead to, where that pays."""
        columns = None
        if compact:
            read = successor_states(rows.indices, outline.n_states)
            own = np.arange(first, first + len(rows.state_ptr) - 1)
            kept = np.union1d(read, own)
            # The operator has two vectors of columns; renumbered rows may be a copy of mapped ones.
            if 16 * (outline.n_states - len(kept)) >= 4 * len(rows.indices):
                columns = kept
                column = np.full(outline.n_states + 1, len(columns), dtype=np.int32)
                column[columns] = np.arange(len(columns))
                rows = rows._replace(indices=column[rows.indices])
        return cls._with_columns(rows, outline, first, columns)

    @classmethod
    def _with_columns(cls, rows: Rows, outline: Outline, first: int, columns: IndexArray | None) -> Part:
        part = from_checked(
            cls, **rows._asdict(), n_actions=outline.n_actions, discount=outline.discount, noise=outline.noise
        )
        part.__dict__.update(outline=outline, first=first, columns=columns)
        # What must not depend on where a model is cut:
        sizes, known = outline.sizes, ("can_end", "longest_row", "reward_range", "reward_spread")
        part.__dict__.update({name: getattr(sizes, name) for name in known})
        part.__dict__["rewards_on_successors"] = outline.rewards_on_successors
        return part

    def slice(self, low: int, high: int) -> Part:
        """The part with some of its states, and the same columns."""
        return self._with_columns(slice_rows(self, low, high), self.outline, self.first + low, self.columns)

    @property
    def n_columns(self) -> int:
        return self.outline.n_states if self.columns is None else len(self.columns)

    @cached_property
    def offset(self) -> int:
        """The column of the part's first state."""
        return self.first if self.columns is None else int(np.searchsorted(self.columns, self.first))

    def states_of_columns(self, indices: IndexArray) -> IndexArray:
        """The numbers in the whole model of columns to which rows lead."""
        if self.columns is None:
            return indices
        return np.append(self.columns, self.outline.n_states)[indices]

    def state_name(self, state: int) -> str:
        return self.outline.state_name(self.first + state)


def slice_rows(mdp: MDP, first: int, last: int) -> Rows:
    """The rows of states first..last, as views where that is possible."""
    pairs = slice(int(mdp.state_ptr[first]), int(mdp.state_ptr[last]))
    entries = slice(int(mdp.indptr[pairs.start]), int(mdp.indptr[pairs.stop]))
    return Rows(
        indptr=mdp.indptr[pairs.start : pairs.stop + 1] - entries.start,
        indices=mdp.indices[entries],
        probabilities=mdp.probabilities[entries],
        rewards=mdp.rewards[entries if mdp.rewards_on_successors else pairs],
        state_ptr=mdp.state_ptr[first : last + 1] - pairs.start,
        actions=mdp.actions[pairs],
    )


def successor_states(indices: IndexArray, n_states: int) -> IndexArray:
    """The states to which rows lead, rising; not the end."""
    seen = np.zeros(n_states + 1, dtype=bool)
    seen[indices] = True
    return np.flatnonzero(seen[:-1])
