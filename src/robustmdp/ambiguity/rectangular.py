"""Sets of states: nature has one budget, or one price, for all actions of a state."""

from __future__ import annotations

from typing import Any

from robustmdp import _checks
from robustmdp.ambiguity.base import Ambiguity, Level, StateKernel
from robustmdp.ambiguity.wrapper import Wrapper


class SRectangular(Wrapper):
    """max over pi(. | s) of inf over sum_a D(P_a, p_a) <= level of sum_a pi(a | s) E_{P_a} v.

    The actions of a state share one budget (Wiesemann, Kuhn and Rustem, 2013), or one price: the best policy may be
    random, because nature must spread what it has over all actions in use. Less is lost than where each action has a
    budget of its own; with one action the two are the same. The `policy` of a solution is (S, A), and `penalty` is what
    nature pays in the whole state, repeated over its actions.

    Parameters
    ----------
    set : Constrained, Penalized, L1 or L2
        Of any divergence, a user's own as well; its level is a number or (S,) numbers.

    >>> from robustmdp import MDP, L1, solve
    >>> bets = MDP.from_arrays([[[0.5, 0.5], [0.5, 0.5]]] * 2, [[[0.0, 1.0]] * 2] * 2, 0.0)  # two actions, the same
    >>> [round(float(solve(bets, each).value[0]), 6) for each in (L1(0.5), SRectangular(L1(0.5)))]  # less 1/4, 1/8
    [0.25, 0.375]
    """

    def __init__(self, set: Ambiguity) -> None:
        super().__init__(set)
        inner = self.set
        _checks.must(inner.sign > 0.0, f"set must not be optimistic: take Optimistic(SRectangular(...)), got {inner!r}")
        _checks.must(not inner.is_statewise, f"set must be a set of rows: got {inner!r}")

    @property
    def is_statewise(self) -> bool:
        return True

    def state_kernel_for(self, model: Any) -> StateKernel:
        return self.set.shared_kernel_for(model)

    @property
    def eta_shift(self) -> Level:
        return 0.0  # states have no eta

    @property
    def label(self) -> str:
        return f"s-rectangular {self.set.label}"

    def __str__(self) -> str:
        return f"s-rectangular, shared by the actions of a state: {self.set}"
