"""A user's own set: any object with `level` and `worst_case(p, z, level)`."""

from __future__ import annotations

import math
import pickle
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles import naive_mdp
from robustmdp.ambiguity import check_ambiguity, is_set


@dataclass(frozen=True)
class Contamination:
    """(1 - share) E z + share min z."""

    share: Any
    level_name = "share"

    @property
    def level(self) -> Any:
        return self.share

    def worst_case(self, p: Any, z: Any, level: float) -> Any:
        lowest = z == z.min()
        q = (1.0 - level) * p + level * np.where(lowest, p, 0.0) / p[lowest].sum()
        value = q @ z
        return value, q, value - 4e-16 * len(z) * np.abs(z).max()


@dataclass(frozen=True)
class TailMean:
    """CVaR: the mean of the worst part of mass `level`, by filling up from the lowest outcome; E z at level 1."""

    level: float

    def worst_case(self, p: Any, z: Any, level: float) -> Any:
        order = np.argsort(z)
        room = np.clip(level - np.append(0.0, np.cumsum(p[order])[:-1]), 0.0, p[order])
        q = np.empty_like(p)
        q[order] = room / room.sum()
        # Dual: eta - E(eta - z)_+ / level is a lower bound for every eta.
        eta = z[order][np.flatnonzero(room)[-1]]
        return q @ z, q, eta - p @ np.maximum(eta - z, 0.0) / level - 1e-15 * np.abs(z).max(), eta


@dataclass(frozen=True)
class Priced:
    """The penalty of total variation, E min(z, min z + weight)."""

    weight: Any
    scales_with_discount = True

    @property
    def level(self) -> Any:
        return self.weight

    def worst_case(self, p: Any, z: Any, level: float) -> Any:
        value = p @ np.minimum(z, z.min() + level)
        lowest = z == z.min()
        q = np.where(z > z.min() + level, 0.0, p)
        q[lowest] += (1.0 - q.sum()) * p[lowest] / p[lowest].sum()
        return value, q, value - 1e-15 * len(z) * np.abs(z).max()


@pytest.mark.parametrize("seed", range(6))
def test_the_operator_is_the_definition(seed: int) -> None:
    """With rewards on pairs or successors, endings and missing actions."""
    mdp, _ = naive_mdp.random_world(seed)
    v = np.random.default_rng(seed).normal(0.0, 3.0, mdp.n_states)
    outcome = np.append(mdp.discount * v, 0.0)
    expected = np.full((mdp.n_states, mdp.n_actions), -np.inf)
    for pair in range(mdp.n_pairs):
        at = slice(mdp.indptr[pair], mdp.indptr[pair + 1])
        p, x = mdp.probabilities[at], outcome[mdp.indices[at]]
        z = x + (mdp.rewards[at] if mdp.rewards_on_successors else mdp.rewards[pair])
        expected[mdp.states[pair], mdp.actions[pair]] = 0.8 * p @ z + 0.2 * z.min()
    bellman = rm.RobustBellman(mdp, Contamination(0.2))
    np.testing.assert_allclose(bellman.apply(v), expected.max(axis=1), rtol=1e-13, atol=1e-13)
    chosen = expected[np.arange(mdp.n_states), bellman.greedy(v)]
    np.testing.assert_allclose(chosen, expected.max(axis=1), rtol=1e-13, atol=1e-13)
    bracket = bellman.bracket(v)
    assert np.all(bracket.lower <= expected.max(axis=1) + 1e-15)
    assert np.all(bracket.upper >= expected.max(axis=1) - 1e-15)
    assert (bracket.upper - bracket.lower).max() <= 1e-11
    model, penalty, eta = bellman.worst_case(v)
    assert np.abs(np.add.reduceat(model.probabilities, model.indptr[:-1]) - 1).max() <= 1e-12
    assert np.isnan(eta).all()
    assert np.all(penalty == 0.0)
    explained = rm.RobustBellman(model, rm.Nominal())
    np.testing.assert_allclose(explained.apply(v), bellman.apply(v), rtol=1e-12, atol=1e-12)
    mixed = np.where(np.isfinite(expected), 1.0, 0.0)
    mixed /= mixed.sum(axis=1, keepdims=True)
    policy_value = np.where(mixed > 0, mixed * np.where(np.isfinite(expected), expected, 0.0), 0.0).sum(axis=1)
    np.testing.assert_allclose(bellman.apply_policy(mixed, v), policy_value, rtol=1e-13, atol=1e-13)


