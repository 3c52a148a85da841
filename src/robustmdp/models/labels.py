"""Labels and the initial distribution: what a model says of its states beside names, checked at the edge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import BoolArray, FloatArray
from robustmdp.models import columns, row_sums
from robustmdp.models.space import StateActionSpace, place_of_name


class Labels(dict[str, BoolArray]):
    """A label's name to its states, (S,) bool; read-only, since a model is.

    >>> labels = check_labels({"goal": [False, True]}, 2)
    >>> labels["goal"]
    array([False,  True])
    >>> labels["goal"] = labels["goal"]
    Traceback (most recent call last):
        ...
    TypeError: the labels of a model cannot be changed: mdp.with_labels(...) makes another model
    """

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("the labels of a model cannot be changed: mdp.with_labels(...) makes another model")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return Labels, (dict(self),)


def check_labels(given: Mapping[str, npt.ArrayLike] | None, n_states: int) -> Labels:
    """Read-only arrays under names that are not empty, sorted by name."""
    if given is None:
        return Labels()
    if not isinstance(given, Mapping):
        raise TypeError(f"labels must be a dict from names to (S,) bool arrays: got {type(given).__name__}")
    masks = {}
    for name, mask in given.items():
        if not isinstance(name, str) or not name:
            _checks.fail(f"the names of labels must be strings that are not empty: got {name!r}")
        array = columns.array_of(f"labels[{name!r}]", mask)
        if array.dtype != np.bool_ or array.shape != (n_states,):
            _checks.fail(
                f"labels[{name!r}] must be a bool array of shape ({n_states},): got {array.dtype} of {array.shape}"
            )
        masks[name] = read_only(array.copy()) if array.flags.writeable else array
    return Labels(sorted(masks.items()))


def checked_initial(
    given: npt.ArrayLike | None, n_states: int, name: str = "initial", state_names: Sequence[str] | None = None
) -> FloatArray | None:
    """(S,) probabilities that sum to 1 within rounding, read-only; a state is one that is certain."""
    return None if given is None else checked_probabilities(given, n_states, name, state_names)


def checked_probabilities(
    given: npt.ArrayLike, n_states: int, name: str, state_names: Sequence[str] | None = None
) -> FloatArray:
    """The same where there are some."""
    initial = distribution_over(n_states, given, name, state_names) + 0.0  # a copy, without negative zeros
    row_sums.normalise(
        np.array([0, n_states]), initial, lambda _, total: f"{name} must sum to 1: got {total:.9g}", in_place=True
    )
    return read_only(initial)


def distribution(space: StateActionSpace, initial: npt.ArrayLike | None, name: str = "initial") -> FloatArray:
    """A state by number or name, or (S,) probabilities, as (S,) probabilities; None is every state alike.

    >>> from robustmdp import problems
    >>> distribution(problems.two_state(0.5, 0.9), 1)
    array([0., 1.])
    >>> distribution(problems.machine_replacement(), "age 2")[:4]
    array([0., 0., 1., 0.])
    """
    if initial is None:
        return np.full(space.n_states, 1.0 / space.n_states)
    return distribution_over(space.n_states, initial, name, space.state_names)


def distribution_over(
    n_states: int, given: npt.ArrayLike, name: str = "initial", state_names: Sequence[str] | None = None
) -> FloatArray:
    """A state by number or name, or (S,) probabilities, as (S,) probabilities."""
    array = columns.array_of(name, place_of_name(name, given, state_names) if isinstance(given, str) else given)
    if array.ndim == 0:
        state = int(array) if array.dtype.kind in "iu" else -1
        _checks.must(0 <= state < n_states, f"{name} must be a state in 0..{n_states - 1}: got {_checks.show(given)}")
        return np.eye(1, n_states, state).ravel()
    start = columns.real_numbers(name, array)
    _checks.must(start.shape == (n_states,), f"{name} must be a state or have shape ({n_states},): got {start.shape}")
    _checks.must(bool(np.all(start >= 0)), f"{name} must be at least 0 everywhere")
    _checks.must(not _checks.wrong_sums(start.sum()).size, f"{name} must sum to 1: got {start.sum():.9g}")
    return start


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array, which nothing writes to any more."""
    array.flags.writeable = False
    return array


def same_labels(one: Mapping[str, BoolArray], other: Mapping[str, BoolArray]) -> bool:
    """Are names and states equal?"""
    return one.keys() == other.keys() and all(np.array_equal(mask, other[name]) for name, mask in one.items())
