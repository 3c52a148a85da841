"""Random states and small worlds whose actions share the noise, for each kind of set, against cvxpy: `make verify`."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NamedTuple

import numpy as np

import robustmdp as rm
from oracles import shared_noise as oracle
from oracles.random_rows import MODERATE

ERROR = 1e-6  # Clarabel's, relative to the largest outcome
WIDTH = 1e-8
TIGHT = 1e-12
# At small weights Clarabel's least value of a fourth power is above that of distributions that are known.
JUDGED = [divergence for divergence in MODERATE if divergence != rm.CressieRead(4.0)]


def random_sets(rng: Any, n: int) -> list[Any]:
    """One of each kind."""
    level = float(10.0 ** rng.uniform(-2.5, 0.5))
    sets = [form(divergence, level) for divergence in JUDGED for form in (rm.Constrained, rm.Penalized)]
    weights, share = rng.uniform(0.5, 2.0, size=n), float(rng.uniform(0.05, 1.0))
    return [*sets, rm.L1(level), rm.L1(level, weights=weights), rm.L2(level), rm.LInf(level), rm.CVaR(share)]


def judge(ambiguity: Any, p: Any, outcomes: Any) -> tuple[float, float]:
    """How far the bounds miss the truth, and how far they are apart."""
    found = rm.RobustBellman(oracle.world(p, outcomes[None]), rm.SharedNoise(ambiguity), threads=1).bracket(np.zeros(1))
    expected, scale = oracle.value(ambiguity, p, outcomes), np.abs(outcomes).max()
    miss = max(found.lower[0] - expected, expected - found.upper[0], 0.0)
    return miss / scale, float(found.upper[0] - found.lower[0]) / scale


class World(NamedTuple):
    """A model made from noise of probabilities p: successors, where n_states is the end, and rewards, (S, A, K)."""

    mdp: rm.MDP
    p: Any
    following: Any
    rewards: Any


def random_world(rng: Any) -> World:
    n_states, n_actions, n = int(rng.integers(1, 5)), int(rng.integers(1, 4)), int(rng.integers(2, 6))
    p = np.maximum(rng.dirichlet(np.ones(n)), 1e-2)
    p, shape = p / p.sum(), (n_states, n_actions, n)
    following, rewards = rng.integers(0, n_states + int(rng.random() < 0.4), shape), rng.normal(size=shape)

    def step(state: Any, action: Any, value: Any) -> Any:
        after = following[state, action, value]
        return np.minimum(after, n_states - 1), rewards[state, action, value], after == n_states

    mdp = rm.MDP.from_noise(step, n_states, n_actions, p, float(rng.choice([0.3, 0.8, 0.95])))
    return World(mdp, p, following, rewards)


def judge_world(seed: int, index: int) -> list[str]:
    """Solved to the end or stopped early, discounted, for some steps or in the long run; what is wrong."""
    rng = np.random.default_rng([seed, index])
    world = random_world(rng)
    kinds = random_sets(rng, len(world.p))
    ambiguity, mdp = kinds[index % len(kinds)], world.mdp
    doubt, limit = rm.SharedNoise(ambiguity), 1 + index // len(kinds) % 4
    terminal = rng.normal(size=mdp.n_states)
    wrong: list[str] = []
    for criterion in (None, rm.FiniteHorizon(3, terminal), rm.AverageReward()):
        stop = {} if rng.random() < 0.5 else {"callback": lambda step: step.step >= limit}
        found = rm.solve(mdp, doubt, criterion=criterion, **stop)
        own = rm.evaluate(mdp, found.policy, doubt, criterion=criterion, tol=TIGHT)
        best = rm.solve(mdp, doubt, criterion=criterion, tol=TIGHT)
        lower, upper = _bounds(found)
        if not (lower <= _bounds(own)[1]).all() or not (upper >= _bounds(best)[0]).all():
            wrong.append(f"world {index}, {ambiguity!r}, {criterion!r}: [{lower}, {upper}] against {own} and {best}")
        if criterion is None and index % 10 == 0:
            wrong += _against_cvxpy(world, ambiguity, found, best)
    return wrong


def _bounds(solution: rm.Solution) -> tuple[Any, Any]:
    if solution.gain is not None:
        return solution.gain_lower, solution.gain_upper
    return solution.lower, solution.upper


def _against_cvxpy(world: World, ambiguity: Any, found: rm.Solution, best: rm.Solution) -> list[str]:
    """Bounds of the best value by one sweep of the referee, widened by its accuracy."""
    discount, v = world.mdp.discount, best.value
    if ambiguity.has_weight:
        ambiguity = rm.Penalized(ambiguity.divergence, discount * ambiguity.level)
    outcomes = world.rewards + discount * np.append(v, 0.0)[world.following]
    try:
        swept = np.array([oracle.value(ambiguity, world.p, z) for z in outcomes])
    except RuntimeError:  # Clarabel gave up
        return []
    change, factor = np.append(swept - v, 0.0), discount / (1.0 - discount)
    slack = ERROR * max(1.0, float(np.abs(outcomes).max())) * (1.0 + factor)
    lowest, highest = swept + factor * change.min() - slack, swept + factor * change.max() + slack
    is_right = (found.lower <= highest).all() and (found.upper >= lowest).all()
    return [] if is_right else [f"{ambiguity!r}: [{found.lower}, {found.upper}] against {lowest} to {highest}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=500)
    parser.add_argument("--worlds", type=int, default=1000, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    judge_states(given)
    count = given.worlds * len(random_sets(np.random.default_rng(0), 2))
    wrong = [text for index in range(count) for text in judge_world(given.seed, index)]
    for text in wrong[:10]:
        print(text)
    print(f"{count} worlds, each by three criteria: {len(wrong)} failed")
    sys.exit(bool(wrong))


def judge_states(given: Any) -> None:
    """As many states of each kind as asked for."""
    rng = np.random.default_rng(given.seed)
    worst: dict[str, list[float]] = {}
    undecided = 0
    for _ in range(given.states):
        n_actions, n = int(rng.integers(1, 7)), int(rng.integers(2, 9))
        p = np.maximum(rng.dirichlet(np.ones(n)), 1e-3)
        p, outcomes = p / p.sum(), rng.normal(size=(n_actions, n))
        for kind, ambiguity in enumerate(random_sets(rng, n)):
            name = f"{kind:2} {type(ambiguity).__name__} {getattr(ambiguity, 'divergence', '')}"
            try:
                miss, width = judge(ambiguity, p, outcomes)
            except RuntimeError:  # Clarabel gave up
                undecided += 1
                continue
            entry = worst.setdefault(name, [0.0, 0.0])
            entry[:] = max(entry[0], miss), max(entry[1], width)
    for name, (miss, width) in worst.items():
        print(f"{name:45} misses by {miss:.1e}, width {width:.1e}")
    print(f"{given.states} states each; {undecided} that Clarabel did not solve")
    if any(miss > ERROR or width > WIDTH for miss, width in worst.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
