"""One after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from robustmdp.engine.base import Item, Ordered, Result, failure, sentence_of


@dataclass(frozen=True)
class Serial(Ordered):
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

    def solve(self, source: Any, ambiguity: Any, settings: Any, checkpoint: Any) -> Any:
        """One model in shards; `rm.solve` calls it."""
        from robustmdp.cluster import solve_in_shards

        return solve_in_shards(source, ambiguity, settings, self, checkpoint)

    @contextmanager
    def exchange(self, threads: int | None) -> Iterator[Any]:
        """The shards of one model."""
        from robustmdp.cluster import InProcessExchange

        yield InProcessExchange(self.shards, threads)
