"""States whose actions share nature's budget or price: against cvxpy, closed forms and published answers."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
import verify_rectangular
from oracles import rectangular
from oracles.random_rows import MODERATE

ANSWERS = Path(__file__).parents[3] / "shared" / "external" / "srect_answers.json"
SHARED: list[Any] = [
    rm.L1(0.3),
    rm.L2(0.2),
    *(rm.Constrained(divergence, 0.2) for divergence in MODERATE),
    *(rm.Penalized(divergence, 0.7) for divergence in MODERATE),
]
each_set = pytest.mark.parametrize("rows", SHARED, ids=repr)
GARNET = rm.problems.garnet(40, 4, 5, 0.9, seed=1)


def one_state(p: Any, z: Any, discount: float = 0.0) -> rm.MDP:
    """One state whose actions have these successors with these rewards, after which all ends."""
    n = max(map(len, p)) + 1
    rows = [(0, a, 1 + j, p[a][j], z[a][j]) for a in range(len(p)) for j in range(len(p[a]))]
    rows += [(s, 0, n, 1.0, 0.0) for s in range(1, n)]
    columns = (list(column) for column in zip(*rows, strict=True))
    return rm.MDP.from_rows(*columns, discount, n_states=n)


@pytest.mark.parametrize("kind", rectangular.KINDS)
def test_states_against_cvxpy(kind: str) -> None:
    verdicts = [verify_rectangular.judge_state(kind, 1, index) for index in range(7)]  # of three questions each
    assert not [failure for verdict in verdicts for failure in verdict.failures]
    assert sum(verdict.unanswered for verdict in verdicts) <= 2


# edges


def test_the_floor_is_held_by_the_action_with_that_minimum() -> None:
    """The policy in proportion to the slopes would earn 0.9."""
    world = one_state([[0.5, 0.5]] * 2, [[1.0, 2.0], [0.0, 3.0]])
    found = rm.solve(world, rm.SRectangular(rm.Constrained(rm.TotalVariation(), 0.8)))
    assert found.value[0] == pytest.approx(1.0, abs=1e-12)
    assert found.policy[0].tolist() == [1.0, 0.0]
    assert found.lower[0] <= 1.0 <= found.upper[0]


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        *((type(each)(0.0), rm.Nominal()) for each in (rm.L1(1.0), rm.L2(1.0))),
        *((rm.Constrained(each, 0.0), rm.Nominal()) for each in MODERATE),
        *((rm.Penalized(each, np.inf), rm.Nominal()) for each in MODERATE),
    ],
    ids=str,
)
def test_without_room_the_policy_is_greedy(rows: Any, wanted: Any) -> None:
    found, greedy = rm.solve(GARNET, rm.SRectangular(rows)), rm.solve(GARNET, wanted)
    np.testing.assert_array_equal(found.policy.argmax(axis=1), greedy.policy)
    np.testing.assert_array_equal(found.policy.max(axis=1), 1.0)
    np.testing.assert_allclose(found.value, greedy.value, rtol=1e-7)


@pytest.mark.parametrize(
    "rows",
    [
        rm.L1(np.inf),
        rm.L2(np.inf),
        *(rm.Constrained(each, np.inf) for each in MODERATE),
        *(rm.Penalized(each, 0.0) for each in MODERATE),
    ],
    ids=str,
)
def test_without_limits_nature_takes_the_least(rows: Any) -> None:
    """The room is that of each row alone, so the two kinds of sets are the same."""
    found, alone = rm.solve(GARNET, rm.SRectangular(rows)), rm.solve(GARNET, rm.Constrained(rm.KL(), np.inf))
    np.testing.assert_allclose(found.value, alone.value, rtol=1e-7)
    np.testing.assert_array_equal(found.policy.max(axis=1), 1.0)


@pytest.mark.parametrize(
    ("rows", "slope"),
    [(rm.TotalVariation(), 1.0), (rm.TotalVariation(), 0.999), (rm.TotalVariation(), 1.001)],
    ids=str,
)
def test_prices_at_a_kink(rows: Any, slope: float) -> None:
    """Moving dq from 1 to 0 costs price dq: nature moves all, or nothing, as the price is below 1 or above."""
    world = one_state([[0.5, 0.5]] * 2, [[0.0, 1.0]] * 2, discount=0.5)
    price = slope
    found = rm.solve(world, rm.SRectangular(rm.Penalized(rows, price / 0.5)), tol=1e-12)
    # of two equal actions both must be moved, so that one unit of value costs 2 price
    assert found.value[0] == pytest.approx(0.5 if 2.0 * price >= 1.0 else price, abs=1e-10)
    halves = [rm.Penalized(rows, share / 0.5) for share in (0.2, 0.49, 0.5, 0.51)]
    values = [rm.solve(world, rm.SRectangular(each), tol=1e-12).value[0] for each in halves]
    assert values == pytest.approx([0.2, 0.49, 0.5, 0.5], abs=1e-10)


@pytest.mark.parametrize("divergence", [rm.KL(), rm.Burg(), rm.CressieRead(0.25), rm.CressieRead(-1.0)], ids=str)
@pytest.mark.parametrize("form", ["radius", "weight"])
def test_near_the_floor(divergence: Any, form: str) -> None:
    """Divergences and slopes that may be infinite there; the floor, 1, is the better action's minimum."""
    world = one_state([[0.5, 0.5], [0.3, 0.7]], [[1.0, 2.0], [0.0, 3.0]], discount=0.5)
    levels = (0.5, 1.0, 2.0, 4.0, 8.0) if form == "radius" else (1.0, 0.1, 0.01, 1e-4)
    values = []
    for level in levels:
        rows = rm.Constrained(divergence, level) if form == "radius" else rm.Penalized(divergence, level)
        found = rm.solve(world, rm.SRectangular(rows))
        assert found.converged
        assert found.lower[0] <= rm.evaluate(world, found.policy, rm.SRectangular(rows)).upper[0]
        values.append(found.value[0])
    assert all(a >= b - 2e-8 for a, b in itertools.pairwise(values))
    assert values[-1] >= 1.0 - 1e-8
    assert values[-1] == pytest.approx(1.0, abs=0.05)


