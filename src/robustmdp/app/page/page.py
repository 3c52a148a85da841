"""One self-contained HTML page: text, tables and plots that can be explored offline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from robustmdp._files import whole
from robustmdp.app.page.blocks import Block
from robustmdp.app.page.colours import Palette
from robustmdp.app.page.figure import Figure
from robustmdp.app.page.flow import flow_html
from robustmdp.app.page.interactive import Arrays, figure_json
from robustmdp.app.page.legend import curves_of
from robustmdp.app.page.markup import figure_html
from robustmdp.app.page.sections import Placed, Section, figures_of, placed
from robustmdp.app.page.slider import Slider, slider_html

_POINTS = 40_000  # of all curves together: what keeps a page below 6 MB
_FEWEST, _MOST = 50, 400  # points of one curve

_STYLES = ("page.css", "blocks.css", "slider.css")
_SCRIPTS = ("page.js", "slider.js", "code.js")

# Nothing may be fetched, from anywhere.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


def write_page(path: Path, title: str, lead: str, sections: Sequence[Section]) -> Path:
    """Write the page at once or not at all; equal contents give equal files."""
    text = page_html(title, lead, sections)
    with whole(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")
    return path


def page_html(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The whole document, with styles, scripts and numbers inside."""
    figures = figures_of(sections)
    palette = Palette.of(figures)
    places = placed(sections)
    body = "".join(_section_html(each, palette) for each in places)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_own(*_STYLES)}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#main">Skip to the content</a>\n'
        f'<header><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p></header>\n{_contents_html(places)}\n'
        f'<main id="main">\n<noscript><p>The plots need JavaScript; text and tables do not.</p></noscript>\n'
        f"{body}</main>\n"
        f'<script type="application/json" id="numbers">{_numbers(figures, palette)}</script>\n'
        f"<script>{_plotly() if figures else ''}</script>\n<script>\n{_own(*_SCRIPTS)}</script>\n</body>\n</html>\n"
    )


@dataclass(frozen=True)
class _Drawn:
    """A figure or a slider in the colours of the page."""

    text: str

    def html(self) -> str:
        return self.text


def _section_html(place: Placed, palette: Palette) -> str:
    body = [_block(part, place.parts.get(i, ""), palette) for i, part in enumerate(place.section.body)]
    heading = escape(place.section.heading)
    return f'<section id="{place.anchor}">\n<h2>{heading}</h2>\n{flow_html(body)}</section>\n'


def _block(part: Block | Figure | Slider, anchor: str, palette: Palette) -> Block:
    if isinstance(part, Figure):
        return _Drawn(figure_html(part, anchor, palette))
    return _Drawn(slider_html(part, anchor, palette)) if isinstance(part, Slider) else part


def _contents_html(places: Sequence[Placed]) -> str:
    items = []
    for section, anchor, parts in places:
        inner = "".join(f"<li>{_link(at, section.body[i])}</li>" for i, at in parts.items())
        items.append(
            f'<li><a href="#{anchor}">{escape(section.heading)}</a>{f"<ul>{inner}</ul>" if inner else ""}</li>'
        )
    return f'<nav aria-label="Contents"><h2>Contents</h2><ol>{"".join(items)}</ol></nav>'


def _link(anchor: str, part: object) -> str:
    return f'<a href="#{anchor}">{escape(part.title)}</a>' if isinstance(part, (Figure, Slider)) else ""


def _numbers(figures: Sequence[Figure], palette: Palette) -> str:
    """What the script draws, as JSON in which nothing can end the element around it."""
    curves = sum(len(curves_of(figure)) for figure in figures)
    arrays = Arrays(max(_FEWEST, min(_MOST, _POINTS // max(curves, 1))))
    drawn = [figure_json(figure, palette, arrays) for figure in figures]
    text = json.dumps(
        {"arrays": arrays.encoded, "figures": drawn}, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return text.replace("<", "\\u003c")


def _own(*names: str) -> str:
    return "\n".join(files("robustmdp.app.page").joinpath(name).read_text(encoding="utf-8") for name in names)


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ImportError("plotly must be installed for pages: pip install 'robustmdp[report]'") from None
    script: str = get_plotlyjs()
    return script
