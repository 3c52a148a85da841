"""What happened: transitions in the order of a log, in memory or streamed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from operator import index
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _display
from robustmdp.models import columns
from robustmdp.models.columns import Place

INDICES = ("state", "next_state", "action")
COLUMNS = ("state", "action", "reward", "next_state", "terminated")
BLOCK = 65536  # transitions read at a time: large enough for numpy to be fast, 2 MB as arrays
WINDOW = 4 * BLOCK  # transitions that a streamed replay holds and shuffles at a time

RawColumns = Mapping[str, npt.NDArray[Any]]


class Transitions(NamedTuple):
    """Equally long 1-D arrays, one entry per transition."""

    state: npt.NDArray[np.int64]
    action: npt.NDArray[np.int64]
    reward: npt.NDArray[np.float64]
    next_state: npt.NDArray[np.int64]
    terminated: npt.NDArray[np.bool_]


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


class Trajectory:
    """What happened: (state, action, reward, next state) in order, in memory or streamed from a file.

    Several episodes are simply one after the other: each transition names its own next state, so nothing leaks from
    one row to the next. `terminated` marks true endings, after which nothing more is earned; an episode that was
    merely cut off (a time limit) is not terminated.

    Parameters
    ----------
    state, action, next_state : (n,) whole numbers
    reward : (n,) finite numbers
    terminated : (n,) flags, all False by default
    n_states, n_actions : the largest index seen + 1 by default
    discount : float in [0, 1), or None

    >>> log = Trajectory([0, 1, 0], [0, 0, 1], [1.0, 0.0, 2.0], [1, 0, 0], [False, False, True])
    >>> log.length, log.n_states, log.n_actions
    (3, 2, 2)
    >>> [piece.reward.tolist() for piece in log.chunks(size=2)]
    [[1.0, 0.0], [2.0]]
    """

    def __init__(
        self,
        state: npt.ArrayLike,
        action: npt.ArrayLike,
        reward: npt.ArrayLike,
        next_state: npt.ArrayLike,
        terminated: npt.ArrayLike | None = None,
        *,
        n_states: int | None = None,
        n_actions: int | None = None,
        discount: float | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> None:
        given = dict(zip(COLUMNS, (state, action, reward, next_state, terminated), strict=True))
        if terminated is None:
            del given["terminated"]
        raw = {name: columns.array_of(name, array) for name, array in given.items()}
        count = raw["state"].size
        for name, array in raw.items():
            _checks.must(
                array.shape == (count,), f"{name} must be 1-D and as long as state ({count}): got shape {array.shape}"
            )
        _checks.must(count > 0, "a trajectory must hold at least one transition: got none")
        clean = _clean(raw, (_size("n_states", n_states), _size("n_actions", n_actions)), _Arrays.place)
        own = _each(np.copy, clean)  # the caller may change theirs
        self._set(_Arrays(own), n_states, n_actions, discount, state_names, action_names)

    @classmethod
    def from_source(
        cls,
        source: Source,
        *,
        n_states: int | None = None,
        n_actions: int | None = None,
        discount: float | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> Trajectory:
        """A trajectory that reads its transitions from `source` whenever they are asked for."""
        out = cls.__new__(cls)
        out._set(source, n_states, n_actions, discount, state_names, action_names)
        return out

    def _set(
        self,
        source: Source,
        n_states: int | None,
        n_actions: int | None,
        discount: float | None,
        state_names: Sequence[str] | None,
        action_names: Sequence[str] | None,
    ) -> None:
        self._source = source
        self._passes = 1
        self._seed: int | None = None
        self._kept: _Kept | None = None
        self._given = (_size("n_states", n_states), _size("n_actions", n_actions))
        self.discount = None if discount is None else _checks.discount(discount)
        self.state_names = None if state_names is None else _checks.names("state", state_names, self.n_states)
        self.action_names = None if action_names is None else _checks.names("action", action_names, self.n_actions)

    @property
    def n_states(self) -> int:
        """As given, or the largest state or next state + 1."""
        return self._given[0] or self._sizes[0]

    @property
    def n_actions(self) -> int:
        """As given, or the largest action + 1."""
        return self._given[1] or self._sizes[1]

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        known = self._source.sizes()
        if known is not None and max(known) <= columns.LARGEST + 1:
            return known
        # A log that does not tell, or tells of too many, is read once for its indices alone: errors name the entry.
        largest = dict.fromkeys(INDICES, -1)
        for raw, place in self._placed(0, INDICES):
            for name in INDICES:
                largest[name] = max(largest[name], int(_indices(name, raw[name], None, place).max()))
        _checks.must(largest["state"] >= 0, f"{self._source.name} must hold at least one transition: got none")
        return max(largest["state"], largest["next_state"]) + 1, largest["action"] + 1

    @property
    def length(self) -> int | None:
        """How many transitions, all passes together; None where only a full read would tell."""
        return None if self._source.length is None else self._passes * self._source.length

    @property
    def expected_length(self) -> int:
        """The length, or an estimate from the file's size that is the same each time."""
        return self._passes * self._source.expected_length

    @property
    def fingerprint(self) -> str:
        """A short hash of the content, whatever the file is called: work on one log cannot go on with another."""
        if self._seed is None:
            return self._source.fingerprint
        return fingerprint(self._source.fingerprint, self._passes, self._seed)

    def chunks(self, size: int = BLOCK, start: int = 0) -> Iterator[Transitions]:
        """The transitions from number `start` on, checked, in read-only pieces of `size`; the last may be shorter.

        What comes does not depend on `size`, and the memory used does not depend on the length, except where `replay`
        keeps the transitions of its first pass.
        """
        size = _checks.positive_integer("size", size)
        start = index(start)
        _checks.must(start >= 0, f"start must be at least 0: got {start}")
        blocks = self._in_order(start) if self._seed is None else self._shuffled(start, self._seed)
        return map(_read_only, _recut(blocks, repeat(size)))

    @property
    def replayed(self) -> bool:
        """Does it say the same transitions more than once?"""
        return self._passes > 1

    @property
    def in_order(self) -> bool:
        """Does it say each transition once, as they came?"""
        return self._seed is None

    def replay(self, passes: int, seed: int = 0) -> Trajectory:
        """The same log `passes` times over, shuffled anew in each pass; the same bits for the same seed.

        In memory each pass is a permutation of all transitions. A streamed log is read in its order and shuffled in
        windows of 262,144 consecutive transitions, which is what memory has to hold; the first window of each pass has
        a random length, so that the windows meet elsewhere each time. A log known to fit in one window is permuted.

        Each pass reads the file again, except that of a Minari dataset, which is slow to read: up to 20 million
        transitions are kept in memory after the first pass, at 21 bytes each. The bits are the same.

        >>> log = Trajectory([0, 1, 2], [0, 0, 0], [0.0, 1.0, 2.0], [1, 2, 0]).replay(2, seed=2)
        >>> [piece.state.tolist() for piece in log.chunks(size=3)]
        [[2, 0, 1], [0, 2, 1]]
        """
        passes = _checks.positive_integer("passes", passes)
        seed = index(seed)
        _checks.must(seed >= 0, f"seed must be at least 0: got {seed}")
        out = Trajectory.__new__(Trajectory)
        out.__dict__.update(self.__dict__, _passes=passes * self._passes, _seed=seed)
        return out

    def _in_order(self, start: int) -> Iterator[Transitions]:
        """One pass in blocks of any size, checked."""
        sizes = (self.n_states, self.n_actions)
        for raw, place in self._placed(start, COLUMNS):
            yield _clean(raw, sizes, place)

    def _placed(self, start: int, names: Sequence[str]) -> Iterator[tuple[RawColumns, Place]]:
        """Each block of the source with the places of its entries."""
        row = start

        def place(name: str, offset: int) -> str:
            return self._source.place(name, row + offset)  # of the block that is out at the time

        for raw in self._source.blocks(start, names):
            yield raw, place
            row += len(raw["state"])

    def _shuffled(self, start: int, seed: int) -> Iterator[Transitions]:
        """All passes, each in an order of its own."""
        length = self._source.length
        done = 0 if length is None else start // length
        start -= done * (length or 0)
        for number in range(done, self._passes):
            rng = np.random.default_rng([seed, number])
            for window in _recut(self._pass(), self._windows(rng)):
                count = len(window.state)
                order = rng.permutation(count)[start:]
                for first in range(0, len(order), BLOCK):
                    yield _part(window, order[first : first + BLOCK])
                start = max(start - count, 0)

    def _pass(self) -> Iterator[Transitions]:
        """One pass of a replay in the order of the log; from memory where the source allows and one pass is done."""
        length = self._source.length
        if self._passes == 1 or length is None or length > self._source.kept_length:
            return self._in_order(0)
        return self._keep(length) if self._kept is None else self._kept.blocks()

    def _keep(self, length: int) -> Iterator[Transitions]:
        kept = _Kept(length)
        for block in self._in_order(0):
            kept.append(block)
            yield block
        self._kept = kept  # a pass that was broken off is not used

    def __getstate__(self) -> dict[str, Any]:
        # What goes to other processes stays small: they read the source themselves.
        return {**self.__dict__, "_kept": None}

    def _windows(self, rng: np.random.Generator) -> Iterator[int]:
        """How many transitions are shuffled together, one window after the other."""
        length, window = self._source.length, self._source.window
        fits = length is not None and length <= window
        return chain([window if fits else int(rng.integers(1, window + 1))], repeat(window))

    def _fields(self) -> _display.Fields:
        # Showing a log must not read it.
        known = self.__dict__.get("_sizes") or self._source.sizes() or (None, None)
        states, actions = (given or found for given, found in zip(self._given, known, strict=True))
        length = f"about {self.expected_length:,}" if self.length is None else f"{self.length:,}"
        fields = [
            ("from", self._source.name),
            ("transitions", length + (f" in {self._passes:,} shuffled passes" if self._seed is not None else "")),
            ("states", f"{states:,}" if states else "not counted yet"),
            ("actions", f"{actions:,}" if actions else "not counted yet"),
            ("discount", "not given" if self.discount is None else f"{self.discount:g}"),
        ]
        if self.state_names:
            fields.append(("state names", _display.shortlist(self.state_names)))
        if self.action_names:
            fields.append(("action names", _display.shortlist(self.action_names)))
        return fields

    def __repr__(self) -> str:
        return _display.as_text("Trajectory", self._fields())

    def _repr_html_(self) -> str:
        return _display.as_html("Trajectory", self._fields())


