"""Where an episode begins: what turns a value per state into one number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.models.mdp import MDP


def distribution(mdp: MDP, initial: npt.ArrayLike | None, name: str = "initial") -> npt.NDArray[np.float64]:
    """A state or (S,) probabilities as (S,) probabilities; None is every state alike.

    >>> from robustmdp import problems
    >>> distribution(problems.two_state(0.5, 0.9), 1)
    array([0., 1.])
    """
    if initial is None:
        return np.full(mdp.n_states, 1.0 / mdp.n_states)
    array = np.asarray(initial)
    if array.ndim == 0:
        state = int(array) if array.dtype.kind in "iu" else -1
        _checks.must(
            0 <= state < mdp.n_states, f"{name} must be a state in 0..{mdp.n_states - 1}: got {array.item()!r}"
        )
        return np.eye(1, mdp.n_states, state).ravel()
    start = array.astype(np.float64)
    _checks.must(
        start.shape == (mdp.n_states,), f"{name} must be a state or have shape ({mdp.n_states},): got {start.shape}"
    )
    _checks.must(bool(np.all(start >= 0)), f"{name} must be at least 0 everywhere")
    _checks.must(abs(start.sum() - 1) <= _checks.SUM_TOLERANCE, f"{name} must sum to 1: got {start.sum():.9g}")
    return start
