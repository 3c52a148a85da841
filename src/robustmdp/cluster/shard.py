"""The rows of some states and a part of each vector of values: does what a program says, knows no stopping rule.

A program is a list of instructions: a name, then the numbers of vectors (integers) or plain numbers (floats). A vector
is kept under its number until it is dropped; so are a policy and a policy's chain. `share` makes parcels of a vector
for the other shards, and `gather` unpacks theirs.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from robustmdp import _core
from robustmdp.ambiguity import Ambiguity, Nominal
from robustmdp.models.part import Part, Sizes, Whole, states_read
from robustmdp.models.row_source import Rows
from robustmdp.operators import RobustBellman
from robustmdp.operators.policy import PolicyRows, policy_rows, rows_of_pairs

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Program = Sequence[tuple[Any, ...]]

ROBUST, NOMINAL = 0, 1  # the operators of a shard

_ARITHMETIC: dict[str, Callable[..., Any]] = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}
_MOST_BLOCKS = 4096


class Source(Protocol):
    """Where rows come from."""

    def part(self, first: int, last: int) -> Rows:
        """Those of the states first..last."""


class Loaded(NamedTuple):
    """What a shard says of its rows: their sizes, and a checksum of the first row of each block."""

    sizes: Sizes
    checksums: tuple[int, ...]


class Wanted(NamedTuple):
    """What a shard reads of another one: all of its values, or those at some places there, perhaps none."""

    everything: bool
    places: IntArray


class Reply(NamedTuple):
    """What a program asked for last, its parcels, and how many seconds it took."""

    answer: Any
    parcels: tuple[FloatArray, ...]
    seconds: float


def block_size(n_states: int) -> int:
    """States per block: sums over states run over blocks first, which do not depend on where a model is cut."""
    return -(-n_states // _MOST_BLOCKS)


class Shard:
    """The states first..last of a model."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads
        self._kept: dict[int, Any] = {}

    # setting up

    def load(self, source: Source, first: int, last: int, n_states: int, rewards_on_successors: bool) -> Loaded:
        """Make or map the rows."""
        self._first, self._last = first, last
        self._rows = rows = source.part(first, last)
        self._edges = np.append(np.arange(0, last - first, block_size(n_states)), last - first)
        pairs = rows.state_ptr[self._edges[:-1]]
        spans = zip(rows.indptr[pairs].tolist(), rows.indptr[pairs + 1].tolist(), strict=True)
        checksums = (zlib.crc32(rows.indices[a:b].tobytes() + rows.probabilities[a:b].tobytes()) for a, b in spans)
        return Loaded(Sizes.of(rows, n_states, rewards_on_successors), tuple(checksums))

    def prepare(self, whole: Whole, ambiguity: Ambiguity, cuts: Sequence[int]) -> list[Wanted]:
        """Make the operators; what is read of each shard, shard i having the states cuts[i]..cuts[i + 1]."""
        part = self._part = Part.of(self._rows, whole, self._first, compact=not ambiguity.names_states)
        del self._rows
        self._operators = [RobustBellman(part, each, threads=self._threads) for each in (ambiguity, Nominal())]
        self._columns = np.zeros(part.n_columns + 1)  # the end's 0 last
        self._own = slice(part.offset, part.offset + part.n_states)
        read = np.arange(part.n_columns) if ambiguity.invents else states_read(part.indices, part.n_columns)
        found = [self._read_of(low, high, read) for low, high in pairwise(cuts)]
        self._places = [places for places, _ in found]
        return [wanted for _, wanted in found]

    def _read_of(self, low: int, high: int, read: IntArray) -> tuple[Any, Wanted]:
        """The columns of the states low..high that are read, and what they are there."""
        nothing = np.empty(0, dtype=np.int64)
        if low == self._first:
            return nothing, Wanted(False, nothing)
        columns = self._part.columns
        states = read if columns is None else columns[read]
        start, stop = np.searchsorted(states, (low, high))
        if columns is None and 2 * (stop - start) >= high - low:  # a few more are cheaper than a list
            return slice(low, high), Wanted(True, nothing)
        return read[start:stop], Wanted(False, states[start:stop] - low)

    def serve(self, wanted: Sequence[Wanted]) -> list[int]:
        """Learn what each shard reads here; how many values go to each."""
        self._wanted = list(wanted)
        return [self._last - self._first if each.everything else len(each.places) for each in wanted]

    # running

    def run(self, program: Program, parcels: Sequence[FloatArray | None] = ()) -> Reply:
        """Carry out a program; `parcels` are those that other shards made for this one, by shard."""
        start = time.perf_counter()
        self._incoming, self._outgoing, answer = parcels, (), None
        for name, *arguments in program:
            answer = getattr(self, f"_{name}")(*arguments)
        del self._incoming
        return Reply(answer, self._outgoing, time.perf_counter() - start)

    def _value(self, given: int | float) -> Any:
        return self._kept[given] if isinstance(given, int) else given

    def _compute(self, how: str, out: int, x: int | float, y: int | float) -> None:
        self._kept[out] = _ARITHMETIC[how](self._value(x), self._value(y))

    def _fill(self, out: int, level: float) -> None:
        self._kept[out] = np.full(self._part.n_states, level)

    def _drop(self, *numbers: int) -> None:
        for number in numbers:
            self._kept.pop(number, None)

    def _range(self, x: int) -> tuple[float, float]:
        values = self._kept[x]
        return float(values.min()), float(values.max())

    def _dot(self, x: int, y: int) -> list[float]:
        """The sum of each block."""
        x, y = self._kept[x], self._kept[y]
        return [float(_core.dot(x[a:b], y[a:b])) for a, b in zip(self._edges[:-1], self._edges[1:], strict=True)]

    def _share(self, x: int) -> None:
        values = self._kept[x]
        self._outgoing = tuple(values if wanted.everything else values[wanted.places] for wanted in self._wanted)

    def _gather(self, x: int) -> None:
        self._columns[self._own] = self._kept[x]
        for places, parcel in zip(self._places, self._incoming, strict=True):
            if parcel is not None:
                self._columns[places] = parcel

    def _apply(self, operator: int, out: int) -> None:
        self._kept[out] = self._operators[operator].apply(self._columns[:-1])

    def _chosen(self, operator: int, out: int) -> None:
        self._kept[out] = self._operators[operator].chosen()

    def _apply_policy(self, operator: int, policy: int, out: int) -> None:
        self._kept[out] = self._operators[operator].apply_policy(self._kept[policy], self._columns[:-1])

    def _apply_to_constant(self, operator: int, out: int, level: float) -> None:
        self._kept[out] = self._operators[operator].apply_to_constant(level)

    def _bracket(self, operator: int, policy: int | None, scale: float, lower: int, upper: int, chosen: int) -> None:
        bellman = self._operators[operator]
        bellman.scale = scale
        found = bellman.bracket(self._columns[:-1], None if policy is None else self._kept[policy])
        self._kept.update({lower: found.lower, upper: found.upper, chosen: found.policy})

    def _chain(self, operator: int, policy: int, out: int) -> None:
        self._kept[out] = self._operators[operator].chain(self._kept[policy], self._columns[:-1])

    def _cost(self, chain: int, out: int) -> None:
        self._kept[out] = self._kept[chain].cost

    def _product(self, chain: int, out: int) -> None:
        """(I - discount P) x of the x that was gathered."""
        of, result = self._kept[chain], np.empty(self._part.n_states)
        _core.residual_product(of.indptr, of.indices, of.data, of.discount, self._columns, result, self._own.start)
        self._kept[out] = result

    # coming and going

    def _fetch(self, x: int) -> npt.NDArray[Any]:
        """A vector; of a policy the place of each state's action, (n_states,), or probabilities, (n_pairs,)."""
        kept = self._kept[x]
        if not isinstance(kept, PolicyRows):
            return np.asarray(kept)
        if len(kept.pairs) == self._part.n_states and (kept.weights == 1.0).all():
            return np.asarray(kept.pairs - self._part.state_ptr[:-1])
        weights = np.zeros(self._part.n_pairs)
        weights[kept.pairs] = kept.weights
        return weights

    def _put(self, out: int, values: npt.NDArray[Any]) -> None:
        """A vector of values."""
        self._kept[out] = np.array(values, dtype=np.float64)

    def _put_policy(self, out: int, policy: npt.NDArray[Any]) -> None:
        """A policy as `fetch` gives it."""
        part = self._part
        if np.issubdtype(policy.dtype, np.integer):
            self._kept[out] = rows_of_pairs(part, part.state_ptr[:-1] + policy)
        else:
            self._kept[out] = policy_rows(part, part.table(np.array(policy), fill=0.0))

    def _reset(self, sweeps: int) -> None:
        """As if there had been so many sweeps, after which inner problems start anew."""
        self._kept.clear()
        for bellman in self._operators:
            bellman.forget(sweeps)
