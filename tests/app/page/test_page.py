"""The page as a file: self-contained, escaped, small, the same for the same contents, written whole or not at all."""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.page import samples
from robustmdp.app.page import Curve, DataTable, Figure, Key, Panel, Paragraph, Section, write_page
from robustmdp.app.page.page import page_html


class Tags(HTMLParser):
    """Elements with their attributes, the depth of what is open, and the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data

    def of(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.found if tag == name]


@pytest.fixture(scope="module")
def text() -> str:
    return page_html(samples.HOSTILE, samples.HOSTILE, samples.sections())


def numbers(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Tags(text).scripts[0])
    return found


def test_user_text_stays_text(text: str) -> None:
    tags = Tags(text)
    assert len(tags.of("script")) == 3
    assert "<script>alert" not in text
    assert "alert('x')" not in "".join(tags.scripts[1:])
    assert "<" not in text.split('id="numbers">')[1].split("</script>")[0]


def test_nothing_is_loaded_from_elsewhere(text: str) -> None:
    tags = Tags(text)
    sources = [value for _, attributes in tags.found for name, value in attributes.items() if name in ("src", "href")]
    assert all(source is not None and source.startswith(("#", "data:")) for source in sources)
    (policy,) = [meta["content"] for meta in tags.of("meta") if "http-equiv" in meta]
    assert policy is not None
    assert "default-src 'none'" in policy


def test_anchors_are_unique_and_lead_somewhere(text: str) -> None:
    tags = Tags(text)
    ids = [attributes["id"] for _, attributes in tags.found if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert {link["href"] for link in tags.of("a")} <= {f"#{name}" for name in ids}
    assert "figures-2" in ids


def test_structure_is_accessible(text: str) -> None:
    tags = Tags(text)
    assert tags.of("html") == [{"lang": "en"}]
    assert [len(tags.of(name)) for name in ("h1", "main", "nav", "caption", "figure")] == [1, 1, 1, 1, 4]
    assert {header.get("scope") for header in tags.of("th")} == {"col", "row"}
    assert all("aria-pressed" in button for button in tags.of("button"))
    assert all(plot.get("aria-label") for plot in tags.of("div") if plot.get("class") == "plot")


def test_verdicts_are_told_by_symbol_and_word(text: str) -> None:
    words = re.sub("<[^>]+>", "", " ".join(re.findall(r'<span class="badge.*?</td>', text)))
    assert words.split() == ["✓", "holds", "✗", "does", "not", "hold", "≈", "within", "noise"]


def test_a_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"each row of a table must have 2 cells: row 1 has 1"):
        DataTable(("a", "b"), (("1", "2"), ("3",)), "table")


def test_numbers_arrive_in_single_precision(text: str) -> None:
    stored = numbers(text)
    trace = stored["figures"][1][0]["traces"][0]
    arrays = [np.frombuffer(base64.b64decode(each), "<f4") for each in stored["arrays"]]
    panel = samples.learning().panels[0]
    assert isinstance(panel, Panel)
    for name in ("x", "y", "low", "high"):
        np.testing.assert_allclose(arrays[trace[name]], getattr(panel.curves[0], name), rtol=1e-6, atol=1e-6)


def test_shared_arrays_are_stored_once(text: str) -> None:
    stored = numbers(text)
    assert len({trace["x"] for trace in stored["figures"][1][0]["traces"][:7]}) == 1
    assert len(set(stored["arrays"])) == len(stored["arrays"])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_what_is_not_finite_becomes_a_gap(value: float) -> None:
    curve = Curve(Key("λ", 1.0), np.array([1.0, 2.0]), np.array([value, 2.0]))
    figure = Figure("gap", "", "", "", (Panel("", "x", "y", (curve,), inset=(1.0, 2.0)),))
    stored = numbers(page_html("", "", [Section("", (figure,))]))
    assert any(np.isnan(np.frombuffer(base64.b64decode(each), "<f4")).any() for each in stored["arrays"])


def test_a_page_with_millions_of_points_stays_small(tmp_path: Path) -> None:
    figures = tuple(samples.learning(points=20_001) for _ in range(20))
    path = write_page(tmp_path / "page.html", "Large", "", [Section("Figures", figures)])
    assert path.stat().st_size < 6_000_000


def test_equal_contents_give_equal_files(tmp_path: Path) -> None:
    pages = [write_page(tmp_path / name, "A page", "", samples.sections()) for name in ("one.html", "other.html")]
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "page.html"
    write_page(path, "first", "", [])

    def broken(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        write_page(path, "second", "", [])
    assert "first" in path.read_text(encoding="utf-8")
    assert list(path.parent.iterdir()) == [path]


def test_without_plotly_pages_without_figures_still_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    assert "only words" in page_html("", "", [Section("Text", (Paragraph("only words"),))])
    with pytest.raises(ImportError, match=r"^plotly must be installed for pages: pip install 'robustmdp\[report\]'$"):
        page_html("", "", [Section("Figures", (samples.chain(),))])
