"""The page as a file: self-contained, escaped, small, the same for the same contents, complete or not there."""

from __future__ import annotations

import json
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from app.page import samples
from robustmdp.app.page import page, page_html, render, write_page


class Tags(HTMLParser):
    """Elements with their attributes, and the text of scripts."""

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
    return samples.html()


def test_user_text_stays_text(text: str) -> None:
    tags = Tags(text)
    assert len(tags.of("script")) == 3
    assert "<script>alert" not in text
    assert "<" not in text.split('id="figures">')[1].split("</script>")[0]
    drawn = json.loads(tags.scripts[0])
    assert drawn["values"]["data"][2]["name"] == samples.HOSTILE


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
    links = [link["href"] for link in tags.of("a")]
    assert len(links) == 4
    assert set(links) <= {f"#{name}" for name in ids}


def test_structure_is_accessible(text: str) -> None:
    tags = Tags(text)
    assert tags.of("html") == [{"lang": "en"}]
    assert [len(tags.of(name)) for name in ("h1", "main", "nav", "figure")] == [1, 1, 1, 2]
    assert len(tags.of("caption")) == len(tags.of("table"))
    assert {header.get("scope") for header in tags.of("th")} == {"col", "row"}
    assert all(place.get("aria-label") for place in tags.of("div") if place.get("class") in ("plot", "cells"))
    (outputs, dials) = (tags.of(name) for name in ("output", "label"))
    assert [output["for"] for output in outputs] == [dial["for"] for dial in dials] == ["range-weight"]


def test_verdicts_are_told_by_symbol_and_word(text: str) -> None:
    words = re.sub("<[^>]+>", "", " ".join(re.findall(r'<span class="badge.*?</td>', text)))
    assert words.split() == ["✓", "holds", "✗", "does", "not", "hold"]


def test_marked_rows_are_told_by_a_sign_that_is_explained(text: str) -> None:
    (row,) = re.findall(r'<tr class="marked">.*?</tr>', text, re.DOTALL)
    assert 'aria-label="best">◆' in row
    assert "does not hold" in row
    assert '<span class="meaning">◆ best</span>' in text


def test_numbers_stand_below_their_headers_at_the_right(text: str) -> None:
    assert '<th scope="col" class="number">number</th>' in text
    assert '<td class="number">0.1235</td>' in text


def test_bars_are_as_wide_as_probabilities(text: str) -> None:
    shares = re.findall(r'class="(nominal|worst)" style="--share: ([\d.]+)"></span>([\d.]+)', text)
    assert shares[:2] == [("nominal", "0.75", "0.750"), ("worst", "0.5", "0.500")]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_becomes_a_gap(value: float) -> None:
    found = page_html("", "", "", {"gap": go.Figure(go.Scatter(x=[1.0, 2.0], y=[value, 2.0]))})
    drawn = json.loads(Tags(found).scripts[0])
    assert drawn["gap"]["data"][0]["y"] == [None, 2.0]


def test_a_page_is_small_enough_to_be_sent(text: str) -> None:
    assert len(text.encode()) < 2_600_000


def test_equal_contents_give_equal_files(tmp_path: Path) -> None:
    one = samples.written(tmp_path / "one.html").read_bytes()
    page._packed_plotly.cache_clear()
    assert samples.written(tmp_path / "other.html").read_bytes() == one


def test_a_page_is_written_completely_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "page.html"
    write_page(path, "first", "", "")

    def broken(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        write_page(path, "second", "", "")
    assert "first" in path.read_text(encoding="utf-8")
    assert list(path.parent.iterdir()) == [path]


def test_without_plotly_pages_without_figures_still_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    page._packed_plotly.cache_clear()
    assert "only words" in page_html("only words", "", "", {})
    with pytest.raises(ImportError, match=r"^plotly must be installed for pages: pip install 'robustmdp\[report\]'$"):
        page_html("", "", "", samples.figures())


def test_without_jinja_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    page._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"^jinja2 must be installed for pages: pip install 'robustmdp\[report\]'$"):
        render("page.html.j2")


def test_a_template_that_lacks_a_value_fails() -> None:
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError, match="'title' is undefined"):
        render("page.html.j2")
