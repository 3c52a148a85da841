"""The arguments that the theorems share: positive numbers, ranges of values, names of forms."""

from __future__ import annotations

from typing import Any

from robustmdp import _checks


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
