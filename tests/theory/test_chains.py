"""Stationary distributions and mixing against explicit matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp import theory


def pair_matrix(mdp: rm.MDP, policy: np.ndarray) -> np.ndarray:
    """P((s', a') | (s, a)) as a dense matrix, the naive way; an end leads to state 0."""
    size = mdp.n_pairs
    matrix = np.zeros((size, size))
    for pair in range(size):
        for entry in range(mdp.indptr[pair], mdp.indptr[pair + 1]):
            following = int(mdp.indices[entry]) % mdp.n_states
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


WORLDS: dict[str, tuple[rm.MDP, Any]] = {
    "chain": (rm.problems.chain(restart=0.5), None),
    "lopsided": (rm.problems.chain(restart=0.5), [0.05, 0.95]),
    "rare": (rm.problems.chain(restart=0.01), [0.3, 0.7]),
    "garnet": (rm.problems.garnet(12, 3, 4, 0.9, seed=1), None),
    "sparse garnet": (rm.problems.garnet(30, 2, 2, 0.9, seed=5), np.random.default_rng(0).dirichlet([1, 1], 30)),
    "river": (rm.problems.river_swim(), None),
    "episodic": (episodic(), None),
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
        (lambda: theory.stationary_distribution(two(0.0, 0.0)), "one recurrent class: got 2, of which one holds state"),
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
    ],
)
def test_what_cannot_be(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
