"""The rows of some states and a slice of each vector of values: carries out programs, and knows no stopping rule.

A program is a list of instructions: a name, then the numbers of vectors (integers) or plain numbers (floats). A vector
is kept under its number until it is dropped; so are a policy and a policy's chain. A policy is kept as the place of
each state's action among the state's own, (n_states,), or as `PolicyRows` where it is random. `share` makes parcels of
a vector for the other shards, and `gather` unpacks theirs.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core
from robustmdp._arrays import FloatArray, IntArray
from robustmdp.ambiguity import Ambiguity, Nominal
from robustmdp.models.part import Outline, Part, Sizes, successor_states
from robustmdp.models.row_source import Rows
from robustmdp.operators import RobustBellman
from robustmdp.operators.policy import PolicyRows, rows_of_pairs

Program = Sequence[tuple[Any, ...]]

ROBUST, NOMINAL = 0, 1  # the operators of a shard

_ARITHMETIC: dict[str, Callable[..., Any]] = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}
_MOST_BLOCKS = 4096
_RESPONSE = 1_000_000  # transitions whose worst case is asked for at a time


class Source(Protocol):
    """Where rows come from."""

    def part(self, first: int, last: int) -> Rows:
        """Those of the states first..last."""


class LoadedRows(NamedTuple):
    """The sizes of a shard's rows, and a checksum of the first row of each block."""

    sizes: Sizes
    checksums: tuple[int, ...]


class ReadSet(NamedTuple):
    """What a shard reads of another one: all of its values, or those at some places there, perhaps none."""

    everything: bool
    places: IntArray


class Reply(NamedTuple):
    """The answer to the last instruction of a program, the parcels that it shared, and the seconds that it took."""

    answer: Any
    parcels: tuple[FloatArray, ...]
    seconds: float


class Response(NamedTuple):
    """Nature's answer in some states: the worst-case rows, and one entry per pair of the model."""

    rows: Rows
    q_lower: FloatArray
    q_upper: FloatArray
    penalty: FloatArray
    eta: FloatArray


