"""Actions that share the level of a user's own divergence, against the compiled versions of the same divergence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import LowLevelCallable

import robustmdp as rm
from robustmdp.operators.policy import policy_rows


def exponential(s: float) -> float:
    return math.exp(s - 1.0)


def exponentials(s: np.ndarray) -> np.ndarray:
    return np.exp(s - 1.0)


def quadratic(s: np.ndarray) -> np.ndarray:
    return np.where(s > -2.0, s + s * s / 4.0, -1.0)


def quadratic_slope(s: np.ndarray) -> np.ndarray:
    return np.maximum(1.0 + s / 2.0, 0.0)


def quadratic_number(s: float) -> float:
    return s + s * s / 4.0 if s > -2.0 else -1.0


def quadratic_slope_number(s: float) -> float:
    return 1.0 + s / 2.0 if s > -2.0 else 0.0


def cubic_root(s: np.ndarray) -> np.ndarray:
    """f* of f(t) = (t^1.5 - 1.5 t + 0.5)/0.75, whose f'(1) is 0."""
    return 2.0 / 3.0 * (np.maximum(1.0 + s / 2.0, 0.0) ** 3 - 1.0)


def cubic_root_slope(s: np.ndarray) -> np.ndarray:
    return np.maximum(1.0 + s / 2.0, 0.0) ** 2


ARRAYS = [
    (rm.Divergence("KL of arrays", exponentials, exponentials), rm.KL()),
    (rm.Divergence("chi-square of arrays", quadratic, quadratic_slope), rm.ChiSquare()),
]
NUMBERS = [
    (rm.Divergence("KL of numbers", exponential, exponential), rm.KL()),
    (rm.Divergence("chi-square of numbers", quadratic_number, quadratic_slope_number), rm.ChiSquare()),
]
each_form = pytest.mark.parametrize("form", [rm.Constrained, rm.Penalized])
each_array = pytest.mark.parametrize(("own", "built_in"), ARRAYS, ids=lambda divergence: divergence.name)
each_number = pytest.mark.parametrize(("own", "built_in"), NUMBERS, ids=lambda divergence: divergence.name)


def world(seed: int, n_states: int) -> rm.MDP:
    """Ragged rows, one to four actions, endings, rewards on successors."""
    rng, columns = np.random.default_rng(seed), []
    for s in range(n_states):
        for a in range(int(rng.integers(1, 5))):
            reached = rng.choice(n_states, size=int(rng.choice([1, 2, 3, min(8, n_states)])), replace=False)
            for following, p in zip(reached, rng.dirichlet(np.ones(reached.size)), strict=True):
                columns.append((s, a, following, p, rng.normal(), rng.random() < 0.1))
    s, a, following, p, r, ends = (np.array(column) for column in zip(*columns, strict=True))
    return rm.MDP.from_rows(s, a, following, p, r, 0.9, terminated=ends, n_states=n_states)


def random_policy(mdp: rm.MDP, rng: np.random.Generator) -> np.ndarray:
    policy = mdp.table(rng.exponential(size=mdp.n_pairs), fill=0.0).copy()
    return policy / policy.sum(axis=1, keepdims=True)


def assert_alike(mine: Any, known: Any, v: np.ndarray, policy: np.ndarray | None = None) -> None:
    """Values and certified bounds of one step, each within the other's bounds."""
    one, other = (
        (b.bracket(v, policy_rows(b.mdp, policy)) if policy is not None else b.bracket(v)) for b in (mine, known)
    )
    widths = (one.upper - one.lower) + (other.upper - other.lower)
    value, expected = (b.apply(v) if policy is None else b.apply_policy(policy, v) for b in (mine, known))
    assert np.all(np.abs(value - expected) <= widths + 1e-9)
    assert np.all(one.lower <= other.upper)
    assert np.all(other.lower <= one.upper)
    assert (one.upper - one.lower).max() <= 1e-8


