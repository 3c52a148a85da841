"""The tables of a learner, O(|S||A|), and the compiled update that moves them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from robustmdp import _checks, _core
from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Ambiguity
from robustmdp.divergences import ChiSquare
from robustmdp.learning.behaviour import BehaviourPolicy
from robustmdp.learning.levels import level_of, setting_of
from robustmdp.learning.schedules import Numbers
from robustmdp.learning.sources import Experience, ModelSource, Shape, Source
from robustmdp.learning.tables import LearnerState, Tables

_TRANSITIONS_AT_ONCE = 32768  # fit into a core's cache and hide the cost of a call


class TransitionState(LearnerState):
    """Learns from transitions in order, piece by piece; the size of the pieces changes nothing."""

    generative: bool
    update: Any  # compiled

    def advance(self, source: Source, first: int, count: int) -> int:
        """Take `count` steps: transitions, or rounds over all pairs."""
        if source.learns_online and not self.generative:
            source.learn_online(self, first, count)
            return count
        return self.absorb_steps(source, first, count)

    def absorb_steps(self, source: Source, first: int, count: int) -> int:
        """Draw `count` steps and absorb them in blocks; returns how many came."""
        replications, unit = len(self.diverged), source.shape.n_pairs if self.generative else 1
        position, end = first * unit, (first + count) * unit
        block = max(1, _TRANSITIONS_AT_ONCE // replications)
        draw = source.sample_all_pairs if self.generative else source.follow_policy
        while position < end:
            room = Experience.empty(replications, min(block, end - position))
            taken = draw(position, room)
            if taken:
                self.absorb(position, Experience(*(column[:taken] for column in room)))
            position += taken
            if taken < room.length:
                break
        return (position - first * unit) // unit

    def absorb(self, position: int, seen: Experience) -> None:
        """Learn from transitions, of which the first is number `position` of its replication."""
        self.update.absorb(position, *seen)

    def build_chooser(self, policy: BehaviourPolicy) -> Callable[[int, int, int, float], int]:
        """(replication, step, state, u) -> pair, for a policy that follows Q."""
        if policy.function is None:
            choose, epsilon = self.update.choose, _core.Steps(*(policy.epsilon or Numbers(0.0, 1.0, 0.0, 0.0))).at
            return lambda replication, step, state, u: choose(replication, state, u, epsilon(step))
        function, n_pairs, state_ptr = policy.function, self._shape.n_pairs, policy.state_ptr
        q, visits = self.q(), self.tables["visits"]

        def draw(replication: int, step: int, state: int, u: float) -> int:
            first, last = int(state_ptr[state]), int(state_ptr[state + 1])
            cells = slice(replication * n_pairs + first, replication * n_pairs + last)
            given = function(state, step, q[cells].copy(), visits[cells].copy())
            return first + _draw(given, last - first, u, state)

        return draw


def _draw(given: Any, size: int, u: float, state: int) -> int:
    """An action by a user's probabilities."""
    try:
        probabilities = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"behaviour must return probabilities: got {given!r} in state {state}") from None
    is_distribution = (
        probabilities.shape == (size,)
        and bool(np.all(probabilities >= 0.0))
        and not _checks.wrong_sums(probabilities.sum()).size
    )
    _checks.must(
        is_distribution, f"behaviour must return {size} probabilities that sum to 1: got {given!r} in state {state}"
    )
    return int(min(np.searchsorted(np.cumsum(probabilities), u * probabilities.sum(), side="right"), size - 1))


def _initial(shape: Shape, initial: float | None) -> float:
    """The value of what has not been visited: 0, or the nearest value that is possible; -inf where nothing is known."""
    if initial is not None:
        return initial
    if shape.reward_range is None:
        return -math.inf
    low, high = shape.value_range
    return min(max(0.0, low), high)


