"""Policy iteration: Newton's method for the player and for nature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from robustmdp import _checks, _types
from robustmdp._arrays import FloatArray
from robustmdp.operators import RobustBellman
from robustmdp.operators.policy import PolicyRows
from robustmdp.planning.linear import CLOSEST, ChainSolver
from robustmdp.planning.run import Progress, Stall

_SHRINKS = 0.7  # a joint step is kept if the bound falls to this share of what it was
_NOMINAL_ACCURACY = 1e-3  # of the values: the nominal solution is only a start
_JOINT_ACCURACY = 0.1  # of what the last joint step left of the bound: no step helps more than its chain is exact
_OPENING = 1  # sweeps before the first joint step
_RETRY_SWEEPS = 4
_PATIENCE = 4
_LOOK_AHEAD = 10
_NOMINAL_LOOK_AHEAD = 30


@dataclass(frozen=True)
class PolicyIteration:
    """Solve for the greedy policy and nature's answer at once; where that does not help, for nature's answer first.

    Each step sweeps once over all pairs and then either (joint) fixes both players' choices and solves that chain,
    which is kept only if the certified bound shrinks, or (nested) solves for nature's best answer to the policy, which
    is a concave problem and always converges, or, should both fail, sweeps. Where joint steps fail, the rest starts
    from the nominal solution.

    Parameters
    ----------
    max_steps : int

    >>> from robustmdp import ChiSquare, Penalized, problems, solve
    >>> answer = solve(problems.two_state(0.5, 0.9), Penalized(ChiSquare(), 0.01), solver=PolicyIteration())
    >>> round(float(answer.value[0]), 6)  # the closed form of Theorem 3.2's proof
    1.009
    """

    max_steps: int = 1000
    fixed_steps = False

    def __post_init__(self) -> None:
        _types.check_fields(self)
        _checks.positive_integer("max_steps", self.max_steps)

    def iterate(
        self, bellman: RobustBellman, policy: PolicyRows | None, tol: float, start: FloatArray | None = None
    ) -> Iterator[Progress]:
        """Yield the sweep at each new iterate."""
        work = Work(bellman, policy, tol)
        progress = work.sweep(work.start() if start is None else start)
        for _ in range(_OPENING if start is None else 0):
            yield progress
            progress = work.sweep(progress.centred())
        best, failures, wait, idle, patience = progress, 0, 0, 0, _PATIENCE
        while True:
            yield progress
            before = progress
            if wait == 0:
                progress = work.joint(before)
                if progress.error_bound > _SHRINKS * before.error_bound:
                    failures += 1
                    wait = 2**failures - 1  # try again soon the first time, then ever less often
                    progress = self._after_failure(work, before, progress, failures)
            elif idle < patience:
                progress = work.nested(before)
            else:  # longer and longer, so that sweeps alone would end it
                progress = work.sweeps(best, 10 * patience)
                idle, patience = 0, 2 * patience
            wait = max(wait - 1, 0)
            idle = 0 if progress.error_bound < best.error_bound else idle + 1
            best = min(best, progress, key=_bound)

    def _after_failure(self, work: Work, before: Progress, after: Progress, failures: int) -> Progress:
        """A few sweeps the first time; then the nominal solution as a better start; then nested steps."""
        base = min(before, after, key=_bound)
        if failures == 1:
            return work.sweeps(base, _RETRY_SWEEPS)
        if failures == 2 and not work.bellman.ambiguity.is_nominal:
            base = min(base, work.sweep(self._nominal(work)), key=_bound)
        return work.nested(base)

    def _nominal(self, work: Work) -> FloatArray:
        """The nominal solution, roughly: robust steps from there need less work than from nothing."""
        nominal, stall = work.bellman.nominal(), Stall()
        for progress in self.iterate(nominal, work.policy, max(work.tol, _NOMINAL_ACCURACY)):
            v = progress.centred()
            if progress.error_bound <= _NOMINAL_ACCURACY * max(1.0, float(abs(v).max())) or stall.seen(progress):
                break
        work.bellman.rows += nominal.rows
        return v

    def reached(self, progress: Progress, target: float) -> bool:
        """Are the certified bounds close enough?"""
        return progress.error_bound <= target


def _bound(progress: Progress) -> float:
    return progress.error_bound


@dataclass
class Work:
    """The moves of policy iteration on one problem."""

    bellman: RobustBellman
    policy: PolicyRows | None
    tol: float
    by_graph: bool = False  # how chains are ordered
    linear: ChainSolver = field(init=False)
    _bound: float = field(init=False, default=0.0)  # before the last joint step

    def __post_init__(self) -> None:
        make = self.bellman.chain_solver or ChainSolver
        self.linear = make(self.bellman.can_end, by_graph=self.by_graph)

    def start(self) -> FloatArray:
        """A sweep at a constant, where nature has no choice: the middle of the value range, or 0 if episodes end."""
        level = 0.0 if self.bellman.can_end else 0.5 * sum(self.bellman.mdp.value_range)
        return self.bellman.apply_to_constant(level)

    def sweep(self, v: FloatArray) -> Progress:
        """T v, and the pairs that attain it."""
        swept = self.bellman.apply(v) if self.policy is None else self.bellman.apply_policy(self.policy, v)
        return Progress(v, swept, self.bellman.can_end, self.bellman.mdp.discount, self._chosen())

    def _policy_of(self, progress: Progress) -> PolicyRows:
        return progress.policy if progress.policy is not None else self._chosen()

    def _chosen(self) -> PolicyRows:
        return self.policy if self.policy is not None else self.bellman.chosen()

    def joint(self, progress: Progress) -> Progress:
        """The sweep at the joint step's values."""
        return self.sweep(self.joint_values(progress))

    def joint_values(self, progress: Progress) -> FloatArray:
        """Fix the greedy policy and nature's answer to it at v, solve that chain."""
        chain = self.bellman.chain(self._policy_of(progress), progress.v)
        bound, before = progress.error_bound, self._bound
        share = _JOINT_ACCURACY * bound / before if before > 0.0 else self.linear.loosest
        self._bound = bound
        share = min(max(share, CLOSEST), self.linear.loosest)
        accuracy = max(share * bound, self._floor(progress))
        return self.linear.solve(chain, progress.centred(), accuracy)

    def nested(self, progress: Progress) -> Progress:
        """Solve for nature's best answer to the greedy policy, closely enough for it to improve, then look ahead.

        The sweeps after it are cheap beside that solve and propagate its values far.
        """
        v = self._answer(progress)
        if self.bellman.ambiguity.is_nominal and self.policy is None:
            return self.sweep(self.bellman.gauss_seidel(v, _NOMINAL_LOOK_AHEAD))
        following = self.sweep(v)
        for _ in range(_LOOK_AHEAD if self.policy is None else 0):
            following = self.sweep(following.swept)
        return following

    def _answer(self, progress: Progress) -> FloatArray:
        """The value of the greedy policy against its worst case: Newton on nature alone, a concave problem."""
        mdp = self.bellman.mdp
        accuracy = max(0.1 * (1.0 - mdp.discount) * progress.error_bound, self._floor(progress))
        policy = self._policy_of(progress)
        v = progress.swept
        for _ in range(100):
            v = self.linear.solve(self.bellman.chain(policy, v), v, 0.25 * accuracy)
            swept = self.bellman.apply_policy(policy, v)
            inner = Progress(v, swept, self.bellman.can_end, mdp.discount, policy)
            if inner.error_bound <= accuracy:
                break
        return inner.centred()

    def sweeps(self, progress: Progress, count: int) -> Progress:
        """Plain sweeps, which always contract."""
        for _ in range(count):
            progress = self.sweep(progress.centred())
        return progress

    def _floor(self, progress: Progress) -> float:
        """No linear solve needs to be better than a tenth of what was asked for."""
        return 0.1 * self.tol * max(1.0, float(abs(progress.swept).max()))
