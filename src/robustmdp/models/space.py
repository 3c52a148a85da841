"""The available (state, action) pairs of a world, known or not: sizes, names, tables, the range of values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray, IndexArray
from robustmdp.models import columns


class StateActionSpace:
    """What a model has in common with a world whose model is not known.

    Pairs are sorted by state, then action; state s owns the pairs `state_ptr[s]:state_ptr[s+1]`.

    Attributes
    ----------
    state_ptr : (n_states + 1,)
    actions : (n_pairs,), or None where every action is available everywhere
    reward_range : the least and the largest reward, or None where they are not known
    """

    state_ptr: IndexArray
    actions: IndexArray | None
    n_actions: int
    discount: float
    state_names: tuple[str, ...] | None
    action_names: tuple[str, ...] | None
    reward_range: Any
    can_end: Any

    @cached_property
    def n_states(self) -> int:
        """How many states, the hidden end not counted."""
        return len(self.state_ptr) - 1

    @cached_property
    def n_pairs(self) -> int:
        """How many (state, action) pairs are available."""
        return int(self.state_ptr[-1])

    @property
    def states(self) -> IndexArray:
        """The state of each pair, (n_pairs,)."""
        return np.repeat(np.arange(self.n_states), np.diff(self.state_ptr))

    @property
    def value_range(self) -> tuple[float, float]:
        """[r_min, r_max]/(1 - discount), widened to include 0 where the end can be reached; infinite at discount 1."""
        return self.possible_values(*(self.reward_range or (0.0, 0.0)))

    def possible_values(self, least: float, most: float) -> tuple[float, float]:
        """The range of values for rewards in [least, most]; (0, 0) while none has come."""
        if least > most:
            return 0.0, 0.0
        low, high = (_sum_for_ever(reward, self.discount) for reward in (least, most))
        return (min(low, 0.0), max(high, 0.0)) if self.can_end else (low, high)

    def table(self, pair_values: npt.NDArray[Any], fill: float = -np.inf) -> npt.NDArray[Any]:
        """Values of pairs, (n_pairs,), as an (S, A) array with `fill` where an action is unavailable.

        A view where every action is available and `actions` is None.
        """
        if self.actions is None:
            return pair_values.reshape(self.n_states, self.n_actions)
        out = np.full((self.n_states, self.n_actions), fill, dtype=np.result_type(pair_values, fill))
        out[self.states, self.actions] = pair_values
        return out

    def pairs(self, table: npt.ArrayLike, name: str = "table") -> FloatArray:
        """The entries of an (S, A) array at the available pairs, (n_pairs,)."""
        array = columns.real_numbers(name, table)
        shape = (self.n_states, self.n_actions)
        _checks.must(array.shape == shape, f"{name} must have shape (S, A) = {shape}: got {array.shape}")
        return array.reshape(-1) if self.actions is None else array[self.states, self.actions]

    def state_number(self, state: int | str) -> int:
        """The number of a state that is given by its name or its number."""
        return _number_of("state", state, self.state_names, self.n_states)

    def action_number(self, action: int | str) -> int:
        """The number of an action that is given by its name or its number."""
        return _number_of("action", action, self.action_names, self.n_actions)

    def state_name(self, state: int) -> str:
        """The state's name, or `state 3`."""
        return self.state_names[state] if self.state_names else f"state {state}"

    def action_name(self, action: int) -> str:
        """The action's name, or `action 1`."""
        known = self.action_names and 0 <= action < len(self.action_names)
        return self.action_names[action] if self.action_names and known else f"action {action}"

    def pair_name(self, pair: int) -> str:
        """Both names."""
        state = int(np.searchsorted(self.state_ptr, pair, side="right")) - 1
        action = pair - self.state_ptr[state] if self.actions is None else self.actions[pair]
        return f"{self.state_name(state)} and {self.action_name(int(action))}"


def _number_of(kind: str, given: int | str, names: tuple[str, ...] | None, count: int) -> int:
    if isinstance(given, str):
        return place_of_name(kind, given, names)
    if not _checks.is_whole(given):
        _checks.refuse_type(kind, "a name or a whole number", given)
    _checks.must(0 <= given < count, f"{kind} must lie in 0..{count - 1}: got {given}")
    return int(given)


def place_of_name(argument: str, given: str, names: Sequence[str] | None, others: Sequence[str] = ()) -> int:
    """The number of a state or an action by its name; `others` are more words that the argument may be.

    >>> place_of_name("initial", "brokn", ["new", "broken"])
    Traceback (most recent call last):
        ...
    ValueError: initial must be one of new, broken: got 'brokn'; did you mean 'broken'?
    """
    if names and given in names:
        return names.index(given)
    _checks.must(bool(names or others), f"{argument} must be a number: this model has no names, got {given!r}")
    _checks.nearest(argument, given, [*others, *(names or ["a number"])])


def _sum_for_ever(reward: float, discount: float) -> float:
    """reward * (1 + discount + discount^2 + ...)"""
    if discount < 1.0:
        return reward / (1.0 - discount)
    return math.copysign(math.inf, reward) if reward else 0.0
