"""Section 4.1 alone: the worst case of one distribution, learned from a stream of outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _core, _types
from robustmdp.ambiguity import Ambiguity
from robustmdp.divergences import ChiSquare, TotalVariation
from robustmdp.learning.levels import check_learnable, price_of
from robustmdp.learning.schedules import Numbers, Schedule, Setting, Theorem41, WeightOverRoot, check_schedule


@dataclass(frozen=True, eq=False)
class LearnedWorstCase:
    """What a stream taught: `eta`, the last iterate of the paper's dual variable, and `value`, an estimate.

    `value` is the mean of J(eta_t; x_t) over the last half of the stream, in which eta_t had not yet seen x_t.
    """

    value: float
    eta: float
    steps: int


def learn_worst_case(
    ambiguity: Ambiguity,
    outcomes: Iterable[float] | npt.ArrayLike,
    value_range: tuple[float, float],
    *,
    steps: Schedule | None = None,
    eta: float = 0.0,
) -> LearnedWorstCase:
    """eta <- Proj(eta + alpha_t (1 - f*'((eta - x_t)/weight))), one x_t = V(s'_t) after the other (Theorem 4.1).

    Parameters
    ----------
    ambiguity : Penalized; total variation needs no dual variable and is refused
    outcomes : array or iterable of numbers in value_range, read once
    value_range : (low, high) of the outcomes, the paper's [0, 1/(1 - discount)]
    steps : schedule; Theorem 4.1's for chi-square, weight/sqrt(t + 1) otherwise
    eta : where to begin

    >>> from robustmdp import ChiSquare, Penalized, worst_case
    >>> rng, doubt = np.random.default_rng(0), Penalized(ChiSquare(), 1.0)
    >>> learned = learn_worst_case(doubt, rng.integers(0, 2, 100_000) * 2.0, (0.0, 2.0))
    >>> abs(learned.value - worst_case(doubt, [0.5, 0.5], [0.0, 2.0]).value) < 0.02
    True
    """
    _types.check_arguments(learn_worst_case, locals())
    weight, divergence = _check_penalty(ambiguity), ambiguity.divergence
    low, high = (_checks.finite_number("value_range", bound) for bound in value_range)
    _checks.must(low <= high, f"value_range must be (low, high): got {value_range!r}")
    eta = _checks.finite_number("eta", eta)
    chi_square = divergence == ChiSquare()
    schedule = steps if steps is not None else Theorem41() if chi_square else WeightOverRoot()
    check_schedule("steps", schedule)
    numbers = schedule.resolve(Setting(1.0, weight, (low, high), divergence.scale, penalty=divergence))
    shift = weight * divergence.slope_at_one  # between the paper's eta and that of the normal form
    wide = 2.0 * weight
    interval = (low - wide, 2.0 * high - low + wide) if chi_square else (low, high)
    first_eta = min(max(eta - shift, interval[0]), interval[1])
    given = list(outcomes) if isinstance(outcomes, Iterator) else outcomes
    x = _checks.numbers("outcomes", given).ravel()
    wrong = np.flatnonzero(~((x >= low) & (x <= high)))
    if len(wrong):
        _checks.fail(f"outcomes must lie in value_range [{low:g}, {high:g}]: got {x[wrong[0]]:g} at {wrong[0]}")
    _checks.must(len(x) > 0, "outcomes must hold at least one number: got none")
    values = np.empty(len(x))
    last_eta = price_of(divergence).ascend(
        _compiled(numbers), first_eta, *interval, weight * divergence.scale, x, values
    )
    return LearnedWorstCase(float(values[len(x) // 2 :].mean()), last_eta + shift, len(x))


@lru_cache(maxsize=16)
def _compiled(numbers: Numbers) -> Any:
    return _core.Steps(*numbers)  # which tabulates its first sizes


def _check_penalty(ambiguity: Ambiguity) -> float:
    """The weight of a penalty whose dual can be climbed."""
    check_learnable(ambiguity)
    if not ambiguity.has_weight or ambiguity.divergence == TotalVariation():
        _checks.fail(f"gradient ascent on eta is for a penalty with a smooth conjugate: got {ambiguity!r}")
    weight = ambiguity.level
    _checks.must(
        isinstance(weight, float) and 0.0 < weight < math.inf, f"weight must be one number in (0, inf): got {weight!r}"
    )
    return float(weight)