@each_set
def test_a_single_action_has_its_own_budget(rows: Any) -> None:
    alone = rm.problems.garnet(30, 1, 6, 0.9, seed=3)
    together, apart = rm.solve(alone, rm.SRectangular(rows), tol=1e-12), rm.solve(alone, rows, tol=1e-12)
    errors = together.error_bound + apart.error_bound
    np.testing.assert_allclose(together.value, apart.value, rtol=0.0, atol=errors)
    assert errors <= 1e-8
    v = np.sin(np.arange(30.0))
    for form in (lambda set: set, rm.Optimistic):
        swept = [rm.RobustBellman(alone, form(each)).bracket(v) for each in (rm.SRectangular(rows), rows)]
        assert (swept[0].lower <= swept[1].upper).all()
        assert (swept[1].lower <= swept[0].upper).all()
        np.testing.assert_allclose(swept[0].lower, swept[1].lower, atol=1e-8)


@each_set
def test_a_shared_budget_costs_less(rows: Any) -> None:
    """Each action could have the whole budget for itself; the actions could share nothing but the model."""
    shared, apart, nominal = (rm.solve(GARNET, each) for each in (rm.SRectangular(rows), rows, rm.Nominal()))
    assert (shared.upper >= apart.lower).all()
    assert (shared.lower <= nominal.upper).all()


@pytest.mark.parametrize("divergence", [rm.ChiSquare(), rm.KL(), rm.TotalVariation()], ids=str)
def test_equal_actions_split_the_budget(divergence: Any) -> None:
    """n equal actions share a budget as one does with the n-th part of it."""
    p, z = [0.2, 0.3, 0.5], [1.0, 3.0, 4.0]
    for n in (2, 4, 5, 9):
        rows = rm.SRectangular(rm.Constrained(divergence, 0.1))
        value = rm.solve(one_state([p] * n, [z] * n), rows, tol=1e-12).value[0]
        part = rm.worst_case(rm.Constrained(divergence, 0.1 / n), p, z).value
        assert value == pytest.approx(part, abs=1e-10)


