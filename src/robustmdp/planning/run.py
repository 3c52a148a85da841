"""The one loop: a solver proposes iterates, this records, stops and certifies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.models import MDP
from robustmdp.operators import RobustBellman
from robustmdp.operators.bellman import Bracket
from robustmdp.operators.policy import PolicyRows
from robustmdp.result import Solution, Status

NEGLIGIBLE = 1e-140  # outcomes closer than this are taken as equal: the squares of their differences are not numbers
_WIDEN = 1e-15  # shifting by a multiple of the discount rounds once more


class Step(NamedTuple):
    """What a callback sees after each step; returning True stops the run."""

    step: int
    residual: float
    error_bound: float
    rows: int


Callback = Callable[[Step], Any]


@dataclass
class Progress:
    """An iterate v with its sweep Tv: the residual and the bound that follow from them."""

    v: FloatArray
    swept: FloatArray
    can_end: bool
    discount: float
    policy: PolicyRows | None = None
    low: float = field(init=False)
    high: float = field(init=False)

    def __post_init__(self) -> None:
        difference = self.swept - self.v
        self.low, self.high = float(difference.min()), float(difference.max())
        if self.can_end:  # the end state's own difference is 0
            self.low, self.high = min(self.low, 0.0), max(self.high, 0.0)

    @property
    def residual(self) -> float:
        """Max |Tv - v|."""
        return max(abs(self.low), abs(self.high))

    @property
    def error_bound(self) -> float:
        """Half the distance of the bounds Tv + discount/(1-discount) [min, max](Tv - v)."""
        return 0.5 * (self.high - self.low) * self.discount / (1.0 - self.discount)

    def centred(self) -> FloatArray:
        """A sweep and the usual span correction; none where the end's value is fixed, for a shift would unsettle it."""
        if self.can_end:
            return self.swept
        return self.swept + 0.5 * (self.low + self.high) * self.discount / (1.0 - self.discount)


class Solver(Protocol):
    """A solver is a frozen record of settings; `iterate` yields progress for ever, one item per step."""

    @property
    def max_steps(self) -> int:
        """After how many steps to give up."""

    @property
    def fixed_steps(self) -> bool:
        """Are all steps taken, whatever they reach?"""

    def iterate(
        self, bellman: RobustBellman, policy: PolicyRows | None, tol: float, start: FloatArray | None = None
    ) -> Iterator[Progress]:
        """From `start`, (S,), where it is given."""

    def reached(self, progress: Progress, target: float) -> bool: ...


def run(
    solver: Solver,
    bellman: RobustBellman,
    *,
    tol: float,
    policy: PolicyRows | None = None,
    callback: Callback | None = None,
    start: npt.ArrayLike | None = None,
    returns_interrupted: bool = False,
) -> Solution:
    """Step until the certified bound is within tol * max(1, max|value|), the steps run out, or the callback stops it.

    Ctrl-C raises KeyboardInterrupt, so that loops over problems end with it; `returns_interrupted` is for what users
    call, and gives them the best iterate so far.
    """
    check_discounted(bellman.mdp)
    check_tolerance(tol)
    trace: list[Step] = []
    given = check_start(start, bellman.mdp)
    iterates = solver.iterate(bellman, policy, tol, None if given is None else bellman.place(given))
    progress, code = _loop(solver, iterates, bellman, tol, callback, trace, returns_interrupted)
    base = progress.swept if progress else bellman.constant(0.0)
    return certify(bellman, base, policy, code, tol, trace)


def check_discounted(mdp: MDP) -> None:
    """Refuse what only a criterion without a discount can answer."""
    _checks.must(
        mdp.discount < 1.0,
        "a discounted problem must have a discount below 1: got 1",
        argument="criterion",
        advice="; lower it, or give a criterion: FiniteHorizon(steps), TotalReward() or AverageReward()",
    )


def check_tolerance(tol: float) -> None:
    """Refuse what no error can fall below."""
    _checks.must(tol > 0 and math.isfinite(tol), f"tol must be a positive number: got {tol!r}")


def check_start(given: npt.ArrayLike | None, mdp: MDP) -> FloatArray | None:
    """The values to start from, if there are any."""
    if given is None:
        return None
    start = _checks.numbers("start", given)
    _checks.must(start.shape == (mdp.n_states,), f"start must have shape ({mdp.n_states},): got {start.shape}")
    _checks.must(bool(np.isfinite(start).all()), "start must be finite everywhere")
    return start


