"""Drawings of arrays and tables by matplotlib; imported when the first one is drawn."""

from robustmdp.pictures.candidates import draw_candidates as draw_candidates
from robustmdp.pictures.curves import draw_curve as draw_curve
from robustmdp.pictures.outcomes import draw_outcomes as draw_outcomes
from robustmdp.pictures.states import Choices as Choices
from robustmdp.pictures.states import Progress as Progress
from robustmdp.pictures.states import Values as Values
from robustmdp.pictures.states import draw_solution as draw_solution
