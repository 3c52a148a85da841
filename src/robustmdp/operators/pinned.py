"""The operator on a part of a model: some states have a given value, some pairs may not be used."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity import Ambiguity, Nominal, check_ambiguity
from robustmdp.models import MDP
from robustmdp.operators.bellman import Bracket, Chain, RobustBellman
from robustmdp.operators.inner import RowProblems
from robustmdp.operators.policy import PolicyRows

_NO_MASS = 1e-12  # probabilities below it count as 0 where nature has a choice


class PinnedBellman(RobustBellman):
    """(Tv)(s) = values[s] where s is pinned, else the best of the pairs that are not forbidden.

    The model keeps its shape, so that sets with one number per pair or transition fit. `pinned` and `values` are (S,),
    `forbidden` is (n_pairs,); every state that is not pinned must keep a pair.
    """

    def __init__(
        self,
        mdp: MDP,
        ambiguity: Ambiguity,
        pinned: BoolArray,
        values: FloatArray,
        *,
        forbidden: BoolArray | None = None,
        threads: int | None = None,
    ) -> None:
        _checks.must(
            not check_ambiguity(ambiguity).is_statewise,
            "a sum without a discount and reach need a set whose pairs nature answers one by one: "
            f"got {ambiguity!r}; take a horizon, a discount or the set inside it",
        )
        super().__init__(mdp, ambiguity, threads=threads)
        assert isinstance(self._inner, RowProblems)
        self._rows = self._inner
        self.pinned = pinned
        self.values = values
        self.forbidden = None if forbidden is None or not forbidden.any() else forbidden
        self._places = np.flatnonzero(pinned)

    @property
    def can_end(self) -> bool:
        return self.mdp.can_end or len(self._places) > 0

    def nominal(self) -> PinnedBellman:
        return self.with_model(self.mdp, Nominal())

    def with_model(self, mdp: MDP, ambiguity: Ambiguity | None = None) -> PinnedBellman:
        """The same pins and forbidden pairs in a model with the same pairs."""
        ambiguity = self.ambiguity if ambiguity is None else ambiguity
        return PinnedBellman(mdp, ambiguity, self.pinned, self.values, forbidden=self.forbidden, threads=self.threads)

    def sweep(self, v: npt.ArrayLike, value: FloatArray, best: IntArray) -> None:
        super().sweep(v, value, best)
        if self.forbidden is not None:
            self._rows.q[self.forbidden] = -np.inf
            _core.best_actions(self.model, self._rows.q, value, best)
        value[self._places] = self.values[self._places]

    @property
    def leads_anywhere(self) -> BoolArray:
        """Pairs after which nature may lead to any of the candidates of its set, (n_pairs,)."""
        can_move = self.ambiguity.invents & (self._rows.levels > 0.0)
        return np.broadcast_to(can_move, (self.mdp.n_pairs,))

    def can_avoid(self, marked: BoolArray) -> BoolArray:
        """Can nature give the marked transitions, (nnz,), no mass, and pay nothing for it? (n_pairs,)

        A mass below 1e-12 counts as none: limits such as 0.7 + 0.3 are meant to be 1 and are not in binary.
        """
        mdp = self.mdp
        untouched = ~np.logical_or.reduceat(marked, mdp.indptr[:-1])
        if self.ambiguity.keeps_support or untouched.all():
            return untouched
        model = self._rows.model_with(marked.astype(np.float64), True)
        return untouched | self._avoids(model, np.zeros(mdp.n_states + 1))

    def can_avoid_states(self, marked: BoolArray) -> BoolArray:
        """The same for states, (S + 1,) with the end last; mass may move to states that the set adds."""
        mdp = self.mdp
        if not self.ambiguity.invents:
            return self.can_avoid(marked[mdp.indices])
        outcome = marked.astype(np.float64)
        model = self._rows.model_with(np.zeros(mdp.n_pairs), False)
        added = self.ambiguity.added_successors(outcome[:-1], mdp.longest_row, highest=1.0, rewards_differ=False)
        model.add_successors(added)
        return ~np.logical_or.reduceat(marked[mdp.indices], mdp.indptr[:-1]) | self._avoids(model, outcome)

    def _avoids(self, model: _core.Model, outcome: FloatArray) -> BoolArray:
        """Pairs after which an adverse nature makes the mass that counts in a model vanish."""
        self._rows.prepare(model, outcome)
        memory = np.full_like(self._rows.memory, np.nan)
        _, upper = self._rows.bound_pairs(model, outcome, 1.0, memory)
        self.rows += self.mdp.n_pairs
        return np.asarray(upper <= _NO_MASS)

    @property
    def works_in_place(self) -> bool:
        """Does this set have `sweep_in_place` and `seek_bound`? Not where a row's successors depend on all values."""
        return not self.ambiguity.invents and hasattr(self._rows.kernel, "sweep_in_place")

    def sweep_in_place(self, v: FloatArray, sweeps: int) -> None:
        """Sweeps that use new values at once, backwards and forwards through the states in turn."""
        self._set_values(v)
        self._rows.kernel.sweep_in_place(  # compiled kernels alone have it
            self.model, self._rows.levels, *self._part(), sweeps, self._rows.outcome, self._rows.memory, self._rows.q
        )
        v[:] = self._rows.outcome[:-1] / (self.ambiguity.sign * self.mdp.discount)
        self.rows += sweeps * self.mdp.n_pairs

    def seek_bound(self, v: FloatArray, drift: float, limit: FloatArray, sweeps: int) -> float:
        """Make v a bound that one sweep proves, changing it only where it is none; the share of states left over.

        With drift < 0 it falls to Tv + drift, or to its limit, wherever Tv < v - drift/2, until that is nowhere so;
        with drift > 0 it rises wherever Tv > v - drift/2. Not more pairs are visited than in so many sweeps.
        """
        self._set_values(v)
        most = sweeps * self.mdp.n_pairs
        left, visited = self._rows.kernel.seek_bound(
            self.model,
            self._rows.levels,
            *self._part(),
            drift,
            limit,
            most,
            self._rows.outcome,
            self._rows.memory,
            self._rows.q,
        )
        v[:] = self._rows.outcome[:-1] / (self.ambiguity.sign * self.mdp.discount)
        self.rows += visited
        return float(left)

    def _part(self) -> tuple[float, npt.NDArray[np.uint8], npt.NDArray[np.uint8] | None]:
        forbidden = None if self.forbidden is None else self.forbidden.view(np.uint8)
        return self.mdp.discount, self.pinned.view(np.uint8), forbidden

    def apply_policy(
        self, policy: npt.ArrayLike | PolicyRows, v: npt.ArrayLike, out: FloatArray | None = None
    ) -> FloatArray:
        out = super().apply_policy(policy, v, out)
        out[self._places] = self.values[self._places]
        return out

    def bracket(self, v: FloatArray, policy: PolicyRows | None = None, *, keep_q: bool = True) -> Bracket:
        found = super().bracket(v, policy, keep_q=keep_q)
        lower, upper, chosen = found.lower, found.upper, found.policy
        if self.forbidden is not None and policy is None:
            found.q_lower[self.forbidden] = found.q_upper[self.forbidden] = -np.inf
            _core.best_actions(self.model, found.q_lower, lower, self._rows.best)
            chosen = self.mdp.actions[self._rows.best].astype(np.int64)
            upper = np.maximum.reduceat(found.q_upper, self.mdp.state_ptr[:-1])
        lower[self._places] = upper[self._places] = self.values[self._places]
        return Bracket(lower, upper, found.q_lower, found.q_upper, chosen)

    def chain(self, policy: PolicyRows, v: FloatArray) -> Chain:
        return with_fixed_values(super().chain(policy, v), self._places, self.values[self._places])

    def gauss_seidel(self, v: FloatArray, sweeps: int) -> FloatArray:
        """Plain sweeps: the compiled ones in place know nothing of pins."""
        for _ in range(sweeps):
            v = self.apply(v)
        return v

    def _set_values(self, v: npt.ArrayLike) -> None:
        values = np.array(v, dtype=np.float64)
        if values.shape == self.values.shape:  # otherwise the operator refuses it
            values[self._places] = self.values[self._places]
        super()._set_values(values)

    def __reduce__(self) -> tuple[Any, ...]:
        kind = partial(type(self), forbidden=self.forbidden, threads=self.threads)
        return kind, (self.mdp, self.ambiguity, self.pinned, self.values)


def with_fixed_values(chain: Chain, states: IntArray, values: FloatArray | float) -> Chain:
    """The chain in which some states have given values."""
    if not len(states):
        return chain
    cost, fixed = chain.cost.copy(), np.zeros(len(chain.cost), dtype=bool)
    cost[states] = values
    fixed[states] = True
    data = np.where(np.repeat(fixed, np.diff(chain.indptr)), 0.0, chain.data)
    return chain._replace(data=data, cost=cost)


def with_jumps(chain: Chain, states: IntArray, targets: IntArray) -> Chain:
    """The chain in which some states lead to one target each, at no cost."""
    if not len(states):
        return chain
    jumps = np.zeros(len(chain.cost), dtype=bool)
    jumps[states] = True
    lengths = np.where(jumps, 1, np.diff(chain.indptr))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    kept = np.repeat(~jumps, np.diff(chain.indptr))
    places = np.repeat(~jumps, lengths)
    indices, data = np.empty(indptr[-1], dtype=np.int32), np.ones(indptr[-1])
    indices[places], data[places] = chain.indices[kept], chain.data[kept]
    indices[indptr[:-1][states]] = targets
    cost = chain.cost.copy()
    cost[states] = 0.0
    return Chain(indptr, indices, data, cost, chain.discount)
