"""From a policy and nature's answer to certified bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity import Nominal
from robustmdp.models import MDP
from robustmdp.operators.bellman import Chain, Response
from robustmdp.operators.pinned import PinnedBellman, with_fixed_values
from robustmdp.operators.policy import PolicyRows
from robustmdp.planning.linear import ChainSolver
from robustmdp.planning.totals import graphs
from robustmdp.planning.totals.certificates import proves_lower, proves_upper
from robustmdp.planning.totals.problem import Problem, Rule
from robustmdp.planning.totals.sides import Side, solve_chain

_NO_MASS = 1e-13  # of nature's answers: what rounding leaves where it means 0
_SHARE = 0.125  # of the tolerance that a bound's drift may use up
_LEAST_DRIFT = 2e-14  # of the values: less is lost in rounding
_ATTEMPTS = 7
_COARSER = 8.0
_FINER = 0.4
_GAP = 1e-3  # of the tolerance, between the values of two levels


class Choices(NamedTuple):
    """A policy, nature's answer at every pair, and the values, (S,), at which both were chosen."""

    policy: PolicyRows
    answer: Response
    v: FloatArray


class Bounds(NamedTuple):
    """What was proved: lower <= value of the policy <= best value <= upper."""

    policy: PolicyRows
    lower: FloatArray
    upper: FloatArray

    @property
    def width(self) -> float:
        """max(upper - lower)/2"""
        return _half_width(self.lower, self.upper)


class Bounding:
    """Proposes bounds on both sides of given choices and proves them."""

    def __init__(self, problem: Problem, choices: Choices) -> None:
        self.problem, self.choices = problem, choices
        bellman = problem.bellman
        self.fixed = bellman.with_model(_model_of(bellman, choices.answer), Nominal())
        self.chain = self.fixed.chain(choices.policy.on(self.fixed.mdp), choices.v)
        self.idle = self._idle_in_chain() if problem.idle_is_zero else np.zeros(bellman.mdp.n_states, dtype=bool)

    def _idle_in_chain(self) -> BoolArray:
        """States from which the chain never pays anything."""
        bellman = self.problem.bellman
        paying = np.where(bellman.pinned, bellman.values, self.chain.cost) != 0.0
        return ~graphs.can_reach(*graphs.chain_edges(self.chain), paying) & ~bellman.pinned

    def times(self) -> FloatArray | None:
        """Expected steps until the end, a pinned or an idle state, (S,); None where some never get there."""
        bellman = self.problem.bellman
        chain = with_fixed_values(
            self.chain._replace(cost=np.ones(bellman.mdp.n_states)), np.flatnonzero(bellman.pinned | self.idle), 0.0
        )
        w = solve_chain(ChainSolver(can_end=True, by_graph=True), chain, np.zeros(bellman.mdp.n_states), 0.01)
        if w is None or w.min() < -0.5:
            return None
        return w if float(np.max(np.abs(chain.cost - chain.product(w)))) <= 0.5 else None

    def bounds(self, tol: float, *, thorough: bool = False) -> Bounds | None:
        """With an error of about tol * max(1, max|value|), where rounding allows it; None where nothing is proved.

        A `thorough` attempt goes down to the least drift, and around states where it would add up.
        """
        times = self.times()
        if times is None:
            return None
        scale = max(1.0, float(np.max(np.abs(self.choices.v))))
        least = _LEAST_DRIFT * scale
        drift = max(_SHARE * tol * scale / max(1.0, float(times.max())), least)
        sides = self._lower_side(), self._upper_side()
        lower, upper = (self._proved(side, drift, self.choices.v) for side in sides)
        if lower is None or upper is None or _half_width(lower, upper) <= tol * scale:
            return self._bounds(lower, upper)
        finer = _FINER * tol * scale / _half_width(lower, upper) * drift
        if thorough or finer >= least:  # some choices that are as good take longer
            drift = least if thorough else finer
            found = [self._proved(side, drift, v) for side, v in zip(sides, (lower, upper), strict=True)]
            lower, upper = (old if new is None else new for old, new in zip((lower, upper), found, strict=True))
        if thorough and _half_width(lower, upper) > tol * scale:
            gap = _GAP * tol * scale
            below, above = (
                self._around_loops(side, start, other, least, gap)
                for side, start, other in zip(sides, (lower, upper), (upper, lower), strict=True)
            )
            lower = lower if below is None else np.maximum(lower, below)
            upper = upper if above is None else np.minimum(upper, above)
        return self._bounds(lower, upper)

    def _around_loops(
        self, side: Side, start: FloatArray, other: FloatArray, drift: float, gap: float
    ) -> FloatArray | None:
        """A bound that is constant where one can move about for so long that the drift of each step would add up.

        States whose values in `other`, the opposite bound, are closer than `gap` share a level; if the proposal is no
        bound, its own values tell the levels better.
        """
        if side.policy is not None or (self.problem.upper_rule if side.is_upper else self.problem.lower_rule) is not (
            Rule.COLLAPSE
        ):
            return None
        bellman, levels_at = side.bellman, other
        for _ in range(_ATTEMPTS):
            level = _levels(np.append(np.where(bellman.pinned, bellman.values, levels_at), 0.0), gap)
            groups = graphs.level_components(bellman, self.problem.usable, bellman.pinned, level, rises=side.is_upper)
            if not groups.internal.any():
                return None
            around = replace(side, groups=groups, linear=ChainSolver(can_end=True, by_graph=True))
            proposed = around.propose(start, drift if side.is_upper else -drift, 0.25 * drift)
            if proposed is None or self._holds(around, proposed):
                return proposed
            levels_at = proposed
        return None

    def _bounds(self, lower: FloatArray | None, upper: FloatArray | None) -> Bounds | None:
        """What is proved together with what was known before."""
        problem = self.problem
        if lower is None and upper is None:
            return None
        low = problem.floor if lower is None else np.maximum(lower, problem.floor)
        high = problem.ceiling if upper is None else np.minimum(upper, problem.ceiling)
        pinned, values = problem.bellman.pinned, problem.bellman.values
        return Bounds(
            self.choices.policy, np.where(pinned, values, np.minimum(low, high)), np.where(pinned, values, high)
        )

    def _proved(self, side: Side, drift: float, start: FloatArray) -> FloatArray | None:
        """The finest bound that can be proved."""
        for _ in range(_ATTEMPTS):
            proposed = side.propose(start, drift if side.is_upper else -drift, 0.25 * drift)
            if proposed is not None and self._holds(side, proposed):
                return proposed
            drift *= _COARSER
        return None

    def _holds(self, side: Side, proposed: FloatArray) -> bool:
        if side.is_upper:
            return proves_upper(self.problem, proposed)
        return proves_lower(self.problem, self.choices.policy, proposed)

    def _lower_side(self) -> Side:
        problem = self.problem
        bellman = self.fixed if problem.nature_helps else problem.bellman
        return self._side(bellman, self.choices.policy, problem.lower_rule, is_upper=False)

    def _upper_side(self) -> Side:
        problem = self.problem
        bellman = problem.bellman if problem.nature_helps else self.fixed
        return self._side(bellman, problem.policy, problem.upper_rule, is_upper=True)

    def _side(self, bellman: PinnedBellman, policy: PolicyRows | None, rule: Rule, *, is_upper: bool) -> Side:
        policy = None if policy is None else policy.on(bellman.mdp)
        known = self.problem.ceiling if is_upper else self.problem.floor
        cap = known if np.isfinite(known).any() else None
        if rule is Rule.PROGRESS:
            return Side(bellman, policy, is_upper, self.idle, cap=cap if self.problem.idle_is_zero else None)
        usable = self.problem.usable
        if policy is not None:
            usable = np.zeros(bellman.mdp.n_pairs, dtype=bool)
            usable[policy.pairs] = True
        groups = graphs.end_components(bellman, usable, bellman.pinned, is_fixed=policy is not None)
        idle = self.idle
        if self.problem.idle_is_zero:  # nobody who could still choose can get anything
            idle = _never_pays(bellman, usable)
        collapsed = groups if (groups.label >= 0).any() else None
        return Side(bellman, policy, is_upper, idle, collapsed, cap)


