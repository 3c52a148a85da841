"""What every learner can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from robustmdp.learning.certificates import Certified
from robustmdp.learning.replications import check_seed, replicate
from robustmdp.learning.running import begin, finish, resume
from robustmdp.learning.runs import Learner, Progress, Snapshot
from robustmdp.learning.settings import register
from robustmdp.result import Solution


class Runnable(Learner):
    """A learner that users run."""

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
        (solutions,) = replicate(learners, world, seeds, [reference], progress, engine, threads, **budget, **where)
        return solutions

    def resume(self, path: str | Path, world: Any = None, **options: Any) -> Solution:
        """`robustmdp.resume`, refusing a checkpoint of other settings; whether it certifies, the checkpoint knows."""
        return resume(path, world, learner=self, **options)

    def _certified(self, confidence: float | None, share: float) -> Learner:
        return self if confidence is None else Certified(self, confidence, share)
