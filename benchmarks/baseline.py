"""The commit that this tree is compared with, in an environment of its own under build/baseline."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

COMMIT = "c459e4f"  # the last version whose planning kernels were compiled by Numba on the user's machine
ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "baseline"
is_wanted = True  # `--toy` looks at this tree alone


class Environment(NamedTuple):
    """An interpreter with one of the two versions installed, and the variables its processes start with."""

    name: str
    python: Path
    variables: dict[str, str]

    @property
    def command(self) -> Path:
        """The installed `robustmdp` script."""
        return self.python.with_name("robustmdp")

    def run(self, *arguments: object, **variables: str) -> str:
        """What this interpreter prints when started with these arguments."""
        return run([self.python, *arguments], {**self.variables, **variables})


def run(command: list[object], variables: dict[str, str]) -> str:
    """The standard output of a command; its standard error is shown if it fails."""
    done = subprocess.run([str(word) for word in command], env=variables, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stderr or done.stdout}")
    return done.stdout


def ours() -> Environment:
    """The interpreter that runs the benchmarks, with this tree installed."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return Environment("ours", Path(sys.executable), {**os.environ, "PYTHONPATH": path})


@cache
def baseline() -> Environment | None:
    """The environment of `COMMIT`, built at the first call; None, after a sentence that says why, if that fails."""
    python = FOLDER / "venv" / "bin" / "python"
    # Only this tree's benchmarks are on the path: `robustmdp` must come from the baseline's own site-packages.
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = Environment(COMMIT, python, variables)
    try:
        if not (FOLDER / "ready").exists():
            _build(python)
        package = Path(found.run("-c", "import robustmdp; print(robustmdp.__file__)").strip())
        if not package.is_relative_to(FOLDER):
            raise RuntimeError(f"its interpreter imports {package}")
    except (OSError, RuntimeError) as error:
        print(f"    Commit {COMMIT} is not available ({str(error).strip()}): our figures stand alone.", flush=True)
        return None
    return found


def environments() -> list[Environment]:
    """Ours, then the baseline where it is wanted and available."""
    return [ours(), *filter(None, [baseline() if is_wanted else None])]


def _build(python: Path) -> None:
    print(f"    Building the environment of commit {COMMIT} in {FOLDER.relative_to(ROOT)}, once.", flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    source = FOLDER / "source"
    extract(COMMIT, source)
    run([sys.executable, "-m", "venv", FOLDER / "venv"], dict(os.environ))
    constraints = source / "constraints.txt"
    run([python, "-m", "pip", "install", "--quiet", source, "--constraint", constraints], dict(os.environ))
    (FOLDER / "ready").touch()


def extract(commit: str, folder: Path) -> None:
    """The files of a commit."""
    done = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True)
    if done.returncode:
        raise RuntimeError(done.stderr.decode().strip())
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
