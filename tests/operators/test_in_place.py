"""Sweeps in place: the same fixed point as plain sweeps, pins and forbidden pairs kept."""

import numpy as np
import pytest

import robustmdp as rm
from robustmdp.ambiguity import Ambiguity
from robustmdp.operators.pinned import PinnedBellman

SETS = {
    "nominal": rm.Nominal(),
    "chi-square": rm.Penalized(rm.ChiSquare(), 1.0),
    "KL ball": rm.Constrained(rm.KL(), 0.1),
    "L1": rm.L1(0.2),
    "CVaR": rm.CVaR(0.3),
    "optimistic L1": rm.Optimistic(rm.L1(0.2)),
}


@pytest.fixture(name="world", scope="module")
def _world() -> rm.MDP:
    return rm.problems.garnet(50, 3, 4, seed=3, discount=0.9)


def operator(world: rm.MDP, ambiguity: Ambiguity) -> PinnedBellman:
    """States 3 and 40 are pinned; the first action is forbidden everywhere else."""
    pinned = np.isin(np.arange(world.n_states), [3, 40])
    forbidden = world.actions == 0
    return PinnedBellman(world, ambiguity, pinned, np.where(pinned, 7.0, 0.0), forbidden=forbidden, threads=1)


@pytest.mark.parametrize("name", SETS)
def test_both_ways_end_at_the_fixed_point(world: rm.MDP, name: str) -> None:
    bellman = operator(world, SETS[name])
    v = np.zeros(world.n_states)
    bellman.sweep_in_place(v, 400)  # 0.9**400 is 5e-19
    assert (v[[3, 40]] == 7.0).all()
    assert bellman.apply(v) == pytest.approx(v, abs=1e-12)


def test_news_travels_far_in_one_sweep() -> None:
    """In a corridor of strides of 16, as many states as are swept at a time, one sweep backwards is enough."""
    size, stride = 320, 16
    at = np.arange(size)
    corridor = rm.MDP.from_rows(at, at * 0, np.minimum(at + stride, size - 1), np.ones(size), np.ones(size), 1.0)
    last = at >= size - stride
    bellman = PinnedBellman(corridor, rm.Nominal(), last, np.zeros(size), threads=1)
    v = np.zeros(size)
    bellman.sweep_in_place(v, 1)
    assert (v == (size - 1 - at) // stride).all()


def test_some_sets_have_no_sweep_in_place(world: rm.MDP) -> None:
    assert operator(world, rm.L1(0.2)).works_in_place
    assert not operator(world, rm.L1(0.2, support="all")).works_in_place
    assert not operator(world, rm.MeanRisk(0.5, rm.CVaR(0.3))).works_in_place
