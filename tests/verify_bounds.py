"""Certified bounds of hostile rows and of early-stopped random worlds against a 60-digit referee: `make verify`."""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp, mpf

import robustmdp as rm
from oracles import exact, exact_mdp
from oracles.hostile_rows import HostileRow, HostileWorld, build_mdp, hostile_row, hostile_world
from oracles.random_rows import normal_form

CODES = {"converged", "step_limit", "stalled", "diverged", "interrupted"}
REFEREE = mpf(10) ** -20  # the referee's own bounds must be closer than this, relative to max|v|
ACCURACY = 1e-10  # of `rm.worst_case` on moderate rows, relative to max|v|
GAP = 1e-9
WIDE = 1e-8
ROUNDING = 1e-12
CHUNK = 20


class Outcome(NamedTuple):
    """How one solution went; `violation` and `width` are relative to max|v|, empty `failures` means well.

    `is_wide` marks bounds that hold, but are wider than a moderate row should need: no failure, but worth a look.
    """

    family: str
    group: str
    violation: float
    width: float
    converged: bool
    is_wide: bool
    failures: tuple[str, ...]
    case: str


def judge_row(seed: int, index: int) -> list[Outcome]:
    """Row `index` of the stream."""
    return [judge_hostile_row(hostile_row(seed, index), f"row {index} of seed {seed}, ")]


def judge_hostile_row(row: HostileRow, origin: str = "") -> Outcome:
    """The bounds of `rm.solve` on a model that is this row, and `rm.worst_case` of the row."""
    violation, width, converged = 0.0, 0.0, False
    try:
        mdp = build_mdp(row)
        solution = rm.solve(mdp, row.ambiguity, tol=row.tol)
        truth = row_values(mdp, row.ambiguity)
        violation, width, failures = compare(solution, truth, row.tol, float(np.abs(row.v).max()) or 1.0)
        failures += _check_response(solution) + _check_worst_case(row)
        converged = solution.converged
    except Exception as error:  # whatever it is, it must be reported with its row
        failures = [f"{type(error).__name__}: {error}"]
    is_wide = row.is_moderate and width > WIDE
    case = f"{origin}{row}" if failures else ""
    return Outcome(row.family, _brief(row.ambiguity), violation, width, converged, is_wide, tuple(failures), case)


def judge_world(seed: int, index: int) -> list[Outcome]:
    """World `index` of the stream."""
    return judge_hostile_world(hostile_world(seed, index), f"world {index} of seed {seed}: ")


def judge_hostile_world(world: HostileWorld, origin: str = "") -> list[Outcome]:
    """Bounds on v* and on the value of the returned policy, wherever the run stops; the same of an evaluation."""
    mdp, ambiguity, k = world.mdp, world.ambiguity, world.stop_after

    def stop(step: Any) -> bool:
        return bool(step.step >= k)

    runs: dict[str, dict[str, Any]] = {
        "solved": {},
        "value iteration, stopped": {"solver": rm.ValueIteration(max_steps=k)},
        "policy iteration, stopped": {"solver": rm.PolicyIteration(max_steps=k)},
        "interrupted": {"solver": rm.ValueIteration() if k % 2 else rm.PolicyIteration(), "callback": stop},
        "evaluation, interrupted": {"callback": stop},
    }
    referee = exact_mdp.build(mdp, ambiguity)
    best: exact_mdp.Values | None = None
    values: dict[tuple[int, ...], exact_mdp.Values] = {}
    policy: tuple[int, ...] = ()
    outcomes = []
    for family, settings in runs.items():
        violation, width, converged = 0.0, 0.0, False
        try:
            if family.startswith("evaluation"):
                solution = rm.evaluate(mdp, policy, ambiguity, tol=world.tol, **settings)
            else:
                solution = rm.solve(mdp, ambiguity, tol=world.tol, **settings)
            if best is None:  # the start is the solution's, the answer is not
                best = exact_mdp.solve(referee, np.where(np.isfinite(solution.value), solution.value, 0.0))
                values[tuple(best.policy)] = best
            policy = tuple(solution.policy.tolist())
            if policy not in values:
                values[policy] = exact_mdp.evaluate(referee, policy, best.lower)
            truth = values[policy] if family.startswith("evaluation") else best
            size = max(map(abs, [*mdp.rewards.tolist(), *truth.upper])) or 1.0
            violation, width, failures = compare(solution, truth, world.tol, float(size))
            failures += _check_policy_value(solution, values[policy])
            converged = solution.converged
        except Exception as error:  # whatever it is, it must be reported with its world
            failures = [f"{type(error).__name__}: {error}"]
        case = f"{family}, {origin}{world}" if failures else ""
        outcomes.append(Outcome(family, _brief(ambiguity), violation, width, converged, False, tuple(failures), case))
    return outcomes


