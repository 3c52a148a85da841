"""A measured figure and the bar it is held against."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Figure(NamedTuple):
    """`at_most` or at least: which side of the bar is good."""

    name: str
    measured: float
    bar: float | None = None
    at_most: bool = True
    unit: str = "x"

    @property
    def holds(self) -> bool:
        """Is the bar met? Figures without one always are."""
        if self.bar is None:
            return True
        return self.measured <= self.bar if self.at_most else self.measured >= self.bar

    def __str__(self) -> str:
        side = "at most" if self.at_most else "at least"
        bar = "" if self.bar is None else f"   bar: {side} {self.bar:g}   {'holds' if self.holds else 'MISSED'}"
        return f"  {self.name:<72}{self.measured:>10.3g} {self.unit:<3}{bar}"


def best_time(call: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of the fastest of several runs; the first one warms the compiler and is not counted."""
    call()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best
