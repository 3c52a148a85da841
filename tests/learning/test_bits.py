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
STORED = "8b389e47bcc2a03e"


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


LAKE = rm.MDP.from_rows(
    [0, 0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 0, 0, 0], [0, 1, 1, 2, 2, 0, 0], [0.3, 0.7, 0.5, 0.5, 0.9, 0.1, 1.0],
    [0.1, 0.0, 1.0, 0.2, 0.5, 0.0, 0.3], 0.9, terminated=[0, 0, 0, 1, 0, 0, 0],
)  # fmt: skip
WORLDS = {"rewards on pairs": rm.problems.chain(restart=0.5), "endings": LAKE}


def digest() -> str:
    """Of Q and eta after some steps of every learner."""
    found = hashlib.sha256()
    for world in WORLDS.values():
        for learner, steps in learners():
            learned = learner.run(world, steps, seed=5, record_every=10**9)
            found.update(learned.q.tobytes() + np.nan_to_num(learned.eta).tobytes())
    return found.hexdigest()[:16]


@pytest.mark.parametrize("variant", _core.available())
def test_every_processor_gives_the_stored_bits(variant: str) -> None:
    script = "from learning.test_bits import digest; print(digest())"
    path = os.pathsep.join(["tests", os.environ.get("PYTHONPATH", "")])
    variables = {**os.environ, "ROBUSTMDP_CORE": variant, "PYTHONPATH": path}
    output = subprocess.run([sys.executable, "-c", script], env=variables, capture_output=True, text=True, check=True)
    assert output.stdout.strip() == STORED


@pytest.mark.filterwarnings("ignore:the behaviour policy must visit every pair")  # a greedy one need not in few steps
@pytest.mark.parametrize("name", WORLDS)
def test_replications_side_by_side_have_the_bits_of_each_alone(name: str) -> None:
    """Six seeds: four side by side and two one by one."""
    world = WORLDS[name]
    shape = world.n_states, world.n_actions
    partly = np.linspace(0.0, 1.0, world.n_states * world.n_actions).reshape(shape)  # from no weight on
    unlimited = np.where(partly > 0.5, np.inf, partly)
    by_pair = [
        rm.Penalized(rm.ChiSquare(), partly),
        rm.Constrained(rm.KL(), unlimited),
        rm.Penalized(rm.Burg(), partly),
    ]
    steps_of_pairs = [(rm.MarkovianQLearning(ambiguity), 2000) for ambiguity in by_pair]
    steps_of_pairs += [
        (rm.MarkovianQLearning.paper(by_pair[2]), 2000),
        (rm.GenerativeQLearning.paper(by_pair[0], 10), 20),
    ]
    literal = rm.MarkovianQLearning.paper(rm.Penalized(rm.ChiSquare(), 0.01), literal=True)
    for learner, steps in [*learners(), *steps_of_pairs, (literal, 3000)]:
        together = learner.run_many(world, steps, seeds=6, threads=1, record_every=10**9)
        for seed, learned in enumerate(together):
            alone = learner.run(world, steps, seed=seed, record_every=10**9)
            assert learned.q.tobytes() == alone.q.tobytes(), (learner, seed)
            assert learned.eta.tobytes() == alone.eta.tobytes(), (learner, seed)
            assert learned.status == alone.status
