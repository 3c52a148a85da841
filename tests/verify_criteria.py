"""Bounds without a discount against exact answers, early stops included: `make verify`.

Small random worlds with loops, end components without reward and ends that cannot be reached. Sets with finitely many
vertices are judged in rationals, by every policy against every vertex; finite horizons of rows made to break bounds, in
60 digits. `verify_worlds` has every family of sets.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
from mpmath import mpf

import robustmdp as rm
from oracles import exact_averages, exact_mdp, exact_totals, sets
from oracles.hostile_rows import hostile_world


class Verdict(NamedTuple):
    """The family of a case, how it ended, and what is wrong; `failures` is empty if nothing is."""

    family: str
    outcome: str
    failures: tuple[str, ...]


def stops(k: int) -> dict[str, dict[str, Any]]:
    """Ways to end a run: by itself, by a callback, by a limit of steps."""
    return {
        "": {},
        ", stopped": {"callback": lambda step: step.step >= k},
        ", step limit": {"solver": rm.ValueIteration(max_steps=k)},
    }


def judge_total(seed: int, index: int) -> list[Verdict]:
    """TotalReward: rewards of one sign or both, nature against the player or for him; then the policy by itself."""
    rng = np.random.default_rng([seed, index])
    kind = exact_totals.FAMILIES[index % 6]
    sign, helps = (1, -1, 0)[index // 6 % 3], bool(index // 18 % 2)
    world, mdp, ambiguity = exact_totals.random_world(rng, kind, sign)
    truth = exact_totals.play(world, max, max if helps else min)
    ambiguity = rm.Optimistic(ambiguity) if helps else ambiguity
    family = f"total reward, {kind}"
    is_defined = all(map(math.isfinite, truth.value)) and (sign != 0 or truth.proper)
    verdicts = []
    for stop, settings in stops(int(rng.integers(1, 6))).items():
        try:
            solution = rm.solve(mdp, ambiguity, criterion=rm.TotalReward(), **settings)
        except ValueError as refusal:
            wrong = (f"case {index}: refused {truth.value}: {refusal}",) if is_defined else ()
            verdicts.append(Verdict(family + stop, "refused", wrong))
            continue
        if sign == 0 and not truth.proper:  # such a sum need not be defined
            verdicts.append(Verdict(family + stop, "may not end", ()))
            continue
        own = truth.policies[tuple(solution.policy.tolist())]
        wrong = compare(solution.lower, solution.upper, truth.value, own, minimise=False)
        if stop == "" and is_defined and not solution.converged:
            wrong.append(f"not converged: {solution.status}")
        verdicts.append(Verdict(family + stop, solution.status.code, named(index, wrong)))
        if stop == "" and all(map(math.isfinite, own)):
            again = rm.evaluate(mdp, solution.policy, ambiguity, criterion=rm.TotalReward())
            wrong = compare(again.lower, again.upper, own, own, minimise=False)
            verdicts.append(Verdict(f"{family}, evaluated", again.status.code, named(index, wrong)))
    return verdicts


def judge_reach(seed: int, index: int) -> list[Verdict]:
    """Probabilities and rewards until a goal, for both players in both roles."""
    rng = np.random.default_rng([seed, index, 1])
    kind, rewards = exact_totals.FAMILIES[index % 6], bool(index // 6 % 2)
    minimise, helps = bool(index // 12 % 2), bool(index // 24 % 2)
    world, mdp, ambiguity = exact_totals.random_world(rng, kind, 1, ends=not rewards and index % 2 == 0)
    goal = int(rng.integers(mdp.n_states))
    avoid = [int(rng.integers(mdp.n_states))] if not rewards and rng.random() < 0.5 else None
    pins: dict[int, Any] = {s: Fraction(0) for s in avoid or ()}
    pins[goal] = Fraction(int(not rewards))
    if not rewards:
        world = [[pair._replace(reward=Fraction(0)) for pair in pairs] for pairs in world]
    player = min if minimise else max
    nature = player if helps else max if minimise else min
    truth = exact_totals.play(world, player, nature, pins=pins, unreached=math.inf if rewards else None)
    ambiguity = rm.Optimistic(ambiguity) if helps else ambiguity
    question = {"avoid": avoid, "minimise": minimise, "rewards": rewards}
    family = f"{'reward until' if rewards else 'probability of'} a goal, {player.__name__}{nature.__name__}"
    k = int(rng.integers(1, 6))
    verdicts = []
    for stop, settings in {"": {}, ", stopped": {"callback": lambda step: step.step >= k}}.items():
        solution = rm.reach(mdp, ambiguity, [goal], **question, **settings)
        own = truth.policies[tuple(solution.policy.tolist())]
        wrong = compare(solution.lower, solution.upper, truth.value, own, minimise=minimise)
        if stop == "" and not solution.converged:
            wrong.append(f"not converged: {solution.status}")
        verdicts.append(Verdict(family + stop, solution.status.code, named(index, wrong)))
    return verdicts


def judge_horizon(seed: int, index: int) -> list[Verdict]:
    """FiniteHorizon with the sets of the paper, to the end and stopped."""
    world = hostile_world(seed, index)
    rng = np.random.default_rng([seed, index, 3])
    terminal, k = rng.normal(size=world.mdp.n_states), int(rng.integers(1, 4))
    referee = exact_mdp.build(world.mdp, world.ambiguity)
    truth = exact_mdp.finite_horizon(referee, terminal, 3)
    verdicts = []
    for stop, settings in {"": {}, ", stopped": {"callback": lambda step: step.step >= k}}.items():
        criterion = rm.FiniteHorizon(3, terminal)
        solution = rm.solve(world.mdp, world.ambiguity, criterion=criterion, **settings)
        own = exact_mdp.finite_horizon(referee, terminal, 3, solution.policy)
        wrong = [
            f"step {t}, state {s}: [{low!r}, {high!r}]"
            for t in range(4)
            for s, (low, high) in enumerate(zip(solution.lower[t].tolist(), solution.upper[t].tolist(), strict=True))
            if mpf(low) > min(truth[t].upper[s], own[t].upper[s]) or mpf(high) < truth[t].lower[s]
        ]
        verdicts.append(Verdict("finite horizon" + stop, solution.status.code, named(index, wrong)))
    return verdicts


def judge_average(seed: int, index: int) -> list[Verdict]:
    """AverageReward: ends, closed classes and periods; the status must say whether the gain depends on the start."""
    rng = np.random.default_rng([seed, index, 4])
    kind, helps, ends = exact_totals.FAMILIES[index % 6], bool(index // 6 % 2), index // 12 % 3 == 0
    world, mdp, ambiguity = exact_totals.random_world(rng, kind, 0, ends=ends)
    truth = exact_averages.play(world, max, max if helps else min)
    ambiguity = rm.Optimistic(ambiguity) if helps else ambiguity
    verdicts = []
    for stop, settings in stops(int(rng.integers(1, 6))).items():
        solution = rm.solve(mdp, ambiguity, criterion=rm.AverageReward(), **settings)
        own = truth.policies[tuple(solution.policy.tolist())]
        wrong = compare(solution.gain_lower, solution.gain_upper, truth.gain, own, minimise=False)
        if stop == "":
            wrong += misjudged(mdp, solution, truth.gain)
            again = rm.evaluate(mdp, solution.policy, ambiguity, criterion=rm.AverageReward())
            against = compare(again.gain_lower, again.gain_upper, own, own, minimise=False) + misjudged(mdp, again, own)
            verdicts.append(Verdict(f"average, {kind}, evaluated", again.status.code, named(index, against)))
        verdicts.append(Verdict(f"average, {kind}{stop}", solution.status.code, named(index, wrong)))
    return verdicts


def misjudged(mdp: rm.MDP, solution: rm.Solution, gain: list[Fraction]) -> list[str]:
    """A gain that is the same everywhere, the end included, is found; otherwise two states are named."""
    gains = [*gain, Fraction(0)] if mdp.can_end else gain
    if len(set(gains)) == 1:
        return [] if solution.converged else [f"not converged: {solution.status}"]
    found = re.search(r"from (the end|state (\d+)) and .* from (the end|state (\d+));", solution.status.sentence)
    if solution.status.code != "stalled" or found is None:
        return [f"gains {list(map(float, gains))}: {solution.status}"]
    low, high = (gains[-1 if state is None else int(state)] for state in found.group(2, 4))
    return [] if low == min(gains) and high == max(gains) else [f"gains {list(map(float, gains))}: {solution.status}"]


SMOOTH = (
    lambda: rm.Constrained(rm.KL(), 0.05),
    lambda: rm.Constrained(rm.ChiSquare(), 0.1),
    lambda: rm.Constrained(rm.Burg(), 0.05),
    lambda: rm.Constrained(rm.Hellinger(), 0.05),
    lambda: rm.Penalized(rm.KL(), 5.0),
    lambda: rm.Penalized(rm.ChiSquare(), 5.0),
)


def judge_average_smooth(seed: int, index: int) -> list[Verdict]:
    """AverageReward with smooth sets against 60 digits, in worlds where every state comes again."""
    rng = np.random.default_rng([seed, index, 5])
    mdp, ambiguity = recurrent_world(rng), SMOOTH[index % len(SMOOTH)]()
    referee = exact_mdp.build(mdp.with_discount(1.0), ambiguity)
    guess = rm.solve(mdp, ambiguity, criterion=rm.AverageReward()).value  # where the referee begins
    truth, of_policies = exact_mdp.average(referee, guess), {}
    verdicts = []
    for stop, settings in stops(int(rng.integers(1, 6))).items():
        solution = rm.solve(mdp, ambiguity, criterion=rm.AverageReward(), **settings)
        policy = tuple(solution.policy.tolist())
        own = of_policies[policy] = of_policies.get(policy) or exact_mdp.average(referee, guess, policy)
        low, high = mpf(float(solution.gain_lower[0])), mpf(float(solution.gain_upper[0]))
        wrong = [] if low <= min(truth[1], own[1]) and high >= truth[0] else [f"[{low}, {high}], {truth}, {own}"]
        if stop == "" and not solution.converged:
            wrong.append(f"not converged: {solution.status}")
        verdicts.append(Verdict(f"average, {ambiguity!r}{stop}", solution.status.code, named(index, wrong)))
    return verdicts


OTHERS = (
    lambda: rm.L1(0.3),
    lambda: rm.L1(0.3, support="all"),
    lambda: rm.L1(0.4, weights=[1.0, 2.0, 0.5, 1.0]),
    lambda: rm.L2(0.2),
    lambda: rm.LInf(0.1, support="all"),
    lambda: rm.Contamination(0.1, support="all"),
    lambda: rm.EVaR(0.7),
    lambda: rm.EntropicRisk(1.5),
    lambda: rm.MeanRisk(0.4, rm.CVaR(0.3)),
)


def judge_average_others(seed: int, index: int) -> list[Verdict]:
    """AverageReward with norms and risk: a sweep of the referee at the bias bounds the gain on both sides."""
    rng = np.random.default_rng([seed, index, 6])
    helps = bool(index // len(OTHERS) % 2)
    mdp, ambiguity = recurrent_world(rng), OTHERS[index % len(OTHERS)]()
    ambiguity = rm.Optimistic(ambiguity) if helps else ambiguity
    solution = rm.solve(mdp, ambiguity, criterion=rm.AverageReward())
    best, own = referee_sweep(mdp, ambiguity, solution)
    low, high = float(solution.gain_lower[0]), float(solution.gain_upper[0])
    wrong = [] if low <= min(max(best), max(own)) and high >= min(best) else [f"[{low}, {high}], {best}, {own}"]
    if not solution.converged:
        wrong.append(f"not converged: {solution.status}")
    return [Verdict(f"average, {ambiguity!r}", solution.status.code, named(index, wrong))]


def referee_sweep(mdp: rm.MDP, ambiguity: Any, solution: rm.Solution) -> tuple[list[mpf], list[mpf]]:
    """Tv - v at the bias, for the best action and for the policy's."""
    v = [mpf(float(x)) for x in solution.base]
    best, own = [], []
    for s in range(mdp.n_states):
        q = {}
        for pair in range(mdp.state_ptr[s], mdp.state_ptr[s + 1]):
            p = np.zeros(mdp.n_states)
            row = slice(mdp.indptr[pair], mdp.indptr[pair + 1])
            p[mdp.indices[row]] = mdp.probabilities[row]
            reward = mpf(float(mdp.rewards[pair]))
            q[int(mdp.actions[pair])] = sets.worst_value(ambiguity, p, [reward + x for x in v], mpf)
        best.append(max(q.values()) - v[s])
        own.append(q[int(solution.policy[s])] - v[s])
    return best, own


