"""From samples alone: the worst case of a given policy, and that of one distribution (section 4.1)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core, _types
from robustmdp.ambiguity import Ambiguity
from robustmdp.divergences import ChiSquare, TotalVariation
from robustmdp.learning.generative import GenerativeQLearning
from robustmdp.learning.levels import check_learnable, price_of
from robustmdp.learning.markovian import MarkovianQLearning
from robustmdp.learning.runnable import check_seed
from robustmdp.learning.schedules import Numbers, Schedule, Setting, Theorem41, WeightOverRoot, check_schedule
from robustmdp.learning.sources import OnPolicySource, Shape, Source, source_of
from robustmdp.models import MDP, Trajectory
from robustmdp.operators.policy import policy_pairs
from robustmdp.result import Solution


def learn_value(
    world: Any,
    policy: npt.ArrayLike,
    ambiguity: Ambiguity,
    *,
    samples: int,
    confidence: float | None = 0.95,
    certify_share: float = 0.5,
    seed: int = 0,
    discount: float | None = None,
    reward_range: tuple[float, float] | None = None,
    start: int | str | None = None,
) -> Solution:
    """v = T^pi v of a policy pi, learned, with bounds that hold with probability `confidence` at all states at once.

    An MDP or a Simulator is asked about the policy's pairs, round after round; an environment is stepped by the policy;
    of a log, the transitions by actions that the policy never takes are passed over. Who chose the others does not
    matter. Where the policy mixes actions, v(s) = sum over a of pi(a|s) Q(s, a), with nature's answer at each of its
    pairs. Memory is that of the policy's pairs.

    Parameters
    ----------
    world : MDP, Simulator, Trajectory or Gymnasium environment
    policy : (S,) actions or (S, A) probabilities
    samples : int
        How many transitions to draw, or to take from a log.
    confidence, certify_share, seed, discount, reward_range, start : as for a learner's `run`

    >>> from robustmdp import ChiSquare, Penalized, evaluate, problems
    >>> world, policy, doubt = problems.chain(), [0] * 10, Penalized(ChiSquare(), 2.0)
    >>> learned, truth = learn_value(world, policy, doubt, samples=200_000), evaluate(world, policy, doubt)
    >>> bool((learned.lower <= truth.upper).all() and (truth.lower <= learned.upper).all())
    True
    >>> learned.confidence, bool((learned.upper - learned.lower).max() < 3)
    (0.95, True)
    """
    _types.check_arguments(learn_value, locals())
    where: dict[str, Any] = {"discount": discount, "reward_range": reward_range, "start": start}
    given, first = _checks.array("policy", policy), check_seed(seed)
    source = _on_policy(world, given, first, where)
    if isinstance(world, Trajectory):
        samples = min(samples, _count_usable(world, source.shape))
    learner = GenerativeQLearning(ambiguity) if source.is_generative else MarkovianQLearning(ambiguity)
    solution = learner.run(source, samples=samples, seed=first, confidence=confidence, certify_share=certify_share)
    return solution if given.ndim == 1 else replace(solution, policy=given.astype(np.float64))


def _on_policy(world: Any, policy: npt.NDArray[Any], seed: int, where: dict[str, Any]) -> Source:
    """The world with the policy's pairs only, and with their probabilities where some state has several."""
    source: Source
    if isinstance(world, MDP):
        pairs, weights = policy_pairs(world, policy)
        source = source_of(world.restricted(pairs), None, [seed], **where)
    else:
        shape = source_of(world, None, [seed], **where).shape
        pairs, weights = policy_pairs(shape, policy)
        behaviour = np.zeros((shape.n_states, shape.n_actions))
        behaviour.reshape(-1)[pairs] = weights
        source = OnPolicySource(source_of(world, behaviour, [seed], **where), pairs)
    if len(pairs) > source.shape.n_states:
        source.shape = replace(source.shape, mixture=weights)
    return source


def _count_usable(log: Trajectory, shape: Shape) -> int:
    """How many transitions of a log are by actions that the policy takes."""
    takes = shape.table(np.ones(shape.n_pairs, np.bool_), False)
    count = sum(int(takes[piece.state, piece.action].sum()) for piece in log.chunks())
    _checks.must(count > 0, "a log must hold transitions by the policy's actions: got none")
    return count


