"""Grids: every cell in its place and colour, ink that can be read, words for those who cannot see them."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from app.page import samples
from app.page.test_palette import EYES, lab
from robustmdp.app.page import Cell, Grid
from robustmdp.app.page.cells import FLAT, NEUTRAL
from robustmdp.app.page.colours import contrast
from robustmdp.app.page.shades import SHADES, Scale, ink_on

ACTIONS = ("up", "down", "left", "right", "stay")


def squares(html: str) -> dict[tuple[int, int], str]:
    """The colour of each square, by row and column."""
    found = {}
    for fill, inside in re.findall(r'<g fill="(#\w{6})">(.*?)</g>', html):
        for x, y in re.findall(r"M(\d+) (\d+)h40v40h-40z", inside):
            found[int(y) // 40, int(x) // 40] = fill
    return found


def full(rows: int, columns: int, **options: Any) -> Grid:
    cells = tuple(
        Cell(i, j, arrow=ACTIONS[(i + j) % 5], value=float(i + j), **options)
        for i in range(rows)
        for j in range(columns)
    )
    return Grid("World", rows, columns, cells)


@pytest.mark.parametrize("eye", EYES)
def test_shades_darken_in_even_steps_for_every_eye(eye: str) -> None:
    steps = -np.diff([lab(shade, eye)[0] for shade in SHADES])
    assert steps.min() > 0.7
    assert steps.max() < 2 * steps.mean()


@pytest.mark.parametrize("colour", [*SHADES, FLAT, NEUTRAL])
def test_letters_can_be_read_on_every_colour(colour: str) -> None:
    against = {"#fff": contrast(colour), "#000": 21 / contrast(colour)}
    assert against[ink_on(colour)] >= 4.5


@pytest.mark.parametrize(("rows", "columns"), [(1, 6), (4, 4), (8, 8), (4, 12), (60, 60), (1, 1), (30, 1)])
def test_every_cell_is_drawn_once_in_the_colour_of_its_value(rows: int, columns: int) -> None:
    grid = full(rows, columns)
    html, scale = grid.html(), Scale(0.0, rows + columns - 2.0)
    assert squares(html) == {cell.place: scale.colour(cell.value or 0.0) for cell in grid.cells}
    assert f'viewBox="0 0 {40 * columns} {40 * rows}"' in html


@pytest.mark.parametrize(
    ("rows", "columns", "numbers"), [(8, 8, 64), (4, 12, 48), (60, 60, 0), (20, 20, 0), (1, 60, 0)]
)
def test_large_grids_have_no_numbers(rows: int, columns: int, numbers: int) -> None:
    assert full(rows, columns).html().count('class="digits"') == numbers


def test_a_large_grid_stays_small() -> None:
    assert len(full(60, 60).html()) < 400_000
    assert full(60, 60).html().count("<title>") == 0
    assert full(60, 60, detail="a").html().count("<title>a</title>") == 3600


def test_arrows_are_drawn_and_other_words_are_written() -> None:
    cells = tuple(Cell(0, j, arrow=word) for j, word in enumerate((*ACTIONS, "swim", "a long way round")))
    html = Grid("World", 1, 7, cells).html()
    (arrows,) = re.findall(r'<path class="arrows" stroke="#000" d="(.*?)"', html)
    assert arrows.count("M") == 5
    assert len(set(re.split(r"M\d+ 20", arrows))) == 6
    assert re.findall(r'class="word"[^>]*>(.*?)<', html) == ["swim", "a long w…"]


def test_ink_follows_the_colour_below() -> None:
    html = Grid("World", 1, 2, (Cell(0, 0, "S", "up", 0.0), Cell(0, 1, "T", "up", 1.0))).html()
    assert re.findall(r'<g fill="(#\w{3})"><text class="mark"[^>]*>(.)<', html) == [("#000", "S"), ("#fff", "T")]


def test_changed_cells_are_outlined_and_explained() -> None:
    html = samples.lake(0.05).html()
    (outlines,) = re.findall(r'<path class="changed" d="([^"]*)"/><', html.split('class="key"')[0])
    assert outlines.count("M") == sum(cell.changed for cell in samples.lake(0.05).cells) > 0
    assert "another action, certainly better" in html
    assert "action differs" not in full(2, 2).html()


def test_without_an_arrow_a_cell_is_hatched_and_without_a_value_it_is_neutral() -> None:
    grid = Grid("World", 1, 3, (Cell(0, 0, "H", value=9.0), Cell(0, 1, arrow="up"), Cell(0, 2, arrow="up", value=1.0)))
    html = grid.html()
    assert squares(html)[0, 0] == FLAT
    assert squares(html)[0, 1] == NEUTRAL
    assert 'class="name" x="20"' in html
    assert grid.scale == Scale(1.0, 1.0)
    assert "nothing to decide" in html
    assert "nothing to decide" not in full(2, 2).html()


def test_places_without_a_cell_stay_empty() -> None:
    assert set(squares(Grid("World", 3, 3, (Cell(1, 2, arrow="up", value=1.0),)).html())) == {(1, 2)}


def test_a_shared_scale_gives_equal_values_equal_colours() -> None:
    cells = (Cell(0, 0, arrow="up", value=0.5), Cell(0, 1, arrow="up", value=0.7))
    one = Grid("one", 1, 2, cells, low=0.0, high=1.0)
    other = Grid("other", 1, 1, cells[:1], low=0.0, high=1.0)
    assert squares(one.html())[0, 0] == squares(other.html())[0, 0] != squares(Grid("", 1, 2, cells).html())[0, 0]
    assert re.findall(r"value (\S+)<span.*?</span>([^<]+)<", one.html()) == [("0.00", "1.00")]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (None, None, (2.0, 3.0)),
        (0.0, None, (0.0, 3.0)),
        (None, 9.0, (2.0, 9.0)),
        (5.0, None, (5.0, 5.0)),
        (None, 1.0, (1.0, 1.0)),
    ],
)
def test_an_end_that_is_not_given_is_that_of_the_values(
    low: float | None, high: float | None, expected: tuple[float, float]
) -> None:
    cells = (Cell(0, 0, arrow="up", value=2.0), Cell(0, 1, arrow="up", value=3.0))
    scale = Grid("", 1, 2, cells, low=low, high=high).scale
    assert scale is not None
    assert (scale.low, scale.high) == expected


@pytest.mark.parametrize("span", [1e-9, 0.003, 0.4, 1.0, 7.0, 60.0, 900.0, 1e7])
def test_numbers_tell_neighbours_on_the_scale_apart(span: float) -> None:
    scale = Scale(0.0, span)
    shown = [scale.digits(span * k / 20) for k in range(21)]
    assert all(one != other for one, other in pairwise(shown))
    assert max(map(len, shown)) <= 8


def test_nothing_is_negative_zero() -> None:
    assert Scale(-1.0, 1.0).digits(-1e-9) == "0.00"


def test_hover_tells_the_cell_or_its_detail() -> None:
    cells = (Cell(0, 0, "S", "left", 0.25, True), Cell(0, 1, arrow="up", detail="two\nlines"))
    html = Grid("World", 1, 2, cells).html()
    assert re.findall("<title>(.*?)</title>", html, re.DOTALL) == [
        "row 1, column 1 (S): left, value 0.25, changed",
        "two\nlines",
    ]


def test_words_for_the_drawing_are_bounded() -> None:
    many = tuple(Cell(i, j, arrow=f"{i}-{j}" * 100, value=1.0, changed=True) for i in range(60) for j in range(60))
    words = Grid("A title " * 100, 60, 60, many).in_words()
    assert len(words) < 1000
    assert "and 3588 more" in words


def test_words_for_the_drawing_count_what_it_shows() -> None:
    grid = samples.lake(0.05)
    low, high = (f"{np.exp(-steps / 4.5 - 1):.4g}" for steps in (14, 1))
    assert f"solved robustly: 8 rows, 8 columns. Values from {low} to {high}. Actions:" in grid.in_words()
    for action in ("down", "right", "up", "left"):
        assert f"{action} ({sum(cell.arrow == action for cell in grid.cells)})" in grid.in_words()
    assert "Changed: row 2, column 3; row 2, column 4; " in grid.in_words()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"rows": 0}, "rows must be at least 1: got 0"),
        ({"columns": 0}, "columns must be at least 1: got 0"),
        ({"cells": (Cell(1, 0),)}, r"cells must lie in 1 rows and 2 columns, counted from 0: got \(1, 0\)"),
        ({"cells": (Cell(0, -1),)}, r"counted from 0: got \(0, -1\)"),
        ({"cells": (Cell(0, 1), Cell(0, 1))}, r"each cell must have a place of its own: two are at \(0, 1\)"),
        ({"low": 2.0, "high": 1.0}, "low must not exceed high: got 2.0 and 1.0"),
        ({"low": np.nan}, "low must be finite: got nan"),
    ],
)
def test_bad_grids_are_refused(change: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        Grid(**{"title": "World", "rows": 1, "columns": 2, "cells": (), **change})


def test_a_value_must_be_finite() -> None:
    with pytest.raises(ValueError, match=r"the value of cell \(2, 3\) must be finite: got inf"):
        Cell(2, 3, value=np.inf)
