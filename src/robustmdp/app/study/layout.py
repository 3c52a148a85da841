"""Worlds that are places: where each state lies in a grid, and which way each action points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from robustmdp import _checks

_FROZEN_LAKE = ("left", "down", "right", "up")
_CLIFF_WALKING = ("up", "right", "down", "left")


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
        mark = self.mark(state)
        where = f"column {column + 1}" if self.rows == 1 else f"row {row + 1}, column {column + 1}"
        return f"{where} ({mark})" if mark else where


def of_environment(env: Any) -> Layout | None:
    """The layout of a Gymnasium world that is known to be a grid, else None."""
    inner = getattr(env, "unwrapped", env)
    kind = type(inner).__name__
    if kind == "FrozenLakeEnv":
        letters = [[cell.decode() for cell in row] for row in inner.desc]
        marks = {
            r * len(row) + c: letter for r, row in enumerate(letters) for c, letter in enumerate(row) if letter != "F"
        }
        closed = frozenset(state for state, letter in marks.items() if letter in "HG")
        return Layout(len(letters), len(letters[0]), _FROZEN_LAKE, marks, closed)
    if kind == "CliffWalkingEnv":
        rows, columns = (int(size) for size in inner.shape)
        cliff = {(rows - 1) * columns + column: "C" for column in range(1, columns - 1)}
        start, goal = (rows - 1) * columns, rows * columns - 1
        return Layout(rows, columns, _CLIFF_WALKING, {**cliff, start: "S", goal: "G"}, frozenset({*cliff, goal}))
    return None
