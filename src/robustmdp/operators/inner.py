"""Nature's problems in a model, solved on several cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core
from robustmdp._arrays import FloatArray, IntArray
from robustmdp.ambiguity import Ambiguity
from robustmdp.models import MDP
from robustmdp.operators import threads

_WORTH_A_THREAD = 20_000  # transitions per thread below which starting it costs more than it saves


class Bracket(NamedTuple):
    """Certified lower <= T v <= upper per state, the same per pair, and the greedy policy of the lower one.

    The policy is (S,) actions, or (S, A) probabilities of an operator whose policies are random; there q is what the
    pairs earn under nature's answer, without a bound.
    """

    lower: FloatArray
    upper: FloatArray
    q_lower: FloatArray
    q_upper: FloatArray
    policy: npt.NDArray[Any]


class Answer(NamedTuple):
    """Nature's rows of some pairs, row i at starts[i]:starts[i+1]; what they cost and their multipliers.

    `successors` are the states of `data` where nature may add some, else None.
    """

    data: FloatArray
    penalty: FloatArray
    eta: FloatArray
    starts: IntArray
    successors: npt.NDArray[np.int32] | None


class InnerProblems:
    """Nature's problems at some outcomes; each remembers in `memory` where it ended, for the next solve to start from.

    `best` (S,) are the pairs that the last sweep or bracket chose.
    """

    def __init__(self, mdp: MDP, ambiguity: Ambiguity, kernel: Any, wanted_threads: int | None) -> None:
        self.mdp, self.ambiguity, self.kernel = mdp, ambiguity, kernel
        self.memory = np.full(mdp.n_pairs * kernel.memory_per_row, np.nan)
        self.outcome = np.zeros(mdp.n_columns + 1)
        self.best = np.empty(mdp.n_states, dtype=np.int64)
        self._workers = max(1, min(threads.thread_count(wanted_threads), mdp.nnz // _WORTH_A_THREAD))
        # Several ranges a worker, so that one that is held up does not hold up the sweep.
        self._parts = 1 if self._workers == 1 else max(1, min(4 * self._workers, 2 * mdp.nnz // _WORTH_A_THREAD))
        self.state_ranges, self.pair_ranges = self.split(mdp.indptr[mdp.state_ptr]), self.split(mdp.indptr)
        self.model = self.model_with(mdp.rewards, mdp.rewards_on_successors)
        self.model.sign = ambiguity.sign

    def model_with(self, rewards: FloatArray, rewards_on_successors: bool) -> Any:
        """The compiled model with these rewards."""
        mdp = self.mdp
        return _core.Model(
            mdp.indptr, mdp.indices, mdp.probabilities, rewards, mdp.state_ptr, mdp.longest_row, rewards_on_successors,
            mdp.n_columns,
        )  # fmt: skip

    def run(self, task: Callable[[int, int], None], ranges: list[tuple[int, int]]) -> None:
        """Call task(lo, hi) for every range, on all cores."""
        threads.run(task, ranges, self._workers)

    def split(self, work: IntArray) -> list[tuple[int, int]]:
        """Ranges of about equal work, which is cumulative, (n + 1,)."""
        return threads.split(work, self._parts)

    def set_values(self, v: npt.ArrayLike) -> None:
        """Outcomes of values v."""
        values = np.asarray(v, dtype=np.float64)
        _checks.must(
            values.shape == (self.mdp.n_columns,), f"v must have shape ({self.mdp.n_columns},): got {values.shape}"
        )
        np.multiply(values, self.ambiguity.sign * self.mdp.discount, out=self.outcome[:-1])
