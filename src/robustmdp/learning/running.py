"""From a world to a Solution: begin a run, finish it, go on with one that was saved."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp.learning import checkpoints
from robustmdp.learning.learned import solution_of
from robustmdp.learning.runs import UNLIMITED, DeferredInterrupt, Learner, Progress, Run, Snapshot
from robustmdp.learning.sources import LogSource, Shape, Source, source_of
from robustmdp.result import Solution


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
    if learner.generative and not source.is_generative:
        _checks.fail(
            f"a generative learner must be able to ask about any pair, but {source.name} only goes its way",
            argument="learner",
            advice=": use MarkovianQLearning, or MDP.from_gymnasium where an environment publishes its table",
        )
    shape = source.shape
    wanted, horizon = _steps(learner, source, steps, samples)
    target = None if reference is None else shape.pairs(reference, "reference")
    if record_every is None:
        # Comparing costs about as much as learning from a few samples of each pair: do it rarely enough not to matter.
        pause = (1 if target is not None else 20) * shape.n_pairs // learner.samples_per_step(shape)
        record_every = max(1, math.ceil(horizon / 100), pause)
    _checks.positive_integer("record_every", record_every)
    start: Any = where.get("start")
    start = getattr(source, "start", None) if isinstance(start, str) else start  # a name has become a number there
    return Run(learner, source, list(seeds), wanted, horizon, target, record_every, start)


def _steps(learner: Learner, source: Source, steps: int | None, samples: int | None) -> tuple[int, int]:
    """How many steps at most, and how many to expect."""
    if isinstance(source, LogSource) and steps is None and samples is None:
        return (UNLIMITED if source.length is None else source.length), source.log.expected_length
    _checks.must((steps is None) != (samples is None), "give steps or samples, one of them")
    if steps is not None:
        wanted = _checks.positive_integer("steps", steps)
        return wanted, wanted
    count, per_step = _checks.positive_integer("samples", samples), learner.samples_per_step(source.shape)
    _checks.must(count >= per_step, f"samples must suffice for one step, which takes {per_step:,}: got {count:,}")
    wanted = learner.steps_within(source.shape, count)
    return wanted, wanted


def warn_unvisited_pairs(solutions: Iterable[Solution], shape: Shape, stacklevel: int) -> None:
    """Say, once, which action was never tried in a state that was acted in."""
    starts = shape.state_ptr[:-1]
    for solution in solutions:
        if solution.visits is None or solution.visits.all():
            continue
        visits = shape.pairs(solution.visits)
        acted = np.repeat(np.maximum.reduceat(visits, starts), np.diff(shape.state_ptr)) > 0
        missing = np.flatnonzero((visits == 0) & acted)
        if len(missing):
            others = f" (and {len(missing) - 1:,} more)" if len(missing) > 1 else ""
            warnings.warn(
                f"the behaviour policy must visit every pair: {shape.pair_name(int(missing[0]))}{others} "
                "never came, so Q there is only a placeholder",
                RuntimeWarning,
                stacklevel=stacklevel,
            )
            return


def solutions_of(task: Run) -> list[Solution]:
    """What each replication learned."""
    return [solution_of(task, index) for index in range(len(task.seeds))]


def finish(
    task: Run,
    checkpoint: str | Path | None,
    checkpoint_every: int | None,
    progress: Callable[[Progress], Any] | None,
    callback: Callable[[int, Snapshot], Any] | None = None,
) -> Solution:
    """Take the steps that are left, saving on the way, and say what was learned."""
    every = max(1, task.steps // 10) if checkpoint_every is None else checkpoint_every
    _checks.positive_integer("checkpoint_every", every)
    save = None if checkpoint is None else checkpoints.Saver(task, Path(checkpoint), every)
    with DeferredInterrupt() as interrupt:
        task.run_to_end(interrupt, save, every, progress, callback)
    solutions = solutions_of(task)
    warn_unvisited_pairs(solutions, task.source.shape, 4)
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
    _types.check_arguments(resume, locals())
    saved = checkpoints.read(Path(path))
    restored, head = checkpoints.learner_of(saved), saved.head
    if learner is not None:
        checkpoints.check_same(learner, getattr(restored, "learner", restored), path)
    last = head.steps if steps is None else _checks.positive_integer("steps", steps)
    _checks.must(last >= head.step, f"steps must be at least the {head.step} that {path} has done: got {last}")
    if world is None:
        world = checkpoints.world_of(saved)
    where = {"discount": head.discount, "reward_range": head.reward_range, "start": head.start}
    with checkpoints.refuse_for(saved.path, "fit its world"):
        task = begin(restored, world, [head.seed], head.horizon, None, None, head.record_every, **where)
    checkpoints.restore(task, saved)
    task.steps = last
    every = head.every if checkpoint_every is None else checkpoint_every
    return finish(task, checkpoint or path, every, progress)
