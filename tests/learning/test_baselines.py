"""The rivals: the plug-in against counting by hand, multilevel Q-learning against the exact value of a ball."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles import learning as naive
from robustmdp import _core
from robustmdp.learning.behaviour import BehaviourPolicy
from robustmdp.learning.sources import ModelSource

DOUBTS = (rm.Penalized(rm.ChiSquare(), 1.0), rm.Constrained(rm.KL(), 0.1), rm.Nominal())
each_doubt = pytest.mark.parametrize("doubt", DOUBTS, ids=repr)


def estimated(counts: Counter[tuple[int, int, int]], rewards: Any, discount: float) -> rm.MDP:
    """The model of some transitions (s, a, s')."""
    totals: Counter[tuple[int, int]] = Counter()
    for (s, a, _), n in counts.items():
        totals[s, a] += n
    rows = [(s, a, following, n / totals[s, a], rewards[s][a]) for (s, a, following), n in sorted(counts.items())]
    return rm.MDP.from_rows(*(np.array(column) for column in zip(*rows, strict=True)), discount, n_states=10)


@each_doubt
def test_the_plug_in_counts_and_solves(doubt: Any) -> None:
    mdp, rewards = rm.problems.chain(), [[1.0, 1.0]] * 9 + [[0.0, 0.0]]
    coins, counts = naive.Coins(mdp, 4), Counter[tuple[int, int, int]]()
    for _ in range(50):
        for s in range(10):
            for a in range(2):
                counts[s, a, coins.receive(s, a)] += 1
    by_hand = rm.solve(estimated(counts, rewards, 0.9), doubt, tol=1e-10)
    plugged = rm.PlugIn(doubt).run(mdp, 50, seed=4)
    assert np.abs(plugged.q - by_hand.q).max() <= 4e-9  # both are solved to 1e-10 of 10, Q from V costs another one
    assert np.array_equal(plugged.visits, np.full((10, 2), 50))
    assert plugged.samples == 1000


@each_doubt
def test_the_plug_in_follows_a_trajectory(doubt: Any) -> None:
    mdp, rewards = rm.problems.chain(restart=0.5), [[1.0, 1.0]] * 9 + [[0.0, 0.0]]
    coins, counts, s = naive.Coins(mdp, 4), Counter[tuple[int, int, int]](), 0
    for _ in range(3000):
        a = naive.drawn([0.3, 0.7], coins.number())
        following = coins.receive(s, a)
        counts[s, a, following] += 1
        s = following
    by_hand = rm.solve(estimated(counts, rewards, 0.9), doubt, tol=1e-10)
    plugged = rm.PlugIn(doubt, [0.3, 0.7], trajectory=True).run(mdp, 3000, seed=4)
    assert np.abs(plugged.q - by_hand.q).max() <= 4e-9
    visits = np.zeros((10, 2))
    for (s, a, _), n in counts.items():
        visits[s, a] += n
    assert np.array_equal(plugged.visits, visits)


@pytest.mark.parametrize("trajectory", [False, True])
def test_the_plug_in_comes_to_the_solution_where_episodes_end(trajectory: bool) -> None:
    mdp, doubt = rm.MDP.from_gymnasium("FrozenLake-v1", 0.95), rm.Penalized(rm.ChiSquare(), 1.0)
    exact = rm.solve(mdp, doubt)
    learner = rm.PlugIn(doubt, trajectory=trajectory)
    learned = learner.run(mdp, samples=400_000, seed=0)
    seen = learned.visits.min(axis=1) >= 1000
    assert seen.sum() >= 5
    assert np.abs(learned.value - exact.value)[seen].max() <= 0.1


def test_a_pair_that_never_came_is_minus_infinity_and_never_chosen() -> None:
    mdp = rm.problems.chain(restart=0.5)
    with pytest.warns(RuntimeWarning, match="never came"):
        learned = rm.PlugIn(DOUBTS[0], [0.0, 1.0], trajectory=True).run(mdp, 2000)
    assert np.all(learned.q[:, 0] == -math.inf)
    assert np.all(learned.policy == 1)


def test_draws_have_the_chances_of_the_model() -> None:
    mdp = rm.problems.garnet(20, 3, 7, 0.9, seed=1)
    drawn = np.zeros(mdp.nnz)
    source = ModelSource(mdp, BehaviourPolicy(mdp.state_ptr), [0], 0, None)
    for pair in range(mdp.n_pairs):
        _, following = source.draws(0, pair * 10_000, pair, 10_000)
        row = slice(mdp.indptr[pair], mdp.indptr[pair + 1])
        counts = Counter(following.tolist())
        drawn[row] = [counts[successor] for successor in mdp.indices[row].tolist()]
        assert drawn[row].sum() == 10_000
    p = mdp.probabilities
    deviations = (drawn - 10_000 * p) / np.sqrt(10_000 * p * (1 - p))
    assert np.abs(deviations).max() <= 5.0  # 420 normal numbers exceed 5 once in 4,000 worlds
    assert 0.8 <= np.mean(deviations**2) <= 1.2  # 360 degrees of freedom: 1 within 0.075


@pytest.mark.parametrize("radius", [0.02, 0.1, 0.5])
def test_the_multilevel_target_is_unbiased(radius: float) -> None:
    p, v, ratio, rounds = np.array([0.3, 0.5, 0.2]), np.array([0.0, 1.0, 3.0]), 0.625, 20_000
    rng = np.random.default_rng(0)
    targets = np.empty(rounds)
    for i in range(rounds):
        level = int(rng.geometric(ratio)) - 1
        x = rng.choice(v, 2 << level, p=p)
        targets[i] = x[0] + _core.multilevel_difference(x, radius) / (ratio * (1 - ratio) ** level)
    exact = rm.worst_case(rm.Constrained(rm.KL(), radius), p, v).value
    error = targets.std() / math.sqrt(rounds)
    assert error <= 0.05  # otherwise nothing is tested
    assert abs(targets.mean() - exact) <= 4 * error
    assert abs(p @ v - exact) > 4 * error  # nor if nature had no say


def test_multilevel_learning_is_unbiased_in_a_world() -> None:
    # One step from V = 1/(1-gamma) projected and discount 0.5 makes Q a mean of targets of known expectation.
    rng = np.random.default_rng(1)
    transitions = rng.dirichlet(np.ones(3), (3, 1))
    mdp = rm.MDP.from_arrays(transitions, rng.uniform(size=(3, 1, 3)), 0.0)
    doubt = rm.Constrained(rm.KL(), 0.1)
    runs = rm.MultilevelQLearning(doubt).run_many(mdp, 1, seeds=1500)
    first = np.array([solution.q[:, 0] for solution in runs])
    error = first.std(axis=0) / math.sqrt(len(first))
    assert np.all(np.abs(first.mean(axis=0) - rm.solve(mdp, doubt).q[:, 0]) <= 4 * error)
    drawn = np.array([solution.samples for solution in runs])
    # 2 ratio/(2 ratio - 1) = 5 samples a pair and step; their variance is infinite, their median is not.
    assert drawn.min() >= 6
    assert 6 <= np.median(drawn) <= 15
    assert all(solution.samples == solution.visits.sum() for solution in runs)


def test_multilevel_learning_comes_to_the_solution() -> None:
    mdp, doubt = rm.problems.chain(), rm.Constrained(rm.KL(), 0.1)
    exact = rm.solve(mdp, doubt)
    errors = [
        np.mean([
            solution.trace["error"][-1]
            for solution in rm.MultilevelQLearning(doubt).run_many(mdp, steps, seeds=4, reference=exact.q)
        ])
        for steps in (30, 480)
    ]  # fmt: skip
    assert errors[1] <= errors[0] / 2  # sixteen times the steps are worth a factor of 4
    assert errors[1] <= 1.5


@pytest.mark.parametrize("doubt", [rm.Penalized(rm.KL(), 1.0), rm.Constrained(rm.ChiSquare(), 1.0), rm.Nominal()])
def test_multilevel_learning_is_for_a_kl_ball(doubt: Any) -> None:
    with pytest.raises(ValueError, match="is for a Kullback-Leibler ball"):
        rm.MultilevelQLearning(doubt)


@pytest.mark.parametrize("ratio", [0.5, 0.75, math.nan])
def test_the_ratio_keeps_samples_and_variance_finite(ratio: float) -> None:
    with pytest.raises(ValueError, match="ratio must"):
        rm.MultilevelQLearning(rm.Constrained(rm.KL(), 0.1), ratio=ratio)


def test_a_policy_that_follows_q_cannot_lead_the_plug_in() -> None:
    # The plug-in has no Q before its end. In a process of its own: reading Q all the same once crashed it.
    program = (
        "import robustmdp as rm\n"
        "learner = rm.PlugIn(rm.Nominal(), rm.EpsilonGreedy(0.1), trajectory=True)\n"
        "learner.run(rm.problems.chain(restart=0.5), 1000)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert "ValueError" in done.stderr
    assert "EpsilonGreedy" in done.stderr
