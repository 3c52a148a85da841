"""From a bound on the error to a number of samples."""

from __future__ import annotations

from collections.abc import Callable

from robustmdp import _checks

_LARGEST_COUNT = 1 << 1000


def smallest_count(bound: Callable[[int], float], epsilon: float) -> int:
    """The smallest n >= 1 with bound(n) <= epsilon, for a bound that falls to 0."""
    high = 1
    while not bound(high) <= epsilon:
        high *= 2
        _checks.must(high < _LARGEST_COUNT, f"epsilon must be within reach of a finite count: got {epsilon:g}")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) <= epsilon else (middle, high)
    return high
