"""Sets that change what another set means."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from robustmdp._arrays import FloatArray, IntArray
from robustmdp.ambiguity.base import Ambiguity, Level, RowKernel


class Wrapper(Ambiguity):
    """A frozen record of one set, whose level and rows it takes over."""

    set: Ambiguity

    def __init__(self, set: Ambiguity) -> None:
        from robustmdp.ambiguity.records import check_ambiguity

        inner = check_ambiguity(set)
        vars(self).update(set=inner, is_nominal=inner.is_nominal, level_name=inner.level_name, grows=inner.grows)

    @property
    def level(self) -> Level:
        return self.set.level

    @property
    def kernel(self) -> RowKernel:
        return self.set.kernel

    def kernel_for(self, model: Any) -> RowKernel:
        return self.set.kernel_for(model)

    def kernel_for_row(self, p: FloatArray) -> tuple[RowKernel, npt.NDArray[Any]]:
        return self.set.kernel_for_row(p)

    def kernel_level(self, discount: float) -> Level:
        return self.set.kernel_level(discount)

    def paper_multipliers(self, eta: float, weight: float) -> tuple[float, float]:
        return self.set.paper_multipliers(eta, weight)

    @property
    def eta_shift(self) -> Level:
        return self.set.eta_shift

    @property
    def invents(self) -> bool:
        return self.set.invents

    def candidates(self, n_states: int) -> IntArray:
        return self.set.candidates(n_states)

    def added_successors(
        self, outcome: FloatArray, longest_row: int, *, highest: float, rewards_differ: bool
    ) -> npt.NDArray[Any]:
        return self.set.added_successors(outcome, longest_row, highest=highest, rewards_differ=rewards_differ)

    def restricted(self, model: Any, transitions: IntArray) -> Ambiguity:
        return type(self)(self.set.restricted(model, transitions))

    def check_parts(self) -> None:
        self.set.check_parts()

    def on_part(self, model: Any, states: slice, transitions: slice) -> Ambiguity:
        return type(self)(self.set.on_part(model, states, transitions))

    def on_transitions(self, model: Any) -> Ambiguity:
        return type(self)(self.set.on_transitions(model))

    @property
    def names_states(self) -> bool:
        return self.set.names_states

    @property
    def keeps_support(self) -> bool:
        return self.set.keeps_support

    def is_like(self, other: Ambiguity) -> bool:
        return type(self) is type(other) and isinstance(other, Wrapper) and self.set.is_like(other.set)

    def contains(self, other: Ambiguity) -> bool:
        if other.is_nominal:
            return True
        return type(self) is type(other) and isinstance(other, Wrapper) and self.set.contains(other.set)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Wrapper) and self.set == other.set

    def __hash__(self) -> int:
        return hash((type(self), self.set))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.set,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.set!r})"
