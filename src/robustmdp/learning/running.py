"""The one loop of all learners: advance, record, save, report, and make a Solution of what was learned."""

from __future__ import annotations

import math
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.ambiguity import Ambiguity
from robustmdp.learning import checkpoints, learned
from robustmdp.learning.pupils import Pupil
from robustmdp.learning.sources import LogSource, ModelSource, OnePath, Shape, Source, source_of
from robustmdp.models import MDP
from robustmdp.operators import RobustBellman
from robustmdp.result import Solution

FloatArray = npt.NDArray[np.float64]
_SECONDS_PER_PIECE = 0.25  # how long a run may be deaf to Ctrl-C and silent about its progress
_WITHOUT_END = 1 << 62
_WATCHED = 4096  # pairs whose changes estimate the Bellman residual where no model is known


class Progress(NamedTuple):
    """How far a run is; `seconds_left` is NaN until a rate is known."""

    step: int
    steps: int
    samples: int
    rate: float
    seconds_left: float
    error: float


class Patience:
    """Ctrl-C is noted and obeyed between pieces, when world and tables agree; a second one is obeyed at once."""

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Patience:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: Any) -> None:
        del number, frame
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(self, *problem: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)


class Record(NamedTuple):
    """An entry of the trace; samples and errors (or residuals) per replication."""

    step: int
    samples: npt.NDArray[np.int64]
    errors: FloatArray


class Learner(Protocol):
    """A frozen record of settings."""

    @property
    def ambiguity(self) -> Ambiguity:
        """How far the truth may be."""

    @property
    def behaviour(self) -> Any:
        """Who chooses the actions."""

    @property
    def touring(self) -> bool:
        """Does a step visit every pair?"""

    def samples_per_step(self, shape: Shape) -> int:
        """How many transitions a step takes."""

    def pupil(self, source: Source, replications: int, steps: int) -> Pupil:
        """Fresh tables."""


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
    pupil: Pupil = field(init=False)
    done: int = 0
    trace: list[Record] = field(default_factory=list)
    code: str = "step_limit"
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pupil = self.learner.pupil(self.source, len(self.seeds), self.horizon)

    def samples(self, index: int) -> int:
        """Transitions that a replication has drawn so far."""
        drawn = self.pupil.tables.get("drawn")  # where chance decides how many
        return self.done * self.learner.samples_per_step(self.source.shape) if drawn is None else int(drawn[index])

    def complete(
        self,
        patience: Patience,
        save: Callable[[Run], None] | None = None,
        save_every: int = 0,
        report: Callable[[Progress], Any] | None = None,
        callback: Callable[[int, learned.LearnerState], Any] | None = None,
    ) -> None:
        """Advance to the last step, recording and saving on the way; Ctrl-C leaves what is done."""
        began, first, piece = time.monotonic(), self.done, 1
        try:
            while self.done < self.steps and not self._all_diverged():
                stops = [self.steps, _next_multiple(self.done, self.record_every), self.done + piece]
                if save is not None:
                    stops.append(_next_multiple(self.done, save_every))
                wanted = min(stops) - self.done
                tick = time.monotonic()
                taken = self.pupil.advance(self.source, self.done, wanted)
                self.done += taken
                piece = _next_piece(piece, time.monotonic() - tick)
                ended, stopped = taken < wanted, False
                if self.done % self.record_every == 0 or self.done == self.steps or ended:
                    self._record()
                    if callback is not None:
                        stopped = callback(self.done, learned.LearnerState(self.source.shape, self.pupil)) is True
                if ended:
                    break
                if save is not None and self.done % save_every == 0 and self.done < self.steps:
                    save(self)
                if stopped or patience.asked or (report is not None and report(self._progress(began, first)) is True):
                    self.code = "interrupted"
                    break
        except KeyboardInterrupt:  # in the midst of a piece: what is on disk is sounder
            self.code = "interrupted"
            return
        if save is not None:
            save(self)

    def _all_diverged(self) -> bool:
        return bool(np.all(self.pupil.diverged >= 0))

    def _progress(self, began: float, first: int) -> Progress:
        elapsed = time.monotonic() - began
        pace = (self.done - first) / elapsed if elapsed > 0 else math.nan
        error = float(np.mean(self.trace[-1].errors)) if self.trace else math.nan
        rate = pace * self.learner.samples_per_step(self.source.shape) * len(self.seeds)
        left = max(self.horizon - self.done, 0) / pace if pace > 0 else math.nan
        return Progress(self.done, self.horizon, self.samples(0), rate, left, error)

    def _record(self) -> None:
        if self.trace and self.trace[-1].step == self.done:
            return
        q = self.pupil.q().reshape(len(self.seeds), -1)
        with np.errstate(invalid="ignore", over="ignore"):  # a diverged replication ends with what it was
            errors = self._residuals(q) if self.reference is None else _distances(q, self.reference)
        samples = np.array([self.samples(index) for index in range(len(self.seeds))])
        self.trace.append(Record(self.done, samples, errors))

    def _residuals(self, q: FloatArray) -> FloatArray:
        """max |TQ - Q| where the model is known; otherwise the mean change per step size of some pairs, which is it."""
        if isinstance(self.source, ModelSource):
            return np.array([self._residual(self.source.mdp, row) for row in q])
        chosen = np.linspace(0, q.shape[1] - 1, min(_WATCHED, q.shape[1])).astype(np.int64)
        now = self.pupil.iterate().reshape(len(self.seeds), -1)[:, chosen].copy()
        visits = self.pupil.tables["visits"].reshape(len(self.seeds), -1)[:, chosen].astype(np.int64)
        before, self.watched = self.watched, (now, visits)
        if before is None:
            return np.full(len(self.seeds), math.nan)
        with np.errstate(invalid="ignore", divide="ignore"):  # pairs not visited since then, or never
            sizes = self.pupil.q_steps.at(0.5 * (visits + before[1]) if self.pupil.by_visits else float(self.done))
            pace = np.abs(now - before[0]) / ((visits - before[1]) * sizes)
        largest: FloatArray = np.where(np.isfinite(pace), pace, 0.0).max(axis=1)
        return largest

    def _residual(self, mdp: MDP, q: FloatArray) -> float:
        if not np.isfinite(q).all():
            return math.nan
        bellman = RobustBellman(
            mdp, self.learner.ambiguity, threads=1
        )  # a fresh one: its memory shows in the last bits
        return float(np.abs(mdp.pairs(bellman.apply_q(mdp.table(q))) - q).max())

    def solutions(self) -> list[Solution]:
        """What each replication learned."""
        return [learned.solution_of(self, index) for index in range(len(self.seeds))]


