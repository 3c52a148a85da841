"""What a report calls things: numbers, states, actions, and the places of a grid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp._display import choice_text
from robustmdp.app.study.nature import Row
from robustmdp.models import MDP
from robustmdp.operators.policy import likeliest, probability_of_likeliest

Outcome = tuple[str, float, float, float | None]  # name, nominal and worst-case probability, value

_DIGITS = 4
_SMALL = 0.1  # below, four digits are too many for a narrow column
_MOST = 12  # successors of a pair that are listed


def short(number: float, digits: int = _DIGITS) -> str:
    """The digits that count, without an exponent where the number can be read.

    >>> short(3337.4), short(-29.1), short(0.000123456), short(-0.0), short(1.1e-5)
    ('3,337', '-29.10', '0.0001235', '0', '1.1e-05')
    """
    size = abs(number)
    if size == 0:
        return "0"
    if not 1e-4 <= size < 1e7:
        return f"{number:.3g}"
    return f"{number:,.{max(0, decimals(size, digits))}f}"


def decimals(size: float, digits: int = _DIGITS) -> int:
    """How many decimals leave so many digits of a number of this size; negative ones round before the point.

    >>> decimals(0.25), decimals(-29.1)
    (4, 2)
    """
    return digits - 1 - math.floor(math.log10(abs(size))) if size and math.isfinite(size) else 0


def interval(low: float, high: float) -> str:
    """Two bounds with the digits in which they differ, rounded outwards.

    >>> interval(-29.10189123, -29.10188747)
    '-29.1018913 and -29.1018874'
    """
    places = min(max(decimals(high - low, 2), 0), 12) if high > low else 6
    unit = 10.0**places
    ends = (math.floor(low * unit) / unit, math.ceil(high * unit) / unit)
    return " and ".join(f"{end + 0.0:.{places}f}" for end in ends)


def alike(numbers: npt.ArrayLike, digits: int = _DIGITS) -> list[float]:
    """Rounded as their largest is, so that none pretends to more than it says beside the others.

    >>> alike([0.46414, 6.565e-08])
    [0.4641, 0.0]
    """
    array = np.asarray(numbers, dtype=np.float64)
    places = decimals(float(np.abs(array).max(initial=0.0)), digits)
    return (np.round(array, places) + 0.0).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Layout:
    """State s lies in row s // columns, column s % columns; `arrows` are the actions' directions, or short words.

    `marks` are letters of states (S start, G goal, H hole); in `closed` states there is nothing to decide.

    >>> Layout(1, 6, ("drift", "swim")).place(4)
    (0, 4)
    """

    rows: int
    columns: int
    arrows: tuple[str, ...]
    marks: Mapping[int, str] | None = None
    closed: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        _checks.positive_integer("rows", self.rows)
        _checks.positive_integer("columns", self.columns)

    @property
    def n_states(self) -> int:
        """How many places."""
        return self.rows * self.columns

    def place(self, state: int) -> tuple[int, int]:
        """Row and column, counted from 0."""
        return divmod(state, self.columns)

    def mark(self, state: int) -> str:
        """The letter of a state, if any."""
        return (self.marks or {}).get(state, "")

    def name(self, state: int) -> str:
        """What a reader calls it."""
        row, column = self.place(state)
        where = f"column {column + 1}" if self.rows == 1 else f"row {row + 1}, column {column + 1}"
        return f"{where} ({self.mark(state)})" if self.mark(state) else where


@dataclass(frozen=True, eq=False)
class Names:
    """By the layout where there is one, otherwise by the model's own names."""

    mdp: MDP
    layout: Layout | None

    def state(self, state: int) -> str:
        """Of a state, or of the end."""
        if state == self.mdp.n_states:
            return "the end"
        return self.layout.name(state) if self.layout and not self.mdp.state_names else self.mdp.state_name(state)

    def action(self, action: int) -> str:
        """Of an action."""
        if self.layout and not self.mdp.action_names and action < len(self.layout.arrows):
            return self.layout.arrows[action]
        return self.mdp.action_name(action)

    def choice(self, policy: npt.NDArray[Any], state: int) -> str:
        """The likeliest action of a policy, with its probability where it is random."""
        row = policy[[state]]
        return choice_text(self.action(int(likeliest(row)[0])), float(probability_of_likeliest(row)[0]))

    def bars(self, row: Row) -> dict[str, Any]:
        """A pair with its successors, as the page draws them: of many, the likeliest and the sum of the rest."""
        digits = 2 if float(np.abs(row.values).max()) < _SMALL else _DIGITS
        columns = row.nominal.tolist(), row.worst.clip(0.0, 1.0).tolist(), alike(row.values, digits)
        found: list[Outcome] = list(zip(map(self.state, row.successors), *columns, strict=True))
        if len(found) > _MOST:
            ranked = sorted(range(len(found)), key=lambda i: -max(found[i][1:3]))
            others = [found[i] for i in ranked[_MOST - 1 :]]
            rest = math.fsum(each[1] for each in others), math.fsum(each[2] for each in others)
            found = [*(found[i] for i in sorted(ranked[: _MOST - 1])), (f"{len(others)} more", *rest, None)]
        return {"title": f"{self.state(row.state)}: {self.action(row.action)}", "outcomes": found}

    def move(self, row: Row) -> str:
        """Where nature takes most of the chance that it moves, and where it puts most of it."""
        shift = row.worst - row.nominal
        source, target = (self.state(row.successors[int(at)]) for at in (shift.argmin(), shift.argmax()))
        return "hardly any" if row.moved < 5e-4 else f"{100 * row.moved:.2g} % from {source} to {target}"

    def start(self, chances: FloatArray) -> str:
        """Where it begins."""
        first = np.flatnonzero(chances)
        if len(first) == 1:
            return self.state(int(first[0]))
        which = "any state" if len(first) == self.mdp.n_states else f"one of {len(first):,} states"
        return f"{which}, equally likely" if np.ptp(chances[first]) == 0.0 else which
