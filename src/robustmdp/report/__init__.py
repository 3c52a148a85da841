"""Ink: from figures without colours to pictures and one self-contained page."""

from robustmdp.report.blocks import DataTable, Listing, Paragraph, Section
from robustmdp.report.colours import Palette
from robustmdp.report.figure import Arrow, Curve, Diagram, Figure, Key, Node, Panel
from robustmdp.report.page import write_page
from robustmdp.report.static import draw

__all__ = [
    "Arrow",
    "Curve",
    "DataTable",
    "Diagram",
    "Figure",
    "Key",
    "Listing",
    "Node",
    "Palette",
    "Panel",
    "Paragraph",
    "Section",
    "draw",
    "write_page",
]
