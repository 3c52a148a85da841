"""What is to be bounded, and by which rule on each side."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.operators.pinned import PinnedBellman
from robustmdp.operators.policy import PolicyRows


class Rule(Enum):
    """How a bound is proved. Write G for T where the bound is `upper`, for T of the policy where it is `lower`.

    PROGRESS: G u <= u - delta for some delta > 0, or G l >= l + delta. Summed along a run of n steps this gives
    u >= E(payoff of the steps) + E u(last state) + delta n, so who stays away from the end for ever pays delta each
    time: it is never worth it, and the end's value 0 remains. Where payoffs have one sign and idling is worth 0,
    states whose bound is 0 need no proof.

    COLLAPSE: G u <= u where u >= 0 bounds what is collected until any step, G l >= l where l <= 0; also where staying
    away from the end for ever is forbidden to those whose choice is left. Nothing is lost at a step, so rounding would
    break the inequality in loops without payoff: there it is replaced by a comparison of the states that can follow.
    """

    PROGRESS = "progress"
    COLLAPSE = "collapse"


@dataclass(frozen=True, eq=False)
class Problem:
    """A sum of payoffs until the end, a pinned state or for ever, which the player makes large.

    Attributes
    ----------
    bellman : the operator, at discount 1
    policy : the policy to evaluate, or None
    lower_rule, upper_rule : how the bounds are proved
    idle_is_zero : whether staying for ever without payoff is worth 0
    floor, ceiling : (S,) bounds that are known beforehand, for every policy
    purpose : what the value is called in messages
    guess : (S,) values to begin with, or None
    steps : (S,) of a shortest path to the goal of a probability, -1 where there is none; None for other sums
    """

    bellman: PinnedBellman
    policy: PolicyRows | None
    lower_rule: Rule
    upper_rule: Rule
    idle_is_zero: bool
    floor: FloatArray
    ceiling: FloatArray
    purpose: str = "total reward"
    guess: FloatArray | None = None
    steps: IntArray | None = None

    @property
    def nature_helps(self) -> bool:
        """Whether nature is on the player's side."""
        return self.bellman.ambiguity.sign < 0.0

    @property
    def usable(self) -> BoolArray:
        """The pairs that may be used, (n_pairs,)."""
        mdp = self.bellman.mdp
        if self.policy is not None:
            used = np.zeros(mdp.n_pairs, dtype=bool)
            used[self.policy.pairs] = True
            return used
        return np.ones(mdp.n_pairs, dtype=bool) if self.bellman.forbidden is None else ~self.bellman.forbidden


def total_reward(bellman: PinnedBellman, policy: PolicyRows | None, purpose: str = "total reward") -> Problem:
    """The sum of all rewards; which rules prove its bounds depends on the signs of those in use, pins included.

    Nature's payment counts as a payoff. Where it is received, the payoffs r + payment of an adverse nature are
    non-negative if r is; where r is at most 0, and where a nature that helps pays, no rule needs their sign.
    """
    mdp = bellman.mdp
    rewards = mdp.rewards
    if policy is not None:
        rewards = rewards[mdp.transitions_of(policy.pairs) if mdp.rewards_on_successors else policy.pairs]
    low, high = float(rewards.min()), float(rewards.max())
    pins = bellman.values[bellman.pinned]
    low, high = min([low, *pins]), max([high, *pins])
    states = mdp.n_states
    zero, infinite = np.zeros(states), np.full(states, np.inf)
    if low >= 0.0:
        return Problem(bellman, policy, Rule.PROGRESS, Rule.COLLAPSE, True, zero, infinite, purpose)
    if high <= 0.0:
        return Problem(bellman, policy, Rule.COLLAPSE, Rule.PROGRESS, True, -infinite, zero, purpose)
    return Problem(bellman, policy, Rule.PROGRESS, Rule.PROGRESS, False, -infinite, infinite, purpose)
