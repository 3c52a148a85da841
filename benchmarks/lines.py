"""Lines of the C++ core, against those of the Python files that held planning's kernels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.baseline import ROOT
from benchmarks.figure import Figure

_PYTHON_LINES = 1_946
_LONGEST_HEADER = 400


def figures(folder: Path = ROOT / "core") -> Iterator[Figure]:
    lengths = {
        path: len(path.read_text().splitlines()) for path in folder.rglob("*") if path.suffix in (".hpp", ".cpp")
    }
    if not lengths:
        print(f"    No C++ files in {folder}.")
        return
    yield Figure("lines of core/: C++ / Python before", sum(lengths.values()) / _PYTHON_LINES, 1.0)
    headers = {path: length for path, length in lengths.items() if path.suffix == ".hpp"}
    if headers:
        longest = max(headers, key=headers.__getitem__)
        yield Figure(f"longest header, {longest.name}", headers[longest], _LONGEST_HEADER, unit="lines")
