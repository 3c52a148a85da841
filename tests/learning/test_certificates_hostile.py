"""Bounds without a model where they are most likely to break: limits, interruptions, old samples, rounding."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles.naive_mdp import DIVERGENCES
from robustmdp.learning.certificates import Certified, CertifiedState
from robustmdp.learning.concentration import Means
from robustmdp.learning.running import begin
from robustmdp.learning.runs import DeferredInterrupt, Run

pytestmark = pytest.mark.filterwarnings("ignore:the behaviour policy must visit every pair")

PENALTY = rm.Penalized(rm.KL(), 1.0)
STEPS = 2000


def garnet() -> rm.MDP:
    return rm.problems.garnet(6, 2, 3, 0.9, seed=1)


def world_of_outcomes(rng: np.random.Generator, scale: float = 1.0) -> rm.MDP:
    """Three states, two actions, rewards and endings of each outcome."""
    state, action, following = (part.ravel() for part in np.indices((3, 2, 3)))
    probability = rng.dirichlet(np.full(3, 0.4), 6).ravel() + 1e-6
    probability /= np.repeat(probability.reshape(6, 3).sum(axis=1), 3)
    reward, terminated = scale * rng.normal(size=18), rng.random(18) < 0.2
    return rm.MDP.from_rows(state, action, following, probability, reward, 0.9, terminated=terminated, n_states=3)


def certify(learner: Any, world: rm.MDP, steps: int, seeds: int) -> Run:
    where = {"discount": None, "reward_range": None, "start": None}
    run = begin(Certified(learner, 0.95, 0.5), world, list(range(seeds)), steps, None, None, 10**9, **where)
    with DeferredInterrupt() as interrupt:
        run.run_to_end(interrupt)
    return run


class Exact(Means):
    """Of sums that hold expectations."""

    def lower(self, log_odds: float) -> np.ndarray:
        return np.maximum(self.mean, self.low)

    def upper(self, log_odds: float) -> np.ndarray:
        return np.minimum(self.mean, self.high)


def expect(state: CertifiedState, world: rm.MDP) -> None:
    """Put the expectations of one sample into the sums, outcome by outcome."""
    replications, totals = len(state.diverged), {name: 0.0 for name in state.sums if name != "count"}
    pairs = np.repeat(np.arange(len(world.actions)), np.diff(world.indptr))
    states = np.repeat(np.arange(world.n_states), np.diff(world.state_ptr))[pairs]
    for at, probability in enumerate(world.probabilities):
        for table in state.sums.values():
            table[...] = 0
        columns = zip((states, pairs, world.rewards, world.indices), (np.int32, np.int32, float, np.int32), strict=True)
        state.update.absorb(0, *(np.full((1, replications), column[at], kind) for column, kind in columns))
        totals = {name: total + probability * state.sums[name] for name, total in totals.items()}
    for name, total in totals.items():
        state.sums[name][...] = total
    state.sums["count"][...] = 1


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
@pytest.mark.parametrize("is_ball", [False, True])
def test_expectations_bound_the_bellman_operator(divergence: Any, is_ball: bool) -> None:
    """Without any noise lower <= T_policy V_lower and T V_upper <= upper, whatever few samples have frozen."""
    rng = np.random.default_rng(0)
    for _ in range(6):
        world, level = world_of_outcomes(rng), 10.0 ** rng.uniform(-2, 1)
        levels = rng.choice([0.0, level, 10.0 * level, math.inf], (3, 2)) if rng.random() < 0.5 else level
        ambiguity = rm.Constrained(divergence, levels) if is_ball else rm.Penalized(divergence, levels)
        bellman = rm.RobustBellman(world, ambiguity)
        for learner in (rm.GenerativeQLearning(ambiguity), rm.MarkovianQLearning(ambiguity)):
            state = certify(learner, world, int(rng.integers(8, 120)), 4).state
            assert isinstance(state, CertifiedState)
            lower, upper = state.bounds()
            assert np.isfinite([lower, upper]).all()
            assert np.all(lower <= upper)
            expect(state, world)
            lower, upper = state.evidence(Exact).bound_sweeps()
            for r, policy in enumerate(state.frozen.policy):
                v = [values[r, :-1] for values in (state.frozen.v_lower, state.frozen.v_upper)]
                least, best = (world.pairs(bellman.apply_q(np.repeat(each[:, None], 2, axis=1))) for each in v)
                slack = 1e-11 * np.ptp(world.value_range)
                assert np.all(lower[r] <= least[policy] + slack)
                assert np.all(np.maximum.reduceat(best, world.state_ptr[:-1]) <= upper[r] + slack)


@pytest.mark.parametrize("learner", [rm.MarkovianQLearning, rm.GenerativeQLearning])
@pytest.mark.parametrize("ambiguity", [PENALTY, rm.Constrained(rm.TotalVariation(), 0.1)], ids=["weight", "radius"])
def test_a_run_stops_and_goes_on_in_every_phase(learner: Any, ambiguity: Any, tmp_path: Path) -> None:
    """Learning ends at 900 on a trajectory and margins at 1000."""
    world, kind = garnet(), learner(ambiguity)
    whole = kind.run(world, STEPS, confidence=0.95)
    assert whole.visits.sum() == whole.samples
    for stop in (500, 900, 950, 1000, 1001, 1900, STEPS):
        path = tmp_path / f"{stop}.ckpt"
        part = kind.run(
            world,
            STEPS,
            confidence=0.95,
            checkpoint=path,
            record_every=50,
            callback=lambda step, _, at=stop: step >= at,
        )
        same = rm.resume(path, steps=part.steps, checkpoint=tmp_path / "other.ckpt")
        assert np.array_equal([same.lower, same.upper], [part.lower, part.upper])
        if part.steps <= 1000:
            assert np.array_equal([part.lower[0], part.upper[0]], world.value_range)
        rest = kind.resume(path)
        assert np.array_equal([rest.lower, rest.upper], [whole.lower, whole.upper])


@pytest.mark.parametrize("learner", [rm.MarkovianQLearning, rm.GenerativeQLearning])
def test_a_run_travels(learner: Any) -> None:
    """As on an engine of processes, and with the same bounds."""
    run = certify(learner(PENALTY), garnet(), 200, 2)
    assert np.array_equal(run.state.bounds(), pickle.loads(pickle.dumps(run)).state.bounds())


def test_margins_are_no_evidence() -> None:
    """Q hardly comes down from above: stopped before certifying, nothing is known of it."""
    world = rm.MDP.from_rows([0, 0, 1, 1], [0] * 4, [0, 1, 0, 1], [0.5] * 4, [0.0, 1.0, 0.0, 1.0], 0.9)
    learner = rm.MarkovianQLearning(PENALTY, initial=10.0, q_steps=rm.schedules.Constant(1e-6))
    stopped = learner.run(world, 4000, confidence=0.95, record_every=10, callback=lambda step, _: step >= 1990)
    assert np.all(stopped.lower <= rm.evaluate(world, stopped.policy, PENALTY).upper)


def test_a_behaviour_sees_visits_while_they_are_made() -> None:
    def try_the_rarest(state: int, step: int, q: np.ndarray, visits: np.ndarray) -> np.ndarray:
        return np.eye(len(q))[np.argmin(visits)]

    learner = rm.MarkovianQLearning(PENALTY, behaviour=try_the_rarest)
    often, once = (learner.run(garnet(), 500, confidence=0.95, record_every=every) for every in (1, 500))
    assert np.array_equal(often.visits, once.visits)
    assert np.ptp(often.visits, axis=1).max() <= 1


@pytest.mark.parametrize("passes", [1, 20])
def test_old_samples_certify_nothing(passes: int) -> None:
    log = rm.Trajectory([0, 0, 0, 0], [0, 0, 0, 0], [0.0, 1.0, 1.0, 0.0], [0, 0, 0, 0], discount=0.5)
    learner = rm.MarkovianQLearning(rm.Nominal())
    with pytest.raises(ValueError, match="each transition once, in order"):
        learner.run(log.replay(passes), confidence=0.95, reward_range=(0.0, 1.0))


@pytest.mark.parametrize("scale", [1e-320, 1.0, 1e16])
@pytest.mark.parametrize("divergence", [rm.TotalVariation(), rm.KL(), rm.ChiSquare(), rm.Burg()], ids=repr)
def test_any_weight_fits_any_rewards(divergence: Any, scale: float) -> None:
    """Weights are large or small beside the rewards, not beside 1."""
    world = world_of_outcomes(np.random.default_rng(1), max(scale, 1.0))
    for level in (20.0 * scale, np.array([[1.0, math.inf]] * 3) * scale):
        ambiguity = rm.Penalized(divergence, level)
        truth = rm.solve(world, ambiguity)
        for found in rm.GenerativeQLearning(ambiguity).run_many(world, 10_000, seeds=2, confidence=0.95, threads=1):
            assert np.all(found.lower <= rm.evaluate(world, found.policy, ambiguity).upper)
            assert np.all(found.upper >= truth.lower)


@pytest.mark.parametrize("initial", [-1e300, 1e300])
def test_a_start_far_off_is_no_warning(initial: float) -> None:
    least, most = garnet().value_range
    found = rm.MarkovianQLearning(PENALTY, initial=initial).run(garnet(), 60, confidence=0.95)
    assert np.all((found.lower >= least) & (found.upper <= most))


def test_a_run_that_diverged_has_no_bounds() -> None:
    literal = rm.MarkovianQLearning.paper(rm.Penalized(rm.ChiSquare(), 1e-3), literal=True)
    found = literal.run(garnet(), 20_000, confidence=0.95)
    assert found.status.code == "diverged"
    assert np.all(np.isinf(found.upper - found.lower))


def test_a_share_that_rounds_to_nothing_is_one_step() -> None:
    found = rm.MarkovianQLearning(PENALTY).run(garnet(), 3, confidence=0.95, certify_share=0.01)
    assert found.visits.sum() == 3


def test_bounds_stand_their_own_rounding() -> None:
    """One action whose return is the largest that is possible; 1/(1 - discount) multiplies what rounding takes."""
    world = rm.MDP.from_rows([0, 0], [0, 1], [0, 0], [1.0, 1.0], [0.8, -0.8], 0.99)
    truth = rm.solve(world, PENALTY, tol=1e-9)
    for found in rm.MarkovianQLearning(PENALTY).run_many(world, 3000, seeds=10, confidence=0.95, threads=1):
        assert found.upper[0] >= truth.lower[0]
