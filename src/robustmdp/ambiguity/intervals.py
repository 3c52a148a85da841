"""Probabilities that are known to lie between two bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from robustmdp import _checks, _core
from robustmdp._arrays import BoolArray, FloatArray, IntArray
from robustmdp.ambiguity.base import Ambiguity

_ROUNDING = 2.0**-52  # per entry of a row, as for the sums of probabilities


class Interval(Ambiguity):
    """inf over lower <= P <= upper of E_P v: start at the lower bounds, hand out the rest to the smallest outcomes.

    The model's own probabilities do not count, only which successors it has.

    Parameters
    ----------
    lower, upper : (S, A, S) arrays, lists of A sparse (S, S) matrices, or (nnz,) arrays in the model's order
        Bounds of each transition; where episodes end, arrays have a last column for the end. A transition that the
        model does not have must have an upper bound of 0.

    >>> from robustmdp import worst_case
    >>> known = Interval([0.1, 0.2, 0.0], [0.5, 0.9, 0.4])
    >>> worst_case(known, [0.3, 0.5, 0.2], [0.0, 1.0, 2.0]).distribution
    array([0.5, 0.5, 0. ])
    """

    level = 1.0  # the bounds say it all
    lower: Any
    upper: Any

    def __init__(self, lower: Any, upper: Any) -> None:
        bounds = tuple(_check_form(name, given) for name, given in (("lower", lower), ("upper", upper)))
        _checks.must(
            _shape(bounds[0]) == _shape(bounds[1]),
            f"lower and upper must have the same shape: got {_shape(bounds[0])} and {_shape(bounds[1])}",
        )
        super().__init__(lower=bounds[0], upper=bounds[1])

    def bounds_for(self, model: Any) -> tuple[FloatArray, FloatArray]:
        """The lower and upper bounds of a model's transitions, (nnz,) each, checked row by row."""
        lower, upper = (_at_transitions(name, getattr(self, name), model) for name in ("lower", "upper"))
        _refuse_unknown_successors(self.upper, upper)
        _check_rows(lower, upper, model.indptr, model.pair_name)
        return lower, upper

    def kernel_for(self, model: Any) -> Any:
        return _core.Interval(np.stack(self.bounds_for(model)))

    def kernel_for_row(self, p: FloatArray) -> tuple[Any, BoolArray]:
        _checks.must(
            _shape(self.lower) == p.shape,
            f"lower and upper must have one entry per successor, shape {p.shape}: got {_shape(self.lower)}",
        )
        kept = self.upper > 0.0
        lower, upper = self.lower[kept], self.upper[kept]
        _check_rows(lower, upper, np.array([0, kept.sum()]), lambda _: "p")
        return _core.Interval(np.stack([lower, upper])), kept

    def contains(self, other: Ambiguity) -> bool:
        """Whether the two are equal: the model itself may lie outside."""
        return self == other

    def on_transitions(self, model: Any) -> Interval:
        return Interval(*self.bounds_for(model))

    def check_parts(self) -> None:
        _checks.must(
            _is_by_transition(self.lower),
            f"lower and upper must have one entry per transition where a model is cut into shards: got {self!r}",
        )

    def on_part(self, model: Any, states: slice, transitions: slice | IntArray) -> Interval:
        if _is_by_transition(self.lower):
            return Interval(self.lower[transitions], self.upper[transitions])
        return self

    @property
    def keeps_support(self) -> bool:
        """Whether all lower bounds of a model's transitions are positive."""
        return _is_by_transition(self.lower) and bool((self.lower > 0.0).all())

    @property
    def label(self) -> str:
        return "intervals"

    def __repr__(self) -> str:
        return f"Interval(<bounds of {' x '.join(map(str, _shape(self.lower)))} transitions>)"

    def __str__(self) -> str:
        return "intervals: nature picks each probability between its bounds"


