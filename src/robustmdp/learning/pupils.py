"""The tables of a learner, O(|S||A|), and the compiled update that moves them."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.ambiguity import Ambiguity
from robustmdp.divergences import ChiSquare
from robustmdp.learning import updates
from robustmdp.learning._codes import spec_of, specialise
from robustmdp.learning._kernels import CONSTRAINED, NOMINAL, PENALIZED, TOTAL_VARIATION
from robustmdp.learning.schedules import Numbers, Schedule, Setting
from robustmdp.learning.sources import Experience, Shape, Source

FloatArray = npt.NDArray[np.float64]
Tables = dict[str, npt.NDArray[Any]]
_AS_GOOD_AS_INFINITE = 1e15
_TABULATED = 1 << 18  # step sizes that are looked up: 2 MB a schedule
_TRANSITIONS_AT_ONCE = 32768  # fit into a core's cache and hide the cost of a call


class Level(NamedTuple):
    """An ambiguity for a world of pairs: mode, divergence in normal form, and its level, one or one per pair."""

    mode: int
    kind: int
    k: float
    edge: float
    numbers: FloatArray


def level_of(ambiguity: Ambiguity, shape: Shape) -> Level:
    """The limits become what they are: no ambiguity, or the lowest successor."""
    mode, kind, k, edge = spec_of(ambiguity)
    table = np.asarray(ambiguity.kernel_level(shape.discount), dtype=np.float64)
    if table.ndim == 2:
        wanted = shape.n_states, shape.n_actions
        _checks.must(
            table.shape == wanted, f"{ambiguity.level_name} must have shape (S, A) = {wanted}: got {table.shape}"
        )
        table = shape.pairs(table)
    numbers = np.atleast_1d(table)
    _checks.must(
        not np.isnan(numbers).any(), f"{ambiguity.level_name} must be a number at every available pair: got nan"
    )
    if mode == PENALIZED and np.isinf(numbers).all():
        mode = NOMINAL
    if mode == CONSTRAINED and np.all(numbers == 0.0):
        mode = NOMINAL
    if mode == CONSTRAINED and np.isinf(numbers).all():
        return Level(PENALIZED, kind, k, edge, np.zeros(1))
    if mode == PENALIZED:
        numbers = np.minimum(numbers, _AS_GOOD_AS_INFINITE)
    return Level(mode, kind, k, edge, np.ascontiguousarray(numbers))


def setting_of(ambiguity: Ambiguity, shape: Shape, d_min: float | None = None, d_max: float | None = None) -> Setting:
    """What schedules may depend on; of several weights the largest, whose dual is the flattest."""
    weight = ambiguity.level if ambiguity.has_weight else 1.0
    finite = np.asarray(weight)[np.isfinite(weight)]
    return Setting(
        shape.discount,
        float(finite.max()) if finite.size else 1.0,
        shape.value_range,
        ambiguity.divergence.scale,
        d_min,
        d_max,
    )


class Pupil(Protocol):
    """Tables of some replications, which move as transitions come."""

    extent: FloatArray
    diverged: npt.NDArray[np.int64]
    q_steps: Numbers
    by_visits: bool

    @property
    def tables(self) -> Tables:
        """Named arrays, (replications * pairs,) or (replications * states,)."""

    def advance(self, source: Source, first: int, count: int) -> int:
        """Take `count` steps after the first `first`; returns how many the source could give."""

    def save(self) -> Tables:
        """All that a checkpoint must hold."""

    def load(self, saved: Tables) -> None:
        """Go on from there."""

    def q(self) -> FloatArray:
        """The learned Q, (replications * pairs,)."""

    def iterate(self) -> FloatArray:
        """The current Q, (replications * pairs,), the same where nothing is averaged."""

    def eta(self, span: slice) -> FloatArray:
        """discount * eta in normal form of some cells; NaN where no dual variable is learned."""


class Tabled:
    """Saves and loads the tables as they are."""

    tables: Tables
    extent: FloatArray
    diverged: npt.NDArray[np.int64]

    def save(self) -> Tables:
        """Copies are not needed: what is saved is written at once."""
        return {name: table for name, table in self._all().items() if table.size}

    def load(self, saved: Tables) -> None:
        """Into the tables that are there."""
        for name, table in self._all().items():
            if table.size:
                table[:] = saved[name]

    def _all(self) -> Tables:
        return {**self.tables, "extent": self.extent, "diverged": self.diverged}


def _stream(source: Source, room: Experience, first: int, greedy: npt.NDArray[Any], touring: bool) -> Experience:
    """The next transitions of a source, as many as there is room for or as are left."""
    filled = source.tour(first, room) if touring else source.walk(first, room, greedy)
    return room if filled == room.length else room.first(filled)


class _Follower(Tabled):
    """Learns from transitions in order, piece by piece; the size of the pieces changes nothing."""

    tables: Tables
    diverged: npt.NDArray[np.int64]
    touring: bool

    def absorb(self, first: int, experience: Experience) -> None:
        raise NotImplementedError

    def advance(self, source: Source, first: int, count: int) -> int:
        """Take `count` steps: transitions, or rounds over all pairs."""
        unit = source.shape.n_pairs if self.touring else 1
        position, end = first * unit, (first + count) * unit
        block = 1 if source.follows_q else max(1, _TRANSITIONS_AT_ONCE // len(self.diverged))
        room = Experience.empty(len(self.diverged), min(block, end - position))
        while position < end:
            if end - position < room.length:
                room = Experience.empty(len(self.diverged), end - position)
            piece = _stream(source, room, position, self.tables["greedy"], self.touring)
            taken = piece.length
            if taken:
                self.absorb(position, piece)
            position += taken
            if taken < room.length:
                break
        return (position - first * unit) // unit


def _initial(shape: Shape, initial: float | None) -> float:
    """The value of what has not been visited: 0, or the nearest value that is possible; -inf where nothing is known."""
    if initial is not None:
        return initial
    if shape.reward_range is None:
        return -math.inf
    low, high = shape.value_range
    return min(max(0.0, low), high)


@functools.lru_cache(maxsize=8)
def _tabulated(numbers: Numbers) -> FloatArray:
    """The first step sizes, apart from the pupil: a pupil that travels is as small as its tables."""
    return np.asarray(numbers.at(np.arange(_TABULATED)), dtype=np.float64)


class Default(_Follower):
    """Our update (updates.follow); 36 bytes a pair and 4 a state.

    A radius takes 12 bytes a pair more, a divergence with a finite slope at infinity 4.
    """

    def __init__(
        self,
        ambiguity: Ambiguity,
        shape: Shape,
        replications: int,
        steps: tuple[Schedule, Schedule],
        *,
        touring: bool,
        start: float,
        by_visits: bool,
        inside: bool,
        initial: float | None,
    ) -> None:
        level, setting = level_of(ambiguity, shape), setting_of(ambiguity, shape)
        cells = replications * shape.n_pairs
        robust = level.mode != NOMINAL
        tunes = robust and level.kind != TOTAL_VARIATION
        guards = tunes and bool(np.all(level.numbers > 0))  # the lowest outcome is a bound only, not the value itself
        first_pairs = np.asarray(shape.state_ptr[:-1], dtype=np.int32)
        value = _initial(shape, initial)
        self.tables: Tables = {
            "q": np.full(cells, value),
            "offset": np.zeros(cells if tunes else 0, np.float32),
            "average": np.full(cells, value),
            "visits": np.zeros(cells, np.uint32),
            "curvature": np.ones(cells if tunes else 0, np.float32),
            "weights": np.zeros(cells if level.mode == CONSTRAINED else 0),
            "excesses": np.zeros(cells if level.mode == CONSTRAINED and tunes else 0, np.float32),
            "greedy": np.tile(first_pairs, replications),
            "lowest": np.full(cells if robust else 0, -1, np.int32),
            "lowest_reward": np.zeros(cells if robust and inside else 0, np.float32 if guards else np.float64),
            "rarity": np.zeros(cells if tunes and level.edge < math.inf else 0, np.float32),
        }
        extent = shape.reward_range or (math.inf, -math.inf)
        anchor = 0.5 * sum(shape.reward_range) if shape.reward_range else 0.0  # single precision is kept for the rest
        self.extent = np.tile(np.array(extent, dtype=np.float64), (replications, 1))
        self.diverged = np.full(replications, -1, np.int64)
        self._level, self._shape = level, shape
        self._paid_apart = 0.0 if inside else anchor
        self._follow = specialise(ambiguity.divergence, updates.follow)
        numbers = [schedule.resolve(setting) for schedule in steps]
        self._words = (*level[:4], shape.discount, inside, shape.can_end, shape.reward_range is None, by_visits, anchor)
        self._numbers = numbers
        self.q_steps, self.by_visits = numbers[0], by_visits
        self.start, self.touring = start, touring

    def arguments(self, first: int) -> tuple[Any, ...]:
        """What the compiled update takes before the transitions."""
        tables = (*self.tables.values(), self._shape.state_ptr)
        steps = (*self._numbers, *map(_tabulated, self._numbers))
        return (self._words, steps, first, self.start, self._level.numbers, tables, self.extent, self.diverged)

    def absorb(self, first: int, experience: Experience) -> None:
        """Learn from transitions in order."""
        self._follow(*self.arguments(first), *experience)

    def advance(self, source: Source, first: int, count: int) -> int:
        """Take `count` steps; where the policy follows Q, the source acts and learns in turn."""
        if source.explorer is None:
            return super().advance(source, first, count)
        source.explorer(count, self.arguments(first), self._follow)
        return count

    def q(self) -> FloatArray:
        """The averaged Q, (replications * pairs,)."""
        return self.tables["average"]

    def iterate(self) -> FloatArray:
        """The current Q."""
        return self.tables["q"]

    def eta(self, span: slice) -> FloatArray:
        """discount * eta in normal form of some cells; NaN where no dual variable is learned."""
        average = self.tables["average"][span]
        if not len(self.tables["offset"]):
            return np.full(len(average), math.nan)
        return average - self._paid_apart + self.tables["offset"][span]


class _Printed(Tabled):
    """What the two printed algorithms share: the tables, the projections, and TV and the limits learned directly."""

    def __init__(self, ambiguity: Ambiguity, shape: Shape, replications: int, *, inside: bool) -> None:
        if shape.reward_range is None:
            _checks.fail("the printed algorithms must know the rewards: give reward_range=(smallest, largest)")
        self._level = level = level_of(ambiguity, shape)
        _checks.must(
            level.mode != CONSTRAINED,
            f"the paper's algorithms are for a penalty: got {ambiguity!r}; the default learner takes a radius",
        )
        self._shape = shape
        cells = replications * shape.n_pairs
        robust = level.mode != NOMINAL
        guarded = robust and (
            level.kind == TOTAL_VARIATION or level.edge < math.inf or bool(np.any(level.numbers == 0))
        )
        self.tables: Tables = {
            "q": np.full(cells, shape.value_range[1]),
            "eta": np.zeros(cells),
            "visits": np.zeros(cells, np.uint32),
            "greedy": np.tile(np.asarray(shape.state_ptr[:-1], dtype=np.int32), replications),
            "lowest": np.full(cells if guarded else 0, -1, np.int32),
            "lowest_reward": np.zeros(cells if guarded and inside else 0),
        }
        self.diverged = np.full(replications, -1, np.int64)
        self.extent = np.tile(np.array(shape.reward_range), (replications, 1))
        self._interval = _paper_interval(ambiguity, shape, inside)
        self.tables["eta"][:] = min(max(0.0, self._interval[0]), self._interval[1])

    def q(self) -> FloatArray:
        """The iterate, (replications * pairs,)."""
        return self.tables["q"]

    def iterate(self) -> FloatArray:
        """The same: nothing is averaged."""
        return self.tables["q"]

    def eta(self, span: slice) -> FloatArray:
        """discount * eta in normal form of some cells."""
        return self.tables["eta"][span]


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


class PrintedFollower(_Printed, _Follower):
    """Algorithm 2 as printed (updates.follow_as_printed), with the readings of its repairs unless `literal`."""

    def __init__(
        self,
        ambiguity: Ambiguity,
        shape: Shape,
        replications: int,
        steps: tuple[Numbers, Numbers],
        *,
        by_visits: bool,
        inside: bool,
        literal: bool,
    ) -> None:
        super().__init__(ambiguity, shape, replications, inside=inside)
        self.touring, self.q_steps, self.by_visits = False, steps[0], by_visits
        self._follow = specialise(ambiguity.divergence, updates.follow_as_printed)
        self._arguments = (
            (*self._level[:4], shape.discount, inside, literal, by_visits),
            (*shape.value_range, *self._interval),
            steps,
        )

    def absorb(self, first: int, experience: Experience) -> None:
        """Learn from transitions in order."""
        tables = (*self.tables.values(), self._shape.state_ptr)
        self._follow(*self._arguments, first, self._level.numbers, tables, self.diverged, *experience)


class PrintedSweeper(_Printed):
    """Algorithm 1 as printed (updates.refine_as_printed): V is frozen for an outer iteration over all pairs."""

    def __init__(
        self,
        ambiguity: Ambiguity,
        shape: Shape,
        replications: int,
        steps: tuple[Numbers, Numbers],
        *,
        inner_steps: int,
        fresh: bool,
        inside: bool,
    ) -> None:
        super().__init__(ambiguity, shape, replications, inside=inside)
        (self.q_steps, eta_steps), self.by_visits = steps, False
        self._alphas = np.array([eta_steps._replace(per_weight=0.0).at(n) for n in range(inner_steps)])
        self._per_weight, self._fresh = eta_steps.per_weight, fresh
        self._refine = specialise(ambiguity.divergence, updates.refine_as_printed)
        self._v = np.zeros((replications, shape.n_states + 1))
        self._rewards = np.empty((inner_steps + 1, replications))
        self._following = np.empty((inner_steps + 1, replications), np.int32)
        self._inside = inside

    def advance(self, source: Source, first: int, count: int) -> int:
        """Take `count` outer iterations."""
        for iteration in range(first, first + count):
            self._sweep(source, iteration)
        return count

    def _sweep(self, source: Source, iteration: int) -> None:
        shape, draws = self._shape, len(self._alphas) + 1
        q = self.tables["q"].reshape(len(self._v), shape.n_pairs)
        best = np.maximum.reduceat(q, shape.state_ptr[:-1], axis=1)
        np.clip(best, *shape.value_range, out=self._v[:, :-1])
        tables = tuple(self.tables[name] for name in ("q", "eta", "lowest", "lowest_reward"))
        arguments = (
            (*self._level[:4], shape.discount, self._inside),
            self._interval,
            self.q_steps.at(iteration),
            self._alphas,
            self._per_weight,
            self._fresh,
            iteration * draws,
            self._level.numbers,
            self._v,
            tables,
        )
        first = iteration * shape.n_pairs * draws
        if source.sweeper is not None:
            source.sweeper(first, arguments, self._rewards, self._following)
        else:
            for pair in range(shape.n_pairs):
                source.consult(first + pair * draws, pair, self._rewards, self._following)
                self._refine(*arguments, pair, self._rewards, self._following)
        self.tables["visits"] += np.uint32(draws)
        broken = ~np.isfinite(q).all(axis=1) & (self.diverged < 0)
        self.diverged[broken] = iteration + 1
