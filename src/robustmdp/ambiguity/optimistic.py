"""Sets with which nature helps the player."""

from __future__ import annotations

from typing import Any

from robustmdp import _checks
from robustmdp.ambiguity.base import Ambiguity, Level, StateKernel
from robustmdp.ambiguity.wrapper import Wrapper


class Optimistic(Wrapper):
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
        super().__init__(set)
        _checks.must(self.set.sign > 0.0, f"set must not be optimistic already: got {self.set!r}")

    @property
    def is_statewise(self) -> bool:
        return self.set.is_statewise

    def state_kernel_for(self, model: Any) -> StateKernel:
        return self.set.state_kernel_for(model)

    @property
    def eta_shift(self) -> Level:
        return -self.set.eta_shift

    def paper_multipliers(self, eta: float, weight: float) -> tuple[float, float]:
        eta, weight = self.set.paper_multipliers(-eta, weight)
        return -eta, weight

    def contains(self, other: Ambiguity) -> bool:
        """Whether the two are equal: more room raises values here."""
        return self == other

    @property
    def label(self) -> str:
        return f"optimistic {self.set.label}"

    def __str__(self) -> str:
        return f"nature helps: {self.set}"
