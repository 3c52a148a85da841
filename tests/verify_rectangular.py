"""s-rectangular sets: random states against cvxpy, bounds of random small worlds against tighter ones and a sweep by
cvxpy; a part of `make verify`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

import robustmdp as rm
from oracles import rectangular

PRIMAL_ERROR = 1e-6  # relative to max|z|: Clarabel reaches 1e-8 at least
EVERY = 10  # how often a world is judged by cvxpy as well
STEPS = 3


class Verdict(NamedTuple):
    """The largest relative error, what is wrong, and whether cvxpy was asked without an answer."""

    error: float
    failures: tuple[str, ...]
    unanswered: bool = False


def judge_state(kind: str, seed: int, index: int) -> Verdict:
    """A single state by public calls: the best value, that of the returned policy, that of a random one."""
    state = rectangular.random_state(kind, seed, index)
    model, seen = rectangular.as_model(state), rectangular.priced(state)
    scale = max(float(np.abs(z).max()) for z in state.z) or 1.0
    ambiguity = rm.SRectangular(state.ambiguity)
    shares = np.random.default_rng([seed, index]).dirichlet(np.full(len(state.p), 0.5))
    policy = rectangular.table_policy(state, model, shares)
    found = rm.solve(model, ambiguity)
    given = rm.evaluate(model, policy, ambiguity)
    try:
        asked = {
            "best": (found, rectangular.best(seen)),
            "returned policy": (found, rectangular.of_policy(seen, found.policy[0, : len(state.p)])),
            "given policy": (given, rectangular.of_policy(seen, shares)),
        }
    except RuntimeError:
        return Verdict(0.0, (), unanswered=True)
    errors = {name: abs(answer.value[0] - truth) / scale for name, (answer, truth) in asked.items()}
    failures = [
        f"{name}: it must be {asked[name][1]!r}, off by {error:g}"
        for name, error in errors.items()
        if error > PRIMAL_ERROR
    ]
    failures += [f"must converge: {each.status}" for each in (found, given) if not each.converged]
    return Verdict(max(errors.values()), tuple(f"{kind}, state {index}: {failure}" for failure in failures))


def random_world(kind: str, seed: int, index: int) -> tuple[rm.MDP, Any, np.random.Generator]:
    """A small world, and a set of rows for it."""
    rng = np.random.default_rng([seed, index, rectangular.KINDS.index(kind), 1])
    n_states, n_actions = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    n = n_states + int(rng.random() < 0.4)  # with an end
    rows: list[tuple[int, int, int, float, float]] = []
    for s in range(n_states):
        for a in range(n_actions):
            if a > 0 and rng.random() < 0.2:
                continue  # not available
            support = np.sort(rng.permutation(n)[: int(rng.integers(1, n + 1))])
            p = rng.dirichlet(np.ones(len(support)))
            if index % EVERY == 0:  # within what cvxpy can solve
                p = (p + 1e-2) / (1.0 + 1e-2 * len(p))
            reward = np.full(len(support), rng.normal()) if index % 2 else rng.normal(size=len(support))
            rows += [(s, a, *row) for row in zip(support.tolist(), p.tolist(), reward.tolist(), strict=True)]
    state, action, following, probability, reward = (list(column) for column in zip(*rows, strict=True))
    discount = float(rng.choice([0.0, 0.5, 0.8, 0.95]))
    mdp = rm.MDP.from_rows(state, action, following, probability, reward, discount, n_states=n_states)
    weights = [rng.uniform(0.2, 3.0, n_states + 1)] if kind == "weighted L1" else None
    made = rectangular.random_set(kind, rng, 1.0)
    if weights is not None:
        made = rm.L1(made.level, weights=weights[0])
    return mdp, _extreme(made, mdp, rng), rng


def _extreme(made: Any, mdp: rm.MDP, rng: np.random.Generator) -> Any:
    """Sometimes a level of each state, with 0 and inf among them."""
    if rng.random() < 0.7:
        return made
    levels = float(made.level) * rng.choice([0.0, 0.1, 1.0, 10.0, np.inf], size=mdp.n_states)
    levels = np.where(np.isnan(levels), 0.0, levels)
    if isinstance(made, rm.L1):
        return rm.L1(levels, weights=made.weights)
    return rm.L2(levels) if isinstance(made, rm.L2) else type(made)(made.divergence, levels)


def judge_world(kind: str, seed: int, index: int) -> Verdict:
    """Bounds of a solve that ends early or not; those of a given policy; every tenth world by cvxpy, too."""
    mdp, rows, rng = random_world(kind, seed, index)
    helps = rng.random() < 0.2
    ambiguity = rm.Optimistic(rm.SRectangular(rows)) if helps else rm.SRectangular(rows)
    limit = 1 + index % 4
    settings: dict[str, Any] = [
        {"tol": 1e-9},
        {"solver": rm.ValueIteration(max_steps=limit)},
        {"solver": rm.PolicyIteration(max_steps=limit)},
        {"callback": lambda step: step.step >= limit},
    ][index % 4]
    found = rm.solve(mdp, ambiguity, **settings)
    own = rm.evaluate(mdp, found.policy, ambiguity, tol=1e-12)
    truth = rm.solve(mdp, ambiguity, tol=1e-12, solver=rm.ValueIteration())
    policy = mdp.table(_random_policy(mdp, rng), fill=0.0)
    early = rm.evaluate(mdp, policy, ambiguity, callback=lambda step: step.step >= limit)
    given = rm.evaluate(mdp, policy, ambiguity, tol=1e-12)
    failures = _broken("solve", found.lower, found.upper, own.upper, truth.lower)
    failures += _broken("evaluate", early.lower, early.upper, given.upper, given.lower)
    if "tol" in settings and not found.converged:
        failures.append(f"must converge: {found.status}")
    unanswered = False
    if not helps and _is_for_cvxpy(index, kind, rows):
        try:
            low, _ = _by_cvxpy(mdp, rows, truth.value, None)
            own_low, own_high = _by_cvxpy(mdp, rows, own.value, found.policy)
        except RuntimeError:
            unanswered = True
        else:
            failures += _broken("solve, by cvxpy", found.lower, found.upper, own_high, low)
            failures += _broken("tight, by cvxpy", own.lower, own.upper, own_high, own_low)
    width = float(np.max(found.upper - found.lower)) / max(1.0, float(np.abs(found.value).max()))
    return Verdict(width if "tol" in settings else 0.0, _named(kind, "world", index, failures), unanswered)


def _is_for_cvxpy(index: int, kind: str, rows: Any) -> bool:
    return index % EVERY == 0 and np.ndim(rows.level) == 0 and kind != "weighted L1"


def _random_policy(mdp: rm.MDP, rng: np.random.Generator) -> Any:
    shares = rng.exponential(size=mdp.n_pairs) * (rng.random(mdp.n_pairs) < 0.7)
    shares[mdp.state_ptr[:-1]] += 1e-3
    return shares / np.add.reduceat(shares, mdp.state_ptr[:-1])[mdp.states]


def _by_cvxpy(mdp: rm.MDP, rows: Any, v: Any, policy: Any) -> tuple[Any, Any]:
    """Bounds of the value by one sweep of the referee at v, widened by its accuracy."""
    swept = _swept(mdp, rows, v, policy)
    change = np.append(swept - v, 0.0)
    factor = mdp.discount / (1.0 - mdp.discount)
    slack = PRIMAL_ERROR * max(1.0, float(np.abs(v).max())) * (1.0 + factor)
    return swept + factor * change.min() - slack, swept + factor * change.max() + slack


def judge_horizon(kind: str, seed: int, index: int) -> Verdict:
    """Steps backwards, whole and stopped, against the value of the returned policy and the best one."""
    mdp, rows, rng = random_world(kind, seed, index)
    ambiguity, terminal = rm.SRectangular(rows), rng.normal(size=mdp.n_states)
    criterion = rm.FiniteHorizon(STEPS, terminal)
    limit = 1 + index % STEPS
    settings = {} if index % 2 else {"callback": lambda step: step.step >= limit}
    found = rm.solve(mdp, ambiguity, criterion=criterion, **settings)
    own = rm.evaluate(mdp, found.policy, ambiguity, criterion=criterion)
    truth = rm.solve(mdp, ambiguity, criterion=criterion)
    failures = _broken("horizon", found.lower, found.upper, own.upper, truth.lower)
    unanswered = False
    if _is_for_cvxpy(index, kind, rows):
        best, value = terminal, terminal
        slack = STEPS * PRIMAL_ERROR * max(1.0, float(np.abs(truth.value).max()))
        try:
            for t in reversed(range(STEPS)):
                best, value = _swept(mdp, rows, best, None), _swept(mdp, rows, value, found.policy[t])
                name = f"step {t}, by cvxpy"
                failures += _broken(name, found.lower[t], found.upper[t], value + slack, best - slack)
        except RuntimeError:
            unanswered = True
    return Verdict(0.0, _named(kind, "horizon", index, failures), unanswered)


def judge_average(kind: str, seed: int, index: int) -> Verdict:
    """Long-run averages, whole and stopped, against those of the returned policy and the best one."""
    mdp, rows, rng = random_world(kind, seed, index)
    ambiguity, criterion, limit = rm.SRectangular(rows), rm.AverageReward(), 1 + index % 4
    settings = {} if rng.random() < 0.5 else {"callback": lambda step: step.step >= limit}
    found = rm.solve(mdp, ambiguity, criterion=criterion, **settings)
    own = rm.evaluate(mdp, found.policy, ambiguity, criterion=criterion, tol=1e-12)
    truth = rm.solve(mdp, ambiguity, criterion=criterion, tol=1e-12)
    failures = _broken("average", found.gain_lower, found.gain_upper, own.gain_upper, truth.gain_lower)
    return Verdict(0.0, _named(kind, "average", index, failures))


def _swept(mdp: rm.MDP, rows: Any, v: Any, policy: Any) -> Any:
    """One sweep of the referee, of the best policy or of a given one."""
    swept = []
    for s in range(mdp.n_states):
        state = rectangular.state_of_model(mdp, rows, s, v)
        own = None if policy is None else policy[s][mdp.actions[mdp.state_ptr[s] : mdp.state_ptr[s + 1]]]
        swept.append(rectangular.best(state) if own is None else rectangular.of_policy(state, own))
    return np.array(swept)


def _broken(name: str, lower: Any, upper: Any, own: Any, best: Any) -> list[str]:
    """lower must be at most the policy's value, and upper at least the best one."""
    found = []
    if not (lower <= own).all():
        found.append(f"{name}: lower bounds {lower.tolist()} exceed the policy's {np.asarray(own).tolist()}")
    if not (upper >= best).all():
        found.append(f"{name}: upper bounds {upper.tolist()} lie below the best {np.asarray(best).tolist()}")
    return found