class _Kept:
    """One pass in memory, 21 bytes per transition: 32 bits are enough for any state and action that is allowed."""

    def __init__(self, length: int) -> None:
        kinds = (np.int32, np.int32, np.float64, np.int32, np.bool_)
        self._columns: list[npt.NDArray[Any]] = [np.empty(length, kind) for kind in kinds]
        self._count = 0

    def append(self, block: Transitions) -> None:
        """The next transitions; those beyond the length are left to the source, which refuses them."""
        first = self._count
        self._count += len(block.state)
        for column, values in zip(self._columns, block, strict=True):
            room = column[first : self._count]
            room[:] = values[: len(room)]

    def blocks(self) -> Iterator[Transitions]:
        """All of them, as they came."""
        for first in range(0, self._count, BLOCK):
            state, action, reward, following, ended = (column[first : first + BLOCK] for column in self._columns)
            yield Transitions(
                state.astype(np.int64), action.astype(np.int64), reward, following.astype(np.int64), ended
            )


@dataclass(frozen=True, eq=False)
class _Arrays:
    """Transitions in memory, checked when they came in and unchangeable since."""

    transitions: Transitions
    name = "memory"
    kept_length = 0

    def __post_init__(self) -> None:
        _read_only(self.transitions)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Arrays, (self.transitions,)  # a copy is made read-only again

    @property
    def length(self) -> int:
        return len(self.transitions.state)

    @property
    def expected_length(self) -> int:
        return self.length

    @property
    def window(self) -> int:
        return self.length

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


