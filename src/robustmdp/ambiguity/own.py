"""A user's own set of nature's choices: any object with `level` and `worst_case(p, z, level)`."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.ambiguity.base import Ambiguity, Level, discounted
from robustmdp.ambiguity.rowwise import EPS, Responses, Rows, RowwiseKernel

_SUM_TOLERANCE = 1e-9  # of a distribution's sum; what it is off by widens the certified bounds
_ROUNDING = 1e-9  # of the largest outcome: what bounds and values may contradict each other by


class OwnSet(Ambiguity):
    """What a user's object allows nature to do; the object answers rows, one at a time.

    Parameters
    ----------
    wrapped : an object with
        `level` : a number, or an (S, A) array.
        `worst_case(p, z, level)` : for probabilities p and outcomes z = reward + discount * v, (n,) each, and the level
            of this row, the worst case, a distribution that attains it, and a certified lower bound of the worst case;
            if there is a fourth number, it is the multiplier eta.
        `level_name` : str, optional
            What the level is called in messages.
        `scales_with_discount` : bool, optional
            Whether the level is a price per unit of something, which is paid in the discounted future like v; then
            `worst_case` is called with discount * level.

    Its repr, str, label, equality, hash and pickle are those of the object.
    """

    def __init__(self, wrapped: Any) -> None:
        name = str(getattr(wrapped, "level_name", "level"))
        level = _check_level(f"{name} of {_describe(wrapped)}", wrapped.level)
        super().__init__(wrapped=wrapped)
        vars(self).update(level_name=name, level=level)

    wrapped: Any

    @cached_property
    def kernel(self) -> Any:
        return _OwnKernel(self.wrapped)

    def kernel_level(self, discount: float) -> Level:
        is_price = getattr(self.wrapped, "scales_with_discount", False)
        return discounted(self.level, discount) if is_price else self.level

    def contains(self, other: Ambiguity) -> bool:
        """Whether the two are equal: nothing else is known, not even whether nature may leave the model as it is."""
        return self == other

    @property
    def label(self) -> str:
        return str(getattr(self.wrapped, "label", None) or self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OwnSet):
            return False
        if self.wrapped is other.wrapped:
            return True
        try:
            return bool(self.wrapped == other.wrapped)
        except ValueError:  # the object compares arrays
            return False

    def __hash__(self) -> int:
        try:
            return hash(self.wrapped)
        except TypeError:
            return hash((type(self.wrapped), np.asarray(self.level).tobytes()))

    def __repr__(self) -> str:
        return repr(self.wrapped)

    def __str__(self) -> str:
        return _describe(self.wrapped)


def is_set(thing: object) -> bool:
    """Whether this can serve as a set: one of ours, or a user's object with `worst_case(p, z, level)`."""
    answers_rows = callable(getattr(thing, "worst_case", None)) and hasattr(thing, "level")
    return isinstance(thing, Ambiguity) or (answers_rows and not isinstance(thing, type))


def check_ambiguity(ambiguity: object) -> Ambiguity:
    """Refuse anything but a set; a user's own is wrapped."""
    if isinstance(ambiguity, Ambiguity):
        return ambiguity
    if is_set(ambiguity):
        return OwnSet(ambiguity)
    _checks.refuse_type("ambiguity", "a set such as Nominal(), Penalized(...) or Constrained(...)", ambiguity)


def _describe(wrapped: Any) -> str:
    """What the object says of itself, or its class where it says nothing."""
    kind: Any = type(wrapped)
    is_silent = kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
    return str(kind.__name__ if is_silent else wrapped)


def _check_level(name: str, value: Any) -> Level:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number or an (S, A) array: got {value!r}") from None
    _checks.must(array.ndim in (0, 2), f"{name} must be a number or an (S, A) array: got shape {array.shape}")
    if array.ndim == 0:
        _checks.must(not math.isnan(float(array)), f"{name} must be a number: got nan")
        return float(array)
    array.flags.writeable = False
    return array


class _Row(NamedTuple):
    """One answer, checked."""

    value: float
    distribution: FloatArray
    lower: float
    eta: float
    rounding: float  # what the bounds are to be widened by


