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


def nearest_bound(bellman: PinnedBellman, start: np.ndarray, limit: np.ndarray, loss: float, side: float) -> np.ndarray:
    """With side 1 the least v >= start with Tv + loss <= v or v >= limit; with -1 mirrored. By plain sweeps."""
    v, before = start.copy(), None
    while before is None or np.abs(v - before).max() > 1e-14:
        before = v
        moved = bellman.apply(v) + np.where(bellman.pinned, 0.0, side * loss)
        v = side * np.maximum(side * v, np.minimum(side * moved, side * limit))
    return v


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_bound_is_the_nearest_that_a_sweep_proves(world: rm.MDP, name: str, side: float) -> None:
    """Tarski: with a drift d it lies between the nearest bounds that gain d/2 and d at every step."""
    bellman = operator(world, SETS[name])
    centre = np.zeros(world.n_states)
    bellman.sweep_in_place(centre, 400)
    noise = np.random.default_rng(5).uniform(-3.0, 3.0, world.n_states)
    start = centre + np.where(bellman.pinned, 0.0, noise)
    limit, drift, v = np.full(world.n_states, np.median(centre) + 2.0 * side), 0.01, start.copy()
    assert bellman.seek_bound(v, side * drift, limit, 1000) == 0.0
    free = ~bellman.pinned & (side * v < side * limit - 1e-12)  # v is scaled by the discount and back
    assert free.any()
    assert (side * (bellman.apply(v) - v)[free] <= -0.5 * drift + 1e-12).all()
    assert (v[bellman.pinned] == 7.0).all()
    near, far = (nearest_bound(bellman, start, limit, loss, side) for loss in (0.5 * drift, drift))
    assert (side * near - 1e-10 <= side * v).all()
    assert (side * v <= side * far + 1e-10).all()


def test_what_is_a_bound_already_costs_one_sweep() -> None:
    """A corridor of which one end is wrong: only states that read a changed value are visited again."""
    size = 3200
    at = np.arange(size)
    corridor = rm.MDP.from_rows(at, at * 0, np.maximum(at - 1, 0), np.ones(size), np.zeros(size), 1.0)
    bellman = PinnedBellman(corridor, rm.Nominal(), at == 0, np.zeros(size), threads=1)
    v = np.where(at < 40, at, -0.1 * at)
    assert bellman.seek_bound(v, -0.01, np.full(size, -np.inf), 100) == 0.0
    assert bellman.rows < 1.5 * size
    assert (bellman.apply(v) >= v).all()


def test_a_search_for_a_bound_ends_without_one(world: rm.MDP) -> None:
    bellman = operator(world, rm.L1(0.2))
    v = np.full(world.n_states, 1e6)
    assert 0.0 < bellman.seek_bound(v, -1e-9, np.zeros(world.n_states), 2) <= 1.0
    assert bellman.rows <= 3 * world.n_pairs


def test_some_sets_have_no_sweep_in_place(world: rm.MDP) -> None:
    assert operator(world, rm.L1(0.2)).works_in_place
    assert not operator(world, rm.L1(0.2, support="all")).works_in_place
    assert not operator(world, rm.MeanRisk(0.5, rm.CVaR(0.3))).works_in_place
