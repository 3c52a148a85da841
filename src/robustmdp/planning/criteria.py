"""What is to be made large: the model's discounted sum unless a criterion says otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.ambiguity import Ambiguity
from robustmdp.models import MDP
from robustmdp.operators import RobustBellman
from robustmdp.operators.pinned import PinnedBellman
from robustmdp.operators.policy import policy_array, policy_rows
from robustmdp.planning import horizon
from robustmdp.planning.average import AverageSearch
from robustmdp.planning.run import Callback, Solver
from robustmdp.planning.totals.problem import total_reward
from robustmdp.planning.totals.search import Search
from robustmdp.result import Solution


class Settings(NamedTuple):
    """What `solve` and `evaluate` were told besides the problem."""

    tol: float
    threads: int | None
    callback: Callback | None
    start: npt.ArrayLike | None
    solver: Solver | None = None


class Criterion(Protocol):
    """A criterion is a frozen record of its own settings that solves and evaluates."""

    def solve(self, mdp: MDP, ambiguity: Ambiguity, how: Settings) -> Solution:
        """The policy with the best worst case."""

    def evaluate(self, mdp: MDP, policy: npt.ArrayLike, ambiguity: Ambiguity, how: Settings) -> Solution:
        """The worst case of a policy."""


def as_given(policy: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A policy as `evaluate` returns it: actions as int64, probabilities as float64."""
    is_whole = np.issubdtype(policy.dtype, np.integer) or policy.ndim == 1
    return policy.astype(np.int64 if is_whole else np.float64)


@dataclass(frozen=True, eq=False)
class FiniteHorizon:
    """v_T = terminal, v_t(s) = max over a of inf over P of E_P[r(s,a,s') + discount v_{t+1}(s')].

    The discount is the model's; 1 is allowed. `value`, `lower` and `upper` are (T+1, S), `policy` is (T, S) and `q`
    (T, S, A): at step t of T. `worst_case[t]` is the model that nature makes at step t. Bounds hold step by step.

    Parameters
    ----------
    steps : int
        How many decisions are left, T.
    terminal : (S,) values of the states in which the last step leaves the process, optional
        0 if not given; the hidden end is worth 0 in any event.

    >>> from robustmdp import MDP, Nominal, solve
    >>> world = MDP.from_arrays([[[0.5, 0.5]], [[0.0, 1.0]]], [1.0, 0.0], 1.0)
    >>> solve(world, Nominal(), criterion=FiniteHorizon(3)).value[:, 0].round(6)  # 1 + 1/2 + 1/4, 1 + 1/2, 1, 0
    array([1.75, 1.5 , 1.  , 0.  ])
    """

    steps: int
    terminal: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        _checks.positive_integer("steps", self.steps)
        if self.terminal is not None:
            terminal = _checks.numbers("terminal", self.terminal)
            _checks.must(terminal.ndim == 1, f"terminal must have shape (S,): got {terminal.shape}")
            _checks.must(bool(np.isfinite(terminal).all()), "terminal must be finite everywhere")
            terminal.flags.writeable = False
            object.__setattr__(self, "terminal", terminal)

    def _terminal(self, mdp: MDP) -> FloatArray:
        if self.terminal is None:
            return np.zeros(mdp.n_states)
        terminal = np.asarray(self.terminal, dtype=np.float64)
        _checks.must(
            terminal.shape == (mdp.n_states,), f"terminal must have shape ({mdp.n_states},): got {terminal.shape}"
        )
        return terminal

    def solve(self, mdp: MDP, ambiguity: Ambiguity, how: Settings) -> Solution:
        bellman = self._operator(mdp, ambiguity, how)
        return horizon.run_backwards(bellman, self._terminal(mdp), self.steps, tol=how.tol, callback=how.callback)

    def evaluate(self, mdp: MDP, policy: npt.ArrayLike, ambiguity: Ambiguity, how: Settings) -> Solution:
        bellman = self._operator(mdp, ambiguity, how)
        rows, given = horizon.policies_of_steps(mdp, policy, self.steps)
        solution = horizon.run_backwards(
            bellman, self._terminal(mdp), self.steps, tol=how.tol, policies=rows, callback=how.callback
        )
        return replace(solution, policy=as_given(given))

    @staticmethod
    def _operator(mdp: MDP, ambiguity: Ambiguity, how: Settings) -> RobustBellman:
        backwards = "FiniteHorizon is solved backwards"
        _checks.must(how.solver is None, f"{backwards}, without a solver: got {how.solver!r}")
        _checks.must(how.start is None, f"{backwards}, without a start: give terminal values instead")
        return RobustBellman(mdp, ambiguity, threads=how.threads)