def test_solve_evaluate_and_answer() -> None:
    mdp = rm.problems.machine_replacement()
    solution = rm.solve(mdp, Contamination(0.2))
    assert solution.converged
    v = np.zeros(mdp.n_states)
    for _ in range(1000):
        v = sweep(mdp, v)
    assert np.all(solution.lower <= v + 1e-9)
    assert np.all(solution.upper >= v - 1e-9)
    same = rm.evaluate(mdp, solution.policy, Contamination(0.2))
    assert np.abs(same.value - solution.value).max() <= same.error_bound + solution.error_bound
    again = rm.solve(solution.worst_case, rm.Nominal())
    assert np.abs(again.value - solution.value).max() <= again.error_bound + solution.error_bound
    answer = rm.worst_case(Contamination(0.1), [0.5, 0.0, 0.5], [0.0, -7.0, 2.0])
    assert answer.value == 0.9
    assert answer.distribution.tolist() == [0.55, 0.0, 0.45]
    assert 0.0 <= answer.gap <= 1e-14
    assert math.isnan(answer.multipliers.eta)


def sweep(mdp: rm.MDP, v: np.ndarray) -> np.ndarray:
    """max over a of 0.8 E z + 0.2 min z"""
    outcome = np.append(mdp.discount * v, 0.0)[mdp.indices]
    z = outcome + (mdp.rewards if mdp.rewards_on_successors else np.repeat(mdp.rewards, np.diff(mdp.indptr)))
    mean = np.add.reduceat(mdp.probabilities * z, mdp.indptr[:-1])
    lowest = np.minimum.reduceat(z, mdp.indptr[:-1])
    return np.maximum.reduceat(0.8 * mean + 0.2 * lowest, mdp.state_ptr[:-1])


def test_a_price_is_that_of_the_built_in_penalty() -> None:
    mdp = rm.problems.garnet(30, 3, 5, 0.9, seed=1)
    mine, known = rm.solve(mdp, Priced(0.3)), rm.solve(mdp, rm.Penalized(rm.TotalVariation(), 0.3))
    assert np.abs(mine.value - known.value).max() <= mine.error_bound + known.error_bound
    assert np.abs(mine.penalty - known.penalty).max() <= 1e-9
    assert rm.solve(mdp, Priced(math.inf)).value == pytest.approx(rm.solve(mdp, rm.Nominal()).value, abs=1e-6)


def test_tails_by_their_dual() -> None:
    rng = np.random.default_rng(0)
    for level in (0.05, 0.3, 0.9, 1.0):
        p, z = rng.dirichlet(np.ones(6)), rng.normal(size=6)
        answer = rm.worst_case(TailMean(level), p, z)
        assert 0.0 <= answer.gap <= 1e-13
        assert np.all(answer.distribution <= p / level + 1e-15)
        assert answer.multipliers.eta in z
    solution = rm.solve(rm.problems.chain(), TailMean(0.5))
    assert solution.converged
    assert np.isfinite(solution.eta).any()


def test_one_level_per_pair() -> None:
    mdp = rm.problems.machine_replacement()
    shares = np.linspace(0.0, 0.5, mdp.n_states * mdp.n_actions).reshape(mdp.n_states, mdp.n_actions)
    v = np.arange(mdp.n_states) * 1.0
    table = rm.RobustBellman(mdp, Contamination(shares)).apply_q(np.repeat(v[:, None], mdp.n_actions, axis=1))
    for s, a in ((0, 0), (4, 1), (9, 2)):
        q = rm.RobustBellman(mdp, Contamination(float(shares[s, a]))).apply_q(
            np.repeat(v[:, None], mdp.n_actions, axis=1)
        )
        assert table[s, a] == q[s, a]
    with pytest.raises(ValueError, match="share must be one number for one distribution: got an array"):
        rm.worst_case(Contamination(shares), [0.5, 0.5], [0.0, 1.0])
    with pytest.raises(ValueError, match="share"):
        rm.solve(mdp, Contamination(shares[:3]))


