"""Every part of the benchmarks runs, at toy size and without the baseline; bars are for full size."""

from __future__ import annotations

import ast
import math
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.chdir(ROOT)


def parts() -> tuple[str, ...]:
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.__main__ import PARTS
    finally:
        sys.path.remove(str(ROOT))
    return PARTS


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks of memory are read from /proc")
@pytest.mark.parametrize("part", parts())
def test_a_part_runs_at_toy_size(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import baseline
    from benchmarks.__main__ import main

    try:
        assert main([part, "--toy"]) == 0
    finally:
        baseline.is_wanted = True
    measured = re.findall(r"^  \S.*? +(-?\d[\d.e+-]*|nan|inf) *[a-zA-Z]{0,5} *$", capsys.readouterr().out, re.MULTILINE)
    assert measured
    assert all(math.isfinite(float(number)) for number in measured)


def test_every_part_is_listed() -> None:
    tools = {"__init__", "__main__", "baseline", "cluster_cost", "figure", "peak", "spread", "tasks", "workers"}
    assert {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - tools == set(parts())


@pytest.mark.parametrize(
    "row", re.findall(r"^\| `(\w+)` \|.*\| (at .+) \|$", (ROOT / "docs" / "comparison.md").read_text(), re.M)
)
def test_bars_on_the_site_are_those_of_the_benchmarks(row: tuple[str, str]) -> None:
    part, bars = row
    source = ast.parse((ROOT / "benchmarks" / f"{part}.py").read_text())
    numbers = {float(node.value) for node in ast.walk(source) if isinstance(node, ast.Constant) and _is_number(node)}
    assert {float(bar.replace(",", "")) for bar in re.findall(r"\d[\d.,]*\d|\d", bars)} <= numbers


def _is_number(node: ast.Constant) -> bool:
    return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
