"""The shards as one machine: programs for all of them at once, and a way back when a shard or the driver is lost.

The driver knows vectors by their numbers alone. It keeps the programs since all vectors were saved: a shard that was
lost begins again there, and all carry them out anew, to the same bits. It also keeps all answers: a new driver that
finds them in a checkpoint comes to the decisions of the old one without asking.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp.cluster.checkpoint import Saved, read_saved, write_saved
from robustmdp.cluster.exchange import Exchange, Lost
from robustmdp.cluster.shard import Program

_PAUSE = 2.0  # seconds between saves, at least
_SHARE = 10.0  # or so many times what a save takes
_MOST_LOSSES = 10  # without an answer between them

Pair = tuple[float, float]


class Machine:
    """The shards, with numbered vectors.

    Parameters
    ----------
    exchange : the shards
    cuts, pair_cuts : shard i has the states cuts[i]..cuts[i + 1] and the pairs pair_cuts[i]..pair_cuts[i + 1]
    problem : what a checkpoint must be of
    checkpoint : where to save, and to go on from if it is there; None is a temporary file
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
        self._folder = tempfile.TemporaryDirectory(prefix="robustmdp-")
        self._path = checkpoint or Path(self._folder.name, "values")
        self._saved: Saved | None = None
        self._told: Iterator[Pair] | None = None
        if checkpoint is not None and checkpoint.exists():
            self._saved = read_saved(checkpoint, problem)
            self._told = iter(map(tuple, self._saved.arrays[0].reshape(-1, 2).tolist()))
        self._kinds: dict[int, str] = {}
        self._next = self._places = 0
        self.sweeps = 0  # exchanges of values
        self._queue: list[tuple[Any, ...]] = []
        self._since: list[Program] = []
        self._answers: list[Pair] = []
        self._broken = False
        self._time, self._cost = time.monotonic(), 0.0

    def close(self, *, keep: bool) -> None:
        """End the shards, and remove the checkpoint unless it is to be kept."""
        self.exchange.close()
        self._saved = None
        if not keep:
            self._path.unlink(missing_ok=True)
        self._folder.cleanup()

    # vectors and programs

    def new(self, kind: str = "values") -> int:
        """The number of what the next instruction makes: "values", a "policy" or a "chain"."""
        self._next += 1
        self._kinds[self._next] = kind
        return self._next

    def drop(self, number: int) -> None:
        """Forget one."""
        del self._kinds[number]
        self._queue.append(("drop", number))

    def do(self, *instruction: Any) -> None:
        """Add to the program, which is sent when an answer is asked for."""
        self.sweeps += instruction[0] == "share"
        self._queue.append(instruction)

    def ask_range(self, x: int) -> Pair:
        """The least and the largest number of a vector, or NaN."""
        return self._ask(lambda found: (min_of(found, 0, np.min), min_of(found, 1, np.max)), "range", x)

    def ask_dot(self, x: int, y: int) -> float:
        """The sum of products: blocks of states one after the other, wherever they are."""
        return self._ask(lambda found: (sum(chain.from_iterable(found), 0.0), 0.0), "dot", x, y)[0]

    def _ask(self, combine: Callable[[list[Any]], Pair], *instruction: Any) -> Pair:
        self._queue.append(instruction)
        program = self._take()
        answer = next(self._told) if self._told is not None else combine(self._carry_out(program))
        self._answers.append(answer)
        return answer

    def _take(self) -> Program:
        program, self._queue = self._queue, []
        return program

    def _carry_out(self, program: Program) -> list[Any]:
        """The answers of all shards, whatever is lost on the way."""
        self._since.append(program)
        for _ in range(_MOST_LOSSES):
            try:
                return self._begin_again() if self._broken else self._send(program)
            except Lost as loss:
                self._broken, reason = True, loss
            except BaseException:  # what the shards have done is not known
                self._broken = True
                raise
        raise RuntimeError(f"the solve ended because shards were lost {_MOST_LOSSES} times in a row: {reason}")

    def _begin_again(self) -> list[Any]:
        """From what was saved last, or from nothing."""
        self.exchange.restore()
        start: list[tuple[Any, ...]] = [("reset", self._saved.head.sweeps if self._saved else 0)]
        for vector in self._saved.head.vectors[1:] if self._saved else ():
            name = "put" if vector.kind == "values" else "put_policy"
            assert self._saved is not None
            start.append((name, vector.number, self._saved.arrays[vector.number]))
        answers = self._send(start)
        for program in self._since:
            answers = self._send(program)
        self._broken = False
        return answers

    def _send(self, program: Program) -> list[Any]:
        """What a program shares must have left before it is gathered."""
        start, answers = 0, []
        for stop, (name, *_) in enumerate(program, 1):
            if name == "share" or stop == len(program):
                piece = program[start:stop]
                programs = [[self._own(i, each) for each in piece] for i in range(self.exchange.count)]
                answers = self.exchange.run(programs, last=stop == len(program))
                start = stop
        return answers

    def _own(self, shard: int, instruction: tuple[Any, ...]) -> tuple[Any, ...]:
        """An instruction with a shard's share of its array."""
        if instruction[0] not in ("put", "put_policy"):
            return instruction
        name, number, array = instruction
        cuts = self._cuts if len(array) == self._cuts[-1] else self._pair_cuts
        return name, number, np.asarray(array[cuts[shard] : cuts[shard + 1]])

    def collect(self, x: int) -> npt.NDArray[Any]:
        """A vector as one array."""
        while True:
            queue = self._take()
            if queue or self._broken:
                self._carry_out(queue)
            try:
                return self._joined(x)
            except Lost:
                self._broken = True

    def _joined(self, x: int) -> npt.NDArray[Any]:
        """Piece by piece, so that there is one copy."""
        out: npt.NDArray[Any] | None = None
        for low, high, piece in zip(self._cuts[:-1], self._cuts[1:], self.exchange.fetch(x), strict=True):
            if out is None:
                out = np.empty((self._cuts[-1], *piece.shape[1:]), piece.dtype)
            out[low:high] = piece
        assert out is not None
        return out

    # coming back

    def may_save(self, sweeps: int) -> None:
        """A place from which vectors alone are enough to go on, after so many sweeps."""
        self._places += 1
        if self._told is not None:
            assert self._saved is not None
            if self._places == self._saved.head.place:
                self._told, self._broken = None, True
                self._queue.clear()
            return
        if "chain" in self._kinds.values() or time.monotonic() - self._time < max(_PAUSE, _SHARE * self._cost):
            return
        start = time.monotonic()
        try:
            self._carry_out(self._take())
            self._save(sweeps)
        except Lost:
            self._broken = True
        self._time = time.monotonic()
        self._cost = self._time - start

    def _save(self, sweeps: int) -> None:
        answers = np.array(self._answers, dtype=np.float64).reshape(-1)
        vectors = ((number, kind, self.exchange.fetch(number)) for number, kind in sorted(self._kinds.items()))
        write_saved(self._path, self._problem, self._places, sweeps, chain([(0, "answers", [answers])], vectors))
        self._saved = read_saved(self._path, self._problem)
        self._since = []


def min_of(found: list[Pair], which: int, reduce: Callable[[Any], Any]) -> float:
    """Of all shards; NaN if one has it."""
    return float(reduce([pair[which] for pair in found]))
