"""What PRISM and Storm have in common: choices instead of actions, labels on them, and numbers as text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.io.delimited import NUMBER, WHOLE, is_number
from robustmdp.io.words import shown
from robustmdp.models.assembly import LARGEST

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_FRACTION = re.compile(r"([+-]?\d+)\s*/\s*(\d+)", re.ASCII)
_DIGITS = re.compile(r"\d{1,18}", re.ASCII)
_MOST_ENTRIES = 64  # of a table over states and labels, for each choice that there is


@dataclass(frozen=True)
class Lines:
    """A text file, as messages speak of it; rows are numbers of lines."""

    path: Path

    @property
    def name(self) -> str:
        """As in messages."""
        return self.path.name

    def label(self, column: str) -> str:
        """The fields have no names of their own."""
        return column

    def place(self, line: int) -> str:
        """Where something stands."""
        return f"line {line} of {self.name}"

    def number(self, what: str, text: str, line: int) -> float:
        """A decimal number or a fraction."""
        fraction = _FRACTION.fullmatch(text)
        if fraction is not None and len(text) < 1000 and int(fraction[2]) > 0:
            try:
                return int(fraction[1]) / int(fraction[2])
            except OverflowError:
                return math.inf
        if not is_number(text):
            _checks.fail(f"{what} must be {NUMBER}: got {shown(text)} at {self.place(line)}")
        return float(text)

    def index(self, what: str, text: str, line: int) -> int:
        """A whole number in 0..LARGEST."""
        if _DIGITS.fullmatch(text) is None or int(text) > LARGEST:
            _checks.fail(f"{what} must be {WHOLE} in 0..{LARGEST}: got {shown(text)} at {self.place(line)}")
        return int(text)


class Labelled(NamedTuple):
    """The action of each transition, and the names of all actions or None."""

    action: npt.NDArray[np.int64]
    names: tuple[str, ...] | None


def by_label(state: npt.NDArray[np.int64], choice: npt.NDArray[np.int64], labels: Sequence[str]) -> Labelled:
    """Actions by the labels of the choices ("" for none), where these tell the choices of a state apart.

    The same label is the same action everywhere, numbered as it first appears. Where labels say nothing, are ambiguous
    or far more than the choices of a state, the number of the choice is that of the action.
    """
    if not any(labels):
        return Labelled(choice, None)
    words = [label or f"choice {number}" for label, number in zip(labels, choice.tolist(), strict=True)]
    numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
    action = np.array([numbers[word] for word in words], np.int64)
    by_choice, by_name, jointly = (count(state, *kinds) for kinds in ((choice,), (action,), (choice, action)))
    if by_choice == by_name == jointly and count(state) * len(numbers) <= _MOST_ENTRIES * by_choice:
        return Labelled(action, tuple(numbers))
    return Labelled(choice, None)


def ranks(*columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """A number for each row, the same for equal rows."""
    order = np.lexsort(columns[::-1])
    new = np.zeros(len(order), bool)
    for column in columns:
        new[1:] |= np.diff(column[order]) != 0
    out = np.empty(len(order), np.int64)
    out[order] = np.cumsum(new)
    return out


def count(*columns: npt.NDArray[np.int64]) -> int:
    """How many different rows there are."""
    return int(ranks(*columns).max(initial=-1)) + 1


def written_labels(names: Sequence[str] | None) -> Sequence[str] | None:
    """The names of actions, if other programs could read them all."""
    return names if names is not None and all(IDENTIFIER.fullmatch(name) for name in names) else None
