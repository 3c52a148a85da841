"""f, its conjugate f* and f*': how a distance between distributions is measured. Knows no probabilities."""

from robustmdp.divergences.base import FDivergence as FDivergence
from robustmdp.divergences.base import check_divergence as check_divergence
from robustmdp.divergences.cressie_read import KL as KL
from robustmdp.divergences.cressie_read import Burg as Burg
from robustmdp.divergences.cressie_read import ChiSquare as ChiSquare
from robustmdp.divergences.cressie_read import CressieRead as CressieRead
from robustmdp.divergences.cressie_read import Hellinger as Hellinger
from robustmdp.divergences.jensen_shannon import JensenShannon as JensenShannon
from robustmdp.divergences.named import divergence_named as divergence_named
from robustmdp.divergences.own import Divergence as Divergence
from robustmdp.divergences.total_variation import TotalVariation as TotalVariation
