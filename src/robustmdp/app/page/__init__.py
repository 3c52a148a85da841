"""Ink: from figures without colours to pictures and one self-contained page."""

from robustmdp.app.page.blocks import DataTable, Listing, Paragraph
from robustmdp.app.page.cells import Cell
from robustmdp.app.page.code import Code
from robustmdp.app.page.colours import Palette
from robustmdp.app.page.distribution import Distribution
from robustmdp.app.page.figure import Arrow, Curve, Diagram, Figure, Key, Node, Panel
from robustmdp.app.page.grid import Grid
from robustmdp.app.page.page import write_page
from robustmdp.app.page.sections import Section
from robustmdp.app.page.slider import Frame, Slider
from robustmdp.app.page.static import draw

__all__ = [
    "Arrow",
    "Cell",
    "Code",
    "Curve",
    "DataTable",
    "Diagram",
    "Distribution",
    "Figure",
    "Frame",
    "Grid",
    "Key",
    "Listing",
    "Node",
    "Palette",
    "Panel",
    "Paragraph",
    "Section",
    "Slider",
    "draw",
    "write_page",
]