def _brief(ambiguity: Any) -> str:
    if isinstance(ambiguity, rm.Nominal):
        return "Nominal"
    divergence = ambiguity.divergence
    known = not isinstance(divergence, rm.CressieRead) or divergence.k in (0, 0.5, 1, 2, 3, -1, 20, 1000, -1000)
    name = repr(divergence) if known else "CressieRead(other k)"
    return f"{type(ambiguity).__name__:<12}{name}"


def row_values(mdp: rm.MDP, ambiguity: Any) -> exact_mdp.Values:
    """The exact values of a model whose state 0 is a row, and whose other states pay and end."""
    world = exact_mdp.build(mdp, ambiguity)
    with mp.workdps(exact.DIGITS + 20):
        values = [pairs[0].rewards[0] for pairs in world.states[1:]]
        pair = world.states[0][0]
        following = [mpf(0), *values, mpf(0)]  # no outcome leads back to state 0; the last is the end
        outcomes = [r + world.discount * following[i] for r, i in zip(pair.rewards, pair.successors, strict=True)]
        row = exact.worst_case(pair.ambiguity, pair.probabilities, outcomes, world.discount)
    return exact_mdp.Values([row.lower, *values], [row.upper, *values], [0] * mdp.n_states)


def compare(solution: rm.Solution, truth: exact_mdp.Values, tol: float, scale: float) -> tuple[float, float, list[str]]:
    """The worst violation and the widest bound, relative to `scale`, and what is wrong with a solution."""
    failures = []
    lower, upper = solution.lower.tolist(), solution.upper.tolist()
    if solution.status.code not in CODES:
        failures.append(f"status must be one of {sorted(CODES)}: got {solution.status.code!r}")
    if not np.isfinite([*lower, *upper, *solution.value.tolist()]).all():
        return 0.0, math.inf, [*failures, f"bounds must be finite: got {lower}, {upper}, status {solution.status.code}"]
    width = max(b - a for a, b in zip(lower, upper, strict=True)) / 2
    failures += [
        f"state {s}: the bounds must be in order: got [{a!r}, {b!r}]"
        for s, (a, b) in enumerate(zip(lower, upper, strict=True))
        if a > b
    ]
    if solution.converged and not width <= tol * max(1.0, float(np.abs(solution.value).max())) * (1 + 1e-9):
        failures.append(f"converged bounds must be within tol = {tol:g}: got {width:g}")
    own = max(b - a for a, b in zip(truth.lower, truth.upper, strict=True))
    if own > REFEREE * mpf(scale):
        failures.append(f"the referee's bounds must be {float(REFEREE):g} apart: got {mp.nstr(own / mpf(scale), 3)}")
    violation = mpf(0)
    for s, (low, high, at_least, at_most) in enumerate(zip(lower, upper, truth.lower, truth.upper, strict=True)):
        excess = max(mpf(low) - at_most, at_least - mpf(high))
        if excess > 0:
            failures.append(
                f"state {s}: bounds [{low!r}, {high!r}] must hold {mp.nstr(at_least, 20)}: "
                f"off by {mp.nstr(excess, 3)}, status {solution.status.code}"
            )
        violation = max(violation, excess)
    return float(violation / mpf(scale)), float(mpf(width) / mpf(scale)), failures


def _check_policy_value(solution: rm.Solution, value: exact_mdp.Values) -> list[str]:
    wrong = [s for s, low in enumerate(solution.lower.tolist()) if mpf(low) > value.upper[s]]
    return [
        f"state {s}: the policy must be worth {float(solution.lower[s])!r}: got {mp.nstr(value.upper[s], 20)}"
        for s in wrong
    ]


def _check_response(solution: rm.Solution) -> list[str]:
    """Nature's model must have a row for every pair, of probabilities."""
    mdp, model = solution.adversary.mdp, solution.worst_case
    if model.n_pairs != mdp.n_pairs or not (np.diff(model.indptr) > 0).all():
        return ["solution.worst_case must have a row for every pair"]
    sums = np.add.reduceat(model.probabilities, model.indptr[:-1])
    if not (model.probabilities >= 0).all() or not np.abs(sums - 1).max() <= ROUNDING:
        return [f"solution.worst_case must hold probabilities: got sums {sums.tolist()}"]
    return []


