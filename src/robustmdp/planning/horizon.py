"""A finite number of steps, backwards, with bounds that are certified step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.models import MDP
from robustmdp.operators import RobustBellman
from robustmdp.operators.policy import PolicyRows, policy_array, policy_rows, rows_of_pairs
from robustmdp.planning.run import NEGLIGIBLE, Callback, Step, as_columns, certified_status, check_tolerance
from robustmdp.result import Adversary, Solution

_EPS = float(np.finfo(float).eps)


class _Stage(NamedTuple):
    """What one step adds: bounds of its values, (S,), Q in the middle of them, (n_pairs,), and the policy."""

    lower: FloatArray
    upper: FloatArray
    q: FloatArray
    policy: npt.NDArray[Any]


def run_backwards(
    bellman: RobustBellman,
    terminal: FloatArray,
    steps: int,
    *,
    tol: float,
    policies: Sequence[PolicyRows] | None = None,
    callback: Callback | None = None,
) -> Solution:
    """v_T = terminal, v_t = T v_{t+1}: lower and upper bounds of each v_t from those of v_{t+1}.

    T is monotone, so bounds of v_{t+1} give bounds of v_t; the policy is greedy at the lower ones.
    """
    check_tolerance(tol)
    stages: list[_Stage] = []
    trace: list[Step] = []
    code = "converged"
    try:
        for stage in _backwards(bellman, terminal, steps, policies):
            stages.append(stage)
            after = stages[-2].lower if len(stages) > 1 else terminal
            residual = float(np.max(np.abs(stage.lower - after)))
            trace.append(Step(len(stages), residual, 0.5 * float(np.max(stage.upper - stage.lower)), bellman.rows))
            if callback is not None and callback(trace[-1]) is True and len(stages) < steps:
                code = "interrupted"
                break
    except KeyboardInterrupt:
        code = "interrupted"
    stages += _unknown_stages(bellman, terminal, stages, steps, policies)
    return _solution(bellman, terminal, stages[::-1], tol, code, trace, policies)


def _backwards(
    bellman: RobustBellman, terminal: FloatArray, steps: int, policies: Sequence[PolicyRows] | None
) -> Iterator[_Stage]:
    lower = upper = terminal
    for step in range(steps - 1, -1, -1):
        policy = None if policies is None else policies[step]
        below = bellman.bracket(lower, policy)
        above = below if upper is lower else bellman.bracket(upper, policy)
        slack = NEGLIGIBLE
        if policy is not None:  # the sum over a state's actions rounds as well
            slack += (bellman.mdp.n_actions + 2) * _EPS * float(np.max(np.abs([below.lower, above.upper])))
        lower, upper = below.lower - slack, above.upper + slack
        yield _Stage(lower, upper, 0.5 * (below.q_lower + above.q_upper), below.policy)


def _unknown_stages(
    bellman: RobustBellman, terminal: FloatArray, known: list[_Stage], steps: int, policies: Sequence[PolicyRows] | None
) -> list[_Stage]:
    """The steps before an early stop: bounds from the range of the rewards, which hold for every policy."""
    mdp = bellman.mdp
    low, high = (known[-1].lower, known[-1].upper) if known else (terminal, terminal)
    bottom, top = float(low.min()), float(high.max())
    end = (0.0,) if mdp.can_end else ()
    least, most = mdp.reward_range
    first = rows_of_pairs(mdp, mdp.state_ptr[:-1])
    stages = []
    for step in range(steps - len(known) - 1, -1, -1):
        bottom, top = (
            least + mdp.discount * min(bottom, *end, bottom),
            most + mdp.discount * max(top, *end, top),
        )
        slack = 8.0 * _EPS * max(abs(bottom), abs(top)) + NEGLIGIBLE
        bottom, top = bottom - slack, top + slack
        policy = bellman.as_policy(first if policies is None else policies[step])
        ones = np.ones(mdp.n_states)
        stages.append(_Stage(bottom * ones, top * ones, np.full(mdp.n_pairs, 0.5 * (bottom + top)), policy))
    return stages


def _solution(
    bellman: RobustBellman,
    terminal: FloatArray,
    stages: list[_Stage],
    tol: float,
    code: str,
    trace: list[Step],
    policies: Sequence[PolicyRows] | None,
) -> Solution:
    mdp = bellman.mdp
    lower = np.array([*(stage.lower for stage in stages), terminal])
    upper = np.array([*(stage.upper for stage in stages), terminal])
    value = 0.5 * (lower + upper)
    bound = 0.5 * float(np.max(upper - lower))
    target = tol * max(1.0, float(np.max(np.abs(value))))
    return Solution(
        value=value,
        q=np.array([mdp.table(stage.q) for stage in stages]),
        policy=np.array([stage.policy for stage in stages]),
        lower=lower,
        upper=upper,
        status=certified_status(code, bound, target, len(trace)),
        steps=len(trace),
        trace=as_columns(trace),
        base=value,
        adversary=StepwiseAdversary([bellman] if policies is None else [bellman.against(one) for one in policies]),
    )


@dataclass(frozen=True, eq=False)
class StepwiseAdversary:
    """Nature's answers to values that depend on the step, (T+1, S); made when asked for.

    `adversaries` has one for each step, or one for all.
    """

    adversaries: Sequence[Adversary]

    @property
    def mdp(self) -> MDP:
        """The model."""
        mdp: MDP = self.adversaries[0].mdp
        return mdp

    def worst_case(self, v: FloatArray) -> StepwiseResponse:
        """At step t nature answers to v[t+1]."""
        return StepwiseResponse(self.adversaries, v)

    def worst_noise(self, v: FloatArray, pair: int, step: int = 0) -> FloatArray:
        """The answer of one step, to the value after it, (S,)."""
        return self.adversaries[step if len(self.adversaries) > 1 else 0].worst_noise(v, pair)


@dataclass(frozen=True, eq=False)
class StepwiseResponse(Sequence[Any]):
    """The same as `Response`, one for each step; one is made when it is asked for, so that long horizons fit."""

    adversaries: Sequence[Adversary]
    v: FloatArray

    def __len__(self) -> int:
        return len(self.v) - 1

    @overload
    def __getitem__(self, step: int) -> Any: ...
    @overload
    def __getitem__(self, step: slice) -> list[Any]: ...
    def __getitem__(self, step: int | slice) -> Any:
        if isinstance(step, slice):
            return [self[t] for t in range(*step.indices(len(self)))]
        t = range(len(self))[step]
        return self.adversaries[t if len(self.adversaries) > 1 else 0].worst_case(self.v[t + 1])

    @property
    def model(self) -> WorstCases:
        """One MDP per step."""
        return WorstCases(self)

    @property
    def penalty(self) -> FloatArray:
        """(T, S, A)"""
        return np.array([answer.penalty for answer in self])

    @property
    def eta(self) -> FloatArray:
        """(T, S, A)"""
        return np.array([answer.eta for answer in self])


class WorstCases(Sequence[MDP]):
    """The worst-case model of each step."""

    def __init__(self, responses: StepwiseResponse) -> None:
        self._responses = responses

    def __len__(self) -> int:
        return len(self._responses)

    @overload
    def __getitem__(self, step: int) -> MDP: ...
    @overload
    def __getitem__(self, step: slice) -> list[MDP]: ...
    def __getitem__(self, step: int | slice) -> MDP | list[MDP]:
        if isinstance(step, slice):
            return [one.model for one in self._responses[step]]
        model: MDP = self._responses[step].model
        return model

    def __repr__(self) -> str:
        return f"worst-case models of {len(self)} steps"


def policies_of_steps(mdp: MDP, policy: npt.ArrayLike, steps: int) -> tuple[list[PolicyRows], npt.NDArray[Any]]:
    """The policy of each step, from (S,), (S, A), (T, S) or (T, S, A), and the array as it was given.

    Where (S, A) and (T, S) are the same shape, whole numbers are actions and other numbers are probabilities.
    """
    given = policy_array(policy)
    n_states, n_actions = mdp.n_states, mdp.n_actions
    is_whole = np.issubdtype(given.dtype, np.integer)
    stationary = given.shape == (n_states,) or (
        given.shape == (n_states, n_actions) and not (given.shape == (steps, n_states) and is_whole)
    )
    if stationary:
        return [policy_rows(mdp, given)] * steps, given
    _checks.must(
        given.shape in ((steps, n_states), (steps, n_states, n_actions)),
        f"policy must have shape (S,) = ({n_states},), (S, A) = ({n_states}, {n_actions}), (T, S) = ({steps}, "
        f"{n_states}) or (T, S, A) = ({steps}, {n_states}, {n_actions}): got {given.shape}",
    )
    return [policy_rows(mdp, one) for one in given], given
