"""Transitions as columns: what a source of them is, in memory or in a file, and how they are cut into pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.models.columns import Column

INDICES = ("state", "next_state", "action")
COLUMNS = ("state", "action", "reward", "next_state", "terminated")
BLOCK = 65536  # transitions read at a time: large enough for numpy to be fast, 2 MB as arrays
WINDOW = 4 * BLOCK  # transitions that a streamed replay holds and shuffles at a time

RawColumns = Mapping[str, Column]


class Transitions(NamedTuple):
    """Equally long 1-D arrays, one entry per transition."""

    state: IntArray
    action: IntArray
    reward: FloatArray
    next_state: IntArray
    terminated: BoolArray


class Source(Protocol):
    """Where the transitions of one pass come from; read as often as asked, and sent to other processes by pickling."""

    @property
    def name(self) -> str:
        """What users call it."""

    @property
    def length(self) -> int | None:
        """How many transitions, None where only a full read would tell."""

    @property
    def expected_length(self) -> int:
        """The length, or an estimate that is the same each time."""

    @property
    def fingerprint(self) -> str:
        """A short hash of the content, not of the name."""

    @property
    def named(self) -> tuple[bool, bool]:
        """Do the columns of states, and that of actions, hold names?"""

    def sizes(self) -> tuple[int, int] | None:
        """How many states and actions, None where only a full read would tell."""

    def blocks(self, start: int, names: Sequence[str]) -> Iterator[RawColumns]:
        """The named columns as they are, in blocks of any size, from transition `start` on; `terminated` may lack."""

    def place(self, name: str, row: int) -> str:
        """Where an entry stands, in the words of an error message."""

    @property
    def window(self) -> int:
        """How many transitions a replay holds in memory and shuffles together."""

    @property
    def kept_length(self) -> int:
        """Up to which length a replay keeps all transitions after its first pass; 0: each pass reads the source."""


class Arrays:
    """Transitions in memory, checked when they came in and unchangeable since."""

    name = "memory"
    named = (False, False)
    kept_length = 0

    def __init__(self, transitions: Transitions) -> None:
        self.transitions = read_only(transitions)
        self.length = self.expected_length = self.window = len(transitions.state)

    def __reduce__(self) -> tuple[Any, ...]:
        return Arrays, (self.transitions,)  # a copy is made read-only again

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(*self.transitions)

    def sizes(self) -> tuple[int, int]:
        state, action, _, following, _ = self.transitions
        return int(max(state.max(), following.max())) + 1, int(action.max()) + 1

    def blocks(self, start: int, names: Sequence[str]) -> Iterator[RawColumns]:
        yield {name: getattr(self.transitions, name)[start:] for name in names}

    @staticmethod
    def place(name: str, row: int) -> str:
        return f"{name}[{row}]"


def fingerprint(*parts: npt.NDArray[Any] | bytes | int | str) -> str:
    """A short hash of the parts in their order."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            total.update(part.data)
        else:
            total.update(part if isinstance(part, bytes) else f"{part};".encode())
    return total.hexdigest()[:16]


def map_columns(change: Callable[[Any], Any], transitions: Transitions) -> Transitions:
    """What becomes of every column."""
    return Transitions(*map(change, transitions))


def take(transitions: Transitions, which: slice | IntArray) -> Transitions:
    """Some of them."""
    return map_columns(lambda column: column[which], transitions)


def copy_as(kind: type, transitions: Transitions) -> Transitions:
    """A copy with states and actions of another type: 32 bits, 21 bytes per transition, hold all that are allowed."""
    return map_columns(lambda column: column.astype(kind) if column.dtype.kind == "i" else column.copy(), transitions)


def recut(blocks: Iterator[Transitions], sizes: Iterator[int]) -> Iterator[Transitions]:
    """The same transitions in pieces of the given sizes, the last one shorter."""
    held: list[Transitions] = []
    missing = next(sizes)
    for block in blocks:
        while len(block.state) >= missing:
            yield join([*held, take(block, slice(missing))])
            block = take(block, slice(missing, None))
            held, missing = [], next(sizes)
        if len(block.state):
            held.append(block)
            missing -= len(block.state)
    if held:
        yield join(held)


def join(parts: list[Transitions]) -> Transitions:
    """One behind the other."""
    return parts[0] if len(parts) == 1 else Transitions(*map(np.concatenate, zip(*parts, strict=True)))


def read_only(transitions: Transitions) -> Transitions:
    """The same arrays, which nothing writes to any more."""
    for column in transitions:
        column.flags.writeable = False
    return transitions
