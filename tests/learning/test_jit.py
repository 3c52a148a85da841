"""Compiled learners on disk are never older than their sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import robustmdp as rm
from robustmdp.learning import _jit

PACKAGE = Path(rm.__file__).parent
LEARNING = PACKAGE / "learning"
KERNELS = sorted(
    str(path.relative_to(LEARNING))
    for path in LEARNING.rglob("*.py")
    if "@kernel" in path.read_text() or "@inlined" in path.read_text()
)
IGNORED = shutil.ignore_patterns("__pycache__")


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(LEARNING, tmp_path_factory.mktemp("source") / "learning", ignore=IGNORED))


def test_there_are_kernels() -> None:
    assert {"_kernels.py", "_kl_ball.py", "sampling.py", "updates.py"} <= set(KERNELS)


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
    (copied / "sources" / "extra.py").write_text("nothing = 0\n")
    assert _jit.sources_hash(copied) == before
    (copied / "sources" / "extra.py").unlink()


def test_a_stale_kernel_is_not_served(tmp_path: Path) -> None:
    # The caller is in updates.py, the edited callee in _kernels.py: Numba alone would serve the old caller.
    package = Path(shutil.copytree(PACKAGE, tmp_path / "robustmdp", ignore=IGNORED))
    code = (
        "import robustmdp; from robustmdp.learning._kernels import JENSEN_SHANNON; "
        "from robustmdp.learning.updates import outcome; print(robustmdp.__file__); "
        "print(outcome(JENSEN_SHANNON, 0.0, 0.7, 1.0, 1.0, 3.0, 3.0)[0])"
    )
    settings = {**os.environ, "ROBUSTMDP_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}

    def value() -> float:
        done = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        file, number = done.stdout.split()
        assert Path(file).parent == package
        return float(number)

    def folders() -> set[Path]:
        return {path.parents[1] for path in (tmp_path / "cache").rglob("updates.outcome-*.nbi")}

    assert value() == 3.0  # eta - weight f*(0)
    assert value() == 3.0
    before = folders()
    assert len(before) == 1  # it was served from disk
    kernels = package / "learning" / "_kernels.py"
    text = kernels.read_text()
    assert text.count("return -math.log1p(-math.expm1(y))") == 1
    kernels.write_text(text.replace("return -math.log1p(-math.expm1(y))", "return 0.5 - math.log1p(-math.expm1(y))"))
    assert value() == 2.5
    assert folders() - before


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
