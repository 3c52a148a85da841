"""Probabilities of reaching a goal, and what is collected until then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity import Ambiguity, check_ambiguity
from robustmdp.models import MDP
from robustmdp.operators.bellman import Response
from robustmdp.operators.pinned import PinnedBellman
from robustmdp.planning import horizon
from robustmdp.planning.run import Callback
from robustmdp.planning.totals import graphs, sure
from robustmdp.planning.totals.problem import Problem, Rule, total_reward
from robustmdp.planning.totals.search import Search
from robustmdp.result import Solution

_PER_STEP = 0.99  # of a probability, in the guess with which a search begins

States = str | Sequence[int] | npt.NDArray[Any]


def reach(
    mdp: MDP,
    ambiguity: Ambiguity,
    goal: States,
    *,
    avoid: States | None = None,
    within: int | None = None,
    minimise: bool = False,
    rewards: bool = False,
    tol: float = 1e-8,
    threads: int | None = None,
    callback: Callback | None = None,
) -> Solution:
    """max over policies of inf over nature of P(goal is reached, and no state of `avoid` before), certified.

    With `rewards`, of E[sum of rewards until the goal] instead, infinite where the goal is not reached surely, as in
    PRISM. The discount of the model is ignored. Nature is against the player, also where he minimises; with
    `Optimistic(set)` it helps. `worst_case` is what nature does to the original model.

    Parameters
    ----------
    mdp : MDP
    ambiguity : a set
    goal, avoid : the name of a label of the model, a list of states, or (S,) bool
    within : int, optional
        Steps in which the goal must be reached; the result then has the shapes of FiniteHorizon: `value[0]` counts.
    minimise : bool
        Whether the player makes the probability or the sum small.
    rewards : bool
        Whether to sum rewards until the goal, or until the last step with `within`.
    tol, threads, callback : as in `solve`

    >>> from robustmdp import MDP, L1, Nominal
    >>> walk = MDP.from_rows([0, 0, 1, 2], [0] * 4, [1, 2, 1, 2], [0.5, 0.5, 1, 1], [1.0] * 4, 1.0)
    >>> reach(walk, Nominal(), [1]).value[0].round(6), reach(walk, L1(0.2), [1]).value[0].round(6)
    (np.float64(0.5), np.float64(0.4))
    """
    _types.check_arguments(reach, locals())
    _checks.must(not (rewards and avoid is not None), "avoid must be None with rewards=True: it asks for a probability")
    target = _states("goal", goal, mdp)
    avoided = np.zeros(mdp.n_states, dtype=bool) if avoid is None else _states("avoid", avoid, mdp) & ~target
    question = _Question(mdp, check_ambiguity(ambiguity), target, -1.0 if minimise else 1.0, tol, threads, callback)
    if within is not None:
        return question.within(avoided, _checks.positive_integer("within", within), rewards=rewards)
    return question.rewards() if rewards else question.probability(avoided)


def _states(name: str, given: States, mdp: MDP) -> BoolArray:
    if isinstance(given, str):
        if given not in mdp.labels:
            _checks.must(bool(mdp.labels), f"{name} must be a list of states: the model has no labels, got {given!r}")
            _checks.nearest(f"label as {name}", given, list(mdp.labels))
        return np.array(mdp.labels[given], dtype=bool)
    array = _checks.array(name, given)
    if array.dtype == bool:
        _checks.must(array.shape == (mdp.n_states,), f"{name} must have shape ({mdp.n_states},): got {array.shape}")
        return array.copy()
    is_list = array.ndim == 1 and (array.size == 0 or array.dtype.kind in "iu")
    _checks.must(is_list, f"{name} must be a label, a list of states or (S,) bool: got {_checks.show(given)}")
    chosen = np.zeros(mdp.n_states, dtype=bool)
    wrong = (array < 0) | (array >= mdp.n_states)
    if wrong.any():
        _checks.fail(f"{name} must hold states in 0..{mdp.n_states - 1}: got {array[wrong][0]}")
    chosen[array.astype(np.int64)] = True
    return chosen


@dataclass(frozen=True, eq=False)
class Presented:
    """Nature's answers as changes of the original model; values come with the player's own sign."""

    bellman: PinnedBellman
    mdp: MDP
    sign: float

    def worst_case(self, v: FloatArray) -> Response:
        """The same rewards as the original model."""
        return self.bellman.worst_case(self._own(v), onto=self.mdp)

    def worst_noise(self, v: FloatArray, pair: int) -> FloatArray:
        return self.bellman.worst_noise(self._own(v), pair)

    def _own(self, v: FloatArray) -> FloatArray:
        """With the operator's sign, and 0 where the value is infinite."""
        return np.asarray(self.sign * np.where(np.isfinite(v), v, 0.0))


