"""Thousands of random rows against the mpmath dual and cvxpy's primal: `make verify`."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np

import robustmdp as rm
from oracles import primal
from oracles.random_rows import Problem, certify, moderate_problem, random_problem, reference

DUAL_ERROR = 1e-10
GAP = 1e-9
PRIMAL_ERROR = 1e-6  # Clarabel reaches 1e-8 at least, relative to an objective of up to 100 times max|v|
ROUNDING = 1e-12
CHUNK = 17  # one of each divergence; small, because the referee takes from a millisecond to a minute


class Outcome(NamedTuple):
    """How one problem went; errors and gap are relative to max|v| on the support, empty `failures` means well."""

    row: str
    error: float
    gap: float
    failures: tuple[str, ...]
    problem: Problem


def judge(problem: Problem) -> Outcome:
    """Value against the dual in 50 digits; the distribution by the definition of D in 50 digits."""
    answer = rm.worst_case(problem.ambiguity, problem.p, problem.v)
    exact = reference(problem)
    error = abs(float(exact - answer.value))
    failures = _common_failures(problem, answer) + _distribution_failures(problem, answer, exact)
    if not error <= DUAL_ERROR * problem.scale:
        failures.append(f"value {answer.value!r} must be {float(exact)!r}")
    return _outcome(problem, error, answer.gap, failures)


def judge_by_mpmath(seed: int, index: int) -> Outcome:
    """A random problem, easy or nasty."""
    return judge(random_problem(seed, index))


def judge_by_cvxpy(seed: int, index: int) -> Outcome:
    """A random problem in the range of an interior-point method, which solves the primal."""
    problem = moderate_problem(seed, index)
    answer = rm.worst_case(problem.ambiguity, problem.p, problem.v)
    solve = primal.penalized if isinstance(problem.ambiguity, rm.Penalized) else primal.constrained
    expected = solve(problem.ambiguity.divergence, problem.p, problem.v, problem.ambiguity.level)
    error = abs(expected - answer.value)
    failures = _common_failures(problem, answer)
    if not error <= PRIMAL_ERROR * problem.scale:
        failures.append(f"value {answer.value!r} must be {expected!r}")
    return _outcome(problem, error, answer.gap, failures)


def _common_failures(problem: Problem, answer: rm.WorstCase) -> list[str]:
    failures = []
    if not -ROUNDING * problem.scale <= answer.gap <= GAP * problem.scale:
        failures.append(f"gap must lie in [0, {GAP:g}] * {problem.scale:g}: got {answer.gap:g}")
    if not abs(answer.distribution.sum() - 1) <= ROUNDING:
        failures.append(f"distribution must sum to 1: got {answer.distribution.sum()!r}")
    if not (answer.distribution >= 0).all():
        failures.append(f"distribution must be non-negative: got {answer.distribution.min()!r}")
    if answer.distribution[problem.p == 0].any():
        failures.append("distribution must have no mass outside the support")
    return failures


def _distribution_failures(problem: Problem, answer: rm.WorstCase, exact: float) -> list[str]:
    if not np.isfinite(answer.distribution).all():
        return ["distribution must be finite"]
    failures = []
    worth, divergence = certify(problem, answer.distribution)
    level = problem.ambiguity.level
    bits = problem.p.size * np.finfo(float).eps
    if not abs(worth - exact) <= GAP * problem.scale + _price_of_bits(problem, bits):
        failures.append(f"distribution is worth {float(worth)!r}, the best {float(exact)!r}")
    if isinstance(problem.ambiguity, rm.Constrained) and not divergence <= level * (1 + GAP) + bits:
        failures.append(f"distribution must have D <= {level!r}: got {float(divergence)!r}")
    return failures


def _price_of_bits(problem: Problem, bits: float) -> float:
    """What rounding the distribution costs nature: D grows with the square of it, total variation linearly."""
    ambiguity = problem.ambiguity
    if isinstance(ambiguity, rm.Constrained) or ambiguity.level == np.inf:
        return 0.0
    return ambiguity.level * (bits if isinstance(ambiguity.divergence, rm.TotalVariation) else bits**2)


def _outcome(problem: Problem, error: float, gap: float, failures: list[str]) -> Outcome:
    row = f"{problem.ambiguity.divergence!r:<28}{type(problem.ambiguity).__name__:<12}"
    scale = problem.scale or 1.0
    return Outcome(row, error / scale, gap / scale, tuple(failures), problem)


def print_table(title: str, outcomes: Iterable[Outcome]) -> None:
    """Divergence and mode, number of problems, worst error, worst gap."""
    rows: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        rows[outcome.row].append(outcome)
    print(f"\n{title:<40}{'problems':>9}{'error':>10}{'gap':>10}{'failed':>8}")
    for row, members in rows.items():
        error, gap = (np.max([getattr(one, name) for one in members]) for name in ("error", "gap"))
        failed = sum(bool(one.failures) for one in members)
        print(f"{row}{len(members):>9}{error:>10.1e}{gap:>10.1e}{failed or '':>8}")


def verify(judge: Callable[[int, int], Outcome], seed: int, count: int, processes: int) -> list[Outcome]:
    """The outcomes of problems 0 to count - 1, the same for any number of processes."""
    if processes == 1:
        return [judge(seed, index) for index in range(count)]
    with get_context("spawn").Pool(processes) as pool:
        return pool.map(partial(judge, seed), range(count), chunksize=CHUNK)


def main(arguments: list[str] | None = None) -> int:
    """Run both referees, print both tables, return the number of failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=2000, help="problems for the mpmath dual")
    parser.add_argument("--cvxpy", type=int, default=500, help="problems for cvxpy's primal")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    judge_by_mpmath(options.seed, 0)  # compiles once, before the processes would each do it
    failed = []
    for title, judge, count in (
        ("mpmath, relative to max|v|", judge_by_mpmath, options.problems),
        ("cvxpy, relative to max|v|", judge_by_cvxpy, options.cvxpy),
    ):
        outcomes = verify(judge, options.seed, count, options.processes)
        print_table(title, outcomes)
        failed += [(title, index, outcome) for index, outcome in enumerate(outcomes) if outcome.failures]
    for title, index, outcome in failed:
        print(f"\n{title.split(',')[0]} problem {index} of seed {options.seed}: {'; '.join(outcome.failures)}")
        print(outcome.problem)
    print(f"\n{len(failed)} of {options.problems + options.cvxpy} problems failed")
    return len(failed)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
