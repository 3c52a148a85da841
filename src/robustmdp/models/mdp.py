"""The world as data: one CSR matrix with a row per available (state, action) pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _display

if TYPE_CHECKING:
    import scipy.sparse as sp

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class MDP:
    """A finite Markov decision process <S, A, P, R, discount>, immutable; make one with a `from_...` method.

    Pairs are sorted by state, then action; state s owns the pairs `state_ptr[s]:state_ptr[s+1]`. Ending is an outcome
    like any other: a hidden end state with index `n_states`, value 0, which nature can use as well.

    Attributes
    ----------
    indptr : (n_pairs + 1,) row starts
    indices : (nnz,) successors; `n_states` is the end
    probabilities : (nnz,) all positive
    rewards : (n_pairs,), or (nnz,) where a reward depends on the successor
    state_ptr : (n_states + 1,)
    actions : (n_pairs,)
    discount : float in [0, 1)
    state_names, action_names : tuples of names, or None

    >>> world = MDP.from_arrays([[[0.5, 0.5]], [[0.0, 1.0]]], [1.0, 0.0], 0.9)
    >>> world.n_states, world.n_actions, world.nnz
    (2, 1, 3)
    """

    indptr: IntArray
    indices: IntArray
    probabilities: FloatArray
    rewards: FloatArray
    state_ptr: IntArray
    actions: IntArray
    n_actions: int
    discount: float
    state_names: tuple[str, ...] | None = None
    action_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for array in (self.indptr, self.indices, self.probabilities, self.rewards, self.state_ptr, self.actions):
            array.flags.writeable = False

    @staticmethod
    def from_arrays(
        transitions: npt.ArrayLike | Sequence[sp.spmatrix],
        rewards: npt.ArrayLike | Sequence[sp.spmatrix],
        discount: float,
        *,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> MDP:
        """From dense arrays or one sparse matrix per action.

        Parameters
        ----------
        transitions : (S, A, S) array, or A scipy.sparse matrices (S, S)
            An all-zero row means that the action is unavailable there.
        rewards : (S,), (S, A), (S, A, S), or A scipy.sparse matrices (S, S)
        """
        from robustmdp.models import building

        return building.from_arrays(transitions, rewards, discount, state_names, action_names)

    @staticmethod
    def from_rows(
        state: npt.ArrayLike,
        action: npt.ArrayLike,
        next_state: npt.ArrayLike,
        probability: npt.ArrayLike,
        reward: npt.ArrayLike,
        discount: float,
        *,
        terminated: npt.ArrayLike | None = None,
        n_states: int | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> MDP:
        """From five equally long 1-D arrays, one entry per transition, in any order.

        Entries with the same state, action, successor and end flag are merged: probabilities add, rewards take their
        conditional mean. An entry that is `terminated`, or whose successor is `n_states`, leads to the end.
        """
        from robustmdp.models import building

        return building.from_rows(
            (state, action, next_state, probability, reward),
            discount,
            terminated=terminated,
            n_states=n_states,
            names=(state_names, action_names),
        )

    @staticmethod
    def from_gymnasium(env_or_id: Any, discount: float) -> MDP:
        """From the table `env.unwrapped.P` of a Gymnasium environment, or from its id."""
        from robustmdp.models import gymnasium

        return gymnasium.from_gymnasium(env_or_id, discount)

    @property
    def n_states(self) -> int:
        """How many states, the hidden end not counted."""
        return len(self.state_ptr) - 1

    @property
    def n_pairs(self) -> int:
        """How many (state, action) pairs are available."""
        return len(self.actions)

    @property
    def nnz(self) -> int:
        """How many transitions have positive probability."""
        return len(self.indices)

    @cached_property
    def can_end(self) -> bool:
        """Does any transition lead to the end?"""
        return bool(self.nnz) and int(self.indices.max()) == self.n_states

    @property
    def rewards_on_successors(self) -> bool:
        """Do rewards depend on the successor? Then they belong to nature's choice."""
        return len(self.rewards) == self.nnz != self.n_pairs

    @property
    def states(self) -> IntArray:
        """The state of each pair, (n_pairs,)."""
        return np.repeat(np.arange(self.n_states), np.diff(self.state_ptr))

    @cached_property
    def longest_row(self) -> int:
        """The largest number of successors of a pair."""
        return int(np.diff(self.indptr).max())

    @cached_property
    def reward_range(self) -> tuple[float, float]:
        """The least and the largest reward."""
        return float(self.rewards.min()), float(self.rewards.max())

    @property
    def nbytes(self) -> int:
        """Bytes in the model's arrays."""
        arrays = (self.indptr, self.indices, self.probabilities, self.rewards, self.state_ptr, self.actions)
        return sum(array.nbytes for array in arrays)

    @property
    def value_range(self) -> tuple[float, float]:
        """[r_min, r_max]/(1 - discount), widened to include 0 where the end can be reached."""
        low, high = (bound / (1.0 - self.discount) for bound in self.reward_range)
        return (min(low, 0.0), max(high, 0.0)) if self.can_end else (low, high)

    def table(self, pair_values: npt.NDArray[Any], fill: float = -np.inf) -> FloatArray:
        """Values of pairs, (n_pairs,), as an (S, A) array with `fill` where an action is unavailable."""
        out = np.full((self.n_states, self.n_actions), fill)
        out[self.states, self.actions] = pair_values
        return out

    def pairs(self, table: npt.ArrayLike, name: str = "table") -> FloatArray:
        """The entries of an (S, A) array at the available pairs, (n_pairs,)."""
        array = np.asarray(table, dtype=np.float64)
        shape = (self.n_states, self.n_actions)
        _checks.must(array.shape == shape, f"{name} must have shape (S, A) = {shape}: got {array.shape}")
        return array[self.states, self.actions]

    def mean_rewards(self) -> FloatArray:
        """E r(s, a, s'), one per pair, (n_pairs,)."""
        if not self.rewards_on_successors:
            return np.asarray(self.rewards)
        return np.add.reduceat(self.probabilities * self.rewards, self.indptr[:-1])

    def with_discount(self, discount: float) -> MDP:
        """The same world with another discount."""
        return replace(self, discount=_checks.discount(discount))

    def with_probabilities(self, probabilities: FloatArray) -> MDP:
        """The same world with other probabilities of its transitions, (nnz,); those that become 0 are dropped."""
        kept = probabilities > 0
        if kept.all():
            return replace(self, probabilities=np.array(probabilities))
        starts = np.concatenate([[0], np.cumsum(kept)])
        return replace(
            self,
            indptr=starts[self.indptr],
            indices=self.indices[kept],
            probabilities=probabilities[kept],
            rewards=self.rewards[kept] if self.rewards_on_successors else self.rewards,
        )

    def restricted(self, pairs: IntArray) -> MDP:
        """The same world with some of its pairs only, by their rising numbers; every state must keep one."""
        lengths = np.diff(self.indptr)[pairs]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.repeat(self.indptr[pairs] - indptr[:-1], lengths) + np.arange(indptr[-1])
        state_ptr = np.searchsorted(pairs, self.state_ptr)
        _checks.must(bool((np.diff(state_ptr) > 0).all()), "every state must keep at least one of its actions")
        return replace(
            self,
            indptr=indptr,
            indices=self.indices[entries],
            probabilities=self.probabilities[entries],
            rewards=self.rewards[entries if self.rewards_on_successors else pairs],
            state_ptr=state_ptr,
            actions=self.actions[pairs],
        )

    def with_rewards(self, rewards: FloatArray) -> MDP:
        """The same world with other rewards, (n_pairs,) or (nnz,)."""
        _checks.must(
            rewards.shape in ((self.n_pairs,), (self.nnz,)),
            f"rewards must have one entry per pair ({self.n_pairs}) or transition ({self.nnz}): got {rewards.shape}",
        )
        return replace(self, rewards=rewards.copy())

    def with_extra_rewards(self, table: npt.ArrayLike) -> MDP:
        """The same world with an (S, A) table added to its rewards."""
        extra = self.pairs(table, "extra rewards")
        if self.rewards_on_successors:
            extra = np.repeat(extra, np.diff(self.indptr))
        return replace(self, rewards=self.rewards + extra)

    def sample(self, state: int, action: int, rng: np.random.Generator) -> tuple[float, int, bool]:
        """One transition: reward, next state, and whether the episode ended (the state is then where it was)."""
        pair = self.pair(state, action)
        row = slice(int(self.indptr[pair]), int(self.indptr[pair + 1]))
        cumulative = np.cumsum(self.probabilities[row])
        entry = row.start + int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
        reward = float(self.rewards[entry if self.rewards_on_successors else pair])
        following = int(self.indices[entry])
        ended = following == self.n_states
        return reward, state if ended else following, ended

    def pair(self, state: int, action: int) -> int:
        """The index of an available pair."""
        _checks.must(0 <= state < self.n_states, f"state must lie in 0..{self.n_states - 1}: got {state}")
        first, last = int(self.state_ptr[state]), int(self.state_ptr[state + 1])
        offset = int(np.searchsorted(self.actions[first:last], action))
        available = first + offset < last and self.actions[first + offset] == action
        _checks.must(
            bool(available), f"action must be available: {self.action_name(action)} is not in {self.state_name(state)}"
        )
        return first + offset

    def state_name(self, state: int) -> str:
        """The state's name, or `state 3`."""
        return self.state_names[state] if self.state_names else f"state {state}"

    def action_name(self, action: int) -> str:
        """The action's name, or `action 1`."""
        known = self.action_names and 0 <= action < len(self.action_names)
        return self.action_names[action] if self.action_names and known else f"action {action}"

    def _fields(self) -> _display.Fields:
        low, high = self.reward_range
        dependence = "state, action and successor" if self.rewards_on_successors else "state and action"
        fields = [
            ("states", f"{self.n_states:,}"),
            ("actions", f"{self.n_actions:,} ({self.n_pairs:,} pairs available)"),
            ("transitions", f"{self.nnz:,}" + (", some end the episode" if self.can_end else "")),
            ("rewards", f"{low:g} to {high:g}, by {dependence}"),
            ("discount", f"{self.discount:g}"),
        ]
        if self.state_names:
            fields.append(("state names", _display.shortlist(self.state_names)))
        if self.action_names:
            fields.append(("action names", _display.shortlist(self.action_names)))
        return fields

    def __repr__(self) -> str:
        return _display.as_text("MDP", self._fields())

    def _repr_html_(self) -> str:
        return _display.as_html("MDP", self._fields())

    def _identity(self) -> tuple[Any, ...]:
        return self.n_actions, self.discount, self.state_names, self.action_names

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MDP):
            return NotImplemented
        names = ("indptr", "indices", "probabilities", "rewards", "state_ptr", "actions")
        return self._identity() == other._identity() and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in names
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return MDP, tuple(getattr(self, name.name) for name in fields(self))  # a copy is made read-only again

    def __hash__(self) -> int:
        return hash((*self._identity(), self.n_states, self.nnz))