@dataclass(frozen=True, eq=False)
class _Question:
    """One call; with sign -1 the player makes the negative value large."""

    mdp: MDP
    ambiguity: Ambiguity
    goal: BoolArray
    sign: float
    tol: float
    threads: int | None
    callback: Callback | None

    def probability(self, avoided: BoolArray) -> Solution:
        steps = self._steps(self.goal | avoided)
        if not self.ambiguity.invents:
            avoided = avoided | (steps < 0)  # no path: the probability is 0
        bellman = self._chances(avoided)
        problem = total_reward(bellman, None, "probability")
        ones = np.ones(self.mdp.n_states)
        if self.sign > 0:
            guess = np.where(steps < 0, 0.0, _PER_STEP ** np.maximum(steps, 0))
            problem = replace(problem, ceiling=ones, guess=guess, steps=steps)
        else:
            problem = replace(problem, floor=-ones)
        solution = Search(problem, self.tol, None, self.callback).run(None)
        return replace(self._present(solution, bellman), quantity="probability")

    def within(self, avoided: BoolArray, steps: int, *, rewards: bool) -> Solution:
        bellman = self._sums(self.goal, self.goal.astype(float) * 0.0) if rewards else self._chances(avoided)
        terminal = np.where(bellman.pinned, bellman.values, 0.0)
        solution = horizon.run_backwards(bellman, terminal, steps, tol=self.tol, callback=self.callback)
        return replace(self._present(solution, bellman, steps), quantity="value" if rewards else "probability")

    def rewards(self) -> Solution:
        player_wants, helps = self.sign < 0, self.ambiguity.sign < 0
        nature_wants = player_wants == helps
        free = self._sums(self.goal, np.zeros(self.mdp.n_states))
        surely = sure.reached_surely(free, self.goal, player_wants=player_wants, nature_wants=nature_wants)
        finite = surely.states
        if not (finite & ~self.goal).any():
            return self._all_known(surely)
        forbidden, tempting = self._pairs(free, finite, player_wants=player_wants, nature_wants=nature_wants)
        pinned = self.goal | ~finite
        size = 1e4 * max(1.0, float(np.max(np.abs(self.mdp.rewards)))) if tempting else 0.0
        while True:
            values = np.where(finite, 0.0, self.sign * size)
            bellman = self._sums(pinned, values, forbidden)
            solution = Search(self._until_goal(bellman, helps), self.tol, None, self.callback).run(None)
            nearer = 4.0 * max(1.0, float(np.max(np.abs(np.where(finite, solution.value, 0.0)))))
            if not tempting or size <= 4.0 * nearer:
                break
            size = nearer  # only its order matters, and large numbers cost digits
        if tempting:
            self._check_avoided(solution, finite)
        return self._present(self._with_infinite(solution, surely), bellman)

    def _until_goal(self, bellman: PinnedBellman, helps: bool) -> Problem:
        """Who makes the sum small must reach the goal: his bound is proved by progress, the other by collapse."""
        low, high = bellman.mdp.reward_range
        # Whoever does not reach the goal has an infinite sum, so its sign bounds it on one side only.
        floor = np.full(self.mdp.n_states, 0.0 if low >= 0.0 and self.sign > 0 else -np.inf)
        ceiling = np.full(self.mdp.n_states, 0.0 if high <= 0.0 and self.sign < 0 else np.inf)
        lower, upper = Rule.PROGRESS, Rule.COLLAPSE
        if self.sign > 0:
            lower, upper = (Rule.PROGRESS, Rule.PROGRESS) if helps else (Rule.COLLAPSE, Rule.PROGRESS)
        size = float(np.mean(np.abs(bellman.mdp.rewards)))
        steps = np.maximum(self._steps(bellman.pinned, bellman.forbidden), 0)
        guess = np.where(bellman.pinned, bellman.values, self.sign * size * steps)
        return Problem(bellman, None, lower, upper, False, floor, ceiling, "reward until the goal", guess)

    def _steps(self, pinned: BoolArray, forbidden: BoolArray | None = None) -> IntArray:
        """How many steps the goal is away at least, (S,), -1 where it cannot be reached: a start that leads there."""
        usable = ~pinned[self.mdp.states]
        if forbidden is not None:
            usable &= ~forbidden
        return graphs.paths_to(*graphs.edges(self.mdp, usable), self.goal).distance

    def _pairs(
        self, free: PinnedBellman, finite: BoolArray, *, player_wants: bool, nature_wants: bool
    ) -> tuple[BoolArray, bool]:
        """The pairs that a player who must reach the goal cannot use, and whether nature must avoid successors."""
        mdp = self.mdp
        away = ~np.append(finite, False)
        touches = np.logical_or.reduceat(away[mdp.indices], mdp.indptr[:-1])
        mine = (finite & ~self.goal)[mdp.states]
        forbidden = np.zeros(mdp.n_pairs, dtype=bool)
        if player_wants:
            forbidden = mine & touches & ~(free.can_avoid_states(away) & nature_wants)
        left = mine & touches & ~forbidden
        if left.any():
            ends = left & np.logical_or.reduceat(mdp.indices == mdp.n_states, mdp.indptr[:-1])
            if ends.any():
                _checks.fail(
                    "a model whose episodes end elsewhere than at the goal must make the end a state of its own: "
                    f"{mdp.pair_name(int(np.argmax(ends)))} may end"
                )
        return forbidden, bool(left.any())

    def _check_avoided(self, solution: Solution, finite: BoolArray) -> None:
        """States of infinite value stood in for by a large number: nature must not use them at all."""
        model = solution.worst_case
        owner = np.repeat(model.states, np.diff(model.indptr))
        used = ~np.append(finite, False)[model.indices] & (finite & ~self.goal)[owner] & (model.probabilities > 1e-12)
        if self.sign < 0:
            used &= np.repeat(solution.policy[model.states] == model.actions, np.diff(model.indptr))
        if used.any():
            name = self.mdp.state_name(int(owner[np.argmax(used)]))
            _checks.fail(
                f"nature must be able to avoid states from which the goal is not reached at a best answer: from {name} "
                "it only comes close to it; use a set of linear constraints, such as intervals"
            )

    def _chances(self, avoided: BoolArray) -> PinnedBellman:
        values = self.sign * self.goal.astype(np.float64)
        mdp = self.mdp.with_discount(1.0).with_rewards(np.zeros(self.mdp.n_pairs))
        return PinnedBellman(mdp, self.ambiguity, self.goal | avoided, values, threads=self.threads)

    def _sums(self, pinned: BoolArray, values: FloatArray, forbidden: BoolArray | None = None) -> PinnedBellman:
        mdp = self.mdp.with_discount(1.0).with_rewards(self.sign * self.mdp.rewards)
        return PinnedBellman(mdp, self.ambiguity, pinned, values, forbidden=forbidden, threads=self.threads)

    def _all_known(self, surely: sure.Surely) -> Solution:
        """Nothing to compute: 0 at the goal, infinite elsewhere."""
        bellman = self._sums(np.ones(self.mdp.n_states, dtype=bool), np.zeros(self.mdp.n_states))
        solution = Search(self._until_goal(bellman, False), self.tol, None, self.callback).run(None)
        return self._present(self._with_infinite(solution, surely), bellman)

    def _with_infinite(self, solution: Solution, surely: sure.Surely) -> Solution:
        """Infinite where the goal is not reached surely, with a policy that sees to it."""
        infinite = ~surely.states
        if not infinite.any():
            return solution
        bounds = (np.where(infinite, self.sign * np.inf, x) for x in (solution.value, solution.lower, solution.upper))
        value, lower, upper = bounds
        q = np.where(infinite[:, None] & np.isfinite(solution.q), self.sign * np.inf, solution.q)
        policy = np.where(infinite, self.mdp.actions[surely.spoiling], solution.policy).astype(np.int64)
        return replace(solution, value=value, lower=lower, upper=upper, q=q, policy=policy)

    def _present(self, solution: Solution, bellman: PinnedBellman, steps: int | None = None) -> Solution:
        """With the player's own sign, and nature's answers as changes of the original model."""
        presented = Presented(bellman, self.mdp, self.sign)
        adversary = presented if steps is None else horizon.StepwiseAdversary([presented])
        if self.sign > 0:
            return replace(solution, adversary=adversary)
        available = self.mdp.table(np.ones(self.mdp.n_pairs), fill=0.0) > 0.0
        return replace(
            solution,
            value=-solution.value + 0.0,
            lower=-solution.upper + 0.0,
            upper=-solution.lower + 0.0,
            q=np.where(available, -solution.q + 0.0, -np.inf),
            base=-solution.base + 0.0,
            adversary=adversary,
        )
