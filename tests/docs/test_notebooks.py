"""The notebooks run, and what they show is what they would show today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from . import notebooks
from .test_docs import assert_same

pytest.importorskip("gymnasium")
pytest.importorskip("pandas")

each_notebook = pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)


def test_there_are_two() -> None:
    assert [path.stem for path in notebooks.NOTEBOOKS] == ["from_a_log_to_a_decision", "learn_with_a_certificate"]


@each_notebook
def test_outputs_are_those_of_today(path: Path) -> None:
    stored = notebooks.read(path)
    fresh = notebooks.execute(stored)
    for before, now in zip(stored["cells"], fresh["cells"], strict=True):
        if before["cell_type"] == "code":
            assert_same(notebooks.text_of(before), notebooks.text_of(now))
            assert [set(out.get("data", ())) for out in before["outputs"]] == [
                set(out.get("data", ())) for out in now["outputs"]
            ]


@each_notebook
def test_outputs_are_small_and_say_nothing_of_the_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) < 400_000
    without_pictures = re.sub(r'"image/png": "[^"]*"', "", text)
    assert not re.search(r"(/home|/root|/work|/tmp|/Users|[A-Z]:\\\\)", without_pictures)
    assert "Traceback" not in without_pictures
    assert notebooks.read(path)["nbformat"] == 4
