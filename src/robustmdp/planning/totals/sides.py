"""One side's problem: those on the other side keep their choices, the rest is solved by Newton's method.

With all remaining choices on one side, the operator is convex (upper bounds, all maximise) or concave (lower bounds,
all minimise), so that fixing them, solving the chain and choosing again converges.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from robustmdp import _core
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.operators.bellman import Chain
from robustmdp.operators.pinned import PinnedBellman, with_fixed_values, with_jumps
from robustmdp.operators.policy import PolicyRows, rows_of_pairs
from robustmdp.planning.linear import ChainSolver
from robustmdp.planning.totals import graphs

_MOST_STEPS = 40


def solve_chain(linear: ChainSolver, chain: Chain, start: FloatArray, target: float) -> FloatArray | None:
    """v = cost + P v; None where the chain has no solution, or none that can be found."""
    try:
        with np.errstate(all="ignore"):
            v = linear.reduce_residual(chain, start, target)
    except (ZeroDivisionError, RuntimeError):  # a Krylov method that broke down, a singular factor
        return None
    return v if np.isfinite(v).all() else None


@dataclass(eq=False)
class Side:
    """Values with a payment of `drift` per step added: more than T u where drift > 0, so that u proves a bound.

    Attributes
    ----------
    bellman : with nature's rows fixed (then its set is nominal) or free
    policy : fixed, or None
    is_upper : whether those whose choice is left maximise
    idle : (S,) states that are worth 0
    groups : end components to be collapsed, or None
    cap : (S,) bounds that are known beforehand: values beyond them are not needed, so that nobody's way to spend more
        time where nothing can be gained has to be found
    """

    bellman: PinnedBellman
    policy: PolicyRows | None
    is_upper: bool
    idle: BoolArray
    groups: graphs.Groups | None = None
    cap: FloatArray | None = None
    linear: ChainSolver = field(default_factory=lambda: ChainSolver(can_end=True, by_graph=True))

    def propose(self, start: FloatArray, drift: float, target: float) -> FloatArray | None:
        """Values whose residual is at most `target`, or the last ones; None where a chain has no solution."""
        v = np.where(self.idle, 0.0, start)
        for _ in range(_MOST_STEPS):
            chain = self._chain(v, drift)
            residual = chain.cost - chain.product(v)
            if float(np.max(np.abs(residual))) <= target:
                break
            solved = solve_chain(self.linear, chain, v, target)
            if solved is None:
                return None
            v = solved
        v = self._with_equal_groups(v)
        if self.cap is None:
            return v
        return np.minimum(v, self.cap) if self.is_upper else np.maximum(v, self.cap)

    def _with_equal_groups(self, v: FloatArray) -> FloatArray:
        """The states of a group have one value; a linear solve leaves them close."""
        if self.groups is None:
            return v
        members = np.flatnonzero(self.groups.label >= 0)
        label = self.groups.label[members]
        common = np.full(int(label.max()) + 1, -np.inf if self.is_upper else np.inf)
        (np.maximum if self.is_upper else np.minimum).at(common, label, v[members])
        v = v.copy()
        v[members] = common[label]
        return v

    def _chain(self, v: FloatArray, drift: float) -> Chain:
        """The chain of the best choices at v."""
        moving = ~(self.bellman.pinned | self.idle)
        if self.policy is not None:
            chain = self.bellman.chain(self.policy, v)
            representatives, jumps = self._exits_of_policy(v)
        else:
            best, representatives, jumps = self._best_pairs(v)
            chain = self.bellman.chain(rows_of_pairs(self.bellman.mdp, best), v)
        stuck = np.zeros(0, dtype=np.int64)
        if self.groups is not None and len(representatives):
            members = np.flatnonzero(self.groups.label >= 0)
            places = np.searchsorted(representatives.group, self.groups.label[members])
            leader = representatives.state[places]
            is_stuck = ~representatives.has_exit[places]
            follows = (members != leader) & ~is_stuck
            chain = with_jumps(
                chain,
                np.concatenate([members[follows], jumps.state]),
                np.concatenate([leader[follows], jumps.target]),
            )
            moving[members[follows]] = False
            stuck = members[is_stuck]
            moving[stuck] = False
        cost = chain.cost + np.where(moving, drift, 0.0)
        fixed = np.flatnonzero(self.idle)
        chain = with_fixed_values(chain._replace(cost=cost), np.concatenate([fixed, stuck]), 0.0)
        if self.cap is None:
            return chain
        swept = chain.cost - chain.product(v) + v
        beyond = np.flatnonzero(moving & (swept >= self.cap if self.is_upper else swept <= self.cap))
        return with_fixed_values(chain, beyond, self.cap[beyond])

    def _best_pairs(self, v: FloatArray) -> tuple[IntArray, Representatives, Jumps]:
        """The best pair of each state; in a group, of all its states, those that leave it."""
        mdp = self.bellman.mdp
        q = self.bellman.q_pairs(v).copy()
        targets = np.zeros(0, dtype=np.int64)
        if self.groups is not None:
            out, targets = self._way_out(v)
            q[self.groups.internal] = out[self.groups.internal]
        value, best = np.empty(mdp.n_states), np.empty(mdp.n_states, dtype=np.int64)
        _core.best_actions(self.bellman.model, q, value, best)
        if self.groups is None:
            return best, _NOBODY, _NO_JUMPS
        representatives = self._representatives(value)
        by_jump = representatives.state[representatives.has_exit & self.groups.internal[best[representatives.state]]]
        return best, representatives, Jumps(by_jump, targets[best[by_jump]])

    def _exits_of_policy(self, v: FloatArray) -> tuple[Representatives, Jumps]:
        """For a fixed policy, the way out of each group that nature likes best."""
        if self.groups is None:
            return _NOBODY, _NO_JUMPS
        mdp = self.bellman.mdp
        out, targets = self._way_out(v)
        out = np.where(self.groups.internal, out, -np.inf)
        value, best = np.empty(mdp.n_states), np.empty(mdp.n_states, dtype=np.int64)
        _core.best_actions(self.bellman.model, out, value, best)
        representatives = self._representatives(value)
        leaving = representatives.state[representatives.has_exit]
        return representatives, Jumps(leaving, targets[best[leaving]])

    def _representatives(self, value: FloatArray) -> Representatives:
        """The state of each group with the largest value."""
        assert self.groups is not None
        members = np.flatnonzero(self.groups.label >= 0)
        order = members[np.lexsort((value[members], self.groups.label[members]))]
        label = self.groups.label[order]
        last = np.flatnonzero(np.append(label[1:] != label[:-1], True)) if len(order) else np.zeros(0, dtype=np.int64)
        state = order[last]
        return Representatives(label[last], state, np.isfinite(value[state]))

    def _way_out(self, v: FloatArray) -> tuple[FloatArray, IntArray]:
        """Where nature can leave a group from a pair that can also stay, and what that is worth to it; -inf if not.

        Nature can stay and lean a little towards any successor of the row, so the best one is reached in the end.
        Worth is v where those left maximise and -v where they minimise.
        """
        assert self.groups is not None
        mdp = self.bellman.mdp
        worth = np.full(mdp.n_pairs, -np.inf)
        targets = np.full(mdp.n_pairs, mdp.n_states)
        if self.bellman.ambiguity.is_nominal:
            return worth, targets  # a row without a choice stays for ever
        label = np.append(np.where(self.groups.label >= 0, self.groups.label, -2), -3)
        padded = np.append(np.where(self.bellman.pinned, self.bellman.values, v), 0.0)
        owners = np.repeat(mdp.states, np.diff(mdp.indptr))
        outside = label[mdp.indices] != label[owners]
        value = np.where(outside, padded[mdp.indices] if self.is_upper else -padded[mdp.indices], -np.inf)
        worth = np.maximum.reduceat(value, mdp.indptr[:-1])
        attained = np.flatnonzero(value == np.repeat(worth, np.diff(mdp.indptr)))
        row = np.searchsorted(mdp.indptr, attained, side="right") - 1
        targets[row[::-1]] = mdp.indices[attained[::-1]]
        self._lean_anywhere(padded if self.is_upper else -padded, label, worth, targets)
        return worth, targets

    def _lean_anywhere(self, padded: FloatArray, label: IntArray, worth: FloatArray, targets: IntArray) -> None:
        """The same towards states to which nature may lead from anywhere: the best one, or the best of other groups."""
        states = self.bellman.mdp.states
        candidates = self.bellman.ambiguity.candidates(self.bellman.mdp.n_states)
        best = candidates[np.argsort(-padded[candidates], kind="stable")]
        for first in (best[:1], best[label[best] != label[best[:1]]][:1]):
            if len(first):
                better = self.bellman.leads_anywhere & (label[first] != label[states]) & (padded[first] > worth)
                worth[better], targets[better] = padded[first], first


@dataclass(frozen=True, eq=False)
class Representatives:
    """For each group the state whose way out is taken, by rising group; `has_exit` where there is one."""

    group: IntArray
    state: IntArray
    has_exit: BoolArray

    def __len__(self) -> int:
        return len(self.state)


@dataclass(frozen=True, eq=False)
class Jumps:
    """States that lead to one target each, without payoff."""

    state: IntArray
    target: IntArray


_NOBODY = Representatives(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool))
_NO_JUMPS = Jumps(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
