"""What an engine is: tasks go in, results come out, and a failure says which item it was; the one of this process."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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


class Sharding(Ordered):
    """An engine that has an `exchange` between the shards of one model as well."""

    def solve(self: Any, source: Any, ambiguity: Any, settings: Any, checkpoint: Any) -> Any:
        """One model in shards; `rm.solve` calls it."""
        from robustmdp.cluster import solve_in_shards

        return solve_in_shards(source, ambiguity, settings, self, checkpoint)


@dataclass(frozen=True)
class Serial(Sharding):
    """One item after the other, in this process.

    A model that `solve` is given with this engine is cut into `shards`, whose rows are mapped or made one by one: for
    models larger than memory.

    >>> Serial().map(abs, [-3, 2, -1])
    [3, 2, 1]
    """

    shards: int = 1

    def __post_init__(self) -> None:
        from robustmdp import _checks

        _checks.positive_integer("shards", self.shards)

    def each(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        for position, item in enumerate(items):
            try:
                result = task(item)
            except Exception as problem:
                raise failure(task, item, sentence_of(problem)) from problem
            yield position, result

    @contextmanager
    def exchange(self, threads: int | None) -> Iterator[Any]:
        """The shards of one model."""
        from robustmdp.cluster import InProcessExchange

        yield InProcessExchange(self.shards, threads)


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
    while isinstance(task, functools.partial):
        task = task.func
    name = getattr(task, "__name__", type(task).__name__)
    return TaskFailed(f"{name} failed with {format_item(item)}: {why}")


def sentence_of(problem: BaseException) -> str:
    """An exception as a traceback's last line has it."""
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__


def format_item(item: Any) -> str:
    """The parameters of an item in a few words.

    >>> format_item({"weight": 1.0, "seeds": [0, 1]})
    'weight=1.0, seeds=[0, 1]'
    """
    if isinstance(item, Mapping):
        return ", ".join(f"{name}={_shorten(value)}" for name, value in item.items())
    return _shorten(item)


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."
