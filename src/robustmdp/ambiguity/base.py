"""What a set of nature's choices offers, and what the kernels that serve it do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _display
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.divergences import FDivergence

Level = float | FloatArray


class Call(NamedTuple):
    """What all methods of a kernel are called with; kernels of states have no `pairs`."""

    model: Any
    levels: FloatArray
    outcome: FloatArray
    pairs: IntArray | None
    lo: int
    hi: int
    memory: FloatArray


class RowKernel(ABC):
    """Worst cases of many rows: compiled in `_core`, with the same methods, or in Python by a subclass.

    `model` is a `_core.Model`; `levels` has one entry, or one per pair; `outcome` is discount * v with the end's 0
    last, (S + 1,); `pairs` lists pairs, None means all in order. Calls own the rows lo..hi of their outputs. `memory`
    holds `memory_per_row` numbers per pair, from which the next solve starts, NaN at first.
    """

    memory_per_row: int = 0

    @abstractmethod
    def write_values(self, call: Call, q: FloatArray) -> None:
        """See `values`."""

    @abstractmethod
    def write_bounds(self, call: Call, scale: float, lower: FloatArray, upper: FloatArray) -> None:
        """See `bracket`."""

    @abstractmethod
    def write_responses(
        self, call: Call, starts: IntArray, data: FloatArray, penalty: FloatArray, eta: FloatArray
    ) -> None:
        """See `respond`."""

    @abstractmethod
    def worst_case(
        self, p: FloatArray, x: FloatArray, level: float, out: FloatArray
    ) -> tuple[float, float, float, float]:
        """Value, gap, eta and weight of one row; out = nature's distribution."""

    def values(
        self,
        model: Any,
        levels: FloatArray,
        outcome: FloatArray,
        pairs: IntArray | None,
        lo: int,
        hi: int,
        memory: FloatArray,
        q: FloatArray,
    ) -> None:
        """q[i] = r + worst case of pair i; renews the memory."""
        self.write_values(Call(model, levels, outcome, pairs, lo, hi, memory), q)

    def sweep(
        self,
        model: Any,
        levels: FloatArray,
        outcome: FloatArray,
        lo: int,
        hi: int,
        memory: FloatArray,
        q: FloatArray,
        value: FloatArray,
        best: IntArray,
    ) -> None:
        """The same for the pairs of states lo..hi; value = max over a state's pairs, best = the first to attain it."""
        first, last = int(model.state_ptr[lo]), int(model.state_ptr[hi])
        self.values(model, levels, outcome, None, first, last, memory, q)
        choose_best(model, q, lo, hi, value, best)

    def bracket(
        self,
        model: Any,
        levels: FloatArray,
        outcome: FloatArray,
        scale: float,
        lo: int,
        hi: int,
        memory: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
    ) -> None:
        """lower <= r + worst case <= upper, certified; `scale` bounds |r| + |outcome|."""
        self.write_bounds(Call(model, levels, outcome, None, lo, hi, memory), scale, lower, upper)

    def respond(
        self,
        model: Any,
        levels: FloatArray,
        outcome: FloatArray,
        pairs: IntArray | None,
        starts: IntArray,
        lo: int,
        hi: int,
        memory: FloatArray,
        data: FloatArray,
        penalty: FloatArray,
        eta: FloatArray,
    ) -> None:
        """data[starts[i]:starts[i+1]] = nature's row of pair i; what it pays, and its multiplier.

        Kernels of sets that invent take `successors` as well, int32 and as long as `data`: its states.
        """
        self.write_responses(Call(model, levels, outcome, pairs, lo, hi, memory), starts, data, penalty, eta)


def choose_best(model: Any, q: FloatArray, lo: int, hi: int, value: FloatArray, best: IntArray) -> None:
    """value = max of q over the pairs of states lo..hi, best = the first pair to attain it; NaN counts as -inf."""
    if lo == hi:
        return
    first, last = int(model.state_ptr[lo]), int(model.state_ptr[hi])
    known = np.where(np.isnan(q[first:last]), -np.inf, q[first:last])
    value[lo:hi] = np.maximum.reduceat(known, model.state_ptr[lo:hi] - first)
    owner = np.repeat(np.arange(hi - lo), np.diff(model.state_ptr[lo : hi + 1]))
    attained = np.flatnonzero(known == value[lo:hi][owner])
    best[lo:hi] = first + attained[np.searchsorted(owner[attained], np.arange(hi - lo))]


