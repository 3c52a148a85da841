"""The same seed gives the same bits: on every processor, alone or in a group, in pieces of any size."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp import _core
from robustmdp.learning.schedules import Polynomial

DIVERGENCES = (
    rm.ChiSquare(), rm.KL(), rm.TotalVariation(), rm.Burg(), rm.Hellinger(), rm.JensenShannon(), rm.CressieRead(3.0),
    rm.CressieRead(-1.5),
)  # fmt: skip
# Renew by PYTHONPATH=tests python -c "from learning.test_bits import digest; print(digest())" when an update changes.
STORED = "99df70035ac9f985"


def learners() -> list[tuple[Any, int]]:
    """Each with a number of steps."""
    found: list[tuple[Any, int]] = []
    for divergence in DIVERGENCES:
        price, ball = rm.Penalized(divergence, 0.7), rm.Constrained(divergence, 0.2)
        found += [(rm.GenerativeQLearning(ambiguity), 300) for ambiguity in (price, ball)]
        found += [(rm.MarkovianQLearning(ambiguity), 3000) for ambiguity in (price, ball)]
        found += [(rm.GenerativeQLearning.paper(price, 10), 20), (rm.MarkovianQLearning.paper(price), 2000)]
    greedy = rm.EpsilonGreedy(Polynomial(1.0, 0.4))
    found += [(rm.MarkovianQLearning(rm.Penalized(rm.KL(), 1.0), greedy), 3000)]
    return [*found, (rm.MultilevelQLearning(rm.Constrained(rm.KL(), 0.1)), 30)]


def digest() -> str:
    """Of Q and eta after some steps of every learner, in a world with rewards on pairs and in one with endings."""
    lake = rm.MDP.from_rows(
        [0, 0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 0, 0, 0], [0, 1, 1, 2, 2, 0, 0], [0.3, 0.7, 0.5, 0.5, 0.9, 0.1, 1.0],
        [0.1, 0.0, 1.0, 0.2, 0.5, 0.0, 0.3], 0.9, terminated=[0, 0, 0, 1, 0, 0, 0],
    )  # fmt: skip
    found = hashlib.sha256()
    for world in (rm.problems.chain(restart=0.5), lake):
        for learner, steps in learners():
            learned = learner.run(world, steps, seed=5, record_every=10**9)
            found.update(learned.q.tobytes() + np.nan_to_num(learned.eta).tobytes())
    return found.hexdigest()[:16]


@pytest.mark.parametrize("variant", _core.available())
def test_every_processor_gives_the_stored_bits(variant: str) -> None:
    script = "from learning.test_bits import digest; print(digest())"
    variables = {**os.environ, "ROBUSTMDP_CORE": variant, "PYTHONPATH": "tests"}
    output = subprocess.run([sys.executable, "-c", script], env=variables, capture_output=True, text=True, check=True)
    assert output.stdout.strip() == STORED
