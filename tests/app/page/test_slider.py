"""Sliders as text: one frame shown, figures collected, escaped, refused where wrong."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from app.page import samples
from app.page.test_page import Tags
from robustmdp.app.page import Frame, Paragraph, Section, Slider, write_page
from robustmdp.app.page.page import page_html

FRAMES = tuple(Frame(f"λ = {k}", (Paragraph(f"frame {k}"),), float(k) if k else None) for k in range(3))


@pytest.fixture(scope="module")
def text() -> str:
    sections = [Section("One", (samples.learning(), samples.weights_slider(5))), Section("Two", (samples.styles(),))]
    return page_html("Page", "", [*sections, Section("Three", (samples.weights_slider(3), samples.hostile_slider()))])


def test_one_frame_is_current_and_the_range_stands_there() -> None:
    tags = Tags(page_html("", "", [Section("", (Slider("s", "Title", "Weight", FRAMES, 1),))]))
    frames = [
        div for div in tags.of("div") if (div.get("class") or "").startswith("frame ") or div.get("class") == "frame"
    ]
    assert [(frame["class"], frame["data-label"], frame.get("data-x")) for frame in frames] == [
        ("frame", "λ = 0", None),
        ("frame current", "λ = 1", "1.0"),
        ("frame", "λ = 2", "2.0"),
    ]
    (dial,) = tags.of("input")
    assert [dial[name] for name in ("type", "min", "max", "value", "aria-valuetext")] == [
        "range",
        "0",
        "2",
        "1",
        "λ = 1",
    ]
    assert tags.of("label")[0]["for"] == tags.of("output")[0]["for"] == dial["id"]


def test_figures_of_sliders_have_numbers_and_colours_in_the_order_of_the_page(text: str) -> None:
    tags = Tags(text)
    names = [figure["data-figure"] for figure in tags.of("figure")]
    assert names == ["learning", "weights-curve", "styles", "weights-curve", "hostile"]
    stored = json.loads(tags.scripts[0])
    assert [len(panels) for panels in stored["figures"]] == [2, 2, 1, 2, 2]
    lines = stored["figures"][1][0]["traces"]
    assert len({trace["line"]["color"] for trace in lines}) == 2


def test_contents_link_to_sliders_by_title(text: str) -> None:
    nav = text.split("<nav")[1].split("</nav>")[0]
    assert '<a href="#slider-weights">How much do you trust the model?</a>' in nav
    assert '<a href="#slider-weights-2">' in nav
    assert "Value against weight" not in nav


def test_identifiers_are_unique_even_for_equal_names(text: str) -> None:
    ids = [attributes["id"] for _, attributes in Tags(text).found if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert len({"slider-weights", "slider-weights-2", "slider-weights.figure", "slider-weights.range"} & set(ids)) == 4


def test_hostile_text_stays_text(text: str) -> None:
    tags = Tags(text)
    assert len(tags.scripts) == 3
    assert "<script>alert" not in text
    labels = {div["data-label"] for div in tags.of("div") if "data-label" in div}
    assert samples.HOSTILE in labels
    assert not [name for _, attributes in tags.found for name in attributes if name.startswith("on")]


def test_equal_contents_give_equal_files(tmp_path: Any) -> None:
    pages = [write_page(tmp_path / name, "Page", "", samples.own_problem(4)) for name in ("one.html", "other.html")]
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_fifty_frames_of_an_eight_by_eight_world_stay_small(tmp_path: Any) -> None:
    assert write_page(tmp_path / "page.html", "Page", "", samples.own_problem(50)).stat().st_size < 7_000_000


def test_a_page_without_figures_needs_no_plotly() -> None:
    text = page_html("", "", [Section("", (Slider("s", "Title", "Weight", FRAMES, 0),))])
    assert len(text) < 60_000
    assert re.search(r'"figures":\[\]', text)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"frames": ()}, "a slider must have frames: 's' has none"),
        ({"start": 3}, "start must be the number of one of the 3 frames, counted from 0: got 3"),
        ({"start": -1}, "start must be the number of one of the 3 frames, counted from 0: got -1"),
    ],
)
def test_bad_sliders_are_refused(change: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        replace(Slider("s", "Title", "Weight", FRAMES, 1), **change)


@pytest.mark.parametrize("part", [samples.learning(), samples.weights_slider(2)], ids=["figure", "slider"])
def test_frames_hold_no_figures(part: Any) -> None:
    kind = type(part).__name__
    with pytest.raises(ValueError, match=f"a frame must hold blocks such as tables and grids: got a {kind}"):
        Frame("λ", (part,))


def test_the_place_of_a_frame_must_be_finite() -> None:
    with pytest.raises(ValueError, match=r"x of frame 'λ' must be finite: got inf"):
        Frame("λ", (), float("inf"))