def recurrent_world(rng: np.random.Generator) -> rm.MDP:
    """Four states, two actions; every action leads everywhere, so that all gains are alike."""
    p = 0.02 + rng.dirichlet([0.5] * 4, (4, 2))
    return rm.MDP.from_arrays(p / p.sum(axis=2, keepdims=True), rng.normal(size=(4, 2)), 0.9)


def compare(lower: Any, upper: Any, value: list[Any], own: list[Any], *, minimise: bool) -> list[str]:
    """Bounds hold the value, and the returned policy keeps its side of them; rationals and floats compare exactly."""
    wrong = [
        f"state {s}: [{low!r}, {high!r}] must hold {float(v)!r}"
        for s, (low, high, v) in enumerate(zip(lower.tolist(), upper.tolist(), value, strict=True))
        if not low <= v <= high
    ]
    return wrong + [
        f"state {s}: the policy's value {float(v)!r} must keep to [{low!r}, {high!r}]"
        for s, (low, high, v) in enumerate(zip(lower.tolist(), upper.tolist(), own, strict=True))
        if (v > high if minimise else v < low)
    ]


def named(index: int, failures: list[str]) -> tuple[str, ...]:
    return tuple(f"case {index}: {failure}" for failure in failures)


JUDGES: dict[str, Callable[[int, int], list[Verdict]]] = {
    "horizon": judge_horizon,
    "total": judge_total,
    "reach": judge_reach,
    "average": judge_average,
    "average-smooth": judge_average_smooth,
    "average-others": judge_average_others,
}


COSTS = {  # an average of a smooth set takes its referee seconds
    "horizon": 8,
    "total": 1,
    "reach": 1,
    "average": 2,
    "average-smooth": 100,
    "average-others": 10,
}


def main(arguments: list[str] | None = None) -> int:
    """Judge all streams, print a table, return the number of failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=12_000, help="of total rewards and of goals; fewer elsewhere")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", choices=list(JUDGES), action="append")
    options = parser.parse_args(arguments)
    outcomes: Counter[tuple[str, str]] = Counter()
    failures: list[str] = []
    for name in options.only or JUDGES:
        count = max(1, options.worlds // COSTS[name])
        with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
            for verdicts in pool.map(partial(JUDGES[name], options.seed), range(count), chunksize=20):
                for verdict in verdicts:
                    outcomes[verdict.family, verdict.outcome] += 1
                    failures += [f"{verdict.family}: {failure}" for failure in verdict.failures]
    for (family, outcome), count in sorted(outcomes.items()):
        print(f"{family:<60}{outcome:<14}{count:>8}")
    for failure in failures[:20]:
        print(failure)
    print(f"\n{len(failures)} failures in {sum(outcomes.values()):,} solutions")
    return len(failures)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
