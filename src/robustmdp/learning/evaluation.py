"""The worst case of a given policy, from samples alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp.ambiguity import Ambiguity
from robustmdp.learning.generative import GenerativeQLearning
from robustmdp.learning.markovian import MarkovianQLearning
from robustmdp.learning.replications import check_seed
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
