"""Processes that die, are interrupted, or are left alone by their parent."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.groups import started, wait_for
from robustmdp.engine import Processes, TaskFailed

pytest.importorskip("joblib")


def squaring(folder: Path, deadly: int, times: int) -> Callable[[int], int]:
    """n * n, but the first `times` processes to meet the deadly item die of it."""

    def square(n: int) -> int:
        if n == deadly and len(list(folder.iterdir())) < times:
            (folder / f"{os.getpid()}").touch()
            os._exit(9)
        return n * n

    return square


def test_a_process_that_dies_is_replaced(tmp_path: Path) -> None:
    results = Processes(2).map(squaring(tmp_path, deadly=2, times=2), list(range(8)))
    assert results == [n * n for n in range(8)]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_deadly_item_ends_in_a_failure_after_all_others(tmp_path: Path) -> None:
    done: list[int] = []
    with pytest.raises(TaskFailed) as caught:
        done.extend(n for n, _ in Processes(2).each(squaring(tmp_path, deadly=0, times=99), list(range(5))))
    assert sorted(done) == [1, 2, 3, 4]
    assert str(caught.value) == "square failed with 0: its process died, the 4th in a row, perhaps out of memory"


def test_one_thread_each() -> None:
    def threads(name: str) -> str | None:
        return os.environ.get(name)

    names = ["ROBUSTMDP_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"]
    assert Processes(1).map(threads, names) == ["1", "1", "1"]


def test_closing_stops_what_is_under_way() -> None:
    def hold(seconds: float) -> int:
        time.sleep(seconds)
        return os.getpid()

    began = time.monotonic()
    results = Processes(2).each(hold, [0.0, 300.0, 300.0])
    _, process = next(results)
    results.close()  # type: ignore[attr-defined]
    assert time.monotonic() - began < 60
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


HANDLING = """
import signal, sys, time
from pathlib import Path
from robustmdp.engine import Kept, Processes

def wait(n):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as a task may that minds Ctrl-C itself
    time.sleep(0.01 if n < 3 else 300)
    return n

folder = Path(sys.argv[1])
engine = Kept(Processes(2), folder, lambda path, n: path.write_text(str(n)), lambda path: int(path.read_text()), ".txt")
try:
    print("starting", flush=True)
    engine.map(wait, list(range(6)))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_ends_all_and_keeps_what_is_done(tmp_path: Path) -> None:
    with started(HANDLING, tmp_path) as process:
        wait_for(lambda: len(list(tmp_path.glob("[!.]*.txt"))) == 3)
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the parent and to all its workers
        said, complaints = process.communicate(timeout=60)
        assert time.monotonic() - began < 15
    assert (said, complaints) == ("starting\ninterrupted\n", "")
    assert sorted(path.read_text() for path in tmp_path.glob("[!.]*.txt")) == ["0", "1", "2"]


def test_an_interrupt_amid_the_start_of_the_workers(tmp_path: Path) -> None:
    with started(HANDLING, tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "starting\n"
        time.sleep(0.15)
        os.killpg(process.pid, signal.SIGINT)
        said, complaints = process.communicate(timeout=60)
    assert (said, complaints) == ("interrupted\n", "")


LEAVING = """
import os, signal, threading
from joblib.externals import loky
from robustmdp.engine import Processes

leave = loky.ProcessPoolExecutor.shutdown

def interrupted(self, *arguments, **options):
    timer.start()
    leave(self, *arguments, **options)

timer = threading.Timer(0.001, os.kill, (os.getpid(), signal.SIGINT))
loky.ProcessPoolExecutor.shutdown = interrupted
try:
    Processes(2).map(abs, [-1, -2, -3, -4])
    threading.Event().wait(60)  # should the shutdown have been faster than the interrupt
except KeyboardInterrupt:
    timer.join()
    print([thread.name for thread in threading.enumerate()])
"""


def test_an_interrupt_amid_the_end_of_the_workers() -> None:
    """Loky's threads were still at work when the program ended, and complained of leaked semaphores."""
    with started(LEAVING) as process:
        said, complaints = process.communicate(timeout=60)
    assert (said, complaints) == ("['MainThread']\n", "")


def test_workers_end_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    with started(HANDLING, tmp_path) as process:
        wait_for(lambda: len(list(tmp_path.glob("[!.]*.txt"))) == 3)
        process.kill()


def test_workers_are_whole_numbers() -> None:
    wrong: Any = 1.5
    with pytest.raises(TypeError, match=r"workers must be a whole number: got 1\.5"):
        Processes(wrong)
