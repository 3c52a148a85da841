"""What PRISM and Storm have in common: choices instead of actions, labels, and numbers or intervals as text."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from robustmdp import _checks
from robustmdp._arrays import IntArray
from robustmdp.io.labelling import END, INIT
from robustmdp.io.text import NUMBER, WHOLE, is_number, shown
from robustmdp.models import MDP
from robustmdp.models.assembly import LARGEST

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_FRACTION = re.compile(r"([+-]?\d+)\s*/\s*(\d+)", re.ASCII)
_MOST_DIGITS, _FEW_DIGITS = 18, 10
BATCH = 1 << 14  # lines that are parsed at once
_BOUNDS = re.compile(r"\[([^,\[\]]*),([^,\[\]]*)\]")
_MOST_ENTRIES = 64  # of a table over states and labels, for each choice that there is


class IntervalsError(ValueError):
    """A file holds intervals where numbers were asked for."""


@dataclass(frozen=True)
class Lines:
    """A text file, as messages speak of it; rows are numbers of lines."""

    path: Path
    may_be_log = False

    @property
    def name(self) -> str:
        return self.path.name

    def label(self, column: str) -> str:
        return column  # fields have no names of their own

    def place(self, line: int) -> str:
        return f"line {line} of {self.name}"

    def number(self, what: str, text: str, line: int) -> float:
        """A decimal number or a fraction."""
        if is_number(text):
            return float(text)
        fraction = _FRACTION.fullmatch(text)
        if fraction is None or len(text) >= 1000 or int(fraction[2]) == 0:
            _checks.fail(f"{what} must be {NUMBER}: got {shown(text)} at {self.place(line)}")
        try:
            return int(fraction[1]) / int(fraction[2])
        except OverflowError:
            return math.inf

    def bounds(self, what: str, text: str, line: int) -> tuple[float, float]:
        """Those of `[0.1, 0.3]`; a number is both."""
        if not text.startswith("["):
            number = self.number(what, text, line)
            return number, number
        found = _BOUNDS.fullmatch(text)
        if found is None:
            _checks.fail(f"an interval must be written as [0.1, 0.3]: got {shown(text)} at {self.place(line)}")
        lower, upper = (self.number(f"a bound of the {what}", bound.strip(), line) for bound in found.groups())
        return lower, upper

    def all_bounds(self, what: str, texts: Sequence[str], lines: Sequence[int]) -> tuple[array[float], array[float]]:
        """The same for many, quickly where they are all alike."""
        found = _parse_bounds(texts)
        if found is None:
            both = [self.bounds(what, text, line) for text, line in zip(texts, lines, strict=True)]
            found = array("d", [lower for lower, _ in both]), array("d", [upper for _, upper in both])
        return found

    def refuse_interval(self, line: int) -> NoReturn:
        """Name the function that takes them."""
        _checks.fail(
            f"{self.name} must hold numbers: it has intervals, as at {self.place(line)}",
            argument="intervals",
            advice="; use rm.read_interval",
            kind=IntervalsError,
        )

    def index(self, what: str, text: str, line: int) -> int:
        """A whole number in 0..LARGEST."""
        is_whole = text.isdigit() and text.isascii() and len(text) <= _MOST_DIGITS
        if not is_whole or int(text) > LARGEST:
            _checks.fail(f"{what} must be {WHOLE} in 0..{LARGEST}: got {shown(text)} at {self.place(line)}")
        return int(text)

    def all_indices(self, what: str, texts: Sequence[str], lines: Sequence[int]) -> array[int]:
        """The same for many, quickly where they are short."""
        joined = "".join(texts)
        if joined.isdigit() and joined.isascii() and all(texts) and max(map(len, texts)) < _FEW_DIGITS:
            return array("q", map(int, texts))
        return array("q", [self.index(what, text, line) for text, line in zip(texts, lines, strict=True)])


def _parse_bounds(texts: Sequence[str]) -> tuple[array[float], array[float]] | None:
    """Those of plain numbers or of intervals of plain numbers; None where anything else is among them."""
    joined = "".join(texts)
    if "_" in joined or not joined.isascii():  # Python takes 1_000 and the digits of other scripts
        return None
    try:
        if "[" not in joined:
            numbers = array("d", map(float, texts))
            return numbers, numbers
        pairs = [text[1:-1].split(",") for text in texts if text.startswith("[") and text.endswith("]")]
        lower, upper = zip(*pairs, strict=True)
        return (array("d", map(float, lower)), array("d", map(float, upper))) if len(pairs) == len(texts) else None
    except ValueError:
        return None


def by_label(state: IntArray, choice: IntArray, labels: Sequence[str]) -> tuple[IntArray, tuple[str, ...] | None]:
    """Actions by the labels of the choices ("" for none) and their names, where they tell the choices of a state apart.

    The same label is the same action everywhere, numbered as it first appears. Where labels say nothing, are ambiguous
    or far more than the choices of a state, the number of the choice is that of the action.
    """
    if not any(labels):
        return choice, None
    words = [label or f"choice {number}" for label, number in zip(labels, choice.tolist(), strict=True)]
    numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
    action = np.array([numbers[word] for word in words], np.int64)
    by_choice, by_name, jointly = (count(state, *kinds) for kinds in ((choice,), (action,), (choice, action)))
    if by_choice == by_name == jointly and count(state) * len(numbers) <= _MOST_ENTRIES * by_choice:
        return action, tuple(numbers)
    return choice, None


def ranks(*columns: IntArray) -> IntArray:
    """A number for each row, the same for equal rows."""
    order = np.lexsort(columns[::-1])
    new = np.zeros(len(order), bool)
    for column in columns:
        new[1:] |= np.diff(column[order]) != 0
    out = np.empty(len(order), np.int64)
    out[order] = np.cumsum(new)
    return out


def count(*columns: IntArray) -> int:
    """How many different rows there are."""
    return int(ranks(*columns).max(initial=-1)) + 1


def written_labels(names: Sequence[str] | None) -> Sequence[str] | None:
    """The names of actions, if other programs could read them all."""
    return names if names is not None and all(IDENTIFIER.fullmatch(name) for name in names) else None


def written_state_labels(mdp: MDP, ends: int = 0) -> dict[str, IntArray]:
    """The states of each label that other programs can read and some state has; the ends have a label, too."""
    labels = {
        name: np.flatnonzero(mask)
        for name, mask in mdp.labels.items()
        if name != INIT and IDENTIFIER.fullmatch(name) and mask.any()
    }
    if ends and END not in mdp.labels:
        labels[END] = np.arange(mdp.n_states, mdp.n_states + ends)
    return labels


def written_initial_states(mdp: MDP) -> IntArray:
    """Those of positive probability; state 0 where the model has none, since PRISM and Storm must have one."""
    return np.zeros(1, np.int64) if mdp.initial is None else np.flatnonzero(mdp.initial)


def labels_by_state(mdp: MDP, ends: int) -> dict[int, list[str]]:
    """The labels of each state that has some, `init` first."""
    found: dict[int, list[str]] = {}
    for name, states in {INIT: written_initial_states(mdp), **written_state_labels(mdp, ends)}.items():
        for state in states.tolist():
            found.setdefault(state, []).append(name)
    return found
