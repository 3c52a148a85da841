"""Bar 8: how long until something happens. Seconds, because that is what a person waits."""

from __future__ import annotations

import compileall
import subprocess
import sys
import time
from pathlib import Path

import robustmdp
from benchmarks.figure import Figure


def figures() -> list[Figure]:
    compileall.compile_dir(Path(robustmdp.__file__).parent, quiet=2)
    command = Path(sys.executable).with_name("robustmdp")
    bare = _seconds([sys.executable, "-c", "pass"])
    return [
        Figure(
            "import robustmdp, beyond an empty Python",
            _seconds([sys.executable, "-c", "import robustmdp"]) - bare,
            0.3,
            unit="s",
        ),
        Figure("robustmdp --help", _seconds([str(command), "--help"]), 0.5, unit="s"),
        Figure(
            "robustmdp solve chain, second process",
            _seconds([str(command), "solve", "chain", "--weight", "1"]),
            2.0,
            unit="s",
        ),
    ]


def _seconds(command: list[str]) -> float:
    best = float("inf")
    for attempt in range(6):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        if attempt:
            best = min(best, time.perf_counter() - start)
    return best
