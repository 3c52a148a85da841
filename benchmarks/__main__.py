"""`python -m benchmarks [part ...]`: every figure as a ratio within this run, and which bars are missed."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from benchmarks import baseline

PARTS = (
    "calls",
    "sweeps",
    "sets",
    "reach",
    "average",
    "shapes",
    "solvers",
    "work",
    "curve",
    "memory",
    "files",
    "log_to_page",
    "cluster",
    "startup",
    "demo",
    "lines",
    "learning_speed",
    "learning_memory",
    "gymnasium_overhead",
    "learners",
    "coverage",
    "reproduction",
)


def main(parts: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    options.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; all if none is named")
    options.add_argument(
        "--toy", action="store_true", help="as small as possible and without the baseline: does it run?"
    )
    chosen = options.parse_args(parts)
    baseline.is_wanted = not chosen.toy
    missed = []
    for part in chosen.parts or PARTS:
        module = import_module(f"benchmarks.{part}")
        print(f"\n{part}: {(module.__doc__ or '').strip()}", flush=True)
        for measured in module.figures(**(module.TOY if chosen.toy else {})):
            figure = measured._replace(bar=None, goal=None) if chosen.toy else measured  # bars are for full size
            print(figure, flush=True)
            if not figure.holds:
                missed.append(figure)
    if not chosen.toy:
        print(f"\n{len(missed)} bars missed." if missed else "\nEvery bar holds.")
    for figure in missed:
        print(figure)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
