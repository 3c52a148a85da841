"""Blocks in the order they are read; drawings that follow each other stand side by side where there is room."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from robustmdp.app.page.blocks import Block
from robustmdp.app.page.distribution import Distribution
from robustmdp.app.page.grid import Grid


def flow_html(blocks: Iterable[Block]) -> str:
    r"""One block below the other, but for grids and distributions.

    >>> from robustmdp.app.page.blocks import Paragraph
    >>> flow_html([Paragraph("one"), Paragraph("two")])
    '<p>one</p>\n<p>two</p>\n'
    """
    parts = []
    for drawn, run in groupby(blocks, lambda block: isinstance(block, (Grid, Distribution))):
        inner = list(run)
        parts.append(_boxed("beside", _beside(inner)) if drawn else _plain(inner))
    return "".join(parts)


def _beside(drawings: Iterable[Block]) -> str:
    """Grids by themselves; distributions between them share one place."""
    parts = []
    for listed, run in groupby(drawings, lambda block: isinstance(block, Distribution)):
        inner = _plain(run)
        parts.append(_boxed("stack", inner) if listed else inner)
    return "".join(parts)


def _plain(blocks: Iterable[Block]) -> str:
    return "".join(f"{block.html()}\n" for block in blocks)


def _boxed(kind: str, inner: str) -> str:
    return f'<div class="{kind}">\n{inner}</div>\n'
