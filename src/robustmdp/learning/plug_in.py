"""The model-based way, to compare with: count transitions, then solve the estimated model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.ambiguity import Ambiguity, check_ambiguity
from robustmdp.learning.behaviour import EpsilonGreedy
from robustmdp.learning.runnable import Runnable
from robustmdp.learning.schedules import Numbers
from robustmdp.learning.sources import Experience, Shape, Source
from robustmdp.learning.states import LearnerState
from robustmdp.learning.tables import LARGEST_FLOAT, MOST_SAMPLES, Expected, Tables, check_tables, limits_of_extent
from robustmdp.models import MDP, columns
from robustmdp.planning import solve

FloatArray = npt.NDArray[np.float64]
_AT_ONCE = 1 << 16
_ENDINGS = 1024  # rewards that tell endings apart; any further ones share the last place


@dataclass(frozen=True)
class PlugIn(Runnable):
    """The solution of the robust problem around the empirical model (Theorem 3.2), with O(S^2 A) memory.

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
        _checks.must(
            not isinstance(self.behaviour, EpsilonGreedy),
            f"the plug-in estimate has no current Q to follow: got {self.behaviour!r} as behaviour",
        )

    @property
    def generative(self) -> bool:
        """Does a step visit every pair?"""
        return not self.trajectory

    def samples_per_step(self, shape: Shape) -> int:
        """One of each pair, or one."""
        return 1 if self.trajectory else shape.n_pairs

    def initial_state(self, source: Source, replications: int, steps: int) -> LearnerState:
        """No counts yet."""
        del steps
        return _CountState(self.ambiguity, source.shape, replications, self.generative)