def _named(kind: str, what: str, index: int, failures: list[str]) -> tuple[str, ...]:
    return tuple(f"{kind}, {what} {index}: {failure}" for failure in failures)


def main(arguments: list[str] | None = None) -> int:
    """Judge states and worlds of every kind, print a table, return the number of failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=500, help="of each kind, for cvxpy")
    parser.add_argument("--worlds", type=int, default=1000, help="of each kind")
    parser.add_argument("--horizons", type=int, default=1000, help="worlds of each kind with an end")
    parser.add_argument("--averages", type=int, default=1000, help="worlds of each kind in the long run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    jobs: dict[str, tuple[Callable[..., Verdict], int]] = {
        "states": (judge_state, options.states),
        "width": (judge_world, options.worlds),
        "horizon": (judge_horizon, options.horizons),
        "average": (judge_average, options.averages),
    }
    print(f"{'largest errors, relative':<30}" + "".join(f"{name:>12}{'failed':>8}{'no answer':>11}" for name in jobs))
    failures: list[str] = []
    with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
        for kind in rectangular.KINDS:
            cells = ""
            for judge, count in jobs.values():
                verdicts = list(pool.map(partial(judge, kind, options.seed), range(count), chunksize=20))
                wrong = [text for verdict in verdicts for text in verdict.failures]
                failures += wrong
                unanswered = sum(verdict.unanswered for verdict in verdicts)
                worst = max((verdict.error for verdict in verdicts), default=0.0)
                cells += f"{worst:>12.1e}{len(wrong) or '':>8}{unanswered or '':>11}"
            print(f"{kind:<30}{cells}", flush=True)
    for text in failures[:20]:
        print(f"\n{text}")
    print(f"\n{len(failures)} failed")
    return len(failures)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
