"""In processes of this machine, by joblib's loky; a process that dies is replaced and its work done again."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Any

from robustmdp.engine.base import Item, Ordered, Result, TaskFailed, failure
from robustmdp.engine.remote import ONE_THREAD, Trouble, carry_out, extra, pack, unpack

_RETRIES = 3  # deaths in a row, with nothing finished between them, that are forgiven
_SECONDS = 5.0  # far more than it takes to pick up an item, or to end a thread
_FEEDER = "QueueFeederThread"  # loky's, which it does not wait for


@dataclass(frozen=True)
class Processes(Ordered):
    """In `workers` processes, by default one for every core this process may use.

    Each has one thread. Tasks, items and results are pickled by value where need be, so closures will do.

    >>> Processes(2).map(lambda n: n * n, [3, 2, 1])
    [9, 4, 1]
    """

    workers: int | None = None

    def __post_init__(self) -> None:
        from robustmdp import _checks

        if self.workers is not None:
            _checks.positive_integer("workers", self.workers)

    def each(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        loky = extra("joblib.externals.loky", "processes")
        size = self.workers or loky.cpu_count()
        waiting, deaths = deque(range(len(items))), 0
        while waiting:
            # After a death one item runs alone: it has the memory to itself, and if it dies, it is the cause.
            todo, waiting = _split(waiting, 1 if deaths else len(waiting))
            shift = _Shift(task, items, todo, min(size, len(todo)))
            try:
                for ended in shift.run(loky.ProcessPoolExecutor):
                    deaths = 0
                    yield ended
            except loky.BrokenProcessPool as problem:
                deaths += 1
                if deaths > _RETRIES:
                    raise shift.given_up(deaths) from problem
                waiting = deque([*shift.waiting, *waiting, *shift.running.values()])


def _split(positions: deque[int], count: int) -> tuple[deque[int], deque[int]]:
    listed = list(positions)
    return deque(listed[:count]), deque(listed[count:])


class _Shift:
    """One set of workers, from their start to their end or to the death of one, which ends them all."""

    def __init__(self, task: Callable[..., Any], items: Sequence[Any], waiting: deque[int], size: int) -> None:
        self.task, self.items, self.waiting, self.size = task, items, waiting, size
        self.running: dict[Future[bytes | Trouble], int] = {}
        self._dumps = extra("joblib.externals.loky.cloudpickle_wrapper", "processes").dumps

    def run(self, executor: Callable[..., Any]) -> Iterator[tuple[int, Any]]:
        others = set(threading.enumerate())
        with _deaf():
            crew = executor(self.size, initializer=_settle, initargs=(os.getpid(),), env=ONE_THREAD)
        try:
            packed = pack(self._dumps, self.task, self.task, self.items[self.waiting[0]])
            while self.waiting or self.running:
                self._hand_out(crew, packed)
                yield from self._collect()
        finally:
            with _deferred():  # a shutdown that is left half way leaks semaphores, and so does a thread that still ends
                self._await_pickup()
                crew.shutdown(kill_workers=True)
                for thread in set(threading.enumerate()) - others:
                    if thread.name == _FEEDER:
                        thread.join(_SECONDS)

    def _hand_out(self, crew: Any, task: bytes) -> None:
        # One more than there are workers, so that none waits while the caller saves a result.
        while self.waiting and len(self.running) <= self.size:
            position = self.waiting[0]
            item = pack(self._dumps, self.items[position], self.task, self.items[position])
            with _deaf():
                self.running[crew.submit(carry_out, self._dumps, task, item)] = self.waiting.popleft()

    def _collect(self) -> Iterator[tuple[int, Any]]:
        """What has ended, the good results first: they are not to be lost with the bad."""
        ended, _ = wait(self.running, return_when=FIRST_COMPLETED)
        for future in sorted(ended, key=lambda future: (_went_wrong(future), self.running[future])):
            outcome = future.result()
            position = self.running.pop(future)
            yield position, unpack(outcome, self.task, self.items[position])

    def _await_pickup(self) -> None:
        """Loky's own thread stumbles if the workers are killed before it has taken up what was handed out."""
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end and not all(future.running() or future.done() for future in self.running):
            time.sleep(0.001)

    def given_up(self, deaths: int) -> TaskFailed:
        position = next(iter([*self.running.values(), *self.waiting]))
        why = f"its process died, the {deaths}th in a row, perhaps out of memory"
        return failure(self.task, self.items[position], why)


def _went_wrong(future: Future[bytes | Trouble]) -> bool:
    return future.exception() is not None or isinstance(future.result(), Trouble)


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Processes started in here never hear Ctrl-C, it is the parent that stops them; the parent hears it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # started any later, it would end the deafness
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _deferred():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _deferred() -> Iterator[None]:
    """No KeyboardInterrupt in here: where this thread is deaf, another may pass the signal on to it."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    asked = False

    def note(number: int, frame: Any) -> None:
        nonlocal asked
        asked = True

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if asked:
            signal.raise_signal(signal.SIGINT)


def _settle(parent: int) -> None:
    """A worker's first act."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: int) -> None:
    """End with the parent, even if that was killed."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
