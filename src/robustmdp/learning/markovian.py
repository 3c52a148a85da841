"""Learning from one trajectory: Algorithm 2, and better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from robustmdp import _checks
from robustmdp.ambiguity import Ambiguity
from robustmdp.divergences import ChiSquare
from robustmdp.learning.behaviour import EpsilonGreedy
from robustmdp.learning.levels import check_q_learning
from robustmdp.learning.runnable import Runnable
from robustmdp.learning.schedules import (
    DualPolynomial,
    RescaledPolynomial,
    Schedule,
    Theorem51,
    Theorem51Dual,
)
from robustmdp.learning.sources import ModelSource, Shape, Source
from robustmdp.learning.states import DefaultState, PrintedTrajectoryState
from robustmdp.learning.tables import LearnerState
from robustmdp.models import MDP


@dataclass(frozen=True)
class MarkovianQLearning(Runnable):
    """Q(s_t,a_t) <- (1-beta) Q(s_t,a_t) + beta (r + discount J(eta(s_t,a_t), V; s_{t+1})), along one trajectory.

    The default is our best: steps shrink with the visits of each pair, so that one need not know d_min, d_max or kappa;
    otherwise it is `GenerativeQLearning`'s update, and what is said there of memory and of a radius holds here.
    `paper` gives Algorithm 2 with the readings that keep it finite, or as printed to the letter.

    Parameters
    ----------
    ambiguity : Nominal, Penalized or Constrained
    behaviour : None for uniform, (A,) or (S, A) probabilities, EpsilonGreedy, or a function; a log has its own
        A function of (state, step, Q of the state's actions, their visits) returns the actions' probabilities.
    q_steps, eta_steps : schedules of beta and alpha
    burn_in : float in [0, 1)
        The part of the run that is left out of the average.
    count : "visits" or "steps"
        What the schedules count.
    printed, literal : bool
        Algorithm 2 as printed, without `initial`; `literal` without the projection of V.
    d_min, d_max : float, optional
        The smallest and largest stationary probability of a pair that is visited, for the steps of Theorem 5.1;
        computed for an MDP, otherwise estimated from the visits.
    noisy_rewards, initial : as for GenerativeQLearning
    averaging : bool
        As printed: average Q over the visits of a pair after the burn-in (Polyak and Ruppert); otherwise the result is
        the last Q.

    >>> from robustmdp import ChiSquare, Penalized, problems, solve
    >>> world, doubt = problems.chain(restart=0.5), Penalized(ChiSquare(), 1.0)
    >>> learned = MarkovianQLearning(doubt).run(world, 200_000, seed=0)
    >>> bool(abs(learned.q - solve(world, doubt).q).max() < 0.2)
    True
    """

    ambiguity: Ambiguity
    behaviour: Any = None
    q_steps: Schedule = RescaledPolynomial()
    eta_steps: Schedule = DualPolynomial()
    burn_in: float = 0.05
    count: str = "visits"
    printed: bool = False
    literal: bool = False
    d_min: float | None = None
    d_max: float | None = None
    noisy_rewards: bool = False
    initial: float | None = None
    averaging: bool = False
    generative = False

    def __post_init__(self) -> None:
        check_q_learning(self)
        _checks.must(self.count in ("visits", "steps"), f"count must be 'visits' or 'steps': got {self.count!r}")
        chi_square = self.ambiguity.has_weight and self.ambiguity.divergence == ChiSquare()
        _checks.must(
            not self.literal or (chi_square and self.printed),
            f"literal is Algorithm 2 as printed, which is for a chi-square penalty: got {self.ambiguity!r}",
        )

    @classmethod
    def paper(
        cls,
        ambiguity: Ambiguity,
        behaviour: Any = None,
        literal: bool = False,
        *,
        d_min: float | None = None,
        d_max: float | None = None,
        noisy_rewards: bool = False,
        averaging: bool = False,
        burn_in: float = 0.05,
    ) -> MarkovianQLearning:
        """Algorithm 2 with the steps of Theorem 5.1.

        As printed, Q explodes: beta_0 is about 1/d_max and nothing keeps V in range. Here V is projected onto the value
        range and beta capped at 1, as Algorithms 1 and 3 do; `literal` (chi-square only) leaves both out and ends as
        `diverged` when it overflows. With `averaging` the result is the mean of Q over the visits after the burn-in,
        which the paper leaves open.

        >>> from robustmdp import ChiSquare, Penalized, problems
        >>> literal = MarkovianQLearning.paper(Penalized(ChiSquare(), 0.5), literal=True)
        >>> literal.run(problems.chain(restart=0.5), 100_000).status.code
        'diverged'
        """
        beta = Theorem51(cap=math.inf if literal else 1.0)
        return cls(
            ambiguity, behaviour, beta, Theorem51Dual(), burn_in, "steps", True, literal, d_min, d_max, noisy_rewards,
            averaging=averaging,
        )  # fmt: skip

    def samples_per_step(self, shape: Shape) -> int:
        return 1

    def initial_state(self, source: Source, replications: int, steps: int) -> LearnerState:
        if self.printed:
            return PrintedTrajectoryState(self, source, replications, self.burn_in * steps, self._occupancies(source))
        return DefaultState(self, source, replications, burn_in=self.burn_in * steps, by_visits=self.count == "visits")

    def runs_one_by_one(self, world: Any) -> bool:
        """Are the steps estimated, for each replication its own?"""
        follows_q = isinstance(self.behaviour, EpsilonGreedy) or callable(self.behaviour)
        is_known = isinstance(world, MDP) and not follows_q
        return self.printed and not is_known and (self.d_min is None or self.d_max is None)

    def _occupancies(self, source: Source) -> tuple[float, float] | None:
        """As given, or from the stationary distribution of a known world; None where only visits will tell."""
        if self.d_min is not None and self.d_max is not None:
            return self.d_min, self.d_max
        if not isinstance(source, ModelSource) or source.follows_q:
            return None
        from robustmdp.theory import stationary_distribution

        shares = stationary_distribution(source.mdp, self.behaviour, start=source.start)
        visited = shares[shares > 0.0]
        least, most = float(visited.min()), float(visited.max())
        return least if self.d_min is None else self.d_min, most if self.d_max is None else self.d_max
