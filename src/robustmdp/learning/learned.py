"""From tables to a Solution: values, a policy, bounds where the model is known, and words about how the run ended."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray, IntArray
from robustmdp.ambiguity import Ambiguity
from robustmdp.learning.certificates import Certified, CertifiedState
from robustmdp.learning.runs import Run
from robustmdp.learning.sources import ModelSource, Shape
from robustmdp.learning.tables import LearnerState
from robustmdp.operators import RobustBellman
from robustmdp.operators.policy import policy_rows
from robustmdp.planning.run import bounds
from robustmdp.result import Adversary, Solution, Status, error_bound


def solution_of(run: Run, index: int) -> Solution:
    """What one replication learned."""
    shape, state = run.source.shape, run.state
    span = slice(index * shape.n_pairs, (index + 1) * shape.n_pairs)
    q, visits = state.q()[span], state.tables["visits"][span]
    possible = shape.possible_values(*state.extent[index])
    policy: IntArray | FloatArray
    if shape.mixture is None:
        v, policy = _best(q, shape)
    else:
        v = np.add.reduceat(shape.mixture * np.clip(q, *possible), shape.state_ptr[:-1])
        policy = shape.table(shape.mixture, 0.0)
    tried = v[np.maximum.reduceat(visits, shape.state_ptr[:-1]) > 0]
    low, high = possible
    width = max(high - low, abs(low), abs(high))  # the printed algorithms leave the possible range a little
    out_of_range = bool(np.any((tried < low - width) | (tried > high + width)))
    diverged_at = int(state.diverged[index])
    v = np.clip(v, *possible)  # -inf, where nothing was ever tried, becomes the least
    lower, upper = np.broadcast_to(-math.inf, v.shape), np.broadcast_to(math.inf, v.shape)
    adversary: Adversary = _Unknown(shape)
    if isinstance(run.source, ModelSource):
        adversary = bellman = RobustBellman(run.source.mdp, run.learner.ambiguity)
        if diverged_at < 0 and not isinstance(run.learner, Certified):
            lower, upper = _certify(bellman, v, policy)
    if isinstance(state, CertifiedState):
        lower, upper = (bound[index] for bound in state.bounds())
    return Solution(
        value=v,
        q=shape.table(q, -math.inf),
        policy=policy,
        lower=lower,
        upper=upper,
        status=_status(run, diverged_at, out_of_range, error_bound(v, lower, upper)),
        steps=run.done if diverged_at < 0 else diverged_at,
        trace=_trace(run, index, diverged_at),
        base=v,
        adversary=adversary,
        samples=run.samples(index) if diverged_at < 0 else run.learner.samples_after(shape, diverged_at),
        visits=shape.table(visits, 0),
        dual=_LearnedDual(run.learner.ambiguity, shape, state, span),
        confidence=run.learner.confidence if isinstance(run.learner, Certified) else None,
    )


def _best(q: FloatArray, shape: Shape) -> tuple[FloatArray, IntArray]:
    """The largest q of each state and the first action that has it, (n_states,) each."""
    if shape.actions is None:
        table = q.reshape(shape.n_states, shape.n_actions)
        return table.max(axis=1), table.argmax(axis=1)
    starts = shape.state_ptr[:-1]
    top = np.maximum.reduceat(q, starts)
    candidates = np.where(q == np.repeat(top, np.diff(shape.state_ptr)), np.arange(len(q)), len(q) - 1)
    return top, shape.actions[np.minimum.reduceat(candidates, starts)].astype(np.int64)


def _certify(bellman: RobustBellman, v: FloatArray, policy: IntArray | FloatArray) -> tuple[FloatArray, FloatArray]:
    """lower <= value of `policy` <= best value <= upper, from one exact sweep for the policy and one for the best.

    Where the policy is given as (S, A) probabilities, both bounds are of its own value.
    """
    mdp = bellman.mdp
    lower, own_upper, _ = bounds(bellman.bracket(v, policy_rows(mdp, policy)), v, mdp)
    if policy.ndim == 2:
        return lower, own_upper
    return lower, bounds(bellman.bracket(v, None), v, mdp)[1]


def _status(run: Run, diverged_at: int, out_of_range: bool, bound: float) -> Status:
    notes = "".join(f" {note}" for note in run.notes)
    remedy = "use the default learner, or a larger weight"
    if diverged_at >= 0:
        return Status("diverged", f"Q was no longer finite at step {diverged_at}; {remedy}.{notes}")
    sure = f"the certified error is {bound:.3g}" if math.isfinite(bound) else "no model is known to certify it"
    if isinstance(run.learner, Certified):
        sure = "the run ended before anything was certified"
        if isinstance(run.state, CertifiedState) and run.state.is_certifying:
            sure = f"the error is at most {bound:.3g} with {100 * run.learner.confidence:g} % confidence"
    if run.code == "interrupted":
        return Status("interrupted", f"Stopped from outside after {run.done} of {run.steps} steps; {sure}.{notes}")
    if out_of_range:
        return Status("diverged", f"After {run.done} steps Q is far off any possible return; {remedy}.{notes}")
    return Status("step_limit", f"All {run.done} steps were taken and {sure}; more steps bring the error down.{notes}")


def _trace(run: Run, index: int, diverged_at: int) -> dict[str, npt.NDArray[Any]]:
    records = [record for record in run.trace if diverged_at < 0 or record.step < diverged_at]
    return {
        "steps": np.array([record.step for record in records], dtype=np.int64),
        "samples": np.array([record.samples[index] for record in records], dtype=np.int64),
        ("residual" if run.reference is None else "error"): np.array([record.errors[index] for record in records]),
    }


class _Unknown:
    """Stands where a model would: nature's answer cannot be computed from Q alone."""

    def __init__(self, shape: Shape) -> None:
        self.mdp = shape  # for its names

    def worst_case(self, v: FloatArray) -> Any:
        _checks.fail("worst_case needs a model, and this was learned without one: estimate a model and solve it")

    def worst_noise(self, v: FloatArray, pair: int) -> FloatArray:
        return np.asarray(self.worst_case(v))


@dataclass(frozen=True, eq=False)
class _LearnedDual:
    """The learned eta, unscaled and with the paper's affine term; made when asked for, to save its memory."""

    ambiguity: Ambiguity
    shape: Shape
    state: LearnerState
    span: slice

    def __call__(self) -> FloatArray:
        shape = self.shape
        eta = self.state.eta(self.span) / (shape.discount or 1.0)
        if self.ambiguity.has_weight and self.ambiguity.divergence.slope_at_one != 0.0:
            weights = np.broadcast_to(self.ambiguity.level, (shape.n_states, shape.n_actions))
            eta = eta + self.ambiguity.divergence.slope_at_one * shape.pairs(weights)
        return shape.table(eta, math.nan)

    def __reduce__(self) -> tuple[Any, ...]:
        # A solution that travels takes its own eta along, not the tables of all replications.
        return partial, (np.asarray, self())
