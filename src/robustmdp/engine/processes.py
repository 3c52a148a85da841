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

from robustmdp.engine.base import Item, Ordered, Result
from robustmdp.engine.remote import ONE_THREAD, Batch, Trouble, import_extra, run_task

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
        loky = import_extra("joblib.externals.loky", "processes")
        dumps = import_extra("joblib.externals.loky.cloudpickle_wrapper", "processes").dumps
        size = self.workers or loky.cpu_count()
        waiting, deaths = deque(range(len(items))), 0
        while waiting:
            # After a death one item runs alone: it has the memory to itself, and if it dies, it is the cause.
            todo = deque(waiting.popleft() for _ in range(1 if deaths else len(waiting)))
            workers = _Workers(dumps, task, items, todo)
            try:
                for ended in workers.run(loky.ProcessPoolExecutor, min(size, len(todo))):
                    deaths = 0
                    yield ended
            except loky.BrokenProcessPool as problem:
                deaths += 1
                if deaths > _RETRIES:
                    position = next(iter([*workers.running.values(), *workers.waiting]))
                    why = f"its process died, the {deaths}th in a row, perhaps out of memory"
                    raise workers.failure(position, why) from problem
                waiting = deque([*workers.waiting, *waiting, *workers.running.values()])


class _Workers(Batch):
    """One set of workers, from their start to their end or to the death of one, which ends them all."""

    _executor: Any

    def run(self, executor: Callable[..., Any], size: int) -> Iterator[tuple[int, Any]]:
        others = set(threading.enumerate())
        with _block_interrupts():
            self._executor = executor(size, initializer=_start_worker, initargs=(os.getpid(),), env=ONE_THREAD)
        try:
            while self.waiting or self.running:
                self.hand_out(size + 1)  # one more than there are workers: none waits while the caller saves a result
                yield from self._collect()
        finally:
            # A shutdown that is left half way leaks semaphores, and so does a thread that still ends.
            with _defer_interrupts():
                self._await_pickup()
                self._executor.shutdown(kill_workers=True)
                for thread in set(threading.enumerate()) - others:
                    if thread.name == _FEEDER:
                        thread.join(_SECONDS)

    def hand_out(self, room: int) -> None:
        with _block_interrupts():  # what was submitted must be known to be under way
            super().hand_out(room)

    def submit(self, item: bytes) -> Any:
        return self._executor.submit(run_task, self.dumps, self.packed_task, item)

    def _collect(self) -> Iterator[tuple[int, Any]]:
        """What has ended, the good results first: they are not to be lost with the bad."""
        ended, _ = wait(self.running, return_when=FIRST_COMPLETED)
        for future in sorted(ended, key=lambda future: (_has_failed(future), self.running[future])):
            outcome = future.result()
            yield self.unpack(outcome, self.running.pop(future))

    def _await_pickup(self) -> None:
        """Loky's own thread stumbles if the workers are killed before it has taken up what was handed out."""
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end and not all(future.running() or future.done() for future in self.running):
            time.sleep(0.001)


def _has_failed(future: Future[bytes | Trouble]) -> bool:
    return future.exception() is not None or isinstance(future.result(), Trouble)


@contextlib.contextmanager
def _block_interrupts() -> Iterator[None]:
    """Processes started in here never get Ctrl-C, it is the parent that stops them; the parent gets it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # started any later, it would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _defer_interrupts():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _defer_interrupts() -> Iterator[None]:
    """No KeyboardInterrupt in here: where this thread blocks the signal, another may pass it on."""
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


def _start_worker(parent: int) -> None:
    """A worker's first act: Ctrl-C is not for it, and it ends with its parent, even if that was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()


def _exit_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
