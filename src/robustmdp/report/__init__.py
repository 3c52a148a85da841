"""Ink: from figures without colours to pictures and one self-contained page."""

from robustmdp.report.blocks import DataTable, Listing, Paragraph
from robustmdp.report.cells import Cell
from robustmdp.report.code import Code
from robustmdp.report.colours import Palette
from robustmdp.report.distribution import Distribution
from robustmdp.report.figure import Arrow, Curve, Diagram, Figure, Key, Node, Panel
from robustmdp.report.grid import Grid
from robustmdp.report.page import write_page
from robustmdp.report.sections import Section
from robustmdp.report.slider import Frame, Slider
from robustmdp.report.static import draw

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
