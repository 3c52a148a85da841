"""What an engine is: tasks go in, results come out, and a failure says which item it was."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_WIDTH = 60  # characters of a value in a message


class Engine(Protocol):
    """Runs a task on every item, somewhere; the results are equal to the bit wherever that is."""

    def each(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """(position, result) as each one ends, in any order; a task that raises ends it with `TaskFailed`.

        Closing the iterator, or Ctrl-C, stops what is under way.
        """

    def map(self, task: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """All results, in the order of the items."""


class Ordered:
    """`map` by way of `each`."""

    def map(self: Engine, task: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        results = dict(self.each(task, items))
        return [results[position] for position in range(len(items))]


class TaskFailed(RuntimeError):
    """What failed, with its parameters; the traceback is the cause or, from another process, a note.

    >>> from robustmdp.engine import Serial
    >>> def share(item):
    ...     return item["whole"] / item["parts"]
    >>> Serial().map(share, [{"whole": 1, "parts": 0}])
    Traceback (most recent call last):
    ...
    robustmdp.engine.base.TaskFailed: share failed with whole=1, parts=0: ZeroDivisionError: division by zero
    """


def failure(task: Callable[..., Any], item: Any, why: str) -> TaskFailed:
    """The error to raise."""
    return TaskFailed(f"{name_of(task)} failed with {shown(item)}: {why}")


def sentence_of(problem: BaseException) -> str:
    """An exception as a traceback's last line has it."""
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__


def name_of(task: Callable[..., Any]) -> str:
    """What a reader would call the task."""
    while isinstance(task, functools.partial):
        task = task.func
    return getattr(task, "__name__", type(task).__name__)


def shown(item: Any) -> str:
    """The parameters of an item in a few words.

    >>> shown({"weight": 1.0, "seeds": [0, 1]})
    'weight=1.0, seeds=[0, 1]'
    """
    if isinstance(item, Mapping):
        return ", ".join(f"{name}={_short(value)}" for name, value in item.items())
    return _short(item)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."
