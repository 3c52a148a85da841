"""The join of a world and a worst case."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core, _types
from robustmdp._arrays import FloatArray, IntArray
from robustmdp.ambiguity import Ambiguity, Nominal, check_ambiguity
from robustmdp.models import MDP
from robustmdp.operators.inner import Bracket as Bracket
from robustmdp.operators.inner import RowProblems, StateProblems
from robustmdp.operators.policy import PolicyRows, policy_rows

_LARGEST_REWARD = 1e100
FORGETS = 32  # sweeps after which inner problems no longer start where they ended


class Chain(NamedTuple):
    """v = cost + discount * P v: what is left when the policy and nature have chosen; the end is column S."""

    indptr: IntArray
    indices: npt.NDArray[np.int32]
    data: FloatArray
    cost: FloatArray
    discount: float

    def product(self, x: FloatArray) -> FloatArray:
        """(I - discount P) x"""
        out = np.empty_like(x)
        _core.residual_product(self.indptr, self.indices, self.data, self.discount, np.append(x, 0.0), out)
        return out

    def dot(self, x: FloatArray, y: FloatArray) -> float:
        """Their sum of products, in a fixed order."""
        return float(_core.dot(x, y))


class Response(NamedTuple):
    """Nature's answer to v at every pair: the worst-case world, what it paid and its multipliers, both (S, A)."""

    model: MDP
    penalty: FloatArray
    eta: FloatArray


