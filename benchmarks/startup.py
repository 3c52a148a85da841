"""How long until something happens. Seconds, because that is what a person waits."""

from __future__ import annotations

import compileall
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.baseline import ROOT, Environment, environments, run
from benchmarks.figure import Figure, run_time

TOY = {"repeats": 1, "builds": False}
_LIMIT = 5.0  # seconds: a process slower than this is not started again
_SOLVE_CHAIN = ("solve", "chain")


def figures(repeats: int = 5, builds: bool = True) -> Iterator[Figure]:
    if builds:
        yield from _build_time()
    found = environments()
    for environment in found:
        package = environment.run("-c", "import robustmdp; print(robustmdp.__path__[0])").strip()
        compileall.compile_dir(package, quiet=2)
    ours, *others = found
    first = {environment.name: _first_use(environment, repeats) for environment in found}
    yield Figure("first robustmdp solve chain of a fresh install", first[ours.name], 1.0, unit="s")
    for other in others:
        ratio = first[other.name] / first[ours.name]
        yield Figure(f"first robustmdp solve chain: {other.name} / ours", ratio)
    yield from _later_use(found, repeats)


def _build_time() -> Iterator[Figure]:
    """The core, configured and compiled in an empty folder, on all cores."""
    tools = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as folder:
        configure = [tools / "cmake", "-S", ROOT, "-B", folder, "-G", "Ninja"]
        settings = f"-DPython_EXECUTABLE={sys.executable}", f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}"
        run([*configure, *settings], dict(os.environ))
        seconds = run_time(lambda: run([tools / "ninja", "-C", folder], dict(os.environ)))
    yield Figure(f"building the core on {os.cpu_count()} cores", seconds, 90.0, unit="s")


def _first_use(environment: Environment, repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        best = min(best, run_time(lambda: run([environment.command, *_SOLVE_CHAIN], environment.variables)))
        if best > _LIMIT:
            break
    return best


def _later_use(found: list[Environment], repeats: int) -> Iterator[Figure]:
    """In turns, since what else runs on the machine comes and goes; the first turn is not counted."""
    best: dict[tuple[str, str], float] = {}
    for turn in range(repeats + 1):
        for environment in found:
            commands = {
                "bare": [environment.python, "-c", "pass"],
                "import": [environment.python, "-c", "import robustmdp"],
                "help": [environment.command, "--help"],
                "solve": [environment.command, *_SOLVE_CHAIN],
            }
            for name, command in commands.items():
                seconds = run_time(lambda: run(command, environment.variables))
                if turn:
                    best[name, environment.name] = min(best.get((name, environment.name), float("inf")), seconds)
    ours, *others = (environment.name for environment in found)
    imports = {name: best["import", name] - best["bare", name] for name in (ours, *others)}
    yield Figure("import robustmdp, beyond an empty Python", imports[ours], 0.1, unit="s")
    yield Figure("robustmdp --help", best["help", ours], 0.5, unit="s")
    yield Figure("robustmdp solve chain, second process", best["solve", ours], 2.0, unit="s")
    for name in others:
        yield Figure(f"import robustmdp: {name} / ours", imports[name] / imports[ours], 1.0, at_most=False)
        ratio = best["solve", name] / best["solve", ours]
        yield Figure(f"robustmdp solve chain, second process: {name} / ours", ratio)
