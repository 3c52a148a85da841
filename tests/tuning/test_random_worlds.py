"""Random worlds lie on all sides of the model: the mean of a row is the row, its mean divergence what was asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, ndtri, psi

import robustmdp as rm
from oracles.random_rows import NAMED
from robustmdp.ambiguity.distance import distance
from robustmdp.tuning.dirichlet import concentration, draw

MACHINE = rm.problems.machine_replacement()
GARNET = rm.problems.garnet(12, 2, 4, 0.9, seed=0)
LEVEL = 1e-3  # of each test here: the chance that a sound sampler fails it, were the seeds not fixed
each_divergence = pytest.mark.parametrize("divergence", NAMED, ids=repr)


def rows_of(mdp: rm.MDP) -> list[np.ndarray]:
    return np.split(mdp.probabilities, mdp.indptr[1:-1])


def largest_score(number: int) -> float:
    """Beyond which the largest of so many standard normal numbers lies with probability LEVEL (Bonferroni)."""
    return float(ndtri(1.0 - LEVEL / (2.0 * number)))


@pytest.mark.parametrize("radius", [0.0, 1e-6, 0.05, 0.7, math.inf])
@each_divergence
def test_worlds_are_models_with_the_same_successors(divergence: Any, radius: float) -> None:
    for _, world in rm.worlds.RandomKernels(divergence, radius, count=6).worlds(GARNET, None):
        assert np.array_equal(world.indices, GARNET.indices)
        assert np.array_equal(world.rewards, GARNET.rewards)
        np.testing.assert_allclose(np.add.reduceat(world.probabilities, world.indptr[:-1]), 1.0, atol=1e-12)
        assert np.array_equal(world.probabilities, GARNET.probabilities) == (radius == 0.0)


@pytest.mark.parametrize(
    ("divergence", "radius"),
    [(rm.KL(), 0.02), (rm.ChiSquare(), 0.5), (rm.TotalVariation(), 0.3), (rm.KL(), math.inf)],
)
def test_the_mean_of_a_row_is_the_row(divergence: Any, radius: float) -> None:
    """A z-test for each transition. Rows once went towards the centre of the simplex, all worlds on one side."""
    count = 1000
    family = rm.worlds.RandomKernels(divergence, radius, count, seed=1)
    drawn = np.array([world.probabilities for _, world in family.worlds(GARNET, None)])
    common = GARNET.probabilities > 0.02  # a mean of 1,000 is nearly normal
    score = (drawn.mean(axis=0) - GARNET.probabilities) / (drawn.std(axis=0) / np.sqrt(count))
    assert np.abs(score[common]).max() <= largest_score(int(common.sum()))


@pytest.mark.parametrize("radius", [1e-4, 0.03, 0.3])
@each_divergence
def test_the_mean_divergence_is_the_share_of_the_radius(divergence: Any, radius: float) -> None:
    """A z-test over 400 rows that are alike, whose entries are not small."""
    row = np.array([0.5, 0.3, 0.2])
    many = rm.MDP.from_rows(
        np.repeat(np.arange(400), 3), [0] * 1200, np.tile([0, 1, 2], 400), np.tile(row, 400), [0.0] * 1200, 0.9
    )  # fmt: skip
    for number, (_, world) in enumerate(
        rm.worlds.RandomKernels(divergence, radius, count=4, seed=9).worlds(many, None)
    ):
        target = radius * np.random.default_rng([9, number]).random()
        apart = distance(divergence, np.reshape(world.probabilities, (400, 3)), row)
        score = (apart.mean() - target) / (apart.std() / 20.0)
        assert abs(score) <= largest_score(4)


def mean_divergence(name: str, p: np.ndarray, a: float) -> float:
    """E D(Dirichlet(a p) || p) in closed form."""
    alpha, beta = a * p, a * (1.0 - p)
    if name == "chi-square":
        return (len(p) - 1.0) / (a + 1.0)
    if name == "Kullback-Leibler":
        return float(p @ (psi(alpha + 1.0) - psi(a + 1.0) - np.log(p)))
    if name == "Burg":
        return float(p @ (np.log(p) - psi(alpha) + psi(a)))
    if name == "Hellinger":
        roots = np.exp(gammaln(alpha + 0.5) - gammaln(alpha) + gammaln(a) - gammaln(a + 0.5))
        return float(2.0 - 2.0 * np.sqrt(p) @ roots)
    # Total variation: half of the mean absolute deviations of beta distributions.
    logs = alpha * np.log(alpha) + beta * np.log(beta) - (a + 1.0) * np.log(a)
    return float(np.exp(logs - gammaln(alpha) - gammaln(beta) + gammaln(a)).sum())


@pytest.mark.parametrize("target", [1e-3, 0.03, 0.3])
@pytest.mark.parametrize("name", ["chi-square", "Kullback-Leibler", "Burg", "Hellinger", "total variation"])
def test_concentrations_agree_with_closed_forms(name: str, target: float) -> None:
    """To 1 %, as the table is interpolated; of rows whose entries stay above the least number that is drawn."""
    (divergence,) = (each for each in NAMED if each.name == name)
    rng = np.random.default_rng(0)
    rows = [
        np.array([0.5, 0.5]),
        np.array([0.7, 0.25, 0.05]),
        rng.dirichlet(np.full(10, 5)),
        rng.dirichlet(np.full(40, 5)),
    ]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    found = concentration(divergence, np.concatenate(rows), starts, np.full(4, target))
    for row, a in zip(rows, found.tolist(), strict=True):
        assert mean_divergence(name, row, a) == pytest.approx(target, rel=0.01)


def test_rows_that_cannot_go_as_far_go_as_far_as_they_can() -> None:
    """E D of random point masses is n - 1 for chi-square; the least concentration of the table comes to 0.1 % of it."""
    row, starts = np.array([0.9, 0.1]), np.array([0, 2])
    (found,) = concentration(rm.ChiSquare(), row, starts, np.array([5.0]))
    assert mean_divergence("chi-square", row, found) == pytest.approx(1.0, rel=1e-3)
    rows = [draw(row, starts, np.array([found]), np.random.default_rng(seed)) for seed in range(2000)]
    score = (np.mean(rows, axis=0)[1] - 0.1) / np.sqrt(0.09 / 2000)
    assert abs(score) <= largest_score(1)


def test_worlds_repeat_with_their_seed() -> None:
    one, again, other = (rm.worlds.RandomKernels(rm.KL(), 0.1, count=3, seed=seed) for seed in (1, 1, 2))
    first, second, third = ([world.mdp for world in family.worlds(GARNET, None)] for family in (one, again, other))
    assert first == second
    assert first != third
    # A world does not depend on how many there are.
    more = rm.worlds.RandomKernels(rm.KL(), 0.1, count=9, seed=1).worlds(GARNET, None)
    assert next(iter(more)).mdp == first[0]


def test_a_radius_per_pair() -> None:
    radii = np.random.default_rng(0).uniform(0.0, 0.2, (10, 3))
    radii[3] = 0.0
    family = rm.worlds.RandomKernels(rm.ChiSquare(), radii, count=5)
    assert family.name == "random, up to radii per pair on average (chi-square)"
    for _, world in family.worlds(MACHINE, None):
        fixed = np.repeat((MACHINE.states == 3) | (np.diff(MACHINE.indptr) == 1), np.diff(MACHINE.indptr))
        assert np.array_equal(world.probabilities[fixed], MACHINE.probabilities[fixed])
        assert (world.probabilities[~fixed] != MACHINE.probabilities[~fixed]).all()
    for wrong in (np.ones((10, 1)), np.ones((3, 10))):
        with pytest.raises(ValueError, match=r"^radius must have shape \(S, A\) = \(10, 3\): got"):
            next(rm.worlds.RandomKernels(rm.KL(), wrong).worlds(MACHINE, None))
