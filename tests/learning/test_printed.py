"""Algorithms 1 and 2 as printed: step by step against a transcription of the pseudo-code, and where they break."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles import learning as naive

# Both sides do the same few operations in another order, one on discounted numbers: each step rounds a few times, and
# averages forget. To the letter nothing is an average, |1 - beta| reaches 19, and J squares V, which doubles the
# relative error some ten times before the overflow.
ROUNDING, LITERAL_ROUNDING = 1e-12, 1e-10
WEIGHTS = (0.5, 1.0, 3.0, 10.0)
PAPER_WEIGHTS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0)
PAPER_BEHAVIOURS = (0.001, 0.005, 0.05, 0.1, 0.2, 0.5)
STAY, RESTART, DISCOUNT = 0.8, 0.5, 0.9
REWARDS = [[1.0, 1.0]] * 9 + [[0.0, 0.0]]
LEAVE = [[1 - STAY, STAY]] * 9 + [[RESTART, RESTART]]
BY_STATE = [[0.1 + 0.08 * s, 0.9 - 0.08 * s] for s in range(10)]
BEHAVIOURS: dict[str, Any] = {"uniform": None, "rare": [0.05, 0.95], "one for all": [0.2, 0.8], "by state": BY_STATE}
COUNTS = {*range(1, 21), 100, 200, 1000}

pytestmark = pytest.mark.filterwarnings("ignore:the behaviour policy must visit every pair")
DIVERGENCES = (
    rm.ChiSquare(), rm.KL(), rm.TotalVariation(), rm.Hellinger(), rm.Burg(), rm.JensenShannon(), rm.CressieRead(0.3),
    rm.CressieRead(3.0),
)  # fmt: skip


def chi_square(weight: float) -> rm.Penalized:
    return rm.Penalized(rm.ChiSquare(), weight)


def probabilities(behaviour: Any) -> list[list[float]]:
    return np.broadcast_to([0.5, 0.5] if behaviour is None else behaviour, (10, 2)).tolist()


def assert_same(solution: rm.Solution, tables: naive.Tables, tolerance: float = ROUNDING) -> None:
    for ours, printed in ((solution.q, tables.q), (solution.eta, tables.eta)):
        gap = np.abs(ours - printed) / np.maximum(1.0, np.abs(printed))
        assert gap.max() <= tolerance


def transcribed(weight: float, behaviour: Any, seed: int, literal: bool) -> Iterator[naive.Tables]:
    """Algorithm 2 on the draws of a seed: two numbers a step, the first for the action."""
    coins = naive.Coins(rm.problems.chain(STAY, RESTART, DISCOUNT), seed)
    policy = probabilities(behaviour)
    d_min, d_max = naive.ring_occupancy(LEAVE, policy)
    return naive.algorithm_2(
        REWARDS, DISCOUNT, weight, d_min, d_max, lambda s, q: naive.drawn(policy[s], coins.number()), coins.receive,
        literal=literal,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("inner_steps", "last", "seed"), [(1, 1000, 0), (10, 100, 12345), (100, 25, 2), (1, 200, 2**40)]
)
@pytest.mark.parametrize("weight", WEIGHTS)
def test_algorithm_1_does_what_is_printed(weight: float, inner_steps: int, last: int, seed: int) -> None:
    mdp = rm.problems.chain(STAY, discount=DISCOUNT)
    learner = rm.GenerativeQLearning.paper(chi_square(weight), inner_steps=inner_steps)
    printed = naive.algorithm_1(REWARDS, DISCOUNT, weight, inner_steps, naive.Coins(mdp, seed).receive)
    for step, tables in enumerate(islice(printed, last), start=1):
        if step in COUNTS or step == last:
            assert_same(learner.run(mdp, step, seed=seed), tables)


@pytest.mark.parametrize(
    ("name", "seed"), [("uniform", 0), ("uniform", 12345), ("rare", 1), ("one for all", 7), ("by state", 3)]
)
@pytest.mark.parametrize("weight", WEIGHTS)
def test_algorithm_2_does_what_is_printed(weight: float, name: str, seed: int) -> None:
    mdp, behaviour = rm.problems.chain(STAY, RESTART, DISCOUNT), BEHAVIOURS[name]
    learner = rm.MarkovianQLearning.paper(chi_square(weight), behaviour)
    for step, tables in enumerate(islice(transcribed(weight, behaviour, seed, literal=False), 1000), start=1):
        if step in COUNTS:
            assert_same(learner.run(mdp, step, seed=seed), tables)


@pytest.mark.parametrize(("name", "seed"), [("uniform", 0), ("uniform", 12345), ("one for all", 7), ("by state", 3)])
@pytest.mark.parametrize("weight", WEIGHTS)
def test_to_the_letter_algorithm_2_explodes_when_the_print_does(weight: float, name: str, seed: int) -> None:
    mdp, behaviour = rm.problems.chain(STAY, RESTART, DISCOUNT), BEHAVIOURS[name]
    learner = rm.MarkovianQLearning.paper(chi_square(weight), behaviour, literal=True)
    history = list(islice(transcribed(weight, behaviour, seed, literal=True), 3000))
    exploded = len(history) if len(history) < 3000 else None
    for step in {*range(1, 11), 100, 200, (exploded or 3001) - 1}:
        solution = learner.run(mdp, step, seed=seed)
        assert solution.status.code == code_of(solution.q)
        assert_same(solution, history[step - 1], LITERAL_ROUNDING)
    assert exploded or weight > 1.0  # where some seeds survive
    for more in (0, 1, 500) if exploded else ():
        solution = learner.run(mdp, exploded + more, seed=seed)
        assert solution.status.code == "diverged"
        assert solution.steps == exploded
        assert f"at step {exploded};" in str(solution.status)


def code_of(q: Any) -> str:
    """Returns lie in [0, 10]: a value that is off by more than 10 is no return on its way."""
    v = np.max(q, axis=1)
    return "diverged" if (v < -10.0).any() or (v > 20.0).any() else "step_limit"


def test_the_ring_knows_how_often_pairs_come() -> None:
    mdp = rm.problems.chain(STAY, RESTART, DISCOUNT)
    for behaviour in BEHAVIOURS.values():
        assert naive.ring_occupancy(LEAVE, probabilities(behaviour)) == pytest.approx(
            rm.theory.occupancy(mdp, behaviour), rel=1e-13
        )


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_algorithm_2_follows_its_own_greedy_action(epsilon: float) -> None:
    # With the chain's own rewards many actions are equally good up to rounding, which would then choose.
    rewards = [[(REWARDS[s][a] + 0.01 * (2 * s + a)) / 1.3 for a in range(2)] for s in range(10)]
    chain = rm.problems.chain(STAY, RESTART, DISCOUNT)
    states, actions = (np.repeat(column, np.diff(chain.indptr)) for column in (chain.states, chain.actions))
    paid = np.array(rewards)[states, actions]
    mdp = rm.MDP.from_rows(states, actions, chain.indices, chain.probabilities, paid, DISCOUNT)
    coins = naive.Coins(mdp, 3)

    def act(s: int, q: naive.Table) -> int:
        u = coins.number()
        if u < epsilon:
            return int(u / epsilon * 2)
        gap = abs(q[s][0] - q[s][1])
        assert gap == 0.0 or gap > 1e-9
        ties = [a for a in range(2) if q[s][a] == max(q[s])]
        return ties[int((u - epsilon) / (1.0 - epsilon) * len(ties))]

    printed = naive.algorithm_2(rewards, DISCOUNT, 1.0, 0.01, 0.1, act, coins.receive, literal=False)
    learner = rm.MarkovianQLearning.paper(chi_square(1.0), rm.EpsilonGreedy(epsilon), d_min=0.01, d_max=0.1)
    for step, tables in enumerate(islice(printed, 1000), start=1):
        if step in COUNTS:
            assert_same(learner.run(mdp, step, seed=3, reward_range=(0.0, 1.0)), tables)


@pytest.mark.parametrize("weight", [0.5, 10.0])
def test_algorithm_1_asks_a_simulator_the_same_questions(weight: float) -> None:
    told: list[tuple[int, int, int]] = []

    def sample(state: int, action: int, rng: np.random.Generator) -> tuple[float, int, bool]:
        leave = (STAY if action else 1 - STAY) if state < 9 else 0.0
        told.append((state, action, state + int(rng.random() < leave)))
        return REWARDS[state][action], told[-1][2], False

    # The reward is R(s, a), as printed, only where nature cannot touch it.
    learner = replace(rm.GenerativeQLearning.paper(chi_square(weight), inner_steps=10), noisy_rewards=True)
    learned = learner.run(rm.Simulator(sample, 10, 2, DISCOUNT, (0.0, 1.0)), 20, seed=5)
    answers = iter(told)

    def receive(s: int, a: int) -> int:
        state, action, following = next(answers)
        assert (state, action) == (s, a)
        return following

    printed = naive.algorithm_1(REWARDS, DISCOUNT, weight, 10, receive)
    assert_same(learned, list(islice(printed, 20))[-1])
    assert next(answers, None) is None


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_to_the_letter_algorithm_2_explodes_for_every_seed_at_small_weights(weight: float) -> None:
    learner = rm.MarkovianQLearning.paper(chi_square(weight), literal=True)
    solutions = learner.run_many(rm.problems.chain(STAY, RESTART, DISCOUNT), 20_000, seeds=20)
    for solution in solutions:
        assert solution.status.code == "diverged"
        assert solution.steps < 20_000
        assert f"at step {solution.steps};" in str(solution.status)
        assert np.all(solution.lower <= solution.upper)  # what is left of them
    assert len({solution.steps for solution in solutions}) > 10  # each its own


@pytest.mark.parametrize("stay", PAPER_BEHAVIOURS)
@pytest.mark.parametrize("weight", PAPER_WEIGHTS)
def test_the_repairs_keep_algorithm_2_in_range(weight: float, stay: float) -> None:
    learner = rm.MarkovianQLearning.paper(chi_square(weight), [stay, 1 - stay])
    theta, values = (-2 * weight, 20.0 + 2 * weight), (0.0, 10.0)
    largest = rm.theory.outcome_bound(rm.ChiSquare(), weight, values, theta, "true")
    for solution in learner.run_many(rm.problems.chain(STAY, RESTART, DISCOUNT), 20_000, seeds=20):
        assert solution.status.code == code_of(solution.q)
        # With beta <= 1 each Q is an average of 1/(1-gamma) and of targets r + gamma J, |J| <= C_M.
        assert np.abs(solution.q).max() <= (1.0 + DISCOUNT * largest) * (1 + ROUNDING)


@pytest.mark.parametrize("weight", [1e-3, 0.5])
@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
def test_printed_algorithms_stay_finite_for_every_divergence(divergence: Any, weight: float) -> None:
    doubt = rm.Penalized(divergence, weight)
    swept = rm.GenerativeQLearning.paper(doubt, inner_steps=10).run_many(rm.problems.chain(), 100, seeds=4)
    led = rm.MarkovianQLearning.paper(doubt).run_many(rm.problems.chain(restart=0.5), 5000, seeds=4)
    for solution in (*swept, *led):
        assert solution.status.code == code_of(solution.q)
        assert np.isfinite(solution.q).all()


@pytest.mark.parametrize("divergence", [*DIVERGENCES], ids=repr)
@pytest.mark.parametrize("learner", [rm.GenerativeQLearning.paper, rm.MarkovianQLearning.paper])
def test_printed_algorithms_at_the_limits(learner: Any, divergence: Any) -> None:
    mdp = rm.problems.chain(STAY, RESTART, DISCOUNT)
    nominal = learner(rm.Nominal()).run(mdp, 200, seed=1)
    assert np.array_equal(learner(rm.Penalized(divergence, math.inf)).run(mdp, 200, seed=1).q, nominal.q)
    # Algorithm 1 has its successors after one round, and beta_n = 1/(1 + n/10) forgets the start like 11/n.
    if learner == rm.GenerativeQLearning.paper:
        free = rm.Penalized(divergence, 0.0)
        worst = rm.solve(mdp, free)
        assert np.abs(learner(free).run(mdp, 2000, seed=1).q - worst.q).max() <= 0.1


def test_a_table_of_equal_weights_is_one_weight() -> None:
    mdp, table = rm.problems.chain(STAY, RESTART, DISCOUNT), np.full((10, 2), 2.0)
    for maker, steps in ((rm.GenerativeQLearning.paper, 50), (rm.MarkovianQLearning.paper, 5000)):
        one, many = (maker(rm.Penalized(rm.ChiSquare(), w)).run(mdp, steps) for w in (2.0, table))
        assert np.array_equal(one.q, many.q)
        assert np.array_equal(one.eta, many.eta)


@pytest.mark.parametrize("maker", [rm.GenerativeQLearning.paper, rm.MarkovianQLearning.paper])
def test_printed_algorithms_refuse_a_ball(maker: Any) -> None:
    with pytest.raises(ValueError, match="for a penalty: got Constrained"):
        maker(rm.Constrained(rm.ChiSquare(), 0.1)).run(rm.problems.chain(restart=0.5), 10)


@pytest.mark.parametrize("ambiguity", [rm.Penalized(rm.KL(), 1.0), rm.Nominal(), rm.Constrained(rm.ChiSquare(), 1.0)])
def test_to_the_letter_is_for_a_chi_square_penalty(ambiguity: Any) -> None:
    with pytest.raises(ValueError, match="literal is Algorithm 2 as printed, which is for a chi-square penalty"):
        rm.MarkovianQLearning.paper(ambiguity, literal=True)


def test_algorithm_2_counts_on_the_pairs_that_come() -> None:
    """In the chain without a return nothing leaves the last state: d_min is that of its two pairs."""
    mdp, known = rm.problems.chain(), rm.MarkovianQLearning.paper(chi_square(1.0), d_min=0.5, d_max=0.5)
    found = rm.MarkovianQLearning.paper(chi_square(1.0)).run(mdp, 1000)
    assert np.array_equal(found.q, known.run(mdp, 1000).q)


def test_algorithm_2_computes_its_steps_for_the_start_it_has() -> None:
    """Two worlds side by side, and episodes that begin in the second: its pairs come with 1/3 and 2/3."""
    p = [[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 1], [0, 0, 0.5, 0.5]]
    mdp = rm.MDP.from_arrays(np.array(p)[:, None], [[0.0], [1.0], [0.0], [1.0]], 0.9)
    doubt = chi_square(1.0)
    told = rm.MarkovianQLearning.paper(doubt, d_min=1 / 3, d_max=2 / 3).run(mdp, 1000, start=2)
    found = rm.MarkovianQLearning.paper(doubt).run(mdp, 1000, start=2)
    assert np.abs(found.q - told.q).max() <= ROUNDING


def test_algorithm_2_estimates_what_nobody_told_it() -> None:
    mdp = rm.problems.chain(restart=0.5)
    learner = rm.MarkovianQLearning.paper(chi_square(10.0), rm.EpsilonGreedy(0.5))
    one_by_one = [learner.run(mdp, 20_000, seed=seed) for seed in range(3)]
    assert all(
        np.array_equal(a.q, b.q) for a, b in zip(one_by_one, learner.run_many(mdp, 20_000, seeds=3), strict=True)
    )
    pieces = learner.run(mdp, 20_000, seed=0, record_every=7)
    assert np.array_equal(pieces.q, one_by_one[0].q)
    assert abs(one_by_one[0].value - rm.solve(mdp, chi_square(10.0)).value).max() < 1.0
