"""Balls around the model in a norm: L1, L2 and the largest change of a probability."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity.base import Level, Supported

_MARGIN = 1e-9  # of the outcomes' range: more than the rounding of a threshold


class _Ball(Supported):
    level_name = "radius"
    radius: Level
    """How far nature may go at each pair."""

    def __init__(self, radius: npt.ArrayLike, *, support: Any = "model") -> None:
        super().__init__(radius, support=support)

    def _refuse_new_successors(self) -> None:
        _checks.must(
            not self.invents,
            f"support must be 'model' where the actions of a state share a budget: got {self.support!r}",
        )


class L1(_Ball):
    """inf over sum_j w_j |P_j - p_j| <= radius of E_P v; without weights the ball of total variation radius/2.

    Parameters
    ----------
    radius : float or (S, A) array in [0, inf]
    weights : (S,) positive numbers per successor, or (nnz,) in the model's order of transitions, optional
        Moving mass away from a successor, or to it, costs its weight. Where episodes end, the end is successor S.
    support : "model", "all" or a list of states
        Where mass may move to. A state that is no successor of the model is reached with the mean reward of the pair.

    >>> from robustmdp import worst_case
    >>> worst_case(L1(0.5), [0.5, 0.5], [0.0, 2.0]).distribution
    array([0.75, 0.25])
    >>> worst_case(L1(0.5, weights=[1.0, 4.0]), [0.5, 0.5], [0.0, 2.0]).distribution  # 0.1 * (1 + 4) = 0.5
    array([0.6, 0.4])
    """

    meaning = "L1 ball: nature moves probabilities by {} in all, sum of |P - P0|"
    kernel = _core.Moved()
    weights: FloatArray | None

    def __init__(self, radius: npt.ArrayLike, *, weights: npt.ArrayLike | None = None, support: Any = "model") -> None:
        Supported.__init__(self, radius, weights=_check_weights(weights), support=support)

    def kernel_level(self, discount: float) -> Level:
        """Without weights the mass that is moved: it is counted where it leaves and where it arrives."""
        return 0.5 * self.level if self.weights is None else self.level

    def kernel_for(self, model: Any) -> Any:
        if self.weights is None:
            return self.kernel
        by_state, by_transition = self._weights_of(model)
        return _core.WeightedL1(by_transition, by_state)

    def shared_kernel_for(self, model: Any) -> Any:
        self._refuse_new_successors()
        if self.weights is None:
            return _core.state_constrained(_core.TotalVariation())
        return _core.StateWeightedL1(self._weights_of(model)[1])

    def _weights_of(self, model: Any) -> tuple[FloatArray, FloatArray]:
        """By state and by transition."""
        assert self.weights is not None
        if self._is_by_state(model):
            return self.weights, self.weights[model.indices]
        return np.empty(0), self.weights

    def _is_by_state(self, model: Any) -> bool:
        assert self.weights is not None
        n, n_states, nnz = len(self.weights), model.n_columns, model.nnz
        if n == n_states + 1 or (n == n_states and not model.can_end):
            return True
        sizes = f"one weight per state ({n_states}{', and one for the end' if model.can_end else ''})"
        _checks.must(
            n == nnz and not self.invents,
            f"weights must have {sizes}{'' if self.invents else f' or one per transition ({nnz})'}: got {n}",
        )
        return False

    def kernel_for_row(self, p: FloatArray) -> tuple[Any, BoolArray]:
        if self.weights is None:
            return super().kernel_for_row(p)
        kept, weights = self.kept(p), self.weights
        _checks.must(
            len(weights) == len(p), f"weights must have one entry per successor ({len(p)}): got {len(weights)}"
        )
        return _core.WeightedL1(weights[kept], np.empty(0)), kept

    def added_successors(
        self, outcome: FloatArray, longest_row: int, *, highest: float, rewards_differ: bool
    ) -> npt.NDArray[np.int32]:
        """The lowest one; with weights those for which no other is both lower and cheaper.

        Where rewards differ, a row may have these as its own at another reward, so that others are the next best.
        """
        if not self.invents or self.weights is None:
            return self.lowest_candidates(outcome, 1 + longest_row * rewards_differ)
        states = self.lowest_candidates(outcome, len(outcome))
        if rewards_differ:
            return states
        states = states[np.lexsort((self.weights[states], outcome[states]))]
        cheapest = np.minimum.accumulate(self.weights[states])
        cheaper = np.append(True, cheapest[1:] < cheapest[:-1])
        return np.asarray(states[cheaper], dtype=np.int32)

    def on_part(self, model: Any, states: slice, transitions: slice | IntArray) -> L1:
        level = self.level if isinstance(self.level, float) else self.level[states]
        if self.weights is None or self._is_by_state(model):
            return type(self)(level, weights=self.weights, support=self.support)
        return type(self)(level, weights=self.weights[transitions])

    @property
    def names_states(self) -> bool:
        return self.invents or self.weights is not None

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.weights is None else text.replace("sum of", "weighted sum of")


def _check_weights(given: npt.ArrayLike | None) -> FloatArray | None:
    if given is None:
        return None
    weights = _checks.numbers("weights", given)
    _checks.must(weights.ndim == 1, f"weights must be 1-D: got shape {weights.shape}")
    wrong = np.flatnonzero(~((weights > 0.0) & np.isfinite(weights)))
    if len(wrong):
        _checks.fail(f"weights must be positive and finite: got {weights[wrong[0]]:g} at weights[{wrong[0]}]")
    weights.flags.writeable = False
    return weights


class LInf(_Ball):
    """inf over |P_j - p_j| <= radius for each j of E_P v: each probability is known to within the radius.

    Parameters
    ----------
    radius : float or (S, A) array in [0, inf]
    support : "model", "all" or a list of states
        Where mass may move to, as for `L1`.

    >>> from robustmdp import worst_case
    >>> worst_case(LInf(0.25), [0.25, 0.25, 0.5], [0.0, 1.0, 2.0]).distribution
    array([0.5 , 0.25, 0.25])
    """

    meaning = "LInf ball: nature changes each probability by at most {}"
    kernel = _core.LargestChange()

    def added_successors(
        self, outcome: FloatArray, longest_row: int, *, highest: float, rewards_differ: bool
    ) -> npt.NDArray[np.int32]:
        """A row of n successors gives up at most n radii: n of the lowest states take them, n may be its own."""
        return self.lowest_candidates(outcome, 2 * longest_row + 1)


class L2(_Ball):
    """inf over ||P - p||_2 <= radius of E_P v.

    Parameters
    ----------
    radius : float or (S, A) array in [0, inf]
    support : "model", "all" or a list of states
        Where mass may move to, as for `L1`. Of n states, a row of k successors gives mass to about sqrt(k n).

    >>> from robustmdp import worst_case
    >>> worst_case(L2(0.5**0.5 / 2), [0.5, 0.5], [0.0, 2.0]).distribution.round(6)
    array([0.75, 0.25])
    """

    meaning = "L2 ball: nature stays within {} in Euclidean distance"
    kernel = _core.Euclidean()

    def added_successors(
        self, outcome: FloatArray, longest_row: int, *, highest: float, rewards_differ: bool
    ) -> npt.NDArray[np.int32]:
        """Those with outcomes below the threshold eta of any row, where P_j = max(0, p_j + theta (eta - x_j)).

        eta falls as theta grows; at first it is the mean over the row and the added successors below it. That is
        largest for `longest_row` successors at `highest`, with which every candidate is an added one.
        """
        states = self.lowest_candidates(outcome, len(outcome))
        rises, top = outcome[states] - outcome[states[0]], highest - outcome[states[0]]
        sums = longest_row * top + np.append(0.0, np.cumsum(rises))
        threshold = np.min(sums / (longest_row + np.arange(len(sums))))
        return states[: np.searchsorted(rises, threshold + _MARGIN * top)]

    def shared_kernel_for(self, model: Any) -> Any:
        self._refuse_new_successors()
        return _core.StateEuclidean()
