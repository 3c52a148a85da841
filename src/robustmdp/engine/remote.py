"""What the engines share whose tasks run in other processes: how work is packed, done there, and unpacked."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from robustmdp.engine.base import failure, sentence_of

Dumps = Callable[[Any], bytes]

# The cores are taken by the tasks.
ONE_THREAD = dict.fromkeys(
    (
        "ROBUSTMDP_THREADS",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
    ),
    "1",
)


class Trouble(NamedTuple):
    """An exception as text, for not every exception survives the way back."""

    sentence: str
    traceback: str


def extra(module: str, engine: str) -> Any:
    """A module of an optional library."""
    library = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as problem:
        if problem.name != library:
            raise
        sentence = f"{library} must be installed for the engine {engine!r}: pip install 'robustmdp[{engine}]'"
        raise ImportError(sentence) from None


def trouble_of(problem: BaseException) -> Trouble:
    """What to tell of an exception."""
    return Trouble(sentence_of(problem), "".join(traceback.format_exception(problem)))


def pack(dumps: Dumps, value: Any, task: Callable[..., Any], item: Any) -> bytes:
    """Bytes to send; what cannot be sent is a failure of its item."""
    try:
        return dumps(value)
    except Exception as problem:
        raise failure(task, item, f"it cannot be sent to another process ({sentence_of(problem)})") from problem


def carry_out(dumps: Dumps, task: bytes, item: bytes) -> bytes | Trouble:
    """Run one task; called in the other process.

    Bytes, not objects: the task finds its item writable, the caller the result, and nothing shares memory with a
    process that may be gone.
    """
    os.environ.update(ONE_THREAD)
    try:
        return dumps(pickle.loads(task)(pickle.loads(item)))
    except (Exception, SystemExit) as problem:
        return trouble_of(problem)


def unpack(outcome: bytes | Trouble, task: Callable[..., Any], item: Any) -> Any:
    """The result, or the failure."""
    if isinstance(outcome, Trouble):
        failed = failure(task, item, outcome.sentence)
        failed.add_note(outcome.traceback.rstrip())
        raise failed
    try:
        return pickle.loads(outcome)
    except Exception as problem:
        raise failure(task, item, f"its result cannot be read here ({sentence_of(problem)})") from problem
