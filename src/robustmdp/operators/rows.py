"""Nature's problems where she answers each pair by itself."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core
from robustmdp._arrays import FloatArray, IntArray
from robustmdp.ambiguity import Ambiguity
from robustmdp.models import MDP
from robustmdp.operators.inner import Answer, Bracket, InnerProblems
from robustmdp.operators.policy import PolicyRows, rows_of_pairs


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
        self, model: _core.Model, outcome: FloatArray, scale: float, memory: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds of what the pairs are worth, (n_pairs,) each."""
        lower, upper = np.empty(self.mdp.n_pairs), np.empty(self.mdp.n_pairs)

        def task(lo: int, hi: int) -> None:
            self.kernel.bracket(model, self.levels, outcome, scale, lo, hi, memory, lower, upper)

        self.run(task, self.pair_ranges)
        return lower, upper

    def bracket(self, scale: float, policy: PolicyRows | None) -> Bracket:
        """Bounds of T v, or of T^pi v; `scale` bounds |r| + |outcome|."""
        mdp = self.mdp
        lower, upper = self.bound_pairs(self.model, self.outcome, scale, self.memory)
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
