"""One self-contained HTML page: text, tables and plots that can be explored offline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from robustmdp._files import whole
from robustmdp.report.blocks import Section, slug
from robustmdp.report.colours import Palette
from robustmdp.report.figure import Figure
from robustmdp.report.interactive import Arrays, figure_json
from robustmdp.report.legend import curves_of
from robustmdp.report.markup import figure_html

_POINTS = 40_000  # of all curves together: what keeps a page below 6 MB
_FEWEST, _MOST = 50, 400  # points of one curve

# Nothing may be fetched, from anywhere.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


class _Placed(NamedTuple):
    """A section with the anchors of itself and of its figures, by position in its body."""

    section: Section
    anchor: str
    figures: dict[int, str]


def write_page(path: Path, title: str, lead: str, sections: Sequence[Section]) -> Path:
    """Write the page at once or not at all; equal contents give equal files."""
    text = page_html(title, lead, sections)
    with whole(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")
    return path


def page_html(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The whole document, with styles, scripts and numbers inside."""
    figures = [part for section in sections for part in section.body if isinstance(part, Figure)]
    palette = Palette.of(figures)
    placed = _placed(sections)
    body = "".join(_section_html(each, palette) for each in placed)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_own('page.css')}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#main">Skip to the content</a>\n'
        f'<header><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p></header>\n{_contents_html(placed)}\n'
        f'<main id="main">\n<noscript><p>The plots need JavaScript; text and tables do not.</p></noscript>\n'
        f"{body}</main>\n"
        f'<script type="application/json" id="numbers">{_numbers(figures, palette)}</script>\n'
        f"<script>{_plotly() if figures else ''}</script>\n<script>\n{_own('page.js')}</script>\n</body>\n</html>\n"
    )


def _placed(sections: Sequence[Section]) -> list[_Placed]:
    taken: set[str] = {"main", "numbers"}
    return [
        _Placed(
            section,
            _unique(section.heading, taken),
            {
                i: _unique(f"figure-{part.name}", taken)
                for i, part in enumerate(section.body)
                if isinstance(part, Figure)
            },
        )
        for section in sections
    ]


def _unique(text: str, taken: set[str]) -> str:
    name, count = slug(text), 1
    while name in taken:
        count += 1
        name = f"{slug(text)}-{count}"
    taken.add(name)
    return name


def _section_html(placed: _Placed, palette: Palette) -> str:
    parts = [
        figure_html(part, placed.figures[i], palette) if isinstance(part, Figure) else part.html() + "\n"
        for i, part in enumerate(placed.section.body)
    ]
    return f'<section id="{placed.anchor}">\n<h2>{escape(placed.section.heading)}</h2>\n{"".join(parts)}</section>\n'


def _contents_html(placed: Sequence[_Placed]) -> str:
    items = []
    for section, anchor, figures in placed:
        inner = "".join(f"<li>{_link(at, section.body[i])}</li>" for i, at in figures.items())
        items.append(
            f'<li><a href="#{anchor}">{escape(section.heading)}</a>{f"<ul>{inner}</ul>" if inner else ""}</li>'
        )
    return f'<nav aria-label="Contents"><h2>Contents</h2><ol>{"".join(items)}</ol></nav>'


def _link(anchor: str, part: object) -> str:
    return f'<a href="#{anchor}">{escape(part.title)}</a>' if isinstance(part, Figure) else ""


def _numbers(figures: Sequence[Figure], palette: Palette) -> str:
    """What the script draws, as JSON in which nothing can end the element around it."""
    curves = sum(len(curves_of(figure)) for figure in figures)
    arrays = Arrays(max(_FEWEST, min(_MOST, _POINTS // max(curves, 1))))
    drawn = [figure_json(figure, palette, arrays) for figure in figures]
    text = json.dumps(
        {"arrays": arrays.encoded, "figures": drawn}, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return text.replace("<", "\\u003c")


def _own(name: str) -> str:
    return files("robustmdp.report").joinpath(name).read_text(encoding="utf-8")


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ImportError("plotly must be installed for pages: pip install 'robustmdp[report]'") from None
    script: str = get_plotlyjs()
    return script
