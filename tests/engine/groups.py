"""Scripts run in a process group of their own, which can be signalled and seen to end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def started(script: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A script under way; when left, its whole group must have ended by itself."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        try:
            yield process
            wait_for(lambda: not members(process.pid), 20.0)
        finally:
            for member in members(process.pid):
                os.kill(member, signal.SIGKILL)


def wait_for(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def members(group: int) -> list[int]:
    """The processes of a session, but for those that only wait to be buried."""
    alive = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = entry.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(session) == group and state != "Z":
            alive.append(int(entry.parent.name))
    return alive
