"""The join: RobustBellman(model, ambiguity). Knows no stopping rule."""

from robustmdp.operators.bellman import RobustBellman as RobustBellman
