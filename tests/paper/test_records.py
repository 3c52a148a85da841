"""The records against referees: closed forms, naive loops, and the learners asked one by one."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles import learning as printed
from oracles import naive_mdp
from paper import tiny
from robustmdp.engine import Serial
from robustmdp.paper import convergence, curves, statistical
from robustmdp.paper.runs import algorithm_3

# Short trajectories miss some pairs.
pytestmark = pytest.mark.filterwarnings("ignore:the behaviour policy must visit every pair")

FAR = 1e-12  # a few hundred roundings of numbers up to 10


# The worlds.


def chain_as_printed(p: float, q: float) -> dict[tuple[int, int, int], float]:
    """P(s' | s, a) of the paper's section 6, with states 1..10 and actions 1 and 2."""
    law = {}
    for s in range(1, 10):
        law[s, 1, s], law[s, 1, s + 1] = p, 1 - p
        law[s, 2, s], law[s, 2, s + 1] = 1 - p, p
    for a in (1, 2):
        law[10, a, 10] = 1 - q
        if q > 0:
            law[10, a, 1] = q
    return law


def test_the_chains_are_those_of_the_paper() -> None:
    table = tiny.records("chain-diagrams")
    worlds = dict(table.groups("stay", "restart"))
    assert sorted(worlds) == [(p, q) for p in (0.6, 0.8) for q in (0.0, 0.5)]
    for (p, q), of in worlds.items():
        keys = zip(of["state"].tolist(), of["action"].tolist(), of["next_state"].tolist(), strict=True)
        found = dict(zip(keys, of["probability"].tolist(), strict=True))
        expected = chain_as_printed(p, q)
        assert found.keys() == expected.keys()
        assert all(abs(found[key] - expected[key]) <= 1e-15 for key in expected)
        sums: dict[tuple[int, int], float] = defaultdict(float)
        for (s, a, _), chance in found.items():
            sums[s, a] += chance
        assert len(sums) == 20
        assert all(abs(total - 1) <= 1e-15 for total in sums.values())
        assert all(reward == (state != 10) for state, reward in zip(of["state"], of["reward"], strict=True))


@pytest.mark.parametrize("restart", [0.5, 0.05])
def test_dmin_is_the_closed_form(restart: float) -> None:
    from robustmdp.paper import dmin

    table = dmin.EXPERIMENT.run(tiny.params("dmin", restart=restart), Serial())
    assert len(table) == 10
    for row in range(len(table)):
        p, pi = table["stay"][row], table["behaviour"][row]
        # The chain goes round: time in a state is geometric, and all flows are equal.
        times = [1 / (1 - (pi * p + (1 - pi) * (1 - p)))] * 9 + [1 / restart]
        shares = [time / sum(times) * chance for time in times for chance in (pi, 1 - pi)]
        assert table["d_min"][row] == pytest.approx(min(shares), rel=1e-10)
        assert table["d_max"][row] == pytest.approx(max(shares), rel=1e-10)
        assert table["pairs"][row] == 20


# Exact values.


def naive_deviations(stays: tuple[float, ...], weights: tuple[float, ...], divergence: str) -> np.ndarray:
    """max |V*_robust - V*|, (stays, weights), by value iteration; nature's choice of two by ternary search."""
    p = np.array(stays)[:, None, None, None]
    stay = np.where(np.arange(10)[:, None] < 9, np.concatenate([p, 1 - p], axis=3), 1.0)  # (stays, 1, s, a)
    level = np.array(weights)[:, None, None]
    shape = (len(stays), len(weights), 10, 2)
    moved = np.minimum(np.arange(10) + 1, 9)

    def cost(q: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            if divergence == "chi2":
                paid = (q - stay) ** 2 / stay + (stay - q) ** 2 / (1 - stay)
            else:
                paid = sum(np.where(a > 0, a * np.log(a / b), 0.0) for a, b in ((q, stay), (1 - q, 1 - stay)))
        return np.where(stay < 1, level * paid, 0.0)

    def worst(here: np.ndarray, there: np.ndarray) -> np.ndarray:
        low, high = np.where(stay < 1, 0.0, np.ones(shape)), np.ones(shape)
        for _ in range(45):  # (2/3)^45 = 1e-8, which the minimum feels squared
            left, right = low + (high - low) / 3, high - (high - low) / 3
            right_is_better = (left - right) * (here - there) + cost(left) - cost(right) > 0
            low, high = np.where(right_is_better, left, low), np.where(right_is_better, high, right)
        q = 0.5 * (low + high)
        return q * here + (1 - q) * there + cost(q)

    def mean(here: np.ndarray, there: np.ndarray) -> np.ndarray:
        return stay * here + (1 - stay) * there

    values = []
    for outcome in (worst, mean):
        v = np.full(shape[:3], 10.0)
        for _ in range(280):  # 10 * 0.9^280 = 1.5e-12
            v = ((np.arange(10) < 9)[:, None] + 0.9 * outcome(v[..., None], v[..., moved, None])).max(axis=-1)
        values.append(v)
    return np.abs(values[0] - values[1]).max(axis=-1)


@pytest.mark.parametrize("divergence", ["chi2", "kl"])
def test_deviations_are_those_of_naive_value_iteration(divergence: str) -> None:
    from robustmdp.paper import connection

    table = connection.EXPERIMENT.run(tiny.params("connection", divergence=divergence), Serial())
    for stay, expected in zip((0.6, 0.8), naive_deviations((0.6, 0.8), tiny.WEIGHTS, divergence), strict=True):
        exact = table.where(stay=stay, method="exact")
        assert exact["weight"].tolist() == list(tiny.WEIGHTS)
        # The naive values are 1.5e-12/(1 - 0.9) off at most, twice.
        assert np.all(np.abs(exact["deviation"] - expected) <= exact["certified"] + 3e-11)
        assert np.all(exact["certified"] <= 1e-10)
        assert np.all(np.isnan(table.where(stay=stay, method="algorithm-3")["certified"]))


def test_only_what_algorithm_3_can_do_is_said_to_be_its() -> None:
    from robustmdp.paper import connection

    table = connection.EXPERIMENT.run(tiny.params("connection", divergence="tv", stay=(0.8,)), Serial())
    assert table.values("method") == ["exact"]


def algorithm_3_as_printed(mdp: rm.MDP, weight: float, steps: int, inner_steps: int) -> list[list[float]]:
    """Algorithm 3 with the experiments' settings: eta goes on where it was, alpha = lambda; floats and lists."""
    horizon = 1 / (1 - mdp.discount)
    theta = -2 * weight, 2 * horizon + 2 * weight
    world = naive_mdp.of_mdp(mdp)
    eta = dict.fromkeys(world.rows, 0.0)
    q = dict.fromkeys(world.rows, horizon)
    values = []
    for t in range(steps + 1):
        v = [
            printed.projected(max(q[s, a] for a in range(world.n_actions) if (s, a) in q), 0.0, horizon)
            for s in range(world.n_states)
        ]
        values.append(v)
        if t == steps:
            break
        for pair, row in world.rows.items():
            outcomes = list(zip(row.probabilities.tolist(), row.successors.tolist(), strict=True))
            for _ in range(inner_steps):
                slope = sum(p * printed.outcome_derivative(eta[pair], v[to], weight) for p, to in outcomes)
                eta[pair] = printed.projected(eta[pair] + weight * slope, *theta)
            worst = sum(p * printed.outcome(eta[pair], v[to], weight) for p, to in outcomes)
            q[pair] = row.rewards[0] + mdp.discount * worst
    return values


@pytest.mark.parametrize("weight", [0.5, 10.0])
@pytest.mark.parametrize("seed", [None, 3])
def test_algorithm_3_is_the_printed_one(weight: float, seed: int | None) -> None:
    mdp = rm.problems.chain()
    mdp = mdp if seed is None else statistical.estimate_model(mdp, 7, seed)
    found = np.array(list(algorithm_3(mdp, rm.Penalized(rm.ChiSquare(), weight), 15, 7)))
    assert np.abs(found - algorithm_3_as_printed(mdp, weight, 15, 7)).max() <= FAR


def test_without_a_gradient_algorithm_3_sweeps_exactly() -> None:
    mdp = rm.problems.chain()
    found = list(algorithm_3(mdp, rm.Penalized(rm.TotalVariation(), 0.7), 40, 1))
    assert found[0].tolist() == [1 / (1 - 0.9)] * 10
    stay = np.array([[0.8, 0.2]] * 9 + [[1.0, 1.0]])
    for v, after in pairwise(found):
        here, there = v[:, None], v[np.minimum(np.arange(10) + 1, 9), None]
        top = np.where(stay < 1, np.minimum(here, there), here) + 0.7
        worst = stay * np.minimum(here, top) + (1 - stay) * np.minimum(there, top)  # E min(v, min v + weight)
        expected = (np.arange(10) < 9) + 0.9 * worst.max(axis=1)
        assert np.abs(after - expected).max() <= FAR


def test_matched_values_agree() -> None:
    table = tiny.records("equivalence")
    assert len(table) == 9
    assert np.all(table["certified"] <= 1e-8)
    mdp = rm.problems.chain()

    def bounds(divergence: Any, radius: float) -> tuple[float, float]:
        solution = rm.solve(mdp, rm.Constrained(divergence, radius), tol=1e-10)
        return solution.lower[0], solution.upper[0]

    for row in range(len(table)):
        divergence = {"chi2": rm.ChiSquare(), "kl": rm.KL(), "tv": rm.TotalVariation()}[str(table["divergence"][row])]
        radius, slack = table["radius"][row], table["certified"][row]
        # Values fall with the radius, which is known to eight digits.
        assert bounds(divergence, radius * (1 + 2e-8))[0] - slack <= table["penalized"][row]
        assert bounds(divergence, radius * (1 - 2e-8))[1] + slack >= table["penalized"][row]
        lower, upper = bounds(divergence, radius)
        assert lower - slack <= table["matched"][row] <= upper + slack
        lower, upper = bounds(divergence, table["level"][row])
        assert lower - slack <= table["constrained"][row] <= upper + slack


# Estimated models.


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_estimated_model_has_frequencies(size: int) -> None:
    mdp = rm.problems.chain()
    guess = statistical.estimate_model(mdp, size, seed=0)
    counts = guess.probabilities * size
    assert np.abs(counts - counts.round()).max() <= 1e-12 * size
    assert np.all(counts.round() >= 1)
    sums = np.add.reduceat(guess.probabilities, guess.indptr[:-1])
    assert np.abs(sums - 1).max() <= 1e-15 * 10
    assert (guess.n_states, guess.n_pairs, guess.discount) == (10, 20, mdp.discount)
    assert guess.rewards.tolist() == mdp.rewards.tolist()
    truth = naive_mdp.of_mdp(mdp).rows
    assert all(set(row.successors) <= set(truth[pair].successors) for pair, row in naive_mdp.of_mdp(guess).rows.items())


def test_estimated_models_come_to_the_truth_and_differ_by_seed() -> None:
    mdp = rm.problems.chain()
    size = 10**8
    far = np.abs(statistical.estimate_model(mdp, size, 1).probabilities - mdp.probabilities).max()
    assert 0 < far <= 6 * math.sqrt(0.2 * 0.8 / size)  # six standard errors
    one, other = (statistical.estimate_model(mdp, 1000, seed).probabilities for seed in (0, 1))
    assert not np.array_equal(one, other)
    assert np.array_equal(one, statistical.estimate_model(mdp, 1000, 0).probabilities)
    # Unbiased: the mean over 200 models is within four of its standard errors.
    mean = np.mean([statistical.estimate_model(mdp, 1000, seed).probabilities for seed in range(200)], axis=0)
    errors = np.sqrt(mdp.probabilities * (1 - mdp.probabilities) / (1000 * 200))
    assert np.all(np.abs(mean - mdp.probabilities) <= 4 * errors + 1e-15)


def test_statistical_records_are_those_of_one_model_for_every_weight() -> None:
    table = tiny.records("statistical")
    mdp = rm.problems.chain()
    assert np.array_equal(table["samples"], table["size"] * 20)
    for weight in tiny.WEIGHTS:
        ambiguity = rm.Penalized(rm.ChiSquare(), weight)
        truth = rm.solve(mdp, ambiguity, tol=1e-10, threads=1).value
        for (size, seed), of in table.where(method="exact", weight=weight).groups("size", "seed"):
            guess = rm.solve(statistical.estimate_model(mdp, size, seed), ambiguity, tol=1e-10, threads=1).value
            assert of["error"].tolist() == [np.abs(guess - truth).max()]
        for seed in range(3):
            of = table.where(method="algorithm-3", weight=weight, seed=seed)
            assert of["step"].tolist() == list(range(61))
            values = algorithm_3_as_printed(statistical.estimate_model(mdp, 1000, seed), weight, 5, 20)
            errors = np.abs(np.array(values) - truth)
            assert np.abs(of["error"][:6] - errors.max(axis=1)).max() <= FAR
            for row, worst in enumerate(of["worst_state"][:6] - 1):
                assert errors[row, worst] >= errors[row].max() - FAR


def test_errors_fall_like_one_over_the_root_of_the_data() -> None:
    wanted = statistical.Params(weights=(1.0,), seeds=25, sweeps=1, ascent_steps=1, sizes=(316, 3162, 31_623, 316_228))
    table = statistical.EXPERIMENT.run(wanted, Serial()).where(method="exact")
    sizes, errors = curves.by_seed(table, "size")
    slope, _ = curves.exponent(sizes, errors.mean(axis=0))
    assert -0.6 <= slope <= -0.4


# Learners.


def learner_of(algorithm: str, weight: float, inner: int, pi: float) -> Any:
    doubt, behaviour = rm.Penalized(rm.ChiSquare(), weight), np.array([pi, 1.0 - pi])
    return {
        "algorithm-1": lambda: rm.GenerativeQLearning.paper(doubt, inner),
        "algorithm-2": lambda: rm.MarkovianQLearning.paper(doubt, behaviour),
        "algorithm-2-literal": lambda: rm.MarkovianQLearning.paper(doubt, behaviour, literal=True),
        "default": lambda: rm.MarkovianQLearning(doubt, behaviour),
    }[algorithm]()


KEYS = ("weight", "inner_steps", "steps")


@pytest.mark.parametrize("name", ["convergence", "inner-steps", "markovian", "behaviour"])
def test_errors_are_those_of_the_learner_asked_alone(name: str) -> None:
    table = tiny.records(name)
    trajectories = "behaviour" in table.columns
    groups = table.groups(*KEYS, *(("algorithm", "behaviour") if trajectories else ()))
    compared = 0
    for (weight, inner, steps, *rest), of in groups:
        algorithm, pi = rest or ("algorithm-1", 0.5)
        mdp = rm.problems.chain(restart=0.5 if trajectories else 0.0)
        exact = rm.solve(mdp, rm.Penalized(rm.ChiSquare(), weight), tol=1e-10, threads=1).q
        seed = 1
        every = max(1, steps // 1000) if trajectories else 1
        alone = learner_of(algorithm, weight, inner, pi).run(mdp, steps, seed=seed, reference=exact, record_every=every)
        errors = dict(zip(alone.trace["steps"].tolist(), alone.trace["error"].tolist(), strict=True))
        rows = of.where(seed=seed)
        assert rows["step"][0] == rows["samples"][0] == 0
        start = 0.0 if algorithm == "default" else 1.0 / (1.0 - 0.9)
        assert rows["error"][0] == np.abs(start - exact).max()
        overflowed = not np.isfinite(alone.q).all()  # one that only ends far off has its errors to show
        assert set(rows["status"].tolist()) == {"diverged" if overflowed else "step_limit"}
        if overflowed:
            assert rows["error"].tolist()[1:] == [np.inf]
            continue
        assert rows["step"].tolist()[-1] == steps
        assert rows["error"].tolist()[1:] == [errors[step] for step in rows["step"].tolist()[1:]]
        per_step = 20 * (inner + 1) if algorithm == "algorithm-1" else 1
        assert np.array_equal(rows["samples"], rows["step"] * per_step)
        assert alone.samples == rows["samples"][-1]
        compared += 1
    assert compared >= 3


def test_the_first_stage_of_algorithm_1_is_the_printed_one() -> None:
    of = tiny.records("convergence").where(weight=2.0, seed=0)
    mdp = rm.problems.chain()
    exact = rm.solve(mdp, rm.Penalized(rm.ChiSquare(), 2.0), tol=1e-10).q
    rewards = [[float(s != 9)] * 2 for s in range(10)]
    runs = printed.algorithm_1(rewards, 0.9, 2.0, 5, printed.Coins(mdp, 0).receive)
    errors = [np.abs(np.array(next(runs).q) - exact).max() for _ in range(10)]
    assert np.abs(of["error"][1:11] - errors).max() <= 1e-9  # 1000 updates of numbers up to 40


def test_which_steps_are_kept() -> None:
    of = convergence.EXPERIMENT.run(convergence.Params(weights=(1.0,), seeds=1, rounds=203, inner_steps=1), Serial())
    assert of["step"].tolist() == [*range(51), *range(60, 201, 10), 203]


def test_samples_stay_within_their_budget() -> None:
    table = tiny.records("sample-efficiency")
    steps = {"algorithm-1": 20 * 6, "algorithm-2": 1, "generative": 20, "markovian": 1, "plug-in": 20}
    for (method,), of in table.groups("method"):
        if method in steps:  # multilevel Monte Carlo draws as many as chance asks for
            assert np.all(of["samples"] <= of["budget"])
            assert np.all(of["samples"] > of["budget"] - steps[method])  # not enough is left for another step
    pairs = {(str(doubt), str(method)) for doubt, method in zip(table["doubt"], table["method"], strict=True)}
    assert ("kl-ball", "mlmc") in pairs
    assert not {("kl-ball", "algorithm-1"), ("kl-ball", "algorithm-2"), ("kl-penalty", "mlmc")} & pairs


@pytest.mark.parametrize(
    ("doubt", "method", "learner"),
    [
        ("chi2-penalty", "generative", rm.GenerativeQLearning(rm.Penalized(rm.ChiSquare(), 1.0))),
        ("kl-penalty", "algorithm-2", rm.MarkovianQLearning.paper(rm.Penalized(rm.KL(), 1.0))),
        ("chi2-penalty", "algorithm-1", rm.GenerativeQLearning.paper(rm.Penalized(rm.ChiSquare(), 1.0), 5)),
        ("kl-ball", "markovian", rm.MarkovianQLearning(rm.Constrained(rm.KL(), 0.1))),
        ("kl-ball", "plug-in", rm.PlugIn(rm.Constrained(rm.KL(), 0.1))),
        ("kl-ball", "mlmc", rm.MultilevelQLearning(rm.Constrained(rm.KL(), 0.1))),
    ],
)
def test_final_errors_are_those_of_the_learner_asked_alone(doubt: str, method: str, learner: Any) -> None:
    of = tiny.records("sample-efficiency").where(doubt=doubt, method=method, budget=3000, seed=1)
    mdp = rm.problems.chain(restart=0.5)
    exact = rm.solve(mdp, learner.ambiguity, tol=1e-10, threads=1).q
    alone = learner.run(mdp, samples=3000, seed=1)
    assert of["error"].tolist() == [np.abs(alone.q - exact).max()]
    assert of["samples"].tolist() == [alone.samples]


# Who is interrupted says so: what a solver had by then is no record.


@pytest.mark.parametrize(
    "name",
    [
        "connection",
        "statistical",
        "convergence",
        "inner-steps",
        "markovian",
        "behaviour",
        "equivalence",
        "sample-efficiency",
    ],
)
def test_an_interrupt_amid_an_exact_solution_is_no_result(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from robustmdp.paper import experiment_named

    def interrupted(self: Any, *arguments: Any) -> Any:
        monkeypatch.undo()  # Ctrl-C comes once
        raise KeyboardInterrupt

    monkeypatch.setattr(rm.PolicyIteration, "iterate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        experiment_named(name).run(tiny.params(name), Serial())


@pytest.mark.parametrize("name", ["convergence", "markovian", "rates", "exploration", "step-sizes"])
def test_an_interrupt_amid_learning_is_no_result(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from robustmdp.learning.runs import Run

    def interrupted(self: Any) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "_record", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tiny.EXPERIMENTS[name].run(tiny.params(name), Serial())


# What the text claims.


def test_rates_are_those_of_the_learners() -> None:
    table = tiny.records("rates").where(weight=10.0, budget=10_000)
    world, doubt = rm.problems.chain(0.8, 0.5), rm.Penalized(rm.ChiSquare(), 10.0)
    exact = rm.solve(world, doubt, tol=1e-10).q
    learners = {
        "algorithm-2-averaged": rm.MarkovianQLearning.paper(doubt, averaging=True, burn_in=0.5),
        "algorithm-1": rm.GenerativeQLearning.paper(doubt, 22),  # sqrt(10,000/20)
        "generative": rm.GenerativeQLearning(doubt),
    }
    for method, learner in learners.items():
        of = table.where(method=method, seed=1)
        alone = learner.run(world, samples=10_000, seed=1)
        assert of["samples"].tolist() == [alone.samples]
        assert of["error"][0] == pytest.approx(np.abs(alone.q - exact).max(), rel=1e-9)


@pytest.mark.parametrize("power", [0.0, 0.3, 0.7])
def test_the_inner_loop_alone_is_gradient_ascent(power: float) -> None:
    weight, lengths = 10.0, (30, 100)
    table = tiny.records("step-sizes").where(loop="inner", weight=weight, power=power, seed=2)
    world, doubt = rm.problems.chain(0.8), rm.Penalized(rm.ChiSquare(), weight)
    v = np.clip(rm.solve(world, doubt, tol=1e-10).value, 0.0, 10.0)
    diameter = 20.0 + 4.0 * weight
    scale = diameter / ((diameter + 10.0) / (2.0 * weight)) if power == 0.0 else weight
    rng, largest = np.random.default_rng(2), np.zeros(2)
    for pair in range(world.n_pairs):
        row = slice(world.indptr[pair], world.indptr[pair + 1])
        p, x = world.probabilities[row], v[world.indices[row]]
        outcomes, eta = rng.choice(x, 100, p=p), 0.0
        for t in range(100):
            slope = 1.0 - max(0.0, eta + 2.0 * weight - outcomes[t]) / (2.0 * weight)
            eta += scale * (t + 1.0) ** -(power or 0.5) * slope
            eta = min(max(eta, -2.0 * weight), 20.0 + 2.0 * weight)
            if t + 1 in lengths:
                reached = eta + weight - float(p @ np.maximum(0.0, eta + 2.0 * weight - x) ** 2) / (4.0 * weight)
                at = lengths.index(t + 1)
                largest[at] = max(largest[at], rm.worst_case(doubt, p, x).value - reached)
    assert table["error"].tolist() == pytest.approx(largest.tolist(), abs=1e-9)


def test_gaps_and_their_formulas_by_naive_loops() -> None:
    table = tiny.records("limits").where(part="gap", weight=1.0, seed=4)
    world, doubt = rm.problems.chain(0.8), rm.Penalized(rm.ChiSquare(), 1.0)
    pair_of_values = np.random.default_rng(4).uniform(0.0, 10.0, (2, 10))
    swept, mean = [], 0.0
    for v in pair_of_values:
        best = np.full(10, -math.inf)
        for pair in range(world.n_pairs):
            row = slice(world.indptr[pair], world.indptr[pair + 1])
            p, following = world.probabilities[row], world.indices[row]
            worst = world.rewards[pair] + 0.9 * rm.worst_case(doubt, p, v[following]).value
            best[world.states[pair]] = max(best[world.states[pair]], worst)
            mean = max(mean, 0.9 * abs(float(p @ (pair_of_values[0] - pair_of_values[1])[following])))
        swept.append(best)
    assert table["gap"][0] == pytest.approx(np.abs(swept[0] - swept[1]).max(), rel=1e-9)
    assert table["least"][0] == pytest.approx(0.9 * abs(pair_of_values[0].min() - pair_of_values[1].min()), rel=1e-12)
    assert table["mean"][0] == pytest.approx(mean, rel=1e-12)


def test_losses_are_those_of_the_learned_policies() -> None:
    table = tiny.records("exploration").where(world="river-swim", behaviour="greedy", budget=1000, seed=1)
    world, doubt = rm.problems.river_swim(discount=0.9), rm.Penalized(rm.ChiSquare(), 1.0)
    learned = rm.MarkovianQLearning(doubt, rm.EpsilonGreedy(0.1)).run(world, 1000, seed=1)
    best, own = rm.solve(world, doubt).value[0], rm.evaluate(world, learned.policy, doubt).value[0]
    assert table["loss"][0] == pytest.approx(best - own, abs=1e-7)
    assert learned.visits is not None
    assert table["rarest"].tolist() == [learned.visits.min()]