class StateKernel(ABC):
    """Worst cases of states whose actions nature answers together.

    As in `RowKernel`, but `levels` has one entry, or one per state; calls own the states lo..hi of their outputs, and
    `policy` holds probabilities, (n_pairs,).
    """

    memory_per_row: int = 0

    @abstractmethod
    def write_policy(self, call: Call, value: FloatArray, policy: FloatArray) -> None:
        """See `sweep`."""

    @abstractmethod
    def write_values(self, call: Call, policy: FloatArray, value: FloatArray) -> None:
        """See `evaluate`."""

    @abstractmethod
    def write_bounds(
        self, call: Call, scale: float, given: bool, policy: FloatArray, out: tuple[FloatArray, ...]
    ) -> None:
        """See `bracket`; `out` is lower, upper and q."""

    @abstractmethod
    def write_responses(
        self, call: Call, given: bool, policy: FloatArray, starts: IntArray, data: FloatArray, penalty: FloatArray
    ) -> None:
        """See `respond`."""

    def sweep(
        self,
        model: Any,
        levels: FloatArray,
        outcome: FloatArray,
        lo: int,
        hi: int,
        memory: FloatArray,
        value: FloatArray,
        policy: FloatArray,
    ) -> None:
        """value = max over random policies of the worst case, (S,); the policy that attains it; renews the memory."""
        self.write_policy(Call(model, levels, outcome, None, lo, hi, memory), value, policy)

    def evaluate(
        self,
        model: Any,
        levels: FloatArray,
        outcome: FloatArray,
        policy: FloatArray,
        lo: int,
        hi: int,
        memory: FloatArray,
        value: FloatArray,
    ) -> None:
        """value = the worst case of a policy, (S,)."""
        self.write_values(Call(model, levels, outcome, None, lo, hi, memory), policy, value)

    def bracket(
        self,
        model: Any,
        levels: FloatArray,
        outcome: FloatArray,
        scale: float,
        given: bool,
        lo: int,
        hi: int,
        memory: FloatArray,
        policy: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        q: FloatArray,
    ) -> None:
        """lower <= value <= upper, (S,), of the policy where it is `given`, else of the best one, which is written.

        `lower` holds for the policy itself; q, (n_pairs,), is what the actions earn under nature's answer.
        """
        self.write_bounds(Call(model, levels, outcome, None, lo, hi, memory), scale, given, policy, (lower, upper, q))

    def respond(
        self,
        model: Any,
        levels: FloatArray,
        outcome: FloatArray,
        given: bool,
        policy: FloatArray,
        starts: IntArray,
        lo: int,
        hi: int,
        memory: FloatArray,
        data: FloatArray,
        penalty: FloatArray,
    ) -> None:
        """data[starts[i]:starts[i+1]] = nature's row of pair i, where there is room; what it pays in its state."""
        self.write_responses(Call(model, levels, outcome, None, lo, hi, memory), given, policy, starts, data, penalty)


