"""Names of states and actions: columns of words become numbers, and the names go with the model.

A name's number is its place among all names, sorted by code points, whatever the order of the rows: a log that is
streamed, shuffled or split has the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robustmdp._arrays import IntArray
from robustmdp.models import columns
from robustmdp.models.columns import Column, Place, Words

KINDS = {"state": ("state", "next_state"), "action": ("action",)}  # and the columns that hold them
Names = tuple[Sequence[str] | None, Sequence[str] | None]  # of states and actions, None where these are numbers
Named = tuple[bool, bool]  # do the columns of states, and that of actions, hold names?


@dataclass(frozen=True)
class Numbering:
    """Names, whose places are their numbers.

    >>> numbering = Numbering(("keep", "repair"))
    >>> numbering.encode("action", Words.of(["repair", "keep", "repair"])).tolist()
    [1, 0, 1]
    """

    names: tuple[str, ...]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def encode(self, name: str, column: Column, place: Place | None = None) -> IntArray:
        """The numbers of a column of words, or an error that names the first entry without one."""
        words = check_words(name, column, place)
        codes = np.array([self._numbers.get(word, -1) for word in words.words], np.int64)[words.codes]
        if codes.min(initial=0) < 0:
            must = f"be one of the {len(self.names):,} names that are given"
            columns.refuse(int(codes.argmin()), must, name, np.asarray(words), place)
        return codes


Numberings = tuple[Numbering | None, Numbering | None]


class Census:
    """All names, or the largest numbers, of the states and actions of a table that comes in blocks."""

    def __init__(self, named: Named, label: Callable[[str], str] = str) -> None:
        self._label = label  # of a column in messages
        self._words: dict[str, set[str]] = {kind: set() for kind, has in zip(KINDS, named, strict=True) if has}
        self._largest = dict.fromkeys(KINDS, -1)

    def add(self, raw: Mapping[str, Column], place: Place | None = None) -> None:
        """One more block, of the columns that are of interest."""
        for kind, listed in KINDS.items():
            for name in listed:
                if kind in self._words:
                    self._words[kind].update(check_words(self._label(name), raw[name], place).used())
                elif name in raw:
                    numbers = columns.whole_numbers(name, raw[name], None, place, kinds=columns.NUMBERS_OR_FLAGS)
                    self._largest[kind] = max(self._largest[kind], int(numbers.max(initial=-1)))

    @cached_property
    def numberings(self) -> Numberings:
        """Of states and actions, where they have names; to be asked for when all blocks have come."""
        states, actions = (
            Numbering(tuple(sorted(self._words[kind]))) if kind in self._words else None for kind in KINDS
        )
        return states, actions

    @property
    def sizes(self) -> tuple[int, int]:
        """How many states and actions."""
        states, actions = (len(self._words[kind]) if kind in self._words else self._largest[kind] + 1 for kind in KINDS)
        return states, actions


def are_named(raw: Mapping[str, Column]) -> Named:
    """Do both columns of states, and that of actions, hold words?"""
    states, actions = (all(isinstance(raw[name], Words) for name in listed) for listed in KINDS.values())
    return states, actions


def named_columns(named: Named) -> list[str]:
    """The columns that hold names.

    >>> named_columns((True, False))
    ['state', 'next_state']
    """
    return [name for listed, has in zip(KINDS.values(), named, strict=True) if has for name in listed]


def number_columns(raw: Mapping[str, Column], given: Names) -> tuple[dict[str, Column], Names]:
    """Columns in memory with numbers in place of names, and the names of states and actions."""
    named = are_named(raw)
    if not any(named):
        return dict(raw), given
    census = Census(named)
    census.add({name: raw[name] for name in named_columns(named)})
    out, names = dict(raw), list(given)
    for index, (listed, found) in enumerate(zip(KINDS.values(), census.numberings, strict=True)):
        if found is not None:
            own = given[index]
            numbering = found if own is None else Numbering(tuple(own))
            out |= {name: numbering.encode(name, raw[name]) for name in listed}
            names[index] = numbering.names
    return out, (names[0], names[1])


def check_words(name: str, column: Column, place: Place | None = None) -> Words:
    """Refuse a column of anything else, and an entry that lacks, is empty or no text."""
    if not isinstance(column, Words):
        columns.refuse(0, "be a name, as in the first row", name, column, place)
    wrong = np.array([not isinstance(word, str) or not word for word in [*column.words, None]])[column.codes]
    if wrong.any():
        columns.refuse_where(wrong, "be a name", name, np.asarray(column), place)
    return column
