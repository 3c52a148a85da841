"""What the theorems share: checks of their arguments, and the step from a bound to a number of samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from robustmdp import _checks

_LARGEST_COUNT = 1 << 1000


def positive(name: str, value: Any) -> float:
    """`value` as a finite float > 0."""
    number = _checks.finite_number(name, value)
    _checks.must(number > 0.0, f"{name} must be positive: got {number:g}")
    return number


def fraction(name: str, value: Any) -> float:
    """`value` as a float in (0, 1)."""
    number = _checks.finite_number(name, value)
    _checks.must(0.0 < number < 1.0, f"{name} must lie in (0, 1): got {number:g}")
    return number


def interval(name: str, ends: tuple[float, float]) -> tuple[float, float]:
    """Two finite numbers in order."""
    low, high = (_checks.finite_number(name, end) for end in ends)
    _checks.must(low <= high, f"{name} must be (low, high) with low <= high: got ({low:g}, {high:g})")
    return low, high


def one_of(kind: str, name: str, known: tuple[str, ...]) -> str:
    """A known name, or an error that suggests the nearest one."""
    if name not in known:
        _checks.nearest(kind, name, known)
    return name


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
