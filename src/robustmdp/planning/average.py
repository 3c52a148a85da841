"""The average reward per step in the long run, certified without a discount.

T is the undiscounted operator. It is monotone and T(v + c) = Tv + c, so that T^n v >= v + n min(Tv - v), and likewise
from above: for every v, min(Tv - v) <= gain <= max(Tv - v), whatever the players do later (Odoni 1969).

Good v come from problems with a small loss per step, v = T_loss v, where Tv - v lies between loss * min v and
loss * max v. As the loss vanishes, loss * v(s) tends to the gain from s, and v, up to a constant, to the bias if the
gain does not depend on s.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.models import MDP
from robustmdp.operators import RobustBellman
from robustmdp.operators.bellman import Bracket
from robustmdp.operators.policy import PolicyRows
from robustmdp.planning.policy_iteration import PolicyIteration
from robustmdp.planning.run import (
    NEGLIGIBLE,
    Callback,
    Progress,
    Solver,
    Stall,
    Step,
    as_columns,
    certified_status,
    check_start,
    check_tolerance,
)
from robustmdp.planning.value_iteration import ValueIteration
from robustmdp.result import Solution, Status

_EPS = float(np.finfo(float).eps)
_FIRST_LOSS = 1e-6  # values of problems with more are a bad start for those with less, where values propagate slowly
_LAST_LOSS = 1e-14
_LEAST_FALL = 0.1  # of the loss from round to round
_MOST_FALL = 1e-4  # values grow by its inverse until the gain is known better
_DAMPING = 0.9  # v + 0.9 (Tv - v): a cycle of two states contracts by 0.8
_FIRST_LOOK = 4096  # damped sweeps before the first doubling that must narrow the bounds
_NARROWS = 0.9
_VANISHES = 0.5  # differences that fall to this share, while the loss falls to a tenth or less, may vanish


@dataclass(frozen=True)
class _Iterate:
    """v and its sweep in the problem with rewards less `shift` and a loss of `loss` per step."""

    progress: Progress
    loss: float
    shift: float

    @property
    def bounds(self) -> tuple[float, float]:
        """Of Tv - v, the end's 0 included, but for rounding and the inner problems' gaps."""
        progress = self.progress
        low, high = float(progress.v.min()), float(progress.v.max())
        if progress.can_end:
            low, high = min(low, 0.0), max(high, 0.0)
        slack = 4.0 * _EPS * max(-low, high)
        return (
            self.shift + progress.low + self.loss * low - slack,
            self.shift + progress.high + self.loss * high + slack,
        )

    def gains(self) -> FloatArray:
        """What they seem to be, from each state and, if there is one, from the end, behind the last state."""
        found = self.shift + (self.progress.swept - self.progress.v) + self.loss * self.progress.v
        return np.append(found, 0.0) if self.progress.can_end else found


class _Proof(NamedTuple):
    """min and max of Tv - v, certified, and where they come from."""

    v: FloatArray
    bracket: Bracket
    lower: float
    upper: float


class AverageSearch:
    """One run: iterates, those with the narrowest bounds, and the trace."""

    def __init__(
        self,
        bellman: RobustBellman,
        policy: PolicyRows | None,
        *,
        tol: float,
        solver: Solver | None,
        callback: Callback | None,
    ) -> None:
        check_tolerance(tol)
        self.solver = solver if solver is not None else PolicyIteration()
        _checks.must(
            not self.solver.fixed_steps,
            f"the solver must be ValueIteration() or PolicyIteration(): got {solver!r}",
        )
        self.bellman, self.policy, self.tol, self.callback = bellman, policy, tol, callback
        self.trace: list[Step] = []
        self._v = np.zeros(bellman.mdp.n_states)
        self._width = math.inf
        self._proof: _Proof | None = None
        self._ends: list[_Iterate] = []  # of the rounds, or of the doublings

    def run(self, start: npt.ArrayLike | None) -> Solution:
        """Until the bounds are close enough, a callback stops it, or no more is gained."""
        given = check_start(start, self.bellman.mdp)
        if given is not None:
            self._v = given
        try:
            code = self._damped() if isinstance(self.solver, ValueIteration) else self._rounds(given)
        except KeyboardInterrupt:
            code = "interrupted"
        return self._solution(code)

    def _damped(self) -> str:
        """Sweeps v + damping (Tv - v), which converge in periodic chains, too (Schweitzer 1971)."""
        v, look = self._v, max(_FIRST_LOOK, 4 * len(self._v))
        while True:
            swept = self.bellman.apply(v) if self.policy is None else self.bellman.apply_policy(self.policy, v)
            progress = Progress(v, swept, self.bellman.can_end, 1.0)
            iterate = _Iterate(progress, 0.0, 0.0)
            code = self._record(iterate, self.bellman.rows)
            if code is not None:
                return code
            if len(self.trace) == look:
                self._ends.append(iterate)
                if len(self._ends) > 1 and _width(iterate) > _NARROWS * _width(self._ends[-2]):
                    return "stalled"
                look *= 2
            middle = 0.0 if progress.can_end else 0.5 * (progress.low + progress.high)
            v = v + _DAMPING * (swept - v - middle)

    def _rounds(self, start: FloatArray | None) -> str:
        """Problems with less and less loss, each from the values of the one before."""
        shift, loss = 0.0, _FIRST_LOSS
        while True:
            end: _Iterate | None = None
            for end in self._round(start, shift, loss):
                code = self._record(end, self.bellman.rows)
                if code is not None:
                    return code
            if end is None:
                return "diverged"
            if self._ends and self._ends[-1].loss == loss:  # again, with a better shift
                before, self._ends[-1] = self._ends[-1], end
                if _width(end) > 0.5 * _width(before):
                    return "stalled"
            else:
                self._ends.append(end)
            low, high = end.bounds
            start = end.progress.swept
            if not self.bellman.can_end:  # rewards less the gain: values stay as small as the bias
                shift = 0.5 * (low + high)
                start = start - 0.5 * float(start.min() + start.max())
            wanted = 0.2 * self._target(low, high) / (high - low) * loss if high > low else 0.0
            loss = max(min(wanted, _LEAST_FALL * loss), _MOST_FALL * loss)
            loss = loss if loss > 2.0 * _LAST_LOSS else _LAST_LOSS

    def _round(self, start: FloatArray | None, shift: float, loss: float) -> Iterator[_Iterate]:
        """Until the residual is small against the loss, or against the target."""
        mdp = self.bellman.mdp.with_discount(1.0 - loss).with_rewards(self.bellman.mdp.rewards - shift)
        lossy = RobustBellman(mdp, self.bellman.ambiguity, threads=self.bellman.threads)
        lossy.inherit(self.bellman)
        stall, before = Stall(), self.bellman.rows
        for progress in self.solver.iterate(lossy, self.policy, self._value_tolerance(lossy, start), start):
            if not math.isfinite(progress.residual):
                return
            self.bellman.rows = before + lossy.rows
            iterate = _Iterate(progress, loss, shift)
            yield iterate
            target = 0.02 * self._target(*iterate.bounds)
            if progress.high - progress.low <= max(0.05 * _width(iterate), target) or stall.seen(progress):
                break
        self.bellman.inherit(lossy)

    def _value_tolerance(self, lossy: RobustBellman, start: FloatArray | None) -> float:
        """Relative to values: no chain needs to be solved closer."""
        least, most = lossy.mdp.reward_range
        loss = 1.0 - lossy.mdp.discount
        size = max(-least, most) / loss if start is None else float(np.abs(start).max())
        return 0.05 * self.tol / (loss * max(1.0, size))

    def _record(self, iterate: _Iterate, rows: int) -> str | None:
        """Keep what is best; why to stop, if there is a reason."""
        low, high = iterate.bounds
        width = high - low
        if not math.isfinite(width):
            return "diverged"
        if width < self._width:
            self._v, self._width = iterate.progress.v.copy(), width
        progress = iterate.progress
        self.trace.append(Step(len(self.trace) + 1, 0.5 * (progress.high - progress.low), 0.5 * width, rows))
        if width <= self._target(low, high) and self._is_close(self._prove()):
            return "converged"
        if self.callback is not None and self.callback(self.trace[-1]) is True:
            return "interrupted"
        return "step_limit" if len(self.trace) >= self.solver.max_steps else None

    def _target(self, low: float, high: float) -> float:
        return self.tol * max(1.0, 0.5 * abs(low + high))

    def _is_close(self, proof: _Proof) -> bool:
        return 0.5 * (proof.upper - proof.lower) <= self._target(proof.lower, proof.upper)

    def _prove(self) -> _Proof:
        """One exact sweep at the best v: min and max of Tv - v from dual and primal values, widened by rounding."""
        if self._proof is not None and self._proof.v is self._v:
            return self._proof
        mdp, v = self.bellman.mdp, self._v
        bracket = self.bellman.bracket(v, self.policy)
        low, high = float(np.min(bracket.lower - v)), float(np.max(bracket.upper - v))
        slack = NEGLIGIBLE + 2.0 * _EPS * max(abs(low), abs(high))
        if self.policy is not None:  # the sum over a state's actions rounds as well
            slack += (mdp.n_actions + 2) * _EPS * float(np.max(np.abs([bracket.lower, bracket.upper])))
        low, high = low - slack, high + slack
        if self.bellman.can_end:
            low, high = min(low, 0.0), max(high, 0.0)
        self._proof = _Proof(v, bracket, low, high)
        return self._proof

    def _solution(self, code: str) -> Solution:
        mdp, proof, steps = self.bellman.mdp, self._prove(), len(self.trace)
        gain = 0.5 * (proof.lower + proof.upper)
        bound, target = 0.5 * (proof.upper - proof.lower), self._target(proof.lower, proof.upper)
        status = certified_status(code, bound, target, steps)
        if status.code == "stalled" and self._seems_to_depend_on_the_start():
            status = Status(status.code, _sentence(mdp, min(self._ends, key=_width).gains()))
        level = 0.0 if self.bellman.can_end else float(proof.v[0])
        bias = proof.v - level
        return Solution(
            value=bias,
            q=mdp.table(0.5 * (proof.bracket.q_lower + proof.bracket.q_upper) - (gain + level)),
            policy=proof.bracket.policy,
            lower=np.full(mdp.n_states, np.nan),
            upper=np.full(mdp.n_states, np.nan),
            status=status,
            steps=steps,
            trace=as_columns(self.trace),
            base=bias,
            adversary=self.bellman.against(self.policy),
            gain=np.full(mdp.n_states, gain),
            gain_lower=np.full(mdp.n_states, proof.lower),
            gain_upper=np.full(mdp.n_states, proof.upper),
        )

    def _seems_to_depend_on_the_start(self) -> bool:
        """Do the gains of some states keep their distance?"""
        if len(self._ends) < 2:
            return False
        before, after = (float(np.ptp(end.gains())) for end in self._ends[-2:])
        return after > _VANISHES * before


def _width(iterate: _Iterate) -> float:
    low, high = iterate.bounds
    return high - low


def _sentence(mdp: MDP, gains: FloatArray) -> str:
    """Two states whose gains differ most, and those, with as many digits as tell them apart."""
    digits = 4 - math.floor(math.log10(np.ptp(gains)))

    def place(s: np.intp) -> str:
        name = mdp.state_name(int(s)) if s < mdp.n_states else "the end"
        return f"{round(float(gains[s]), digits) + 0.0:.12g} from {name}"

    return (
        "The gain seems to depend on the start, so that bounds for all states at once do not meet: it is about "
        f"{place(np.argmin(gains))} and {place(np.argmax(gains))}; take a part of the world in which all states have "
        "the same gain, or a discount."
    )