def block_size(n_states: int) -> int:
    """States per block: sums over states run over blocks first, which do not depend on where a model is cut."""
    return -(-n_states // _MOST_BLOCKS)


class Shard:
    """The states first..last of a model."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads
        self._vectors: dict[int, Any] = {}

    # setting up

    def load(self, source: Source, first: int, last: int, n_states: int, rewards_on_successors: bool) -> LoadedRows:
        """Compute or map the rows."""
        self._first, self._last = first, last
        self._rows = rows = source.part(first, last)
        self._edges = np.append(np.arange(0, last - first, block_size(n_states)), last - first)
        pairs = rows.state_ptr[self._edges[:-1]]
        checksums = tuple(_row_checksum(rows, pair) for pair in pairs.tolist())
        return LoadedRows(Sizes.of(rows, n_states, rewards_on_successors), checksums)

    def prepare(self, outline: Outline, ambiguity: Ambiguity, cuts: Sequence[int]) -> list[ReadSet]:
        """Make the operator; returns what is read of each shard, of which shard i has the states cuts[i]..cuts[i + 1].

        The nominal operator is made when it is first used.
        """
        part = self._part = Part.of(self._rows, outline, self._first, compact=not ambiguity.names_states)
        del self._rows
        self._operators = {ROBUST: RobustBellman(part, ambiguity, threads=self._threads)}
        self._columns = np.zeros(part.n_columns + 1)  # the end's 0 last
        self._own = slice(part.offset, part.offset + part.n_states)
        read = np.arange(part.n_columns) if ambiguity.invents else successor_states(part.indices, part.n_columns)
        found = [self._read_set(low, high, read) for low, high in pairwise(cuts)]
        self._places = [places for places, _ in found]
        return [read_set for _, read_set in found]

    def _read_set(self, low: int, high: int, read: IntArray) -> tuple[Any, ReadSet]:
        """The columns of the states low..high that are read, and their places there."""
        nothing = np.empty(0, dtype=np.int64)
        if low == self._first:
            return nothing, ReadSet(False, nothing)
        columns = self._part.columns
        states = read if columns is None else columns[read]
        start, stop = np.searchsorted(states, (low, high))
        if columns is None and 2 * (stop - start) >= high - low:  # a few more are cheaper than a list
            return slice(low, high), ReadSet(True, nothing)
        return read[start:stop], ReadSet(False, states[start:stop] - low)

    def set_readers(self, read_sets: Sequence[ReadSet]) -> list[int]:
        """Take what each shard reads here; returns how many values go to each."""
        self._readers = list(read_sets)
        return [self._last - self._first if each.everything else len(each.places) for each in read_sets]

    # running

    def run(self, program: Program, parcels: Sequence[FloatArray | None] = ()) -> Reply:
        """Carry out a program; `parcels` are those that other shards made for this one, by shard."""
        start = time.perf_counter()
        self._incoming, self._outgoing, answer = parcels, (), None
        for name, *arguments in program:
            answer = getattr(self, f"_{name}")(*arguments)
        self._incoming = ()
        return Reply(answer, self._outgoing, time.perf_counter() - start)

    def _bellman(self, operator: int) -> RobustBellman:
        if operator not in self._operators:
            self._operators[operator] = RobustBellman(self._part, Nominal(), threads=self._threads)
        return self._operators[operator]

    def _operand(self, given: int | float) -> Any:
        return self._vectors[given] if isinstance(given, int) else given

    def _compute(self, operation: str, out: int, x: int | float, y: int | float) -> None:
        self._vectors[out] = _ARITHMETIC[operation](self._operand(x), self._operand(y))

    def _fill(self, out: int, level: float) -> None:
        self._vectors[out] = np.full(self._part.n_states, level)

    def _drop(self, number: int) -> None:
        self._vectors.pop(number, None)

    def _range(self, x: int) -> tuple[float, float]:
        values = self._vectors[x]
        return float(values.min()), float(values.max())

    def _dot(self, x: int, y: int) -> list[float]:
        """The sum of each block."""
        left, right = self._vectors[x], self._vectors[y]
        return [float(_core.dot(left[a:b], right[a:b])) for a, b in pairwise(self._edges)]

    def _share(self, x: int) -> None:
        values = self._vectors[x]
        self._outgoing = tuple(values if reader.everything else values[reader.places] for reader in self._readers)

    def _gather(self, x: int) -> None:
        self._columns[self._own] = self._vectors[x]
        for places, parcel in zip(self._places, self._incoming, strict=True):
            if parcel is not None:
                self._columns[places] = parcel

    def _apply(self, operator: int, out: int) -> None:
        self._vectors[out] = self._bellman(operator).apply(self._columns[:-1])

    def _chosen(self, operator: int, out: int) -> None:
        bellman = self._bellman(operator)
        if bellman.ambiguity.is_statewise:
            self._vectors[out] = bellman.chosen()
        else:
            self._vectors[out] = (bellman.best_pairs() - self._part.state_ptr[:-1]).astype(np.int32)

    def _policy(self, number: int) -> PolicyRows:
        policy = self._vectors[number]
        if isinstance(policy, PolicyRows):
            return policy
        return rows_of_pairs(self._part, self._part.state_ptr[:-1] + policy)

    def _apply_policy(self, operator: int, policy: int, out: int) -> None:
        self._vectors[out] = self._bellman(operator).apply_policy(self._policy(policy), self._columns[:-1])

    def _apply_to_constant(self, operator: int, out: int, level: float) -> None:
        self._vectors[out] = self._bellman(operator).apply_to_constant(level)

    def _bracket(self, operator: int, policy: int | None, scale: float, lower: int, upper: int, chosen: int) -> None:
        bellman = self._bellman(operator)
        bellman.scale = scale
        given = None if policy is None else self._policy(policy)
        bracket = bellman.bracket(self._columns[:-1], given, keep_q=False)
        self._vectors.update({lower: bracket.lower, upper: bracket.upper, chosen: bracket.policy})

    def _chain(self, operator: int, policy: int, out: int) -> None:
        self._vectors[out] = self._bellman(operator).chain(self._policy(policy), self._columns[:-1])

    def _cost(self, chain: int, out: int) -> None:
        self._vectors[out] = self._vectors[chain].cost

    def _product(self, chain: int, out: int) -> None:
        """(I - discount P) x of the x that was gathered."""
        of, result = self._vectors[chain], np.empty(self._part.n_states)
        _core.residual_product(of.indptr, of.indices, of.data, of.discount, self._columns, result, self._own.start)
        self._vectors[out] = result

    def _response_ranges(self) -> list[tuple[int, int]]:
        """Ranges of states with about a million transitions each, in which to ask for nature's answer."""
        before, last = self._part.indptr[self._part.state_ptr], self._part.n_states
        firsts = np.searchsorted(before, np.arange(0, before[-1], _RESPONSE))
        return list(pairwise([*np.unique(firsts[firsts < last]).tolist(), last]))

    def _respond(self, scale: float, low: int, high: int) -> Response:
        """Nature's answer in some states to the values that were gathered, the same whatever was computed before."""
        entries = slice(*self._part.indptr[self._part.state_ptr[[low, high]]].tolist())
        part, whole = self._part.slice(low, high), self._bellman(ROBUST).ambiguity
        ambiguity = whole.on_part(part.outline, slice(low, high), entries)
        bellman = RobustBellman(part, ambiguity, threads=self._threads)
        bellman.scale = scale
        bracket = bellman.bracket(self._columns[:-1])
        model, penalty, eta = bellman.worst_case(self._columns[:-1])
        rows = Rows(
            model.indptr, part.states_of_columns(model.indices), model.probabilities, model.rewards, model.state_ptr,
            model.actions,
        )  # fmt: skip
        return Response(rows, bracket.q_lower, bracket.q_upper, part.pairs(penalty), part.pairs(eta))

    # saving and restoring vectors

    def _fetch(self, x: int) -> npt.NDArray[Any]:
        """A vector, all of whose numbers have 8 bytes; of a random policy probabilities, (n_pairs,)."""
        vector = self._vectors[x]
        if not isinstance(vector, PolicyRows):
            return np.asarray(vector, dtype=np.int64 if vector.dtype == np.int32 else None)
        weights = np.zeros(self._part.n_pairs)
        weights[vector.pairs] = vector.weights
        return weights

    def _put(self, out: int, values: npt.NDArray[Any]) -> None:
        """A vector of values."""
        self._vectors[out] = np.array(values, dtype=np.float64)

    def _put_policy(self, out: int, policy: npt.NDArray[Any]) -> None:
        """A policy as `fetch` returns it, checked since it may come from a file."""
        part = self._part
        if np.issubdtype(policy.dtype, np.integer):
            is_policy = bool(((policy >= 0) & (policy < np.diff(part.state_ptr))).all())
            kept: Any = policy.astype(np.int32)
        else:
            pairs = np.flatnonzero(policy > 0.0)
            state_ptr = np.searchsorted(pairs, part.state_ptr)
            is_policy = bool(((policy >= 0.0) & (policy <= 1.0)).all() and (np.diff(state_ptr) > 0).all())
            kept = rows_of_pairs(part, pairs)._replace(weights=policy[pairs], state_ptr=state_ptr)
        _checks.must(is_policy, "a checkpoint must hold policies of the model's actions: got other numbers")
        self._vectors[out] = kept

    def _reset(self, sweeps: int) -> None:
        """Forget all vectors, as if there had been so many sweeps, after which inner problems start anew."""
        self._vectors.clear()
        for bellman in self._operators.values():
            bellman.forget(sweeps)


def _row_checksum(rows: Rows, pair: int) -> int:
    """Of one row, with its reward."""
    entries = slice(int(rows.indptr[pair]), int(rows.indptr[pair + 1]))
    reward = rows.rewards[entries if len(rows.rewards) == len(rows.indices) else slice(pair, pair + 1)]
    return zlib.crc32(rows.indices[entries].tobytes() + rows.probabilities[entries].tobytes() + reward.tobytes())
