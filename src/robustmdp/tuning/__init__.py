"""Choosing the weight or the radius."""

from robustmdp.tuning import worlds as worlds
from robustmdp.tuning.confidence import radius_from_counts as radius_from_counts
from robustmdp.tuning.curve import CurveTable as CurveTable
from robustmdp.tuning.curve import levels_for as levels_for
from robustmdp.tuning.curve import robustness_curve as robustness_curve
from robustmdp.tuning.equivalence import matching_radius as matching_radius
from robustmdp.tuning.equivalence import matching_weight as matching_weight
from robustmdp.tuning.suggestion import Suggestion as Suggestion
from robustmdp.tuning.suggestion import suggest as suggest
from robustmdp.tuning.trials import StressTable as StressTable
from robustmdp.tuning.trials import stress as stress
