"""The referee of sums: closed forms, and guesses that must prove nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import robustmdp as rm
from oracles import certified

HALF = mpf(1) / 2
# One state that goes on or ends with 1/2 each, and may wait where that is free.
STEP = rm.MDP.from_rows([0, 0], [0, 0], [0, 1], [0.5, 0.5], [1.0, 1.0], 1.0, n_states=1)
MAYBE = rm.MDP.from_rows([0, 0, 0], [0, 0, 1], [0, 1, 0], [0.5, 0.5, 1.0], [1.0, 1.0, 0.0], 1.0, n_states=1)
COSTS = MAYBE.with_rewards(-MAYBE.rewards)


def play(mdp: rm.MDP, ambiguity: Any, guess: float, chain: rm.MDP, sign: int) -> certified.Bounds | None:
    game = certified.Game(mdp, lambda s, pair: ambiguity, {}, sign)
    return certified.run_until_end(game, np.array([guess]), chain, None)


def chain_of(mdp: rm.MDP, stay: float) -> rm.MDP:
    """Nature's answer: the first row stays with this probability."""
    probabilities = mdp.probabilities.copy()
    probabilities[:2] = stay, 1.0 - stay
    return mdp.with_probabilities(probabilities)


def entropic(w: float, sign: float) -> Any:
    """v = sign + w log(E exp(v/w)) for y = exp(v/w)."""
    half = HALF * mp.exp(sign / mpf(w))
    return mpf(w) * mp.log(half / (1 - half))


@pytest.mark.parametrize(("mdp", "sign"), [(STEP, 0), (STEP, 1), (MAYBE, 1)])
@pytest.mark.parametrize(
    ("ambiguity", "truth"),
    [
        (rm.Nominal(), mpf(2)),
        (rm.L1(0.2), 1 / (HALF + mpf(0.2) / 2)),
        (rm.Optimistic(rm.L1(0.2)), 1 / (HALF - mpf(0.2) / 2)),
        (rm.Penalized(rm.KL(), 2.0), entropic(-2.0, 1.0)),
        (rm.Optimistic(rm.Penalized(rm.KL(), 2.0)), entropic(2.0, 1.0)),
        (rm.Constrained(rm.ChiSquare(), 0.04), 1 / (HALF + mp.sqrt(mpf(0.04)) / 2)),
    ],
    ids=str,
)
def test_closed_forms(mdp: rm.MDP, sign: int, ambiguity: Any, truth: Any) -> None:
    stay = rm.worst_case(ambiguity, [0.5, 0.5], [float(truth), 0.0]).distribution[0]
    found = play(mdp, ambiguity, float(truth), chain_of(mdp, stay), sign)
    assert found is not None
    assert found.lower[0] <= truth <= found.upper[0]
    assert found.upper[0] - found.lower[0] <= 1e-11


@pytest.mark.parametrize("error", [1e-6, 1e-3, 1.0])
def test_wrong_guesses_are_mended_or_prove_nothing(error: float) -> None:
    truth = entropic(-2.0, 1.0)
    found = play(STEP, rm.Penalized(rm.KL(), 2.0), float(truth) + error, STEP, 0)
    assert found is None or found.lower[0] <= truth <= found.upper[0]


def test_waiting_is_worth_nothing() -> None:
    found = play(COSTS, rm.L1(0.2), 0.0, COSTS, -1)
    assert found is not None
    assert found.lower[0] == found.upper[0] == 0


def test_horizons_in_closed_form() -> None:
    """1 + 1/2 + 1/4, or with 0.4 to stay; and nothing for who waits."""
    for ambiguity, stay in ((rm.Nominal(), 0.5), (rm.L1(0.2), 0.4)):
        game = certified.Game(MAYBE, lambda s, pair, limit=ambiguity: limit, {}, 0)  # type: ignore[misc]
        stages = certified.run_horizon(game, np.zeros(1), 3, None)
        assert float(stages[0].lower[0]) == pytest.approx(1 + stay + stay**2, rel=1e-15)
        assert stages[0].upper[0] - stages[0].lower[0] <= 1e-25
        waiting = certified.run_horizon(game, np.ones(1), 3, [np.array([0.0, 1.0])] * 3)
        assert float(waiting[0].lower[0]) == pytest.approx(1.0, rel=1e-15)