class Ambiguity(ABC):
    """What nature may do to the distribution of one (s, a) pair. Subclasses are frozen records."""

    is_nominal: ClassVar[bool] = False
    """Whether nature has no choice at all."""
    has_weight: ClassVar[bool] = False
    """Whether nature pays `level` per unit of `divergence`."""
    has_radius: ClassVar[bool] = False
    """Whether nature stays within `level` of the model in `divergence`."""
    level_name: ClassVar[str] = "level"
    grows: ClassVar[bool] = True
    """Whether a larger level gives nature more room."""
    divergence: FDivergence
    """What `level` is measured in; a set with neither weight nor radius has none, but for the nominal one."""

    @property
    @abstractmethod
    def level(self) -> Level:
        """One number, or an (S, A) array."""

    sign: ClassVar[float] = 1.0
    """-1 where nature helps the player: outcomes are negated before its rows are solved, and values after that."""

    @property
    @abstractmethod
    def kernel(self) -> RowKernel:
        """What solves its rows, where it is the same for all models."""

    def kernel_for(self, model: Any) -> RowKernel:
        """What solves the rows of a model with `indptr`, `indices`, `probabilities`, `states` and `actions`."""
        del model
        return self.kernel

    def kernel_for_row(self, p: FloatArray) -> tuple[RowKernel, BoolArray]:
        """What solves one row, (n,), and the successors that can have mass."""
        return self.kernel, p > 0.0

    @property
    def is_statewise(self) -> bool:
        """Whether nature answers the actions of a state together, so that random policies can be better."""
        return False

    def state_kernel_for(self, model: Any) -> StateKernel:
        """What solves the states of a model, where nature answers their actions together."""
        del model
        raise NotImplementedError(f"{type(self).__name__} is a set of rows")

    def shared_kernel_for(self, model: Any) -> StateKernel:
        """The same where the actions of a state share this set's level."""
        del model
        _checks.fail(f"set must be Constrained, Penalized, L1 or L2, whose level actions can share: got {self}")

    @property
    def invents(self) -> bool:
        """Whether nature may lead to states to which the model does not."""
        return False

    def candidates(self, n_states: int) -> IntArray:
        """The states to which nature may lead from anywhere, rising."""
        del n_states
        return np.empty(0, dtype=np.int64)

    def added_successors(
        self, outcome: FloatArray, longest_row: int, *, highest: float, rewards_differ: bool
    ) -> npt.NDArray[np.int32]:
        """States, besides the model's successors, that nature would use at these outcomes, (S,); the less the better.

        `longest_row` is the largest number of successors of a pair, and `highest` bounds what any of them is worth
        above the reward of an added one; `rewards_differ` says whether the reward of a pair depends on its successor.
        """
        del outcome, longest_row, highest, rewards_differ
        return np.empty(0, dtype=np.int32)

    def restricted(self, model: Any, transitions: IntArray) -> Ambiguity:
        """The same set for what is left of a model that keeps only these transitions."""
        del model, transitions
        return self

    def check_parts(self) -> None:
        """Refuse to be cut into parts by `on_part`, where no rows need be read to tell."""
        _checks.must(
            isinstance(self.level, float),
            f"the {self.level_name} of a set must be one number where a model is cut into shards: got {self}",
        )

    def on_part(self, model: Any, states: slice, transitions: slice) -> Ambiguity:
        """The same set for some of a model's states, whose rows are these transitions; `whole` has all sizes."""
        del model, states, transitions
        return self

    def on_transitions(self, model: Any) -> Ambiguity:
        """The same set of this model, with numbers of transitions in the model's order."""
        del model
        return self

    @property
    def names_states(self) -> bool:
        """Whether it has numbers for states as such, or leads to states of its own."""
        return self.invents

    @property
    def keeps_support(self) -> bool:
        """Whether nature must pay for taking all mass from a successor, or cannot; False where it is not known."""
        return self.is_nominal

    def kernel_level(self, discount: float) -> Level:
        """The level in the kernel's unit, for outcomes that are already discounted."""
        del discount
        return self.level

    @property
    def eta_shift(self) -> Level:
        """What the paper's eta adds to that of the kernel, per unit of undiscounted outcomes."""
        return 0.0

    def paper_multipliers(self, eta: float, weight: float) -> tuple[float, float]:
        """(eta, weight) of the kernel in the paper's convention."""
        return eta, weight

    def is_like(self, other: Ambiguity) -> bool:
        """Whether the two differ in their level alone."""
        return type(self) is type(other)

    def contains(self, other: Ambiguity) -> bool:
        """Whether nature can do at least what the other allows, everywhere, as far as the records tell."""
        return other.is_nominal or self == other

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: make a new one to change {name}")

    def _level_text(self) -> str:
        if isinstance(self.level, float):
            return f"{self.level:g}"
        known = self.level[~np.isnan(self.level)]
        of_each = "state" if self.level.ndim == 1 else "state and action"
        return f"{known.min(initial=np.inf):g} to {known.max(initial=-np.inf):g}, one per {of_each}"

    @property
    def label(self) -> str:
        """A few words for tables."""
        return str(self)

    def _repr_html_(self) -> str:
        return _display.as_html(type(self).__name__, [("meaning", str(self))])