def test_levels_of_states() -> None:
    levels = np.linspace(0.0, 1.0, GARNET.n_states)
    together = rm.solve(GARNET, rm.SRectangular(rm.L1(levels)), tol=1e-10)
    bellman = rm.RobustBellman(GARNET, rm.SRectangular(rm.L1(levels)))
    of_states = [
        rm.RobustBellman(GARNET, rm.SRectangular(rm.L1(float(level)))).apply(together.value)[s]
        for s, level in enumerate(levels)
    ]
    np.testing.assert_allclose(bellman.apply(together.value), of_states, rtol=1e-12)
    np.testing.assert_allclose(together.value, of_states, rtol=1e-8)


def test_actions_that_are_not_available() -> None:
    world = rm.MDP.from_rows(
        [0, 0, 0, 0, 1, 1], [0, 0, 2, 2, 1, 1], [0, 1, 0, 1, 0, 1], [0.5, 0.5, 0.2, 0.8, 0.6, 0.4],
        [0.0, 1.0, 0.5, 0.6, 1.0, 0.0], 0.9,
    )  # fmt: skip
    found = rm.solve(world, rm.SRectangular(rm.L1(0.4)))
    assert found.policy.shape == (2, 3)
    np.testing.assert_array_equal(found.policy[[0, 1, 1], [1, 0, 2]], 0.0)
    np.testing.assert_allclose(found.policy.sum(axis=1), 1.0, atol=1e-15)
    assert np.isneginf(found.q[[0, 1, 1], [1, 0, 2]]).all()


@pytest.mark.skipif(not ANSWERS.is_file(), reason="the files of other projects are not here")
@pytest.mark.parametrize("name", ["l1", "chi_square", "kl"])
def test_published_answers(name: str) -> None:
    """Values, and what the published policies earn, to the accuracy of the answers."""
    record = json.loads(ANSWERS.read_text())
    world = one_state(record["p"], record["z"])
    make = {
        "l1": rm.L1,
        "chi_square": lambda level: rm.Constrained(rm.ChiSquare(), level),
        "kl": lambda level: rm.Constrained(rm.KL(), level),
    }[name]
    for answer in record["answers"][name]:
        ambiguity = rm.SRectangular(make(answer["psi"]))
        found = rm.solve(world, ambiguity, tol=1e-10)
        assert found.value[0] == pytest.approx(answer["value"], abs=2e-6)
        for shares in (found.policy[0], np.array(answer["policy"]) / sum(answer["policy"])):
            policy = np.eye(world.n_states, world.n_actions)[np.zeros(world.n_states, int)]
            policy[0] = shares
            earned = rm.evaluate(world, policy, ambiguity, tol=1e-10).value[0]
            assert earned == pytest.approx(answer["value"], abs=5e-6)  # their shares are rounded to six digits


# the same bits


def digest(threads: int) -> str:
    """Of values, bounds, policies and worst cases for all kinds of sets."""
    found = hashlib.sha256()
    world = rm.problems.garnet(600, 5, 7, 0.9, seed=2)
    for rows in [*SHARED[:4], SHARED[13], rm.Constrained(rm.Burg(), 3.0), rm.Penalized(rm.TotalVariation(), 0.1)]:
        bellman = rm.RobustBellman(world, rm.SRectangular(rows), threads=threads)
        v = np.sin(np.arange(600.0)) + bellman.apply(np.cos(np.arange(600.0)))
        bracket, worst = bellman.bracket(v), bellman.worst_case(v)
        for numbers in (bellman.apply(v), bracket.lower, bracket.upper, bracket.policy, worst.model.probabilities):
            found.update(np.ascontiguousarray(numbers).tobytes())
    return found.hexdigest()