@dataclass(frozen=True)
class TotalReward:
    """v(s) = max over policies of inf over nature of E[sum of all rewards until the end], without a discount.

    The discount of the model is ignored. Rewards may be at least 0, at most 0, or of both signs if the end is reached
    whatever happens; staying for ever where nothing is paid is worth 0 in the first two cases. A value that is not
    finite is refused with the name of a state. `lower` is proved for the policy that is returned.

    >>> from robustmdp import MDP, Nominal, solve
    >>> world = MDP.from_rows([0, 0], [0, 0], [0, 1], [0.75, 0.25], [1.0, 1.0], 1.0, n_states=1)  # 1 leads to the end
    >>> solve(world, Nominal(), criterion=TotalReward()).value.round(6)  # 1/0.25
    array([4.])
    """

    def solve(self, mdp: MDP, ambiguity: Ambiguity, how: Settings) -> Solution:
        problem = total_reward(_without_discount(mdp, ambiguity, how.threads), None)
        return Search(problem, how.tol, how.solver, how.callback).run(how.start)

    def evaluate(self, mdp: MDP, policy: npt.ArrayLike, ambiguity: Ambiguity, how: Settings) -> Solution:
        given = policy_array(policy)
        problem = total_reward(_without_discount(mdp, ambiguity, how.threads), policy_rows(mdp, given))
        return replace(Search(problem, how.tol, None, how.callback).run(how.start), policy=as_given(given))


@dataclass(frozen=True)
class AverageReward:
    """gain(s) = max over policies of inf over nature of lim E[r_1 + ... + r_n]/n from s, the reward per step for ever.

    The discount of the model is ignored, and every step counts alike. For any v and T without a discount,
    min(Tv - v) <= gain <= max(Tv - v) (Odoni 1969; Puterman 1994, section 8.5): `gain`, `gain_lower` and `gain_upper`,
    (S,), and `error_bound` are of the gain, and `gain_lower` is proved for the policy that is returned.

    `value` is the bias: what starting in a state earns beyond the gain of all steps, relative to state 0 (to the end
    where there is one), with gain + value = T value up to the error bound. Its bounds `lower` and `upper` are NaN; `q`
    is of the bias, too. A step after the end earns 0: where episodes end the bounds include 0, and where all of them
    do, the gain is 0. Bounds hold for all states at once. Where the gain depends on the start, whether by the model, by
    the policy or by nature, they do not meet: the status is then `stalled` and names two states.

    >>> from robustmdp import MDP, Nominal, solve
    >>> world = MDP.from_arrays([[[0.5, 0.5], [0.0, 1.0]], [[0.8, 0.2], [0.1, 0.9]]], [[5.0, 10.0], [-1.0, 2.0]], 1.0)
    >>> solve(world, Nominal(), criterion=AverageReward()).gain.round(6)
    array([3.888889, 3.888889])
    """

    def solve(self, mdp: MDP, ambiguity: Ambiguity, how: Settings) -> Solution:
        bellman = RobustBellman(_undiscounted(mdp), ambiguity, threads=how.threads)
        search = AverageSearch(bellman, None, tol=how.tol, solver=how.solver, callback=how.callback)
        return search.run(how.start)

    def evaluate(self, mdp: MDP, policy: npt.ArrayLike, ambiguity: Ambiguity, how: Settings) -> Solution:
        given = policy_array(policy)
        bellman = RobustBellman(_undiscounted(mdp), ambiguity, threads=how.threads)
        search = AverageSearch(bellman, policy_rows(mdp, given), tol=how.tol, solver=None, callback=how.callback)
        return replace(search.run(how.start), policy=as_given(given))


def _undiscounted(mdp: MDP) -> MDP:
    if not isinstance(mdp, MDP):
        raise TypeError(f"mdp must be an MDP: got {type(mdp).__name__}")
    return mdp.with_discount(1.0)


def _without_discount(mdp: MDP, ambiguity: Ambiguity, threads: int | None) -> PinnedBellman:
    undiscounted = _undiscounted(mdp)
    nothing = np.zeros(mdp.n_states, dtype=bool)
    return PinnedBellman(undiscounted, ambiguity, nothing, np.zeros(mdp.n_states), threads=threads)
