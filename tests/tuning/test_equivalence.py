"""Theorem 3.1: levels of the two forms that give the same value, and the limits where only 0 or inf match."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import robustmdp as rm

# The value is known to 1e-10, the level to 1e-8 of itself, and values move by at most their range with the level.
SAME = 1e-7
DIVERGENCES = (rm.ChiSquare(), rm.KL(), rm.TotalVariation(), rm.Burg(), rm.Hellinger(), rm.CressieRead(-1.0))
WORLDS = {
    "chain": rm.problems.chain(),
    "restarting chain": rm.problems.chain(restart=0.5),
    "inventory": rm.problems.inventory(6),
}

each_divergence = pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
each_world = pytest.mark.parametrize("name", WORLDS)


def starts(mdp: rm.MDP) -> list[Any]:
    return [0, np.random.default_rng(0).dirichlet(np.ones(mdp.n_states))]


def value(mdp: rm.MDP, ambiguity: Any, initial: Any) -> float:
    solution = rm.solve(mdp, ambiguity, tol=1e-10)
    return float(solution.value[initial] if np.ndim(initial) == 0 else initial @ solution.value)


def same(one: float, other: float) -> bool:
    return abs(one - other) <= SAME * max(1.0, abs(one))


@each_divergence
@each_world
def test_matching_radius(name: str, divergence: Any) -> None:
    mdp, penalized = WORLDS[name], rm.Penalized(divergence, 0.8)
    for initial in starts(mdp):
        radius = rm.matching_radius(mdp, penalized, initial)
        assert 0.0 < radius < np.inf
        assert same(value(mdp, rm.Constrained(divergence, radius), initial), value(mdp, penalized, initial))


@each_divergence
@each_world
def test_matching_weight(name: str, divergence: Any) -> None:
    mdp, constrained = WORLDS[name], rm.Constrained(divergence, 0.05)
    for initial in starts(mdp):
        weight = rm.matching_weight(mdp, constrained, initial)
        assert 0.0 < weight < np.inf
        assert same(value(mdp, rm.Penalized(divergence, weight), initial), value(mdp, constrained, initial))


@pytest.mark.parametrize("divergence", [rm.ChiSquare(), rm.KL()], ids=repr)
def test_there_and_back(divergence: Any) -> None:
    mdp = rm.problems.chain()
    for weight in (0.1, 1.0, 30.0):
        radius = rm.matching_radius(mdp, rm.Penalized(divergence, weight), 0)
        # Both searches end at a value within 1e-10; the value moves at least by 1e-5 per relative change of the level.
        assert rm.matching_weight(mdp, rm.Constrained(divergence, radius), 0) == pytest.approx(weight, rel=1e-4)


def test_the_level_depends_on_the_start() -> None:
    mdp, penalized = rm.problems.chain(), rm.Penalized(rm.ChiSquare(), 1.0)
    first, later = (rm.matching_radius(mdp, penalized, s) for s in (0, 7))
    assert abs(first - later) > 1e-3 * first
    assert rm.matching_radius(mdp, penalized, np.eye(10)[7]) == later


@each_divergence
def test_limits(divergence: Any) -> None:
    mdp = rm.problems.chain()
    assert rm.matching_radius(mdp, rm.Penalized(divergence, np.inf), 0) == 0.0
    assert rm.matching_weight(mdp, rm.Constrained(divergence, 0.0), 0) == np.inf
    assert rm.matching_weight(mdp, rm.Constrained(divergence, np.inf), 0) == 0.0
    radius = rm.matching_radius(mdp, rm.Penalized(divergence, 0.0), 0)
    if np.isfinite(divergence.value_at_zero):
        # The smallest ball that holds the worst point mass: m f(1/m) + (1 - m) f(0) at the pair that needs the most.
        assert 0.0 < radius < np.inf
        assert same(value(mdp, rm.Constrained(divergence, radius), 0), value(mdp, rm.Penalized(divergence, 0.0), 0))
        assert not same(
            value(mdp, rm.Constrained(divergence, 0.9 * radius), 0), value(mdp, rm.Penalized(divergence, 0.0), 0)
        )
        assert rm.matching_weight(mdp, rm.Constrained(divergence, 1.01 * radius), 0) == 0.0
    else:
        assert radius > 1.0  # no ball of finite size holds it: the first whose value cannot be told from the minimum


def test_total_variation_has_weights_that_change_nothing() -> None:
    # E min(v, min v + weight) is nominal once the weight is the span of v (paper-notes 10).
    mdp = rm.problems.chain()
    assert rm.matching_radius(mdp, rm.Penalized(rm.TotalVariation(), 100.0), 0) == 0.0
    assert rm.matching_weight(mdp, rm.Constrained(rm.TotalVariation(), 1.0), 0) == 0.0
    assert rm.matching_weight(mdp, rm.Constrained(rm.TotalVariation(), 7.0), 0) == 0.0


@pytest.mark.parametrize("radius", [10.0, 100.0])
def test_large_balls_match_no_penalty(radius: float) -> None:
    assert rm.matching_weight(rm.problems.two_state(0.5, 0.9), rm.Constrained(rm.ChiSquare(), radius), 0) == 0.0


@pytest.mark.parametrize(
    ("match", "ambiguity", "message"),
    [
        (rm.matching_radius, rm.Constrained(rm.KL(), 1.0), r"must be Penalized\(...\) to have a matching radius"),
        (rm.matching_radius, rm.Nominal(), r"must be Penalized\(...\) to have a matching radius"),
        (rm.matching_weight, rm.Penalized(rm.KL(), 1.0), r"must be Constrained\(...\) to have a matching weight"),
        (rm.matching_weight, rm.Nominal(), r"must be Constrained\(...\) to have a matching weight"),
    ],
)
def test_wrong_forms(match: Any, ambiguity: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        match(rm.problems.chain(), ambiguity, 0)


@pytest.mark.parametrize(
    ("match", "form", "name"),
    [(rm.matching_radius, rm.Penalized, "weight"), (rm.matching_weight, rm.Constrained, "radius")],
)
def test_one_number_only(match: Any, form: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be one number to have a match: got an array"):
        match(rm.problems.chain(), form(rm.KL(), np.ones((10, 2))), 0)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        (10, r"initial must be a state in 0..9: got 10"),
        (-1, r"initial must be a state in 0..9: got -1"),
        (np.full(10, 0.2), "initial must sum to 1: got 2"),
        (np.ones(3) / 3, r"initial must be a state or have shape \(10,\): got \(3,\)"),
        (np.r_[2.0, -1.0, np.zeros(8)], "initial must be at least 0"),
        (np.r_[np.nan, np.ones(9) / 9], "initial must"),
    ],
)
def test_starts_that_cannot_be(initial: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rm.matching_radius(rm.problems.chain(), rm.Penalized(rm.KL(), 1.0), initial)


def test_nothing_matches_without_a_future() -> None:
    """The edge of the search, 1e299, was returned as a match."""
    mdp = rm.problems.machine_replacement(discount=0.0)
    with pytest.raises(ValueError, match=r"^discount must be above 0 for levels to match"):
        rm.matching_weight(mdp, rm.Constrained(rm.KL(), 0.1), 0)


@pytest.mark.parametrize(("scale", "constant"), [(1e-10, 0.0), (1e8, 0.0), (1.0, 1e8), (1e-3, -1e4)])
@pytest.mark.parametrize("name", ["chain", "inventory"])
def test_neither_the_zero_nor_the_unit_of_rewards_matters(name: str, scale: float, constant: float) -> None:
    """Rewards of 1e-10 once gave radius 0, and 1e8 more for every step one that was 6 % off."""
    mdp = WORLDS[name]
    other = mdp.with_rewards(scale * (mdp.rewards + constant))
    # Rewards are rounded to 2e-16 of the constant, and the level moves at most 1e4 times as much as they do.
    near = max(SAME, 1e4 * 2e-16 * abs(constant))
    radius = rm.matching_radius(mdp, rm.Penalized(rm.KL(), 0.8), 0)
    assert rm.matching_radius(other, rm.Penalized(rm.KL(), 0.8 * scale), 0) == pytest.approx(radius, rel=near)
    weight = rm.matching_weight(mdp, rm.Constrained(rm.KL(), 0.05), 0)
    assert rm.matching_weight(other, rm.Constrained(rm.KL(), 0.05), 0) == pytest.approx(scale * weight, rel=near)
