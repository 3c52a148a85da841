"""A robustness curve with its solutions: a problem solved at each level of one kind of set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.app.study.numbers import short
from robustmdp.models import MDP
from robustmdp.result import Solution
from robustmdp.table import Table
from robustmdp.tuning.curve import Point, SetAt, as_table, is_rising, points_along

LEVELS = 30


class Levels(NamedTuple):
    """What to sweep over: `name` is weight, radius, share or level; `selected` the level that was selected, if any."""

    name: str
    set_at: SetAt
    levels: FloatArray
    selected: float | None


@dataclass(frozen=True, eq=False)
class Sweep:
    """A robustness curve with its solutions.

    Attributes
    ----------
    name : what the levels are: weight, radius, share; "level" where they are those of a function
    points, curve : the levels, from the least to the most robust
    place : which of them was selected, if it is among them
    """

    name: str
    points: tuple[Point, ...]
    curve: Table
    place: int | None

    @property
    def grows(self) -> bool:
        """Is a larger level more robust?"""
        return self.points[0].level <= self.points[-1].level

    @property
    def knee(self) -> int:
        """The level at which robustness gains most for its price; the most robust one where it gains nothing."""
        knee: int = self.curve.notes["knee"]
        return knee % len(self.points)

    @property
    def gains(self) -> bool:
        """Does a robust policy certainly improve the worst case at any level?"""
        return bool((self.curve["worst"] - self.curve["nominal_worst"] > 4.0 * self.curve["error_bound"]).any())

    @property
    def shown(self) -> int:
        """The level to begin at: the selected one, or the knee."""
        return self.knee if self.place is None else self.place

    def gain_and_price(self, place: int) -> tuple[float, float]:
        """What robustness gains in the worst case at a level, and what it costs if the model is right."""
        curve = self.curve
        gain, price = (
            curve["worst"][place] - curve["nominal_worst"][place],
            curve.notes["best"] - curve["nominal"][place],
        )
        return float(gain), float(price)

    def text(self, place: int) -> str:
        """A level in a word."""
        level = short(self.points[place].level, 3)
        if "." in level and "e" not in level:
            level = level.rstrip("0").rstrip(".")
        return f"{'λ =' if self.name == 'weight' else self.name} {level}"


def sweep(
    mdp: MDP,
    family: Levels,
    nominal: Solution,
    start: FloatArray,
    *,
    tol: float = 1e-6,
    threads: int | None,
    progress: Callable[[float], None],
) -> Sweep:
    """Solve at the levels; the selected one, if it lies between them, takes the place of its neighbour."""
    levels, place, selected = family.levels.copy(), None, family.selected
    if selected is not None and levels.min() <= selected <= levels.max():
        place = int(np.abs(np.log(levels) - np.log(selected)).argmin())
        levels[place] = selected
    points = []
    for point in points_along(mdp, family.set_at, levels, nominal, tol=tol, threads=threads):
        points.append(point)
        progress(len(points) / len(levels))
    if is_rising(points):
        points.reverse()
        place = None if place is None else len(points) - 1 - place
    curve = as_table(points, start, family.name, best=float(start @ nominal.value))
    return Sweep(family.name, tuple(points), curve, place)