def test_equal_bits_for_threads_and_instruction_sets() -> None:
    environment = {**os.environ, "ROBUSTMDP_CORE": "generic", "PYTHONPATH": os.pathsep.join(sys.path)}
    program = "from ambiguity.test_rectangular import digest; print(digest(1))"
    here = Path(__file__).parents[1]
    other = subprocess.run([sys.executable, "-c", program], cwd=here, env=environment, capture_output=True, text=True)
    assert digest(1) == digest(3) == other.stdout.strip(), other.stderr


# records and refusals


def test_records() -> None:
    ambiguity = rm.SRectangular(rm.L1(0.3))
    assert pickle.loads(pickle.dumps(ambiguity)) == ambiguity
    assert repr(ambiguity) == "SRectangular(L1(0.3))"
    assert rm.SRectangular(rm.L1(0.4)).contains(rm.Nominal())
    assert "one per state" in str(rm.SRectangular(rm.L1(np.full(3, 0.1))))
    assert "action" not in str(rm.SRectangular(rm.L1(np.full(3, 0.1)))).split("one per state")[1]
    solution = rm.solve(GARNET, ambiguity)
    assert pickle.loads(pickle.dumps(solution)) == solution
    bellman = rm.RobustBellman(GARNET, ambiguity)
    again = pickle.loads(pickle.dumps(bellman))
    np.testing.assert_array_equal(again.apply(solution.value), bellman.apply(solution.value))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: rm.L1(np.full((40, 4), 0.1)),
            r"radius must be a number or have shape \(S,\) = \(40,\): got \(40, 4\)",
        ),
        (lambda: rm.Constrained(rm.KL(), np.full(41, 0.1)), r"shape \(S,\) = \(40,\): got \(41,\)"),
        (lambda: rm.CVaR(0.3), "set must be Constrained, Penalized, L1 or L2, whose level actions can share"),
        (lambda: rm.Contamination(0.3), "set must be Constrained, Penalized, L1 or L2"),
        (lambda: rm.LInf(0.3), "set must be Constrained, Penalized, L1 or L2"),
        (lambda: rm.Nominal(), "set must be Constrained, Penalized, L1 or L2"),
        (lambda: rm.L1(0.3, support="all"), "support must be 'model' where the actions of a state share a budget"),
        (lambda: rm.SRectangular(rm.L1(0.3)), "set must be a set of rows"),
        (lambda: rm.Optimistic(rm.L1(0.3)), r"take Optimistic\(SRectangular\(...\)\)"),
    ],
)
def test_refused_sets(make: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        rm.solve(GARNET, rm.SRectangular(make()))


def test_refused_callers() -> None:
    ambiguity = rm.SRectangular(rm.Penalized(rm.KL(), 1.0))
    with pytest.raises(ValueError, match="DualAscent needs"):
        rm.solve(GARNET, ambiguity, solver=rm.DualAscent())
    with pytest.raises(ValueError, match="whose pairs nature answers one by one"):
        rm.solve(GARNET, ambiguity, criterion=rm.TotalReward())
    with pytest.raises(ValueError, match="whose pairs nature answers one by one"):
        rm.reach(GARNET, ambiguity, [1])
    for learner in (rm.GenerativeQLearning, rm.MarkovianQLearning, rm.MultilevelQLearning):
        with pytest.raises(ValueError, match="a learner's ambiguity must be"):
            learner(ambiguity)


def test_nearer_to_the_floor_than_numbers_can_tell() -> None:
    """The budget is nearly enough for the floor, where the multipliers of both actions are infinite."""
    p, z = [0.99185065, 0.00814935], [-0.22748541, -0.08224192]
    world = one_state([p, p], [z, z])
    found = rm.solve(world, rm.SRectangular(rm.Constrained(rm.Burg(), 1.0342397419454732)))
    assert np.isfinite(found.policy).all()
    assert found.lower[0] <= -0.22748541 + 1e-9
    assert found.upper[0] >= -0.22748541
