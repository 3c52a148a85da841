"""The learners with the compiler switched off: NUMBA_DISABLE_JIT=1 pytest -m jit_off.

As plain Python they must not divide by zero, nor overflow but in the random numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import robustmdp as rm

pytestmark = pytest.mark.jit_off

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


@pytest.mark.parametrize("doubt", DOUBTS[:6], ids=repr)
def test_the_printed_algorithms_stay_finite(doubt: Any) -> None:
    world = rm.problems.chain(restart=0.5)
    with np.errstate(over="ignore"):
        asked = rm.GenerativeQLearning.paper(doubt, 5).run(world, 3, record_every=100)
        followed = rm.MarkovianQLearning.paper(doubt).run(world, 200, record_every=1000)
    assert asked.samples == 3 * 20 * 6
    assert np.isfinite(asked.q).all()
    assert np.isfinite(followed.q).all()


def my_conjugate(s: float) -> float:
    return math.exp(s - 1.0)


def my_normal_conjugate(s: float) -> float:
    return math.expm1(s)


def my_normal_derivative(s: float) -> float:
    return math.exp(s)


OWN = (
    rm.Divergence("t log t", my_conjugate, my_conjugate),
    rm.Divergence("t log t - t + 1", my_normal_conjugate, my_normal_derivative),
)


@pytest.mark.parametrize(("form", "level"), [(rm.Penalized, 1.0), (rm.Constrained, 0.1)])
@pytest.mark.parametrize("own", OWN, ids=repr)
def test_an_own_divergence_is_learned_like_the_built_in_one(own: Any, form: Any, level: float) -> None:
    mdp = rm.problems.chain(restart=0.5)
    with np.errstate(over="ignore"):
        mine, built_in = (
            rm.GenerativeQLearning(form(divergence, level)).run(mdp, 30, record_every=100)
            for divergence in (own, rm.KL())
        )
    assert np.abs(mine.q - built_in.q).max() <= 1e-9


def test_an_own_penalty_is_learned_from_a_stream_like_the_built_in_one() -> None:
    own = rm.Divergence("my KL", my_conjugate, my_conjugate)
    x = np.random.default_rng(0).uniform(0.0, 2.0, 500)
    learned, known = (
        rm.learn_worst_case(rm.Penalized(divergence, 1.0), x, (0.0, 2.0)) for divergence in (own, rm.KL())
    )
    assert learned.value == pytest.approx(known.value, abs=1e-9)
    assert learned.eta == pytest.approx(known.eta, abs=1e-9)


def test_multilevel_learning_stays_finite() -> None:
    world = rm.problems.chain(restart=0.5)
    with np.errstate(over="ignore"):
        learned = rm.MultilevelQLearning(rm.Constrained(rm.KL(), 0.1)).run(world, 3, record_every=100)
    assert np.isfinite(learned.q).all()
