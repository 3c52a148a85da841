"""A family of problems that differ in their level alone, each solved from the ones before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from robustmdp.ambiguity import Ambiguity
from robustmdp.models import MDP
from robustmdp.operators import RobustBellman
from robustmdp.planning.policy_iteration import PolicyIteration, Work
from robustmdp.planning.run import Progress, Step, certify, run
from robustmdp.result import Solution

FloatArray = npt.NDArray[np.float64]

_ROUNDS = 4  # joint steps before policy iteration takes over
_POINTS = 3  # earlier solutions through which the next one is extrapolated


def solve_along(
    mdp: MDP, family: Iterable[tuple[float, Ambiguity]], *, tol: float = 1e-8, threads: int | None = None
) -> Iterator[Solution]:
    """The solution of each (place, ambiguity), one after the other, with certified bounds.

    Values move smoothly with the place (the logarithm of a level, say) but where the policy changes, so each problem
    starts at the extrapolation of the last solutions and mostly needs one joint step.

    >>> from robustmdp import KL, Penalized, problems
    >>> family = [(w, Penalized(KL(), w)) for w in (3.0, 2.0, 1.0)]
    >>> [solution.status.code for solution in solve_along(problems.chain(), family)]
    ['converged', 'converged', 'converged']
    """
    known: list[tuple[float, FloatArray]] = []
    last: RobustBellman | None = None
    for place, ambiguity in family:
        bellman = RobustBellman(mdp, ambiguity, threads=threads)
        if last is None:
            solution = run(PolicyIteration(), bellman, tol=tol)
        else:
            if type(ambiguity) is type(last.ambiguity) and ambiguity.divergence == last.ambiguity.divergence:
                bellman.inherit(last)
            solution = _follow(bellman, extrapolated(place, known), tol)
        known = [*known[1 - _POINTS :], (place, solution.value)]
        last = bellman
        yield solution


def extrapolated(place: float, known: Sequence[tuple[float, FloatArray]]) -> FloatArray:
    """The polynomial through the known (place, values), at another place; places that repeat count once.

    >>> extrapolated(3.0, [(0.0, np.array([0.0])), (1.0, np.array([1.0])), (2.0, np.array([4.0]))])
    array([9.])
    """
    points = list(dict(known).items())
    total = np.zeros_like(points[0][1])
    for x, values in points:
        total += values * np.prod([(place - other) / (x - other) for other, _ in points if other != x])
    return total


def _follow(bellman: RobustBellman, start: FloatArray, tol: float) -> Solution:
    """Joint steps with an early look at the certified bounds; policy iteration where these do not suffice."""
    if not np.isfinite(start).all():
        return run(PolicyIteration(), bellman, tol=tol)
    work = Work(bellman, None, tol)
    progress = work.sweep(start)
    trace = [_step(1, progress, bellman)]
    for number in range(_ROUNDS):
        v = work.joint_values(progress)
        target = tol * max(1.0, float(np.abs(v).max()))
        if not bellman.closed:
            progress = work.sweep(v)
            trace.append(_step(number + 2, progress, bellman))
        # Where bounds cost more than a sweep, the sweep tells first whether they will hold.
        if bellman.closed or progress.error_bound <= 0.5 * target:
            solution = certify(bellman, v, None, "converged", tol, trace)
            if solution.converged:
                return solution
        if bellman.closed:
            progress = work.sweep(v)
            trace.append(_step(number + 2, progress, bellman))
    return run(PolicyIteration(), bellman, tol=tol, start=v)


def _step(number: int, progress: Progress, bellman: RobustBellman) -> Step:
    return Step(number, progress.residual, progress.error_bound, bellman.rows)
