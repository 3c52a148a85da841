"""The operator of sets whose nature answers the actions of a state together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core
from robustmdp._arrays import FloatArray, IntArray
from robustmdp.operators import threads
from robustmdp.operators.bellman import Answer, Bracket, RobustBellman
from robustmdp.operators.policy import PolicyRows, policy_rows


class StatewiseBellman(RobustBellman):
    """(Tv)(s) = max over pi(. | s) of inf over (P_a) of sum_a pi(a | s) E_{P_a}[r(s,a,s') + discount v(s')].

    A sweep finds a random policy. Nature answers that policy, or one that is given.
    """

    def _make_kernel(self) -> None:
        self._states = self.ambiguity.state_kernel_for(self.mdp)
        self._memory = np.full(self.mdp.n_pairs * self._states.memory_per_row, np.nan)
        self._weights = np.zeros(self.mdp.n_pairs)
        self._last: PolicyRows | None = None
        self._last_outcome = np.empty(0)
        self._given: PolicyRows | None = None

    def _kernel_levels(self) -> FloatArray:
        level = self.ambiguity.level
        if isinstance(level, np.ndarray):
            name, shape = self.ambiguity.level_name, (self.mdp.n_states,)
            _checks.must(
                level.shape == shape, f"{name} must be a number or have shape (S,) = {shape}: got {level.shape}"
            )
            missing = np.flatnonzero(np.isnan(level))
            if len(missing):
                _checks.fail(f"{name} must be a number: got nan at {self.mdp.state_name(int(missing[0]))}")
        return np.atleast_1d(np.asarray(self.ambiguity.kernel_level(self.mdp.discount), dtype=np.float64))

    # what users call

    def apply_policy(
        self, policy: npt.ArrayLike | PolicyRows, v: npt.ArrayLike, out: FloatArray | None = None
    ) -> FloatArray:
        rows = policy if isinstance(policy, PolicyRows) else policy_rows(self.mdp, policy)
        out = self._result(out, (self.mdp.n_states,))
        self._count_sweep()
        self._set_outcome(v)
        weights, value = self._dense(rows), out

        def task(lo: int, hi: int) -> None:
            self._states.evaluate(self.model, self._levels, self._outcome, weights, lo, hi, self._memory, value)

        threads.run(task, self._state_ranges, self._workers)
        self.rows += len(rows.pairs)
        return out

    def against(self, policy: PolicyRows | None) -> StatewiseBellman:
        if policy is None:
            return self
        other = StatewiseBellman(self.mdp, self.ambiguity, threads=self.threads)
        other._given = policy
        return other

    # what solvers call

    def sweep(self, v: npt.ArrayLike, value: FloatArray, best: IntArray) -> None:
        """value = T v and best = the likeliest pair of each state, both (S,)."""
        self._set_outcome(v)
        weights = self._weights

        def task(lo: int, hi: int) -> None:
            self._states.sweep(self.model, self._levels, self._outcome, lo, hi, self._memory, value, weights)

        threads.run(task, self._state_ranges, self._workers)
        self.rows += self.mdp.n_pairs
        _core.best_actions(self.model, weights, np.empty(self.mdp.n_states), best)
        self._last, self._last_outcome = None, self._outcome.copy()

    def chosen(self) -> PolicyRows:
        if self._last is None:
            self._last = policy_rows(self.mdp, self.mdp.table(self._weights, fill=0.0))
        return self._last

    def as_policy(self, rows: PolicyRows) -> FloatArray:
        return self.mdp.table(self._dense(rows), fill=0.0).copy()

    def q_pairs(self, v: npt.ArrayLike) -> FloatArray:
        """What every pair earns under nature's answer, (n_pairs,)."""
        return self.bracket(np.asarray(v, dtype=np.float64)).q_lower

    def bracket(self, v: FloatArray, policy: PolicyRows | None = None, *, keep_q: bool = True) -> Bracket:
        mdp = self.mdp
        self._set_outcome(v)
        weights = np.zeros(mdp.n_pairs) if policy is None else self._dense(policy)
        lower, upper, q = np.empty(mdp.n_states), np.empty(mdp.n_states), np.empty(mdp.n_pairs)
        scale = self._scale()
        is_given = policy is not None

        def task(lo: int, hi: int) -> None:
            self._states.bracket(
                self.model, self._levels, self._outcome, scale, is_given, lo, hi, self._memory, weights, lower, upper, q
            )

        threads.run(task, self._state_ranges, self._workers)
        self.rows += mdp.n_pairs
        return Bracket(lower, upper, q, q.copy() if keep_q else q, mdp.table(weights, fill=0.0))

    # internals

    def _dense(self, rows: PolicyRows) -> FloatArray:
        weights = np.zeros(self.mdp.n_pairs)
        weights[rows.pairs] = rows.weights
        return weights

    def _respond_to_policy(self, policy: PolicyRows) -> Answer:
        """With the answer of the last sweep, where that is asked for again: it is known by then."""
        is_last = policy is self._last and np.array_equal(self._outcome, self._last_outcome)
        return self._answer(None if is_last else policy, policy.pairs, self._memory)

    def _respond_everywhere(self) -> Answer:
        return self._answer(self._given, np.arange(self.mdp.n_pairs), np.full_like(self._memory, np.nan))

    def _respond_at(self, pair: int) -> Answer:
        state = int(self.mdp.states[pair])
        return self._answer(self._given, np.array([pair]), np.full_like(self._memory, np.nan), [(state, state + 1)])

    def _answer(
        self,
        policy: PolicyRows | None,
        pairs: IntArray,
        memory: FloatArray,
        ranges: list[tuple[int, int]] | None = None,
    ) -> Answer:
        """Nature's rows at some pairs, of all states or of those of some ranges."""
        mdp = self.mdp
        lengths = np.zeros(mdp.n_pairs, dtype=np.int64)
        lengths[pairs] = np.diff(mdp.indptr)[pairs]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        data, penalty = np.empty(starts[-1]), np.empty(mdp.n_pairs)
        weights = np.zeros(mdp.n_pairs) if policy is None else self._dense(policy)
        is_given = policy is not None

        def task(lo: int, hi: int) -> None:
            self._states.respond(
                self.model, self._levels, self._outcome, is_given, weights, starts, lo, hi, memory, data, penalty
            )

        threads.run(task, ranges or self._state_ranges, self._workers)
        self.rows += len(pairs)
        own = np.append(starts[:-1][pairs], starts[-1])
        return Answer(data, penalty[pairs], np.full(len(pairs), np.nan), own, None)

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "given": self._given}

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        self._given = state["given"]  # type: ignore[assignment]
