"""Results on disk, one file each, so that a run that was killed takes up where it stopped."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustmdp._files import replace_file
from robustmdp.engine.base import Engine, Item, Ordered, Result, format_item

_PART = ".part-"  # how the name of a file begins that is not whole yet


@dataclass(frozen=True)
class Kept(Ordered):
    """An engine around an engine: what is on disk is loaded, the rest is run and saved as it comes.

    Parameters
    ----------
    engine : where the rest runs
    folder : one file per result, named by its item and its task; for one run at a time
    save, load : write a result to a path that ends in `suffix`, and read it again
        A file whose `load` raises ValueError, EOFError or OSError is damaged: it is removed and its item run again.
    done : called with (item, fresh) after each item; `fresh` is False for those that were on disk

    Items are numbers, strings, and lists and dicts of them. What a task closes over is no part of the name.

    >>> import tempfile
    >>> from robustmdp.engine import Serial
    >>> def save(path, number):
    ...     path.write_text(str(number))
    >>> def load(path):
    ...     return int(path.read_text())
    >>> def progress(item, fresh):
    ...     print(item, "is new" if fresh else "was there")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     engine = Kept(Serial(), Path(folder), save, load, ".txt", progress)
    ...     engine.map(abs, [-2])
    ...     engine.map(abs, [-2, 3])
    -2 is new
    [2]
    -2 was there
    3 is new
    [2, 3]
    """

    engine: Engine
    folder: Path
    save: Callable[[Path, Any], None]
    load: Callable[[Path], Any]
    suffix: str
    done: Callable[[Any, bool], None] | None = None

    def each(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        places: dict[Path, list[int]] = {}
        for position, item in enumerate(items):
            path = self.folder / (key_of(task, item) + self.suffix)
            places.setdefault(path, []).append(position)
        self.folder.mkdir(parents=True, exist_ok=True)
        for leftover in self.folder.glob(f"{_PART}*{self.suffix}"):
            leftover.unlink(missing_ok=True)
        missing = []
        for path, positions in places.items():
            if not path.exists():  # a `load` of somebody else may take that for a result
                missing.append(path)
                continue
            try:
                result = self.load(path)
            except (ValueError, EOFError, OSError):
                path.unlink(missing_ok=True)
                missing.append(path)
            else:
                yield from self._report(result, positions, items, fresh=False)
        chosen = [items[places[path][0]] for path in missing]
        with contextlib.closing(_closable(self.engine.each(task, chosen))) as results:
            for at, result in results:
                with replace_file(missing[at], _PART) as part:
                    self.save(part, result)
                yield from self._report(result, places[missing[at]], items, fresh=True)

    def _report(
        self, result: Any, positions: list[int], items: Sequence[Any], *, fresh: bool
    ) -> Iterator[tuple[int, Any]]:
        for position in positions:
            if self.done is not None:
                self.done(items[position], fresh)
            yield position, result


def key_of(task: Callable[..., Any], item: Any) -> str:
    """A name that says what is computed: equal for equal tasks and items, in whatever order a dict holds them."""
    parts = _describe_task(task)
    try:
        text = json.dumps([parts, item], sort_keys=True)
    except (TypeError, ValueError) as problem:
        sentence = (
            f"an item must be made of numbers, strings, lists and dicts to be kept: got {format_item(item)} ({problem})"
        )
        raise TypeError(sentence) from None
    return hashlib.sha256(text.encode()).hexdigest()


def _describe_task(task: Callable[..., Any]) -> list[Any]:
    if isinstance(task, functools.partial):
        return [*_describe_task(task.func), list(task.args), task.keywords]
    if not hasattr(task, "__qualname__"):
        raise TypeError(f"a task must be a function to be kept: got {task!r}")
    return [task.__module__, task.__qualname__]


def _closable(results: Iterator[tuple[int, Any]]) -> Generator[tuple[int, Any], None, None]:
    yield from results
