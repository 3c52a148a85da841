"""Choosing the weight or the radius."""

from robustmdp.tuning.equivalence import matching_radius as matching_radius
from robustmdp.tuning.equivalence import matching_weight as matching_weight