def _size(name: str, value: int | None) -> int | None:
    if value is None:
        return None
    size, most = _checks.positive_integer(name, value), columns.LARGEST + 1
    _checks.must(size <= most, f"{name} must be at most {most}: got {size}")
    return size


def _clean(raw: RawColumns, sizes: tuple[int | None, int | None], place: Place) -> Transitions:
    """The columns with their types, or an error that names the first wrong entry of a column."""
    ended = raw.get("terminated", np.zeros(len(raw["state"]), dtype=bool))
    return Transitions(
        state=_indices("state", raw["state"], sizes[0], place),
        action=_indices("action", raw["action"], sizes[1], place),
        reward=columns.finite_numbers("reward", raw["reward"], place, kinds=columns.NUMBERS_OR_FLAGS),
        next_state=_indices("next_state", raw["next_state"], sizes[0], place),
        terminated=columns.flags("terminated", ended, place),
    )


def _indices(name: str, raw: npt.NDArray[Any], size: int | None, place: Place) -> npt.NDArray[np.int64]:
    most = None if size is None else size - 1
    return columns.whole_numbers(name, raw, most, place, kinds=columns.NUMBERS_OR_FLAGS)


def _each(change: Callable[[Any], Any], transitions: Transitions) -> Transitions:
    return Transitions(*map(change, transitions))


def _part(transitions: Transitions, which: slice | npt.NDArray[np.int64]) -> Transitions:
    return _each(lambda column: column[which], transitions)


def _recut(blocks: Iterator[Transitions], sizes: Iterator[int]) -> Iterator[Transitions]:
    """The same transitions in pieces of the given sizes, the last one shorter."""
    held: list[Transitions] = []
    missing = next(sizes)
    for block in blocks:
        while len(block.state) >= missing:
            yield _joined([*held, _part(block, slice(missing))])
            block = _part(block, slice(missing, None))
            held, missing = [], next(sizes)
        if len(block.state):
            held.append(block)
            missing -= len(block.state)
    if held:
        yield _joined(held)


def _joined(parts: list[Transitions]) -> Transitions:
    return parts[0] if len(parts) == 1 else Transitions(*map(np.concatenate, zip(*parts, strict=True)))


def _read_only(transitions: Transitions) -> Transitions:
    for column in transitions:
        column.flags.writeable = False
    return transitions