class RobustBellman:
    """(Tv)(s) = max over a of inf over P of E_P[r(s,a,s') + discount v(s')] + discount * weight * D_f(P || P0).

    The operator of the paper's (5) and (8), a discount-contraction (Proposition 3.1). Each pair remembers the
    multiplier of its last solve; an instance must therefore not be shared between threads.

    Parameters
    ----------
    mdp : MDP
    ambiguity : a set
    threads : int, optional
        Cores to use: this argument, or the environment variable ROBUSTMDP_THREADS, or all.

    >>> from robustmdp import Nominal, problems
    >>> bellman = RobustBellman(problems.two_state(stay=0.5, discount=0.9), Nominal())
    >>> bellman.apply([2.0, 0.0])
    array([1.9, 0. ])
    """

    chain_solver: Callable[..., Any] | None = None  # of an operator whose chains are no arrays
    scale: float | None = None  # bounds |r| + |outcome| of the whole model, where this one is a part

    def __init__(self, mdp: MDP, ambiguity: Ambiguity, *, threads: int | None = None) -> None:
        _types.check_arguments(RobustBellman.__init__, locals())
        self.mdp = mdp
        self.ambiguity = check_ambiguity(ambiguity)
        _checks.must(
            mdp.noise is None or not self.ambiguity.invents,
            "a set must not add successors to a model made from noise, whose rows list values of the noise: take "
            f"support='model' or mdp.without_noise(), got {self.ambiguity}",
        )
        low, high = mdp.reward_range
        self._largest_reward = max(-low, high)
        _checks.must(  # worst cases square what values differ by
            self.ambiguity.is_nominal or self._largest_reward <= _LARGEST_REWARD,
            f"rewards must be at most {_LARGEST_REWARD:g} in size, or else their squares are not numbers: got "
            f"{self._largest_reward:g}; measure them in a larger unit",
        )
        self.rows = 0
        """Number of row problems solved so far."""
        self.sweeps = 0
        """Number of times that `apply` or `apply_policy` was called."""
        self.threads = threads
        problems = StateProblems if self.ambiguity.is_statewise else RowProblems
        self._inner: RowProblems | StateProblems = problems(mdp, self.ambiguity, threads)
        self._given: PolicyRows | None = None  # what `worst_case` answers, where that depends on the policy

    @property
    def model(self) -> Any:
        """The model as compiled code takes it."""
        return self._inner.model

    @property
    def can_end(self) -> bool:
        """Is there anything with a fixed value, so that T(v + c) = Tv + discount c does not hold for it?"""
        return self.mdp.can_end

    def nominal(self) -> RobustBellman:
        """The same problem when the model is right."""
        return RobustBellman(self.mdp, Nominal(), threads=self.threads)

    # what users call

    def apply(self, v: npt.ArrayLike, out: FloatArray | None = None) -> FloatArray:
        """T v, (S,)."""
        out = self._result(out, (self.mdp.n_states,))
        self._count_sweep()
        self.sweep(v, out, self._inner.best)
        return out

    def apply_q(self, q: npt.ArrayLike, out: FloatArray | None = None) -> FloatArray:
        """T q, (S, A): the operator on Q, whose v is the largest q of a state; -inf where an action is unavailable."""
        mdp = self.mdp
        table = np.asarray(q, dtype=np.float64)
        out = self._result(out, (mdp.n_states, mdp.n_actions))
        q = self.q_pairs(np.maximum.reduceat(mdp.pairs(table, "q"), mdp.state_ptr[:-1]))
        out[...] = -np.inf
        out[mdp.states, mdp.actions] = q
        return out

    def apply_policy(
        self, policy: npt.ArrayLike | PolicyRows, v: npt.ArrayLike, out: FloatArray | None = None
    ) -> FloatArray:
        """T^pi v, (S,): the operator of a fixed policy, (S,) actions or (S, A) probabilities (Proposition 3.1)."""
        chosen = policy if isinstance(policy, PolicyRows) else policy_rows(self.mdp, policy)
        out = self._result(out, (self.mdp.n_states,))
        self._count_sweep()
        self._set_values(v)
        self._inner.evaluate(chosen, out)
        self.rows += len(chosen.pairs)
        return out

    def greedy(self, v: npt.ArrayLike) -> npt.NDArray[Any]:
        """The policy that is best at v when nature answers: (S,) actions, or (S, A) where it is random."""
        self.sweep(v, np.empty(self.mdp.n_states), self._inner.best)
        return self.as_policy(self.chosen())

    def worst_case(self, v: npt.ArrayLike, onto: MDP | None = None) -> Response:
        """Nature's answer to v at every pair, the same whatever was solved before.

        The model keeps the rewards, or takes those of `onto`, a model with the same transitions; the penalty is
        discount * weight * D. Where there is a noise, the model has its outcomes merged; see `worst_noise`.
        """
        mdp = self.mdp if onto is None else onto
        self._set_values(v)
        answer = self._inner.respond(None, self._given, afresh=True)
        self.rows += mdp.n_pairs
        if answer.successors is None:
            model = mdp.with_probabilities(answer.data)
        else:
            model = mdp.with_added(answer.starts, answer.successors, answer.data)
        return Response(model, mdp.table(answer.penalty, fill=0.0), mdp.table(self._paper_eta(answer.eta), fill=np.nan))

    def worst_noise(self, v: npt.ArrayLike, pair: int) -> FloatArray:
        """Nature's distribution of the noise at one pair of a model that has some, (K,), when it answers to v."""
        self._set_values(v)
        row = self._inner.respond(np.array([pair]), self._given, afresh=True).data
        self.rows += 1
        return np.asarray(row / row.sum())

    # what solvers call

    def place(self, v: FloatArray) -> FloatArray:
        """Values where this operator works with them."""
        return v

    def collect(self, v: FloatArray) -> FloatArray:
        """Values as an array, (S,), wherever they are."""
        return v

    def constant(self, level: float) -> FloatArray:
        """The same value everywhere, (S,)."""
        return np.full(self.mdp.n_states, level)

    def apply_to_constant(self, level: float) -> FloatArray:
        """T at a constant, where nature has no choice: the best mean reward + discount * level, (S,)."""
        best: FloatArray = np.maximum.reduceat(self.mdp.mean_rewards(), self.mdp.state_ptr[:-1])
        return best + self.mdp.discount * level

    def sweep(self, v: npt.ArrayLike, value: FloatArray, best: IntArray) -> None:
        """value = T v and best = the pair that attains it, or the likeliest one, both (S,)."""
        self._set_values(v)
        self._inner.sweep(value, best)
        self.rows += self.mdp.n_pairs

    def q_pairs(self, v: npt.ArrayLike) -> FloatArray:
        """r + worst case at every pair, (n_pairs,), in the operator's own memory."""
        if isinstance(self._inner, StateProblems):
            return self.bracket(np.asarray(v, dtype=np.float64)).q_lower
        self.sweep(v, np.empty(self.mdp.n_states), self._inner.best)
        return self._inner.q

    def bracket(self, v: FloatArray, policy: PolicyRows | None = None, *, keep_q: bool = True) -> Bracket:
        """Bounds of T v, or of T^pi v, that inexact inner solves and rounding cannot break.

        Without `keep_q` those of pairs may lie where the next sweep writes.
        """
        self._set_values(v)
        self.rows += self.mdp.n_pairs
        scale = float(np.abs(self._inner.outcome).max()) + self._largest_reward if self.scale is None else self.scale
        return self._inner.bracket(scale, policy, keep_q=keep_q)

    def q_table(self, bracket: Bracket, shift: float) -> Any:
        """The middle of a bracket's bounds of Q, plus a shift, (S, A); writes over the bracket's."""
        middle = np.add(bracket.q_lower, bracket.q_upper, out=bracket.q_lower)  # in place: large models fill the memory
        middle *= 0.5
        middle += shift
        return self.mdp.table(middle)

    def chain(self, policy: PolicyRows, v: FloatArray) -> Chain:
        """The chain of a policy when nature answers to v."""
        self._set_values(v)
        data, penalty, _, starts, successors = self._inner.respond(policy.pairs, policy, afresh=False)
        self.rows += len(policy.pairs)
        indices = np.empty(len(data), dtype=np.int32) if successors is None else successors
        cost = np.empty(len(policy.pairs))

        def task(lo: int, hi: int) -> None:
            _core.chain_rows(self.model, policy.pairs, policy.weights, starts, lo, hi, indices, data, penalty, cost)

        self._inner.run(task, self._inner.split(starts))
        indptr = starts[policy.state_ptr]
        return Chain(indptr, indices, data, np.add.reduceat(cost, policy.state_ptr[:-1]), self.mdp.discount)

    def gauss_seidel(self, v: FloatArray, sweeps: int) -> FloatArray:
        """What nominal sweeps in place, forwards and backwards in turn, make of v, (S,)."""
        padded = np.append(v, 0.0)
        for sweep in range(sweeps):
            _core.gauss_seidel(self.model, self.mdp.discount, sweep % 2 == 1, padded)
        self.rows += sweeps * self.mdp.n_pairs
        return padded[:-1]

    def best_pairs(self) -> IntArray:
        """The pairs chosen by the last sweep or bracket, (S,)."""
        return self._inner.best

    def chosen(self) -> PolicyRows:
        """The policy of the last sweep."""
        return self._inner.chosen()

    def as_policy(self, rows: PolicyRows) -> npt.NDArray[Any]:
        """A policy in the form in which this operator finds them: the likeliest actions, (S,), or (S, A)."""
        return self._inner.as_policy(rows)

    def against(self, policy: PolicyRows | None) -> RobustBellman:
        """The operator whose `worst_case` answers this policy; where rows are answered alone, any policy."""
        if policy is None or not self.ambiguity.is_statewise:
            return self
        other = RobustBellman(self.mdp, self.ambiguity, threads=self.threads)
        other._given = policy
        return other

    def inherit(self, other: RobustBellman) -> None:
        """Begin the inner problems where those of another level of the same set ended."""
        self._inner.memory[:] = other._inner.memory
        self.sweeps = other.sweeps

    def forget(self, sweeps: int) -> None:
        """Let inner problems start anew, as they do after so many sweeps."""
        self._inner.memory.fill(np.nan)
        self.sweeps = sweeps

    @property
    def remembers(self) -> bool:
        """Do inner problems start where they ended?"""
        return self._inner.memory.size > 0

    # internals

    def _count_sweep(self) -> None:
        """Now and then rows start anew, so that a run that goes on from values alone gets the same bits."""
        if self.sweeps % FORGETS == 0:
            self.forget(self.sweeps)
        self.sweeps += 1

    def _set_values(self, v: npt.ArrayLike) -> None:
        self._inner.set_values(v)

    def _paper_eta(self, eta: FloatArray) -> FloatArray:
        """From the multiplier of outcomes discount * v to the paper's, unshifted; NaN at discount 0."""
        if self.mdp.discount == 0.0:
            return np.full_like(eta, np.nan)
        shift = self.ambiguity.eta_shift
        return eta / self.mdp.discount + (self.mdp.pairs(shift) if isinstance(shift, np.ndarray) else shift)

    @staticmethod
    def _result(out: FloatArray | None, shape: tuple[int, ...]) -> FloatArray:
        if out is None:
            return np.empty(shape)
        _checks.must(
            out.shape == shape and out.dtype == np.float64,
            f"out must be float64 of shape {shape}: got {out.dtype} {out.shape}",
        )
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), threads=self.threads), (self.mdp, self.ambiguity), {"_given": self._given}

    def __repr__(self) -> str:
        return f"RobustBellman on {self.mdp.n_states:,} states and {self.mdp.n_pairs:,} pairs, {self.ambiguity}"
