"""The arrays of an untrusted file, checked from end to end before they become a model."""

from __future__ import annotations

from robustmdp import _checks
from robustmdp.io.meta import Meta
from robustmdp.models import MDP
from robustmdp.models.consistency import Arrays, checked_arrays


def checked_model(arrays: Arrays, meta: Meta, name: str) -> MDP:
    """An MDP of exactly these arrays, but for rows that do not sum to 1 within rounding."""
    n_states = len(arrays["state_ptr"]) - 1
    _checks.must(meta.n_states == n_states, f"n_states in {name} must be {meta.n_states}: got {n_states}")
    return MDP._of_checked(
        **checked_arrays(arrays, meta.n_actions, name),
        n_actions=meta.n_actions,
        discount=meta.discount,
        state_names=_checks.names("state", meta.state_names, n_states),
        action_names=_checks.names("action", meta.action_names, meta.n_actions),
    )
