"""Runs the notebooks as Jupyter would, without Jupyter: `python tests/docs/notebooks.py` stores their outputs anew."""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def execute(notebook: dict[str, Any]) -> dict[str, Any]:
    """The same notebook with the outputs of its cells; they share their names and run in the notebooks' folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    os.chdir(FOLDER)
    try:
        return {**notebook, "cells": [_run(cell, names, number) for number, cell in enumerate(notebook["cells"])]}
    finally:
        os.chdir(before)


def _run(cell: dict[str, Any], names: dict[str, Any], number: int) -> dict[str, Any]:
    if cell["cell_type"] != "code":
        return cell
    body = ast.parse("".join(cell["source"])).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, shown = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), f"cell {number}", "exec"), names)
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if shown is not None:
        outputs.append(
            {"data": _shown(shown), "execution_count": number, "metadata": {}, "output_type": "execute_result"}
        )
    return {**cell, "execution_count": number, "outputs": outputs}


def _shown(thing: Any) -> dict[str, Any]:
    """What a notebook keeps of a value."""
    data: dict[str, Any] = {"text/plain": _lines(repr(thing))}
    if html := getattr(thing, "_repr_html_", lambda: None)():
        data["text/html"] = _lines(html)
    if hasattr(thing, "_repr_png_"):
        data["image/png"] = base64.b64encode(thing._repr_png_()).decode()
    return data


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def text_of(cell: dict[str, Any]) -> str:
    """What a cell prints and shows as text."""
    outputs = cell.get("outputs", [])
    return "".join("".join(out.get("text", out.get("data", {}).get("text/plain", []))) for out in outputs)


def main() -> None:
    """Store the outputs of all notebooks anew."""
    for path in NOTEBOOKS:
        path.write_text(json.dumps(execute(read(path)), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(path.name, f"{path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    sys.exit(main())
