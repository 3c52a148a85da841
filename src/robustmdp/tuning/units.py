"""Rewards without their unit and their zero, in which tolerances mean the same for every problem."""

from __future__ import annotations

from typing import NamedTuple

from robustmdp.models import MDP


class Units(NamedTuple):
    """(r - zero)/unit lies in [-1, 1].

    A constant added to all rewards adds constant/(1 - discount) to all values where no episode ends: there the zero is
    the middle of the rewards. Where episodes end it is 0, the reward of what comes after.

    >>> from robustmdp import problems
    >>> Units.of(problems.machine_replacement())
    Units(zero=-5.0, unit=5.0)
    """

    zero: float
    unit: float

    @classmethod
    def of(cls, mdp: MDP) -> Units:
        """Those of a model; the unit is 1 where all rewards are the same."""
        low, high = mdp.reward_range
        zero = 0.0 if mdp.can_end else 0.5 * low + 0.5 * high
        return cls(zero, max(high - zero, zero - low) or 1.0)

    def standardise(self, mdp: MDP) -> MDP:
        """The same world with rewards in these units."""
        return mdp.with_rewards((mdp.rewards - self.zero) / self.unit)

    def tolerance(self, tol: float) -> float:
        """What `solve` must be given for an error of tol in these units, which it knows nothing of."""
        return tol * self.unit / max(1.0, self.unit, abs(self.zero))

    def value(self, standardised: float, discount: float) -> float:
        """A value of the world itself from that of the standardised one."""
        return self.unit * standardised + self.zero / (1.0 - discount)
