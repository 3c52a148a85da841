"""A report on the user's own problem: what is studied, and how it is told."""

from robustmdp.app.study.analysing import Analysis as Analysis
from robustmdp.app.study.analysing import analyse as analyse
from robustmdp.app.study.names import Layout as Layout
