"""The numbers behind a report: curve, stress test, recommendation, and where nature pulls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp.ambiguity import Ambiguity, Constrained, Nominal, Penalized
from robustmdp.divergences import ChiSquare, FDivergence, TotalVariation
from robustmdp.models import MDP, Counts
from robustmdp.operators import RobustBellman
from robustmdp.planning import solve
from robustmdp.result import Solution
from robustmdp.table import Table
from robustmdp.tuning import StressTable, Suggestion, levels_for, matching_radius, matching_weight, stress, suggest
from robustmdp.tuning.curve import Point, as_table, certainly_worse, points_along
from robustmdp.tuning.start import distribution
from robustmdp.tuning.worlds import Adversary, Family, Models, Plausible, RandomKernels

FloatArray = npt.NDArray[np.float64]
Progress = Callable[[str, float], None]

_LEVELS = 30
_SMALLEST = 1e-9  # of the largest weight
_USUAL_RADIUS = 0.1  # for the stress test, where nothing better is known


class Row(NamedTuple):
    """One pair: its successors, their probabilities under the model and in the worst case, and their values."""

    state: int
    action: int
    successors: tuple[str, ...]
    nominal: FloatArray
    worst: FloatArray
    values: FloatArray

    @property
    def moved(self) -> float:
        """How much probability nature moves: the total variation."""
        return 0.5 * float(np.abs(self.worst - self.nominal).sum())


@dataclass(frozen=True, eq=False)
class Study:
    """All that a report tells."""

    mdp: MDP
    divergence: FDivergence
    start: FloatArray
    trusting: Solution
    points: tuple[Point, ...]
    curve: Table
    suggestion: Suggestion
    stress: StressTable
    matching: Mapping[str, float]

    @cached_property
    def robust(self) -> Solution:
        """The recommended solution or, where trusting the model is recommended, that of the curve's knee."""
        trusted = isinstance(self.suggestion.ambiguity, Nominal)
        return self.points[self.knee].robust.solution(self.mdp) if trusted else self.suggestion.solution

    @property
    def doubt(self) -> Ambiguity:
        """What `robust` guards against."""
        trusted = isinstance(self.suggestion.ambiguity, Nominal)
        return self.points[self.knee].ambiguity if trusted else self.suggestion.ambiguity

    @property
    def knee(self) -> int:
        """The curve's knee; its most robust level where robustness buys nothing."""
        knee: int = self.curve.notes["knee"]
        return knee % len(self.points)

    @property
    def changed(self) -> npt.NDArray[np.int64]:
        """The states in which `robust` decides otherwise than the policy that trusts the model."""
        states = np.arange(self.mdp.n_states)
        lost = self.robust.q[states, self.robust.policy] - self.robust.q[states, self.trusting.policy]
        return certainly_worse(lost, self.robust, self.trusting.policy)


def study(
    mdp: MDP,
    divergence: FDivergence,
    *,
    counts: Counts | None,
    confidence: float,
    held_out: Models | None,
    initial: npt.ArrayLike | None,
    policies: Mapping[str, Any],
    threads: int | None,
    progress: Progress,
) -> Study:
    """Everything, in the order of a report; `progress` hears of each part as (name, share done)."""
    progress("solving the model", 0.0)
    trusting = solve(mdp, Nominal(), tol=1e-6, threads=threads)
    start = distribution(mdp, initial)
    advice = suggest(
        mdp,
        divergence,
        counts=counts,
        held_out=held_out,
        confidence=confidence,
        initial=start,
        threads=threads,
        progress=lambda done, total: progress("recommendation", 0.05 + 0.3 * done / total),
    )
    radius, matching = _matching(mdp, advice, start, threads)
    points = []
    levels = _weights(mdp, divergence, matching)
    for point in points_along(mdp, divergence, Penalized, levels, trusting, threads=threads):
        points.append(point)
        progress("robustness curve", 0.35 + 0.25 * len(points) / len(levels))
    curve = as_table(points, start, "weight").with_notes(best=float(start @ trusting.value))
    tried = {"trusting the model": trusting, **_robust_policies(advice, points, curve), **policies}
    families = _families(divergence, radius, counts, held_out)
    tested = stress(
        mdp,
        tried,
        families,
        initial=start,
        threads=threads,
        progress=lambda done, total: progress("stress test", 0.6 + 0.35 * done / total),
    )
    return Study(mdp, divergence, start, trusting, tuple(points), curve, advice, tested, matching)


def _weights(mdp: MDP, divergence: FDivergence, matching: Mapping[str, float]) -> FloatArray:
    """The usual weights, stretched to reach the recommended one."""
    usual = levels_for(mdp, divergence, count=_LEVELS)
    wanted = matching.get("weight", usual[-1])
    lowest = max(min(usual[-1], 0.5 * wanted), _SMALLEST * usual[0])
    return np.geomspace(usual[0], lowest, _LEVELS)


