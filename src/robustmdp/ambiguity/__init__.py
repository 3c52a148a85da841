"""The worst case at one (s, a): nominal, penalized, constrained. Knows no states."""

from robustmdp.ambiguity.answer import Multipliers as Multipliers
from robustmdp.ambiguity.answer import WorstCase as WorstCase
from robustmdp.ambiguity.answer import worst_case as worst_case
from robustmdp.ambiguity.records import Ambiguity as Ambiguity
from robustmdp.ambiguity.records import Constrained as Constrained
from robustmdp.ambiguity.records import Nominal as Nominal
from robustmdp.ambiguity.records import Penalized as Penalized