class DefaultState(TransitionState):
    """Our update (core/learning/follow.hpp); 40 bytes a pair and 4 a state. A radius takes 12 bytes a pair more."""

    def __init__(self, learner: Any, source: Source, replications: int, *, burn_in: float, by_visits: bool) -> None:
        ambiguity, shape = learner.ambiguity, source.shape
        inside = shape.rewards_on_successors and not learner.noisy_rewards
        super().__init__(ambiguity, shape, replications, inside)
        level, setting = level_of(ambiguity, shape), setting_of(ambiguity, shape)
        tunes = level.is_robust and level.is_smooth
        guards = tunes and bool(np.all(level.numbers > 0))  # the lowest outcome is a bound only, not the value itself
        cells = replications * shape.n_pairs
        tables: Tables = {
            "q": np.full(cells, _initial(shape, learner.initial)),
            "average": np.full(cells, _initial(shape, learner.initial)),
            "visits": np.zeros(cells, np.uint32),
            "greedy": np.tile(np.asarray(shape.state_ptr[:-1], dtype=np.int32), replications),
            "shared_error": np.zeros(8 * replications),  # a record of core/learning/state.hpp each
        }
        if level.is_robust:
            tables["lowest"] = np.full(cells, -1, np.int32)
        if level.is_robust and inside:
            name, kind = ("lowest_offset", np.float32) if guards else ("lowest_reward", np.float64)
            tables[name] = np.zeros(cells, kind)
        if tunes:
            tables["offset"], tables["curvature"] = np.zeros(cells, np.float32), np.ones(cells, np.float32)
            tables["lowest_count"] = np.zeros(cells, np.uint32)
        if level.is_constrained:
            tables["weight"] = np.zeros(cells)
        if level.is_constrained and tunes:
            tables["excess"] = np.zeros(cells, np.float32)
        self.tables = tables
        self._steps = [schedule.resolve(setting) for schedule in (learner.q_steps, learner.eta_steps)]
        self._burn_in = burn_in
        self._anchor = 0.5 * sum(shape.reward_range) if shape.reward_range else 0.0
        self.q_steps, self.by_visits, self.generative = self._steps[0], by_visits, learner.generative

    @cached_property
    def update(self) -> Any:
        """The compiled update on these tables."""
        level = level_of(self._ambiguity, self._shape)
        settings = self.core_settings(
            level.numbers,
            growing=self._shape.reward_range is None,
            by_visits=self.by_visits,
            constrained=level.is_constrained,
            anchor=self._anchor,
            burn_in=self._burn_in,
        )
        return level.price.follower(self.core_state, settings, *(_core.Steps(*numbers) for numbers in self._steps))

    def q(self) -> FloatArray:
        return self.tables["average"]

    def eta(self, span: slice) -> FloatArray:
        average = self.tables["average"][span]
        if "offset" not in self.tables:
            return np.full(len(average), math.nan)
        return average - (0.0 if self.inside else self._anchor) + self.tables["offset"][span]


class _PrintedState(LearnerState):
    """What the two printed algorithms share: the tables, the projections, and TV and the limits learned directly.

    With `learner.averaging` the iterates after `burn_in` steps are averaged.
    """

    def __init__(self, learner: Any, source: Source, replications: int, burn_in: float) -> None:
        ambiguity, shape = learner.ambiguity, source.shape
        shape.require_rewards("the printed algorithms")
        # The paper's rewards are noise that nature cannot touch, but r(s,a,s') of an MDP is none.
        inside = shape.rewards_on_successors and not learner.noisy_rewards and isinstance(source, ModelSource)
        super().__init__(ambiguity, shape, replications, inside)
        level = level_of(ambiguity, shape)
        _checks.must(
            not level.is_constrained,
            f"the paper's algorithms are for a penalty: got {ambiguity!r}; the default learner takes a radius",
        )
        self._interval = low, high = _paper_interval(ambiguity, shape, inside)
        cells = replications * shape.n_pairs
        self.tables: Tables = {
            "q": np.full(cells, shape.value_range[1]),
            "eta": np.full(cells, min(max(0.0, low), high)),
            "visits": np.zeros(cells, np.uint32),
            "greedy": np.tile(np.asarray(shape.state_ptr[:-1], dtype=np.int32), replications),
        }
        if level.is_robust and (not level.is_smooth or level.edge < math.inf or bool(np.any(level.numbers == 0))):
            self.tables["lowest"] = np.full(cells, -1, np.int32)
            self.tables |= {"lowest_reward": np.zeros(cells)} if inside else {}
        self._burn_in = burn_in
        if learner.averaging:
            self.tables |= {"average": self.tables["q"].copy(), "averaged": np.zeros(cells, np.uint32)}

    def core_settings(self, levels: FloatArray, **more: Any) -> Any:
        low, high = self._interval
        return super().core_settings(levels, low=low, high=high, burn_in=self._burn_in, **more)

    def q(self) -> FloatArray:
        return self.tables.get("average", self.tables["q"])


def _paper_interval(ambiguity: Ambiguity, shape: Shape, inside: bool) -> tuple[float, float]:
    """discount * Theta: section 4.1's [low - 2 w, 2 high - low + 2 w] for chi-square, [low, high] otherwise.

    The paper derives Theta for chi-square alone; the tight interval is our reading for other divergences.
    """
    discount, (low, high) = shape.discount, shape.value_range
    rewards = shape.reward_range if inside and shape.reward_range else (0.0, 0.0)
    low, high = discount * low + rewards[0], discount * high + rewards[1]
    if ambiguity.has_weight and ambiguity.divergence == ChiSquare():
        weight = discount * setting_of(ambiguity, shape).weight
        return low - 2.0 * weight, 2.0 * high - low + 2.0 * weight
    return low, high


