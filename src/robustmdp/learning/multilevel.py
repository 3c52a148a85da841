"""Distributionally robust Q-learning by multilevel Monte Carlo (Liu et al. 2022), the paper's model-free rival."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from robustmdp import _checks, _core
from robustmdp.ambiguity import Ambiguity
from robustmdp.divergences import KL
from robustmdp.learning.levels import check_learnable, level_of, setting_of
from robustmdp.learning.runnable import Runnable
from robustmdp.learning.schedules import Numbers, RescaledLinear, Schedule, check_schedule
from robustmdp.learning.sources import Shape, Source
from robustmdp.learning.tables import LearnerState, Tables

_LARGEST_LEVEL = 20  # 2^21 samples; rarer than once in 10^8 draws


@dataclass(frozen=True)
class MultilevelQLearning(Runnable):
    """Q <- (1-beta) Q + beta (r + discount (v(s') + Delta_N/p_N)), N geometric, p_N = ratio (1-ratio)^N, for a KL ball.

    Delta_N is the worst-case value of 2^(N+1) samples minus the mean of those of their halves, so that the target is
    unbiased. A ratio in (1/2, 3/4) keeps both the expected number of samples, 2 ratio/(2 ratio - 1) a pair and step,
    and the variance finite.

    >>> from robustmdp import Constrained, KL, problems
    >>> learned = MultilevelQLearning(Constrained(KL(), 0.1)).run(problems.chain(), 200, seed=0)
    >>> bool(learned.samples > 200 * 20 * 2)
    True
    """

    ambiguity: Ambiguity
    q_steps: Schedule = RescaledLinear()
    ratio: float = 0.625

    def __post_init__(self) -> None:
        check_learnable(self.ambiguity)
        ball = self.ambiguity.has_radius and self.ambiguity.divergence == KL()
        _checks.must(ball, f"multilevel Q-learning is for a Kullback-Leibler ball: got {self.ambiguity!r}")
        check_schedule("q_steps", self.q_steps)
        ratio = _checks.finite_number("ratio", self.ratio)
        _checks.must(0.5 < ratio < 0.75, f"ratio must lie in (1/2, 3/4): got {ratio:g}")

    def samples_per_step(self, shape: Shape) -> int:
        """The expected number."""
        return math.ceil(shape.n_pairs * 2.0 * self.ratio / (2.0 * self.ratio - 1.0))

    def initial_state(self, source: Source, replications: int, steps: int) -> LearnerState:
        numbers = self.q_steps.resolve(setting_of(self.ambiguity, source.shape))
        return _MultilevelState(self.ambiguity, source.shape, replications, numbers, self.ratio)


class _MultilevelState(LearnerState):
    """Q, and how many samples each replication drew."""

    by_visits = False

    def __init__(self, ambiguity: Ambiguity, shape: Shape, replications: int, q_steps: Numbers, ratio: float) -> None:
        shape.require_rewards("multilevel Q-learning")
        super().__init__(ambiguity, shape, replications, shape.rewards_on_successors)
        self.q_steps, self._ratio = q_steps, ratio
        self._radius = level_of(ambiguity, shape).numbers
        cells = replications * shape.n_pairs
        self.tables: Tables = {
            "q": np.full(cells, shape.value_range[1]),
            "visits": np.zeros(cells, np.uint32),
            "drawn": np.zeros(replications, np.int64),
        }

    @cached_property
    def _betas(self) -> Any:
        return _core.Steps(*self.q_steps)

    def advance(self, source: Source, first: int, count: int) -> int:
        for iteration in range(first, first + count):
            for replication in range(len(self.diverged)):
                self._sweep(source, iteration, replication)
        return count

    def _sweep(self, source: Source, iteration: int, replication: int) -> None:
        shape = self._shape
        span = slice(replication * shape.n_pairs, (replication + 1) * shape.n_pairs)
        q, visits = self.tables["q"][span], self.tables["visits"][span]
        v = np.append(np.clip(np.maximum.reduceat(q, shape.state_ptr[:-1]), *shape.value_range), 0.0)
        beta = self._betas.at(iteration)
        for pair in range(shape.n_pairs):
            # The level is drawn from a stream of its own, far from the samples'.
            u = source.number(replication, (1 << 62) + iteration * shape.n_pairs + pair)
            level = min(int(math.log1p(-u) / math.log1p(-self._ratio)), _LARGEST_LEVEL)
            size = 2 << level
            rewards, following = source.draws(replication, int(self.tables["drawn"][replication]), pair, size)
            self.tables["drawn"][replication] += size
            visits[pair] += size
            x = shape.discount * v[following] + (rewards if self.inside else 0.0)
            chance = self._ratio * (1.0 - self._ratio) ** level
            radius = self._radius[pair if len(self._radius) > 1 else 0]
            target = x[0] + _core.multilevel_difference(x, radius) / chance + (0.0 if self.inside else rewards[0])
            q[pair] += beta * (target - q[pair])
