"""The worst case of one distribution."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks, _types
from robustmdp._arrays import FloatArray
from robustmdp.ambiguity.base import Ambiguity
from robustmdp.ambiguity.own import check_ambiguity


class Multipliers(NamedTuple):
    """The dual optimum: eta for the sum of P, weight for its divergence (the paper's eta and lambda)."""

    eta: float
    weight: float


class WorstCase(NamedTuple):
    """What nature does to one distribution; `gap` is the primal minus the dual value."""

    value: float
    distribution: FloatArray
    multipliers: Multipliers
    gap: float


def worst_case(ambiguity: Ambiguity, p: npt.ArrayLike, v: npt.ArrayLike) -> WorstCase:
    """The least E_P v that nature can reach from p; the paper's (2) or (4).

    Parameters
    ----------
    ambiguity : a set with one level
    p : (n,) probabilities
        A successor of probability zero never gets mass, unless the set has a `support` that allows it.
    v : (n,) values

    >>> from robustmdp import ChiSquare, Penalized
    >>> answer = worst_case(Penalized(ChiSquare(), 1.0), [0.5, 0.5], [0.0, 2.0])  # E v - Var v / (4 weight)
    >>> answer.value, answer.distribution
    (0.75, array([0.75, 0.25]))
    """
    _types.check_arguments(worst_case, locals())
    checked = check_ambiguity(ambiguity)
    if not isinstance(checked.level, float):
        _checks.fail(f"{checked.level_name} must be one number for one distribution: got an array")
    probabilities, values = _check_row(p, v)
    kernel, support = checked.kernel_for_row(probabilities)
    response = np.empty(np.count_nonzero(support))
    values, on_support = checked.sign * values[support], probabilities[support]
    value, gap, eta, weight = _solve(checked, kernel, on_support / on_support.sum(), values, response)
    distribution = np.zeros_like(probabilities)
    distribution[support] = response
    multipliers = Multipliers(*checked.paper_multipliers(checked.sign * eta, weight))
    return WorstCase(checked.sign * value, distribution, multipliers, gap)


def _solve(
    ambiguity: Ambiguity, kernel: Any, p: FloatArray, v: FloatArray, out: FloatArray
) -> tuple[float, float, float, float]:
    level = ambiguity.kernel_level(1.0)
    assert isinstance(level, float)
    spread = float(v.max() - v.min())
    has_unit = ambiguity.has_weight or ambiguity.has_radius  # it is known how the level changes with the unit of v
    if spread == 0.0 or 1e-100 <= spread <= 1e100 or not has_unit:
        value, gap, eta, weight = kernel.worst_case(p, v, level, out)
        return value, gap, eta, weight
    # Squares would not be numbers; the worst case does not depend on the unit, and powers of two change no digit.
    exponent = math.frexp(spread)[1]
    level = math.ldexp(level, -exponent) if ambiguity.has_weight else level
    low = float(v.min())
    value, gap, eta, weight = kernel.worst_case(p, np.ldexp(v - low, -exponent), level, out)
    return (
        low + math.ldexp(value, exponent),
        math.ldexp(gap, exponent),
        low + math.ldexp(eta, exponent),
        math.ldexp(weight, exponent),
    )


def _check_row(p: npt.ArrayLike, v: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    probabilities, values = _checks.numbers("p", p), _checks.numbers("v", v)
    if not (probabilities.ndim == 1 and probabilities.shape == values.shape and probabilities.size > 0):
        _checks.fail(f"p and v must be 1-D and equally long: got shapes {probabilities.shape} and {values.shape}")
    bad = np.flatnonzero(~(probabilities >= 0) | np.isinf(probabilities))
    if bad.size:
        _checks.fail(f"p must be finite and at least 0: got {probabilities[bad[0]]:g} at p[{bad[0]}]")
    total = probabilities.sum()
    _checks.must(not _checks.wrong_sums(total).size, f"p must sum to 1: got {total:.12g}")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        _checks.fail(f"v must be finite: got {values[bad[0]]} at v[{bad[0]}]")
    return probabilities, values
