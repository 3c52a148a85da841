"""What every learner can do: run once, or with many seeds, on all cores or on an engine, to the same bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp.learning.certificates import Certified
from robustmdp.learning.running import begin, finish, resume, solutions_of, warn_unvisited_pairs
from robustmdp.learning.runs import DeferredInterrupt, Learner, Progress, Run, Snapshot
from robustmdp.learning.settings import register
from robustmdp.learning.sources import is_drawn_by_core
from robustmdp.operators.threads import thread_count
from robustmdp.result import Solution

_REPLICATIONS_AT_ONCE = 32
Item = tuple[int, Sequence[int]]


class Runnable(Learner):
    """A learner is a frozen record of settings; worlds and seeds come in as arguments."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        register(cls)

    def run(
        self,
        world: Any,
        steps: int | None = None,
        *,
        samples: int | None = None,
        seed: int = 0,
        reference: npt.ArrayLike | None = None,
        confidence: float | None = None,
        certify_share: float = 0.5,
        record_every: int | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int | None = None,
        progress: Callable[[Progress], Any] | None = None,
        callback: Callable[[int, Snapshot], Any] | None = None,
        discount: float | None = None,
        reward_range: tuple[float, float] | None = None,
        start: int | str | None = None,
    ) -> Solution:
        """Learn in a world; the same seed gives the same bits.

        Parameters
        ----------
        world : MDP, Simulator, Trajectory or Gymnasium environment
        steps, samples : int
            Give one. A step is a round over all pairs or, on a trajectory, a transition. A log needs neither.
        reference : (S, A) Q, optional
            The trace then holds the error max |Q - reference|; otherwise an estimate of the Bellman residual.
        confidence : float, optional
            Bounds `lower` and `upper` that hold with this probability, in any world: see docs/certificates.md. The last
            `certify_share` of the steps no longer teaches but certifies; needs the range of rewards.
        record_every : int, optional
            Steps between entries of the trace.
        checkpoint, checkpoint_every : path and steps
            Where and how often to save; `robustmdp.resume(path)` goes on from there. By default ten times a run.
        progress : callable, optional
            Called several times a second with a `Progress`; returning True stops the run.
        callback : callable (step, state), optional
            Called at each record, every `record_every` steps, with what is known then: `state.q`, `state.iterate` and
            `state.visits`, (S, A) each. Returning True stops the run.
        discount, reward_range : for worlds that do not know their own (default discount 0.95)
        start : int or str
            The first state of an episode in an MDP, by number or name, or in a Simulator; 0 by default.
        """
        where = {"discount": discount, "reward_range": reward_range, "start": start}
        learner = self._certified(confidence, certify_share)
        task = begin(learner, world, [check_seed(seed)], steps, samples, reference, record_every, **where)
        return finish(task, checkpoint, checkpoint_every, progress, callback)

    def run_many(
        self,
        world: Any,
        steps: int | None = None,
        *,
        samples: int | None = None,
        seeds: int | Sequence[int],
        reference: npt.ArrayLike | None = None,
        confidence: float | None = None,
        certify_share: float = 0.5,
        record_every: int | None = None,
        progress: Callable[[Progress], Any] | None = None,
        engine: Any = None,
        threads: int | None = None,
        discount: float | None = None,
        reward_range: tuple[float, float] | None = None,
        start: int | str | None = None,
    ) -> list[Solution]:
        """One `run` per seed, on all cores; equal to the bit to runs one by one, whatever the number of threads.

        `seeds` is a list, or a number n for 0..n-1. Replications in an MDP, or in a Simulator whose function is a
        `scipy.LowLevelCallable`, share compiled calls. An `engine` with `map(task, items)` runs the groups elsewhere.
        """
        where = {"discount": discount, "reward_range": reward_range, "start": start}
        budget = {"steps": steps, "samples": samples, "record_every": record_every}
        learners = [self._certified(confidence, certify_share)]
        (solutions,) = _replicate(learners, world, seeds, [reference], progress, engine, threads, **budget, **where)
        return solutions

    def resume(self, path: str | Path, world: Any = None, **options: Any) -> Solution:
        """`robustmdp.resume`, refusing a checkpoint of other settings; whether it certifies, the checkpoint knows."""
        return resume(path, world, learner=self, **options)

    def _certified(self, confidence: float | None, share: float) -> Learner:
        return self if confidence is None else Certified(self, confidence, share)


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
    start: int | str | None = None,
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
    _types.check_arguments(run_many, locals())
    _checks.must(len(learners) > 0, "learners must hold at least one learner: got none")
    for learner in learners:
        if not isinstance(learner, Learner):
            _checks.refuse_type("learners", "learners such as GenerativeQLearning(...)", learner)
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
    listed, in_core, workers = check_seeds(seeds), is_drawn_by_core(world), thread_count(threads)
    apart = not in_core or any(learner.runs_one_by_one(world) for learner in learners)
    size = 1 if apart else min(_REPLICATIONS_AT_ONCE, math.ceil(len(listed) / workers))
    groups = [listed[at : at + size] for at in range(0, len(listed), size)]
    items = [(index, group) for index in range(len(learners)) for group in groups]
    group = partial(_run_group, learners, world, references, options, progress)
    if engine is None:
        with DeferredInterrupt() as interrupt:
            runs = _run_locally(partial(group, interrupt), items, workers if in_core else 1)
    else:
        begin(learners[0], world, listed[:1], reference=references[0], **options)  # bad arguments are told here
        # Not deferred: elsewhere the request would not be seen, so Ctrl-C must stop the engine itself.
        runs = list(engine.map(partial(group, DeferredInterrupt()), items))
    solutions: list[list[Solution]] = [[] for _ in learners]
    for (index, _), run in zip(items, runs, strict=True):
        solutions[index] += solutions_of(run)
    warn_unvisited_pairs([each for found in solutions for each in found], runs[0].source.shape, 4)
    return solutions


def _run_group(
    learners: Sequence[Any],
    world: Any,
    references: Sequence[Any],
    options: Mapping[str, Any],
    progress: Callable[[Progress], Any] | None,
    interrupt: DeferredInterrupt,
    item: Item,
) -> Run:
    """One learner with some seeds."""
    index, seeds = item
    run = begin(learners[index], world, seeds, reference=references[index], **options)
    run.run_to_end(interrupt, report=progress)
    return run


def _run_locally(group: Callable[[Item], Run], items: Sequence[Item], workers: int) -> list[Run]:
    """On threads; worlds of Python would only wait for each other."""
    if workers == 1:
        return [group(item) for item in items]
    with ThreadPoolExecutor(workers, thread_name_prefix="robustmdp-learning") as pool:
        return list(pool.map(group, items))


def check_seeds(seeds: Any) -> list[int]:
    """A list of seeds; a number n is 0..n-1."""
    if isinstance(seeds, int | np.integer) and not isinstance(seeds, bool):
        seeds = range(seeds)
    if not hasattr(seeds, "__iter__"):
        _checks.refuse_type("seeds", "a number or a list of seeds", seeds)
    listed = [check_seed(seed) for seed in seeds]
    _checks.must(len(listed) > 0, "seeds must hold at least one seed: got none")
    return listed


def check_seed(seed: Any) -> int:
    """One seed, checked."""
    if not _checks.is_whole(seed):
        _checks.refuse_type("a seed", "a whole number", seed)
    _checks.must(bool(seed >= 0), f"a seed must be at least 0: got {seed}")
    return int(seed)
