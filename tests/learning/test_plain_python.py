"""The kernels of the learners as plain Python: no division by zero, no overflow but that of the random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import robustmdp as rm

DOUBTS = [
    rm.Nominal(),
    rm.Penalized(rm.ChiSquare(), 0.5),
    rm.Penalized(rm.KL(), 0.01),
    rm.Penalized(rm.Hellinger(), 0.01),
    rm.Penalized(rm.TotalVariation(), 0.5),
    rm.Penalized(rm.Burg(), 0.0),
    rm.Constrained(rm.ChiSquare(), 0.1),
    rm.Constrained(rm.TotalVariation(), 0.1),
]


@pytest.mark.jit_off
@pytest.mark.filterwarnings("ignore:the behaviour policy must visit")  # 200 steps cannot
@pytest.mark.parametrize("doubt", DOUBTS, ids=repr)
@pytest.mark.parametrize("world", [rm.problems.chain(restart=0.5), rm.MDP.from_gymnasium("FrozenLake-v1", 0.9)])
def test_the_default_stays_within_the_value_range(doubt: Any, world: rm.MDP) -> None:
    with np.errstate(over="ignore"):  # the scrambling of SplitMix64 is meant to wrap
        asked = rm.GenerativeQLearning(doubt).run(world, 6, record_every=100)
        followed = rm.MarkovianQLearning(doubt, rm.EpsilonGreedy(0.9)).run(world, 200, record_every=1000)
    low, high = world.value_range
    assert asked.visits.sum() == 6 * world.n_pairs
    assert followed.visits.sum() == 200
    for learned in (asked, followed):
        assert np.all((learned.q >= low) & (learned.q <= high))


@pytest.mark.jit_off
@pytest.mark.parametrize("doubt", DOUBTS[:6], ids=repr)
def test_the_printed_algorithms_stay_finite(doubt: Any) -> None:
    world = rm.problems.chain(restart=0.5)
    with np.errstate(over="ignore"):
        asked = rm.GenerativeQLearning.paper(doubt, 5).run(world, 3, record_every=100)
        followed = rm.MarkovianQLearning.paper(doubt).run(world, 200, record_every=1000)
    assert asked.samples == 3 * 20 * 6
    assert np.isfinite(asked.q).all()
    assert np.isfinite(followed.q).all()
