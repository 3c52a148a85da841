"""One self-contained HTML page from a jinja2 template: text, tables and plotly figures that work offline."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from robustmdp._files import replace_file

_OWN = "robustmdp.app.page"


def render(template: str, package: str = _OWN, **context: Any) -> str:
    """A template of a package, which may use the blocks of this one; in HTML every given text is escaped."""
    text: str = _environment(package).get_template(template).render(context)
    return text


def write_page(path: Path, title: str, lead: str, body: str, figures: Mapping[str, Any] | None = None) -> Path:
    """Write a page with plotly figures by name, completely or not at all; equal contents give equal files."""
    text = page_html(title, lead, body, figures or {})
    with replace_file(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")
    return path


def page_html(title: str, lead: str, body: str, figures: Mapping[str, Any]) -> str:
    """The whole document, with styles, scripts and numbers inside."""
    drawn = {name: json.loads(figure.to_json()) for name, figure in figures.items()}
    return render(
        "page.html.j2",
        title=title,
        lead=lead,
        body=body,
        contents=re.findall(r'<section id="([^"]+)">\s*<h2>(.*?)</h2>', body),
        # No text of a figure can end the element around it.
        figures=json.dumps(drawn, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
        plotly=_packed_plotly() if figures else "",
    )


def slug(text: str) -> str:
    """A name for a place in the page.

    >>> slug("What λ = 0.5 does")
    'what-λ-0-5-does'
    """
    return re.sub(r"\W+", "-", text.lower()).strip("-") or "part"


def entry(value: str | float) -> str:
    """A table's entry: text as it is, whole numbers with separators, others with four digits.

    >>> entry("12"), entry(12000), entry(0.123456)
    ('12', '12,000', '0.1235')
    """
    return value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


@cache
def _environment(package: str = _OWN) -> Any:
    try:
        from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ImportError("jinja2 must be installed for pages: pip install 'robustmdp[report]'") from None
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, "") for name in (package, _OWN)]),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(entry=entry, slug=slug)
    return environment


@cache
def _packed_plotly() -> str:
    """plotly's script, compressed to a third of its size, as text."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ImportError("plotly must be installed for pages: pip install 'robustmdp[report]'") from None
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode("ascii")