class PrintedTrajectoryState(_PrintedState, TransitionState):
    """Algorithm 2 as printed (core/learning/printed.hpp), with the readings of its repairs unless `literal`.

    Where d_min and d_max are not known, on which the steps of Theorem 5.1 depend, they are estimated: at steps
    1, 2, 4, ... from the visits so far, of the pairs that were visited.
    """

    def __init__(
        self, learner: Any, source: Source, replications: int, burn_in: float, occupancies: tuple[float, float] | None
    ) -> None:
        super().__init__(learner, source, replications, burn_in)
        self.generative, self.by_visits, self._literal = False, learner.count == "visits", learner.literal
        self._schedules = learner.q_steps, learner.eta_steps
        self._estimates = occupancies is None
        # Before anything is known, all pairs are alike.
        self._occupancies = np.array(occupancies or [1.0 / source.shape.n_pairs] * 2)
        self._resolve()

    def _resolve(self) -> None:
        d_min, d_max = self._occupancies.tolist()
        setting = setting_of(self._ambiguity, self._shape, d_min, d_max)
        self._steps = [schedule.resolve(setting) for schedule in self._schedules]
        self.q_steps = self._steps[0]
        self.__dict__.pop("update", None)

    def save(self) -> Tables:
        return {**super().save(), "occupancies": self._occupancies}

    def load(self, saved: Tables) -> None:
        super().load(saved)
        self._resolve()

    @cached_property
    def update(self) -> Any:
        """The compiled update on these tables."""
        level = level_of(self._ambiguity, self._shape)
        settings = self.core_settings(level.numbers, by_visits=self.by_visits, literal=self._literal)
        return level.price.printed(self.core_state, settings, *(_core.Steps(*numbers) for numbers in self._steps))

    def advance(self, source: Source, first: int, count: int) -> int:
        if not self._estimates:
            return super().advance(source, first, count)
        done = 0
        while done < count:
            now = first + done
            if now > 0 and now & (now - 1) == 0:
                self._estimate()
            wanted = min(count - done, (1 << now.bit_length()) - now)
            taken = super().advance(source, now, wanted)
            done += taken
            if taken < wanted:
                break
        return done

    def _estimate(self) -> None:
        visits = self.tables["visits"]
        shares = visits[visits > 0] / visits.sum(dtype=np.float64)
        self._occupancies[:] = shares.min(), shares.max()
        self._resolve()


class PrintedGenerativeState(_PrintedState):
    """Algorithm 1 as printed (core/learning/printed.hpp): V is frozen for an outer iteration over all pairs."""

    by_visits = False

    def __init__(self, learner: Any, source: Source, replications: int, burn_in: float) -> None:
        super().__init__(learner, source, replications, burn_in)
        setting = setting_of(learner.ambiguity, source.shape)
        self.q_steps, self._eta_steps = learner.q_steps.resolve(setting), learner.eta_steps.resolve(setting)
        self._inner_steps_at, self._fresh = learner.inner_steps_at, not learner.warm_start
        self._inner_steps = None if callable(learner.inner_steps) else learner.inner_steps_at(source.shape, 1)
        self._v = np.zeros((replications, source.shape.n_states + 1))
        self.tables["drawn"] = np.zeros(replications, np.int64)

    @cached_property
    def _refiner(self) -> Any:
        level = level_of(self._ambiguity, self._shape)
        steps = (_core.Steps(*numbers) for numbers in (self.q_steps, self._eta_steps))
        return level.price.refiner(self.core_state, self.core_settings(level.numbers), *steps)

    def advance(self, source: Source, first: int, count: int) -> int:
        for iteration in range(first, first + count):
            self._sweep(source, iteration)
        return count

    def _sweep(self, source: Source, iteration: int) -> None:
        shape, inner_steps = self._shape, self._inner_steps
        if inner_steps is None:
            inner_steps = self._inner_steps_at(shape, iteration)
        q = self.tables["q"].reshape(len(self._v), shape.n_pairs)
        best = np.maximum.reduceat(q, shape.state_ptr[:-1], axis=1)
        np.clip(best, *shape.value_range, out=self._v[:, :-1])
        frozen = self._v, iteration, self._fresh
        first = int(self.tables["drawn"][0])  # of the streams' numbers
        if source.world is not None:
            self._refiner.refine_all(source.world, *frozen, first, inner_steps)
        else:
            for pair, draws in enumerate((inner_steps + 1).tolist()):
                rewards, following = np.empty((draws, len(self._v))), np.empty((draws, len(self._v)), np.int32)
                source.sample_pair(first, pair, rewards, following)
                self._refiner.refine(*frozen, pair, rewards, following)
                first += draws
        self.tables["drawn"] += shape.n_pairs + int(inner_steps.sum())
        has_diverged = ~np.isfinite(q).all(axis=1) & (self.diverged < 0)
        self.diverged[has_diverged] = iteration + 1
