"""Norm balls, intervals, contamination, risk measures and optimism: a small part of `verify_sets.py`, and words."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import robustmdp as rm
import verify_sets

ROW, VALUES = [0.2, 0.3, 0.5], [1.0, 2.0, 4.0]
GARNET = rm.problems.garnet(30, 3, 4, 0.9, seed=1)
P = GARNET.probabilities
WEIGHTS = np.linspace(0.5, 2.0, 30)
INTERVAL = rm.Interval(0.5 * P, np.minimum(1.0, 1.5 * P + 0.1))
SETS: list[Any] = [
    rm.L1(0.3),
    rm.L1(0.3, weights=WEIGHTS),
    rm.L1(0.3, weights=np.linspace(0.5, 2.0, GARNET.nnz)),
    rm.L1(0.3, support="all"),
    rm.L1(0.3, weights=WEIGHTS, support=[1, 7]),
    rm.LInf(0.1),
    rm.LInf(0.1, support="all"),
    rm.L2(0.2),
    rm.L2(0.2, support="all"),
    rm.Contamination(0.2),
    rm.Contamination(0.2, support=[3]),
    rm.CVaR(0.3),
    rm.EVaR(0.3),
    rm.EntropicRisk(2.0),
    rm.MeanRisk(0.4, rm.CVaR(0.2)),
    rm.MeanRisk(0.4, rm.EntropicRisk(1.0)),
    rm.MeanRisk(0.4, rm.Wasserstein(WEIGHTS, 0.2, support="model")),
    rm.Wasserstein(WEIGHTS, 0.2),
    rm.Wasserstein(sp.triu(sp.random_array((30, 30), density=0.3, rng=2), k=1), np.full((30, 3), 0.1), support=[1, 7]),
    INTERVAL,
]
each_set = pytest.mark.parametrize("ambiguity", [*SETS, *map(rm.Optimistic, SETS)], ids=repr)


@pytest.mark.parametrize("family", verify_sets.FAMILIES)
def test_rows(family: str) -> None:
    by_cvxpy = [verify_sets.judge_row(family, 1, index, by_cvxpy=True)[1] for index in range(4)]
    exactly = [verify_sets.judge_row(family, 1, index, by_cvxpy=False)[1] for index in range(25)]
    assert not any(by_cvxpy + exactly), by_cvxpy + exactly


@pytest.mark.parametrize("family", verify_sets.FAMILIES)
def test_worlds(family: str) -> None:
    failures = [verify_sets.judge_world(family, 1, index)[1] for index in range(4)]
    assert not any(failures), failures


@each_set
def test_solvers_agree_and_nature_attains_the_value(ambiguity: Any) -> None:
    solution = rm.solve(GARNET, ambiguity)
    swept = rm.solve(GARNET, ambiguity, solver=rm.ValueIteration())
    evaluated = rm.evaluate(GARNET, solution.policy, ambiguity)
    again = rm.solve(solution.worst_case.with_extra_rewards(solution.penalty), rm.Nominal())
    assert solution.converged
    for other in (swept, evaluated, again):
        assert np.abs(other.value - solution.value).max() <= other.error_bound + solution.error_bound


@each_set
def test_threads_do_not_change_a_bit(ambiguity: Any) -> None:
    world = rm.problems.garnet(300, 3, 50, 0.9, seed=2)  # enough transitions for two threads
    if getattr(ambiguity, "set", ambiguity) is INTERVAL:
        changed = rm.Interval(0.5 * world.probabilities, np.minimum(1.0, 2.0 * world.probabilities))
        ambiguity = rm.Optimistic(changed) if ambiguity is not INTERVAL else changed
    plain = getattr(ambiguity, "set", ambiguity)
    plain = getattr(plain, "risk", plain)
    if getattr(plain, "weights", None) is not None or hasattr(plain, "distance"):
        return  # these belong to the other model
    one, three = (rm.RobustBellman(world, ambiguity, threads=count) for count in (1, 3))
    v = np.random.default_rng(0).normal(size=world.n_states)
    for _ in range(2):
        v, other = one.apply(v), three.apply(v)
        assert np.array_equal(v, other)
    assert all(np.array_equal(a, b) for a, b in zip(one.bracket(v), three.bracket(v), strict=True))
    assert np.array_equal(one.worst_case(v).model.probabilities, three.worst_case(v).model.probabilities)


@each_set
def test_records(ambiguity: Any) -> None:
    copy = pickle.loads(pickle.dumps(ambiguity))
    assert copy == ambiguity
    assert hash(copy) == hash(ambiguity)
    assert copy != rm.Nominal()
    assert str(ambiguity)
    assert ambiguity.label
    with pytest.raises(AttributeError, match="is immutable"):
        ambiguity.radius = 1.0


@pytest.mark.parametrize(
    ("ambiguity", "text"),
    [
        (rm.EVaR(0.1), "EVaR(0.1)"),
        (rm.L1(0.1), "L1(0.1)"),
        (rm.L1(0.1, weights=[1.0, 2.0], support="all"), "L1(0.1, weights=<2 numbers>, support='all')"),
        (rm.MeanRisk(0.3, rm.CVaR(0.1)), "MeanRisk(0.3, CVaR(0.1))"),
        (rm.Optimistic(rm.LInf(0.2)), "Optimistic(LInf(0.2))"),
        (rm.Interval([0.1], [0.9]), "Interval(<bounds of 1 transitions>)"),
    ],
)
def test_printing(ambiguity: Any, text: str) -> None:
    assert repr(ambiguity) == text


def test_sets_that_invent_transitions_say_so() -> None:
    assert "where the model does not lead" in str(rm.L1(0.1, support="all"))
    assert "new successors" in rm.L2(0.1, support=[0]).label
    assert not rm.L1(0.1).invents
    assert rm.Optimistic(rm.Contamination(0.1, support="all")).invents


@pytest.mark.parametrize(
    ("ambiguity", "value"),
    [
        (rm.L1(0.0), 2.8),
        (rm.L1(np.inf), 1.0),
        (rm.L1(np.inf, weights=[1.0, 2.0, 3.0]), 1.0),
        (rm.LInf(0.0), 2.8),
        (rm.LInf(np.inf), 1.0),
        (rm.L2(0.0), 2.8),
        (rm.L2(np.inf), 1.0),
        (rm.Contamination(0.0), 2.8),
        (rm.Contamination(1.0), 1.0),
        (rm.CVaR(1.0), 2.8),
        (rm.CVaR(1e-12), 1.0),
        (rm.EVaR(1.0), 2.8),
        (rm.EVaR(1e-12), 1.0),
        (rm.EntropicRisk(0.0), 2.8),
        (rm.EntropicRisk(np.inf), 1.0),
        (rm.MeanRisk(0.0, rm.CVaR(0.1)), 2.8),
        (rm.MeanRisk(1.0, rm.CVaR(0.1)), 1.0),
        (rm.Interval(ROW, ROW), 2.8),
        (rm.Interval([0.0] * 3, [1.0] * 3), 1.0),
    ],
    ids=repr,
)
def test_boundary_levels(ambiguity: Any, value: float) -> None:
    assert rm.worst_case(ambiguity, ROW, VALUES).value == pytest.approx(value, abs=1e-15)


def test_weights_of_one_are_no_weights() -> None:
    plain, weighted = (rm.solve(GARNET, rm.L1(0.3, weights=w)).value for w in (None, np.ones(30)))
    assert np.abs(plain - weighted).max() <= 1e-7


def test_linf_is_an_interval() -> None:
    bounds = rm.Interval(np.maximum(P - 0.1, 0.0), np.minimum(P + 0.1, 1.0))
    one, other = (rm.solve(GARNET, ambiguity) for ambiguity in (rm.LInf(0.1), bounds))
    assert np.abs(one.value - other.value).max() <= one.error_bound + other.error_bound


def test_l1_is_twice_total_variation() -> None:
    one, other = (rm.solve(GARNET, ambiguity) for ambiguity in (rm.L1(0.3), rm.Constrained(rm.TotalVariation(), 0.15)))
    assert np.abs(one.value - other.value).max() <= one.error_bound + other.error_bound


def test_entropic_risk_is_a_price_on_outcomes() -> None:
    price = rm.Penalized(rm.KL(), 1.0 / (2.0 * GARNET.discount))
    one, other = (rm.solve(GARNET, ambiguity) for ambiguity in (rm.EntropicRisk(2.0), price))
    assert np.abs(one.value - other.value).max() <= one.error_bound + other.error_bound


def test_levels_per_pair() -> None:
    level = np.random.default_rng(0).uniform(0.1, 0.9, (30, 3))
    for make in (rm.L1, rm.LInf, rm.L2, rm.Contamination, rm.CVaR, rm.EVaR, rm.EntropicRisk):
        bellman, v = rm.RobustBellman(GARNET, make(level)), np.arange(30.0)
        q = bellman.apply_q(np.tile(v[:, None], 3))
        for s, a in ((0, 0), (7, 2)):
            one = rm.RobustBellman(GARNET, make(level[s, a])).apply_q(np.tile(v[:, None], 3))
            assert q[s, a] == pytest.approx(one[s, a], rel=1e-12)


def test_intervals_of_arrays_and_of_sparse_matrices() -> None:
    shape = (30, 3, 30)
    lower, upper = np.zeros(shape), np.zeros(shape)
    at = np.repeat(GARNET.states, np.diff(GARNET.indptr)), np.repeat(GARNET.actions, np.diff(GARNET.indptr))
    lower[(*at, GARNET.indices)], upper[(*at, GARNET.indices)] = INTERVAL.lower, INTERVAL.upper
    matrices = [[sp.csr_array(bounds[:, a]) for a in range(3)] for bounds in (lower, upper)]
    expected = rm.solve(GARNET, INTERVAL)
    for other in (rm.Interval(lower, upper), rm.Interval(*matrices)):
        assert rm.solve(GARNET, other) == expected
        assert pickle.loads(pickle.dumps(other)) == other


def test_the_worst_case_may_lead_elsewhere() -> None:
    line = rm.MDP.from_arrays([[[1.0, 0.0]], [[0.0, 1.0]]], [1.0, 0.0], 0.5)
    assert rm.solve(line, rm.L1(0.5)).value.round(6).tolist() == [2.0, 0.0]
    solution = rm.solve(line, rm.L1(0.5, support="all"))  # v = 1 + 0.5 * 0.75 v
    assert solution.value.round(6).tolist() == [1.6, 0.0]
    assert solution.worst_case.probabilities.tolist() == [0.75, 0.25, 1.0]


class EveryState(rm.L2):
    """The same ball, in which every state is a successor of every row."""

    def added_successors(self, outcome: Any, longest_row: int, **facts: Any) -> Any:
        del longest_row, facts
        return self.candidates(len(outcome)).astype(np.int32)


def random_rows(seed: int) -> rm.MDP:
    """Rows of unequal length, some of which may end; every other world has rewards that depend on the successor."""
    rng = np.random.default_rng(seed)
    n, blocks = 40, []
    for state in range(n):
        following = rng.choice(n, rng.integers(1, 6), replace=False)
        mass = rng.dirichlet(np.ones(len(following)))
        reward = rng.normal(size=len(following)) * (10.0 ** rng.integers(-2, 2)) * (seed % 2) + rng.normal()
        ends = np.where((following == 7) & (seed % 3 == 0), n, following)
        blocks.append(np.stack([np.full(len(following), state), ends, mass, reward]))
    state, following, mass, reward = np.concatenate(blocks, axis=1)
    where = state.astype(int), np.zeros(len(state), int), following.astype(int)
    return rm.MDP.from_rows(*where, mass, reward, 0.9, n_states=n)


@pytest.mark.parametrize("support", ["all", [0, 3, 5, 8, 13, 21, 34]], ids=str)
@pytest.mark.parametrize("optimistic", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_states_that_l2_leaves_out_get_no_mass(seed: int, optimistic: bool, support: Any) -> None:
    world, rng = random_rows(seed), np.random.default_rng(seed)
    for radius in (0.01, 0.2, 0.6, 2.0):
        few, every = (make(radius, support=support) for make in (rm.L2, EveryState))
        if optimistic:
            few, every = map(rm.Optimistic, (few, every))
        one, other = (rm.RobustBellman(world, ambiguity) for ambiguity in (few, every))
        for scale in (0.0, 1e-3, 1.0, 1e3):
            v = scale * rng.normal(size=world.n_states) + rng.normal()
            size = 1e-13 * (np.abs(v).max() + np.abs(world.rewards).max())  # some hundred roundings
            np.testing.assert_allclose(one.apply(v), other.apply(v), rtol=0, atol=size)
            bounds, wanted = one.bracket(v), other.bracket(v)
            assert (bounds.lower <= wanted.upper).all()
            assert (wanted.lower <= bounds.upper).all()
            assert np.max(bounds.upper - bounds.lower) <= np.max(wanted.upper - wanted.lower) + size


def test_l2_adds_few_of_many_states() -> None:
    outcome = np.random.default_rng(0).random(10_000)
    facts = {"longest_row": 10, "highest": 1.0, "rewards_differ": False}
    added = rm.L2(0.1, support="all").added_successors(outcome, **facts)
    # sum over added (eta - x)_+ = n eta^2/2 = 10 (1 - eta) for outcomes spread evenly over [0, 1]
    eta = (np.sqrt(10**2 + 2 * 10_000 * 10) - 10) / 10_000
    assert abs(len(added) - 10_000 * eta) <= 5 * np.sqrt(10_000 * eta)  # five standard deviations of a count
    assert set(added) == set(np.argsort(outcome)[: len(added)])


def test_curves_over_any_set() -> None:
    for make in (rm.L1, rm.CVaR, rm.EntropicRisk, lambda level: rm.Interval((1 - level) * P, np.minimum(1, P + level))):
        curve = rm.robustness_curve(GARNET, make, levels=[0.1, 0.2, 0.5])
        assert len(curve) == 3


@given(st.sampled_from([s for s in SETS if not isinstance(s, rm.Interval)]), st.integers(0, 10_000))
def test_the_operator_contracts_and_is_monotone(ambiguity: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bellman = rm.RobustBellman(GARNET, ambiguity)
    v, w = rng.normal(size=30), rng.normal(size=30)
    tv, tw, higher = bellman.apply(v), bellman.apply(w), bellman.apply(np.maximum(v, w))
    slack = 1e-9
    assert np.abs(tv - tw).max() <= 0.9 * np.abs(v - w).max() + slack
    assert (higher >= np.maximum(tv, tw) - slack).all()
    assert np.abs(bellman.apply(v + 3.0) - tv - 2.7).max() <= slack


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rm.L1(-0.1), "radius must be at least 0: got -0.1"),
        (lambda: rm.CVaR(0.0), r"level must lie in \(0, 1\]: got 0"),
        (lambda: rm.Contamination(1.5), r"share must lie in \[0, 1\]: got 1.5"),
        (lambda: rm.CVaR(np.nan), r"level must be a number in \(0, 1\]: got nan"),
        (lambda: rm.L1(0.1, support="alll"), "support must be one of model, all: got 'alll'; did you mean 'all'?"),
        (lambda: rm.L1(0.1, support=[-1]), 'support must be "model", "all" or a list of states'),
        (lambda: rm.L1(0.1, weights=[1.0, 0.0]), r"weights must be positive and finite: got 0 at weights\[1\]"),
        (lambda: rm.solve(GARNET, rm.L1(0.1, weights=[1.0])), r"weights must have one weight per state \(30\)"),
        (lambda: rm.solve(GARNET, rm.L2(0.1, support=[30])), "support must hold states in 0..29: got 30"),
        (lambda: rm.Interval([0.2], [1.2]), r"upper must lie in \[0, 1\]: got 1.2 at upper\[0\]"),
        (lambda: rm.Interval([0.2], [0.5, 0.5]), "lower and upper must have the same shape"),
        (
            lambda: rm.solve(GARNET, rm.Interval(P, 0.9 * P)),
            "lower must be at most upper: got .* at state 0 and action 0",
        ),
        (
            lambda: rm.solve(GARNET, rm.Interval(0.5 * P, 0.9 * P)),
            "the sum of upper bounds must be at least 1: got 0.9",
        ),
        (lambda: rm.worst_case(rm.Interval([0.6, 0.6], [1, 1]), [0.5, 0.5], [0, 1]), "the sum of lower bounds must be"),
        (
            lambda: rm.solve(GARNET, rm.Interval([0.1], [0.9])),
            r"lower must have one entry per transition \(360\): got 1",
        ),
        (
            lambda: rm.solve(GARNET, rm.Interval(np.zeros((30, 3, 30)), np.ones((30, 3, 30)))),
            "upper must be 0 at trans",
        ),
        (lambda: rm.Optimistic(rm.Optimistic(rm.L1(0.1))), "set must not be optimistic already"),
        (lambda: rm.MeanRisk(0.5, rm.L1(0.1, support="all")), "risk must keep to the model's successors"),
        (lambda: rm.GenerativeQLearning(rm.L1(0.1)).run(GARNET, 10), "a learner's ambiguity must be"),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_what_are_no_numbers_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^weights must be an array of numbers: got \[\[1, 2\], \[3\]\]$"):
        rm.L1(0.1, weights=[[1, 2], [3]])
    with pytest.raises(TypeError, match=r"^v must be an array of numbers: got 'high'$"):
        rm.worst_case(rm.L1(0.1), [0.5, 0.5], "high")


@pytest.mark.parametrize(
    "doubt",
    [rm.L1(2.0, support="all"), rm.L1(2.0, weights=np.ones(3), support="all"), rm.Contamination(1.0, support="all")],
    ids=repr,
)
def test_the_lowest_state_may_be_a_successor_at_a_good_reward(doubt: Any) -> None:
    """Nature then invents the next lowest: own outcomes are 20 and 29 - 9, state 2 gives the mean 24.5 - 8.1."""
    world = rm.MDP.from_rows(
        [0, 0, 1, 2], [0] * 4, [0, 1, 1, 2], [0.5, 0.5, 1.0, 1.0], [20.0, 29.0, 0.0, 0.0], 0.9, n_states=3
    )
    swept = rm.RobustBellman(world, doubt).apply(np.array([0.0, -10.0, -9.0]))
    assert swept[0] == pytest.approx(16.4, abs=1e-12)
