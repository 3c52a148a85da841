"""Norm balls, intervals and risk measures: random rows against exact numbers and cvxpy, random worlds against bounds in
many digits; a part of `make verify`."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp, mpf
from scipy import sparse

import robustmdp as rm
from oracles import sets

PRIMAL_ERROR = 1e-6  # relative to max|v|: Clarabel reaches 1e-8 at least
EXACT_ERROR = 1e-10
GAP = 1e-9
DIGITS = 40
SWEEPS = 4  # of the referee, from a solution that is exact to 1e-12: its own bounds are then as close

Generator = np.random.Generator


class Family(NamedTuple):
    """How a set is drawn: from a generator, for a row p of n entries."""

    make: Callable[[Generator, Any], Any]
    needs_zeros: bool = False  # rows should have entries of probability 0


def _radius(rng: Generator) -> float:
    return float(rng.choice([1e-6, 0.01, 0.1, 0.3, 0.7, 1.4, 3.0]) * rng.uniform(0.5, 1.0))


def _share(rng: Generator) -> float:
    return float(rng.choice([rng.uniform(0.0, 1.0), 0.01, 1.0]))


def _support(rng: Generator, p: Any) -> Any:
    return "all" if rng.random() < 0.5 else sorted(rng.choice(len(p), size=2, replace=False).tolist())


def _interval(rng: Generator, p: Any) -> Any:
    """Around a distribution that need not be p; some transitions are known for sure, some can be impossible."""
    centre = rng.dirichlet(np.ones(len(p)))
    lower = centre * np.where(rng.random(len(p)) < 0.2, 1.0, rng.random(len(p)) * (rng.random(len(p)) < 0.7))
    upper = np.minimum(1.0, centre + np.where(rng.random(len(p)) < 0.2, 0.0, rng.random(len(p))))
    return rm.Interval(np.minimum(lower, upper), upper)


def _wasserstein(rng: Generator, n: int, **settings: Any) -> Any:
    """Coordinates, or a matrix with moves that are forbidden, free or as dear as others."""
    radius = float(rng.choice([0.0, 1e-6, 0.1, 0.5, 2.0, np.inf], p=[0.05, 0.1, 0.3, 0.3, 0.2, 0.05]))
    radius *= float(rng.uniform(0.5, 1.0))
    kind = rng.integers(4)
    if kind == 0:
        points = rng.normal(size=(n, int(rng.integers(1, 4)))) if rng.random() < 0.7 else rng.integers(0, 4, n)
        return rm.Wasserstein(points, radius, coordinates=None if points.ndim == 1 else True, **settings)
    costs = rng.uniform(0.1, 3.0, (n, n)) if kind == 1 else rng.integers(kind - 2, 4, (n, n)).astype(float)
    costs[rng.random((n, n)) < rng.choice([0.0, 0.3])] = np.inf
    np.fill_diagonal(costs, 0.0)
    if kind == 2:
        rows, columns = np.nonzero(costs < np.inf)
        return rm.Wasserstein(sparse.coo_array((costs[rows, columns], (rows, columns)), (n, n)), radius, **settings)
    return rm.Wasserstein(costs, radius, **settings)


FAMILIES: dict[str, Family] = {
    "L1": Family(lambda rng, p: rm.L1(_radius(rng))),
    "L1, weighted": Family(lambda rng, p: rm.L1(_radius(rng), weights=rng.uniform(0.1, 4.0, len(p)))),
    "L1, other successors": Family(lambda rng, p: rm.L1(_radius(rng), support=_support(rng, p)), True),
    "L1, weighted, other successors": Family(
        lambda rng, p: rm.L1(_radius(rng), weights=rng.uniform(0.1, 4.0, len(p)), support=_support(rng, p)), True
    ),
    "LInf": Family(lambda rng, p: rm.LInf(_radius(rng))),
    "LInf, other successors": Family(lambda rng, p: rm.LInf(_radius(rng), support=_support(rng, p)), True),
    "L2": Family(lambda rng, p: rm.L2(_radius(rng))),
    "L2, other successors": Family(lambda rng, p: rm.L2(_radius(rng), support=_support(rng, p)), True),
    "Interval": Family(_interval),
    "Contamination": Family(lambda rng, p: rm.Contamination(_share(rng))),
    "Contamination, other successors": Family(
        lambda rng, p: rm.Contamination(_share(rng), support=_support(rng, p)), True
    ),
    "CVaR": Family(lambda rng, p: rm.CVaR(rng.uniform(0.01, 1.0))),
    "EVaR": Family(lambda rng, p: rm.EVaR(rng.uniform(0.01, 0.99))),
    "EntropicRisk": Family(lambda rng, p: rm.EntropicRisk(rng.choice([0.1, 1.0, 3.0]) * rng.uniform(0.5, 1.0))),
    "Wasserstein": Family(lambda rng, p: _wasserstein(rng, len(p)), True),
    "Wasserstein, no other successors": Family(lambda rng, p: _wasserstein(rng, len(p), support="model"), True),
    "Wasserstein, some other successors": Family(
        lambda rng, p: _wasserstein(rng, len(p), support=sorted(rng.choice(len(p), size=2, replace=False).tolist())),
        True,
    ),
    "MeanRisk": Family(lambda rng, p: rm.MeanRisk(rng.random(), rm.CVaR(rng.uniform(0.01, 1.0)))),
}


def random_row(family: str, seed: int, index: int) -> tuple[Any, Any, Any]:
    """A set, probabilities and values; some outcomes are equal."""
    rng = np.random.default_rng([seed, index, list(FAMILIES).index(family)])
    n = int(rng.integers(2, 12))
    p = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 5.0])))
    p = np.maximum(p, 1e-9)
    if FAMILIES[family].needs_zeros:
        p[rng.permutation(n)[: int(rng.integers(1, n))]] = 0.0
    p /= p.sum()
    v = rng.normal(size=n) * 3.0 if rng.random() < 0.7 else rng.integers(-2, 3, size=n).astype(float)
    return FAMILIES[family].make(rng, p), p, v


def judge_row(family: str, seed: int, index: int, *, by_cvxpy: bool) -> tuple[float, str]:
    """The error relative to max|v|, and what is wrong."""
    ambiguity, p, v = random_row(family, seed, index)
    answer, scale = rm.worst_case(ambiguity, p, v), float(np.abs(v).max()) or 1.0
    with mp.workdps(DIGITS):
        exactly = mpf if isinstance(ambiguity, rm.L2) else sets.Fraction
        truth = sets.worst_by_cvxpy(ambiguity, p, v) if by_cvxpy else sets.worst_value(ambiguity, p, v, exactly)
        error = float(abs(mpf(float(truth)) - mpf(answer.value)) if by_cvxpy else abs(truth - exactly(answer.value)))
    failures = []
    if not error <= (PRIMAL_ERROR if by_cvxpy else EXACT_ERROR) * scale:
        failures.append(f"value {answer.value!r} must be {float(truth)!r}")
    if not (answer.distribution >= 0).all() or not abs(answer.distribution.sum() - 1) <= 1e-12:
        failures.append(f"distribution must be probabilities: got {answer.distribution.tolist()}")
    if not -1e-12 * scale <= answer.gap <= GAP * scale:
        failures.append(f"gap must lie in [0, {GAP:g}] * {scale:g}: got {answer.gap:g}")
    if answer.distribution[~np.array(sets.can_have_mass(ambiguity, p))].any():
        failures.append("distribution must keep to the support")
    opposite = rm.worst_case(rm.Optimistic(ambiguity), p, -v)
    if not abs(opposite.value + answer.value) <= 1e-13 * scale:
        failures.append(f"the best case of -v must be {-answer.value!r}: got {opposite.value!r}")
    return error / scale, "; ".join(f"{failure} ({ambiguity!r}, {p.tolist()}, {v.tolist()})" for failure in failures)


def random_world(family: str, seed: int, index: int) -> tuple[rm.MDP, Any, Callable[[int, int], Any]]:
    """A small world, a set for it, and the same set for a full row of one pair."""
    rng = np.random.default_rng([seed, index, list(FAMILIES).index(family), 1])
    n_states, n_actions = int(rng.integers(1, 5)), int(rng.integers(1, 3))
    n = n_states + int(rng.random() < 0.4)  # with an end
    state, action, following, probability, reward = [], [], [], [], []
    for s in range(n_states):
        for a in range(n_actions):
            support = np.sort(rng.permutation(n)[: int(rng.integers(1, n + 1))])
            p = rng.dirichlet(np.ones(len(support)))
            state += [s] * len(support)
            action += [a] * len(support)
            following += support.tolist()
            probability += p.tolist()
            reward += [float(rng.normal())] * len(support) if index % 2 else rng.normal(size=len(support)).tolist()
    mdp = rm.MDP.from_rows(
        state, action, following, probability, reward, float(rng.choice([0.0, 0.5, 0.8])), n_states=n_states
    )
    made = FAMILIES[family].make(rng, np.ones(max(n_states, 2)))
    ambiguity, of_row = for_world(made, mdp, rng)
    if rng.random() < 0.3:
        return mdp, rm.Optimistic(ambiguity), lambda s, pair: rm.Optimistic(of_row(s, pair))
    return mdp, ambiguity, of_row


def for_world(made: Any, mdp: rm.MDP, rng: Generator) -> tuple[Any, Callable[[int, int], Any]]:
    """The set with bounds, weights and states that fit the model."""
    if isinstance(made, rm.Interval):
        lower, upper = np.empty(mdp.nnz), np.empty(mdp.nnz)
        for pair in range(mdp.n_pairs):
            row = slice(int(mdp.indptr[pair]), int(mdp.indptr[pair + 1]))
            bounds = _interval(rng, np.ones(row.stop - row.start))
            lower[row], upper[row] = bounds.lower, bounds.upper

        def interval(_: int, pair: int) -> Any:
            row = slice(int(mdp.indptr[pair]), int(mdp.indptr[pair + 1]))
            full = np.zeros((2, mdp.n_states + 1))
            full[:, mdp.indices[row]] = lower[row], upper[row]
            count = mdp.n_states + int(mdp.indices[row][-1] == mdp.n_states)
            return rm.Interval(full[0, :count], full[1, :count])

        return rm.Interval(lower, upper), interval
    if isinstance(made, rm.Wasserstein):
        return _wasserstein_for_world(made, mdp, rng)
    settings: dict[str, Any] = {}
    if getattr(made, "support", "model") != "model":
        settings["support"] = "all" if made.support == "all" else [int(rng.integers(mdp.n_states))]
    if getattr(made, "weights", None) is not None:
        settings["weights"] = rng.uniform(0.1, 4.0, mdp.n_states + 1)
    if settings:
        made = type(made)(made.level, **settings)
    return made, lambda s, pair: made


def _wasserstein_for_world(made: Any, mdp: rm.MDP, rng: Generator) -> tuple[Any, Callable[[int, int], Any]]:
    n = mdp.n_states
    support = made.support if isinstance(made.support, str) else [int(rng.integers(n))]
    found = _wasserstein(rng, n, support=support)

    def padded(_: int, pair: int) -> Any:
        """The end neither gives nor takes."""
        if mdp.indices[int(mdp.indptr[pair + 1]) - 1] < n:
            return found
        costs = np.full((n + 1, n + 1), np.inf)
        costs[:n, :n] = sets.distances(found)
        costs[n, n] = 0.0
        listed = list(range(n)) if support == "all" else support
        return rm.Wasserstein(costs, found.radius, support=listed)

    return found, padded


def judge_world(family: str, seed: int, index: int) -> tuple[float, str]:
    """Bounds of a solve that ends early or not, against the truth; the value of the returned policy included."""
    mdp, ambiguity, of_row = random_world(family, seed, index)
    limit = 1 + index % 5
    settings: dict[str, Any] = [
        {"tol": 1e-10},
        {"solver": rm.ValueIteration(max_steps=limit)},
        {"solver": rm.PolicyIteration(max_steps=limit)},
        {"callback": lambda step: step.step >= limit},
    ][index % 4]
    solution = rm.solve(mdp, ambiguity, **settings)
    with mp.workdps(DIGITS):
        low, high = sets.values_of(mdp, of_row, rm.solve(mdp, ambiguity, tol=1e-12).value, SWEEPS)
        own = mdp.restricted(mdp.state_ptr[:-1] + np.array([_offset(mdp, s, a) for s, a in enumerate(solution.policy)]))
        start = rm.solve(own, _of_policy(ambiguity, mdp, solution.policy), tol=1e-12).value
        of_policy = sets.values_of(
            own, lambda s, _: of_row(s, int(mdp.state_ptr[s]) + _offset(mdp, s, solution.policy[s])), start, SWEEPS
        )
        scale = max(1.0, float(max(map(abs, high))))
        excess = max(
            max(mpf(float(a)) - b for a, b in zip(solution.lower, of_policy[1], strict=True)),
            max(a - mpf(float(b)) for a, b in zip(low, solution.upper, strict=True)),
        )
    failures = [] if excess <= 0 else [f"bounds are broken by {float(excess):g}"]
    if "tol" in settings and not solution.converged:
        failures.append(f"it must converge: {solution.status}")
    width = float(np.max(solution.upper - solution.lower)) / scale if "tol" in settings else 0.0
    return width, "; ".join(f"{text} ({ambiguity!r}, world {index} of seed {seed})" for text in failures)


def _of_policy(ambiguity: Any, mdp: rm.MDP, policy: Any) -> Any:
    pairs = np.array([mdp.pair(s, int(a)) for s, a in enumerate(policy)])
    return ambiguity.on_part(mdp, slice(None), mdp.transitions_of(pairs))


def _offset(mdp: rm.MDP, state: int, action: int) -> int:
    return mdp.pair(state, int(action)) - int(mdp.state_ptr[state])


def main(arguments: list[str] | None = None) -> int:
    """Judge rows and worlds of every family, print a table, return the number of failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cvxpy", type=int, default=2000, help="rows of each family for cvxpy")
    parser.add_argument("--exact", type=int, default=2000, help="rows of each family for exact numbers")
    parser.add_argument("--worlds", type=int, default=1000, help="worlds of each family")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    jobs = {
        "cvxpy": (partial(judge_row, by_cvxpy=True), options.cvxpy),
        "exact": (partial(judge_row, by_cvxpy=False), options.exact),
        "width": (judge_world, options.worlds),
    }
    print(f"{'largest errors, relative':<34}" + "".join(f"{name:>12}{'failed':>8}" for name in jobs))
    failures: list[str] = []
    with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
        for family in FAMILIES:
            line: dict[str, list[Any]] = defaultdict(list)
            for name, (judge, count) in jobs.items():
                line[name] = list(pool.map(partial(judge, family, options.seed), range(count), chunksize=20))
            wrong = {name: [text for _, text in found if text] for name, found in line.items()}
            failures += [text for texts in wrong.values() for text in texts]
            cells = (f"{max((e for e, _ in line[n]), default=0.0):>12.1e}{len(wrong[n]) or '':>8}" for n in jobs)
            print(f"{family:<34}" + "".join(cells), flush=True)
    for text in failures[:20]:
        print(f"\n{text}")
    print(f"\n{len(failures)} failed")
    return len(failures)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
