"""Programs for all shards at once, and recovery when a shard or the driver is lost.

The driver knows vectors by their numbers alone. It keeps the programs since all vectors were saved: after a loss all
shards start from the saved vectors and carry these programs out again, to the same bits. It also keeps all answers: a
new driver that finds them in a checkpoint repeats the decisions of the old one without computing.
"""

from __future__ import annotations

import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp.cluster.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from robustmdp.cluster.exchange import Exchange, ShardLost
from robustmdp.cluster.shard import Program

_PAUSE = 2.0  # seconds between checkpoints, at least
_SHARE = 10.0  # or so many times what writing one takes
_MOST_LOSSES = 10  # without an answer between them

Pair = tuple[float, float]


class Answer(NamedTuple):
    """Two numbers that the shards computed, and a checksum of all instructions until then."""

    history: float
    first: float
    second: float


class Driver:
    """Runs programs on shards, which keep numbered vectors.

    Parameters
    ----------
    exchange : the shards
    cuts, pair_cuts : shard i has the states cuts[i]..cuts[i + 1] and the pairs pair_cuts[i]..pair_cuts[i + 1]
    problem : what a checkpoint must be of
    checkpoint : where to save, and to resume from if it exists; None is a temporary file
    """

    def __init__(
        self,
        exchange: Exchange,
        cuts: Sequence[int],
        pair_cuts: Sequence[int],
        problem: dict[str, str],
        checkpoint: Path | None,
    ) -> None:
        self.exchange = exchange
        self._cuts, self._pair_cuts, self._problem = cuts, pair_cuts, problem
        self._earlier: Checkpoint | None = None  # of an earlier run, until this one comes to the same place
        self._recorded: Iterator[Answer] = iter(())
        if checkpoint is not None and checkpoint.exists():
            self._earlier = read_checkpoint(checkpoint, problem, cuts[-1], pair_cuts[-1])
            self._recorded = iter([Answer(*row) for row in self._earlier.answers.tolist()])
        self._folder = tempfile.TemporaryDirectory(prefix="robustmdp-")
        self._path = checkpoint or Path(self._folder.name, "values")
        self._saved: Checkpoint | None = None  # where recovery starts
        self._kinds: dict[int, str] = {}
        self._last_number = self._places = self._history = 0
        self._queue: list[tuple[Any, ...]] = []
        self._unused: list[int] = []
        self._programs: list[Program] = []  # since the vectors were saved
        self._answers: list[Answer] = []
        self._must_recover = False
        self._last_save, self._seconds_to_save = time.monotonic(), 0.0

    def close(self, *, keep: bool) -> None:
        """End the shards, and remove the checkpoint unless it is to be kept."""
        self.exchange.close()
        self._saved = self._earlier = None
        if not keep:
            self._path.unlink(missing_ok=True)
        self._folder.cleanup()

    # programs

    def new_vector(self, kind: str = "values") -> int:
        """The number of what the next instruction makes: "values", a "policy" or a "chain"."""
        self._last_number += 1
        self._kinds[self._last_number] = kind
        return self._last_number

    def drop(self, number: int) -> None:
        """Have the shards forget a vector, before they are asked for the next answer."""
        self._unused.append(number)  # this may be called by the garbage collector at any time

    def add(self, *instruction: Any) -> None:
        """Add to the program, which is sent when an answer is asked for."""
        self._history = _checksum(instruction, self._history)
        self._queue.append(instruction)

    def range(self, x: int) -> Pair:
        """The least and the largest number of a vector, or NaN."""
        return self._ask(_combine_ranges, "range", x)

    def dot(self, x: int, y: int) -> float:
        """The sum of products: the blocks of states are added in their order, whichever shard has them."""
        return self._ask(_add_blocks, "dot", x, y)[0]

    def collect(self, x: int) -> npt.NDArray[Any]:
        """A vector as one array, to which the shards' slices are copied one by one."""
        out: npt.NDArray[Any] | None = None
        for (low, high), piece in zip(pairwise(self._cuts), self.stream("fetch", x), strict=True):
            if out is None:
                out = np.empty((self._cuts[-1], *piece.shape[1:]), piece.dtype)
            out[low:high] = piece
        assert out is not None
        return out

    def stream(self, *instruction: Any) -> Iterator[Any]:
        """The answer of each shard in turn; only one of them is here at a time."""
        for shard in range(self.exchange.count):
            yield self.ask_shard(shard, *instruction)

    def ask_shard(self, shard: int, *instruction: Any) -> Any:
        """One shard's answer, which may be large, after what was added so far."""
        for _ in range(_MOST_LOSSES):
            if self._queue or self._must_recover or self._earlier is not None:
                self._run_queue()
            try:
                return self.exchange.ask(shard, *instruction)
            except ShardLost as loss:
                self._must_recover, reason = True, str(loss)
        raise _too_many(reason)

    # answers

    def _ask(self, combine: Callable[[list[Any]], Pair], *instruction: Any) -> Pair:
        self._drop_unused()
        self.add(*instruction)
        recorded = next(self._recorded, None) if self._earlier is not None else None
        if recorded is not None and recorded.history == self._history:
            self._close_program()
            answer = recorded
        else:
            answer = Answer(self._history, *combine(self._run_queue()))
        self._answers.append(answer)
        return answer.first, answer.second

    def _drop_unused(self) -> None:
        while self._unused:
            number = self._unused.pop()
            del self._kinds[number]
            self._queue.append(("drop", number))

    def _close_program(self) -> None:
        self._programs.append(self._queue)
        self._queue = []

    def _run_queue(self) -> list[Any]:
        """The answers of all shards to the queued instructions, also where shards are lost on the way."""
        if self._earlier is not None:  # this run takes another course than the earlier one: nothing was computed yet
            self._earlier, self._must_recover = None, True
        self._close_program()
        for _ in range(_MOST_LOSSES):
            try:
                return self._recover() if self._must_recover else self._send(self._programs[-1])
            except ShardLost as loss:
                self._must_recover, reason = True, str(loss)
            except BaseException:  # what the shards have done is not known
                self._must_recover = True
                raise
        raise _too_many(reason)

    def _recover(self) -> list[Any]:
        """Replace lost shards, restore the saved vectors and repeat all programs since; the answers to the last one."""
        self.exchange.restore()
        start: list[tuple[Any, ...]] = [("reset", self._saved.head.sweeps if self._saved else 0)]
        if self._saved:
            for vector in self._saved.head.vectors:
                name = "put" if vector.kind == "values" else "put_policy"
                start.append((name, vector.number, self._saved.arrays[vector.number]))
        answers = self._send(start)
        for program in self._programs:
            answers = self._send(program)
        self._must_recover = False
        return answers

    def _send(self, program: Program) -> list[Any]:
        """Run a program in parts that end with `share`, since all shards must have shared before one gathers."""
        start, answers = 0, []
        for stop, (name, *_) in enumerate(program, 1):
            if name == "share" or stop == len(program):
                part = program[start:stop]
                programs = [[self._slice_for(i, each) for each in part] for i in range(self.exchange.count)]
                answers = self.exchange.run(programs, last=stop == len(program))
                start = stop
        return answers

    def _slice_for(self, shard: int, instruction: tuple[Any, ...]) -> tuple[Any, ...]:
        """An instruction with a shard's slice of its array."""
        if instruction[0] not in ("put", "put_policy"):
            return instruction
        name, number, array = instruction
        cuts = self._cuts if len(array) == self._cuts[-1] else self._pair_cuts
        return name, number, np.asarray(array[cuts[shard] : cuts[shard + 1]])

    # checkpoints

    def save_if_due(self, sweeps: int) -> None:
        """Called where vectors alone are enough to resume, after so many sweeps; saves them now and then."""
        self._places += 1
        if self._earlier is not None:
            if self._places == self._earlier.head.place:
                self._saved, self._earlier, self._must_recover = self._earlier, None, True
                self._programs, self._queue = [], []
            return
        self._drop_unused()
        pause = max(_PAUSE, _SHARE * self._seconds_to_save)
        if "chain" in self._kinds.values() or time.monotonic() - self._last_save < pause:
            return
        start = time.monotonic()
        self._run_queue()
        self._save(sweeps)
        self._last_save = time.monotonic()
        self._seconds_to_save = self._last_save - start

    def _save(self, sweeps: int) -> None:
        vectors = ((number, kind, self.stream("fetch", number)) for number, kind in sorted(self._kinds.items()))
        write_checkpoint(self._path, self._problem, self._places, sweeps, self._answers, vectors)
        self._saved = read_checkpoint(self._path, self._problem, self._cuts[-1], self._pair_cuts[-1])
        self._programs = []


def _combine_ranges(ranges: list[Pair]) -> Pair:
    """That of all shards; NaN if one has it."""
    lowest, highest = zip(*ranges, strict=True)
    return float(np.min(lowest)), float(np.max(highest))


def _add_blocks(sums: list[list[float]]) -> Pair:
    return sum(chain.from_iterable(sums), 0.0), 0.0


def _checksum(instruction: tuple[Any, ...], before: int) -> int:
    """Continue the checksum of all instructions."""
    for part in instruction:
        data = np.ascontiguousarray(part).view(np.uint8).data if isinstance(part, np.ndarray) else repr(part).encode()
        before = zlib.crc32(data, before)
    return before


def _too_many(reason: str) -> RuntimeError:
    return RuntimeError(f"the solve ended because shards were lost {_MOST_LOSSES} times in a row: {reason}")
