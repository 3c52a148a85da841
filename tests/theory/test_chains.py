"""Stationary distributions and mixing against explicit matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp import theory


def pair_matrix(mdp: rm.MDP, policy: np.ndarray, start: int = 0) -> np.ndarray:
    """P((s', a') | (s, a)) as a dense matrix, the naive way; an end leads to the state `start`."""
    size = mdp.n_pairs
    matrix = np.zeros((size, size))
    for pair in range(size):
        for entry in range(mdp.indptr[pair], mdp.indptr[pair + 1]):
            following = start if mdp.indices[entry] == mdp.n_states else int(mdp.indices[entry])
            for other in range(mdp.state_ptr[following], mdp.state_ptr[following + 1]):
                matrix[pair, other] += mdp.probabilities[entry] * policy[following, mdp.actions[other]]
    return matrix


def two(leave: float, back: float) -> rm.MDP:
    return rm.MDP.from_arrays([[[1 - leave, leave]], [[back, 1 - back]]], [0.0, 1.0], 0.9)


def ring(size: int, stay: float) -> rm.MDP:
    transitions = stay * np.eye(size) + (1 - stay) * np.roll(np.eye(size), 1, axis=1)
    return rm.MDP.from_arrays(transitions[:, None, :], np.zeros(size), 0.9)


def episodic() -> rm.MDP:
    """Three states in a row; the last one ends, and one action is missing in the middle."""
    state, action, following = [0, 0, 0, 1, 2, 2], [0, 0, 1, 0, 0, 1], [0, 1, 2, 2, 3, 0]
    return rm.MDP.from_rows(state, action, following, [0.5, 0.5, 1, 1, 1, 1], np.zeros(6), 0.9, n_states=3)


def shared_rows() -> rm.MDP:
    """Rows 1 and 2 hold ends beside real successors, row 1 two of them; all states are visited from any start."""
    state, following = [0, 0, 1, 1, 1, 1, 2, 2, 2], [1, 0, 2, 0, 1, 1, 0, 0, 2]
    probabilities = [0.75, 0.25, 0.25, 0.125, 0.5, 0.125, 0.25, 0.25, 0.5]
    ends = [False, False, False, True, True, False, True, False, False]
    return rm.MDP.from_rows(state, [0] * 9, following, probabilities, np.arange(9.0), 0.9, terminated=ends)


def two_parts(*, ends: bool) -> rm.MDP:
    """States 0, 1 and states 2, 3 with no way between; the returns to 0 and to 2 may be ends of episodes instead.

    In the first part d(0) = d(1)/2, so d = (1/3, 2/3); in the second d(2) = 3/4 d(3), so d = (3/7, 4/7).
    """
    state, following, probabilities = [0, 1, 1, 2, 3, 3], [1, 0, 1, 3, 2, 3], [1.0, 0.5, 0.5, 1.0, 0.75, 0.25]
    terminated = [False, ends, False, False, ends, False]
    return rm.MDP.from_rows(state, [0] * 6, following, probabilities, np.zeros(6), 0.9, terminated=terminated)


def fork() -> rm.MDP:
    """From state 0 into state 1 or state 2, which are never left."""
    return rm.MDP.from_arrays([[[0.0, 0.5, 0.5]], [[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]], np.zeros(3), 0.9)


WORLDS: dict[str, tuple[rm.MDP, Any]] = {
    "chain": (rm.problems.chain(restart=0.5), None),
    "lopsided": (rm.problems.chain(restart=0.5), [0.05, 0.95]),
    "rare": (rm.problems.chain(restart=0.01), [0.3, 0.7]),
    "garnet": (rm.problems.garnet(12, 3, 4, 0.9, seed=1), None),
    "sparse garnet": (rm.problems.garnet(30, 2, 2, 0.9, seed=5), np.random.default_rng(0).dirichlet([1, 1], 30)),
    "river": (rm.problems.river_swim(), None),
    "episodic": (episodic(), None),
    "shared rows": (shared_rows(), None),
}
each_world = pytest.mark.parametrize("name", WORLDS)


def policy_table(mdp: rm.MDP, behaviour: Any) -> np.ndarray:
    if behaviour is None:
        return mdp.table(1.0 / np.diff(mdp.state_ptr)[mdp.states], fill=0.0)
    return np.broadcast_to(np.asarray(behaviour, dtype=float), (mdp.n_states, mdp.n_actions))


@each_world
def test_stationarity(name: str) -> None:
    mdp, behaviour = WORLDS[name]
    shares = theory.stationary_distribution(mdp, behaviour)
    flat = mdp.pairs(shares)
    assert flat.sum() == pytest.approx(1.0, abs=1e-14)
    assert flat @ pair_matrix(mdp, policy_table(mdp, behaviour)) == pytest.approx(flat, abs=1e-14)
    assert theory.occupancy(mdp, behaviour) == (flat.min(), flat.max())


def test_known_distributions() -> None:
    assert theory.stationary_distribution(rm.problems.chain(restart=0.5)) == pytest.approx(np.full((10, 2), 0.05))
    assert theory.stationary_distribution(two(0.1, 0.3)).ravel() == pytest.approx([0.75, 0.25], rel=1e-14)
    # Rare to the last digit: the solution of a 2-state chain is back/(leave + back).
    assert theory.stationary_distribution(two(1e-12, 0.5))[1, 0] == pytest.approx(1e-12 / (0.5 + 1e-12), rel=1e-12)
    assert theory.stationary_distribution(two(1e-18, 3e-18)).ravel() == pytest.approx([0.75, 0.25], rel=1e-12)


def test_transient_pairs_are_never_visited() -> None:
    shares = theory.stationary_distribution(rm.problems.chain())
    assert shares[:9].max() == 0.0
    assert shares[9] == pytest.approx([0.5, 0.5])
    assert theory.occupancy(rm.problems.chain()) == (0.0, pytest.approx(0.5))


def test_an_ended_episode_goes_on_in_the_start_state() -> None:
    mdp = episodic()
    from_first = theory.stationary_distribution(mdp)
    from_last = theory.stationary_distribution(mdp, start=2)
    assert from_first[1, 1] == 0.0  # not available
    assert from_first[2].sum() < from_last[2].sum()


@pytest.mark.parametrize("start", [0, 1, 2])
def test_rows_that_hold_an_end_and_a_successor(start: int) -> None:
    mdp = shared_rows()
    before = mdp.probabilities.copy()
    matrix = pair_matrix(mdp, policy_table(mdp, None), start)
    shares = theory.stationary_distribution(mdp, start=start)
    assert shares.ravel() @ matrix == pytest.approx(shares.ravel(), abs=1e-14)
    assert theory.occupancy(mdp, start=start) == (shares.min(), shares.max())
    constant, rate = theory.mixing(mdp, start=start)
    power = np.eye(3)
    for t in range(50):
        assert 0.5 * np.abs(power - shares.ravel()).sum(axis=1).max() <= constant * rate**t + 1e-12
        power = power @ matrix
    assert mdp.probabilities.tolist() == before.tolist()


def test_a_frozen_lake() -> None:
    # Slipping on the ice ends the episode with a probability: that row holds the end and real successors.
    pytest.importorskip("gymnasium")
    lake = rm.MDP.from_gymnasium("FrozenLake-v1", 0.95)
    shares = lake.pairs(theory.stationary_distribution(lake))
    matrix = pair_matrix(lake, policy_table(lake, None))
    assert shares @ matrix == pytest.approx(shares, abs=1e-14)
    # An episode ends on the way into a hole or the goal, so that no action is ever taken there.
    assert theory.occupancy(lake) == (0.0, shares.max())
    assert np.flatnonzero(lake.table(shares, fill=0.0).sum(axis=1) == 0.0).tolist() == [5, 7, 11, 12, 15]
    assert 0.0 < theory.mixing(lake).rate < 1.0


@pytest.mark.parametrize("ends", [False, True])
def test_the_start_decides_which_part_is_visited(ends: bool) -> None:
    mdp = two_parts(ends=ends)
    first, second = (theory.stationary_distribution(mdp, start=start).ravel() for start in (0, 2))
    assert first == pytest.approx([1 / 3, 2 / 3, 0.0, 0.0], rel=1e-14)
    assert second == pytest.approx([0.0, 0.0, 3 / 7, 4 / 7], rel=1e-14)
    assert theory.occupancy(mdp) == theory.occupancy(mdp, start=0) == pytest.approx((0.0, 2 / 3))
    assert theory.occupancy(mdp, start=2) == pytest.approx((0.0, 4 / 7))
    # As in test_two_states: 1 - leave - back is -1/2 in the first part and -3/4 in the second.
    assert theory.mixing(mdp, start=0) == pytest.approx((2 / 3, 0.5), rel=1e-9)
    assert theory.mixing(mdp, start=2) == pytest.approx((4 / 7, 0.75), rel=1e-9)


def test_an_end_leads_to_the_start_within_a_part() -> None:
    # State 1 stays or ends: an episode that begins there never leaves it, one without ends returns to state 0.
    assert theory.stationary_distribution(two_parts(ends=True), start=1).ravel().tolist() == [0.0, 1.0, 0.0, 0.0]
    assert theory.occupancy(two_parts(ends=False), start=1) == pytest.approx((0.0, 2 / 3))


def test_a_start_on_the_way_into_one_of_two_classes() -> None:
    assert theory.stationary_distribution(fork(), start=1).ravel().tolist() == [0.0, 1.0, 0.0]
    assert theory.occupancy(fork(), start=2) == (0.0, 1.0)


def test_pairs_that_the_behaviour_never_takes_do_not_slow_the_mixing() -> None:
    # Action 1 leads from both states into a third that is never left, but it is never taken.
    away = [0.0, 0.0, 1.0]
    mdp = rm.MDP.from_arrays([[[0.9, 0.1, 0.0], away], [[0.3, 0.7, 0.0], away], [away, away]], np.zeros(3), 0.9)
    assert theory.stationary_distribution(mdp, [1.0, 0.0])[:, 0] == pytest.approx([0.75, 0.25, 0.0])
    assert theory.mixing(mdp, [1.0, 0.0]) == pytest.approx((0.75, 0.6), rel=1e-9)


def test_a_periodic_chain_is_stationary_but_does_not_mix() -> None:
    assert theory.stationary_distribution(ring(6, 0.0)).ravel() == pytest.approx(np.full(6, 1 / 6))
    with pytest.raises(ValueError, match="must give an aperiodic chain for it to mix: its period is 6"):
        theory.mixing(ring(6, 0.0))


@pytest.mark.parametrize("size", [3000, 40_000])
def test_large_slow_chains(size: int) -> None:
    # Up with 0.3, down with 0.2, at the ends stay: d(i) is proportional to 1.5^i, far from uniform and slow to reach.
    walk = np.arange(size)
    up, down = np.minimum(walk + 1, size - 1), np.maximum(walk - 1, 0)
    mdp = rm.MDP.from_rows(
        np.tile(walk, 3),
        np.zeros(3 * size, dtype=int),
        np.concatenate([up, down, walk]),
        np.repeat([0.3, 0.2, 0.5], size),
        np.zeros(3 * size),
        0.9,
    )
    shares = theory.stationary_distribution(mdp).ravel()
    assert shares[-20:] == pytest.approx(1.5 ** np.arange(-20.0, 0.0) * 0.5, rel=1e-9)


def test_large_fast_chains() -> None:
    mdp = rm.problems.garnet(20_000, 5, 5, 0.9, seed=0)
    flat = mdp.pairs(theory.stationary_distribution(mdp))
    states = np.add.reduceat(flat, mdp.state_ptr[:-1])
    following = np.bincount(mdp.indices, np.repeat(flat, np.diff(mdp.indptr)) * mdp.probabilities, mdp.n_states)
    assert np.abs(following - states).sum() < 1e-12


@each_world
def test_the_mixing_bound_holds(name: str) -> None:
    mdp, behaviour = WORLDS[name]
    matrix = pair_matrix(mdp, policy_table(mdp, behaviour))
    shares = mdp.pairs(theory.stationary_distribution(mdp, behaviour))
    constant, rate = theory.mixing(mdp, behaviour)
    assert 0.0 < rate < 1.0
    power = np.eye(mdp.n_pairs)
    for t in range(201):
        distance = 0.5 * np.abs(power - shares).sum(axis=1).max()
        assert distance <= constant * rate**t + 1e-12
        power = power @ matrix
    # No bound decays faster than the second eigenvalue; ours must not be far from it either.
    second = np.sort(np.abs(np.linalg.eigvals(matrix)))[-2]
    assert rate >= second - 1e-9
    assert constant / (1 - rate) <= 20.0 / (1 - second)


@pytest.mark.parametrize(("leave", "back"), [(0.1, 0.3), (0.5, 0.25), (0.9, 0.8), (0.01, 0.02)])
def test_two_states(leave: float, back: float) -> None:
    # TV_t = max(d) |1 - leave - back|^t, to the letter.
    mixed = theory.mixing(two(leave, back))
    assert mixed.rate == pytest.approx(abs(1 - leave - back), rel=1e-9)
    assert mixed.constant == pytest.approx(max(leave, back) / (leave + back), rel=1e-9)
    assert mixed.time == pytest.approx(np.log(4 * mixed.constant) / -np.log(mixed.rate))


def test_a_slow_ring() -> None:
    # Eigenvalues stay + (1 - stay) exp(2 pi i k/n); the chain needs some n^2 steps.
    size, stay = 60, 0.999
    mixed = theory.mixing(ring(size, stay))
    second = abs(stay + (1 - stay) * np.exp(2j * np.pi / size))
    assert second <= mixed.rate
    assert mixed.constant / (1 - mixed.rate) <= 2.0 / (1 - second)


def test_one_pair_has_nothing_to_forget() -> None:
    mixed = theory.mixing(rm.MDP.from_arrays([[[1.0]]], [1.0], 0.9))
    assert 0.0 < mixed.constant < 1e-9
    assert 0.0 < mixed.rate < 1.0


def test_independent_draws_mix_at_once() -> None:
    mixed = theory.mixing(two(0.4, 0.6))
    assert mixed.constant * mixed.rate <= 1e-11


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: theory.stationary_distribution(fork()),
            "must lead from state 0 into one recurrent class: got 2, of which one holds state 1 and another state 2",
        ),
        (lambda: theory.mixing(rm.problems.garnet(300, 4, 5, 0.9, 0)), "at most 1000 pairs .* got 1,200"),
        (lambda: theory.mixing(two(1e-18, 1e-18)), "must let the chain mix: after 1,073,741,824 steps it still"),
        (lambda: theory.occupancy(rm.problems.chain(), [0.5, 0.6]), "must sum to 1 .* got 1.1 and 0 in s1"),
        (lambda: theory.occupancy(rm.problems.chain(), [1.5, -0.5]), "must be at least 0"),
        (lambda: theory.occupancy(rm.problems.chain(), [1.0]), r"must have shape \(2,\) or \(10, 2\): got \(1,\)"),
        (
            lambda: theory.occupancy(episodic(), [0.5, 0.5]),
            "over the available actions, 0 elsewhere: got 0.5 and 0.5 in state 1",
        ),
        (lambda: theory.occupancy(rm.problems.chain(), start=10), "start must be a state in 0..9: got 10"),
        (lambda: theory.mixing(rm.problems.chain(), start=-1), "start must be a state in 0..9: got -1"),
    ],
)
def test_what_cannot_be(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("start", [0.5, "0", True, None])
def test_a_start_is_a_whole_number(start: Any) -> None:
    for function in (theory.stationary_distribution, theory.occupancy, theory.mixing):
        with pytest.raises(TypeError, match="start must be a whole number: got"):
            function(rm.problems.chain(), start=start)
