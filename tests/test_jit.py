"""Kernels on disk are never older than their sources, and a user's own divergence is compiled into them."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import robustmdp as rm
from robustmdp import _jit

PACKAGE = Path(rm.__file__).parent
KERNELS = sorted(
    str(path.relative_to(PACKAGE))
    for path in PACKAGE.rglob("*.py")
    if "@kernel" in path.read_text() or "@inlined" in path.read_text()
)
IGNORED = shutil.ignore_patterns("__pycache__")


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(PACKAGE, tmp_path_factory.mktemp("source") / "robustmdp", ignore=IGNORED))


def test_there_are_kernels() -> None:
    assert "ambiguity/_total_variation.py" in KERNELS
    assert "operators/kernels.py" in KERNELS


@pytest.mark.parametrize("edited", [*KERNELS, "_jit.py"])
def test_an_edited_kernel_has_another_folder(copied: Path, edited: str) -> None:
    before = _jit.sources_hash(copied)
    text = (copied / edited).read_text()
    (copied / edited).write_text(text + "\n# changed\n")
    changed = _jit.sources_hash(copied)
    (copied / edited).write_text(text)
    assert changed != before
    assert _jit.sources_hash(copied) == before == _jit.sources_hash()


def test_other_files_do_not_matter(copied: Path) -> None:
    before = _jit.sources_hash(copied)
    (copied / "cli" / "extra.py").write_text("nothing = 0\n")
    assert _jit.sources_hash(copied) == before
    (copied / "cli" / "extra.py").unlink()


def test_a_stale_kernel_is_not_served(tmp_path: Path) -> None:
    # The caller is in _total_variation.py, the edited callee in _moments.py: Numba alone would serve the old caller.
    package = Path(shutil.copytree(PACKAGE, tmp_path / "robustmdp", ignore=IGNORED))
    code = (
        "import numpy as np; from robustmdp.ambiguity._total_variation import penalized; import robustmdp; "
        "print(robustmdp.__file__); "
        "print(penalized(np.array([0.5, 0.5]), 0, np.array([0.0, 2.0]), 0, 2, 1.0))"
    )
    settings = {**os.environ, "ROBUSTMDP_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}

    def value() -> float:
        done = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        file, number = done.stdout.split()
        assert Path(file).parent == package
        return float(number)

    assert value() == 0.5  # E min(x, 0 + 1)
    assert value() == 0.5
    assert len(list((tmp_path / "cache").glob("kernels-*"))) == 1
    assert list((tmp_path / "cache").rglob("*.nbi"))  # it was served from disk
    moments = package / "ambiguity" / "_moments.py"
    text = moments.read_text()
    start = text.index("def lowest_outcome")
    head, tail = text[:start], text[start:]
    assert "\n    return " in tail
    moments.write_text(head + tail.replace("\n    return ", "\n    return 0.5 + ", 1))
    assert value() == 0.75  # E min(x, 0.5 + 1)
    assert len(list((tmp_path / "cache").glob("kernels-*"))) == 2


def test_old_folders_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(6):
        (tmp_path / f"kernels-{i}").mkdir()
        os.utime(tmp_path / f"kernels-{i}", (i, i))
    (tmp_path / "precious").mkdir()
    monkeypatch.setenv("ROBUSTMDP_CACHE_DIR", str(tmp_path))
    folder = _jit.cache_folder()
    assert folder == tmp_path / f"kernels-{_jit.sources_hash()}"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["kernels-4", "kernels-5", folder.name, "precious"]
    )


def test_an_unusable_folder_is_avoided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("ROBUSTMDP_CACHE_DIR", str(tmp_path / "file"))
    folder = _jit.cache_folder()
    assert os.access(folder, os.W_OK)
    assert tmp_path not in folder.parents


def my_conjugate(s: float) -> float:
    return math.exp(s - 1.0)


@pytest.mark.parametrize(("own_form", "built_in"), [
    (rm.Penalized(rm.Divergence("my KL", my_conjugate, my_conjugate), 0.7), rm.Penalized(rm.KL(), 0.7)),
    (rm.Constrained(rm.Divergence("my KL", my_conjugate, my_conjugate), 0.1), rm.Constrained(rm.KL(), 0.1)),
], ids=["penalized", "constrained"])  # fmt: skip
def test_an_own_divergence_solves_like_the_built_in_one(own_form: rm.Penalized, built_in: rm.Penalized) -> None:
    mdp = rm.problems.chain(restart=0.5)
    own, known = rm.solve(mdp, own_form), rm.solve(mdp, built_in)
    assert own.converged
    assert np.abs(own.value - known.value).max() <= own.error_bound + known.error_bound
    assert np.array_equal(own.policy, known.policy)
    assert (
        np.abs(own.penalty - known.penalty).max() <= 1e-5
    )  # nature's answer is known to the root of the value's error
