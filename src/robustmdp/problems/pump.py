"""A pump whose failures are rare and dear."""

from __future__ import annotations

from robustmdp import _checks
from robustmdp.models import MDP

RUN, SERVICE, REPLACE = range(3)
_WEAR_OF_A_WEEK = (0.55, 0.35, 0.10)  # probabilities that wear rises by 0, 1, 2
_LARGEST_GROWTH = 1e6
_EARNED, _SERVICE_COST, _NEW_PUMP, _FAILURE_COST = 3.0, 2.0, 12.0, 70.0


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
    chance = _checks.finite_number("failure", failure)
    _checks.must(0.0 <= chance <= 1.0, f"failure must lie in [0, 1]: got {chance:g}")
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
