"""One sweep on several cores: Python threads that call the compiled kernel, without the GIL, on disjoint ranges.

No row and no sum is split, so results are equal to the bit for any number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

import numpy as np

from robustmdp import _checks

VARIABLE = "ROBUSTMDP_THREADS"


def thread_count(threads: int | None) -> int:
    """The argument, or the environment variable ROBUSTMDP_THREADS, or all cores."""
    if threads is not None:
        return _checks.positive_integer("threads", threads)
    wish = os.environ.get(VARIABLE)
    if wish:
        _checks.must(wish.isdigit() and int(wish) >= 1, f"{VARIABLE} must be a whole number >= 1: got {wish!r}")
        return int(wish)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=8)
def _pool(workers: int, process: int) -> ThreadPoolExecutor:
    del process  # a forked child must not reuse its parent's pool
    return ThreadPoolExecutor(workers, thread_name_prefix="robustmdp")


def split(work: np.ndarray, parts: int) -> list[tuple[int, int]]:
    """Ranges of items of about equal work; `work` is cumulative, (n + 1,), starting at 0."""
    if parts == 1:
        return [(0, len(work) - 1)]
    edges = np.searchsorted(work, np.linspace(0, work[-1], parts + 1))
    edges[0], edges[-1] = 0, len(work) - 1
    return [(int(a), int(b)) for a, b in pairwise(edges) if a < b]


def run(task: Callable[[int, int], None], ranges: list[tuple[int, int]], workers: int) -> None:
    """Call task(lo, hi) for every range; whichever thread is free takes the next one, this one included."""
    if workers == 1 or len(ranges) == 1:
        for lo, hi in ranges:
            task(lo, hi)
        return
    queue = iter(ranges)

    def work() -> None:
        for lo, hi in queue:
            task(lo, hi)

    pool = _pool(workers - 1, os.getpid())
    futures = [pool.submit(work) for _ in range(1, workers)]
    try:
        work()
    finally:
        for future in futures:
            future.result()
