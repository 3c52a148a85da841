"""The arrays of an untrusted file, checked from end to end before they become a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.io.meta import Meta
from robustmdp.models import MDP, Noise
from robustmdp.models.consistency import TYPES, Arrays, checked_arrays
from robustmdp.models.labels import Labels, checked_initial, read_only
from robustmdp.models.mdp import from_checked


def checked_model(arrays: Arrays, meta: Meta, name: str) -> MDP:
    """An MDP of exactly these arrays, but for rows that do not sum to 1 within rounding."""
    n_states = len(arrays["state_ptr"]) - 1
    _checks.must(meta.n_states == n_states, f"n_states in {name} must be {meta.n_states}: got {n_states}")
    noise = None
    if meta.noise is not None:
        noise = Noise.from_builtins(meta.noise, arrays["probabilities"][: len(meta.noise)], name)
    return from_checked(
        MDP,
        **checked_arrays({kind: arrays[kind] for kind in TYPES}, meta.n_actions, name, noise),
        n_actions=meta.n_actions,
        discount=meta.discount,
        state_names=_checks.names("state", meta.state_names, n_states),
        action_names=_checks.names("action", meta.action_names, meta.n_actions),
        labels=_checked_labels(arrays.get("labels"), meta.label_names or (), n_states, name),
        initial=checked_initial(arrays.get("initial"), n_states, f"initial in {name}"),
        noise=noise,
    )


def _checked_labels(flags: npt.NDArray[Any] | None, names: tuple[str, ...], n_states: int, name: str) -> Labels:
    """From (n_labels * n_states,) bytes."""
    found = 0 if flags is None else len(flags)
    _checks.must(
        found == len(names) * n_states,
        f"labels in {name} must have {n_states} entries for each of {len(names)} labels: got {found} in all",
    )
    _checks.must(len(set(names)) == len(names) and all(names), f"the labels in {name} must have names that all differ")
    if flags is None:
        return Labels()
    _checks.must(bool(np.all(flags <= 1)), f"labels in {name} must be 0 or 1: got {flags.max()}")
    masks = read_only(flags.view(np.bool_)).reshape(len(names), n_states)
    return Labels(sorted(zip(names, masks, strict=True)))