class _OwnKernel(RowwiseKernel):
    """Calls the user's object for each row; one thread at a time, because it may not expect more."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped
        self._lock = threading.Lock()

    def solve_rows(self, rows: Rows, model: Any) -> tuple[FloatArray, FloatArray]:
        return np.array([answer.value for answer in self._answers(rows, model)]), rows.memory

    def bound_rows(self, rows: Rows, model: Any) -> tuple[FloatArray, FloatArray]:
        bounds = [(each.lower - each.rounding, each.value + each.rounding) for each in self._answers(rows, model)]
        lower, upper = np.array(bounds).T
        return lower, upper

    def respond_rows(self, rows: Rows, model: Any) -> Responses:
        distribution = np.zeros_like(rows.p)
        count = rows.p.shape[1]
        value, gap, penalty, eta = (np.empty(count) for _ in range(4))
        for r, answer in enumerate(self._answers(rows, model)):
            n = rows.length[r]
            distribution[:n, r] = answer.distribution
            value[r], gap[r], eta[r] = answer.value, answer.value - answer.lower, answer.eta
            # Rounding in E z is no payment.
            paid = answer.value - (rows.reward[r] + float(answer.distribution @ rows.x[:n, r]))
            penalty[r] = paid if paid > answer.rounding else 0.0
        return Responses(distribution, value, gap, penalty, eta, np.full(count, np.nan))

    def _answers(self, rows: Rows, model: Any) -> Iterator[_Row]:
        for r in range(rows.p.shape[1]):
            n = rows.length[r]
            p, z = rows.p[:n, r].copy(), rows.reward[r] + rows.x[:n, r]
            p.flags.writeable = z.flags.writeable = False
            where = "" if model is None else f" at {_name_pair(model, int(rows.pair[r]))}"
            yield self._ask(p, z, float(rows.level[r]), where)

    def _ask(self, p: FloatArray, z: FloatArray, level: float, where: str) -> _Row:
        wrapped = self._wrapped
        with self._lock:
            try:
                answer = wrapped.worst_case(p, z, level)
            except Exception as error:
                error.add_note(f"raised by worst_case of {_describe(wrapped)}{where}")
                raise
        return _check_answer(answer, z, f"worst_case of {_describe(wrapped)}", where)


def _name_pair(model: Any, pair: int) -> str:
    state = int(np.searchsorted(model.state_ptr, pair, side="right")) - 1
    return f"state {state}, action {pair - int(model.state_ptr[state])} of those available there"


def _check_answer(answer: Any, z: FloatArray, name: str, where: str) -> _Row:
    try:
        value, distribution, lower, *more = answer
        value, lower = float(value), float(lower)
        eta = float(more[0]) if more else math.nan
        q = np.array(distribution, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must return a value, a distribution and a lower bound: got {answer!r}{where}"
        ) from None
    _checks.must(q.shape == z.shape, f"{name} must return a distribution of shape {z.shape}: got {q.shape}{where}")
    low, high = float(z.min()), float(z.max())
    size = max(-low, high)
    slack = _ROUNDING * size
    total = float(q.sum())
    if not (q.min() >= -_SUM_TOLERANCE and math.isfinite(total)):
        wrong = q[~(q >= -_SUM_TOLERANCE)] if math.isfinite(total) else q[~np.isfinite(q)]
        _checks.fail(f"{name} must return probabilities of at least 0: got {wrong[0]:g}{where}")
    _checks.must(
        abs(total - 1.0) <= _SUM_TOLERANCE, f"{name} must return a distribution that sums to 1: got {total:.12g}{where}"
    )
    _checks.must(math.isfinite(value), f"{name} must return a finite value: got {value}{where}")
    _checks.must(not math.isnan(lower), f"{name} must return a number as the lower bound: got nan{where}")
    _checks.must(
        low - slack <= value <= high + slack,
        f"{name} must return a value between the least and the largest outcome, {low:.9g} and {high:.9g}: "
        f"got {value:.9g}{where}",
    )
    _checks.must(
        lower <= value + slack, f"{name} must return a lower bound below the value {value:.9g}: got {lower:.9g}{where}"
    )
    q = np.maximum(q, 0.0)
    q /= q.sum()
    attained = float(q @ z)
    _checks.must(
        value >= attained - slack,
        f"{name} must return a value that its distribution attains, {attained:.9g} plus what nature pays: "
        f"got {value:.9g}{where}",
    )
    value = max(value, attained)  # an upper bound must be attained
    rounding = EPS * ((4.0 * z.size + 64.0) * (high - low) + 4.0 * size) + 2.0 * abs(total - 1.0) * size
    return _Row(value, q, max(min(lower, value), low), eta, rounding)
