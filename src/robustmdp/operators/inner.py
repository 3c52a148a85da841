"""Nature's problems in a model, one for each pair or one for each state, solved on several cores."""

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
from robustmdp.operators.policy import PolicyRows, policy_rows, rows_of_pairs

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


class RowProblems(InnerProblems):
    """One problem for each pair; the best policy takes one action in each state."""

    def __init__(self, mdp: MDP, ambiguity: Ambiguity, wanted_threads: int | None) -> None:
        super().__init__(mdp, ambiguity, ambiguity.kernel_for(mdp), wanted_threads)
        self.levels = self._find_levels()
        self.q = np.empty(mdp.n_pairs)  # what each pair was worth in the last sweep
        self._added = np.empty(0, dtype=np.int32)

    def _find_levels(self) -> FloatArray:
        level, name = self.ambiguity.level, self.ambiguity.level_name
        in_kernel = self.ambiguity.kernel_level(self.mdp.discount)
        if not isinstance(level, np.ndarray):
            return np.array([in_kernel])
        wrong = np.flatnonzero(np.isnan(self.mdp.pairs(level, name)))
        if wrong.size:
            s, a = self.mdp.states[wrong[0]], self.mdp.actions[wrong[0]]
            _checks.fail(f"{name} must be a number where an action is available: got nan at [{s}, {a}]")
        return self.mdp.pairs(in_kernel)

    def set_values(self, v: npt.ArrayLike) -> None:
        super().set_values(v)
        if self.ambiguity.invents:
            mdp, outcome = self.mdp, self.outcome
            self._added = self.ambiguity.added_successors(
                outcome[:-1],
                mdp.longest_row,
                highest=float(outcome[: None if mdp.can_end else -1].max()) + mdp.reward_spread,
                rewards_differ=mdp.rewards_on_successors,
            )
            self.model.add_successors(self._added)
        self.prepare(self.model, self.outcome)

    def prepare(self, model: _core.Model, outcome: FloatArray) -> None:
        """Some kernels look at outcomes before they solve rows."""
        if hasattr(self.kernel, "prepare"):
            self.run(lambda lo, hi: self.kernel.prepare(model, outcome, lo, hi), self.state_ranges)

    def sweep(self, value: FloatArray, best: IntArray) -> None:
        """value = T v and best = the pair that attains it, (S,)."""
        if not hasattr(self.kernel, "sweep"):  # kernels in Python
            self._evaluate_pairs(None, self.pair_ranges, self.q)
            _core.best_actions(self.model, self.q, value, best)
            return

        def task(lo: int, hi: int) -> None:
            self.kernel.sweep(self.model, self.levels, self.outcome, lo, hi, self.memory, self.q, value, best)

        self.run(task, self.state_ranges)

    def evaluate(self, policy: PolicyRows, value: FloatArray) -> None:
        """value = T^pi v, (S,)."""
        q = np.empty(len(policy.pairs))
        self._evaluate_pairs(policy.pairs, self.split(policy.starts), q)
        value[...] = np.add.reduceat(policy.weights * q, policy.state_ptr[:-1])

    def _evaluate_pairs(self, pairs: IntArray | None, ranges: list[tuple[int, int]], q: FloatArray) -> None:
        def task(lo: int, hi: int) -> None:
            self.kernel.values(self.model, self.levels, self.outcome, pairs, lo, hi, self.memory, q)

        self.run(task, ranges)

    def bound_pairs(
        self, model: _core.Model, outcome: FloatArray, scale: float, memory: FloatArray, *, keep: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds of what the pairs are worth, (n_pairs,) each."""
        lower, upper = np.empty(self.mdp.n_pairs) if keep else self.q, np.empty(self.mdp.n_pairs)

        def task(lo: int, hi: int) -> None:
            self.kernel.bracket(model, self.levels, outcome, scale, lo, hi, memory, lower, upper)

        self.run(task, self.pair_ranges)
        return lower, upper

    def bracket(self, scale: float, policy: PolicyRows | None, *, keep_q: bool) -> Bracket:
        """Bounds of T v, or of T^pi v; `scale` bounds |r| + |outcome|."""
        mdp = self.mdp
        lower, upper = self.bound_pairs(self.model, self.outcome, scale, self.memory, keep=keep_q)
        if policy is not None:
            at = policy.pairs
            low, high = (np.add.reduceat(policy.weights * bound[at], policy.state_ptr[:-1]) for bound in (lower, upper))
            return Bracket(low, high, lower, upper, self.as_policy(policy))
        low = np.empty(mdp.n_states)
        _core.best_actions(self.model, lower, low, self.best)
        high = np.maximum.reduceat(upper, mdp.state_ptr[:-1])
        return Bracket(low, high, lower, upper, mdp.actions[self.best].astype(np.int64))

    def chosen(self) -> PolicyRows:
        """The policy of the last sweep."""
        return rows_of_pairs(self.mdp, self.best)

    def as_policy(self, rows: PolicyRows) -> IntArray:
        """The likeliest actions, (S,)."""
        return rows.actions(self.mdp)

    def respond(self, pairs: IntArray | None, policy: PolicyRows | None, *, afresh: bool) -> Answer:
        """Nature's rows of some pairs, or of all; behind the model's successors come those that the set adds.

        Rows that are solved `afresh` are the same whatever was solved before.
        """
        del policy
        lengths = np.diff(self.mdp.indptr) if pairs is None else np.diff(self.mdp.indptr)[pairs]
        count, invents = len(lengths), self.ambiguity.invents
        if invents:
            others = getattr(self.kernel, "added_per_successor", 0) * lengths
            lengths = lengths + len(self._added) + np.minimum(others, self.mdp.n_states)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        data, penalty, eta = np.empty(starts[-1]), np.empty(count), np.empty(count)
        successors = np.empty(starts[-1], dtype=np.int32) if invents else None
        memory = np.full_like(self.memory, np.nan) if afresh else self.memory
        out = (data, penalty, eta) if successors is None else (data, penalty, eta, successors)

        def task(lo: int, hi: int) -> None:
            self.kernel.respond(self.model, self.levels, self.outcome, pairs, starts, lo, hi, memory, *out)

        self.run(task, self.split(starts))
        return Answer(data, penalty, eta, starts, successors)


class StateProblems(InnerProblems):
    """max over pi(. | s) of inf over (P_a) of sum_a pi(a | s) E_{P_a}[r(s,a,s') + discount v(s')].

    A sweep finds a random policy. Nature answers that policy, or one that is given.
    """

    def __init__(self, mdp: MDP, ambiguity: Ambiguity, wanted_threads: int | None) -> None:
        super().__init__(mdp, ambiguity, ambiguity.state_kernel_for(mdp), wanted_threads)
        self._check_level()
        self.levels = np.atleast_1d(np.asarray(ambiguity.kernel_level(mdp.discount), dtype=np.float64))
        self._weights = np.zeros(mdp.n_pairs)
        self._last: PolicyRows | None = None
        self._last_outcome = np.empty(0)

    def _check_level(self) -> None:
        level, name, shape = self.ambiguity.level, self.ambiguity.level_name, (self.mdp.n_states,)
        if not isinstance(level, np.ndarray):
            return
        _checks.must(level.shape == shape, f"{name} must be a number or have shape (S,) = {shape}: got {level.shape}")
        missing = np.flatnonzero(np.isnan(level))
        if len(missing):
            _checks.fail(f"{name} must be a number: got nan at {self.mdp.state_name(int(missing[0]))}")

    def sweep(self, value: FloatArray, best: IntArray) -> None:
        """value = T v and best = the likeliest pair, (S,)."""
        weights = self._weights

        def task(lo: int, hi: int) -> None:
            self.kernel.sweep(self.model, self.levels, self.outcome, lo, hi, self.memory, value, weights)

        self.run(task, self.state_ranges)
        _core.best_actions(self.model, weights, np.empty(self.mdp.n_states), best)
        self._last, self._last_outcome = None, self.outcome.copy()

    def evaluate(self, policy: PolicyRows, value: FloatArray) -> None:
        """value = T^pi v, (S,)."""
        weights = self._dense(policy)

        def task(lo: int, hi: int) -> None:
            self.kernel.evaluate(self.model, self.levels, self.outcome, weights, lo, hi, self.memory, value)

        self.run(task, self.state_ranges)

    def bracket(self, scale: float, policy: PolicyRows | None, *, keep_q: bool) -> Bracket:
        """Bounds of T v, or of T^pi v; `scale` bounds |r| + |outcome|."""
        mdp, is_given, weights = self.mdp, policy is not None, self._dense(policy)
        lower, upper, q = np.empty(mdp.n_states), np.empty(mdp.n_states), np.empty(mdp.n_pairs)

        def task(lo: int, hi: int) -> None:
            self.kernel.bracket(
                self.model, self.levels, self.outcome, scale, is_given, lo, hi, self.memory, weights, lower, upper, q
            )

        self.run(task, self.state_ranges)
        return Bracket(lower, upper, q, q.copy() if keep_q else q, mdp.table(weights, fill=0.0))

    def chosen(self) -> PolicyRows:
        """The policy of the last sweep."""
        if self._last is None:
            self._last = policy_rows(self.mdp, self.mdp.table(self._weights, fill=0.0))
        return self._last

    def as_policy(self, rows: PolicyRows) -> FloatArray:
        """Probabilities, (S, A)."""
        return self.mdp.table(self._dense(rows), fill=0.0).copy()

    def respond(self, pairs: IntArray | None, policy: PolicyRows | None, *, afresh: bool) -> Answer:
        """Nature's rows of some pairs, or of all, in answer to this policy or the best one; `afresh` as for rows."""
        mdp = self.mdp
        # The answer to the policy of the last sweep is known by then.
        is_last = policy is self._last and np.array_equal(self.outcome, self._last_outcome)
        is_given = policy is not None and not is_last
        weights = self._dense(policy if is_given else None)
        pairs = np.arange(mdp.n_pairs) if pairs is None else pairs
        lengths = np.zeros(mdp.n_pairs, dtype=np.int64)
        lengths[pairs] = np.diff(mdp.indptr)[pairs]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        data, penalty = np.empty(starts[-1]), np.empty(mdp.n_pairs)
        memory = np.full_like(self.memory, np.nan) if afresh else self.memory

        def task(lo: int, hi: int) -> None:
            self.kernel.respond(
                self.model, self.levels, self.outcome, is_given, weights, starts, lo, hi, memory, data, penalty
            )

        state = int(mdp.states[pairs[0]])
        self.run(task, [(state, state + 1)] if len(pairs) == 1 else self.state_ranges)
        own = np.append(starts[:-1][pairs], starts[-1])
        return Answer(data, penalty[pairs], np.full(len(pairs), np.nan), own, None)

    def _dense(self, policy: PolicyRows | None) -> FloatArray:
        """The probabilities of all pairs; 0 where there is no policy."""
        weights = np.zeros(self.mdp.n_pairs)
        if policy is not None:
            weights[policy.pairs] = policy.weights
        return weights
