"""What wears out or runs out: replacing a machine, running a pump, ordering for a store."""

from __future__ import annotations

import math

import numpy as np

from robustmdp import _checks
from robustmdp.models import MDP

RUN, SERVICE, REPLACE = range(3)
_WEAR_OF_A_WEEK = (0.55, 0.35, 0.10)  # probabilities that wear rises by 0, 1, 2
_LARGEST_GROWTH = 1e6
_EARNED, _SERVICE_COST, _NEW_PUMP, _FAILURE_COST = 3.0, 2.0, 12.0, 70.0


def machine_replacement(n_ages: int = 10, repair_success: float = 0.9, discount: float = 0.95) -> MDP:
    """A machine wears out: keep it, repair it (which may fail) or replace it; costs are negative rewards.

    The older it is, the more often it fails and the dearer its failures. State `n_ages` - 1 is broken down.

    >>> machine_replacement().state_names[-1]
    'broken'
    """
    n = _checks.positive_integer("n_ages", n_ages)
    _checks.must(n >= 3, f"n_ages must be at least 3: got {n}")
    success = _checks.probability("repair_success", repair_success)
    broken = n - 1
    keep, repair, replace = 0, 1, 2
    transitions = np.zeros((n, 3, n))
    rewards = np.zeros((n, 3))
    for age in range(n - 1):
        failure = 0.05 + 0.4 * age / (n - 2)
        transitions[age, keep, age + 1] += 1.0 - failure
        transitions[age, keep, broken] += failure
        rewards[age, keep] = -0.5 * age / (n - 2)
    transitions[broken, keep, broken] = 1.0
    rewards[broken, keep] = -10.0
    for age in range(n):
        younger = max(age - 3, 0)
        transitions[age, repair, younger] += success
        transitions[age, repair, age] += 1.0 - success
        rewards[age, repair] = -2.0 if age < broken else -6.0
        transitions[age, replace, 0] = 1.0
        rewards[age, replace] = -8.0
    names = [f"age {i}" for i in range(n - 1)] + ["broken"]
    return MDP.from_arrays(
        transitions, rewards, discount, state_names=names, action_names=["keep", "repair", "replace"]
    )


def pump(failure: float = 0.012, growth: float = 1.45, n_levels: int = 10, discount: float = 0.98) -> MDP:
    """Run a pump, service it or replace it, week by week; rewards are in thousands.

    At wear w a running pump fails within the week with probability `failure * growth**w`, at most 0.9. A week's run
    earns 3, a service costs 2 and takes wear back by 4 (or by 2, one time in five), a new pump costs 12. A failed pump
    must be replaced, which costs 70 with the damage.

    Parameters
    ----------
    failure : probability that a new pump fails within a week
    growth : how many times likelier a failure becomes with each level of wear
    n_levels : levels of wear, the last of which is the highest

    >>> world = pump()
    >>> world.state_names[0], world.state_names[-1], world.action_names
    ('wear 0', 'failed', ('run', 'service', 'replace'))
    >>> float(world.row(0, 0)["probability"][-1])
    0.012
    """
    n = _checks.positive_integer("n_levels", n_levels)
    chance = _checks.probability("failure", failure)
    rate = _checks.finite_number("growth", growth)
    _checks.must(rate >= 1.0, f"growth must be at least 1: got {rate:g}")
    _checks.must(rate <= _LARGEST_GROWTH, f"growth must be at most {_LARGEST_GROWTH:g}: got {rate:g}")
    failed, rows = n, []
    for wear in range(n):
        fails = min(0.9, chance * rate**wear)
        for rise, share in enumerate(_WEAR_OF_A_WEEK):
            rows.append((wear, RUN, min(wear + rise, n - 1), share * (1.0 - fails), _EARNED))
        rows.append((wear, RUN, failed, fails, _EARNED))
        rows.append((wear, SERVICE, max(wear - 4, 0), 0.8, -_SERVICE_COST))
        rows.append((wear, SERVICE, max(wear - 2, 0), 0.2, -_SERVICE_COST))
        rows.append((wear, REPLACE, 0, 1.0, -_NEW_PUMP))
    rows.append((failed, REPLACE, 0, 1.0, -_FAILURE_COST))
    state, action, next_state, probability, reward = zip(*rows, strict=True)
    return MDP.from_rows(
        state,
        action,
        next_state,
        probability,
        reward,
        discount,
        state_names=[*(f"wear {w}" for w in range(n)), "failed"],
        action_names=["run", "service", "replace"],
    )


def inventory(capacity: int = 20, mean_demand: float = 5.0, discount: float = 0.95) -> MDP:
    """Stock s, order a <= capacity - s, then Poisson demand; unmet demand is lost.

    Profit per period: 4 per unit sold, 2 per unit ordered, 3 per order placed, 0.1 per unit kept. The reward depends on
    the demand, and so on the next stock; states with more stock have fewer actions.

    >>> inventory(capacity=3).n_pairs
    10
    """
    capacity = _checks.positive_integer("capacity", capacity)
    mean = _checks.finite_number("mean_demand", mean_demand)
    _checks.must(mean > 0, f"mean_demand must be positive: got {mean:g}")
    below = [math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(capacity)]
    rows = []
    for stock in range(capacity + 1):
        for order in range(capacity - stock + 1):
            available = stock + order
            demand = [*below[:available], max(1.0 - sum(below[:available]), 0.0)]  # the last: everything is sold
            for sold, probability in enumerate(demand):
                left = available - sold
                profit = 4.0 * sold - 2.0 * order - 3.0 * (order > 0) - 0.1 * left
                rows.append((stock, order, left, probability, profit))
    state, action, following, chance, reward = (np.array(column) for column in zip(*rows, strict=True))
    return MDP.from_rows(
        state,
        action,
        following,
        chance,
        reward,
        discount,
        n_states=capacity + 1,
        state_names=[f"{s} in stock" for s in range(capacity + 1)],
        action_names=[f"order {a}" for a in range(capacity + 1)],
    )
