"""Averages of the printed algorithms, and inner steps that vary: against sums by hand, and after a resume."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp.learning.schedules import Growing

CHI2, KL = rm.Penalized(rm.ChiSquare(), 2.0), rm.Penalized(rm.KL(), 2.0)
LOOP = rm.problems.chain(restart=0.5)


def iterates(learner: Any, world: Any, steps: int) -> tuple[rm.Solution, list[np.ndarray], list[np.ndarray]]:
    """The solution, the iterates and the visits, step by step."""
    found: list[np.ndarray] = []
    visits: list[np.ndarray] = []

    def watch(step: int, state: Any) -> None:
        del step
        found.append(state.iterate)
        visits.append(state.visits.astype(np.int64))

    solution = learner.run(world, steps, seed=3, record_every=1, callback=watch)
    return solution, found, visits


@pytest.mark.parametrize("ambiguity", [CHI2, KL, rm.Penalized(rm.Burg(), 3.0), rm.Penalized(rm.TotalVariation(), 3.0)])
def test_algorithm_1_averages_its_iterates(ambiguity: Any) -> None:
    printed = rm.GenerativeQLearning.paper(ambiguity, 5)
    averaged = rm.GenerativeQLearning.paper(ambiguity, 5, averaging=True, burn_in=0.25)
    solution, found, _ = iterates(averaged, LOOP, 40)
    assert np.abs(solution.q - np.mean(found[10:], axis=0)).max() < 1e-12
    # What is averaged is the print itself.
    assert np.array_equal(found[-1], printed.run(LOOP, 40, seed=3).q)
    assert not np.array_equal(found[-1], solution.q)
    assert solution.policy.tolist() == solution.q.argmax(axis=1).tolist()


@pytest.mark.parametrize("ambiguity", [CHI2, KL, rm.Penalized(rm.Burg(), 3.0), rm.Penalized(rm.TotalVariation(), 3.0)])
def test_algorithm_2_averages_over_the_visits(ambiguity: Any) -> None:
    printed = rm.MarkovianQLearning.paper(ambiguity)
    averaged = rm.MarkovianQLearning.paper(ambiguity, averaging=True, burn_in=0.25)
    solution, found, visits = iterates(averaged, LOOP, 2_000)
    expected = np.empty_like(solution.q)
    counts = np.diff(np.array([np.zeros_like(visits[0]), *visits]), axis=0)
    for s, a in np.ndindex(expected.shape):
        late = [q[s, a] for q, count in zip(found[500:], counts[500:], strict=True) if count[s, a]]
        expected[s, a] = np.mean(late)
    assert np.abs(solution.q - expected).max() < 1e-12
    assert np.array_equal(found[-1], printed.run(LOOP, 2_000, seed=3).q)


def test_before_the_burn_in_the_result_is_the_iterate() -> None:
    seen: list[bool] = []

    def watch(step: int, state: Any) -> None:
        if step <= 500:
            seen.append(np.array_equal(state.q, state.iterate))

    rm.MarkovianQLearning.paper(CHI2, averaging=True, burn_in=0.5).run(LOOP, 1_000, record_every=100, callback=watch)
    assert seen == [True] * 5


def test_averages_come_closer() -> None:
    # beta = t^-0.6 keeps noise that averaging removes.
    steps = rm.schedules.Polynomial(1.0, 0.6)
    exact = rm.solve(LOOP, CHI2).q
    last = dataclasses.replace(rm.GenerativeQLearning.paper(CHI2, 20), q_steps=steps)
    mean = dataclasses.replace(last, averaging=True, burn_in=0.2)
    errors = [
        np.mean([np.abs(run.q - exact).max() for run in learner.run_many(LOOP, 1_000, seeds=10, threads=1)])
        for learner in (last, mean)
    ]
    assert errors[1] < 0.8 * errors[0]


VARYING = [
    7,
    Growing(2.0, 0.5),
    lambda t: 1 + t % 3,
    np.arange(1, 21).reshape(10, 2),
    np.arange(1, 21).reshape(10, 2).tolist(),
]


@pytest.mark.parametrize("inner_steps", VARYING)
def test_samples_are_counted(inner_steps: Any) -> None:
    learner = rm.GenerativeQLearning.paper(CHI2, inner_steps)
    solution = learner.run(LOOP, 30, seed=0, record_every=10)

    def inner(t: int) -> np.ndarray:
        return np.full((10, 2), inner_steps(t)) if callable(inner_steps) else np.broadcast_to(inner_steps, (10, 2))

    expected = [sum(int((inner(t) + 1).sum()) for t in range(steps)) for steps in (10, 20, 30)]
    assert solution.trace["samples"].tolist() == expected
    assert solution.samples == expected[-1]
    assert solution.visits is not None
    assert np.array_equal(solution.visits, sum(inner(t) + 1 for t in range(30)))
    by_samples = learner.run(LOOP, samples=expected[-1], seed=0)
    assert (by_samples.steps, by_samples.samples) == (30, expected[-1])
    assert np.array_equal(by_samples.q, solution.q)
    assert learner.run(LOOP, samples=expected[-1] - 1, seed=0).steps == 29


def test_equal_inner_steps_give_equal_bits_however_they_are_said() -> None:
    said = [6, lambda t: 6, Growing(6.0, 0.0), np.full((10, 2), 6)]
    found = [rm.GenerativeQLearning.paper(KL, each).run(LOOP, 25, seed=1).q for each in said]
    assert all(np.array_equal(q, found[0]) for q in found)


def test_a_simulator_gives_each_pair_its_draws() -> None:
    asked = np.zeros((10, 2), int)

    def sample(state: int, action: int, rng: np.random.Generator) -> tuple[float, int, bool]:
        asked[state, action] += 1
        return LOOP.sample(state, action, rng)

    inner = np.arange(1, 21).reshape(10, 2)
    world = rm.Simulator(sample, 10, 2, 0.9, (0.0, 1.0))
    solution = rm.GenerativeQLearning.paper(CHI2, inner).run(world, 5)
    assert solution.visits is not None
    assert np.array_equal(asked, 5 * (inner + 1))
    assert np.array_equal(asked, solution.visits)


@pytest.mark.parametrize(
    "learner",
    [
        rm.GenerativeQLearning.paper(CHI2, Growing(3.0, 0.5), averaging=True),
        rm.GenerativeQLearning.paper(KL, np.arange(1, 21).reshape(10, 2)),
        rm.MarkovianQLearning.paper(KL, averaging=True, burn_in=0.3),
    ],
)
def test_resumed_runs_have_the_same_bits(learner: Any, tmp_path: Path) -> None:
    steps, path = 900, tmp_path / "run.ckpt"
    whole = learner.run(LOOP, steps, seed=5, record_every=300)
    saving = {"checkpoint": path, "checkpoint_every": 150}
    stopped = learner.run(LOOP, steps, seed=5, record_every=300, callback=lambda step, state: step == 600, **saving)
    assert stopped.steps == 600
    resumed = rm.resume(path, learner=learner)
    assert np.array_equal(resumed.q, whole.q)
    assert (resumed.samples, resumed.steps) == (whole.samples, steps)
    assert resumed.trace["samples"].tolist() == whole.trace["samples"].tolist()


@pytest.mark.parametrize(
    ("inner_steps", "kind", "message"),
    [
        (0, ValueError, "inner_steps must be at least 1: got 0"),
        (1.5, TypeError, "inner_steps must be a whole number: got 1.5"),
        (np.ones((3, 2), int), ValueError, r"inner_steps must have shape \(S, A\) = \(10, 2\): got \(3, 2\)"),
        (np.zeros((10, 2), int), ValueError, "inner_steps must be at least 1: got 0"),
        (np.ones((10, 2)), ValueError, "inner_steps must be a whole number, a function or an"),
        (lambda t: 3 - t, ValueError, "inner_steps of iteration 3 must be at least 1: got 0"),
        (lambda t: 0.5, TypeError, "inner_steps of iteration 0 must be a whole number: got 0.5"),
    ],
)
def test_wrong_inner_steps_are_refused(inner_steps: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        rm.GenerativeQLearning.paper(CHI2, inner_steps).run(LOOP, 10)


def test_a_function_cannot_be_saved(tmp_path: Path) -> None:
    learner = rm.GenerativeQLearning.paper(CHI2, lambda t: 2)
    with pytest.raises(ValueError, match="a checkpoint can hold records and numbers only"):
        learner.run(LOOP, 10, checkpoint=tmp_path / "run.ckpt")
