"""Where nature may move mass to: the model's successors, some states, or all."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity.base import Levelled

Support = str | tuple[int, ...]


def check_support(given: Any) -> Support:
    """The words "model" and "all" as they are, states as a tuple."""
    if isinstance(given, str):
        if given not in ("model", "all"):
            _checks.nearest("support", given, ("model", "all"))
        return given
    try:
        states = np.asarray(given)
    except ValueError:
        states = np.empty(0)
    is_list = states.ndim == 1 and states.size > 0 and states.dtype.kind in "iu" and bool((states >= 0).all())
    _checks.must(is_list, f'support must be "model", "all" or a list of states: got {_checks.show(given)}')
    return tuple(sorted(set(states.tolist())))


class Supported(Levelled):
    """A set whose `support` says to which states mass may move."""

    support: Support

    def __init__(self, level: npt.ArrayLike, *, support: Any = "model", **settings: Any) -> None:
        checked = check_support(support)
        super().__init__(level, **settings, support=checked)

    def kernel_for_row(self, p: FloatArray) -> tuple[Any, BoolArray]:
        return self.kernel, self.kept(p)

    @property
    def invents(self) -> bool:
        return self.support != "model"

    def candidates(self, n_states: int) -> IntArray:
        if isinstance(self.support, str):
            return np.arange(n_states if self.invents else 0)
        _checks.must(
            self.support[-1] < n_states, f"support must hold states in 0..{n_states - 1}: got {self.support[-1]}"
        )
        return np.array(self.support)

    def lowest_candidates(self, outcome: FloatArray, count: int) -> npt.NDArray[np.int32]:
        """The `count` candidates with the lowest outcomes, from the lowest on; the first of those that are equal."""
        states = self.candidates(len(outcome))
        if count < len(states):  # sorting all of them would take longer than many a sweep
            values = outcome[states]
            states = states[values <= np.partition(values, count - 1)[count - 1]]
        return states[np.argsort(outcome[states], kind="stable")[:count]].astype(np.int32)

    def kept(self, p: FloatArray) -> BoolArray:
        """The entries of one row that can have mass."""
        kept = p > 0.0
        kept[self.candidates(len(p))] = True
        return kept

    @property
    def label(self) -> str:
        return super().label + ("" if self.support == "model" else ", new successors")

    def __repr__(self) -> str:
        return super().__repr__().replace(", support='model'", "")

    def __str__(self) -> str:
        meaning = super().__str__()
        if self.support == "model":
            return meaning
        if self.support == "all":
            return f"{meaning}; mass may move to any state, also where the model does not lead"
        return f"{meaning}; mass may also move to {len(self.support)} states that the model need not lead to"