@each_form
@each_array
@pytest.mark.parametrize("optimistic", [False, True])
def test_steps_agree_with_the_compiled_ones(form: Any, own: Any, built_in: Any, optimistic: bool) -> None:
    """One level per state, among them the least and the largest; then again from where the last step ended."""
    mdp, rng = world(0, 30), np.random.default_rng(1)
    level = 10.0 ** rng.uniform(-2.0, 1.0, mdp.n_states)
    level[0], level[1], level[2], level[3] = 0.0, math.inf, 1e-6, 100.0
    sets = (rm.SRectangular(form(divergence, level)) for divergence in (own, built_in))
    mine, known = (rm.RobustBellman(mdp, rm.Optimistic(one) if optimistic else one) for one in sets)
    for _ in range(2):
        v = rng.normal(0.0, 3.0, mdp.n_states)
        assert_alike(mine, known, v)
        assert_alike(mine, known, v, random_policy(mdp, rng))


@each_form
@each_array
def test_nature_can_answer_as_bounds_say(form: Any, own: Any, built_in: Any) -> None:
    """The policy that is found earns the value against nature's rows, and no other action earns more."""
    mdp, rng = world(2, 20), np.random.default_rng(2)
    bellman = rm.RobustBellman(mdp, rm.SRectangular(form(own, 0.3)))
    v = rng.normal(0.0, 3.0, mdp.n_states)
    value, (model, penalty, _) = bellman.apply(v), bellman.worst_case(v)
    answered = rm.RobustBellman(model.with_extra_rewards(penalty), rm.Nominal())
    np.testing.assert_allclose(answered.apply(v), value, rtol=0.0, atol=1e-8)
    policy = bellman.bracket(v).policy
    np.testing.assert_allclose(answered.apply_policy(policy, v), value, rtol=0.0, atol=1e-8)
    known = rm.RobustBellman(mdp, rm.SRectangular(form(built_in, 0.3)))
    np.testing.assert_allclose(known.apply_policy(policy, v), value, rtol=0.0, atol=1e-8)


@each_form
@each_number
def test_solutions_of_functions_of_numbers_agree(form: Any, own: Any, built_in: Any) -> None:
    mdp = world(3, 5)
    mine, known = (rm.solve(mdp, rm.SRectangular(form(divergence, 0.2))) for divergence in (own, built_in))
    assert mine.converged
    assert np.abs(mine.value - known.value).max() <= mine.error_bound + known.error_bound + 1e-9
    policy = random_policy(mdp, np.random.default_rng(0))
    mine, known = (rm.evaluate(mdp, policy, rm.SRectangular(form(divergence, 0.2))) for divergence in (own, built_in))
    assert np.abs(mine.value - known.value).max() <= mine.error_bound + known.error_bound + 1e-9


@each_form
def test_machine_code_agrees(form: Any) -> None:
    mdp, own = world(4, 8), rm.Divergence("KL of Numba", exponential, exponential)
    numba = pytest.importorskip("numba")
    compiled = numba.cfunc("float64(float64)")(exponential)
    machine = LowLevelCallable(compiled.ctypes)
    fast = rm.Divergence("KL of machine code", machine, machine)
    v = np.random.default_rng(0).normal(0.0, 3.0, mdp.n_states)
    one, other, known = (rm.RobustBellman(mdp, rm.SRectangular(form(d, 0.3))) for d in (fast, own, rm.KL()))
    assert_alike(one, known, v)
    np.testing.assert_allclose(one.apply(v), other.apply(v), rtol=0.0, atol=1e-10)


@each_form
def test_bounds_of_many_states_hold(form: Any) -> None:
    """Cressie and Read's divergence of order 3/2 on 200 states."""
    own = rm.Divergence("my order 3/2", cubic_root, cubic_root_slope)
    mdp = world(5, 200)
    v = np.random.default_rng(5).normal(0.0, 3.0, mdp.n_states)
    mine, known = (rm.RobustBellman(mdp, rm.SRectangular(form(d, 0.3))) for d in (own, rm.CressieRead(1.5)))
    assert_alike(mine, known, v)


@each_form
def test_any_split_of_states_gives_equal_bits(form: Any) -> None:
    mdp, own = world(6, 30), ARRAYS[0][0]
    v = np.random.default_rng(6).normal(0.0, 3.0, mdp.n_states)
    whole, split = (rm.RobustBellman(mdp, rm.SRectangular(form(own, 0.3))) for _ in range(2))
    split._state_ranges = [(0, 1), (1, 8), (8, 30)]
    assert np.array_equal(whole.apply(v), split.apply(v))
    one, other = whole.bracket(v), split.bracket(v)
    for name in ("lower", "upper", "q_lower", "policy"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
