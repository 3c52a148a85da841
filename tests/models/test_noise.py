"""Models from a step and a noise: outcomes stay apart, sets speak of the noise, and what cannot hold that refuses."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

import robustmdp as rm
from oracles import naive_mdp, primal, sets
from robustmdp.app.study.nature import rows_of
from robustmdp.models import Noise
from robustmdp.models.mdp import MDP
from robustmdp.planning.totals.graphs import components, edges

NOISE = np.array([0.2, 0.3, 0.1, 0.25, 0.15])
SETS = (
    rm.Nominal(),
    rm.Constrained(rm.KL(), 0.1),
    rm.Penalized(rm.KL(), 1.0),
    rm.Constrained(rm.ChiSquare(), 0.2),
    rm.Penalized(rm.TotalVariation(), 2.0),
    rm.L1(0.3),
    rm.L2(0.2),
    rm.LInf(0.1),
    rm.CVaR(0.5),
    rm.Contamination(0.2),
    rm.Optimistic(rm.L2(0.2)),
)
each_set = pytest.mark.parametrize("ambiguity", SETS, ids=repr)


def sell(stock: Any, order: Any, demand: Any) -> Any:
    """A shelf of 4; unmet demand is lost, which costs 1 per unit; orders that do not fit are unavailable."""
    have = stock + order
    left = np.maximum(have - demand, 0)
    reward = 3.0 * np.minimum(have, demand) - order - np.maximum(demand - have, 0)
    return np.where(have > 4, -1, left), reward


def sell_one(stock: int, order: int, demand: int) -> Any:
    """The same in plain Python."""
    have = stock + order
    if have > 4:
        return None
    return max(have - demand, 0), 3.0 * min(have, demand) - order - max(demand - have, 0)


def store(step: Any = sell, noise: Any = NOISE, **settings: Any) -> MDP:
    return rm.MDP.from_noise(step, 5, 4, noise, 0.9, **settings)


STORE = store()


def random_world(seed: int, size: int = 7, *, ends: bool = True) -> tuple[MDP, list[tuple[Any, ...]]]:
    """A world from tables, with few successors for its noise and some ends; and its transitions as rows."""
    rng = np.random.default_rng(seed)
    n_states, n_actions = 4, 3
    shape = (n_states, n_actions, size)
    following = rng.integers(0, 3, size=shape)
    rewards = rng.normal(size=shape).round(1)
    ended = rng.random(shape) < 0.1 * ends
    missing = rng.random(shape[:2]) < 0.3
    missing[:, 1] = False
    noise = rng.dirichlet(np.ones(size))

    def step(s: Any, a: Any, k: Any) -> Any:
        return np.where(missing[s, a], -1, following[s, a, k]), rewards[s, a, k], ended[s, a, k]

    rows = [
        (s, a, following[s, a, k], noise[k], rewards[s, a, k], ended[s, a, k])
        for s, a, k in np.ndindex(*shape)
        if not missing[s, a]
    ]
    return rm.MDP.from_noise(step, n_states, n_actions, noise, 0.9), rows


def same_values(one: rm.Solution, other: rm.Solution) -> bool:
    """Within their certified bounds."""
    slack = one.error_bound + other.error_bound + 1e-12
    return bool(np.abs(one.value - other.value).max() <= slack)


# how a model is made


def test_rows_list_the_values_of_the_noise_in_their_order() -> None:
    assert STORE.row(3, 1).columns["noise"].tolist() == [0, 1, 2, 3, 4]
    assert STORE.row(3, 1)["successor"].tolist() == [4, 3, 2, 1, 0]
    assert STORE.row(0, 1)["successor"].tolist() == [1, 0, 0, 0, 0]
    assert STORE.row(0, 1)["reward"].tolist() == [-1.0, 2.0, 1.0, 0.0, -1.0]
    assert np.array_equal(STORE.probabilities.reshape(-1, 5), np.tile(NOISE, (STORE.n_pairs, 1)))
    assert [STORE.actions[a:b].tolist() for a, b in zip(STORE.state_ptr, STORE.state_ptr[1:], strict=False)] == [
        [0, 1, 2, 3],
        [0, 1, 2, 3],
        [0, 1, 2],
        [0, 1],
        [0],
    ]
    assert STORE.noise == Noise.of(NOISE)


def test_plain_python_and_arrays_give_equal_models() -> None:
    assert store(sell_one) == STORE


def test_a_step_is_called_once_and_some_times_more() -> None:
    calls = []

    def counted(*arguments: Any) -> Any:
        calls.append(np.shape(arguments[0]))
        return sell(*arguments)

    assert store(counted) == STORE
    assert calls[0] == (5 * 4 * 5,)
    assert len(calls) <= 1 + 18


@given(st.integers(0, 10_000))
def test_merged_outcomes_are_those_of_from_rows(seed: int) -> None:
    mdp, rows = random_world(seed, ends=False)
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    merged = rm.MDP.from_rows(*columns[:5], 0.9, n_states=4)
    found = mdp.without_noise()
    assert found.noise is None
    assert np.array_equal(found.indices, merged.indices)
    assert np.array_equal(found.indptr, merged.indptr)
    assert np.abs(found.probabilities - merged.probabilities).max() <= 1e-15
    assert np.abs(found.mean_rewards() - merged.mean_rewards()).max() <= 1e-14


@pytest.mark.parametrize("seed", range(20))
def test_the_nominal_value_does_not_see_that_outcomes_are_apart(seed: int) -> None:
    mdp, rows = random_world(seed)
    *columns, ended = (np.array(column) for column in zip(*rows, strict=True))
    merged = rm.MDP.from_rows(*columns, 0.9, n_states=4, terminated=ended)
    solutions = [rm.solve(world, rm.Nominal()) for world in (mdp, merged, mdp.without_noise())]
    assert same_values(solutions[0], solutions[1])
    assert same_values(solutions[0], solutions[2])


def test_values_of_probability_0_are_left_out_of_every_row() -> None:
    seen = []

    def step(state: Any, action: Any, value: Any) -> Any:
        seen.append(value)
        return state, 1.0 * value

    mdp = rm.MDP.from_noise(step, 2, 1, [0.5, 0.0, 0.5], 0.9, values=[10, 20, 30])
    assert mdp.noise == Noise.of([0.5, 0.5], [10, 30])
    assert np.diff(mdp.indptr).tolist() == [2, 2]
    assert 20 not in np.concatenate([np.ravel(value) for value in seen])


def test_vectors_come_by_component() -> None:
    def step(state: Any, action: Any, value: Any) -> Any:
        demand, price = value
        return np.maximum(state - demand, 0).astype(int), price * np.minimum(state, demand)

    def one(state: int, action: int, value: Any) -> Any:
        demand, price = value
        return max(int(state - demand), 0), price * min(state, demand)

    values = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 0.5]])
    mdp = rm.MDP.from_noise(step, 3, 1, [0.2, 0.3, 0.5], 0.9, values=values)
    assert mdp == rm.MDP.from_noise(one, 3, 1, [0.2, 0.3, 0.5], 0.9, values=values)
    assert mdp.row(2, 0)["noise"].tolist() == [(0.0, 1.0), (1.0, 2.0), (2.0, 0.5)]
    assert mdp.row(2, 0)["reward"].tolist() == [0.0, 2.0, 1.0]


def test_values_may_be_words_or_objects() -> None:
    words = rm.MDP.from_noise(lambda s, a, w: (s, float(len(w))), 1, 1, [0.5, 0.5], 0.9, values=["dry", "flood"])
    assert words.rewards.tolist() == [3.0, 5.0]
    assert Noise.of([0.5, 0.5], [1, "a"]).values.tolist() == [1, "a"]
    assert Noise.of([0.5, 0.5], [(1, "a"), (2, "b")]).values.tolist() == [(1, "a"), (2, "b")]
    things = [{"rain": 1}, {"rain": 2, "wind": 3}]
    objects = rm.MDP.from_noise(lambda s, a, w: (s, float(len(w))), 1, 1, [0.5, 0.5], 0.9, values=things)
    assert objects.rewards.tolist() == [1.0, 2.0]
    assert objects.noise is not None
    assert objects.noise.values.tolist() == things
    assert pickle.loads(pickle.dumps(objects)) == objects
    assert "'wind': 3" in repr(objects.row(0, 0))


def test_ends_are_outcomes() -> None:
    """With probability 1/2 one more reward of 1: 1/(1 - 0.9/2)."""
    flagged = rm.MDP.from_noise(lambda s, a, k: (s, 1.0, k == 1), 1, 1, [0.5, 0.5], 0.9)
    by_index = rm.MDP.from_noise(lambda s, a, k: (s + k, 1.0), 1, 1, [0.5, 0.5], 0.9)
    assert flagged == by_index
    assert flagged.indices.tolist() == [0, 1]
    assert rm.solve(flagged, rm.Nominal()).value[0] == pytest.approx(1.0 / 0.55, rel=1e-8)


# what sets mean


def test_a_price_on_the_noise_is_lower_than_one_on_successors() -> None:
    """All outcomes lead to state 0: V (1 - g) = -g w log E exp(-r/(g w)), and E r where they are one outcome."""
    rewards = np.array([4.0, 1.0, 0.0, 2.0, 3.0])
    mdp = rm.MDP.from_noise(lambda s, a, k: (0 * s, rewards[k]), 1, 1, NOISE, 0.9)
    price = 0.9 * 2.0
    least = -price * np.log(NOISE @ np.exp(-rewards / price)) / (1.0 - 0.9)
    apart, merged = (rm.solve(world, rm.Penalized(rm.KL(), 2.0)) for world in (mdp, mdp.without_noise()))
    assert apart.lower[0] <= least + 1e-12 * abs(least)
    assert least <= apart.upper[0] + 1e-12 * abs(least)
    assert merged.value[0] == pytest.approx(10.0 * NOISE @ rewards, rel=1e-8)
    assert merged.value[0] - apart.value[0] > 1.0


def test_l1_takes_mass_from_the_best_value_of_the_noise() -> None:
    """Rewards 0, 1, 2 with probability 1/3 each and rho = 1/3: 1/6 of mass goes from 2 to 0, so 1 becomes 2/3."""
    mdp = rm.MDP.from_noise(lambda s, a, k: (s, 1.0 * k), 1, 1, np.full(3, 1 / 3), 0.5)
    assert rm.solve(mdp, rm.L1(1 / 3)).value[0] == pytest.approx(2 * (2 / 3), rel=1e-8)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("divergence", [rm.KL(), rm.ChiSquare()], ids=repr)
def test_rows_against_cvxpy(divergence: Any, seed: int) -> None:
    """One sweep, whose rows repeat successors in any order."""
    mdp, _ = random_world(seed)
    v = np.random.default_rng(seed).normal(size=mdp.n_states)
    z = mdp.rewards + 0.9 * np.append(v, 0.0)[mdp.indices]
    for ambiguity, referee in ((rm.Constrained(divergence, 0.2), primal.constrained),):
        q = rm.RobustBellman(mdp, ambiguity).apply_q(np.where(np.arange(3) == 1, v[:, None], -np.inf))
        for pair in range(0, mdp.n_pairs, 3):
            wanted = referee(divergence, mdp.noise.probabilities, z.reshape(mdp.n_pairs, -1)[pair], 0.2)  # type: ignore[union-attr]
            assert q[mdp.states[pair], mdp.actions[pair]] == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("form", naive_mdp.FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("divergence", naive_mdp.DIVERGENCES, ids=repr)
def test_sweeps_against_rows_one_by_one(divergence: Any, form: Any) -> None:
    ambiguity = form(divergence, naive_mdp.LEVELS[form])
    for seed, size in ((0, 3), (1, 9), (2, 70)):
        mdp, _ = random_world(seed, size)
        v = np.random.default_rng(seed).normal(0.0, 3.0, mdp.n_states)
        wanted = naive_mdp.bellman(naive_mdp.of_mdp(mdp), ambiguity, v)
        bellman = rm.RobustBellman(mdp, ambiguity)
        bracket = bellman.bracket(v)
        assert np.all(bracket.lower <= wanted + 1e-9)
        assert np.all(wanted <= bracket.upper + 1e-9)
        assert np.abs(bellman.apply(v) - wanted).max() <= 1e-8


@pytest.mark.parametrize("solver", [rm.ValueIteration(), rm.PolicyIteration()], ids=repr)
@pytest.mark.parametrize("ambiguity", SETS[:6], ids=repr)
def test_bounds_hold_for_every_solver(ambiguity: Any, solver: Any) -> None:
    for seed in range(5):
        mdp, _ = random_world(seed, 12)
        mdp = mdp.with_discount(0.99)
        found = rm.solve(mdp, ambiguity, solver=solver, tol=1e-7)
        exact = rm.solve(mdp, ambiguity, tol=1e-10)
        assert found.converged
        assert np.all(found.lower <= exact.upper)
        assert np.all(exact.lower <= found.upper)
        own = rm.evaluate(mdp, found.policy, ambiguity, tol=1e-10)
        assert np.all(found.lower <= own.upper)


@each_set
def test_norm_balls_and_risks_against_exact_rows(ambiguity: Any) -> None:
    if isinstance(ambiguity, rm.Constrained | rm.Penalized):
        pytest.skip("the divergences are above")
    solution = rm.solve(STORE, ambiguity)
    z = STORE.rewards + 0.9 * solution.base[STORE.indices]
    for pair in range(STORE.n_pairs):
        row = z.reshape(-1, 5)[pair]
        wanted = sets.worst_value(ambiguity, NOISE.tolist(), row.tolist(), mpf)
        worst = solution.worst_noise(int(STORE.states[pair]), int(STORE.actions[pair]))["worst_case"]
        assert worst @ row == pytest.approx(float(wanted), abs=1e-7)


@each_set
def test_worst_noise(ambiguity: Any) -> None:
    solution = rm.solve(STORE, ambiguity)
    table = solution.worst_noise(3, 1)
    assert table["noise"].tolist() == [0, 1, 2, 3, 4]
    assert table["nominal"].tolist() == NOISE.tolist()
    assert table["worst_case"].sum() == pytest.approx(1.0, abs=1e-15)
    worst = solution.worst_case.row(3, 1)  # every value of the noise leads to another state, in falling order
    nonzero = table["worst_case"][::-1]
    assert worst["probability"] == pytest.approx(nonzero[nonzero > 0.0], abs=1e-12)
    # The worst case, in which outcomes are merged, explains the value.
    assert solution.worst_case.noise is None
    explained = rm.solve(solution.worst_case.with_extra_rewards(solution.penalty), rm.Nominal())
    assert np.abs(explained.value - solution.value).max() <= 1e-6


def test_worst_noise_by_names_and_steps() -> None:
    named = store(state_names=[f"{s} left" for s in range(5)], action_names=[f"order {a}" for a in range(4)])
    solution = rm.solve(named, rm.L1(0.4))
    assert solution.worst_noise("1 left", "order 2") == solution.worst_noise(1, 2)
    doubt = rm.L2(0.2)
    stepwise = rm.solve(STORE, doubt, criterion=rm.FiniteHorizon(3))
    for step in range(3):
        outcomes = STORE.rewards + 0.9 * stepwise.value[step + 1][STORE.indices]
        z = outcomes.reshape(-1, 5)[STORE.pair(1, 2)]
        worst = stepwise.worst_noise(1, 2, step=step)["worst_case"]
        assert worst @ z == pytest.approx(float(sets.worst_value(doubt, NOISE.tolist(), z.tolist(), mpf)), abs=1e-7)
    with pytest.raises(ValueError, match="step must be given with FiniteHorizon"):
        stepwise.worst_noise(1, 2)
    with pytest.raises(ValueError, match=re.escape("step must lie in 0..2: got 3")):
        stepwise.worst_noise(1, 2, step=3)
    with pytest.raises(ValueError, match="left out otherwise: got 1"):
        solution.worst_noise(1, 2, step=1)
    with pytest.raises(ValueError, match="did you mean '1 left'"):
        solution.worst_noise("1 lef", 0)
    with pytest.raises(ValueError, match=re.escape("action must be a number: this model has no names, got 'buy'")):
        stepwise.worst_noise(1, "buy", step=0)
    with pytest.raises(ValueError, match=re.escape("state must lie in 0..4: got 5")):
        solution.worst_noise(5, 0)
    with pytest.raises(ValueError, match="action must be available"):
        solution.worst_noise(4, 3)


def test_worst_noise_needs_noise() -> None:
    for world in (STORE.without_noise(), rm.problems.chain()):
        with pytest.raises(ValueError, match=re.escape("worst_noise needs a model made by MDP.from_noise")):
            rm.solve(world, rm.L1(0.1)).worst_noise(0, 0)


# what keeps the noise, what forgets it, what refuses


def test_what_leaves_rows_alone_keeps_the_noise() -> None:
    kept = (
        STORE.with_discount(0.5),
        STORE.with_rewards(np.arange(STORE.nnz, dtype=float)),
        STORE.with_extra_rewards(np.ones((5, 4))),
        STORE.with_labels({"empty": np.arange(5) == 0}),
        STORE.with_initial(0),
        STORE.restricted(np.arange(0, STORE.n_pairs, 1)),
        STORE.restricted(STORE.state_ptr[:-1]),
        pickle.loads(pickle.dumps(STORE)),
    )
    for mdp in kept:
        assert mdp.noise == STORE.noise
        assert np.array_equal(mdp.probabilities.reshape(-1, 5), np.tile(NOISE, (mdp.n_pairs, 1)))
        MDP(*(getattr(mdp, name) for name in mdp.__dataclass_fields__))  # is what it says
    assert kept[-1] == STORE
    assert hash(kept[-1]) == hash(STORE)
    assert STORE.without_noise() != STORE
    assert "noise" in repr(STORE)
    assert "noise" not in repr(STORE.without_noise())


def test_other_probabilities_merge_the_rows() -> None:
    other = np.tile([0.5, 0.0, 0.2, 0.2, 0.1], STORE.n_pairs)
    mdp = STORE.with_probabilities(other)
    assert mdp == store(noise=[0.5, 0.0, 0.2, 0.2, 0.1]).without_noise()
    starts = np.arange(STORE.n_pairs + 1) * 6
    successors = np.insert(STORE.indices.reshape(-1, 5), 5, 1, axis=1)
    grown = STORE.with_added(
        starts, successors.ravel(), np.insert(np.tile(NOISE * 0.5, (STORE.n_pairs, 1)), 5, 0.5, axis=1).ravel()
    )
    assert grown.noise is None
    assert grown.row(0, 0)["successor"].tolist() == [0, 1]
    for world in (mdp, grown):
        MDP(*(getattr(world, name) for name in world.__dataclass_fields__))  # sorted, without repetition


def test_a_model_must_be_what_its_noise_says() -> None:
    parts = {name: getattr(STORE, name) for name in STORE.__dataclass_fields__}
    with pytest.raises(ValueError, match="indices must rise within a row"):
        MDP(**{**parts, "noise": None})
    with pytest.raises(
        ValueError, match=re.escape("every row must hold the 5 probabilities of the noise: that of pair 0")
    ):
        MDP(**{**parts, "noise": Noise.of(NOISE[::-1])})
    with pytest.raises(ValueError, match="every row must hold the 2 probabilities"):
        MDP(**{**parts, "noise": Noise.of([0.5, 0.5])})
    with pytest.raises(TypeError, match="noise must be a Noise or None: got list"):
        MDP(**{**parts, "noise": [1.0]})


@pytest.mark.parametrize("support", ["all", [0, 1]])
def test_sets_that_add_successors_refuse(support: Any) -> None:
    for ambiguity in (rm.L1(0.1, support=support), rm.Contamination(0.1, support=support)):
        with pytest.raises(ValueError, match="a set must not add successors to a model made from noise"):
            rm.solve(STORE, ambiguity)
        rm.solve(STORE.without_noise(), ambiguity)


def test_intervals_of_successors_refuse_and_those_of_entries_do_not() -> None:
    bounds = np.zeros((5, 4, 5))
    with pytest.raises(ValueError, match="lower must have one entry per transition"):
        rm.solve(STORE, rm.Interval(bounds, bounds + 1.0))
    p = STORE.probabilities
    solution = rm.solve(STORE, rm.Interval(0.5 * p, np.minimum(1.5 * p, 1.0)))
    worst = solution.worst_noise(0, 1)
    assert np.all(worst["worst_case"] >= 0.5 * NOISE - 1e-12)
    assert np.all(worst["worst_case"] <= 1.5 * NOISE + 1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise": [3, 1, 4]}, "noise must hold probabilities that sum to 1: got 8; divide counts by their sum"),
        ({"noise": [0.5, -0.5, 1.0]}, "noise must be finite and at least 0: got -0.5 at noise[1]"),
        ({"noise": [[1.0]]}, "noise must be a 1-D array of probabilities: got shape (1, 1)"),
        ({"values": [1, 2]}, "values must be as many as the probabilities of the noise (5): got 2"),
        ({"step": lambda s, a, k: 1}, "step must return next_state, reward and perhaps terminated, or None"),
        ({"step": lambda s, a, k: (s, 1.0, True, 3)}, "step must return next_state, reward and perhaps terminated"),
        ({"step": lambda s, a, k: (9, 1.0)}, "next_state must lie in 0..5 (5 is the end): got 9 at state 0, action 0"),
        (
            {"step": lambda s, a, k: (s + 0.5, 1.0)},
            "next_state must be a whole number: got 0.5 at state 0, action 0 and",
        ),
        ({"step": lambda s, a, k: ("x", 1.0)}, "next_state must be a whole number: got 'x' at state 0"),
        ({"step": lambda s, a, k: (s, np.nan)}, "reward must be finite: got nan at state 0, action 0 and noise 0"),
        ({"step": lambda s, a, k: (s, 1.0, 2)}, "terminated must be 0, 1, true or false: got 2"),
        ({"step": lambda s, a, k: (s - 1, 1.0)}, "every state must have at least one action: state 0 has none"),
        ({"step": lambda s, a, k: None if k == 2 else (s, 1.0)}, "for some only, as at state 0, action 0 and noise 2"),
        ({"step": lambda s, a, k: (k - 1, 1.0)}, "for some only, as at state 0, action 0 and noise 0"),
        ({"step": lambda s, a, k: (s, np.max(k) + 0.0)}, "step must answer arrays as it answers their entries"),
    ],
)
def test_refusals(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        store(**settings)


def test_what_a_step_raises_itself_is_seen() -> None:
    with pytest.raises(KeyError, match="7"):
        store(lambda s, a, k: {}[7])


def test_a_step_for_arrays_alone_is_compared_with_arrays() -> None:
    def masked(stock: Any, order: Any, demand: Any) -> Any:
        left = stock + order - demand
        left[left < 0] = 0
        left[stock + order > 4] = -1
        return left, 3.0 * np.minimum(stock + order, demand) - order - np.maximum(demand - stock - order, 0)

    assert store(masked) == STORE

    def mixed(stock: Any, order: Any, demand: Any) -> Any:
        left, reward = masked(stock, order, demand)
        return left, reward - reward.mean()

    with pytest.raises(ValueError, match="step must answer arrays as it answers their entries"):
        store(mixed)


def test_a_step_cannot_change_the_arrays_that_it_gets() -> None:
    def careless(stock: Any, order: Any, demand: Any) -> Any:
        stock += order  # would spoil the states of all that follows
        return np.maximum(np.minimum(stock, 4) - demand, 0), 0.0 * stock

    mdp = store(careless)
    assert mdp.row(2, 1)["successor"].tolist() == [3, 2, 1, 0, 0]


# everything else that takes a model


@pytest.mark.parametrize("name", ["m.csv", "m.parquet", "m.tra", "m.drn"])
def test_files_of_successors_refuse(tmp_path: Any, name: str) -> None:
    with pytest.raises(ValueError, match=re.escape("a model made from noise must be in a .safetensors file")):
        rm.write(STORE, tmp_path / name)
    assert not list(tmp_path.iterdir())
    merged = STORE.without_noise()
    assert rm.read(rm.write(merged, tmp_path / name)) == merged
    if name.endswith((".tra", ".drn")):
        p = STORE.probabilities
        with pytest.raises(ValueError, match="a model made from noise"):
            rm.write_interval(STORE, rm.Interval(0.5 * p, p), tmp_path / name)


@pytest.mark.parametrize("name", ["m.safetensors", "m.safetensors.zst"])
@pytest.mark.parametrize(
    "values",
    [None, [0.5, 1.0, 2.0, 3.0, 4.0], list("abcde"), [[i, i + 1] for i in range(5)], [True, False] * 2 + [True]],
)
def test_our_own_format_keeps_the_noise(tmp_path: Any, name: str, values: Any) -> None:
    pytest.importorskip("pyarrow")
    mdp = rm.MDP.from_noise(lambda s, a, k: (0, 1.0), 1, 1, NOISE, 0.9, values=values)
    mdp = mdp.with_rewards(np.arange(5.0)).with_labels({"x": [True]})
    read = rm.read(rm.write(mdp, tmp_path / name))
    assert read == mdp
    assert read.noise is not None
    assert mdp.noise is not None
    assert read.noise.values.dtype == mdp.noise.values.dtype


def test_objects_and_infinities_are_not_stored(tmp_path: Any) -> None:
    for values in ([{}, []], [np.nan, 1.0]):
        mdp = rm.MDP.from_noise(lambda s, a, k: (0, 1.0), 1, 1, [0.5, 0.5], 0.9, values=values)
        with pytest.raises(ValueError, match="the values of the noise must be finite numbers, flags or words"):
            rm.write(mdp, tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"noise":[0,1,2,3,4]', b'"noise":[null,1,23]', "must have one number, flag or word"),
        (b'"noise":[0,1,2,3,4]', b'"noise":[0,1,2,3]  ', "every row must hold|sum to 1"),
        (b'"noise":[0,1,2,3,4]', b'"noise":[0,1,2,[],4]', "must hold notes"),
        (b'"noise":[0,1,2,3,4]', b'"noise":[]         ', "must have one number, flag or word"),
        (b'"noise":[0,1,2,3,4]', b'"n_oise":[0,1,2,3]  ', "must hold notes"),
    ],
)
def test_damaged_noise_is_refused(tmp_path: Any, old: bytes, new: bytes, message: str) -> None:
    path = rm.write(STORE, tmp_path / "m.safetensors")
    data = path.read_bytes()
    old, new = (text.replace(b'"', b'\\"') for text in (old, new))
    assert old in data
    new = new + b" " * (len(old) - len(new))
    path.write_bytes(data.replace(old, new[: len(old)]))
    with pytest.raises(ValueError, match=message):
        rm.read(path)


def test_criteria_curves_and_stress() -> None:
    mdp = STORE.with_labels({"full": np.arange(5) == 4})
    merged = mdp.without_noise()
    doubt = rm.Constrained(rm.KL(), 0.05)
    reached = [rm.reach(world, doubt, "full", within=3) for world in (mdp, merged)]
    assert np.abs(reached[0].value - reached[1].value).max() <= 1e-6  # without rewards nothing tells outcomes apart
    curve = rm.robustness_curve(mdp, rm.KL(), [0.5, 5.0])
    exact = [rm.solve(mdp, rm.Penalized(rm.KL(), weight)).value.mean() for weight in (5.0, 0.5)]
    assert curve["worst"] == pytest.approx(exact, abs=1e-5)
    worlds = rm.worlds.Models([store(noise=[0.1, 0.1, 0.2, 0.3, 0.3])])
    tried = rm.stress(mdp, {"nominal": rm.solve(mdp, rm.Nominal()), "robust": rm.solve(mdp, doubt)}, worlds)
    assert len(tried)
    drawn = rm.stress(mdp, {"nominal": rm.solve(mdp, rm.Nominal())}, rm.worlds.RandomKernels(rm.KL(), 0.1, count=3))
    assert len(drawn)


@pytest.mark.parametrize("seed", range(5))
def test_total_rewards_of_random_worlds(seed: int) -> None:
    """Many repeated successors and ends; the merged world is the same where the model is right."""
    mdp, rows = random_world(seed, size=40)
    hopeless = not any(row[-1] for row in rows)
    if hopeless:
        pytest.skip("nothing ends")
    solved = [rm.reach(world, rm.Nominal(), [2]) for world in (mdp, mdp.without_noise())]
    assert np.abs(solved[0].value - solved[1].value).max() <= 1e-6
    steps = rm.FiniteHorizon(4)
    both = [rm.solve(world, rm.Nominal(), criterion=steps).value for world in (mdp, mdp.without_noise())]
    assert np.abs(both[0] - both[1]).max() <= 1e-9


def test_pages_and_counts_speak_of_successors() -> None:
    doubt = rm.L1(0.4)
    solution = rm.solve(STORE, doubt)
    (row,) = rows_of(STORE, doubt, solution.value, [0], np.full(5, 1))
    merged = STORE.without_noise()
    assert row.successors == (0, 1)
    assert row.nominal.tolist() == merged.row(0, 1)["probability"].tolist()
    assert row.worst == pytest.approx(solution.worst_case.row(0, 1)["probability"].tolist())
    log = rm.Trajectory([0, 1], [1, 2], [0.0, 0.0], [1, 0])
    counts = rm.estimate(log, 0.9, known=STORE).counts
    assert np.array_equal(counts.next_state, merged.indices)
    assert counts.count.sum() == 2
    fresh = counts.count == 0
    assert counts.reward[fresh] == pytest.approx(merged.rewards[fresh])  # what was never seen has the mean


def test_many_repetitions_of_one_edge() -> None:
    """512 values lead to the same state: the number of edges does not fit in a byte."""
    mdp = rm.MDP.from_noise(lambda s, a, k: (1 - s, 0.0), 2, 1, np.full(512, 1 / 512), 1.0)
    sources, targets = edges(mdp, np.ones(2, dtype=bool))
    assert components(sources, targets, 2).tolist() == [0, 0]
    assert rm.reach(mdp, rm.L1(0.5), [1]).value == pytest.approx([1.0, 1.0], abs=1e-6)


def test_learners_bound_the_value_on_the_noise(tmp_path: Any) -> None:
    doubt = rm.Penalized(rm.ChiSquare(), 2.0)
    exact = rm.solve(STORE, doubt)
    learned = rm.GenerativeQLearning(doubt).run(STORE, steps=3000, seed=0, checkpoint=tmp_path / "run")
    assert np.all(learned.lower <= exact.upper)
    assert np.all(exact.lower <= learned.upper)
    assert np.abs(learned.value - exact.value).max() < 0.1 * np.abs(exact.value).max()
    again = rm.resume(tmp_path / "run", steps=4000)
    assert again.adversary.mdp == STORE
    things = rm.MDP.from_noise(lambda s, a, k: (0, 1.0), 1, 1, [0.5, 0.5], 0.9, values=[{}, []])
    with pytest.raises(ValueError, match="the values of the noise must be"):
        rm.GenerativeQLearning(doubt).run(things, steps=10, seed=0, checkpoint=tmp_path / "other")


def test_the_plug_in_estimate_refuses() -> None:
    with pytest.raises(ValueError, match="the plug-in estimate counts successors"):
        rm.PlugIn(rm.L1(0.1)).run(STORE, samples=100, seed=0)


def test_the_worst_case_can_be_played() -> None:
    env = rm.to_gymnasium(rm.solve(STORE, rm.L1(0.3)), start=0, max_steps=5)
    env.reset(seed=0)
    assert 0 <= env.step(1)[0] < 5


def test_one_radius_for_all_pairs() -> None:
    counts = np.array([16, 24, 8, 20, 12])
    radius = rm.radius_from_counts(counts, rm.KL(), 0.95)
    assert isinstance(radius, float)
    assert 0.0 < radius < 0.2
    mdp = store(noise=(counts + 0.5) / (counts + 0.5).sum())
    robust = rm.solve(mdp, rm.Constrained(rm.KL(), radius))
    assert np.all(robust.value <= rm.solve(mdp, rm.Nominal()).value)
