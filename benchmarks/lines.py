"""Source lines of the whole, and the longest header and function: what there is to read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.baseline import ROOT
from benchmarks.figure import Figure

TOY: dict[str, object] = {}
_SOURCES = (".py", ".hpp", ".cpp", ".css", ".js", ".j2")
_MOST, _GOAL = 27_000, 24_000
_LONGEST_HEADER, _LONGEST_FUNCTION = 400, 60


def figures(folder: Path = ROOT) -> Iterator[Figure]:
    files = [path for part in ("src", "core") for path in (folder / part).rglob("*") if path.suffix in _SOURCES]
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    yield Figure("lines of code in src and core", sum(map(_lines_of_code, files)), _MOST, unit="lines", goal=_GOAL)
    longest = max((path for path in files if path.suffix == ".hpp"), key=lengths.__getitem__)
    yield Figure(f"longest header, {longest.name}", lengths[longest], _LONGEST_HEADER, unit="lines")
    count, name = max(each for path in files if path.suffix == ".py" for each in _functions(path))
    yield Figure(f"longest function of Python, {name}", count, _LONGEST_FUNCTION, unit="lines")


def _lines_of_code(path: Path) -> int:
    """Without blank lines, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        return sum(not line.strip().startswith("//") for line in text.splitlines() if line.strip())
    strings = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr) and _is_text(node.value))
    documentation = {number for node in strings for number in range(node.lineno, node.end_lineno + 1)}
    lines = enumerate(text.splitlines(), 1)
    return sum(number not in documentation and line.strip()[:1] not in ("", "#") for number, line in lines)


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _functions(path: Path) -> Iterator[tuple[int, str]]:
    """Their lengths, without decorators and docstrings."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            yield node.end_lineno - first.lineno + 1, f"{path.stem}.{node.name}"  # type: ignore[operator]
