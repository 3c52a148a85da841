"""Value iteration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from robustmdp import _checks, _types
from robustmdp._arrays import FloatArray
from robustmdp.operators import RobustBellman
from robustmdp.operators.policy import PolicyRows
from robustmdp.planning.run import Progress


@dataclass(frozen=True)
class ValueIteration:
    """v <- Tv from the middle of the value range, until the certified bounds are close enough.

    Parameters
    ----------
    stopping : "span" or "residual"
        "span" stops on the certified bounds, discount/(1-discount) * (max - min)(Tv - v). "residual" is the textbook's
        rule, discount/(1-discount) * max|Tv - v|: it asks for more than the bounds need, and is here to compare with.
    max_steps : int

    >>> from robustmdp import Nominal, problems, solve
    >>> round(float(solve(problems.two_state(0.5, 0.9), Nominal(), solver=ValueIteration()).value[0]), 6)  # 1/(1-0.45)
    1.818182
    """

    stopping: str = "span"
    max_steps: int = 1_000_000
    fixed_steps = False

    def __post_init__(self) -> None:
        _types.check_fields(self)
        if self.stopping not in ("span", "residual"):
            _checks.nearest("stopping", self.stopping, ("span", "residual"))
        _checks.positive_integer("max_steps", self.max_steps)

    def iterate(
        self, bellman: RobustBellman, policy: PolicyRows | None, tol: float, start: FloatArray | None = None
    ) -> Iterator[Progress]:
        """Sweep for ever."""
        del tol
        mdp = bellman.mdp
        v = bellman.constant(0.0 if bellman.can_end else 0.5 * sum(mdp.value_range)) if start is None else start
        while True:
            swept = bellman.apply(v) if policy is None else bellman.apply_policy(policy, v)
            progress = Progress(v, swept, bellman.can_end, mdp.discount)
            yield progress
            # The span does not feel a shift, but rounding does: the middle keeps numbers as small as the values are.
            v = progress.centred() if self.stopping == "span" else swept

    def reached(self, progress: Progress, target: float) -> bool:
        """Is the rule of `stopping` met?"""
        if self.stopping == "span":
            return progress.error_bound <= target
        return progress.residual * progress.discount / (1.0 - progress.discount) <= target
