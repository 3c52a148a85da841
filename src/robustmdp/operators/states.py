"""Nature's problems where she answers the actions of a state together."""

from __future__ import annotations

import numpy as np

from robustmdp import _checks, _core
from robustmdp._arrays import FloatArray, IntArray
from robustmdp.ambiguity import Ambiguity
from robustmdp.models import MDP
from robustmdp.operators.inner import Answer, Bracket, InnerProblems
from robustmdp.operators.policy import PolicyRows, policy_rows


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

    def bracket(self, scale: float, policy: PolicyRows | None) -> Bracket:
        """Bounds of T v, or of T^pi v; `scale` bounds |r| + |outcome|."""
        mdp, is_given, weights = self.mdp, policy is not None, self._dense(policy)
        lower, upper, q = np.empty(mdp.n_states), np.empty(mdp.n_states), np.empty(mdp.n_pairs)

        def task(lo: int, hi: int) -> None:
            self.kernel.bracket(
                self.model, self.levels, self.outcome, scale, is_given, lo, hi, self.memory, weights, lower, upper, q
            )

        self.run(task, self.state_ranges)
        return Bracket(lower, upper, q, q.copy(), mdp.table(weights, fill=0.0))

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
