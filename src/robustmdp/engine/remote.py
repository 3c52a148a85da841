"""What the engines share whose tasks run in other processes: how work is packed, done there, and unpacked."""

from __future__ import annotations

import os
import pickle
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from robustmdp.engine.base import TaskFailed, failure, sentence_of

Dumps = Callable[[Any], bytes]

# The cores are taken by the tasks.
_COUNTS = (
    "ROBUSTMDP_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS",
)  # fmt: skip
ONE_THREAD = dict.fromkeys(_COUNTS, "1")


class Trouble(NamedTuple):
    """An exception as text, for not every exception survives the way back."""

    sentence: str
    traceback: str


def import_extra(module: str, engine: str) -> Any:
    """A module of an optional library."""
    library = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as problem:
        if problem.name != library:
            raise
        sentence = f"{library} must be installed for the engine {engine!r}: pip install 'robustmdp[{engine}]'"
        raise ImportError(sentence) from None


def describe_trouble(problem: BaseException) -> Trouble:
    """What to tell of an exception."""
    return Trouble(sentence_of(problem), "".join(traceback.format_exception(problem)))


def run_task(dumps: Dumps, task: bytes, item: bytes) -> bytes | Trouble:
    """Run one task; called in the other process.

    Bytes, not objects: the task finds its item writable, the caller the result, and nothing shares memory with a
    process that may be gone.
    """
    os.environ.update(ONE_THREAD)
    try:
        return dumps(pickle.loads(task)(pickle.loads(item)))
    except (Exception, SystemExit) as problem:
        return describe_trouble(problem)


class Batch:
    """The items of one call: those that wait, and those that are under way."""

    def __init__(self, dumps: Dumps, task: Callable[..., Any], items: Sequence[Any], waiting: deque[int]) -> None:
        self.dumps, self.task, self.items, self.waiting = dumps, task, items, waiting
        self.running: dict[Any, int] = {}
        self.packed_task = self._pack(task, waiting[0])

    def submit(self, item: bytes) -> Any:
        """Have `run_task` run the task on an item; returns what stands for the result."""
        raise NotImplementedError

    def hand_out(self, room: int) -> None:
        """Submit items until so many are under way."""
        while self.waiting and len(self.running) < room:
            position = self.waiting[0]
            self.running[self.submit(self._pack(self.items[position], position))] = position
            self.waiting.popleft()

    def unpack(self, outcome: bytes | Trouble, position: int) -> tuple[int, Any]:
        """The position and the result, or the failure."""
        if isinstance(outcome, Trouble):
            failed = self.failure(position, outcome.sentence)
            failed.add_note(outcome.traceback.rstrip())
            raise failed
        try:
            return position, pickle.loads(outcome)
        except Exception as problem:
            raise self.failure(position, f"its result cannot be read here ({sentence_of(problem)})") from problem

    def failure(self, position: int, why: str) -> TaskFailed:
        """The error to raise for an item."""
        return failure(self.task, self.items[position], why)

    def _pack(self, value: Any, position: int) -> bytes:
        try:
            return self.dumps(value)
        except Exception as problem:
            why = f"it cannot be sent to another process ({sentence_of(problem)})"
            raise self.failure(position, why) from problem