def test_curves_and_stress_tests() -> None:
    mdp = rm.problems.machine_replacement()
    curve = rm.robustness_curve(mdp, Contamination, levels=[0.3, 0.01, 0.1])
    assert curve["level"].tolist() == [0.01, 0.1, 0.3]
    assert np.all(np.diff(curve["worst"]) < 0)
    for level, worst in zip(curve["level"], curve["worst"], strict=True):
        assert worst == pytest.approx(rm.solve(mdp, Contamination(level)).value.mean(), abs=1e-4)
    # A tail mean is the more robust the smaller its level: the rows come from the least robust one on.
    assert rm.robustness_curve(mdp, TailMean, levels=[0.5, 0.9])["level"].tolist() == [0.9, 0.5]
    table = rm.stress(
        mdp, {"robust": Contamination(0.3), "nominal": rm.Nominal()}, rm.worlds.Adversary(Contamination(0.3))
    )
    values = dict(zip(table["policy"], table["mean"], strict=True))
    assert values["robust"] >= values["nominal"]
    assert rm.worlds.Adversary(Contamination(0.3)).name == "worst case, Contamination(share=0.3)"


def test_equal_bits_for_any_number_of_threads() -> None:
    mdp = rm.problems.garnet(900, 4, 20, 0.9, seed=0)
    v = np.random.default_rng(0).normal(size=900)
    one, three = (rm.RobustBellman(mdp, Contamination(0.1), threads=threads) for threads in (1, 3))
    assert np.array_equal(one.apply(v), three.apply(v))
    assert np.array_equal(one.bracket(v).upper, three.bracket(v).upper)
    assert np.array_equal(one.worst_case(v).model.probabilities, three.worst_case(v).model.probabilities)


# identity


class Silent:
    level = 0.1

    def worst_case(self, p: Any, z: Any, level: float) -> Any:
        return p @ z, p, p @ z


@dataclass
class Mutable(Silent):
    weights: Any = field(default_factory=lambda: np.ones(3))


def test_identity_is_that_of_the_object() -> None:
    one, same, other = (check_ambiguity(Contamination(share)) for share in (0.1, 0.1, 0.2))
    assert one == same
    assert one != other
    assert one != rm.Nominal()
    assert hash(one) == hash(same) == hash(Contamination(0.1))
    assert repr(one) == str(one) == one.label == "Contamination(share=0.1)"
    assert pickle.loads(pickle.dumps(one)) == one
    assert (one.level, one.level_name) == (0.1, "share")
    assert check_ambiguity(one) is one
    assert not one.contains(rm.Nominal())
    assert one.contains(same)
    silent = check_ambiguity(Silent())
    assert (str(silent), silent.level_name) == ("Silent", "level")
    assert silent != check_ambiguity(Silent())
    with pytest.raises(AttributeError, match="is immutable: make a new one to change wrapped"):
        one.wrapped = None


def test_what_is_a_set() -> None:
    assert is_set(Contamination(0.1))
    assert is_set(rm.Nominal())
    assert not is_set(Contamination)
    assert not is_set(0.1)


def test_objects_that_cannot_be_compared_or_hashed() -> None:
    one, other = check_ambiguity(Mutable()), check_ambiguity(Mutable())
    assert one != other  # arrays have no one truth
    assert one == check_ambiguity(one.wrapped)
    assert hash(one) == hash(other)


# what is refused


