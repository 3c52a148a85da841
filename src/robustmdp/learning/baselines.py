"""The paper's rivals: count transitions and solve the estimated model, or sample by multilevel Monte Carlo."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from robustmdp import _checks, _core, _types
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity import Ambiguity, check_ambiguity
from robustmdp.divergences import KL
from robustmdp.learning.behaviour import EpsilonGreedy
from robustmdp.learning.levels import check_learnable, level_of, setting_of
from robustmdp.learning.runnable import Runnable
from robustmdp.learning.schedules import Numbers, RescaledLinear, Schedule, check_schedule
from robustmdp.learning.sources import Experience, Shape, Source
from robustmdp.learning.states import TransitionState
from robustmdp.learning.tables import LARGEST_FLOAT, MOST_SAMPLES, Expected, LearnerState, Tables, check_tables
from robustmdp.models import columns
from robustmdp.models.counts import Tally
from robustmdp.planning import solve

_PARTS = ("keys", "counts", "sums", "lowest", "highest")  # of a tally; the last three are of rewards
_ENDINGS = 1024  # rewards that tell endings apart; any further ones share the last place
_LARGEST_LEVEL = 20  # 2^21 samples; rarer than once in 10^8 draws


@dataclass(frozen=True)
class PlugIn(Runnable):
    """The solution of the robust problem around the empirical model (Theorem 3.2), with O(S^2 A) memory.

    It counts successors, so that a model made from noise must be given without it.

    Samples come round after round from a simulator or, with `trajectory`, from one trajectory. A state of which
    nothing is known is taken to earn the least reward for ever.

    >>> from robustmdp import ChiSquare, Penalized, problems, solve
    >>> world, doubt = problems.chain(), Penalized(ChiSquare(), 1.0)
    >>> estimate = PlugIn(doubt).run(world, samples=200_000, seed=0)
    >>> bool(abs(estimate.q - solve(world, doubt).q).max() < 0.2)
    True
    """

    ambiguity: Ambiguity
    behaviour: Any = None
    trajectory: bool = False

    def __post_init__(self) -> None:
        check_ambiguity(self.ambiguity)
        _types.check_fields(self)
        _checks.must(
            not isinstance(self.behaviour, EpsilonGreedy),
            f"the plug-in estimate has no current Q to follow: got {self.behaviour!r} as behaviour",
        )
        vars(self).update(generative=not self.trajectory)

    def samples_per_step(self, shape: Shape) -> int:
        return 1 if self.trajectory else shape.n_pairs

    def initial_state(self, source: Source, replications: int, steps: int) -> LearnerState:
        _checks.must(
            getattr(getattr(source, "mdp", None), "noise", None) is None,
            "the plug-in estimate counts successors, which does not keep the outcomes of a noise apart: "
            "run it on mdp.without_noise()",
        )
        return _CountState(self.ambiguity, source.shape, replications, self.generative)


class _CountState(TransitionState):
    """The transitions that each replication has seen, counted.

    An ending, after which nothing comes, is known by its reward alone, whose number stands in the successor's place.
    """

    q_steps = Numbers(1.0, 1.0, 1.0, 1.0)
    by_visits = True

    def __init__(self, ambiguity: Ambiguity, shape: Shape, replications: int, generative: bool) -> None:
        super().__init__(ambiguity, shape, replications)
        self.generative = generative
        self._tallies = [Tally(shape.n_states, shape.n_actions) for _ in range(replications)]
        self._solved: FloatArray | None = None
        self._endings: dict[float, int] = {}

    @property
    def tables(self) -> Tables:  # type: ignore[override]
        """Visits alone; the counts are no table of pairs."""
        visits = [self._shape.pairs(tally.visits) for tally in self._tallies]
        return {"visits": np.concatenate(visits).astype(np.uint32)}

    def advance(self, source: Source, first: int, count: int) -> int:
        self._solved = None
        return self.absorb_steps(source, first, count)

    def absorb(self, position: int, seen: Experience) -> None:
        shape = self._shape
        for index, tally in enumerate(self._tallies):
            states, pairs, rewards, following = (column[:, index] for column in seen)
            actions = pairs - shape.state_ptr[states] if shape.actions is None else shape.actions[pairs]
            ended = following == shape.n_states
            places = np.where(ended, self._number_endings(rewards, ended), following)
            tally.merge(tally.key(states, actions, places, ended), np.ones(len(rewards)), rewards)
            low, high = self.extent[index]
            self.extent[index] = min(low, rewards.min()), max(high, rewards.max())

    def _number_endings(self, rewards: FloatArray, ended: BoolArray) -> IntArray:
        """The number of each ending's reward in the order in which they first came, 0 elsewhere."""
        most = min(_ENDINGS, self._shape.n_states) - 1
        numbers = np.zeros(len(rewards), np.int64)
        if ended.any():
            known, first, place = np.unique(rewards[ended], return_index=True, return_inverse=True)
            for at in np.argsort(first):
                self._endings.setdefault(float(known[at]), len(self._endings))
            found = [min(self._endings[float(reward)], most) for reward in known]
            numbers[ended] = np.array(found)[place]
        return numbers

    def save(self) -> Tables:
        found = {f"{part}.{i}": getattr(tally, part) for i, tally in enumerate(self._tallies) for part in _PARTS}
        return {**found, "endings": np.array(list(self._endings)), "extent": self.extent}

    def load(self, saved: Tables) -> None:
        any_number = -LARGEST_FLOAT, LARGEST_FLOAT
        expected = {
            "endings": Expected(np.float64, (_size_of(saved, "endings"),), *any_number),
            "extent": Expected(np.float64, self.extent.shape, *self._extent_limits()),
        }
        for i, tally in enumerate(self._tallies):
            size = _size_of(saved, f"keys.{i}")
            expected |= {
                f"keys.{i}": Expected(np.int64, (size,), 0, tally.n_states * tally.n_actions * tally.width - 1),
                f"counts.{i}": Expected(np.float64, (size,), 1, MOST_SAMPLES),
                **{f"{part}.{i}": Expected(np.float64, (size,), *any_number) for part in _PARTS[2:]},
            }
        check_tables(saved, expected)
        for i, tally in enumerate(self._tallies):
            for part in _PARTS:
                setattr(tally, part, saved[f"{part}.{i}"])
            columns.refuse_where(np.diff(tally.keys, prepend=-1) <= 0, "rise", f"keys.{i}", tally.keys)
        self._endings = {float(reward): number for number, reward in enumerate(saved["endings"])}
        _checks.must(len(self._endings) == len(saved["endings"]), "endings must all differ: one came twice")
        self.extent[:] = saved["extent"]

    def q(self) -> FloatArray:
        """Q of the estimated models; -inf where a pair was never seen."""
        if self._solved is None:
            self._solved = np.concatenate([self._solve(index) for index in range(len(self._tallies))])
        return self._solved

    def _solve(self, index: int) -> FloatArray:
        tally, least = self._tallies[index], float(self.extent[index, 0])
        model = tally.to_counts().model(self._shape.discount, "none", least_reward=least)
        solved = solve(model, self._ambiguity, tol=1e-10, threads=1).q
        table = np.full((tally.n_states, tally.n_actions), -math.inf)
        table[:, : solved.shape[1]] = solved
        return self._shape.pairs(np.where(tally.visits > 0, table, -math.inf))

    def iterate(self) -> FloatArray:
        return self.q()


def _size_of(saved: Tables, name: str) -> int:
    """How many entries a table has whose length is its own; 0 where it is missing."""
    return saved[name].size if name in saved else 0


@dataclass(frozen=True)
class MultilevelQLearning(Runnable):
    """Q <- (1-beta) Q + beta (r + discount (v(s') + Delta_N/p_N)), N geometric, p_N = ratio (1-ratio)^N, for a KL ball.

    Multilevel Monte Carlo (Liu et al. 2022), the paper's model-free rival. Delta_N is the worst-case value of 2^(N+1)
    samples minus the mean of those of their halves, so that the target is unbiased. A ratio in (1/2, 3/4) keeps both
    the expected number of samples, 2 ratio/(2 ratio - 1) a pair and step, and the variance finite.

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
