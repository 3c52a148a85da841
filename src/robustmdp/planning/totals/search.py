"""The loop: choices from problems with a discount close to 1, bounds from those choices, until the bounds are close.

With a small loss per step no policy profits from staying in a loop, and as the loss vanishes, the best choices become
those of the sum without it. The choices are only proposals: the bounds are proved without a discount.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.operators.pinned import PinnedBellman
from robustmdp.operators.policy import PolicyRows, policy_rows
from robustmdp.planning.run import Callback, Progress, Solver, Step, as_columns, check_tolerance
from robustmdp.planning.totals.bounding import Bounding, Bounds, Choices, find_endless
from robustmdp.planning.totals.guessing import bounds_near_guess
from robustmdp.planning.totals.in_place import SweepsInPlace
from robustmdp.planning.totals.problem import Problem, Rule
from robustmdp.result import Solution, Status, error_bound

_ROUND_STEPS = 60  # of policy iteration, before the bounds are tried in any event
_CLOSER = 0.9  # of the width: another attempt is worth it
_ROUNDING = 1e-13  # of the values: no residual is asked to be smaller


class Loss(NamedTuple):
    """1 - discount of a round, and what a step costs those who must reach the end, in units of the largest reward."""

    discount: float
    step: float


_LOSSES = (Loss(1e-6, 0.0), Loss(1e-8, 0.0), Loss(1e-10, 0.0))
# Where the end must be reached, a loop without payoff must cost more in total than any way to the end.
_LOSSES_TO_THE_END = (Loss(1e-4, 0.0), Loss(1e-8, 1e-4), Loss(1e-10, 1e-6), Loss(1e-12, 1e-7))


class Search:
    """One run: the rounds, what was proved so far, and the trace."""

    def __init__(self, problem: Problem, tol: float, solver: Solver | None, callback: Callback | None) -> None:
        check_tolerance(tol)
        self.problem, self.tol, self.callback = problem, tol, callback
        self.trace: list[Step] = []
        self.best: Bounds | None = None
        self.ceiling = problem.ceiling
        self.v = np.zeros(problem.bellman.mdp.n_states)
        self.start = problem.guess
        self.policy = problem.policy or self._first_policy()
        self.last: Bounding | None = None
        self._target = max(1e-3 * tol, _ROUNDING)
        self._solver = solver if solver is not None else SweepsInPlace(self._target)
        _checks.must(
            solver is None or not solver.fixed_steps,
            f"the solver must be ValueIteration() or PolicyIteration(): got {solver!r}",
        )

    def _first_policy(self) -> PolicyRows:
        mdp = self.problem.bellman.mdp
        usable = self.problem.usable
        first = np.flatnonzero(usable)
        owner = mdp.states[first]
        actions = mdp.actions[mdp.state_ptr[:-1]].astype(np.int64)
        actions[owner[::-1]] = mdp.actions[first[::-1]]
        return policy_rows(mdp, actions)

    def run(self, start: npt.ArrayLike | None) -> Solution:
        """Rounds until the bounds are close enough, a callback stops it, or rounding leaves no more to gain."""
        if start is not None:
            self.start = _checks.numbers("start", start)
            _checks.must(
                self.start.shape == self.policy.state_ptr[1:].shape,
                f"start must have shape (S,): got {self.start.shape}",
            )
            _checks.must(bool(np.isfinite(self.start).all()), "start must be finite everywhere")
            self.v = self.start
        code = "stalled"
        try:
            for stopped in self._attempts():
                if self._is_close():
                    code = "converged" if stopped != "interrupted" else stopped
                    break
                if stopped is not None:
                    code = stopped
                    break
        except KeyboardInterrupt:
            code = "interrupted"
        if code == "stalled" and (self.best is None or not math.isfinite(self.best.width)):
            self._refuse()
        return self._solution(code)

    def _attempts(self) -> Iterator[str | None]:
        """Improve the bounds step by step; yields why the run was stopped, if it was."""
        problem = self.problem
        if problem.steps is not None and problem.bellman.works_in_place:
            self.v, self.policy, residual, self.best = bounds_near_guess(problem, problem.steps, self.tol)
            if self.best is not None:
                self.start = self.v
            yield self._record(residual, problem.bellman.rows)
        for loss in _LOSSES if problem.idle_is_zero else _LOSSES_TO_THE_END:
            stopped = self._round(loss)
            self._bound()
            yield stopped
        yield from self._improve()

    def _improve(self) -> Iterator[str | None]:
        """Choices at the bounds themselves, as long as that brings them closer."""
        bellman, before = self.problem.bellman, math.inf
        while self.best is not None and math.isfinite(self.best.width) and self.best.width <= _CLOSER * before:
            before = self.best.width
            lower, upper = self.best.lower, self.best.upper
            residual = float(np.max(np.abs(bellman.apply(lower) - lower)))
            policy = self.problem.policy or bellman.chosen()
            answer = bellman.worst_case(lower if self.problem.nature_helps else upper)
            self.last = Bounding(self.problem, Choices(policy, answer, lower))
            self._bound(thorough=True)
            yield self._record(residual, bellman.rows)

    def _record(self, residual: float, rows: int) -> str | None:
        """Add a step to the trace; why the run is to be stopped, if it is."""
        step = Step(len(self.trace) + 1, residual, self._width(), rows)
        self.trace.append(step)
        if self.callback is not None and self.callback(step) is True:
            return "interrupted"
        return "step_limit" if len(self.trace) >= self._solver.max_steps else None

    def _round(self, loss: Loss) -> str | None:
        """The choices at one discount; why the run was stopped, if it was."""
        bellman = self._with_loss(loss)
        progress: Progress | None = None
        for count, progress in enumerate(self._iterates(bellman, self.start)):
            stopped = self._record(progress.residual, self.problem.bellman.rows + bellman.rows)
            scale = max(1.0, float(np.max(np.abs(progress.swept))))
            if stopped or progress.residual <= self._target * scale or count >= _ROUND_STEPS:
                break
        assert progress is not None
        policy = self.problem.policy or progress.policy or policy_rows(bellman.mdp, bellman.greedy(progress.v))
        answer = bellman.worst_case(progress.v, onto=self.problem.bellman.mdp)
        answer = answer._replace(penalty=answer.penalty / bellman.mdp.discount)  # bounds have no discount
        self.last = Bounding(self.problem, Choices(policy, answer, progress.swept.copy()))
        self.problem.bellman.rows += bellman.rows
        self.v, self.policy = self.last.choices.v, policy
        self.start = self.v
        return stopped

    def _with_loss(self, loss: Loss) -> PinnedBellman:
        bellman = self.problem.bellman
        mdp = bellman.mdp.with_discount(1.0 - loss.discount)
        if loss.step:
            low, high = mdp.reward_range
            size = loss.step * (max(-low, high) or 1.0)
            # Whose bound is proved by progress must make it.
            mdp = mdp.with_rewards(mdp.rewards + (-size if self.problem.lower_rule is Rule.PROGRESS else size))
        return bellman.with_model(mdp)

    def _iterates(self, bellman: PinnedBellman, start: FloatArray | None) -> Iterator[Progress]:
        tol = max(self.tol, 1e-3 * _ROUNDING / (1.0 - bellman.mdp.discount))
        for progress in self._solver.iterate(bellman, self.problem.policy, tol, start):
            if not math.isfinite(progress.residual):
                break
            yield progress

    def _bound(self, *, thorough: bool = False) -> None:
        assert self.last is not None
        found = self.last.bounds(self.tol, thorough=thorough)
        if found is None:
            return
        self.ceiling = np.minimum(self.ceiling, found.upper)
        lower = found.lower
        if self.best is not None and self.best.width < found.width:
            found = self.best
            lower = found.lower
        self.best = Bounds(found.policy, lower, np.maximum(self.ceiling, lower))

    def _width(self) -> float:
        return math.inf if self.best is None else self.best.width

    def _is_close(self) -> bool:
        if self.best is None or not math.isfinite(self.best.width):
            return False
        value = 0.5 * (self.best.lower + self.best.upper)
        return self.best.width <= self.tol * max(1.0, float(np.max(np.abs(value))))

    def _refuse(self) -> None:
        """Say which state has no finite value, or none that can be proved."""
        assert self.last is not None
        mdp, purpose = self.problem.bellman.mdp, self.problem.purpose
        endless = find_endless(self.last.chain, self.problem.bellman.pinned | self.last.idle)
        if endless is None:
            times = self.last.times()
            state = int(np.argmax(np.abs(self.v) if times is None else times))
            _checks.fail(
                f"the {purpose} must be finite everywhere: from {mdp.state_name(state)} no bound was found, since "
                "the end may never be reached or takes too many steps"
            )
        state, has_payoff = endless
        rises = self.v[state] > 0  # with a small loss per step, values are the mean payoff many times over
        how = ("grows without limit" if rises else "falls without limit") if has_payoff else "is not defined"
        _checks.fail(
            f"the {purpose} must be finite everywhere: from {mdp.state_name(state)} the end may never be reached, "
            f"and the sum {how}"
        )

    def _solution(self, code: str) -> Solution:
        problem, bellman = self.problem, self.problem.bellman
        mdp = bellman.mdp
        if self.best is None:
            pins = np.where(bellman.pinned, bellman.values, 0.0)
            lower = np.where(bellman.pinned, pins, problem.floor)
            self.best = Bounds(self.policy, lower, np.where(bellman.pinned, pins, self.ceiling))
        _, lower, upper = self.best
        with np.errstate(invalid="ignore"):
            value = 0.5 * (lower + upper)
        value = np.where(np.isfinite(value), value, np.clip(self.v, lower, upper))
        bound = error_bound(value, lower, upper)
        target = self.tol * max(1.0, float(np.max(np.abs(value))))
        bracket = bellman.bracket(value, problem.policy)
        return Solution(
            value=value,
            q=mdp.table(0.5 * (bracket.q_lower + bracket.q_upper)),
            policy=self.best.policy.actions(mdp),
            lower=lower,
            upper=upper,
            status=Status.of(code, bound=bound, target=target, steps=len(self.trace)),
            steps=len(self.trace),
            trace=as_columns(self.trace),
            base=value,
            adversary=bellman,
        )
