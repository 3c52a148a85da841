"""The worst case at one (s, a): nominal, penalized, constrained, or a user's own set. Knows no states."""

from robustmdp.ambiguity.answer import Multipliers as Multipliers
from robustmdp.ambiguity.answer import WorstCase as WorstCase
from robustmdp.ambiguity.answer import worst_case as worst_case
from robustmdp.ambiguity.balls import L1 as L1
from robustmdp.ambiguity.balls import L2 as L2
from robustmdp.ambiguity.balls import LInf as LInf
from robustmdp.ambiguity.base import Ambiguity as Ambiguity
from robustmdp.ambiguity.intervals import Interval as Interval
from robustmdp.ambiguity.own import check_ambiguity as check_ambiguity
from robustmdp.ambiguity.own import is_set as is_set
from robustmdp.ambiguity.records import Constrained as Constrained
from robustmdp.ambiguity.records import Nominal as Nominal
from robustmdp.ambiguity.records import Penalized as Penalized
from robustmdp.ambiguity.risk import Contamination as Contamination
from robustmdp.ambiguity.risk import CVaR as CVaR
from robustmdp.ambiguity.risk import EntropicRisk as EntropicRisk
from robustmdp.ambiguity.risk import EVaR as EVaR
from robustmdp.ambiguity.risk import MeanRisk as MeanRisk
from robustmdp.ambiguity.wasserstein import Wasserstein as Wasserstein
from robustmdp.ambiguity.wrappers import Optimistic as Optimistic
from robustmdp.ambiguity.wrappers import SharedNoise as SharedNoise
from robustmdp.ambiguity.wrappers import SRectangular as SRectangular