def _half_width(lower: FloatArray, upper: FloatArray) -> float:
    return 0.5 * float(np.max(upper - lower))


def _levels(values: FloatArray, gap: float) -> IntArray:
    """A number for each value, rising with it; equal where no gap lies between them."""
    order = np.argsort(values, kind="stable")
    level = np.empty(len(values), dtype=np.int64)
    level[order] = np.append(0, np.cumsum(np.diff(values[order]) > gap))
    return level


def _model_of(bellman: PinnedBellman, answer: Response) -> MDP:
    """Nature's answer as a model whose rewards include what it pays."""
    model = answer.model.with_discount(1.0)
    if bellman.ambiguity.is_nominal:
        return model
    means_none = model.probabilities < _NO_MASS
    if model.nnz == bellman.mdp.nnz:  # what nature cannot avoid has some mass, however little
        means_none &= np.repeat(bellman.can_avoid(means_none), np.diff(model.indptr))
    model = model.with_probabilities(np.where(means_none, 0.0, model.probabilities))
    return model.with_extra_rewards(answer.penalty) if answer.penalty.any() else model


def _never_pays(bellman: PinnedBellman, usable: BoolArray) -> BoolArray:
    mdp = bellman.mdp
    paying = bellman.pinned & (bellman.values != 0.0)
    paying[mdp.states[usable & ~graphs.without_payoff(mdp) & ~bellman.pinned[mdp.states]]] = True
    usable = usable & ~bellman.pinned[mdp.states]
    edges = graphs.edges(mdp, usable)
    reaches = graphs.can_reach(*edges, paying)
    if reaches[bellman.ambiguity.candidates(mdp.n_states)].any():
        paying[mdp.states[usable & bellman.leads_anywhere]] = True
        reaches = graphs.can_reach(*edges, paying)
    return ~reaches & ~bellman.pinned


def find_endless(chain: Chain, stopped: BoolArray) -> tuple[int, bool] | None:
    """A state of a closed class that never stops, and whether its states pay in the mean; None if there is none."""
    size = len(chain.cost)
    sources, targets = graphs.chain_edges(chain)
    open_end = targets == size
    label = graphs.components(sources[~open_end], targets[~open_end], size)
    leaves = np.zeros(size, dtype=bool)
    leaves[label[sources[open_end]]] = True
    inner = ~open_end
    leaves[label[sources[inner]][label[sources[inner]] != label[targets[inner]]]] = True
    leaves[label[stopped]] = True
    closed = ~leaves[label]
    if not closed.any():
        return None
    state = int(np.argmax(np.where(closed, np.abs(chain.cost), -1.0)))
    return state, bool(chain.cost[label == label[state]].mean() != 0.0)