def _matching(
    mdp: MDP, advice: Suggestion, start: FloatArray, threads: int | None
) -> tuple[float | FloatArray, dict[str, float]]:
    """The radius that stands for the recommendation, and the weight and radius that say the same (Theorem 3.1)."""
    ambiguity = advice.ambiguity
    if isinstance(ambiguity, Penalized):
        radius = matching_radius(mdp, ambiguity, start, threads=threads)
        return radius, {"weight": float(ambiguity.level), "radius": radius}
    if isinstance(ambiguity, Constrained) and isinstance(ambiguity.level, float):
        weight = matching_weight(mdp, ambiguity, start, threads=threads)
        return ambiguity.level, {"weight": weight, "radius": ambiguity.level}
    if advice.radii is not None:
        return advice.radii, {}
    return _USUAL_RADIUS, {}


def _robust_policies(advice: Suggestion, points: Sequence[Point], curve: Table) -> dict[str, npt.NDArray[Any]]:
    """The recommended policy, and the knee's where that is another one."""
    knee = points[curve.notes["knee"] % len(points)]
    if isinstance(advice.ambiguity, Nominal):
        return {f"robust, λ = {knee.level:.3g}": knee.robust.policy}
    found = {"recommended": advice.solution.policy}
    if not np.array_equal(knee.robust.policy, advice.solution.policy):
        found[f"robust, λ = {knee.level:.3g} (knee)"] = knee.robust.policy
    return found


def _families(
    divergence: FDivergence, radius: float | FloatArray, counts: Counts | None, held_out: Models | None
) -> list[Family]:
    """Worlds around the model: random, adversarial at several radii, of other divergences, and the user's."""
    found: list[Family] = [held_out] if held_out is not None else []
    if counts is not None:
        found.append(Plausible(counts, count=100, seed=1))
    if isinstance(radius, np.ndarray):
        return [*found, RandomKernels(divergence, radius, count=50), Adversary(Constrained(divergence, radius))]
    usual = radius if 0.0 < radius < np.inf else _USUAL_RADIUS
    found.append(RandomKernels(divergence, usual, count=50))
    found += [Adversary(Constrained(divergence, factor * usual)) for factor in (0.5, 1.0, 2.0)]
    others = [each for each in (ChiSquare(), TotalVariation()) if each != divergence]
    return [*found, *(Adversary(Constrained(each, min(usual, 0.5))) for each in others)]


def rows_of(
    mdp: MDP, ambiguity: Ambiguity, value: FloatArray, states: npt.ArrayLike, policy: npt.NDArray[np.int64]
) -> list[Row]:
    """What nature makes of the pairs (state, policy[state]) when it answers to a value."""
    worst = RobustBellman(mdp, ambiguity).worst_rows(value)
    values = np.append(value, 0.0)
    rows = []
    for state in np.asarray(states, dtype=np.int64).tolist():
        action = int(policy[state])
        pair = mdp.pair(state, action)
        entries = slice(int(mdp.indptr[pair]), int(mdp.indptr[pair + 1]))
        successors = mdp.indices[entries]
        rewards = mdp.rewards[entries] if mdp.rewards_on_successors else 0.0
        names = tuple("the end" if s == mdp.n_states else str(int(s)) for s in successors)
        outcomes = rewards + mdp.discount * values[successors]
        rows.append(Row(state, action, names, mdp.probabilities[entries], worst[entries], outcomes))
    return rows


def taken_by_nature(mdp: MDP, ambiguity: Ambiguity, solution: Solution, start: FloatArray) -> FloatArray:
    """What nature takes in each state, (S,): how much lower its row's mean is, times how often the policy is there."""
    worst = RobustBellman(mdp, ambiguity).worst_rows(solution.value)
    outcomes = mdp.discount * np.append(solution.value, 0.0)[mdp.indices]
    if mdp.rewards_on_successors:
        outcomes = outcomes + mdp.rewards
    taken = np.add.reduceat((mdp.probabilities - worst) * outcomes, mdp.indptr[:-1])
    pairs = np.array([mdp.pair(state, int(action)) for state, action in enumerate(solution.policy)])
    return np.asarray(taken[pairs] * _occupancy(mdp, worst, pairs, start))


def _occupancy(mdp: MDP, probabilities: FloatArray, pairs: npt.NDArray[np.int64], start: FloatArray) -> FloatArray:
    """Discounted visits d = start + discount P' d, by sweeps until what is left is small."""
    import scipy.sparse as sp

    size = mdp.n_states
    rows = sp.csr_array((probabilities, mdp.indices, mdp.indptr), shape=(mdp.n_pairs, size + 1))[pairs][:, :size]
    visits, now = start.copy(), start.copy()
    for _ in range(10_000):
        now = mdp.discount * (rows.T @ now)
        visits += now
        if now.sum() < 1e-6 * visits.sum():
            break
    return visits
