"""Nature as a friend."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from robustmdp import _checks
from robustmdp.ambiguity.base import Ambiguity, FloatArray, IntArray, Level, RowKernel


class Optimistic(Ambiguity):
    """sup instead of inf over the same set: nature helps the player, and pays where it has a price.

    Parameters
    ----------
    set : any set, but for an optimistic one

    >>> from robustmdp import L1, worst_case
    >>> best = worst_case(Optimistic(L1(0.5)), [0.5, 0.5], [0.0, 2.0])
    >>> best.value, best.distribution
    (1.5, array([0.25, 0.75]))
    """

    sign = -1.0

    def __init__(self, set: Ambiguity) -> None:
        from robustmdp.ambiguity.records import check_ambiguity

        inner = check_ambiguity(set)
        _checks.must(inner.sign > 0.0, f"set must not be optimistic already: got {inner!r}")
        vars(self).update(set=inner, is_nominal=inner.is_nominal, level_name=inner.level_name, grows=inner.grows)

    set: Ambiguity

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

    @property
    def eta_shift(self) -> Level:
        return -self.set.eta_shift

    def paper_multipliers(self, eta: float, weight: float) -> tuple[float, float]:
        eta, weight = self.set.paper_multipliers(-eta, weight)
        return -eta, weight

    @property
    def invents(self) -> bool:
        return self.set.invents

    def candidates(self, n_states: int) -> IntArray:
        return self.set.candidates(n_states)

    def added_successors(self, outcome: FloatArray, longest_row: int, *, rewards_differ: bool) -> npt.NDArray[Any]:
        return self.set.added_successors(outcome, longest_row, rewards_differ=rewards_differ)

    def restricted(self, model: Any, transitions: IntArray) -> Optimistic:
        return Optimistic(self.set.restricted(model, transitions))

    @property
    def keeps_support(self) -> bool:
        return self.set.keeps_support

    def is_like(self, other: Ambiguity) -> bool:
        return isinstance(other, Optimistic) and self.set.is_like(other.set)

    def contains(self, other: Ambiguity) -> bool:
        """Whether the two are equal: more room raises values here."""
        return self == other

    @property
    def label(self) -> str:
        return f"optimistic {self.set.label}"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Optimistic is immutable: make a new one to change {name}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Optimistic) and self.set == other.set

    def __hash__(self) -> int:
        return hash((Optimistic, self.set))

    def __reduce__(self) -> tuple[object, ...]:
        return Optimistic, (self.set,)

    def __repr__(self) -> str:
        return f"Optimistic({self.set!r})"

    def __str__(self) -> str:
        return f"nature helps: {self.set}"