@dataclass(frozen=True, eq=False)
class LearnedWorstCase:
    """What a stream taught: `eta`, the last iterate of the paper's dual variable, and `value`, an estimate.

    `value` is the mean of J(eta_t; x_t) over the last half of the stream, in which eta_t had not yet seen x_t.
    """

    value: float
    eta: float
    steps: int


def learn_worst_case(
    ambiguity: Ambiguity,
    outcomes: Iterable[float] | npt.ArrayLike,
    value_range: tuple[float, float],
    *,
    steps: Schedule | None = None,
    eta: float = 0.0,
) -> LearnedWorstCase:
    """eta <- Proj(eta + alpha_t (1 - f*'((eta - x_t)/weight))), one x_t = V(s'_t) after the other (Theorem 4.1).

    Parameters
    ----------
    ambiguity : Penalized; total variation needs no dual variable and is refused
    outcomes : array or iterable of numbers in value_range, read once
    value_range : (low, high) of the outcomes, the paper's [0, 1/(1 - discount)]
    steps : schedule; Theorem 4.1's for chi-square, weight/sqrt(t + 1) otherwise
    eta : where to begin

    >>> from robustmdp import ChiSquare, Penalized, worst_case
    >>> rng, doubt = np.random.default_rng(0), Penalized(ChiSquare(), 1.0)
    >>> learned = learn_worst_case(doubt, rng.integers(0, 2, 100_000) * 2.0, (0.0, 2.0))
    >>> abs(learned.value - worst_case(doubt, [0.5, 0.5], [0.0, 2.0]).value) < 0.02
    True
    """
    _types.check_arguments(learn_worst_case, locals())
    weight, divergence = _check_penalty(ambiguity), ambiguity.divergence
    low, high = (_checks.finite_number("value_range", bound) for bound in value_range)
    _checks.must(low <= high, f"value_range must be (low, high): got {value_range!r}")
    eta = _checks.finite_number("eta", eta)
    chi_square = divergence == ChiSquare()
    schedule = steps if steps is not None else Theorem41() if chi_square else WeightOverRoot()
    check_schedule("steps", schedule)
    numbers = schedule.resolve(Setting(1.0, weight, (low, high), divergence.scale, penalty=divergence))
    shift = weight * divergence.slope_at_one  # between the paper's eta and that of the normal form
    wide = 2.0 * weight
    interval = (low - wide, 2.0 * high - low + wide) if chi_square else (low, high)
    first_eta = min(max(eta - shift, interval[0]), interval[1])
    given = list(outcomes) if isinstance(outcomes, Iterator) else outcomes
    x = _checks.numbers("outcomes", given).ravel()
    wrong = np.flatnonzero(~((x >= low) & (x <= high)))
    if len(wrong):
        _checks.fail(f"outcomes must lie in value_range [{low:g}, {high:g}]: got {x[wrong[0]]:g} at {wrong[0]}")
    _checks.must(len(x) > 0, "outcomes must hold at least one number: got none")
    values = np.empty(len(x))
    last_eta = price_of(divergence).ascend(
        _compiled(numbers), first_eta, *interval, weight * divergence.scale, x, values
    )
    return LearnedWorstCase(float(values[len(x) // 2 :].mean()), last_eta + shift, len(x))


@lru_cache(maxsize=16)
def _compiled(numbers: Numbers) -> Any:
    return _core.Steps(*numbers)  # which tabulates its first sizes


def _check_penalty(ambiguity: Ambiguity) -> float:
    """The weight of a penalty whose dual can be climbed."""
    check_learnable(ambiguity)
    if not ambiguity.has_weight or ambiguity.divergence == TotalVariation():
        _checks.fail(f"gradient ascent on eta is for a penalty with a smooth conjugate: got {ambiguity!r}")
    weight = ambiguity.level
    _checks.must(
        isinstance(weight, float) and 0.0 < weight < math.inf, f"weight must be one number in (0, inf): got {weight!r}"
    )
    return float(weight)
