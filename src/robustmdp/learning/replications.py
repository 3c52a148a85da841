"""Replications: every learner with every seed, on all cores or on an engine, to the same bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp.learning.running import begin, solutions_of, warn_unvisited_pairs
from robustmdp.learning.runs import DeferredInterrupt, Learner, Progress, Run
from robustmdp.learning.sources import is_drawn_by_core
from robustmdp.operators.threads import thread_count
from robustmdp.result import Solution

_REPLICATIONS_AT_ONCE = 32
Item = tuple[int, Sequence[int]]


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
    return replicate(learners, world, seeds, targets, progress, engine, threads, **budget, **where)


def replicate(
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
