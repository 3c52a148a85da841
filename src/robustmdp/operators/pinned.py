"""The operator on a part of a model: some states have a given value, some pairs may not be used."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity import Ambiguity, Nominal, check_ambiguity
from robustmdp.models import MDP
from robustmdp.operators.bellman import Bracket, Chain, RobustBellman
from robustmdp.operators.policy import PolicyRows


class PinnedBellman(RobustBellman):
    """(Tv)(s) = values[s] where s is pinned, else the best of the pairs that are not forbidden.

    The model keeps its shape, so that sets with one number per pair or transition fit.

    Parameters
    ----------
    mdp : MDP
    ambiguity : a set
    pinned : (S,) bool
    values : (S,), those of pinned states
    forbidden : (n_pairs,) bool, optional
        Every state that is not pinned must keep a pair.
    threads : int, optional
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
        return PinnedBellman(
            mdp,
            self.ambiguity if ambiguity is None else ambiguity,
            self.pinned,
            self.values,
            forbidden=self.forbidden,
            threads=self.threads,
        )

    def sweep(self, v: npt.ArrayLike, value: FloatArray, best: IntArray) -> None:
        super().sweep(v, value, best)
        if self.forbidden is not None:
            self._q[self.forbidden] = -np.inf
            _core.best_actions(self.model, self._q, value, best)
        value[self._places] = self.values[self._places]

    @property
    def works_in_place(self) -> bool:
        """Does this set have `sweep_in_place` and `seek_bound`? Not where a row's successors depend on all values."""
        return not self.ambiguity.invents and hasattr(self._kernel, "sweep_in_place")

    def sweep_in_place(self, v: FloatArray, sweeps: int) -> None:
        """Sweeps that use new values at once, backwards and forwards through the states in turn."""
        self._set_outcome(v)
        self._kernel.sweep_in_place(  # type: ignore[attr-defined]  # compiled kernels alone have it
            self.model, self._levels, *self._part(), sweeps, self._outcome, self._memory, self._q
        )
        v[:] = self._outcome[:-1] / (self.ambiguity.sign * self.mdp.discount)
        self.rows += sweeps * self.mdp.n_pairs

    def seek_bound(self, v: FloatArray, drift: float, limit: FloatArray, sweeps: int) -> float:
        """Make v a bound that one sweep proves, changing it only where it is none; the share of states left over.

        With drift < 0 it falls to Tv + drift, or to its limit, wherever Tv < v - drift/2, until that is nowhere so;
        with drift > 0 it rises wherever Tv > v - drift/2. Not more pairs are visited than in so many sweeps.
        """
        self._set_outcome(v)
        most = sweeps * self.mdp.n_pairs
        left, visited = self._kernel.seek_bound(  # type: ignore[attr-defined]  # as above
            self.model, self._levels, *self._part(), drift, limit, most, self._outcome, self._memory, self._q
        )
        v[:] = self._outcome[:-1] / (self.ambiguity.sign * self.mdp.discount)
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
            _core.best_actions(self.model, found.q_lower, lower, self._best)
            chosen = self.mdp.actions[self._best].astype(np.int64)
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

    def _set_outcome(self, v: npt.ArrayLike) -> None:
        values = np.array(v, dtype=np.float64)
        if values.shape == self.values.shape:  # otherwise the operator refuses it
            values[self._places] = self.values[self._places]
        super()._set_outcome(values)

    def __getstate__(self) -> dict[str, object]:
        own = {"pinned": self.pinned, "values": self.values, "forbidden": self.forbidden}
        return {**super().__getstate__(), **own}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(  # type: ignore[misc]
            state["mdp"],
            state["ambiguity"],
            state["pinned"],
            state["values"],
            forbidden=state["forbidden"],
            threads=state["threads"],
        )


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
