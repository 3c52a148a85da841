"""A report on the user's own problem: what is studied, and how it is told."""

from robustmdp.analysis.analysing import Analysis as Analysis
from robustmdp.analysis.analysing import analyse as analyse
from robustmdp.analysis.layout import Layout as Layout
