"""A measured figure and the bar it is held against."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Figure(NamedTuple):
    """`at_most` or at least: which side of the bar is good. A goal lies beyond the bar and is never missed."""

    name: str
    measured: float
    bar: float | None = None
    at_most: bool = True
    unit: str = "x"
    goal: float | None = None

    @property
    def holds(self) -> bool:
        """Is the bar met? Figures without one always are."""
        if self.bar is None:
            return True
        return self.measured <= self.bar if self.at_most else self.measured >= self.bar

    def __str__(self) -> str:
        side = "at most" if self.at_most else "at least"
        goal = "" if self.goal is None else f" (goal {self.goal:g})"
        bar = "" if self.bar is None else f"   bar: {side} {self.bar:g}"
        verdict = "" if self.bar is None else f"   {'holds' if self.holds else 'MISSED'}"
        return f"  {self.name:<72}{self.measured:>10.3g} {self.unit:<3}{bar}{goal}{verdict}"


def run_time(call: Callable[[], object]) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def best_time(
    call: Callable[[], object],
    repeats: int = 5,
    limit: float = float("inf"),
    before: Callable[[], object] | None = None,
) -> float:
    """Seconds of the fastest of several runs; the first one warms compilers and caches and is not counted.

    No further run starts once the counted ones have taken `limit` seconds. `before` runs ahead of each one, untimed.
    """
    best, total = float("inf"), 0.0
    for attempt in range(repeats + 1):
        if before is not None:
            before()
        seconds = run_time(call)
        if attempt:
            best, total = min(best, seconds), total + seconds
        if total >= limit:
            break
    return best
