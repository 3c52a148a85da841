"""Learning from a simulator that answers for any pair: Algorithm 1, and better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from robustmdp import _checks
from robustmdp.ambiguity import Ambiguity
from robustmdp.learning import running
from robustmdp.learning.levels import check_learnable, setting_of
from robustmdp.learning.pupils import Default, PrintedSweeper, Pupil
from robustmdp.learning.runnable import Runnable
from robustmdp.learning.schedules import (
    DualPolynomial,
    RescaledLinear,
    RescaledPolynomial,
    Schedule,
    WeightOverRoot,
    check_schedule,
)
from robustmdp.learning.sources import Shape, Source


def rewards_are_inside(learner: Any, source: Source) -> bool:
    """Are rewards in nature's hands? As printed never, but in an MDP, whose r(s,a,s') are no noise."""
    printed = getattr(learner, "printed", False) or getattr(learner, "inner_steps", 0) > 0
    as_printed = printed and source.world is None
    return source.shape.rewards_on_successors and not learner.noisy_rewards and not as_printed


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
    inner_steps : int
        The paper's T': samples for eta alone before each one for Q, with V frozen, and without burn-in, average or
        `initial`. 0: one sample for both.
    warm_start : bool
        With inner steps: keep eta between rounds; otherwise it starts at 0 in each.
    noisy_rewards : bool
        Are rewards noise around R(s,a), which nature cannot touch (the paper's r_t)? By default a reward belongs to
        its outcome, as r(s,a,s') does in `solve`: nature can then make a low reward more likely. `paper` learns from
        any world but an MDP with noisy rewards, as printed.
    initial : float, optional
        Q of what was not yet visited; by default 0, or the nearest possible value.

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
    inner_steps: int = 0
    warm_start: bool = True
    noisy_rewards: bool = False
    initial: float | None = None
    behaviour: ClassVar[None] = None
    touring: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_learnable(self.ambiguity)
        check_schedule("q_steps", self.q_steps)
        check_schedule("eta_steps", self.eta_steps)
        running.check_burn_in(self.burn_in)
        if self.inner_steps != 0 or not isinstance(self.inner_steps, int):
            _checks.positive_integer("inner_steps", self.inner_steps)
        if self.initial is not None:
            _checks.finite_number("initial", self.initial)

    @classmethod
    def paper(cls, ambiguity: Ambiguity, inner_steps: int = 100, *, noisy_rewards: bool = False) -> GenerativeQLearning:
        """Algorithm 1 as printed, with the steps of the paper's experiments.

        beta_t = 1/(1 + (1-discount) t), alpha_t' = weight/sqrt(t' + 1), eta = 0 at the start of each inner loop, Theta
        of section 4.1 for chi-square; for other divergences, for which the paper derives none, the tight interval.

        >>> from robustmdp import KL, Penalized
        >>> GenerativeQLearning.paper(Penalized(KL(), 1.0)).inner_steps
        100
        """
        _checks.positive_integer("inner_steps", inner_steps)
        return cls(
            ambiguity,
            RescaledLinear(),
            WeightOverRoot(),
            inner_steps=inner_steps,
            warm_start=False,
            noisy_rewards=noisy_rewards,
        )

    def samples_per_step(self, shape: Shape) -> int:
        """One round: inner_steps + 1 samples of each pair."""
        return shape.n_pairs * (int(self.inner_steps) + 1)

    def pupil(self, source: Source, replications: int, steps: int) -> Pupil:
        """Fresh tables."""
        shape = source.shape
        inside = rewards_are_inside(self, source)
        schedules = self.q_steps, self.eta_steps
        if self.inner_steps:
            setting = setting_of(self.ambiguity, shape)
            numbers = self.q_steps.resolve(setting), self.eta_steps.resolve(setting)
            fresh = not self.warm_start
            return PrintedSweeper(
                self.ambiguity, shape, replications, numbers, inner_steps=self.inner_steps, fresh=fresh, inside=inside
            )
        return Default(
            self.ambiguity,
            shape,
            replications,
            schedules,
            touring=True,
            burn_in=self.burn_in * steps * shape.n_pairs,
            by_visits=True,
            inside=inside,
            initial=self.initial,
        )
