"""How far and how long still: on stderr, and only where that is a terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Any

_FIRST = "Preparing the kernels (the first run compiles them)"


class Bar:
    """A bar that vanishes when done; silent with --quiet and where nobody looks."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet

    def __enter__(self) -> Bar:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        hidden = self._quiet or not console.is_terminal
        self._bar = Progress(*columns, console=console, disable=hidden, transient=True)
        self._task: Any = self._bar.add_task(_FIRST, total=1.0)
        self._bar.start()
        return self

    def show(self, text: str, share: float | None = None) -> None:
        """What is being done, and the share of it that is done where that is known."""
        self._bar.update(self._task, description=text, completed=share, total=None if share is None else 1.0)

    def count(self, what: str) -> Any:
        """A callback for (done, total)."""
        return lambda done, total: self.show(f"{what}: {done:,} of {total:,}", done / total)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, where: TracebackType | None
    ) -> None:
        self._bar.stop()
