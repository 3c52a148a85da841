"""Thousands of damaged files of every format: a clear sentence or a valid model, never anything else. `make verify`."""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import robustmdp as rm
from oracles.damaged_files import Case, cases, damaged, flaw_of

SECONDS = 10
BYTES = 1 << 30
CHUNK = 100


class Verdict(NamedTuple):
    """How a damaged file was taken; empty `wrong` means well."""

    outcome: str
    wrong: str
    seconds: float


def judge(index: int, seed: int = 0) -> Verdict:
    """One damaged file."""
    case, done = damaged(index, seed)
    with tempfile.TemporaryDirectory() as name:
        for file, data in case.files.items():
            (Path(name) / file).write_bytes(data)
        start = time.monotonic()
        outcome, wrong = _taken(case, Path(name) / next(iter(case.files)))
        seconds = time.monotonic() - start
    return Verdict(f"{case.kind}: {outcome}", f"{index} ({done}): {wrong}" if wrong else "", seconds)


def _taken(case: Case, path: Path) -> tuple[str, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", ".*reached but never left", UserWarning)
            thing = case.load(path)
    except (ValueError, TypeError, OSError) as error:
        sentence = str(error)
        unclear = not sentence or "\n" in sentence or len(sentence) > 1000 or type(error) is UnicodeDecodeError
        return "refused", f"unclear: {type(error).__name__} {sentence[:300]!r}" if unclear else ""
    except BaseException as error:
        return "raised", f"{type(error).__name__}: {str(error)[:300]}"
    for mdp in thing if isinstance(thing, (list, tuple)) else [thing]:
        if isinstance(mdp, rm.MDP) and (flaw := flaw_of(mdp)):
            return "read", flaw
    if case.kind == "intervals":
        mdp, intervals = thing
        if not (intervals.lower <= intervals.upper).all() or len(intervals.lower) != mdp.nnz:
            return "read", f"bounds {intervals.lower} {intervals.upper}"
    return "read", ""


def limit_memory() -> None:
    """Another gigabyte of addresses, and not a byte more; and a signal for what does not end."""
    for index in range(len(cases())):
        judge(index)  # loads and compiles everything
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + BYTES,) * 2)
    signal.signal(signal.SIGALRM, _too_long)


def _too_long(*_: Any) -> None:
    raise RuntimeError(f"not done in {SECONDS} s")


def judge_chunk(first: int, count: int, seed: int) -> tuple[list[Verdict], int]:
    """Some damaged files, and the most memory that this process ever had."""
    verdicts = []
    for index in range(first, first + count):
        signal.alarm(SECONDS)
        verdicts.append(judge(index, seed))
        signal.alarm(0)
    return verdicts, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(arguments: list[str] | None = None) -> int:
    """Judge all, print the table, return the number of failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    verdicts: list[Verdict] = []
    failures: list[str] = []
    most = 0
    with ProcessPoolExecutor(options.processes, get_context("spawn"), limit_memory) as pool:
        starts = range(0, options.files, CHUNK)
        sizes = [min(CHUNK, options.files - start) for start in starts]
        chunks = [
            pool.submit(judge_chunk, start, size, options.seed) for start, size in zip(starts, sizes, strict=True)
        ]
        for start, chunk in zip(starts, chunks, strict=True):
            try:
                judged, peak = chunk.result()
                verdicts += judged
                most = max(most, peak)
            except BrokenProcessPool:
                failures.append(f"a process died at file {start} or soon after")
                break
    failures += [verdict.wrong for verdict in verdicts if verdict.wrong]
    for outcome, count in sorted(Counter(verdict.outcome for verdict in verdicts).items()):
        print(f"{outcome:<30}{count:>8}")
    for failure in failures:
        print(failure)
    slowest = max((verdict.seconds for verdict in verdicts), default=0.0)
    print(f"\nthe slowest took {slowest:.2f} s of {SECONDS}, and no process more than {most / 2**20:.0f} MB in all")
    print(f"{len(failures)} of {len(verdicts)} damaged files were taken wrongly")
    return len(failures)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
