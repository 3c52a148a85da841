"""How a driver reaches its shards, and shards each other; here all of them in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from robustmdp.ambiguity import Ambiguity
from robustmdp.cluster.shard import Loaded, Program, Reply, Shard, Source
from robustmdp.models.part import Whole


class Lost(Exception):
    """A shard is gone, and with it what it knew."""


class Rows(NamedTuple):
    """Where shards find their rows: shard i the states cuts[i]..cuts[i + 1] of sources[i]."""

    sources: Sequence[Source]
    cuts: Sequence[int]
    rewards_on_successors: bool

    def of_each(self) -> list[tuple[Any, ...]]:
        """The arguments of `Shard.load`."""
        n_states, spans = self.cuts[-1], zip(self.sources, self.cuts[:-1], self.cuts[1:], strict=True)
        return [(source, low, high, n_states, self.rewards_on_successors) for source, low, high in spans]


class Problem(NamedTuple):
    """What shards are told when all rows are there: the model's sizes, and what nature may do in the states of each."""

    whole: Whole
    sets: Sequence[Ambiguity]
    cuts: Sequence[int]

    def of_each(self) -> list[tuple[Any, ...]]:
        """The arguments of `Shard.prepare`."""
        return [(self.whole, ambiguity, self.cuts) for ambiguity in self.sets]


class Traffic(NamedTuple):
    """What an exchange of values costs: bytes sent, the slowest shard, and its seconds of work since the last look."""

    sent: int
    slowest: int
    seconds: float


class Exchange(Protocol):
    """All shards, addressed at once. What is shared goes from shard to shard, not through the driver.

    Every method but `close` raises `Lost` when a shard is gone; `restore` then brings it back, without its vectors.
    """

    count: int
    """How many shards there can be, and how many there are once rows are loaded."""

    def load(self, rows: Rows) -> list[Loaded]:
        """Have all rows made."""

    def prepare(self, problem: Problem) -> None:
        """Have all operators made, and agree on who reads what."""

    def run(self, programs: Sequence[Program], *, last: bool) -> list[Any]:
        """The answers to a program, one for each shard; without waiting for them if this is not the last one.

        What a program shares arrives where the next one gathers.
        """

    def fetch(self, x: int) -> Iterator[npt.NDArray[Any]]:
        """A vector, shard by shard."""

    def restore(self) -> None:
        """Replace what was lost."""

    def traffic(self) -> Traffic:
        """What the last exchange was like."""

    def close(self) -> None:
        """End all shards."""


class InProcess:
    """All shards in this process, one after the other: for tests, and for models larger than memory."""

    def __init__(self, count: int, threads: int | None) -> None:
        self.count = count
        self._threads = threads
        self._parcels: list[tuple[Any, ...]] = []

    def load(self, rows: Rows) -> list[Loaded]:
        self.count = len(rows.sources)
        self._shards = [Shard(self._threads) for _ in rows.sources]
        self._seconds = np.zeros(self.count)
        return [shard.load(*arguments) for shard, arguments in zip(self._shards, rows.of_each(), strict=True)]

    def prepare(self, problem: Problem) -> None:
        wanted = [shard.prepare(*each) for shard, each in zip(self._shards, problem.of_each(), strict=True)]
        self._sizes = np.array([s.serve(w) for s, w in zip(self._shards, transposed(wanted), strict=True)])

    def run(self, programs: Sequence[Program], *, last: bool) -> list[Any]:
        del last
        parcels = transposed(self._parcels) if self._parcels else [()] * self.count
        replies: list[Reply] = []
        for shard, program, incoming in zip(self._shards, programs, parcels, strict=True):
            replies.append(shard.run(program, incoming))
        self._parcels = [reply.parcels for reply in replies if reply.parcels]
        self._seconds += [reply.seconds for reply in replies]
        return [reply.answer for reply in replies]

    def fetch(self, x: int) -> Iterator[npt.NDArray[Any]]:
        for shard in self._shards:
            yield shard.run([("fetch", x)]).answer

    def restore(self) -> None:
        """Nothing is ever lost."""

    def traffic(self) -> Traffic:
        return traffic_of(self._sizes, self._seconds)

    def close(self) -> None:
        self._shards.clear()


def transposed(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """From what each shard has for the others to what the others have for each."""
    return list(zip(*rows, strict=True))


def traffic_of(sizes: npt.NDArray[np.int64], seconds: npt.NDArray[np.float64]) -> Traffic:
    """From the numbers of values that go from shard to shard, and the work of each since the last look."""
    slowest = int(np.argmax(seconds))
    found = Traffic(8 * int(sizes.sum()), slowest, float(seconds[slowest]))
    seconds[:] = 0.0
    return found
