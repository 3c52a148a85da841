"""A store that orders before it knows the demand."""

from __future__ import annotations

import math

import numpy as np

from robustmdp import _checks
from robustmdp.models import MDP


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
