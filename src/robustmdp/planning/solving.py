"""The entry points of planning."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp.ambiguity import Ambiguity
from robustmdp.models import MDP
from robustmdp.operators import RobustBellman
from robustmdp.operators.policy import policy_rows
from robustmdp.planning.criteria import Criterion, Settings
from robustmdp.planning.policy_iteration import PolicyIteration
from robustmdp.planning.run import Callback, Solver, run
from robustmdp.result import Solution


def solve(
    mdp: MDP,
    ambiguity: Ambiguity,
    *,
    criterion: Criterion | None = None,
    solver: Solver | None = None,
    tol: float = 1e-8,
    threads: int | None = None,
    callback: Callback | None = None,
    start: npt.ArrayLike | None = None,
    engine: ModelEngine | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Solution:
    """The policy with the best worst case, v* = T v* (Proposition 3.1), with certified bounds.

    Parameters
    ----------
    mdp : MDP; with an engine also the path of a .safetensors model, or a RowSource
    ambiguity : Nominal, Penalized or Constrained
    criterion : optional
        FiniteHorizon(steps), TotalReward() or AverageReward(); None is the sum with the model's discount.
    solver : optional
        ValueIteration(), PolicyIteration() or DualAscent(); None picks the fastest exact one.
    tol : float
        Converged means error_bound <= tol * max(1, max|value|).
    threads : int, optional
        Cores to use: this argument, or the environment variable ROBUSTMDP_THREADS, or all.
    callback : callable, optional
        Called after each step with (step, residual, error_bound, rows), with an engine also (sweeps, traffic);
        returning True stops the run.
    start : (S,) values to start from, optional
        The nearer to the answer, the fewer steps; such as `value` of a problem nearby. The bounds hold for any start.
    engine : engine.Ray(address) or engine.Serial(shards), optional
        Cut the model into shards, on the nodes of a cluster or here one after the other. Q, penalties and the worst
        case then stay with the shards: `solution.write(path)` writes them.
    checkpoint : path, optional
        With an engine: where values are saved now and then, and from where the same call goes on after it was stopped.

    >>> from robustmdp import KL, Penalized, problems
    >>> answer = solve(problems.chain(), Penalized(KL(), 1.0))
    >>> answer.status.code, bool(answer.error_bound < 1e-7)
    ('converged', True)
    """
    if criterion is not None:
        _check_criterion(criterion)
    if engine is not None:
        return _solve_in_shards(
            mdp, ambiguity, criterion, Settings(tol, threads, callback, start, solver), engine, checkpoint
        )
    _checks.must(
        checkpoint is None, f"checkpoint must come with an engine, such as engine.Serial(): got {checkpoint!r}"
    )
    _types.check_arguments(solve, locals())
    if criterion is not None:
        return criterion.solve(mdp, ambiguity, Settings(tol, threads, callback, start, solver))
    bellman = RobustBellman(mdp, ambiguity, threads=threads)
    return run(
        PolicyIteration() if solver is None else solver,
        bellman,
        tol=tol,
        callback=callback,
        start=start,
        returns_interrupted=True,
    )


class ModelEngine(Protocol):
    """An engine that can solve one model in shards."""

    def solve(self, source: Any, ambiguity: Ambiguity, settings: Settings, checkpoint: Any) -> Solution: ...


def _solve_in_shards(
    source: Any, ambiguity: Ambiguity, criterion: Criterion | None, settings: Settings, engine: Any, checkpoint: Any
) -> Solution:
    if isinstance(engine, type) or not hasattr(engine, "solve"):
        raise TypeError(
            f"engine must be one that solves a model in shards, engine.Ray() or engine.Serial(): got {engine!r}"
        )
    _checks.must(
        criterion is None, f"a model in shards is solved with its discount, without a criterion: got {criterion!r}"
    )
    solution: Solution = engine.solve(source, ambiguity, settings, checkpoint)
    return solution


def evaluate(
    mdp: MDP,
    policy: npt.ArrayLike,
    ambiguity: Ambiguity,
    *,
    criterion: Criterion | None = None,
    tol: float = 1e-8,
    threads: int | None = None,
    callback: Callback | None = None,
    start: npt.ArrayLike | None = None,
) -> Solution:
    """The worst case of a given policy, v = T^pi v (Proposition 3.1), with certified bounds.

    Parameters
    ----------
    mdp : MDP
    policy : (S,) actions or (S, A) probabilities; with FiniteHorizon also (T, S) or (T, S, A), one for each step
    ambiguity : Nominal, Penalized or Constrained
    criterion : optional
        FiniteHorizon(steps), TotalReward() or AverageReward(); None is the sum with the model's discount.
    start : (S,) values to start from, optional

    >>> from robustmdp import Nominal, problems
    >>> evaluate(problems.two_state(0.5, 0.9), [0, 0], Nominal()).value.round(6)  # 1/(1 - 0.45)
    array([1.818182, 0.      ])
    """
    _types.check_arguments(evaluate, locals())
    if criterion is not None:
        _check_criterion(criterion)
        return criterion.evaluate(mdp, policy, ambiguity, Settings(tol, threads, callback, start))
    bellman = RobustBellman(mdp, ambiguity, threads=threads)
    rows = policy_rows(mdp, policy)
    solution = run(
        PolicyIteration(),
        bellman,
        tol=tol,
        policy=rows,
        callback=callback,
        start=start,
        returns_interrupted=True,
    )
    given = np.array(policy)
    return replace(solution, policy=given.astype(np.int64) if given.ndim == 1 else given.astype(np.float64))


def solve_or_raise(
    mdp: MDP,
    ambiguity: Ambiguity,
    *,
    policy: npt.NDArray[Any] | None = None,
    tol: float,
    threads: int | None = None,
    start: npt.ArrayLike | None = None,
) -> Solution:
    """`solve`, or `evaluate` of a policy, for loops over problems: Ctrl-C raises KeyboardInterrupt, which ends them."""
    bellman = RobustBellman(mdp, ambiguity, threads=threads)
    rows = None if policy is None else policy_rows(mdp, policy)
    return run(PolicyIteration(), bellman, tol=tol, policy=rows, start=start)


def _check_criterion(criterion: object) -> None:
    if isinstance(criterion, type) or not hasattr(criterion, "solve"):
        _checks.refuse_type("criterion", "one such as FiniteHorizon(12), TotalReward() or AverageReward()", criterion)
