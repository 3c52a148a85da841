"""Where an episode begins: what turns a value per state into one number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from robustmdp.models.labels import distribution_over
from robustmdp.models.mdp import MDP


def distribution(mdp: MDP, initial: npt.ArrayLike | None, name: str = "initial") -> npt.NDArray[np.float64]:
    """A state by number or name, or (S,) probabilities, as (S,) probabilities; None is every state alike.

    >>> from robustmdp import problems
    >>> distribution(problems.two_state(0.5, 0.9), 1)
    array([0., 1.])
    >>> distribution(problems.machine_replacement(), "age 2")[:4]
    array([0., 0., 1., 0.])
    """
    if initial is None:
        return np.full(mdp.n_states, 1.0 / mdp.n_states)
    return distribution_over(mdp.n_states, initial, name, mdp.state_names)
