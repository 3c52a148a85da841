"""One after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from robustmdp.engine.base import Item, Ordered, Result, failure, sentence_of


@dataclass(frozen=True)
class Serial(Ordered):
    """One item after the other, in this process.

    >>> Serial().map(abs, [-3, 2, -1])
    [3, 2, 1]
    """

    def each(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        for position, item in enumerate(items):
            try:
                result = task(item)
            except Exception as problem:
                raise failure(task, item, sentence_of(problem)) from problem
            yield position, result
