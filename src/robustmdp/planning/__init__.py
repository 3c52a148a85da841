"""Known world: a loop until something."""

from robustmdp.planning.criteria import AverageReward as AverageReward
from robustmdp.planning.criteria import FiniteHorizon as FiniteHorizon
from robustmdp.planning.criteria import TotalReward as TotalReward
from robustmdp.planning.dual_ascent import DualAscent as DualAscent
from robustmdp.planning.policy_iteration import PolicyIteration as PolicyIteration
from robustmdp.planning.reaching import reach as reach
from robustmdp.planning.solving import evaluate as evaluate
from robustmdp.planning.solving import solve as solve
from robustmdp.planning.value_iteration import ValueIteration as ValueIteration