def _distances(q: FloatArray, reference: FloatArray) -> FloatArray:
    """max |Q - reference| of each replication, over what it knows anything of."""
    largest: FloatArray = np.where(q == -math.inf, 0.0, np.abs(q - reference)).max(axis=1)
    return largest


def _next_piece(piece: int, seconds: float) -> int:
    """Pieces double until they last; their size changes nothing but how often a run comes up for air."""
    if seconds < 0.5 * _SECONDS_PER_PIECE:
        return piece * 2
    return max(1, piece // 2) if seconds > _SECONDS_PER_PIECE else piece


def _next_multiple(done: int, every: int) -> int:
    return (done // every + 1) * every


def begin(
    learner: Learner,
    world: Any,
    seeds: Sequence[int],
    steps: int | None,
    samples: int | None,
    reference: npt.ArrayLike | None,
    record_every: int | None,
    **where: Any,
) -> Run:
    """A run that has not taken a step."""
    source = source_of(world, learner.behaviour, seeds, **where)
    if learner.touring and isinstance(source, OnePath):
        source.refuse()
    shape = source.shape
    wanted, horizon = _steps(learner, source, steps, samples)
    target = None if reference is None else _reference(reference, shape)
    if record_every is None:
        # Comparing costs about as much as learning from a few samples of each pair: do it rarely enough not to matter.
        pause = (1 if target is not None else 20) * shape.n_pairs // learner.samples_per_step(shape)
        record_every = max(1, math.ceil(horizon / 100), pause)
    _checks.positive_integer("record_every", record_every)
    return Run(learner, source, list(seeds), wanted, horizon, target, record_every, where.get("start"))


def _steps(learner: Learner, source: Source, steps: int | None, samples: int | None) -> tuple[int, int]:
    """How many steps at most, and how many to expect."""
    if isinstance(source, LogSource) and steps is None and samples is None:
        return (_WITHOUT_END if source.length is None else source.length), source.expected_length
    _checks.must((steps is None) != (samples is None), "give steps or samples, one of them")
    if steps is not None:
        wanted = _checks.positive_integer("steps", steps)
        return wanted, wanted
    count, per_step = _checks.positive_integer("samples", samples), learner.samples_per_step(source.shape)
    _checks.must(count >= per_step, f"samples must suffice for one step, which takes {per_step:,}: got {count:,}")
    return count // per_step, count // per_step


def _reference(reference: npt.ArrayLike, shape: Shape) -> FloatArray:
    table = np.asarray(reference, dtype=np.float64)
    wanted = shape.n_states, shape.n_actions
    _checks.must(table.shape == wanted, f"reference must be a Q of shape (S, A) = {wanted}: got {table.shape}")
    return shape.pairs(table)


def warn_of_the_unvisited(solutions: Iterable[Solution], shape: Shape, stacklevel: int) -> None:
    """Say, once, which action was never tried in a state that was acted in."""
    starts = np.asarray(shape.state_ptr[:-1])
    for solution in solutions:
        if solution.visits is None or solution.visits.all():
            continue
        visits = shape.pairs(solution.visits)
        acted = np.repeat(np.maximum.reduceat(visits, starts), np.diff(shape.state_ptr)) > 0
        missing = np.flatnonzero((visits == 0) & acted)
        if len(missing):
            others = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
            warnings.warn(
                f"the behaviour policy must visit every pair: {shape.pair_name(int(missing[0]))}{others} "
                "never came, so Q there is only a placeholder",
                RuntimeWarning,
                stacklevel=stacklevel,
            )
            return


def finish(
    task: Run,
    checkpoint: str | Path | None,
    checkpoint_every: int | None,
    progress: Callable[[Progress], Any] | None,
    callback: Callable[[int, learned.LearnerState], Any] | None = None,
) -> Solution:
    """Take the steps that are left, saving on the way, and say what was learned."""
    every = max(1, task.steps // 10) if checkpoint_every is None else checkpoint_every
    _checks.positive_integer("checkpoint_every", every)
    save = None if checkpoint is None else checkpoints.Saver(task, Path(checkpoint), every)
    with Patience() as patience:
        task.complete(patience, save, every, progress, callback)
    solutions = task.solutions()
    warn_of_the_unvisited(solutions, task.source.shape, 4)
    return solutions[0]


def resume(
    path: str | Path,
    world: Any = None,
    *,
    steps: int | None = None,
    learner: Learner | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int | None = None,
    progress: Callable[[Progress], Any] | None = None,
) -> Solution:
    """Go on with a run from its checkpoint, to the same bits as if it had never stopped.

    An MDP is kept in the checkpoint; any other world must be given again. With `learner`, a checkpoint of other
    settings is refused. Further checkpoints go to the same file.

    With `steps`, the run ends there instead, counted from its beginning, so that a finished run can be extended. The
    burn-in of the default learner stays the part of the first plan that it was: an extended run has the bits of one
    that was interrupted at its old end, not those of one that was planned to be longer.

    >>> import pathlib, tempfile
    >>> from robustmdp import ChiSquare, GenerativeQLearning, Penalized, problems
    >>> path = pathlib.Path(tempfile.mkdtemp(), "run.ckpt")
    >>> learner = GenerativeQLearning(Penalized(ChiSquare(), 1.0))
    >>> learner.run(problems.chain(), 100, checkpoint=path).steps, resume(path, steps=300).steps
    (100, 300)
    """
    saved = checkpoints.read(Path(path))
    restored, head = checkpoints.learner_of(saved), saved.head
    if learner is not None:
        checkpoints.check_same(learner, restored, path)
    last = head.steps if steps is None else _checks.positive_integer("steps", steps)
    _checks.must(last >= head.step, f"steps must be at least the {head.step} that {path} has done: got {last}")
    if world is None:
        world = checkpoints.world_of(saved)
    where = {"discount": head.discount, "reward_range": head.reward_range, "start": head.start}
    with checkpoints.refuse_for(saved.path, "fit its world"):
        task = begin(restored, world, [head.seed], head.horizon, None, None, head.record_every, **where)
    checkpoints.restore(task, saved)
    task.steps = last
    if progress is not None and last != _WITHOUT_END:
        progress = _count_to(last, progress, task)
    every = head.every if checkpoint_every is None else checkpoint_every
    return finish(task, checkpoint or path, every, progress)


def _count_to(steps: int, progress: Callable[[Progress], Any], task: Run) -> Callable[[Progress], Any]:
    """Report towards `steps`: the horizon of an extended run stays that of its first plan, for the burn-in."""
    per_step = task.learner.samples_per_step(task.source.shape)

    def report(seen: Progress) -> Any:
        left = (steps - seen.step) * per_step / seen.rate if seen.rate > 0 else math.nan
        return progress(seen._replace(steps=steps, seconds_left=left))

    return report


def check_burn_in(burn_in: Any) -> None:
    """A part of a run."""
    share = _checks.finite_number("burn_in", burn_in)
    _checks.must(0.0 <= share < 1.0, f"burn_in must lie in [0, 1): got {share:g}")
