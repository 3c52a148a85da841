"""Algorithm 3, iterate by iterate."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Penalized
from robustmdp.models import MDP
from robustmdp.operators import RobustBellman
from robustmdp.planning import DualAscent


def algorithm_3(mdp: MDP, ambiguity: Penalized, steps: int, inner_steps: int) -> Iterator[FloatArray]:
    """V_0, ..., V_T: with gradient steps on eta for chi-square and KL, with the exact inner solution for the others."""
    bellman = RobustBellman(mdp, ambiguity, threads=1)
    v = np.full(mdp.n_states, mdp.value_range[1])
    yield v
    if ambiguity.divergence.ascent is not None:
        for progress in islice(DualAscent(steps, inner_steps).iterate(bellman, None, 0.0), steps):
            yield progress.swept
        return
    for _ in range(steps):
        v = bellman.apply(v)
        yield v
