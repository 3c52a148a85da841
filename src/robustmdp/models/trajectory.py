"""What happened: transitions in the order of a log, in memory or streamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, repeat
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _display
from robustmdp._arrays import IntArray
from robustmdp.models import columns
from robustmdp.models.columns import Place
from robustmdp.models.frames import Frame
from robustmdp.models.headers import find_log_columns
from robustmdp.models.naming import KINDS, Census, Numbering, Numberings, number_columns
from robustmdp.models.transitions import (
    BLOCK,
    COLUMNS,
    INDICES,
    Arrays,
    RawColumns,
    Source,
    Transitions,
    copy_as,
    fingerprint,
    join,
    map_columns,
    read_only,
    recut,
    take,
)


class Trajectory(_display.Described):
    """What happened: (state, action, reward, next state) in order, in memory or streamed from a file.

    Several episodes are simply one after the other: each transition names its own next state, so nothing leaks from
    one row to the next. `terminated` marks true endings, after which nothing more is earned; an episode that was
    merely cut off (a time limit) is not terminated.

    Parameters
    ----------
    state, action, next_state : (n,) whole numbers, or names, which are numbered in the order of their letters
    reward : (n,) finite numbers
    terminated : (n,) flags, all False by default
    n_states, n_actions : the largest index seen + 1 by default
    discount : float in [0, 1), or None
    state_names, action_names : their names by number, optional; columns of names are numbered as in these

    >>> log = Trajectory([0, 1, 0], [0, 0, 1], [1.0, 0.0, 2.0], [1, 0, 0], [False, False, True])
    >>> log.length, log.n_states, log.n_actions
    (3, 2, 2)
    >>> [piece.reward.tolist() for piece in log.chunks(size=2)]
    [[1.0, 0.0], [2.0]]
    >>> log = Trajectory(["new", "worn"], ["run", "fix"], [5.0, -3.0], ["worn", "new"])
    >>> log.state_names, [piece.action.tolist() for piece in log.chunks()]
    (('new', 'worn'), [[1, 0]])
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
        raw = columns.to_columns(given)
        _checks.must(len(raw["state"]) > 0, "a trajectory must hold at least one transition: got none")
        numbered, names = number_columns(raw, (state_names, action_names))
        clean = _clean(numbered, (_check_size("n_states", n_states), _check_size("n_actions", n_actions)), Arrays.place)
        own = map_columns(np.copy, clean)  # the caller may change theirs
        self._set(Arrays(own), n_states, n_actions, discount, *names)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        columns: Mapping[str, str | None] | None = None,
        n_states: int | None = None,
        n_actions: int | None = None,
        discount: float | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> Trajectory:
        """From a table of pandas, polars or Arrow, or a dict of columns; one row per transition, in order.

        Parameters
        ----------
        frame : columns state, action, reward, next_state and perhaps terminated, or one of the other names that
            `rm.read_log` knows; states and actions as whole numbers or as names
        columns : what the frame calls them, as in {"state": "depot"}

        >>> frame = {"state": ["new", "worn"], "action": ["run", "fix"], "next_state": ["worn", "new"]}
        >>> Trajectory.from_frame({**frame, "reward": [5, -3]}).action_names
        ('fix', 'run')
        """
        table = Frame.of(frame)
        found = find_log_columns(columns or {}, table.names, "the frame")
        return cls(
            **{name: table.column(own) for name, own in found.items()},
            n_states=n_states,
            n_actions=n_actions,
            discount=discount,
            state_names=state_names,
            action_names=action_names,
        )

    @classmethod
    def from_source(cls, source: Source, **sizes_and_names: Any) -> Trajectory:
        """A trajectory that reads its transitions from `source` whenever they are asked for."""
        out = cls.__new__(cls)
        out._set(source, **sizes_and_names)
        return out

    def _set(
        self,
        source: Source,
        n_states: int | None = None,
        n_actions: int | None = None,
        discount: float | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> None:
        self._source = source
        self._passes = 1
        self._seed: int | None = None
        self._kept: list[Transitions] | None = None
        self._given = (_check_size("n_states", n_states), _check_size("n_actions", n_actions))
        self.discount = None if discount is None else _checks.discount(discount)
        states, actions = (
            None if given is None else _checks.names(kind, given, len(given) if has else self._size(place))
            for place, (kind, given, has) in enumerate(
                zip(KINDS, (state_names, action_names), source.named, strict=True)
            )
        )
        self._names = (states, actions)

    @property
    def n_states(self) -> int:
        """As given, the number of names, or the largest state or next state + 1."""
        return self._size(0)

    @property
    def n_actions(self) -> int:
        """As given, the number of names, or the largest action + 1."""
        return self._size(1)

    @property
    def state_names(self) -> tuple[str, ...] | None:
        """As given, or those in the log, sorted."""
        return self._names_of(0)

    @property
    def action_names(self) -> tuple[str, ...] | None:
        """As given, or those in the log, sorted."""
        return self._names_of(1)

    def _names_of(self, kind: int) -> tuple[str, ...] | None:
        """Of states (0) or actions (1)."""
        numbering = self._numberings[kind] if self._source.named[kind] else None
        return numbering.names if numbering else self._names[kind]

    def _size(self, kind: int) -> int:
        """How many states (0) or actions (1)."""
        numbering = self._numberings[kind] if self._source.named[kind] else None
        return self._given[kind] or (len(numbering.names) if numbering else self._sizes[kind])

    @cached_property
    def _numberings(self) -> Numberings:
        """Of states and actions, where the source has names."""
        out: list[Numbering | None] = [None, None]
        for place, (kind, has) in enumerate(zip(KINDS, self._source.named, strict=True)):
            if has:
                own, size = self._names[place], self._given[place]
                numbering = Numbering(own) if own else self._census.numberings[place]
                if numbering and size:
                    _checks.names(kind, numbering.names, size)
                out[place] = numbering
        return out[0], out[1]

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        known = self._source.sizes()
        return known if known is not None and max(known) <= columns.LARGEST + 1 else self._census.sizes

    @cached_property
    def _census(self) -> Census:
        """A log that does not tell, or tells of too many, is read once for its indices alone: errors name the entry."""
        census = Census(self._source.named)
        for raw, place in self._placed(0, INDICES):
            census.add(raw, place)
        _checks.must(min(census.sizes) > 0, f"{self._source.name} must hold at least one transition: got none")
        return census

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
        return map(read_only, recut(blocks, repeat(size)))

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
        sizes, numberings = (self.n_states, self.n_actions), self._numberings
        for raw, place in self._placed(start, COLUMNS):
            yield _clean(raw, sizes, place, numberings)

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
            for window in recut(self._pass(), self._windows(rng)):
                count = len(window.state)
                order = rng.permutation(count)[start:]
                for first in range(0, len(order), BLOCK):
                    yield take(window, order[first : first + BLOCK])
                start = max(start - count, 0)

    def _pass(self) -> Iterator[Transitions]:
        """One pass of a replay in the order of the log; from memory where the source allows and one pass is done."""
        length = self._source.length
        if self._passes == 1 or length is None or length > self._source.kept_length:
            return self._in_order(0)
        return self._keep() if self._kept is None else map(partial(copy_as, np.int64), self._kept)

    def _keep(self) -> Iterator[Transitions]:
        kept: list[Transitions] = []
        new: list[Transitions] = []
        count = 0
        for block in self._in_order(0):
            yield block
            new.append(block)
            count += len(block.state)
            if count >= BLOCK:
                kept.append(copy_as(np.int32, join(new)))
                new, count = [], 0
        self._kept = [*kept, *(copy_as(np.int32, each) for each in new)]  # a pass that was broken off is not used

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
        read = "_sizes" in self.__dict__ or "_census" in self.__dict__
        known = (self.n_states, self.n_actions) if read else self._source.sizes() or (None, None)
        states, actions = (given or found for given, found in zip(self._given, known, strict=True))
        length = f"about {self.expected_length:,}" if self.length is None else f"{self.length:,}"
        fields = [
            ("from", self._source.name),
            ("transitions", length + (f" in {self._passes:,} shuffled passes" if self._seed is not None else "")),
            ("states", f"{states:,}" if states else "not counted yet"),
            ("actions", f"{actions:,}" if actions else "not counted yet"),
            ("discount", "not given" if self.discount is None else f"{self.discount:g}"),
        ]
        names = (self.state_names, self.action_names) if read else self._names
        listed = zip(KINDS, names, strict=True)
        return fields + [(f"{kind} names", _display.shortlist(each)) for kind, each in listed if each]


def _check_size(name: str, value: int | None) -> int | None:
    return None if value is None else columns.check_size(name, value)


def _clean(
    raw: RawColumns, sizes: tuple[int | None, int | None], place: Place, numberings: Numberings = (None, None)
) -> Transitions:
    """The columns with their types, or an error that names the first wrong entry of a column."""
    ended = raw.get("terminated", np.zeros(len(raw["state"]), dtype=bool))

    def indices(name: str, kind: int) -> IntArray:
        numbering, size = numberings[kind], sizes[kind]
        if numbering is not None:
            return numbering.encode(name, raw[name], place)
        most = None if size is None else size - 1
        return columns.whole_numbers(name, raw[name], most, place, kinds=columns.NUMBERS_OR_FLAGS)

    return Transitions(
        state=indices("state", 0),
        action=indices("action", 1),
        reward=columns.finite_numbers("reward", raw["reward"], place, kinds=columns.NUMBERS_OR_FLAGS),
        next_state=indices("next_state", 0),
        terminated=columns.flags("terminated", ended, place),
    )
