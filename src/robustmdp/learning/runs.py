"""Some replications of one learner in one world: how far they are, and how they get on."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import FloatArray, IntArray
from robustmdp.ambiguity import Ambiguity
from robustmdp.learning.sources import ModelSource, Shape, Source
from robustmdp.learning.tables import LearnerState
from robustmdp.models import MDP
from robustmdp.operators import RobustBellman

UNLIMITED = 1 << 62  # steps of a run that only the end of a log will stop
WATCHED = 4096  # pairs whose changes estimate the Bellman residual where no model is known
_SECONDS_PER_PIECE = 0.25  # how long a run may go without checking for Ctrl-C or reporting progress


class Progress(NamedTuple):
    """How far a run is; `seconds_left` is NaN until a rate is known."""

    step: int
    steps: int
    samples: int
    rate: float
    seconds_left: float
    error: float


class DeferredInterrupt:
    """Ctrl-C takes effect between pieces, when world and tables agree; a second one takes effect at once.

    Both end a run with what it has. Where this is not entered, KeyboardInterrupt ends the loop over runs as well.
    """

    def __init__(self) -> None:
        self.requested = self.entered = False
        self._before: Any = None

    def __enter__(self) -> DeferredInterrupt:
        self.entered = True
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: Any) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def __exit__(self, *problem: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)


class Record(NamedTuple):
    """An entry of the trace; samples and errors (or residuals) per replication."""

    step: int
    samples: IntArray
    errors: FloatArray


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a learner knows at a step, for a callback: tables (S, A), made when asked for."""

    shape: Shape
    state: LearnerState

    @property
    def q(self) -> FloatArray:
        """What would be returned now; -inf where an action is unavailable."""
        return self.shape.table(self.state.q().copy(), -math.inf)

    @property
    def iterate(self) -> FloatArray:
        """The current Q, which `q` averages."""
        return self.shape.table(self.state.iterate().copy(), -math.inf)

    @property
    def visits(self) -> npt.NDArray[np.uint32]:
        """How often each pair was drawn."""
        return self.shape.table(self.state.tables["visits"].copy(), 0)


class Learner:
    """What a run asks of a learner.

    Attributes
    ----------
    behaviour : who chooses the actions
    generative : does a step visit every pair?
    """

    ambiguity: Ambiguity
    behaviour: Any = None
    generative: bool = True

    def runs_one_by_one(self, world: Any) -> bool:
        """Does each replication need a run of its own, because its steps depend on what it sees?"""
        return False

    def samples_per_step(self, shape: Shape) -> int:
        """How many transitions the first step takes."""
        raise NotImplementedError

    def samples_after(self, shape: Shape, steps: int) -> int:
        """How many transitions so many steps take."""
        return steps * self.samples_per_step(shape)

    def steps_within(self, shape: Shape, samples: int) -> int:
        """How many steps so many transitions suffice for."""
        return samples // self.samples_per_step(shape)

    def initial_state(self, source: Source, replications: int, steps: int) -> LearnerState:
        """Fresh tables."""
        raise NotImplementedError


