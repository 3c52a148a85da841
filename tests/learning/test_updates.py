"""The default learners: they come to the solver's Q, stay finite, keep the symmetries of the problem and the bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robustmdp as rm
from oracles import naive_mdp

pytestmark = pytest.mark.filterwarnings("ignore:the behaviour policy must visit every pair")
PENALTIES = (
    rm.ChiSquare(), rm.KL(), rm.TotalVariation(), rm.Hellinger(), rm.Burg(), rm.JensenShannon(), rm.CressieRead(0.3),
    rm.CressieRead(3.0),
)  # fmt: skip
BALLS = (rm.ChiSquare(), rm.KL(), rm.TotalVariation(), rm.Hellinger())
DOUBTS = (
    *(rm.Penalized(divergence, 1.0) for divergence in PENALTIES),
    *(rm.Constrained(divergence, 0.1) for divergence in BALLS),
    rm.Nominal(),
)
LEARNERS = (rm.GenerativeQLearning, rm.MarkovianQLearning)
each_doubt = pytest.mark.parametrize("doubt", DOUBTS, ids=repr)
each_learner = pytest.mark.parametrize("learner", LEARNERS)
each_penalty = pytest.mark.parametrize("divergence", PENALTIES, ids=repr)


def mean_error(solutions: list[rm.Solution]) -> float:
    return float(np.mean([solution.trace["error"][-1] for solution in solutions]))


@each_learner
@each_doubt
def test_learners_come_to_the_solution(doubt: Any, learner: Any) -> None:
    mdp = rm.problems.chain(restart=0.5)
    exact = rm.solve(mdp, doubt, tol=1e-10)
    few, many = 20 * 250, 20 * 4000
    early, late = (
        mean_error(learner(doubt).run_many(mdp, samples=n, seeds=8, reference=exact.q, record_every=n))
        for n in (few, many)
    )
    rival = rm.PlugIn(doubt, trajectory=learner is rm.MarkovianQLearning)
    counted = mean_error(rival.run_many(mdp, samples=many, seeds=8, reference=exact.q, record_every=many))
    # Sixteen times the samples are worth a factor of 4; 2 leaves room for the noise of eight seeds. The plug-in is as
    # good as samples allow; learning from each sample once may cost a part of them, measured: a factor of 2.3 in the
    # error at most, here where ties hurt.
    assert late <= early / 2
    assert late <= 3 * counted


@pytest.mark.parametrize("weight", [0.5, 3.0])
def test_few_samples_are_worth_nearly_what_they_are_to_the_plug_in(weight: float) -> None:
    # Values lie near -30 and start at 0; 133 visits a pair at a discount of 0.95 forget that only by extrapolation.
    mdp, doubt = rm.problems.machine_replacement(), rm.Penalized(rm.ChiSquare(), weight)
    exact = rm.solve(mdp, doubt, tol=1e-10)
    learned, counted = (
        mean_error(learner.run_many(mdp, samples=4000, seeds=40, reference=exact.q, record_every=4000))
        for learner in (rm.GenerativeQLearning(doubt), rm.PlugIn(doubt))
    )
    assert learned <= 2 * counted


def test_rare_outcomes_count_at_a_small_weight() -> None:
    # Nature's ratio is 192 at an outcome of probability 0.0026, more than the root of the 10,000 visits.
    mdp, doubt = rm.problems.garnet(50, 4, 5, 0.9, seed=0), rm.Penalized(rm.KL(), 0.1)
    exact = rm.solve(mdp, doubt, tol=1e-10)
    learned, counted = (
        mean_error(learner.run_many(mdp, 10_000, seeds=4, reference=exact.q, record_every=10_000))
        for learner in (rm.GenerativeQLearning(doubt), rm.PlugIn(doubt))
    )
    assert learned <= 2 * counted


def test_the_level_of_all_values_is_extrapolated() -> None:
    # Steps alone shrink the error of 50 by 0.99 a round at most: 16 rounds would leave more than 40.
    mdp = rm.MDP.from_rows([0, 1], [0, 0], [1, 0], [1.0, 1.0], [0.0, 1.0], 0.99)
    exact = rm.solve(mdp, rm.Nominal(), tol=1e-10)
    assert np.abs(rm.GenerativeQLearning(rm.Nominal()).run(mdp, 16).q - exact.q).max() <= 5.0


def quadratic(s: float) -> float:
    return s + 0.25 * s * s if s > -2.0 else -1.0


def quadratic_derivative(s: float) -> float:
    return 1.0 + 0.5 * s if s > -2.0 else 0.0


@each_learner
def test_learners_come_to_the_solution_of_an_own_ball(learner: Any) -> None:
    # Its f is known by f* alone; the learned weight once followed the f of another divergence, and runs diverged.
    mdp, own = rm.problems.chain(restart=0.5), rm.Divergence("mine", quadratic, quadratic_derivative)
    exact = rm.solve(mdp, rm.Constrained(rm.ChiSquare(), 0.1), tol=1e-10)
    mine, built_in = (
        mean_error(learner(rm.Constrained(f, 0.1)).run_many(mdp, samples=80_000, seeds=8, reference=exact.q))
        for f in (own, rm.ChiSquare())
    )
    assert mine <= 2 * built_in


@each_learner
@pytest.mark.parametrize("weight", [0.1, 0.5])
@each_penalty
def test_no_seed_goes_astray(divergence: Any, weight: float, learner: Any) -> None:
    mdp, doubt = rm.problems.chain(restart=0.5), rm.Penalized(divergence, weight)
    exact = rm.solve(mdp, doubt, tol=1e-10)
    solutions = learner(doubt).run_many(mdp, samples=40_000, seeds=24, reference=exact.q, record_every=40_000)
    # Values reach from 0 to 10 and a thousand visits a pair tell them within a few tenths: 1.5 is another world.
    assert max(solution.trace["error"][-1] for solution in solutions) <= 1.5


@each_learner
@pytest.mark.parametrize("doubt", [DOUBTS[0], DOUBTS[1], DOUBTS[3], DOUBTS[9]], ids=repr)
@pytest.mark.parametrize("world", ["on pairs", "on successors"])
def test_eta_comes_to_the_solution(world: str, doubt: Any, learner: Any) -> None:
    mdp = rm.problems.garnet(4, 2, 3, 0.8, seed=2) if world == "on pairs" else on_successors(1)
    exact = rm.solve(mdp, doubt, tol=1e-10)
    learned = learner(doubt).run(mdp, samples=400_000, seed=0)
    # eta is an iterate, not an average: its noise is that of the outcomes times sqrt(2.2 n^-0.75), here 3 %.
    assert np.abs(learned.eta - exact.eta).max() <= 0.2


@each_learner
@pytest.mark.parametrize(("weight", "scale"), [(1e-6, 1.0), (1e-3, 1e6), (1e6, 1.0)])
@each_penalty
def test_nothing_is_ever_infinite(divergence: Any, weight: float, scale: float, learner: Any) -> None:
    mdp = affine(rm.problems.garnet(6, 2, 3, 0.95, seed=3), scale, -scale)
    low, high = mdp.rewards.min() / 0.05, mdp.rewards.max() / 0.05
    for solution in learner(rm.Penalized(divergence, weight)).run_many(mdp, samples=6000, seeds=4):
        assert solution.status.code == "step_limit"
        assert np.isfinite(solution.q).all()
        slack = 1e-12 * scale  # r/(1 - discount) is rounded in another order
        assert solution.q.min() >= low - slack
        assert solution.q.max() <= high + slack


def affine(mdp: rm.MDP, scale: float, shift: float) -> rm.MDP:
    """The same world with rewards scale * r + shift."""
    lengths = np.diff(mdp.indptr)
    rewards = mdp.rewards if mdp.rewards_on_successors else np.repeat(mdp.rewards, lengths)
    states, actions = np.repeat(mdp.states, lengths), np.repeat(mdp.actions, lengths)
    return rm.MDP.from_rows(
        states, actions, mdp.indices, mdp.probabilities, scale * rewards + shift, mdp.discount, n_states=mdp.n_states
    )


def on_successors(seed: int) -> rm.MDP:
    rng = np.random.default_rng(seed)
    return rm.MDP.from_arrays(rng.dirichlet(np.ones(4), (4, 2)), rng.uniform(0.0, 1.0, (4, 2, 4)), 0.9)


@pytest.mark.parametrize(("scale", "shift", "tolerance"), [
    (4.0, 0.0, 0.0),  # a power of two changes no bit
    (1.0, 5.0, 1e-6),  # what is kept in single precision rounds to 6e-8 of its size
    (3.0, -2.0, 1e-5),
    (1.0, 1e6, 1e-5),  # values near 1e7 round at 2e-9, a few hundred times; none may round to single precision
])  # fmt: skip
@pytest.mark.parametrize("world", ["on pairs", "on successors"])
@each_doubt
def test_other_units_of_reward_give_the_same_answer(
    doubt: Any, world: str, scale: float, shift: float, tolerance: float
) -> None:
    learner = rm.GenerativeQLearning
    mdp = rm.problems.garnet(6, 2, 3, 0.9, seed=3) if world == "on pairs" else on_successors(1)
    other = rm.Penalized(doubt.divergence, scale * doubt.weight) if isinstance(doubt, rm.Penalized) else doubt
    one = learner(doubt, initial=0.0).run(mdp, samples=2400, seed=1)
    two = learner(other, initial=shift / (1 - 0.9)).run(affine(mdp, scale, shift), samples=2400, seed=1)
    assert np.abs(two.q - (scale * one.q + shift / (1 - 0.9))).max() <= tolerance


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("doubt", [DOUBTS[0], DOUBTS[1], DOUBTS[2], DOUBTS[9], DOUBTS[-1]], ids=repr)
def test_rewards_on_successors_belong_to_nature(doubt: Any, seed: int) -> None:
    mdp = on_successors(seed)
    exact = rm.solve(mdp, doubt, tol=1e-10)
    learned = rm.GenerativeQLearning(doubt).run(mdp, 20_000, seed=seed, reference=exact.q)
    counted = rm.PlugIn(doubt).run_many(mdp, 20_000, seeds=8, reference=exact.q, record_every=20_000)
    assert learned.trace["error"][-1] <= 3 * mean_error(counted)  # one seed against the mean


@pytest.mark.parametrize("doubt", [DOUBTS[0], DOUBTS[1], DOUBTS[2], DOUBTS[-1]], ids=repr)
@each_learner
def test_noise_in_the_reward_is_out_of_natures_reach_where_it_says_so(learner: Any, doubt: Any) -> None:
    mdp = rm.problems.chain(restart=0.5)
    coins = [mdp.indices[slice(*mdp.indptr[pair : pair + 2])] for pair in range(20)]
    chances = [mdp.probabilities[mdp.indptr[pair]] for pair in range(20)]

    def sample(state: int, action: int, rng: np.random.Generator) -> tuple[float, int, bool]:
        pair = 2 * state + action
        following = coins[pair][int(rng.random() >= chances[pair])]
        return float(state < 9) + 0.5 * float(rng.choice([-1.0, 1.0])), int(following), False

    world = rm.Simulator(sample, 10, 2, 0.9, (-0.5, 1.5))
    exact = rm.solve(mdp, doubt, tol=1e-10)
    learned = learner(doubt, noisy_rewards=True).run(world, samples=40_000, seed=0)
    # Two thousand visits a pair, each with a noise of 0.5, which 1/(1 - discount) may add up: 0.11, and as much again
    # and more for the successors.
    assert np.abs(learned.q - exact.q).max() <= 0.5


@pytest.mark.parametrize("doubt", [DOUBTS[0], DOUBTS[1], DOUBTS[2], DOUBTS[-1]], ids=repr)
def test_episodes_that_end(doubt: Any) -> None:
    mdp = rm.MDP.from_gymnasium("FrozenLake-v1", 0.95)
    exact = rm.solve(mdp, doubt, tol=1e-10)
    few, many = (
        mean_error(rm.GenerativeQLearning(doubt).run_many(mdp, n, seeds=4, reference=exact.q)) for n in (500, 8000)
    )
    assert many <= few / 2
    assert many <= 0.05


@pytest.mark.parametrize("weight", [1e-3, 1.0, math.inf])
@each_penalty
def test_without_chance_the_answer_is_exact(divergence: Any, weight: float) -> None:
    mdp = rm.MDP.from_rows([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], np.ones(4), [1.0, 0.2, 0.0, 0.5], 0.9)
    exact = rm.solve(mdp, rm.Nominal(), tol=1e-13)
    errors = [
        np.abs(rm.GenerativeQLearning(rm.Penalized(divergence, weight)).run(mdp, n).q - exact.q).max()
        for n in (100, 100_000)
    ]
    assert errors[0] > 1e-3  # it has to be learned
    assert errors[1] <= 1e-3


@pytest.mark.parametrize("divergence", BALLS, ids=repr)
def test_without_chance_a_ball_leaves_nature_no_choice(divergence: Any) -> None:
    mdp = rm.MDP.from_rows([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], np.ones(4), [1.0, 0.2, 0.0, 0.5], 0.9)
    exact = rm.solve(mdp, rm.Nominal(), tol=1e-13)
    learned = rm.GenerativeQLearning(rm.Constrained(divergence, 0.1)).run(mdp, 100_000)
    assert np.abs(learned.q - exact.q).max() <= 0.02


@each_learner
@each_penalty
def test_the_limits_of_a_penalty(divergence: Any, learner: Any) -> None:
    mdp = rm.problems.chain(restart=0.5)
    nominal = learner(rm.Nominal()).run(mdp, samples=20_000, seed=2)
    assert np.array_equal(learner(rm.Penalized(divergence, math.inf)).run(mdp, samples=20_000, seed=2).q, nominal.q)
    free = rm.Penalized(divergence, 0.0)
    # Only the start is left to forget: 1000 visits a pair at beta_n = (1 + n/10)^-0.75 leave less than 1 % of 10.
    assert np.abs(learner(free).run(mdp, samples=20_000, seed=2).q - rm.solve(mdp, free).q).max() <= 0.1


@each_learner
@pytest.mark.parametrize("divergence", BALLS, ids=repr)
def test_the_limits_of_a_ball(divergence: Any, learner: Any) -> None:
    mdp = rm.problems.chain(restart=0.5)
    nominal = learner(rm.Nominal()).run(mdp, samples=20_000, seed=2)
    assert np.array_equal(learner(rm.Constrained(divergence, 0.0)).run(mdp, samples=20_000, seed=2).q, nominal.q)
    free = rm.Constrained(divergence, math.inf)
    assert np.abs(learner(free).run(mdp, samples=20_000, seed=2).q - rm.solve(mdp, free).q).max() <= 0.1


@each_learner
@each_doubt
def test_a_table_of_equal_levels_is_one_level(doubt: Any, learner: Any) -> None:
    if isinstance(doubt, rm.Nominal):
        pytest.skip("no level")
    mdp = rm.problems.chain(restart=0.5)
    for level in (doubt.level, 0.0, math.inf):
        one, many = (
            learner(type(doubt)(doubt.divergence, given)).run(mdp, samples=2000)
            for given in (level, np.full((10, 2), level))
        )
        assert np.array_equal(one.q, many.q)


@each_learner
@pytest.mark.parametrize("form", [rm.Penalized, rm.Constrained])
@pytest.mark.parametrize("divergence", BALLS, ids=repr)
def test_each_pair_may_have_its_own_level(divergence: Any, form: Any, learner: Any) -> None:
    mdp = rm.problems.chain(restart=0.5)
    levels = np.where(np.arange(20).reshape(10, 2) % 3 == 0, 0.0, math.inf)  # the worst or the mean, nothing between
    doubt = form(divergence, levels)
    exact = rm.solve(mdp, doubt, tol=1e-10)
    learned = learner(doubt).run_many(mdp, samples=80_000, seeds=8, reference=exact.q, record_every=80_000)
    counted = rm.PlugIn(doubt).run_many(mdp, samples=80_000, seeds=8, reference=exact.q, record_every=80_000)
    assert mean_error(learned) <= 2 * mean_error(counted) + 0.02  # some pairs have no noise, only a start to forget


@each_learner
@each_doubt
def test_without_a_future_only_the_reward_counts(doubt: Any, learner: Any) -> None:
    mdp = rm.problems.chain(restart=0.5, discount=0.0)
    learned = learner(doubt).run(mdp, samples=2000, seed=0)
    expected = np.repeat([[1.0]] * 9 + [[0.0]], 2, axis=1)
    # A ball's weight begins at the spread of the values; what it cost on the first visit is averaged away.
    assert np.abs(learned.q - expected).max() <= (0.01 if isinstance(doubt, rm.Constrained) else 1e-12)


@settings(max_examples=60, deadline=None)
@given(
    world=st.integers(0, 10_000),
    seed=st.integers(0, 2**40),
    doubt=st.sampled_from(DOUBTS),
    steps=st.integers(1, 40),
    learner=st.sampled_from(LEARNERS),
)
def test_bounds_hold_after_any_number_of_steps(world: int, seed: int, doubt: Any, steps: int, learner: Any) -> None:
    mdp, _ = naive_mdp.random_world(world)
    learned = learner(doubt).run(mdp, steps, seed=seed)
    best = rm.solve(mdp, doubt, tol=1e-10)
    reached = rm.evaluate(mdp, learned.policy, doubt, tol=1e-10)
    assert np.all(learned.lower <= reached.upper)
    assert np.all(learned.upper >= best.lower)
    assert np.all(np.isfinite(learned.q[mdp.states, mdp.actions]))
    assert learned.visits.sum() == learned.samples == steps * (mdp.n_pairs if learner is rm.GenerativeQLearning else 1)


REPLICATED = {
    "default on all pairs": (rm.GenerativeQLearning(DOUBTS[0]), 300),
    "default along a path": (rm.MarkovianQLearning(DOUBTS[1]), 3000),
    "a ball": (rm.GenerativeQLearning(DOUBTS[8]), 300),
    "a policy that follows Q": (rm.MarkovianQLearning(DOUBTS[0], rm.EpsilonGreedy(0.3)), 3000),
    "Algorithm 1": (rm.GenerativeQLearning.paper(DOUBTS[0], inner_steps=5), 100),
    "Algorithm 2": (rm.MarkovianQLearning.paper(DOUBTS[0], [0.3, 0.7]), 3000),
    "multilevel": (rm.MultilevelQLearning(rm.Constrained(rm.KL(), 0.1)), 20),
    "plug-in": (rm.PlugIn(DOUBTS[0]), 100),
}


def assert_equal(one: rm.Solution, other: rm.Solution) -> None:
    for name in ("q", "visits", "eta", "value", "lower", "upper", "policy"):
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True), name
    assert one.status == other.status
    assert (one.steps, one.samples) == (other.steps, other.samples)
    assert one.trace.keys() == other.trace.keys()
    for name in one.trace:
        assert np.array_equal(one.trace[name], other.trace[name], equal_nan=True), name


@pytest.mark.parametrize("compared", [True, False])
@pytest.mark.parametrize("name", REPLICATED)
def test_replications_are_runs_to_the_bit(name: str, compared: bool) -> None:
    learner, steps = REPLICATED[name]
    mdp = rm.problems.chain(restart=0.5)
    options: dict[str, Any] = {"record_every": 97}
    if compared:
        options["reference"] = rm.solve(mdp, learner.ambiguity).q
    seeds = [5, 0, 123456789, 7, 2]
    alone = {seed: learner.run(mdp, steps, seed=seed, **options) for seed in seeds}
    for threads, order in ((1, seeds), (2, seeds[::-1]), (3, seeds), (3, seeds[1:2])):
        many = learner.run_many(mdp, steps, seeds=order, threads=threads, **options)
        for seed, solution in zip(order, many, strict=True):
            assert_equal(solution, alone[seed])
    assert len({solution.q.tobytes() for solution in alone.values()}) == len(seeds)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # asked for elsewhere: an overflow must not warn
@pytest.mark.parametrize("threads", [1, 2])
def test_replications_that_explode_are_runs_to_the_bit(threads: int) -> None:
    learner = rm.MarkovianQLearning.paper(rm.Penalized(rm.ChiSquare(), 10.0), literal=True)
    mdp = rm.problems.chain(restart=0.5)
    many = learner.run_many(mdp, 2000, seeds=6, threads=threads, record_every=10)
    assert {solution.status.code for solution in many} >= {"diverged"}
    for seed, solution in enumerate(many):
        assert_equal(solution, learner.run(mdp, 2000, seed=seed, record_every=10))


@pytest.mark.parametrize("record_every", [7, 10**9])
@pytest.mark.parametrize("name", REPLICATED)
def test_looking_changes_nothing(name: str, record_every: int) -> None:
    learner, steps = REPLICATED[name]
    mdp = rm.problems.chain(restart=0.5)
    plain, watched = learner.run(mdp, steps, seed=4), learner.run(mdp, steps, seed=4, record_every=record_every)
    assert np.array_equal(plain.q, watched.q)
    assert np.array_equal(plain.visits, watched.visits)
    expected = sorted({*range(record_every, steps + 1, record_every), steps})
    assert watched.trace["steps"].tolist() == expected


def test_a_divergence_of_ones_own_is_learned_like_a_built_in_one() -> None:
    own = rm.Divergence("my KL", lambda y: math.exp(y) - 1.0, lambda y: math.exp(y))
    mdp = rm.problems.chain(restart=0.5)
    mine, built_in = (
        rm.GenerativeQLearning(rm.Penalized(divergence, 1.0)).run(mdp, 300, record_every=300)
        for divergence in (own, rm.KL())
    )
    # exp(y) - 1 against expm1(y): the same but for rounding.
    assert np.abs(mine.q - built_in.q).max() <= 1e-9
