"""The join of a world and a worst case."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core, _types
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity import Ambiguity, Nominal, check_ambiguity
from robustmdp.models import MDP
from robustmdp.operators import threads
from robustmdp.operators.policy import PolicyRows, policy_rows, rows_of_pairs

_LARGEST_REWARD = 1e100
_NO_MASS = 1e-12  # probabilities below it count as 0 where nature has a choice
FORGETS = 32  # sweeps after which inner problems no longer start where they ended
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


class Answer(NamedTuple):
    """Nature's rows of some pairs, row i at starts[i]:starts[i+1]; what they cost and their multipliers.

    `successors` are the states of `data` where nature may add some, else None.
    """

    data: FloatArray
    penalty: FloatArray
    eta: FloatArray
    starts: IntArray
    successors: npt.NDArray[np.int32] | None


def _check_rewards(largest: float) -> None:
    """Worst cases square what values differ by."""
    _checks.must(
        largest <= _LARGEST_REWARD,
        f"rewards must be at most {_LARGEST_REWARD:g} in size, or else their squares are not numbers: got {largest:g}; "
        "measure them in a larger unit",
    )


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
    _added_per_successor: int = 0  # of a kernel whose rows add successors of their own
    _prepare: Callable[..., None] | None = None  # what a kernel does with outcomes before it solves rows

    def __new__(
        cls, mdp: MDP | None = None, ambiguity: Ambiguity | None = None, *rest: Any, **settings: Any
    ) -> RobustBellman:
        """Where nature answers the actions of a state together, the operator is another one."""
        if cls is RobustBellman and getattr(ambiguity, "is_statewise", False):
            from robustmdp.operators.statewise import StatewiseBellman

            return object.__new__(StatewiseBellman)
        return object.__new__(cls)

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
        if not self.ambiguity.is_nominal:
            _check_rewards(self._largest_reward)
        self.rows = 0
        """Number of row problems solved so far."""
        self.sweeps = 0
        """Number of times that `apply` or `apply_policy` was called."""
        self.threads = threads
        self._make_kernel()
        self._levels = self._kernel_levels()
        self._outcome = np.zeros(mdp.n_columns + 1)
        self._added = np.empty(0, dtype=np.int32)
        self._best = np.empty(mdp.n_states, dtype=np.int64)
        self._q = np.empty(mdp.n_pairs)
        self._prepare_threads()

    __signature__ = inspect.Signature(list(inspect.signature(__init__).parameters.values())[1:])  # not that of __new__

    def _make_kernel(self) -> None:
        self._kernel = self.ambiguity.kernel_for(self.mdp)
        self._memory = np.full(self.mdp.n_pairs * self._kernel.memory_per_row, np.nan)
        self._added_per_successor = getattr(self._kernel, "added_per_successor", 0)
        self._prepare = getattr(self._kernel, "prepare", None)

    def _kernel_levels(self) -> FloatArray:
        level = self.ambiguity.level
        if isinstance(level, np.ndarray):
            at_pairs = self.mdp.pairs(level, self.ambiguity.level_name)
            wrong = np.flatnonzero(np.isnan(at_pairs))
            if wrong.size:
                s, a = self.mdp.states[wrong[0]], self.mdp.actions[wrong[0]]
                _checks.fail(
                    f"{self.ambiguity.level_name} must be a number where an action is available: got nan at [{s}, {a}]"
                )
            return self.mdp.pairs(self.ambiguity.kernel_level(self.mdp.discount))
        return np.array([self.ambiguity.kernel_level(self.mdp.discount)])

    def _prepare_threads(self) -> None:
        mdp = self.mdp
        wanted = threads.thread_count(self.threads)
        self._workers = max(1, min(wanted, mdp.nnz // _WORTH_A_THREAD))
        # Several ranges a worker, so that one that is held up does not hold up the sweep.
        parts = 1 if self._workers == 1 else max(1, min(4 * self._workers, 2 * mdp.nnz // _WORTH_A_THREAD))
        self._parts = parts
        self._state_ranges = threads.split(mdp.indptr[mdp.state_ptr], parts)
        self._pair_ranges = threads.split(mdp.indptr, parts)
        self.model = _core.Model(
            mdp.indptr, mdp.indices, mdp.probabilities, mdp.rewards, mdp.state_ptr, mdp.longest_row,
            mdp.rewards_on_successors, mdp.n_columns,
        )  # fmt: skip
        self.model.sign = self.ambiguity.sign

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
        self.sweep(v, out, self._best)
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
        self._set_outcome(v)
        values = np.empty(len(chosen.pairs))

        def task(lo: int, hi: int) -> None:
            self._kernel.values(self.model, self._levels, self._outcome, chosen.pairs, lo, hi, self._memory, values)

        threads.run(task, threads.split(chosen.starts, self._parts), self._workers)
        self.rows += len(chosen.pairs)
        out[...] = np.add.reduceat(chosen.weights * values, chosen.state_ptr[:-1])
        return out

    def greedy(self, v: npt.ArrayLike) -> npt.NDArray[Any]:
        """The policy that is best at v when nature answers: (S,) actions, or (S, A) where it is random."""
        self.sweep(v, np.empty(self.mdp.n_states), self._best)
        return self.as_policy(self.chosen())

    def worst_case(self, v: npt.ArrayLike, onto: MDP | None = None) -> Response:
        """Nature's answer to v at every pair, the same whatever was solved before.

        The model keeps the rewards, or takes those of `onto`, a model with the same transitions; the penalty is
        discount * weight * D. Where there is a noise, the model has its outcomes merged; see `worst_noise`.
        """
        mdp = self.mdp if onto is None else onto
        self._set_outcome(v)
        answer = self._respond_everywhere()
        if answer.successors is None:
            model = mdp.with_probabilities(answer.data)
        else:
            model = mdp.with_added(answer.starts, answer.successors, answer.data)
        return Response(model, mdp.table(answer.penalty, fill=0.0), mdp.table(self._paper_eta(answer.eta), fill=np.nan))

    def worst_noise(self, v: npt.ArrayLike, pair: int) -> FloatArray:
        """Nature's distribution of the noise at one pair of a model that has some, (K,), when it answers to v."""
        self._set_outcome(v)
        row = self._respond_at(pair).data
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
        """value = T v and best = the pair that attains it, both (S,), allocating nothing."""
        self._set_outcome(v)

        def task(lo: int, hi: int) -> None:
            self._kernel.sweep(self.model, self._levels, self._outcome, lo, hi, self._memory, self._q, value, best)

        threads.run(task, self._state_ranges, self._workers)
        self.rows += self.mdp.n_pairs

    def q_pairs(self, v: npt.ArrayLike) -> FloatArray:
        """r + worst case at every pair, (n_pairs,), in the operator's own memory."""
        self.sweep(v, np.empty(self.mdp.n_states), self._best)
        return self._q

    def bracket(self, v: FloatArray, policy: PolicyRows | None = None, *, keep_q: bool = True) -> Bracket:
        """Bounds of T v, or of T^pi v, that inexact inner solves and rounding cannot break.

        Without `keep_q` those of pairs lie where the next sweep writes.
        """
        mdp = self.mdp
        self._set_outcome(v)
        lower, upper = np.empty(mdp.n_pairs) if keep_q else self._q, np.empty(mdp.n_pairs)
        scale = self._scale()

        def task(lo: int, hi: int) -> None:
            self._kernel.bracket(self.model, self._levels, self._outcome, scale, lo, hi, self._memory, lower, upper)

        threads.run(task, self._pair_ranges, self._workers)
        self.rows += mdp.n_pairs
        starts = mdp.state_ptr[:-1]
        if policy is not None:
            at = policy.pairs
            low, high = (np.add.reduceat(policy.weights * bound[at], policy.state_ptr[:-1]) for bound in (lower, upper))
            return Bracket(low, high, lower, upper, self.as_policy(policy))
        low = np.empty(mdp.n_states)
        _core.best_actions(self.model, lower, low, self._best)
        chosen = mdp.actions[self._best].astype(np.int64)
        return Bracket(low, np.maximum.reduceat(upper, starts), lower, upper, chosen)

    def q_table(self, bracket: Bracket, shift: float) -> Any:
        """The middle of a bracket's bounds of Q, plus a shift, (S, A); writes over the bracket's."""
        middle = np.add(bracket.q_lower, bracket.q_upper, out=bracket.q_lower)  # in place: large models fill the memory
        middle *= 0.5
        middle += shift
        return self.mdp.table(middle)

    def chain(self, policy: PolicyRows, v: FloatArray) -> Chain:
        """The chain of a policy when nature answers to v."""
        self._set_outcome(v)
        data, penalty, _, starts, successors = self._respond_to_policy(policy)
        indices = np.empty(len(data), dtype=np.int32) if successors is None else successors
        cost = np.empty(len(policy.pairs))

        def task(lo: int, hi: int) -> None:
            _core.chain_rows(self.model, policy.pairs, policy.weights, starts, lo, hi, indices, data, penalty, cost)

        threads.run(task, threads.split(starts, self._parts), self._workers)
        indptr = starts[policy.state_ptr]
        return Chain(indptr, indices, data, np.add.reduceat(cost, policy.state_ptr[:-1]), self.mdp.discount)

    @property
    def leads_anywhere(self) -> BoolArray:
        """Pairs after which nature may lead to any of the candidates of its set, (n_pairs,)."""
        can_move = self.ambiguity.invents & (self._levels > 0.0)
        return np.broadcast_to(can_move, (self.mdp.n_pairs,))

    def can_avoid(self, marked: BoolArray) -> BoolArray:
        """Can nature give the marked transitions, (nnz,), no mass, and pay nothing for it? (n_pairs,)

        A mass below 1e-12 counts as none: limits such as 0.7 + 0.3 are meant to be 1 and are not in binary.
        """
        mdp = self.mdp
        untouched = ~np.logical_or.reduceat(marked, mdp.indptr[:-1])
        if self.ambiguity.keeps_support or untouched.all():
            return untouched
        model = _core.Model(
            mdp.indptr, mdp.indices, mdp.probabilities, marked.astype(np.float64), mdp.state_ptr, mdp.longest_row, True
        )
        return untouched | self._avoids(model, np.zeros(mdp.n_states + 1))

    def can_avoid_states(self, marked: BoolArray) -> BoolArray:
        """The same for states, (S + 1,) with the end last; mass may move to states that the set adds."""
        mdp = self.mdp
        if not self.ambiguity.invents:
            return self.can_avoid(marked[mdp.indices])
        outcome, nothing = marked.astype(np.float64), np.zeros(mdp.n_pairs)
        model = _core.Model(mdp.indptr, mdp.indices, mdp.probabilities, nothing, mdp.state_ptr, mdp.longest_row, False)
        added = self.ambiguity.added_successors(outcome[:-1], mdp.longest_row, highest=1.0, rewards_differ=False)
        model.add_successors(added)
        return ~np.logical_or.reduceat(marked[mdp.indices], mdp.indptr[:-1]) | self._avoids(model, outcome)

    def _avoids(self, model: _core.Model, outcome: FloatArray) -> BoolArray:
        """Pairs after which an adverse nature makes the mass that counts in a model vanish."""
        mdp = self.mdp
        lower, upper = np.empty(mdp.n_pairs), np.empty(mdp.n_pairs)
        memory = np.full_like(self._memory, np.nan)
        if self._prepare is not None:
            self._prepare(model, outcome, 0, mdp.n_states)

        def task(lo: int, hi: int) -> None:
            self._kernel.bracket(model, self._levels, outcome, 1.0, lo, hi, memory, lower, upper)

        threads.run(task, self._pair_ranges, self._workers)
        self.rows += mdp.n_pairs
        return np.asarray(upper <= _NO_MASS)

    def gauss_seidel(self, v: FloatArray, sweeps: int) -> FloatArray:
        """What nominal sweeps in place, forwards and backwards in turn, make of v, (S,)."""
        padded = np.append(v, 0.0)
        for sweep in range(sweeps):
            _core.gauss_seidel(self.model, self.mdp.discount, sweep % 2 == 1, padded)
        self.rows += sweeps * self.mdp.n_pairs
        return padded[:-1]

    def best_pairs(self) -> IntArray:
        """The pairs chosen by the last sweep or bracket, (S,)."""
        return self._best

    def chosen(self) -> PolicyRows:
        """The policy of the last sweep."""
        return rows_of_pairs(self.mdp, self._best)

    def as_policy(self, rows: PolicyRows) -> npt.NDArray[Any]:
        """A policy in the form in which this operator finds them: the likeliest actions, (S,)."""
        return rows.actions(self.mdp)

    def against(self, policy: PolicyRows | None) -> RobustBellman:
        """The operator whose `worst_case` answers this policy; where rows are answered alone, any policy."""
        del policy
        return self

    def inherit(self, other: RobustBellman) -> None:
        """Begin the inner problems where those of another level of the same set ended."""
        self._memory[:] = other._memory
        self.sweeps = other.sweeps

    def forget(self, sweeps: int) -> None:
        """Let inner problems start anew, as they do after so many sweeps."""
        self._memory.fill(np.nan)
        self.sweeps = sweeps

    @property
    def remembers(self) -> bool:
        """Do inner problems start where they ended?"""
        return self._memory.size > 0

    # internals

    def _count_sweep(self) -> None:
        """Now and then rows start anew, so that a run that goes on from values alone gets the same bits."""
        if self.sweeps % FORGETS == 0:
            self.forget(self.sweeps)
        self.sweeps += 1

    def _scale(self) -> float:
        """What bounds |r| + |outcome|."""
        if self.scale is not None:
            return self.scale
        return float(np.abs(self._outcome).max()) + self._largest_reward

    def _set_outcome(self, v: npt.ArrayLike) -> None:
        values = np.asarray(v, dtype=np.float64)
        _checks.must(
            values.shape == (self.mdp.n_columns,), f"v must have shape ({self.mdp.n_columns},): got {values.shape}"
        )
        np.multiply(values, self.ambiguity.sign * self.mdp.discount, out=self._outcome[:-1])
        if self.ambiguity.invents:
            mdp = self.mdp
            self._added = self.ambiguity.added_successors(
                self._outcome[:-1],
                mdp.longest_row,
                highest=float(self._outcome[: None if mdp.can_end else -1].max()) + mdp.reward_spread,
                rewards_differ=mdp.rewards_on_successors,
            )
            self.model.add_successors(self._added)
        if self._prepare is not None:
            prepare = self._prepare
            threads.run(lambda lo, hi: prepare(self.model, self._outcome, lo, hi), self._state_ranges, self._workers)

    def _respond_to_policy(self, policy: PolicyRows) -> Answer:
        return self._respond(policy.pairs, policy.starts, self._memory)

    def _respond_everywhere(self) -> Answer:
        return self._respond(None, self.mdp.indptr, np.full_like(self._memory, np.nan))

    def _respond_at(self, pair: int) -> Answer:
        starts = np.append(0, np.diff(self.mdp.indptr)[pair])
        return self._respond(np.array([pair]), starts, np.full_like(self._memory, np.nan))

    def _respond(self, pairs: IntArray | None, starts: IntArray, memory: FloatArray) -> Answer:
        """Nature's rows of some pairs; behind the model's successors come those that the set adds."""
        count = len(starts) - 1
        successors = None
        if self.ambiguity.invents:
            starts = self._starts_with_added(starts)
            successors = np.empty(starts[-1], dtype=np.int32)
        data, penalty, eta = np.empty(starts[-1]), np.empty(count), np.empty(count)
        further = () if successors is None else (successors,)

        def task(lo: int, hi: int) -> None:
            self._kernel.respond(
                self.model, self._levels, self._outcome, pairs, starts, lo, hi, memory, data, penalty, eta, *further
            )

        threads.run(task, threads.split(starts, self._parts), self._workers)
        self.rows += count
        return Answer(data, penalty, eta, starts, successors)

    def _starts_with_added(self, starts: IntArray) -> IntArray:
        """Where rows start that have room for the successors that nature may add."""
        lengths = np.diff(starts)
        others = np.minimum(self._added_per_successor * lengths, self.mdp.n_states)
        return np.concatenate([[0], np.cumsum(lengths + len(self._added) + others)])

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

    def __getstate__(self) -> dict[str, object]:
        return {"mdp": self.mdp, "ambiguity": self.ambiguity, "threads": self.threads}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(state["mdp"], state["ambiguity"], threads=state["threads"])  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"RobustBellman on {self.mdp.n_states:,} states and {self.mdp.n_pairs:,} pairs, {self.ambiguity}"