class _CountState:
    """Counts and reward sums of each (pair, outcome) seen, sorted by both, per replication.

    An outcome is the successor; an ending, after which nothing comes, is known by its reward alone.
    """

    q_steps = Numbers(1.0, 1.0, 1.0, 1.0)
    by_visits = True

    def __init__(self, ambiguity: Ambiguity, shape: Shape, replications: int, generative: bool) -> None:
        self._ambiguity, self._shape, self._generative = ambiguity, shape, generative
        self._seen: list[tuple[npt.NDArray[np.int64], FloatArray, FloatArray]] = [
            (np.empty(0, np.int64), np.empty(0), np.empty(0)) for _ in range(replications)
        ]
        self.extent = np.tile(np.array(shape.reward_range or (math.inf, -math.inf)), (replications, 1))
        self.diverged = np.full(replications, -1, np.int64)
        self._solved: FloatArray | None = None
        self._endings: dict[float, int] = {}

    @property
    def tables(self) -> Tables:
        """Visits alone; the counts are no table of pairs."""
        n = self._shape.n_pairs
        rows = [np.bincount(keys // self._width, counts, n) for keys, counts, _ in self._seen]
        return {"visits": np.concatenate(rows).astype(np.uint32)}

    @property
    def _width(self) -> int:
        return self._shape.n_states + self._most_endings

    @property
    def _most_endings(self) -> int:
        return min(_ENDINGS, self._shape.n_states)

    def advance(self, source: Source, first: int, count: int) -> int:
        """Count `count` steps more."""
        unit = self._shape.n_pairs if self._generative else 1
        position, end = first * unit, (first + count) * unit
        while position < end:
            size = min(max(1, _AT_ONCE // len(self._seen)), end - position)
            room = Experience.empty(len(self._seen), size)
            filled = (
                source.sample_all_pairs(position, room) if self._generative else source.follow_policy(position, room)
            )
            self._count(room if filled == size else room.first(filled))
            position += filled
            if filled < size:
                break
        self._solved = None
        return (position - first * unit) // unit

    def _count(self, room: Experience) -> None:
        for index, (keys, counts, sums) in enumerate(self._seen):
            rewards = room.rewards[:, index]
            fresh = room.pairs[:, index].astype(np.int64) * self._width + self._outcomes(
                room.following[:, index], rewards
            )
            union, place = np.unique(np.concatenate([keys, fresh]), return_inverse=True)
            ones = np.concatenate([counts, np.ones(len(fresh))])
            self._seen[index] = (
                union,
                np.bincount(place, ones, len(union)).astype(np.float64),
                np.bincount(place, np.concatenate([sums, rewards]), len(union)).astype(np.float64),
            )
            if len(rewards):
                low, high = self.extent[index]
                self.extent[index] = min(low, rewards.min()), max(high, rewards.max())

    def _outcomes(self, following: npt.NDArray[Any], rewards: FloatArray) -> npt.NDArray[np.int64]:
        outcomes = following.astype(np.int64)
        ended = outcomes == self._shape.n_states
        if ended.any():
            known, place = np.unique(rewards[ended], return_inverse=True)
            numbers = [
                min(self._endings.setdefault(float(r), len(self._endings)), self._most_endings - 1) for r in known
            ]
            outcomes[ended] += np.array(numbers)[place]
        return outcomes

    def model(self, index: int) -> MDP:
        """The empirical model of one replication, around which nature moves."""
        shape = self._shape
        keys, counts, sums = self._seen[index]
        pairs, outcomes = keys // self._width, keys % self._width
        totals = np.bincount(pairs, counts, shape.n_pairs)
        states = np.asarray(shape.states)
        actions = np.arange(shape.n_pairs) % shape.n_actions if shape.actions is None else np.asarray(shape.actions)
        ended = outcomes >= shape.n_states
        following = np.where(ended, outcomes - shape.n_states, outcomes)  # where an ending ends only tells it apart
        known = np.zeros(shape.n_states, bool)
        known[states[pairs]] = True
        unknown = np.flatnonzero(~known)
        return MDP.from_rows(
            np.concatenate([states[pairs], unknown]),
            np.concatenate([actions[pairs], np.zeros(len(unknown), np.int64)]),
            np.concatenate([following, unknown]),
            np.concatenate([counts / totals[pairs], np.ones(len(unknown))]),
            np.concatenate([sums / counts, np.full(len(unknown), self.extent[index, 0])]),
            shape.discount,
            terminated=np.concatenate([ended, np.zeros(len(unknown), bool)]),
            n_states=shape.n_states,
        )

    def save(self) -> Tables:
        """Keys, counts and sums of each replication, and the rewards that tell endings apart."""
        parts = ("keys", "counts", "sums")
        found = {f"{part}.{i}": each[j] for i, each in enumerate(self._seen) for j, part in enumerate(parts)}
        return {**found, "endings": np.array(list(self._endings)), "extent": self.extent}

    def load(self, saved: Tables) -> None:
        """Go on from there."""
        any_number = -LARGEST_FLOAT, LARGEST_FLOAT
        expected = {
            "endings": Expected(np.float64, (_size_of(saved, "endings"),), *any_number),
            "extent": Expected(np.float64, self.extent.shape, *limits_of_extent(self.extent, self._shape)),
        }
        for i in range(len(self._seen)):
            size = _size_of(saved, f"keys.{i}")
            expected |= {
                f"keys.{i}": Expected(np.int64, (size,), 0, self._shape.n_pairs * self._width - 1),
                f"counts.{i}": Expected(np.float64, (size,), 1, MOST_SAMPLES),
                f"sums.{i}": Expected(np.float64, (size,), *any_number),
            }
        check_tables(saved, expected)
        self._seen = [(saved[f"keys.{i}"], saved[f"counts.{i}"], saved[f"sums.{i}"]) for i in range(len(self._seen))]
        for i, (keys, _, _) in enumerate(self._seen):
            columns.refuse_where(np.diff(keys, prepend=-1) <= 0, "rise", f"keys.{i}", keys)
        self._endings = {float(reward): number for number, reward in enumerate(saved["endings"])}
        _checks.must(len(self._endings) == len(saved["endings"]), "endings must all differ: one came twice")
        self.extent[:] = saved["extent"]

    def q(self) -> FloatArray:
        """Q of the estimated models; -inf where a pair was never seen."""
        if self._solved is None:
            answers = [self._answer(index) for index in range(len(self._seen))]
            self._solved = np.concatenate(answers)
        return self._solved

    def _answer(self, index: int) -> FloatArray:
        shape = self._shape
        solved = solve(self.model(index), self._ambiguity, tol=1e-10, threads=1).q
        table = np.full((shape.n_states, shape.n_actions), -math.inf)
        table[:, : solved.shape[1]] = solved
        answer = shape.pairs(table).copy()
        answer[self.tables["visits"].reshape(len(self._seen), -1)[index] == 0] = -math.inf
        return answer

    def iterate(self) -> FloatArray:
        """The same: nothing is averaged."""
        return self.q()

    def eta(self, span: slice) -> FloatArray:
        """None is learned."""
        return np.full(span.stop - span.start, math.nan)


def _size_of(saved: Tables, name: str) -> int:
    """How many entries a table has whose length is its own; 0 where it is missing."""
    return saved[name].size if name in saved else 0
