"""The states that a file labels, and the initial ones: from lists of states to the fields of a model, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray, IntArray
from robustmdp.io.text import shown
from robustmdp.models import MDP
from robustmdp.models.consistency import check_label_room
from robustmdp.models.labels import Labels, checked_probabilities, read_only

INIT, DEADLOCK, END = "init", "deadlock", "end"  # PRISM's and Storm's words for initial states and dead ends, and ours
# States by label, in any order, perhaps twice; those of `init` are the initial ones.
Labelling = Mapping[str, Sequence[int] | IntArray]


def label_states(mdp: MDP, labelling: Labelling, name: str) -> MDP:
    """The model with what a file without notes says of its states."""
    if not labelling:
        return mdp
    labels = to_masks({label: states for label, states in labelling.items() if label != INIT}, mdp, name)
    return mdp._replace(labels=labels, initial=uniform(labelling.get(INIT, ()), mdp.n_states))


def to_masks(labels: Labelling, mdp: MDP, name: str) -> Labels:
    """(S,) bool for each label, after a look at the memory that these need."""
    check_label_room(mdp.n_states, len(labels), mdp.nnz, name)
    masks = {}
    for label, listed in sorted(labels.items()):
        states = np.array(listed, np.int64)
        _checks.must(bool(label), f"the labels of {name} must have names: got an empty one")
        wrong = states[(states < 0) | (states >= mdp.n_states)]
        if wrong.size:
            _checks.fail(
                f"the states of label {shown(label)} in {name} must lie in 0..{mdp.n_states - 1}: got {wrong[0]}"
            )
        masks[label] = np.zeros(mdp.n_states, bool)
        masks[label][states] = True
        read_only(masks[label])
    return Labels(masks)


def uniform(states: Sequence[int] | IntArray, n_states: int) -> FloatArray | None:
    """The same probability for each of these states; None where there are none."""
    if not len(states):
        return None
    initial = np.zeros(n_states)
    initial[states] = 1.0
    return checked_probabilities(initial / initial.sum(), n_states, "initial")


def from_pairs(pairs: Sequence[tuple[int, float]], n_states: int, name: str) -> FloatArray:
    """(S,) probabilities from (state, probability)."""
    wrong = [state for state, _ in pairs if state >= n_states]
    if wrong:
        _checks.fail(f"the initial states in {name} must lie in 0..{n_states - 1}: got {wrong[0]}")
    initial = np.zeros(n_states)
    for state, probability in pairs:
        initial[state] = probability
    return checked_probabilities(initial, n_states, f"initial in {name}")


def to_pairs(initial: npt.NDArray[Any]) -> tuple[tuple[int, float], ...]:
    """The reverse, without states of probability 0."""
    states = np.flatnonzero(initial)
    return tuple(zip(states.tolist(), initial[states].tolist(), strict=True))