@dataclass
class Run:
    """Some replications of one learner in one world, from first step to last."""

    learner: Learner
    source: Source
    seeds: list[int]
    steps: int
    horizon: int  # the steps, or an estimate of them where only the end of a log will tell
    reference: FloatArray | None
    record_every: int
    start: int | None
    watched: tuple[FloatArray, npt.NDArray[Any]] | None = None
    state: LearnerState = field(init=False)
    done: int = 0
    trace: list[Record] = field(default_factory=list)
    code: str = "step_limit"
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = self.learner.initial_state(self.source, len(self.seeds), self.horizon)

    def samples(self, index: int) -> int:
        """Transitions that a replication has drawn so far."""
        drawn = self.state.tables.get("drawn")  # where steps take more or fewer of them
        return self.learner.samples_after(self.source.shape, self.done) if drawn is None else int(drawn[index])

    def run_to_end(
        self,
        interrupt: DeferredInterrupt,
        save: Callable[[Run], None] | None = None,
        save_every: int = 0,
        report: Callable[[Progress], Any] | None = None,
        callback: Callable[[int, Snapshot], Any] | None = None,
    ) -> None:
        """Advance to the last step, recording and saving on the way; a deferred Ctrl-C leaves what is done."""
        began, piece = (time.monotonic(), self.done, self.samples(0)), 1
        try:
            while self.done < self.steps and not np.all(self.state.diverged >= 0):
                stops = [self.steps, _next_multiple(self.done, self.record_every), self.done + piece]
                if save is not None:
                    stops.append(_next_multiple(self.done, save_every))
                wanted = min(stops) - self.done
                tick = time.monotonic()
                taken = self.state.advance(self.source, self.done, wanted)
                self.done += taken
                piece = _next_piece(piece, time.monotonic() - tick)
                ended, stopped = taken < wanted, False
                if self.done % self.record_every == 0 or self.done == self.steps or ended:
                    self._record()
                    if callback is not None:
                        stopped = callback(self.done, Snapshot(self.source.shape, self.state)) is True
                if ended:
                    break
                if save is not None and self.done % save_every == 0 and self.done < self.steps:
                    save(self)
                stopped = stopped or interrupt.requested
                if stopped or (report is not None and report(self._progress(*began)) is True):
                    self.code = "interrupted"
                    break
        except KeyboardInterrupt:  # in the midst of a piece: what is on disk is sounder
            if not interrupt.entered:
                raise
            self.code = "interrupted"
            return
        if save is not None:
            save(self)

    def _progress(self, began: float, first: int, drawn: int) -> Progress:
        elapsed = time.monotonic() - began
        pace = (self.done - first) / elapsed if elapsed > 0 else math.nan
        error = float(np.mean(self.trace[-1].errors)) if self.trace else math.nan
        rate = (self.samples(0) - drawn) / elapsed * len(self.seeds) if elapsed > 0 else math.nan
        expected = self.horizon if self.steps == UNLIMITED else self.steps
        left = max(expected - self.done, 0) / pace if pace > 0 else math.nan
        return Progress(self.done, expected, self.samples(0), rate, left, error)

    def _record(self) -> None:
        if self.trace and self.trace[-1].step == self.done:
            return
        q = self.state.q().reshape(len(self.seeds), -1)
        with np.errstate(invalid="ignore", over="ignore"):  # a diverged replication ends with what it was
            if self.reference is None:
                errors = self._residuals(q)
            else:  # over what it knows anything of
                errors = np.where(q == -math.inf, 0.0, np.abs(q - self.reference)).max(axis=1)
        samples = np.array([self.samples(index) for index in range(len(self.seeds))])
        self.trace.append(Record(self.done, samples, errors))

    def _residuals(self, q: FloatArray) -> FloatArray:
        """max |TQ - Q| where the model is known; otherwise the mean change per step size of some pairs, which is it."""
        if isinstance(self.source, ModelSource):
            return np.array([self._residual(self.source.mdp, row) for row in q])
        chosen = np.linspace(0, q.shape[1] - 1, min(WATCHED, q.shape[1])).astype(np.int64)
        now = self.state.iterate().reshape(len(self.seeds), -1)[:, chosen].copy()
        visits = self.state.tables["visits"].reshape(len(self.seeds), -1)[:, chosen].astype(np.int64)
        before, self.watched = self.watched, (now, visits)
        if before is None:
            return np.full(len(self.seeds), math.nan)
        with np.errstate(invalid="ignore", divide="ignore"):  # pairs not visited since then, or never
            sizes = self.state.q_steps.at(0.5 * (visits + before[1]) if self.state.by_visits else float(self.done))
            pace = np.abs(now - before[0]) / ((visits - before[1]) * sizes)
        largest: FloatArray = np.where(np.isfinite(pace), pace, 0.0).max(axis=1)
        return largest

    def _residual(self, mdp: MDP, q: FloatArray) -> float:
        if not np.isfinite(q).all():
            return math.nan
        # A fresh one each time: its memory shows in the last bits.
        bellman = RobustBellman(mdp, self.learner.ambiguity, threads=1)
        mixture = self.source.shape.mixture
        if mixture is not None:
            v = np.add.reduceat(mixture * q, mdp.state_ptr[:-1])
            return float(np.abs(bellman.q_pairs(v) - q).max())
        return float(np.abs(mdp.pairs(bellman.apply_q(mdp.table(q))) - q).max())


def _next_piece(piece: int, seconds: float) -> int:
    """Pieces double until they last; their size changes nothing but how often a run checks for signals."""
    if seconds < 0.5 * _SECONDS_PER_PIECE:
        return piece * 2
    return max(1, piece // 2) if seconds > _SECONDS_PER_PIECE else piece


def _next_multiple(done: int, every: int) -> int:
    return (done // every + 1) * every
