"""f, its conjugate f* and f*': how a distance between distributions is measured. Knows no probabilities."""

from robustmdp.divergences.base import FDivergence as FDivergence
from robustmdp.divergences.base import check_divergence as check_divergence
from robustmdp.divergences.built_in import KL as KL
from robustmdp.divergences.built_in import Burg as Burg
from robustmdp.divergences.built_in import ChiSquare as ChiSquare
from robustmdp.divergences.built_in import CressieRead as CressieRead
from robustmdp.divergences.built_in import Hellinger as Hellinger
from robustmdp.divergences.built_in import JensenShannon as JensenShannon
from robustmdp.divergences.built_in import TotalVariation as TotalVariation
from robustmdp.divergences.built_in import divergence_named as divergence_named
from robustmdp.divergences.own import Divergence as Divergence
