"""Known facts about the ready-made worlds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import robustmdp as rm

WORLDS: dict[str, Callable[[], rm.MDP]] = {
    "chain": rm.problems.chain,
    "restarting chain": lambda: rm.problems.chain(restart=0.5),
    "two states": lambda: rm.problems.two_state(0.5, 0.9),
    "garnet": lambda: rm.problems.garnet(60, 4, 5, 0.95, seed=1),
    "dense garnet": lambda: rm.problems.garnet(6, 2, 6, 0.95, seed=1),
    "machine replacement": rm.problems.machine_replacement,
    "pump": rm.problems.pump,
    "river swim": rm.problems.river_swim,
    "inventory": rm.problems.inventory,
    "grid": lambda: rm.problems.grid_world(8),
}


def dense(mdp: rm.MDP) -> np.ndarray:
    out = np.zeros((mdp.n_states, mdp.n_actions, mdp.n_states + 1))
    rows = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.indptr))
    np.add.at(out, (mdp.states[rows], mdp.actions[rows], mdp.indices), mdp.probabilities)
    return out


@pytest.mark.parametrize("name", WORLDS)
def test_rows_are_distributions(name: str) -> None:
    mdp = WORLDS[name]()
    sums = dense(mdp).sum(axis=2)[mdp.states, mdp.actions]
    assert np.abs(sums - 1).max() <= 1e-12  # rounding of at most a few dozen terms
    assert mdp.probabilities.min() > 0
    assert not mdp.can_end
    assert mdp == WORLDS[name]()
    assert hash(mdp) == hash(WORLDS[name]())


@pytest.mark.parametrize("stay", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("restart", [0.0, 0.5, 1.0])
def test_the_papers_chain(stay: float, restart: float) -> None:
    mdp = rm.problems.chain(stay, restart)
    p = dense(mdp)
    for s in range(9):
        assert p[s, 0, s] == pytest.approx(stay, abs=1e-15)
        assert p[s, 0, s + 1] == pytest.approx(1 - stay, abs=1e-15)
        assert p[s, 1, s] == pytest.approx(1 - stay, abs=1e-15)
        assert p[s, 1, s + 1] == pytest.approx(stay, abs=1e-15)
    assert np.all(p[9, :, 0] == restart)
    assert np.all(p[9, :, 9] == 1 - restart)
    assert (mdp.n_states, mdp.n_actions, mdp.n_pairs, mdp.discount) == (10, 2, 20, 0.9)
    assert mdp.table(mdp.mean_rewards()).tolist() == [[1.0, 1.0]] * 9 + [[0.0, 0.0]]
    assert mdp.state_names == tuple(f"s{i}" for i in range(1, 11))


def test_the_markovian_chain_visits_all_states_alike() -> None:
    # Under the uniform policy with restart 0.5 the stationary distribution is uniform, as the paper says.
    chain = dense(rm.problems.chain(restart=0.5))[:, :, :10].mean(axis=1)
    assert np.abs(np.full(10, 0.1) @ chain - 0.1).max() <= 1e-15


@pytest.mark.parametrize("stay", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("weight", [0.01, 0.4, 5.0, np.inf])
def test_two_states(stay: float, weight: float) -> None:
    # The closed form is a fixed point of 1 + discount * worst case of (v, 0).
    v = rm.problems.two_state_value(stay, 0.9, weight)
    answer = rm.worst_case(rm.Penalized(rm.ChiSquare(), weight), [stay, 1 - stay], [v, 0.0])
    assert v == pytest.approx(1 + 0.9 * answer.value, rel=1e-13)


def test_the_branches_of_two_states_meet() -> None:
    edge = 0.5 / (2 - 0.45)
    below, above = (rm.problems.two_state_value(0.5, 0.9, edge * (1 + d)) for d in (-1e-12, 1e-12))
    assert below == pytest.approx(above, rel=1e-11)


@pytest.mark.parametrize("sizes", [(60, 4, 5), (6, 2, 6), (7, 3, 1), (1000, 2, 3)])
def test_garnet(sizes: tuple[int, int, int]) -> None:
    n, m, k = sizes
    mdp = rm.problems.garnet(n, m, k, 0.9, seed=4)
    assert (mdp.n_states, mdp.n_actions, mdp.nnz) == (n, m, n * m * k)
    rows = mdp.indices.reshape(-1, k)
    assert all(len(set(row)) == k for row in rows.tolist())
    assert rows.min() >= 0
    assert rows.max() < n
    assert np.all((mdp.rewards >= 0) & (mdp.rewards <= 1))
    assert mdp != rm.problems.garnet(n, m, k, 0.9, seed=5)


def test_garnet_reaches_all_states_about_alike() -> None:
    counts = np.bincount(rm.problems.garnet(50, 20, 5, 0.9, seed=0).indices, minlength=50)
    # 5,000 draws without replacement in rows, 100 per state with a deviation below 10: five deviations.
    assert np.abs(counts - 100).max() <= 50


@pytest.mark.parametrize("capacity", [1, 3, 8])
def test_inventory(capacity: int) -> None:
    mdp = rm.problems.inventory(capacity, mean_demand=2.0)
    counts = np.diff(mdp.state_ptr)
    assert counts.tolist() == list(range(capacity + 1, 0, -1))
    assert mdp.rewards_on_successors
    p = dense(mdp)
    for s, a in zip(mdp.states, mdp.actions, strict=True):
        assert p[s, a, s + a + 1 :].sum() == 0.0  # stock never grows by itself
    # Nobody buys with probability exp(-2): one unit stays, which costs 0.1.
    assert p[1, 0, 1] == pytest.approx(np.exp(-2.0), rel=1e-14)
    first = mdp.indptr[mdp.pair(1, 0)]
    assert mdp.rewards[first : first + 2].tolist() == pytest.approx([4.0, -0.1])


def test_grid_world() -> None:
    mdp = rm.problems.grid_world(5, slip=0.2)
    p = dense(mdp)[:, :, :25]
    assert p[12, 0, [7, 13, 17, 11]].tolist() == pytest.approx([0.85, 0.05, 0.05, 0.05])
    assert p[0, 0, 0] == pytest.approx(0.9)  # two walls
    assert np.all((mdp.rewards >= 0) & (mdp.rewards <= 1))
    assert mdp.action_names == ("up", "right", "down", "left")
    assert rm.problems.grid_world(5, slip=0.0).nnz == 100


def test_machine_replacement() -> None:
    mdp = rm.problems.machine_replacement(6)
    p = dense(mdp)
    assert np.all(p[:, 2, 0] == 1.0)
    assert p[5, 0, 5] == 1.0
    failures = p[:4, 0, 5]
    assert np.all(np.diff(failures) > 0)
    assert mdp.rewards.max() <= 0


def test_a_pump_fails_more_often_as_it_wears() -> None:
    mdp = rm.problems.pump(failure=0.1, growth=2.0, n_levels=5)
    p = dense(mdp)
    assert p[:5, 0, 5] == pytest.approx([0.1, 0.2, 0.4, 0.8, 0.9])
    assert p[3, 0, [3, 4]] == pytest.approx([0.2 * 0.55, 0.2 * 0.45])  # the highest level of wear is the last
    assert mdp.actions[mdp.states == 5].tolist() == [2]
    assert p[5, 2, 0] == 1.0


def test_river_swim() -> None:
    p = dense(rm.problems.river_swim(4))
    assert np.all(p[[1, 2, 3], 0, [0, 1, 2]] == 1.0)
    assert p[1, 1, :3].tolist() == [0.05, 0.6, 0.35]


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (rm.problems.chain, {"stay": 1.2}, r"stay must lie in \[0, 1\]: got 1.2"),
        (rm.problems.chain, {"restart": -0.1}, r"restart must lie in \[0, 1\]: got -0.1"),
        (rm.problems.chain, {"discount": 1.5}, r"discount must lie in \[0, 1\]: got 1.5"),
        (rm.problems.two_state, {"stay": float("nan"), "discount": 0.5}, "stay must be finite"),
        (
            rm.problems.garnet,
            {"n_states": 2, "n_actions": 1, "n_successors": 3, "discount": 0.5, "seed": 0},
            "at most n_states",
        ),
        (
            rm.problems.garnet,
            {"n_states": 0, "n_actions": 1, "n_successors": 1, "discount": 0.5, "seed": 0},
            "n_states must be at least 1",
        ),
        (rm.problems.inventory, {"capacity": 0}, "capacity must be at least 1"),
        (rm.problems.inventory, {"mean_demand": 0.0}, "mean_demand must be positive"),
        (rm.problems.grid_world, {"size": 0}, "size must be at least 1"),
        (rm.problems.grid_world, {"size": 2, "slip": 2.0}, "slip must lie in"),
        (rm.problems.river_swim, {"n_states": 1}, "n_states must be at least 2"),
        (rm.problems.machine_replacement, {"n_ages": 2}, "n_ages must be at least 3"),
        (rm.problems.pump, {"failure": 1.5}, r"failure must lie in \[0, 1\]: got 1.5"),
        (rm.problems.pump, {"growth": 0.5}, "growth must be at least 1: got 0.5"),
    ],
)
def test_sizes_that_cannot_be(make: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**arguments)
