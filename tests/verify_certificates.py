"""Coverage and width of certificates without a model: 1,000 runs a setting, beside those with Hoeffding's deviations.

A certificate covers if lower <= the worst case of the learned policy and the best worst case <= upper, at all states.
One that only says what is possible at all does not count.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import robustmdp as rm
from robustmdp.learning.certificates import Certified
from robustmdp.learning.concentration import Means
from robustmdp.learning.running import begin
from robustmdp.learning.runs import DeferredInterrupt

CONFIDENCE = 0.95
GROUP = 25


class Hoeffding(Means):
    """Deviations from the range alone, at one number of samples fixed in advance: as narrow as they can be."""

    def _deviation(self, log_odds: float) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return (self.high - self.low) * np.sqrt(log_odds / (2.0 * self.samples.astype(float)))

    def lower(self, log_odds: float) -> np.ndarray:
        return np.maximum(self.mean - self._deviation(log_odds), self.low)

    def upper(self, log_odds: float) -> np.ndarray:
        return np.minimum(self.mean + self._deviation(log_odds), self.high)


class Found(NamedTuple):
    """Of each replication: is it covered, how wide are the bounds, Hoeffding's, and the true error of V."""

    covered: np.ndarray
    width: np.ndarray
    hoeffding: np.ndarray
    error: np.ndarray


def worlds() -> dict[str, rm.MDP]:
    return {
        "chain": rm.problems.chain(restart=0.5),
        "FrozenLake": rm.MDP.from_gymnasium("FrozenLake-v1", 0.9),
        "river swim": rm.problems.river_swim(),
        "machine": rm.problems.machine_replacement(),
        "garnet": rm.problems.garnet(20, 3, 4, 0.9, seed=1),
    }


def ambiguities(world: rm.MDP) -> Iterator[rm.Penalized]:
    """Weights in units of the span of values, which decides how hard a problem is."""
    nominal = rm.solve(world, rm.Nominal()).value
    span = max(float(np.ptp(nominal)), 0.1 * float(np.abs(nominal).max()))
    yield rm.Penalized(rm.ChiSquare(), span)
    yield rm.Penalized(rm.KL(), 0.5 * span)
    yield rm.Penalized(rm.TotalVariation(), span)


def certify(learner: object, world: rm.MDP, samples: int, seeds: list[int], truth: rm.Solution) -> Found:
    """Some replications; worst cases of the learned policies are solved, not sampled."""
    where = {"discount": None, "reward_range": None, "start": None}
    run = begin(Certified(learner, CONFIDENCE, 0.5), world, seeds, None, samples, None, 10**9, **where)
    with DeferredInterrupt() as interrupt:
        run.run_to_end(interrupt)
    lower, upper = run.state.bounds()
    least, most = run.source.shape.value_range
    values = np.array([policy_value(world, learner.ambiguity, policy) for policy in run.state.frozen.policy])
    tells = (lower > least).any(axis=1) | (upper < most).any(axis=1)
    covered = (lower <= values).all(axis=1) & (truth.lower <= upper).all(axis=1) & tells
    loose = np.subtract(*reversed(run.state.bounds(Hoeffding)))
    learned = run.state.q().reshape(len(seeds), -1)
    v = np.maximum.reduceat(learned, run.source.shape.state_ptr[:-1], axis=1)
    # A state that is never visited has no width worth the name; the first one is where episodes start.
    return Found(covered, (upper - lower)[:, 0], loose[:, 0], np.abs(v - truth.value).max(axis=1))


_values: dict[tuple[int, int, bytes], np.ndarray] = {}


def policy_value(world: rm.MDP, ambiguity: object, pairs: np.ndarray) -> np.ndarray:
    """An upper end of the worst case of a policy, given by its pairs: few policies come again and again."""
    key = id(world), id(ambiguity), pairs.tobytes()
    if key not in _values:
        policy = np.asarray(world.actions)[pairs]
        _values[key] = rm.evaluate(world, policy, ambiguity, tol=1e-9).upper
    return _values[key]


def measure(learner: object, world: rm.MDP, samples: int, runs: int, truth: rm.Solution) -> Found:
    groups = [list(range(at, min(at + GROUP, runs))) for at in range(0, runs, GROUP)]
    parts = [certify(learner, world, samples, seeds, truth) for seeds in groups]
    return Found(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def main(runs: int = 1000, samples: int = 200_000) -> int:
    """Print a line per setting; the exit code is the number of settings that cover too seldom."""
    failures = 0
    print(f"{runs} runs a setting, {samples:,} samples, confidence {CONFIDENCE}")
    print(
        f"{'world':<12}{'ambiguity':<36}{'sampled by':<12}{'covered':>8}{'narrow':>8}{'width':>9}{'Hoeffding':>11}{'error':>9}"
    )
    for name, world in worlds().items():
        least, most = world.value_range
        for ambiguity in ambiguities(world):
            truth = rm.solve(world, ambiguity, tol=1e-9)
            learners = {"simulator": rm.GenerativeQLearning(ambiguity), "trajectory": rm.MarkovianQLearning(ambiguity)}
            for kind, learner in learners.items():
                found = measure(learner, world, samples, runs, truth)
                covered, narrow = found.covered.mean(), (found.width < 0.5 * (most - least)).mean()
                failures += covered < CONFIDENCE
                print(
                    f"{name:<12}{str(ambiguity.divergence):<20} weight {ambiguity.level:<8.3g}{kind:<12}{covered:>8.3f}{narrow:>8.2f}"
                    f"{np.median(found.width):>9.3g}{np.median(found.hoeffding):>11.3g}{np.median(found.error):>9.3g}",
                    flush=True,
                )
    print(f"{failures} settings cover too seldom.")
    return failures


def slope(sizes: list[int], widths: list[float]) -> float:
    """The exponent of a power law through two or more points."""
    return float(np.polyfit(np.log(sizes), np.log(widths), 1)[0])


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
