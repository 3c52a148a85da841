"""How long the paper takes. Seconds and minutes, because that is what a person waits; a quarter of an hour in all."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figure import Figure

TOY = {"words": ("dmin", "--engine", "serial"), "whole": False}


def figures(words: tuple[str, ...] = (), whole: bool = True) -> Iterator[Figure]:
    """Of all experiments, unless some are named."""
    yield Figure("robustmdp reproduce --quick, report included", _seconds("--quick", *words), 60.0, unit="s")
    if whole:
        minutes = _seconds(*words) / 60.0
        yield Figure("robustmdp reproduce, 100 seeds, one value of stay", minutes, 30.0, unit="min")


def _seconds(*words: str) -> float:
    command = Path(sys.executable).with_name("robustmdp")
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        subprocess.run([str(command), "reproduce", *words, "--out", folder], check=True, capture_output=True)
        return time.perf_counter() - start