def _check_worst_case(row: HostileRow) -> list[str]:
    """A feasible distribution for every row; value, gap and divergence for moderate ones."""
    answer = rm.worst_case(row.ambiguity, row.p, row.v)
    distribution = answer.distribution
    failures = []
    if not math.isfinite(answer.value) or math.isnan(answer.gap):
        failures.append(f"worst_case must be finite: got {answer.value!r} with gap {answer.gap!r}")
    if not (distribution >= 0).all() or not abs(distribution.sum() - 1) <= ROUNDING:
        failures.append(f"worst_case's distribution must be probabilities: got {distribution.tolist()}")
    if failures or not row.is_moderate:
        return failures
    scale = float(np.abs(row.v).max())
    truth = exact.worst_case(row.ambiguity, row.p.tolist(), row.v.tolist())
    error = float(max(truth.lower - mpf(answer.value), mpf(answer.value) - truth.upper))
    if not error <= ACCURACY * scale:
        failures.append(f"worst_case must be {mp.nstr(truth.lower, 20)}: got {answer.value!r}")
    if not -ROUNDING * scale <= answer.gap <= GAP * scale:
        failures.append(f"worst_case's gap must lie in [0, {GAP:g}] * {scale:g}: got {answer.gap!r}")
    if isinstance(row.ambiguity, rm.Constrained):
        radius = row.ambiguity.level
        distance = _distance(row, distribution.tolist())
        if not distance <= radius * (1 + GAP) + row.p.size * np.finfo(float).eps:
            failures.append(f"worst_case's distribution must have D <= {radius!r}: got {distance!r}")
    return failures


def _distance(row: HostileRow, distribution: list[float]) -> float:
    """D(distribution || p) by its definition."""
    with mp.workdps(exact.DIGITS):
        conjugate, scale = normal_form(row.ambiguity.divergence)
        total = mp.fsum(map(mpf, row.p.tolist()))
        p = [mpf(a) / total for a in row.p.tolist()]
        mass = mp.fsum(map(mpf, distribution))
        terms = (a * conjugate.f(mpf(q) / mass / a) for a, q in zip(p, distribution, strict=True))
        return float(mpf(scale) * mp.fsum(terms))


def verify(judge: Callable[[int, int], list[Outcome]], seed: int, count: int, processes: int) -> list[Outcome]:
    """All cases of a stream, in order, over some processes."""
    if processes == 1:
        return [outcome for index in range(count) for outcome in judge(seed, index)]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        judged = pool.map(partial(judge, seed), range(count), chunksize=CHUNK)
        return [outcome for some in judged for outcome in some]


def print_table(title: str, outcomes: Iterable[Outcome], column: str) -> None:
    """Per family or set: cases, worst relative violation, failures, widest relative bound, wide bounds, converged."""
    rows: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        rows[getattr(outcome, column)].append(outcome)
    print(f"\n{title:<44}{'cases':>8}{'violation':>11}{'failed':>8}{'width':>10}{'wide':>6}{'converged':>11}")
    for name, members in sorted(rows.items()) if column == "group" else rows.items():
        violation, width = (max(getattr(one, key) for one in members) for key in ("violation", "width"))
        failed = sum(bool(one.failures) for one in members) or ""
        wide = sum(one.is_wide for one in members) or ""
        converged = sum(one.converged for one in members)
        print(f"{name:<44}{len(members):>8}{violation:>11.1e}{failed:>8}{width:>10.1e}{wide:>6}{converged:>11}")


def main(arguments: list[str] | None = None) -> int:
    """Judge rows and worlds, print the tables, return the number of failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="adversarial rows")
    parser.add_argument("--worlds", type=int, default=10_000, help="early-stopped random worlds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--show", type=int, default=20, help="how many failures to print in full")
    parser.add_argument("--sets", action="store_true", help="also print the rows and worlds by set")
    options = parser.parse_args(arguments)
    failed = []
    for title, judge, count in (("rows", judge_row, options.rows), ("worlds", judge_world, options.worlds)):
        outcomes = verify(judge, options.seed, count, options.processes)
        print_table(f"{count:,} {title}, relative to their size", outcomes, "family")
        if options.sets:
            print_table(f"{title}, by set", outcomes, "group")
        failed += [outcome for outcome in outcomes if outcome.failures]
    for outcome in failed[: options.show]:
        print(f"\n{'; '.join(outcome.failures)}\n{outcome.case}")
    print(f"\n{len(failed)} cases of {options.rows:,} rows and {options.worlds:,} worlds failed")
    return len(failed)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
