"""How far and how long still: on stderr, and only where that is a terminal."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from robustmdp._display import printable

LEARNING = "Preparing the learners (the first run compiles them)"


class Bar:
    """A bar that vanishes when done; silent with --quiet and without a terminal.

    `first` is shown until the first `show`. A solver answers Ctrl-C with what it has so far, which is no use to a study
    of many: the next `check` raises again.
    """

    def __init__(self, quiet: bool = False, first: str = "Starting") -> None:
        self._quiet, self._first, self._stopped = quiet, first, False

    def __enter__(self) -> Bar:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        text = TextColumn("{task.description}", markup=False)
        columns = (text, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        hidden = self._quiet or not console.is_terminal
        self._bar = Progress(*columns, console=console, disable=hidden, transient=True)
        self._task: Any = self._bar.add_task(self._first, total=1.0)
        self._bar.start()
        # Not where other code listens to Ctrl-C, where it is ignored, or outside the main thread.
        alone = threading.current_thread() is threading.main_thread()
        self._listening = alone and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._listening:
            signal.signal(signal.SIGINT, self._stop)
        return self

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopped = True
        self.show("Interrupted: bounding what there is")
        raise KeyboardInterrupt

    def check(self) -> None:
        """Raise if Ctrl-C came, whoever took it."""
        if self._stopped:
            raise KeyboardInterrupt

    def show(self, text: str, share: float | None = None) -> None:
        """What is being done, and the share of it that is done where that is known."""
        self._bar.update(self._task, description=printable(text), completed=share, total=None if share is None else 1.0)

    def count(self, what: str) -> Any:
        """A callback for (done, total)."""

        def report(done: int, total: int) -> None:
            self.check()
            self.show(f"{what}: {done:,} of {total:,}", done / total)

        return report

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._listening:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self._bar.stop()


class Steps:
    """Callback of a solver: progress in the logarithm of the certified error, from the first one to `accuracy`.

    Of a solve with a number of `steps`, the share of these; `describe` says in words how far a step came.
    """

    def __init__(self, bar: Bar, accuracy: float, steps: int | None, describe: Callable[[Any], str]) -> None:
        self._bar, self._accuracy, self._steps, self._describe = bar, accuracy, steps, describe
        self._largest, self._share = 0.0, 0.0

    def __call__(self, step: Any) -> None:
        self._bar.show(self._describe(step), self._advance(step.step, step.error_bound))

    def _advance(self, step: int, error: float) -> float | None:
        """The share that is done, which never falls; None while no error is known."""
        if self._steps is not None:
            return step / self._steps
        if not 0.0 < error < math.inf:
            return self._share or None
        self._largest = max(self._largest, error)
        if self._accuracy < self._largest:
            share = math.log(self._largest / error) / math.log(self._largest / self._accuracy)
            self._share = max(self._share, min(share, 1.0))
        return self._share
