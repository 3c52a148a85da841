"""Pages as readers find them: sections by heading, and tables as texts."""

from __future__ import annotations

import re
from html import unescape
from typing import NamedTuple

from robustmdp.app.page import page_html
from robustmdp.app.study import Analysis
from robustmdp.app.study.report import body


class Shown(NamedTuple):
    """A table; `marked` are the numbers of its marked rows."""

    caption: str
    header: list[str]
    rows: list[list[str]]
    marked: set[int]


def page_of(analysis: Analysis) -> str:
    """The whole page."""
    return page_html(analysis.title, analysis.headline, sections_html(analysis), {})


def sections_html(analysis: Analysis) -> str:
    """The sections as HTML."""
    return body(analysis)


def section(analysis: Analysis, heading: str) -> str:
    """One of them."""
    (found,) = [part for part in sections_html(analysis).split("<section ") if f"<h2>{heading}</h2>" in part]
    return found


def headings(html: str) -> list[str]:
    """The headings of sections, in order."""
    return [text(found) for found in re.findall(r"<section[^>]*>\s*<h2>(.*?)</h2>", html)]


def text(html: str) -> str:
    """Without tags."""
    return " ".join(unescape(re.sub("<[^>]+>", "", html)).split())


def tables(html: str) -> list[Shown]:
    """All tables but those of bars."""
    return [_table(found) for found in re.findall(r"<table>.*?</table>", html, re.DOTALL)]


def _table(html: str) -> Shown:
    head, rows = html.split("<tbody>")
    cells = [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in re.findall("<tr.*?</tr>", rows, re.DOTALL)
    ]
    marked = {place for place, row in enumerate(re.findall("<tr[^>]*>", rows)) if "marked" in row}
    caption = text(re.findall("<caption><span>(.*?)(?:<span|</span>)", head)[0])
    header = [text(name) for name in re.findall(r"<th[^>]*>(.*?)</th>", head)]
    return Shown(caption, header, [[text(cell).removeprefix("◆ ") for cell in row] for row in cells], marked)
