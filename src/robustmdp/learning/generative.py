"""Learning from a simulator that answers for any pair: Algorithm 1, and better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from robustmdp import _checks
from robustmdp._arrays import IntArray
from robustmdp.ambiguity import Ambiguity
from robustmdp.learning.levels import check_q_learning
from robustmdp.learning.runnable import Runnable
from robustmdp.learning.schedules import (
    DualPolynomial,
    RescaledLinear,
    RescaledPolynomial,
    Schedule,
    WeightOverRoot,
)
from robustmdp.learning.sources import Shape, Source
from robustmdp.learning.states import DefaultState, PrintedGenerativeState
from robustmdp.learning.tables import LearnerState

InnerSteps = int | Callable[[int], int] | tuple[tuple[int, ...], ...]


def _check_inner_steps(given: Any) -> InnerSteps:
    """A whole number, a function of the outer iteration, or an (S, A) array, which becomes tuples."""
    if callable(given) and not isinstance(given, type):
        return given  # type: ignore[no-any-return]
    table = _checks.array("inner_steps", given)
    if table.ndim == 0:
        return 0 if isinstance(given, int) and given == 0 else _checks.positive_integer("inner_steps", given)
    is_table = table.ndim == 2 and table.dtype.kind in "iu"
    wanted = "a whole number, a function or an (S, A) array of whole numbers"
    _checks.must(is_table, f"inner_steps must be {wanted}: got {_checks.show(given)}")
    return tuple(tuple(row) for row in table.tolist())


@dataclass(frozen=True)
class GenerativeQLearning(Runnable):
    """Q(s,a) <- (1-beta) Q(s,a) + beta (r + discount J(eta(s,a), V; s')), round after round over all pairs.

    The default is our best: each round takes one sample per pair, which moves Q and eta together; steps shrink with
    visits; the result is the average of Q (Polyak and Ruppert) after a burn-in. The greedy action and nature's tilt
    are chosen at the averages, values flow through the current Q: see `core/learning/follow.hpp`. Memory is 40 bytes a
    pair. `paper` gives Algorithm 1 as printed.

    With a radius instead of a weight, the weight is learned along with eta by ascent on the paper's (2). Its gradient
    is unbounded, which is why the paper turns to a penalty (section 3): no theorem covers it. Here the step is tamed
    and the weight projected onto [1e-6, 1/radius] times the spread of values, so it stays finite.

    Parameters
    ----------
    ambiguity : Nominal, Penalized or Constrained
    q_steps, eta_steps : schedules of beta and alpha
    burn_in : float in [0, 1)
        The part of the run that is left out of the average.
    inner_steps : int, function of the outer iteration, or (S, A) ints
        The paper's T': samples for eta alone before each one for Q, with V frozen, and without `initial`; such as
        `schedules.Growing()`. 0: one sample for both.
    warm_start : bool
        With inner steps: keep eta between rounds; otherwise it starts at 0 in each.
    noisy_rewards : bool
        Are rewards noise around R(s,a), which nature cannot touch (the paper's r_t)? By default a reward belongs to
        its outcome, as r(s,a,s') does in `solve`: nature can then make a low reward more likely. `paper` learns from
        any world but an MDP with noisy rewards, as printed.
    initial : float, optional
        Q of what was not yet visited; by default 0, or the nearest possible value.
    averaging : bool
        With inner steps: average Q_t after the burn-in (Polyak and Ruppert); otherwise the result is the last Q_t.

    >>> from robustmdp import ChiSquare, Penalized, problems, solve
    >>> world, doubt = problems.chain(), Penalized(ChiSquare(), 1.0)
    >>> learned = GenerativeQLearning(doubt).run(world, samples=200_000, seed=0)
    >>> bool(abs(learned.q - solve(world, doubt).q).max() < 0.2)
    True
    """

    ambiguity: Ambiguity
    q_steps: Schedule = RescaledPolynomial()
    eta_steps: Schedule = DualPolynomial()
    burn_in: float = 0.05
    inner_steps: InnerSteps = 0
    warm_start: bool = True
    noisy_rewards: bool = False
    initial: float | None = None
    averaging: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "inner_steps", _check_inner_steps(self.inner_steps))
        check_q_learning(self)

    @classmethod
    def paper(
        cls,
        ambiguity: Ambiguity,
        inner_steps: Any = 100,
        *,
        noisy_rewards: bool = False,
        averaging: bool = False,
        burn_in: float = 0.05,
    ) -> GenerativeQLearning:
        """Algorithm 1 as printed, with the steps of the paper's experiments.

        beta_t = 1/(1 + (1-discount) t), alpha_t' = weight/sqrt(t' + 1), eta = 0 at the start of each inner loop, Theta
        of section 4.1 for chi-square; for other divergences, for which the paper derives none, the tight interval.
        With `averaging` the result is the mean of Q_t over the outer iterations after the burn-in.

        >>> from robustmdp import KL, Penalized
        >>> GenerativeQLearning.paper(Penalized(KL(), 1.0)).inner_steps
        100
        """
        _checks.must(_check_inner_steps(inner_steps) != 0, "inner_steps must be at least 1: got 0")
        return cls(
            ambiguity,
            RescaledLinear(),
            WeightOverRoot(),
            inner_steps=inner_steps,
            warm_start=False,
            noisy_rewards=noisy_rewards,
            averaging=averaging,
            burn_in=burn_in,
        )

    def inner_steps_at(self, shape: Shape, iteration: int) -> IntArray:
        """The inner steps of each pair in an outer iteration, (n_pairs,)."""
        if isinstance(self.inner_steps, tuple):
            table, wanted = np.array(self.inner_steps), (shape.n_states, shape.n_actions)
            _checks.must(table.shape == wanted, f"inner_steps must have shape (S, A) = {wanted}: got {table.shape}")
            steps = shape.pairs(table).astype(np.int64)
            _checks.must(bool((steps >= 1).all()), f"inner_steps must be at least 1: got {steps.min()}")
            return steps
        count = self.inner_steps
        if callable(count):
            count = _checks.positive_integer(f"inner_steps of iteration {iteration}", count(iteration))
        return np.full(shape.n_pairs, count)

    def samples_per_step(self, shape: Shape, iteration: int = 0) -> int:
        """Inner steps and one sample of each pair."""
        if isinstance(self.inner_steps, int):
            return shape.n_pairs * (self.inner_steps + 1)
        return shape.n_pairs + int(self.inner_steps_at(shape, iteration).sum())

    def samples_after(self, shape: Shape, steps: int) -> int:
        if not callable(self.inner_steps):
            return super().samples_after(shape, steps)
        return sum(self.samples_per_step(shape, iteration) for iteration in range(steps))

    def steps_within(self, shape: Shape, samples: int) -> int:
        if not callable(self.inner_steps):
            return super().steps_within(shape, samples)
        steps, taken = 0, self.samples_per_step(shape)
        while taken <= samples:
            steps += 1
            taken += self.samples_per_step(shape, steps)
        return steps

    def initial_state(self, source: Source, replications: int, steps: int) -> LearnerState:
        if self.inner_steps:
            return PrintedGenerativeState(self, source, replications, self.burn_in * steps)
        burn_in = self.burn_in * steps * source.shape.n_pairs
        return DefaultState(self, source, replications, burn_in=burn_in, by_visits=True)
