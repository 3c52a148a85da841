"""Algorithm 3 of the paper: value iteration with gradient ascent on each pair's dual variable."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robustmdp import _checks, _core, _types
from robustmdp._arrays import FloatArray
from robustmdp.operators import RobustBellman
from robustmdp.operators.policy import PolicyRows
from robustmdp.planning.run import Progress


@dataclass(frozen=True)
class DualAscent:
    """eta <- Proj(eta + alpha (1 - E f*'((eta - V)/weight))), `inner_steps` times; then Q <- R + discount J(eta).

    Algorithm 3 as printed, for a chi-square or Kullback-Leibler penalty. V is projected onto the value range; eta onto
    the paper's [-2 weight, 2/(1-discount) + 2 weight] for chi-square, and onto [min V + weight, max V + weight] for
    KL, where the paper gives none. KL's gradient is unbounded, so its steps are halved until the dual rises. The bounds
    come from one exact sweep at the end; those of the trace are estimates, from the inexact Q.

    Parameters
    ----------
    steps, inner_steps : int
        The paper's T and T'.
    step : float, optional
        The paper's alpha; None is alpha = weight.
    warm_start : bool
        Keep eta between outer steps, as in the paper's experiments; otherwise start at 0.

    >>> from robustmdp import ChiSquare, Penalized, problems, solve
    >>> answer = solve(problems.two_state(0.5, 0.9), Penalized(ChiSquare(), 1.0), solver=DualAscent())
    >>> abs(answer.value[0] - problems.two_state_value(0.5, 0.9, 1.0)) <= answer.error_bound
    np.True_
    """

    steps: int = 1000
    inner_steps: int = 100
    step: float | None = None
    warm_start: bool = True
    fixed_steps = True

    def __post_init__(self) -> None:
        _types.check_fields(self)
        _checks.positive_integer("steps", self.steps)
        _checks.positive_integer("inner_steps", self.inner_steps)
        if self.step is not None:
            step = _checks.finite_number("step", self.step)
            _checks.must(step > 0, f"step must be positive: got {step:g}")

    @property
    def max_steps(self) -> int:
        """All steps are taken."""
        return self.steps

    def iterate(
        self, bellman: RobustBellman, policy: PolicyRows | None, tol: float, start: FloatArray | None = None
    ) -> Iterator[Progress]:
        """One outer step after the other, from Q = the top of the value range if no start is given."""
        del tol
        mdp, ambiguity = bellman.mdp, bellman.ambiguity
        ascend = ambiguity.divergence.ascent if ambiguity.has_weight else None
        if ascend is None or policy is not None:
            _checks.fail(
                f"DualAscent needs a chi-square or Kullback-Leibler penalty, as Algorithm 3 does: got {ambiguity!r}"
            )
        weight = np.broadcast_to(ambiguity.level, (mdp.n_states, mdp.n_actions))[mdp.states, mdp.actions]
        _checks.must(
            bool(np.all((weight > 0) & np.isfinite(weight))) and mdp.discount > 0,
            "DualAscent needs weights in (0, inf) and a positive discount: solve the limits with PolicyIteration()",
        )
        low, high = mdp.value_range
        eta, q = np.zeros(mdp.n_pairs), np.empty(mdp.n_pairs)
        settings = _core.Ascent(self.inner_steps, self.step or math.nan, self.warm_start, mdp.discount, low, high)
        v = np.append(np.full(mdp.n_states, high) if start is None else start, 0.0)
        while True:
            ascend(bellman.model, settings, weight, v, eta, q)
            bellman.rows += mdp.n_pairs
            swept = np.clip(np.maximum.reduceat(q, mdp.state_ptr[:-1]), low, high)
            yield Progress(v[:-1], swept, mdp.can_end, mdp.discount)
            v = np.append(swept, 0.0)

    def reached(self, progress: Progress, target: float) -> bool:
        """Are the estimated bounds close enough?"""
        return progress.error_bound <= target
