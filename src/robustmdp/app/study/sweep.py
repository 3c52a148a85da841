"""The levels of one kind of set: a problem solved at each of them, from the least to the most robust."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from robustmdp.app.study.numbers import short
from robustmdp.models import MDP
from robustmdp.result import Solution
from robustmdp.table import Table
from robustmdp.tuning.curve import Point, SetAt, as_table, is_rising, points_along

FloatArray = npt.NDArray[np.float64]

LEVELS = 30


@dataclass(frozen=True, eq=False)
class Sweep:
    """A robustness curve with its solutions.

    Attributes
    ----------
    points, curve : the levels, from the least to the most robust
    place : which of them was asked for, if it is among them
    """

    points: tuple[Point, ...]
    curve: Table
    place: int | None

    @property
    def penalized(self) -> bool:
        """Are the levels weights of a divergence?"""
        return self.points[0].ambiguity.has_weight

    @property
    def form(self) -> str:
        """What the levels are: weight, radius, share; "level" where they are not those of the sets themselves."""
        return next(iter(self.curve.columns))

    @property
    def grows(self) -> bool:
        """Is a larger level more robust?"""
        return self.points[0].level <= self.points[-1].level

    @property
    def knee(self) -> int:
        """The curve's knee; its most robust level where robustness buys nothing."""
        knee: int = self.curve.notes["knee"]
        return knee % len(self.points)

    @property
    def bargain(self) -> tuple[float, float]:
        """What robustness buys in the worst case at the knee, and what it costs if the model is right."""
        curve, at = self.curve, self.knee
        bought, paid = curve["worst"][at] - curve["nominal_worst"][at], curve.notes["best"] - curve["nominal"][at]
        return float(bought), float(paid)

    def said(self, place: int) -> str:
        """A level in a word."""
        level = short(self.points[place].level, 3)
        if "." in level and "e" not in level:
            level = level.rstrip("0").rstrip(".")
        return f"{'λ =' if self.penalized else self.form} {level}"


def sweep(
    mdp: MDP,
    set_at: SetAt,
    levels: FloatArray,
    asked: float | None,
    trusting: Solution,
    start: FloatArray,
    *,
    threads: int | None,
    progress: Callable[[float], None],
) -> Sweep:
    """Solve at the levels; the one asked for, if it lies between them, takes the place of its neighbour."""
    levels, place = levels.copy(), None
    if asked is not None and levels.min() <= asked <= levels.max():
        place = int(np.abs(np.log(levels) - np.log(asked)).argmin())
        levels[place] = asked
    points = []
    for point in points_along(mdp, set_at, levels, trusting, threads=threads):
        points.append(point)
        progress(len(points) / len(levels))
    if is_rising(points):
        points.reverse()
        place = None if place is None else len(points) - 1 - place
    ambiguity = points[0].ambiguity
    name = ambiguity.level_name if np.array_equal(ambiguity.level, points[0].level) else "level"
    curve = as_table(points, start, name, best=float(start @ trusting.value))
    return Sweep(tuple(points), curve, place)
