"""The one loop of all learners: advance, record, save, report, and make a Solution of what was learned."""

from __future__ import annotations

import math
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
from robustmdp.operators.threads import thread_count
from robustmdp.result import Solution

FloatArray = npt.NDArray[np.float64]
_SECONDS_PER_PIECE = 0.25  # how long a run may be deaf to Ctrl-C and silent about its progress
_REPLICATIONS_AT_ONCE = 32
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
                ended = taken < wanted
                if self.done % self.record_every == 0 or self.done == self.steps or ended:
                    self._record()
                if ended:
                    break
                if save is not None and self.done % save_every == 0 and self.done < self.steps:
                    save(self)
                if patience.asked or (report is not None and report(self._progress(began, first)) is True):
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
    source = source_of(world, learner.ambiguity, learner.behaviour, seeds, **where)
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


def _finish(
    task: Run,
    checkpoint: str | Path | None,
    checkpoint_every: int | None,
    progress: Callable[[Progress], Any] | None,
) -> Solution:
    every = max(1, task.steps // 10) if checkpoint_every is None else checkpoint_every
    _checks.positive_integer("checkpoint_every", every)
    save = None if checkpoint is None else checkpoints.Saver(task, Path(checkpoint), every)
    with Patience() as patience:
        task.complete(patience, save, every, progress)
    solutions = task.solutions()
    warn_of_the_unvisited(solutions, task.source.shape, 4)
    return solutions[0]


def resume(
    path: str | Path,
    world: Any = None,
    *,
    learner: Learner | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int | None = None,
    progress: Callable[[Progress], Any] | None = None,
) -> Solution:
    """Go on with a run from its checkpoint, to the same bits as if it had never stopped.

    An MDP is kept in the checkpoint; any other world must be given again. With `learner`, a checkpoint of other
    settings is refused. Further checkpoints go to the same file.
    """
    saved = checkpoints.read(Path(path))
    restored = checkpoints.learner_of(saved)
    if learner is not None:
        checkpoints.check_same(learner, restored, path)
    if world is None:
        world = checkpoints.world_of(saved, path)
    head = saved.head
    where = {"discount": head.discount, "reward_range": head.reward_range, "start": head.start}
    task = begin(restored, world, [head.seed], head.horizon, None, None, head.record_every, **where)
    task.steps = head.steps
    checkpoints.restore(task, saved, path)
    every = head.every if checkpoint_every is None else checkpoint_every
    return _finish(task, checkpoint or path, every, progress)


def _seeds(seeds: Any) -> list[int]:
    if isinstance(seeds, int | np.integer) and not isinstance(seeds, bool):
        seeds = range(seeds)
    if not hasattr(seeds, "__iter__"):
        raise TypeError(f"seeds must be a number or a list of seeds: got {seeds!r}")
    listed = [_seed(seed) for seed in seeds]
    _checks.must(len(listed) > 0, "seeds must hold at least one seed: got none")
    return listed


def _seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise TypeError(f"a seed must be a whole number: got {seed!r}")
    _checks.must(bool(seed >= 0), f"a seed must be at least 0: got {seed}")
    return int(seed)


def run_many(
    learners: Sequence[Any],
    world: Any,
    steps: int | None = None,
    *,
    samples: int | None = None,
    seeds: int | Sequence[int],
    references: Sequence[npt.ArrayLike] | None = None,
    record_every: int | None = None,
    progress: Callable[[Progress], Any] | None = None,
    engine: Any = None,
    threads: int | None = None,
    discount: float | None = None,
    reward_range: tuple[float, float] | None = None,
    start: int | None = None,
) -> list[list[Solution]]:
    """Replications over settings and seeds: one list of solutions per learner, one solution per seed.

    The other arguments are those of a learner's own `run_many`; `references` has one Q per learner. All cores work
    until the last replication of the last learner is done.

    >>> from robustmdp import ChiSquare, GenerativeQLearning, Penalized, problems
    >>> learners = [GenerativeQLearning(Penalized(ChiSquare(), weight)) for weight in (0.5, 10.0)]
    >>> cautious, bold = run_many(learners, problems.chain(), 500, seeds=3)
    >>> len(cautious), bool(cautious[0].q.max() < bold[0].q.max())
    (3, True)
    """
    _checks.must(len(learners) > 0, "learners must hold at least one learner: got none")
    targets = [None] * len(learners) if references is None else list(references)
    _checks.must(
        len(targets) == len(learners),
        f"references must hold one Q per learner, {len(learners)} of them: got {len(targets)}",
    )
    where = {"discount": discount, "reward_range": reward_range, "start": start}
    budget = {"steps": steps, "samples": samples, "record_every": record_every}
    return _replicate(learners, world, seeds, targets, progress, engine, threads, **budget, **where)


def _replicate(
    learners: Sequence[Any],
    world: Any,
    seeds: Any,
    references: Sequence[Any],
    progress: Callable[[Progress], Any] | None,
    engine: Any,
    threads: int | None,
    **options: Any,
) -> list[list[Solution]]:
    """Every learner with every seed, in groups that share calls: whatever their size, the numbers are the same."""
    listed, in_model, workers = _seeds(seeds), isinstance(world, MDP), thread_count(threads)
    size = min(_REPLICATIONS_AT_ONCE, math.ceil(len(listed) / workers)) if in_model else 1
    groups = [listed[at : at + size] for at in range(0, len(listed), size)]
    items = [(index, group) for index in range(len(learners)) for group in groups]
    with Patience() as patience:

        def task(item: tuple[int, Sequence[int]]) -> Run:
            index, group = item
            work = begin(learners[index], world, group, reference=references[index], **options)
            work.complete(patience, report=progress)
            return work

        if engine is not None:
            runs = list(engine.map(task, items))
        elif workers == 1 or not in_model:  # Python worlds would only wait for each other
            runs = [task(item) for item in items]
        else:
            with ThreadPoolExecutor(workers, thread_name_prefix="robustmdp-learning") as pool:
                runs = list(pool.map(task, items))
    solutions: list[list[Solution]] = [[] for _ in learners]
    for (index, _), run in zip(items, runs, strict=True):
        solutions[index] += run.solutions()
    warn_of_the_unvisited([each for found in solutions for each in found], runs[0].source.shape, 4)
    return solutions


def check_burn_in(burn_in: Any) -> None:
    """A part of a run."""
    share = _checks.finite_number("burn_in", burn_in)
    _checks.must(0.0 <= share < 1.0, f"burn_in must lie in [0, 1): got {share:g}")


class Runnable:
    """What every learner can do. A learner is a frozen record; worlds and seeds come in as arguments."""

    def run(
        self,
        world: Any,
        steps: int | None = None,
        *,
        samples: int | None = None,
        seed: int = 0,
        reference: npt.ArrayLike | None = None,
        record_every: int | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int | None = None,
        progress: Callable[[Progress], Any] | None = None,
        discount: float | None = None,
        reward_range: tuple[float, float] | None = None,
        start: int | None = None,
    ) -> Solution:
        """Learn in a world; the same seed gives the same bits.

        Parameters
        ----------
        world : MDP, Simulator, Trajectory or Gymnasium environment
        steps, samples : int
            Give one. A step is a round over all pairs or, on a trajectory, a transition. A log needs neither.
        reference : (S, A) Q, optional
            The trace then holds the error max |Q - reference|; otherwise an estimate of the Bellman residual.
        record_every : int, optional
            Steps between entries of the trace.
        checkpoint, checkpoint_every : path and steps
            Where and how often to save; `robustmdp.resume(path)` goes on from there. By default ten times a run.
        progress : callable, optional
            Called several times a second with a `Progress`; returning True stops the run.
        discount, reward_range : for worlds that do not know their own (default discount 0.95)
        start : int
            The first state of an episode in an MDP or a Simulator; 0 by default.
        """
        where = {"discount": discount, "reward_range": reward_range, "start": start}
        task = begin(self._learner, world, [_seed(seed)], steps, samples, reference, record_every, **where)
        return _finish(task, checkpoint, checkpoint_every, progress)

    def run_many(
        self,
        world: Any,
        steps: int | None = None,
        *,
        samples: int | None = None,
        seeds: int | Sequence[int],
        reference: npt.ArrayLike | None = None,
        record_every: int | None = None,
        progress: Callable[[Progress], Any] | None = None,
        engine: Any = None,
        threads: int | None = None,
        discount: float | None = None,
        reward_range: tuple[float, float] | None = None,
        start: int | None = None,
    ) -> list[Solution]:
        """One `run` per seed, on all cores; equal to the bit to runs one by one, whatever the number of threads.

        `seeds` is a list, or a number n for 0..n-1. Replications in an MDP share compiled calls. An `engine` with
        `map(task, items)` runs the groups elsewhere.
        """
        where = {"discount": discount, "reward_range": reward_range, "start": start}
        budget = {"steps": steps, "samples": samples, "record_every": record_every}
        (solutions,) = _replicate(
            [self._learner], world, seeds, [reference], progress, engine, threads, **budget, **where
        )
        return solutions

    def resume(self, path: str | Path, world: Any = None, **options: Any) -> Solution:
        """`robustmdp.resume`, refusing a checkpoint of other settings."""
        return resume(path, world, learner=self._learner, **options)

    @property
    def _learner(self) -> Any:
        return self