def _loop(
    solver: Solver,
    iterates: Iterator[Progress],
    bellman: RobustBellman,
    tol: float,
    callback: Callback | None,
    trace: list[Step],
    returns_interrupted: bool,
) -> tuple[Progress | None, str]:
    progress: Progress | None = None
    stall = Stall()
    try:
        for proposal in iterates:
            if not math.isfinite(proposal.residual):
                return progress, "diverged"
            progress = proposal
            step = Step(len(trace) + 1, progress.residual, progress.error_bound, bellman.rows)
            trace.append(step)
            target = tol * max(1.0, float(abs(progress.swept).max()))
            # Half of the target is left for what certification adds: rounding and the duality gap.
            if not solver.fixed_steps and solver.reached(progress, 0.5 * target):
                return progress, "converged"
            if callback is not None and callback(step) is True:
                return progress, "interrupted"
            if not solver.fixed_steps and stall.seen(progress):
                return progress, "stalled"
            if len(trace) >= solver.max_steps:
                return progress, "step_limit"
    except KeyboardInterrupt:
        if not returns_interrupted:
            raise
        return progress, "interrupted"
    return progress, "step_limit"


class Stall:
    """Rounding has taken over when the residual is within a few ulp of the values and stops falling."""

    def __init__(self) -> None:
        self._best, self._idle = math.inf, 0

    def seen(self, progress: Progress) -> bool:
        floor = 256.0 * np.finfo(float).eps * max(1e-300, float(abs(progress.swept).max()))
        self._idle = 0 if progress.residual < 0.9 * self._best else self._idle + 1
        self._best = min(self._best, progress.residual)
        return bool(progress.residual <= floor and self._idle >= 5)


def bounds(bracket: Bracket, v: FloatArray, mdp: MDP) -> tuple[FloatArray, FloatArray, float]:
    """Tv + discount/(1-discount) [min, max](Tv - v), widened by rounding, and the middle of the two shifts."""
    below = Progress(v, bracket.lower, mdp.can_end, mdp.discount)
    above = Progress(v, bracket.upper, mdp.can_end, mdp.discount)
    factor = mdp.discount / (1.0 - mdp.discount)
    shift_low, shift_high = factor * below.low, factor * above.high
    slack = _WIDEN * (abs(shift_low) + abs(shift_high) + float(abs(bracket.upper).max()))
    slack += NEGLIGIBLE / (1.0 - mdp.discount)
    return bracket.lower + shift_low - slack, bracket.upper + shift_high + slack, 0.5 * (shift_low + shift_high)


def certify(
    bellman: RobustBellman, v: FloatArray, policy: PolicyRows | None, code: str, tol: float, trace: list[Step]
) -> Solution:
    """One exact sweep at v: bounds from dual values below and primal values above, then the status they allow."""
    mdp = bellman.mdp
    bracket = bellman.bracket(v, policy)
    lower, upper, shift = bounds(bracket, v, mdp)
    lower, upper = bellman.collect(lower), bellman.collect(upper)
    bound = float((upper - lower).max()) / 2.0
    value = 0.5 * (lower + upper)
    target = tol * max(1.0, float(abs(value).max()))
    return Solution(
        value=value,
        q=bellman.q_table(bracket, shift),
        policy=bracket.policy,
        lower=lower,
        upper=upper,
        status=certified_status(code, bound, target, len(trace)),
        steps=len(trace),
        trace=as_columns(trace),
        base=bellman.collect(v),
        adversary=bellman.against(policy),
    )


def certified_status(code: str, bound: float, target: float, steps: int) -> Status:
    """The status of a run that ended with this code, once its bound is certified."""
    if not math.isfinite(bound):
        code = "diverged"
    elif bound <= target and code != "interrupted":  # an interrupt must not be ignored
        code = "converged"
    elif code == "converged":  # the sweeps had converged: what is missing is rounding
        code = "stalled"
    return Status.of(code, bound=bound, target=target, steps=steps)


def as_columns(trace: list[Step]) -> dict[str, npt.NDArray[Any]]:
    """The steps as equally long arrays."""
    columns = zip(*trace, strict=True) if trace else ([], [], [], [])
    return dict(zip(("steps", "residual", "error_bound", "rows"), map(np.array, columns), strict=True))