def _check_form(name: str, given: Any) -> Any:
    """A read-only array, or a tuple of sparse matrices."""
    if isinstance(given, (list, tuple)) and given and all(hasattr(matrix, "tocsr") for matrix in given):
        matrices = tuple(matrix.tocsr().astype(np.float64) for matrix in given)
        for action, matrix in enumerate(matrices):
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
            _check_range(f"{name}[{action}]", matrix.data)
        return matrices
    try:
        bounds = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be an array of numbers or a list of sparse matrices: got {type(given).__name__}"
        ) from None
    _checks.must(
        bounds.ndim in (1, 3), f"{name} must have shape (S, A, S) or one entry per transition: got {bounds.shape}"
    )
    _check_range(name, bounds)
    bounds.flags.writeable = False
    return bounds


def _check_range(name: str, bounds: FloatArray) -> None:
    wrong = np.argwhere(~((bounds >= 0.0) & (bounds <= 1.0)))
    if len(wrong):
        place = tuple(int(i) for i in wrong[0])
        _checks.fail(f"{name} must lie in [0, 1]: got {bounds[place]:g} at {name}{list(place)}")


def _is_by_transition(bounds: Any) -> bool:
    return not isinstance(bounds, tuple) and bounds.ndim == 1


def _shape(bounds: Any) -> tuple[int, ...]:
    return (len(bounds), *bounds[0].shape) if isinstance(bounds, tuple) else bounds.shape


def _at_transitions(name: str, bounds: Any, model: Any) -> FloatArray:
    """(nnz,), in the model's order."""
    shape, nnz = _shape(bounds), len(model.indices)
    if _is_by_transition(bounds):
        _checks.must(shape == (nnz,), f"{name} must have one entry per transition ({nnz}): got {shape[0]}")
        return np.asarray(bounds)
    _checks.must(
        model.noise is None,
        f"{name} must have one entry per transition ({nnz}) for a model made from noise, which has no probabilities of "
        f"successors: got shape {shape}",
    )
    n_states, n_actions, columns = model.n_states, model.n_actions, model.n_states + int(model.can_end)
    lengths = np.diff(model.indptr)
    states, actions = np.repeat(model.states, lengths), np.repeat(model.actions, lengths)
    if isinstance(bounds, tuple):
        wanted = (n_actions, n_states, columns)
        _checks.must(shape == wanted, f"{name} must be {n_actions} matrices of shape {wanted[1:]}: got {shape}")
        found = np.zeros(nnz)
        for action, matrix in enumerate(bounds):
            at = np.flatnonzero(actions == action)
            found[at] = np.asarray(matrix[states[at], model.indices[at]]).ravel()
        return found
    _checks.must(
        shape == (n_states, n_actions, columns),
        f"{name} must have shape {(n_states, n_actions, columns)}: got {shape}",
    )
    return np.asarray(bounds[states, actions, model.indices])


def _refuse_unknown_successors(bounds: Any, found: FloatArray) -> None:
    if _is_by_transition(bounds):
        return
    count = sum(int((m.data > 0.0).sum()) for m in bounds) if isinstance(bounds, tuple) else int((bounds > 0.0).sum())
    _checks.must(
        count == int((found > 0.0).sum()),
        "upper must be 0 at transitions that the model does not have: give the model those successors",
    )


def _check_rows(lower: FloatArray, upper: FloatArray, indptr: IntArray, name: Callable[[int], str]) -> None:
    """Refuse rows without a distribution between the bounds; `name(row)` is for messages."""
    wrong = np.flatnonzero(lower > upper)
    if len(wrong):
        row = int(np.searchsorted(indptr, wrong[0], side="right")) - 1
        low, high = lower[wrong[0]], upper[wrong[0]]
        _checks.fail(f"lower must be at most upper: got {low:g} and {high:g} at {name(row)}")
    lengths = np.diff(indptr)
    for text, bounds, side in (
        ("lower bounds must be at most 1", lower, 1.0),
        ("upper bounds must be at least 1", upper, -1.0),
    ):
        sums = np.add.reduceat(bounds, indptr[:-1])
        off = np.flatnonzero(side * (sums - 1.0) > _ROUNDING * lengths)
        if len(off):
            _checks.fail(f"the sum of {text}: got {sums[off[0]]:.9g} at {name(int(off[0]))}")
