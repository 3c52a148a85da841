"""`python -m benchmarks [part ...]`: every figure as a ratio within this run, and which bars are missed."""

from __future__ import annotations

import sys
from importlib import import_module

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
    missed = []
    for part in parts or PARTS:
        module = import_module(f"benchmarks.{part}")
        print(f"\n{part}: {(module.__doc__ or '').strip()}", flush=True)
        for figure in module.figures():
            print(figure, flush=True)
            if not figure.holds:
                missed.append(figure)
    print(f"\n{len(missed)} bars missed." if missed else "\nEvery bar holds.")
    for figure in missed:
        print(figure)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
