"""The most memory that this program has held so far."""

from __future__ import annotations

import os
import threading
from pathlib import Path


def peak() -> int:
    """In bytes, of this program alone: what getrusage tells begins with the process that started it."""
    return int(_status(Path("/proc/self"))["VmHWM"].split()[0]) * 1024


class Sampler:
    """The most anonymous memory of this process, and of each one below it whose name contains a word, while it is open.

    Mapped files and Ray's object store, which all processes of a node share, are not counted. A thread looks every 20
    milliseconds, since the kernel keeps no peak of it.
    """

    def __init__(self, word: str) -> None:
        self._word = word.encode()
        self._ended = threading.Event()
        self.reset()

    def reset(self) -> None:
        """Forget the peaks so far."""
        self.own = self.all = self.largest = 0

    def __enter__(self) -> Sampler:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        own = Path("/proc/self")
        others: list[Path] = []
        looks = 0
        while not self._ended.wait(0.02):
            if looks % 25 == 0:  # new processes are rare, and looking for them is slow
                others = [path for path in _below(os.getpid()) if self._word in _command(path)]
            looks += 1
            mine, theirs = anonymous(own), [anonymous(path) for path in others]
            self.own = max(self.own, mine)
            self.largest = max([self.largest, *theirs])
            self.all = max(self.all, mine + sum(theirs))


def _below(parent: int) -> list[Path]:
    """The processes that this one started, and those that they started."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        children.setdefault(int(_status(path).get("PPid", "0")), []).append(int(path.name))
    found, waiting = [], [parent]
    while waiting:
        more = children.get(waiting.pop(), [])
        found += [Path("/proc", str(number)) for number in more]
        waiting += more
    return found


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def anonymous(process: Path) -> int:
    """Bytes that no file stands behind; 0 once the process is gone."""
    return int(_status(process).get("RssAnon", "0").split()[0]) * 1024


def _status(process: Path) -> dict[str, str]:
    try:
        lines = (process / "status").read_text().splitlines()
    except OSError:
        return {}
    return dict(line.split(":", 1) for line in lines)
