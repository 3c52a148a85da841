"""`make demo` on a fresh clone, everything installed and built anew, and beside the baseline commit. Minutes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import baseline
from benchmarks.baseline import COMMIT, ROOT, extract, run
from benchmarks.figure import Figure, run_time

TOY = {"target": "--dry-run"}


def figures(target: str = "demo") -> Iterator[Figure]:
    """One run each: a second one would find pip's downloads in its cache, as this one may."""
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = Path(folder) / "theirs", Path(folder) / "ours"
        _copy_tree(ours)
        after = run_time(lambda: _make(ours, target))
        yield Figure(f"make {target} on a fresh clone", after, unit="s")
        if not baseline.is_wanted:
            return
        try:
            extract(COMMIT, theirs)
        except (OSError, RuntimeError) as error:
            print(f"    Commit {COMMIT} is not available ({error}): no comparison.", flush=True)
            return
        yield Figure(
            f"make {target} on a fresh clone: ours / {COMMIT}", after / run_time(lambda: _make(theirs, target)), 1.0
        )


def _copy_tree(folder: Path) -> None:
    """The files that git knows or would add, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def _make(folder: Path, target: str) -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "PYTHONPATH"))}
    run(["make", "-C", folder, target, f"PYTHON={sys.executable}"], variables)
