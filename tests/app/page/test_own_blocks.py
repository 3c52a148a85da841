"""Code, distributions, marked rows, and how blocks flow: complete, escaped, in order, refused where wrong."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

from app.page import samples
from robustmdp.app.page import Code, DataTable, Distribution, Paragraph
from robustmdp.app.page.distribution import Outcome
from robustmdp.app.page.flow import flow_html

TAG = re.compile(r"<[^>]+>")


def bars(drawn: str) -> list[tuple[str, float, str]]:
    """Kind, width and number of each bar."""
    found = re.findall(r'<span class="(nominal|worst)" style="--share: ([^"]+)"></span>([^<]*)<', drawn)
    return [(kind, float(share), html.unescape(number)) for kind, share, number in found]


@pytest.mark.parametrize("text", [samples.PROGRAM, samples.HOSTILE, "\n\n  indented\n\ttab\n"])
def test_code_is_kept_letter_for_letter(text: str) -> None:
    (inside,) = re.findall("<code>(.*)</code>", Code(text).html(), re.DOTALL)
    assert html.unescape(inside) == text
    assert "<" not in inside


def test_code_names_its_language() -> None:
    assert ">shell<" in Code("ls", "shell").html()
    with pytest.raises(ValueError, match=r"^the text of a code block must not be empty$"):
        Code(" \n")


def test_bars_are_as_long_as_probabilities() -> None:
    drawn = Distribution("pair", (("a", 0.4, 0.1, 1.0), ("b", 0.1, 0.4, -2.5))).html()
    assert bars(drawn) == [
        ("nominal", 0.8, "0.400"),
        ("worst", 0.2, "0.100"),
        ("nominal", 0.2, "0.100"),
        ("worst", 0.8, "0.400"),
    ]
    assert re.findall(r'<td class="number">(.*?)<', drawn) == ["1", "-2.5"]


@pytest.mark.parametrize(
    ("largest", "full"), [(0.05, 0.1), (0.1, 0.1), (0.11, 0.2), (0.5, 0.5), (0.51, 1.0), (1.0, 1.0)]
)
def test_the_full_width_is_one_of_few_probabilities(largest: float, full: float) -> None:
    assert bars(Distribution("", (("a", largest, 0.0, 0.0),)).html())[0][1] == pytest.approx(largest / full, rel=1e-3)


def test_the_full_width_can_be_given() -> None:
    assert [share for _, share, _ in bars(Distribution("", (("a", 0.1, 0.5, 0.0),), high=0.25).html())] == [0.4, 1.0]


def test_small_probabilities_are_not_shown_as_zero() -> None:
    drawn = bars(Distribution("", (("a", 1e-5, 0.0, 0.0), ("b", 1.0, 1.0, 0.0))).html())
    assert [number for _, _, number in drawn] == ["< 0.001", "0.000", "1.000", "1.000"]


@pytest.mark.parametrize("count", [1, 12, 13, 40])
def test_many_successors_are_summed_up(count: int) -> None:
    drawn = samples.pair("pair", 0.5, count).html()
    names = re.findall(r'<th scope="row">(.*?)</th>', drawn)
    assert names[:11] == [f"s{i}" for i in range(min(count, 11))]
    assert names[11:] == ([] if count < 12 else ["s11"] if count == 12 else [f"{count - 11} more"])
    for kind in ("nominal", "worst"):
        total = sum(float(number) for sort, _, number in bars(drawn) if sort == kind)
        assert total == pytest.approx(1.0, abs=0.0005 * 12)


def test_the_likeliest_of_either_kind_stay_in_their_order() -> None:
    outcomes: list[Outcome] = [(f"s{i}", 0.01, 0.01, 0.0) for i in range(20)]
    outcomes[19], outcomes[3] = ("late", 0.02, 0.3, 0.0), ("early", 0.4, 0.0, 0.0)
    names = re.findall(r'<th scope="row">(.*?)</th>', Distribution("", tuple(outcomes)).html())
    assert names == ["s0", "s1", "s2", "early", *(f"s{i}" for i in range(4, 10)), "late", "9 more"]


@pytest.mark.parametrize(
    ("outcomes", "high", "error"),
    [
        ((), None, "a distribution must have outcomes: got none"),
        ((("a", -0.1, 0.5, 0.0),), None, r"probabilities must lie in \[0, 1\]: got -0.1 for 'a'"),
        ((("a", 0.5, 1.1, 0.0),), None, r"probabilities must lie in \[0, 1\]: got 1.1 for 'a'"),
        ((("a", 0.5, float("nan"), 0.0),), None, r"probabilities must lie in \[0, 1\]: got nan for 'a'"),
        ((("a", 0.5, 0.5, 0.0),), 0.0, r"high must lie in \(0, 1\]: got 0.0"),
    ],
)
def test_bad_distributions_are_refused(outcomes: Any, high: float | None, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        Distribution("pair", outcomes, high)


def test_marked_rows_have_a_sign_and_the_table_explains_it() -> None:
    rows = tuple((f"s{i}", i) for i in range(4))
    drawn = DataTable(("state", "n"), rows, "States", marked_rows=(1, 3), mark="new").html()
    signs = [bool(re.search('class="sign" role="img" aria-label="new">◆<', row)) for row in drawn.split("<tr")[2:]]
    assert signs == [False, True, False, True]
    assert drawn.count('<tr class="marked">') == 2
    assert "◆ new" in TAG.sub("", drawn.split("</caption>")[0])
    assert "◆" not in DataTable(("state", "n"), rows, "States").html()


@pytest.mark.parametrize("number", [-1, 4])
def test_marked_rows_must_exist(number: int) -> None:
    with pytest.raises(ValueError, match=f"marked rows must be among the 4 of the table: got {number}"):
        DataTable(("state",), (("s",),) * 4, "States", marked_rows=(number,))


def test_headers_stand_on_the_side_of_their_column() -> None:
    drawn = DataTable(("state", "value", "action"), (("s", 1.5, "up"), ("t", 2, "down")), "States").html()
    assert re.findall(r'<th scope="col"(.*?)>', drawn) == ["", ' class="number"', ""]


def test_drawings_stand_side_by_side_and_distributions_share_a_place() -> None:
    grid, pair, words = samples.lake(1.0), samples.pair("pair", 1.0), Paragraph("words")
    drawn = flow_html([words, grid, pair, pair, words, words, pair])
    opened = re.findall(r'<(?:div|table) class="(beside|world|stack|distribution)"|<(p)>words', drawn)
    order = [kind or tag for kind, tag in opened]
    assert order[:5] == ["p", "beside", "world", "stack", "distribution"]
    assert order[5:] == ["distribution", "p", "p", "beside", "stack", "distribution"]
    assert drawn.count("<div") == drawn.count("</div>")
