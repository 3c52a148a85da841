"""The worst case of a given policy, from samples alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.ambiguity import Ambiguity
from robustmdp.learning.generative import GenerativeQLearning
from robustmdp.learning.markovian import MarkovianQLearning
from robustmdp.learning.sources import OnPolicySource, source_of
from robustmdp.models import MDP, Trajectory
from robustmdp.models.space import StateActionSpace
from robustmdp.operators.policy import policy_rows
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
    start: int | None = None,
) -> Solution:
    """v = T^pi v of a policy pi, learned, with bounds that hold with probability `confidence` at all states at once.

    An MDP or a Simulator is asked about the policy's pairs, round after round; an environment is stepped by the policy;
    of a log, the transitions by other actions are passed over. Memory is O(|S|).

    Parameters
    ----------
    world : MDP, Simulator, Trajectory or Gymnasium environment
    policy : (S,) actions
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
    given = np.asarray(policy)
    options: dict[str, Any] = {"samples": samples, "seed": seed, "confidence": confidence}
    options["certify_share"] = certify_share
    where: dict[str, Any] = {"discount": discount, "reward_range": reward_range, "start": start}
    if isinstance(world, MDP):
        _check_actions(given, world)
        known = world.restricted(policy_rows(world, given).pairs)
        return GenerativeQLearning(ambiguity).run(known, **options, **where)
    shape = source_of(world, None, [seed], **where).shape
    actions = _check_actions(given, shape)
    behaviour = np.eye(shape.n_actions)[actions]
    source = OnPolicySource(source_of(world, behaviour, [seed], **where), actions)
    if isinstance(world, Trajectory):
        matching = sum(int((piece.action == actions[piece.state]).sum()) for piece in world.chunks())
        options["samples"] = min(samples, matching)
    learner = GenerativeQLearning(ambiguity) if source.is_generative else MarkovianQLearning(ambiguity)
    return learner.run(source, **options)


def _check_actions(policy: npt.NDArray[Any], space: StateActionSpace) -> npt.NDArray[np.int64]:
    _checks.must(
        policy.shape == (space.n_states,),
        f"policy must hold one action per state, of shape ({space.n_states},): got {policy.shape}",
    )
    actions = policy.astype(np.int64)
    wrong = np.flatnonzero((actions != policy) | (actions < 0) | (actions >= space.n_actions))
    if len(wrong):
        where = space.state_name(int(wrong[0]))
        _checks.fail(f"policy must name actions in 0..{space.n_actions - 1}: got {policy[wrong[0]]} at {where}")
    return actions
