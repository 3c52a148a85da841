"""A `Solution` for readers: the table of its states, and what its pictures show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from robustmdp._arrays import FloatArray, IntArray
from robustmdp.table import Table

if TYPE_CHECKING:
    import scipy.sparse as sp
    from matplotlib.figure import Figure

_LABELS = {"value": "value\n(in units of reward)", "gain": "gain\n(reward per step)"}  # others have no unit
_LEAST_MOVE = 1e-9  # of probability: below, it is rounding


def summarise(solution: Any) -> Table:
    """The columns of `Solution.summary`, under a title that says how the run ended."""
    columns = solution.columns()
    world = solution.adversary.mdp
    if _is_known(solution) and np.isfinite(solution.base).all():
        worst = solution.worst_case
        if solution.value.ndim == 1:
            moves = [_largest_moves(world, worst, solution.policy)]
        else:
            moves = [_largest_moves(world, worst[t], solution.policy_at(t)) for t in range(len(solution.value) - 1)]
        columns["likelier"] = [_successor_name(world, state) for states, _ in moves for state in states.tolist()]
        columns["rise"] = [rise for _, rises in moves for rise in rises.tolist()]
    arrays = {name: np.array(column, object if name == "likelier" else None) for name, column in columns.items()}
    return Table(arrays, {"title": f"Solution, {title_of(solution)}"})


def _is_known(solution: Any) -> bool:
    """Are the rows of the model here? A learner may have none, and those of a sharded solve stay with the shards."""
    return hasattr(solution.adversary.mdp, "probabilities")


def _largest_moves(world: Any, worst: Any, policy: npt.NDArray[Any]) -> tuple[IntArray, FloatArray]:
    """The successor whose probability nature raises most, -1 for none, and by how much, (S,) each."""
    moved = _chain(worst, policy) - _chain(world, policy)
    rise = np.maximum(moved.max(axis=1).toarray().ravel(), 0.0)
    is_moved = rise > _LEAST_MOVE
    return np.where(is_moved, moved.argmax(axis=1), -1), np.where(is_moved, rise, 0.0)


def _chain(world: Any, policy: npt.NDArray[Any]) -> sp.csr_array:
    """P(s' | s) under a policy, (S, S + 1) with the end as the last column."""
    import scipy.sparse as sp

    taken = policy[world.states, world.actions] if policy.ndim == 2 else policy[world.states] == world.actions
    choice = sp.csr_array(
        (taken.astype(np.float64), np.arange(world.n_pairs), world.state_ptr), shape=(world.n_states, world.n_pairs)
    )
    shape = (world.n_pairs, world.n_states + 1)
    return choice @ sp.csr_array((world.probabilities, world.indices, world.indptr), shape=shape)


def _successor_name(world: Any, state: int) -> str:
    if state < 0:
        return "-"
    if state == world.n_states:
        return "the end"
    return world.state_names[state] if world.state_names else str(state)


def title_of(solution: Any) -> str:
    """How the run ended and what is certain, in a line."""
    ended = solution.status.code.replace("_", " ")
    if solution.samples and solution.status.code == "step_limit":  # how a learner ends
        ended = f"{solution.samples:,} samples"
    return f"{ended}, {solution.certainty}"


def draw(solution: Any, ax: Any) -> Figure:
    """The picture of `Solution.plot`."""
    from robustmdp import pictures

    world = solution.adversary.mdp
    value, lower, upper = solution.gain_or_value
    label = _LABELS.get("gain" if solution.gain is not None else solution.quantity, solution.quantity)
    if solution.value.ndim == 2:
        value, lower, upper = value[0], lower[0], upper[0]
        label = label.replace("value", "value of the first step")
    bounds = "bounds" if solution.confidence is None else f"bounds, {100 * solution.confidence:g} % confidence"
    values = pictures.Values(value, lower, upper, world.state_names, label, bounds, title_of(solution))
    choices = pictures.Choices(*_choices(solution), world.action_names, world.n_actions, _stages(solution))
    progress = None
    if solution.samples and "error" in solution.trace:
        progress = pictures.Progress(solution.trace["samples"], solution.trace["error"], "largest error of Q")
    elif solution.samples:
        label = "residual of Q" if _is_known(solution) else "residual of Q\n(estimated)"
        progress = pictures.Progress(solution.trace["samples"], solution.trace["residual"], label)
    return pictures.draw_solution(ax, values, choices, progress)


def _choices(solution: Any) -> tuple[IntArray, IntArray, FloatArray]:
    """States, actions and the probability of each, of the first step."""
    policy = solution.policy if solution.value.ndim == 1 else solution.policy_at(0)
    if policy.ndim == 1:
        return np.arange(len(policy)), policy, np.ones(len(policy))
    state, action = np.nonzero(policy)
    return state, action, policy[state, action]


def _stages(solution: Any) -> IntArray | None:
    """The likeliest actions of all steps, (T, S)."""
    if solution.value.ndim == 1:
        return None
    each = [solution.policy_at(step) for step in range(len(solution.value) - 1)]
    return np.array([one if one.ndim == 1 else one.argmax(axis=1) for one in each])
