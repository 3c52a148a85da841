"""How a driver reaches its shards, and shards each other; here all of them in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from robustmdp._arrays import FloatArray, IntArray
from robustmdp.ambiguity import Ambiguity
from robustmdp.cluster.shard import LoadedRows, Program, Reply, Shard, Source
from robustmdp.models.part import Outline


class ShardLost(Exception):
    """A shard ended, and with it the vectors that it had; or what it sent to another one is gone."""


class Assignment(NamedTuple):
    """Where shards find their rows: shard i has the states cuts[i]..cuts[i + 1] of sources[i]."""

    sources: Sequence[Source]
    cuts: Sequence[int]
    rewards_on_successors: bool

    def arguments(self, shard: int) -> tuple[Any, ...]:
        """Those of `Shard.load`."""
        first, last = self.cuts[shard : shard + 2]
        return self.sources[shard], first, last, self.cuts[-1], self.rewards_on_successors


class Problem(NamedTuple):
    """What is solved when all rows are loaded: the model's sizes, and the set of each shard."""

    outline: Outline
    sets: Sequence[Ambiguity]
    cuts: Sequence[int]

    def arguments(self, shard: int) -> tuple[Any, ...]:
        """Those of `Shard.prepare`."""
        return self.outline, self.sets[shard], self.cuts


class Traffic(NamedTuple):
    """Bytes that one exchange of values sends, and the shard that computed longest since the last report."""

    bytes_sent: int
    slowest_shard: int
    seconds: float


class Exchange(Protocol):
    """All shards, addressed at once; values go from shard to shard, not through the driver.

    Every method but `close` raises `ShardLost` when a shard ended; `restore` then replaces it, without its vectors.
    """

    count: int
    """How many shards there can be, and how many there are once rows are loaded."""

    def load(self, assignment: Assignment) -> list[LoadedRows]:
        """Load the rows of all shards."""

    def prepare(self, problem: Problem) -> None:
        """Make all operators, and agree on which shard reads which values."""

    def run(self, programs: Sequence[Program], *, last: bool) -> list[Any]:
        """The answers to a program, one for each shard; without waiting for them unless it is the last one.

        What a program shares is what the next one gathers.
        """

    def ask(self, shard: int, *instruction: Any) -> Any:
        """One shard's answer to one instruction, which may be large."""

    def restore(self) -> None:
        """Replace the shards that ended."""

    def traffic(self) -> Traffic:
        """The cost of the exchanges since the last call."""

    def close(self) -> None:
        """End all shards."""


class InProcessExchange:
    """All shards in this process, one after the other: for tests, and for models larger than memory."""

    def __init__(self, count: int, threads: int | None) -> None:
        self.count = count
        self._threads = threads
        self._shards: list[Shard] = []
        self._parcels: list[tuple[Any, ...]] = []

    def load(self, assignment: Assignment) -> list[LoadedRows]:
        self.count = len(assignment.sources)
        self._shards = [Shard(self._threads) for _ in range(self.count)]
        self._seconds = np.zeros(self.count)
        return [shard.load(*assignment.arguments(i)) for i, shard in enumerate(self._shards)]

    def prepare(self, problem: Problem) -> None:
        reads = [shard.prepare(*problem.arguments(i)) for i, shard in enumerate(self._shards)]
        self._sizes = np.array([s.set_readers(r) for s, r in zip(self._shards, transpose(reads), strict=True)])

    def run(self, programs: Sequence[Program], *, last: bool) -> list[Any]:
        del last
        parcels = transpose(self._parcels) if self._parcels else [()] * self.count
        replies: list[Reply] = []
        for shard, program, incoming in zip(self._shards, programs, parcels, strict=True):
            replies.append(shard.run(program, incoming))
        self._parcels = [reply.parcels for reply in replies if reply.parcels]
        self._seconds += [reply.seconds for reply in replies]
        return [reply.answer for reply in replies]

    def ask(self, shard: int, *instruction: Any) -> Any:
        return self._shards[shard].run([instruction]).answer

    def restore(self) -> None:
        self._parcels = []

    def traffic(self) -> Traffic:
        return measure_traffic(self._sizes, self._seconds)

    def close(self) -> None:
        self._shards.clear()


def transpose(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """From what each shard has for the others to what the others have for each."""
    return list(zip(*rows, strict=True))


def measure_traffic(sizes: IntArray, seconds: FloatArray) -> Traffic:
    """From the numbers of values that go from shard to shard, and the seconds of each, which start again from 0."""
    slowest = int(np.argmax(seconds))
    traffic = Traffic(8 * int(sizes.sum()), slowest, float(seconds[slowest]))
    seconds[:] = 0.0
    return traffic