@pytest.mark.parametrize(
    ("level", "error", "sentence"),
    [
        ("a lot", TypeError, r"share of .* must be a number or an \(S, A\) array: got 'a lot'"),
        ([0.1, 0.2], ValueError, r"share of .* must be a number or an \(S, A\) array: got shape \(2,\)"),
        (math.nan, ValueError, "share of .* must be a number: got nan"),
    ],
)
def test_wrong_levels(level: Any, error: Any, sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        rm.solve(rm.problems.chain(), Contamination(level))


@dataclass(frozen=True)
class Wrong:
    answer: Any
    level: float = 0.1

    def worst_case(self, p: Any, z: Any, level: float) -> Any:
        return self.answer(p, z)

    def __str__(self) -> str:
        return "my set"


WRONG = [
    (lambda p, z: p @ z, TypeError, "must return a value, a distribution and a lower bound: got"),
    (lambda p, z: (p @ z, p), TypeError, "must return a value, a distribution and a lower bound: got"),
    (lambda p, z: (p @ z, "p", 0.0), TypeError, "must return a value, a distribution and a lower bound: got"),
    (lambda p, z: (p @ z, p[:1], 0.0), ValueError, r"must return a distribution of shape \(2,\): got \(1,\)"),
    (lambda p, z: (p @ z, [1.5, -0.5], 0.0), ValueError, r"must return probabilities of at least 0: got -0\.5"),
    (lambda p, z: (p @ z, [math.nan, 1.0], 0.0), ValueError, "must return probabilities of at least 0: got nan"),
    (lambda p, z: (p @ z, 0.9 * p, 0.0), ValueError, r"must return a distribution that sums to 1: got 0\.9"),
    (lambda p, z: (math.nan, p, 0.0), ValueError, "must return a finite value: got nan"),
    (lambda p, z: (p @ z, p, math.nan), ValueError, "must return a number as the lower bound: got nan"),
    (lambda p, z: (p @ z, p, p @ z + 0.1), ValueError, "must return a lower bound below the value 1: got 1.1"),
    (
        lambda p, z: (3.0, p, 0.0),
        ValueError,
        "must return a value between the least and the largest outcome, 0 and 2: got 3",
    ),
    (
        lambda p, z: (0.5, p, 0.0),
        ValueError,
        "must return a value that its distribution attains, 1 plus what nature pays: got 0.5",
    ),
]


@pytest.mark.parametrize(("answer", "error", "sentence"), WRONG)
def test_wrong_answers(answer: Any, error: Any, sentence: str) -> None:
    with pytest.raises(error, match=f"worst_case of my set {sentence}"):
        rm.worst_case(Wrong(answer), [0.5, 0.5], [0.0, 2.0])


def test_wrong_answers_name_the_pair() -> None:
    mdp = rm.MDP.from_arrays(np.tile(np.full((2, 2), 0.5), (2, 1, 1)), [[0.0, 0.0], [1.0, 5.0]], 0.5)
    wrong = Wrong(lambda p, z: (p @ z, p if z.min() < 4.9 else 0.5 * p, -math.inf))
    where = "at state 1, action 1 of those available there"
    with pytest.raises(
        ValueError, match=f"worst_case of my set must return a distribution that sums to 1: got 0.5 {where}"
    ):
        rm.RobustBellman(mdp, wrong).apply(np.zeros(2))


def test_errors_of_the_user_pass_with_a_note() -> None:
    def fail(p: Any, z: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        rm.solve(rm.problems.chain(), Wrong(fail))
    (note,) = caught.value.__notes__
    assert re.fullmatch(r"raised by worst_case of my set at state \d, action 0 of those available there", note)


def test_arguments_cannot_be_changed() -> None:
    def write(p: Any, z: Any) -> Any:
        p[0] = 1.0

    with pytest.raises(ValueError, match="read-only"):
        rm.worst_case(Wrong(write), [0.5, 0.5], [0.0, 2.0])


def test_rounding_in_an_answer_is_no_error() -> None:
    """A sum that is off by 1e-10 widens the bounds; a value just below what is attained is raised to it."""
    off = Wrong(lambda p, z: (p @ z * (1 - 1e-10), p * (1 + 1e-10), p @ z))
    answer = rm.worst_case(off, [0.5, 0.5], [0.0, 2.0])
    assert answer.value == 1.0
    assert answer.distribution.sum() == 1.0
    bracket = rm.RobustBellman(rm.problems.two_state(0.5, 0.9), off).bracket(np.array([2.0, 1.0]))
    assert 1e-10 <= (bracket.upper - bracket.lower).max() <= 1e-8


def test_values_are_not_rescaled() -> None:
    """How the level of an unknown set changes with the unit of v is not known."""
    assert rm.worst_case(Priced(1e110), [0.5, 0.5], [0.0, 4e110]).value == 0.5e110
