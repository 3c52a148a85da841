"""The worst case of one distribution."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp.ambiguity.records import Ambiguity, check_ambiguity
from robustmdp.divergences.base import FloatArray


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
    ambiguity : Nominal, Penalized or Constrained, with one level
    p : (n,) probabilities
        A successor of probability zero never gets mass.
    v : (n,) values

    >>> from robustmdp import ChiSquare, Penalized
    >>> answer = worst_case(Penalized(ChiSquare(), 1.0), [0.5, 0.5], [0.0, 2.0])  # E v - Var v / (4 weight)
    >>> answer.value, answer.distribution
    (0.75, array([0.75, 0.25]))
    """
    check_ambiguity(ambiguity)
    _checks.must(
        isinstance(ambiguity.level, float),
        f"{ambiguity.level_name} must be one number for one distribution: got an array",
    )
    probabilities, values = _checked(p, v)
    support = np.flatnonzero(probabilities)
    on_support = probabilities[support]
    response, answer = _respond(ambiguity, on_support / on_support.sum(), values[support])
    distribution = np.zeros_like(probabilities)
    distribution[support] = response
    dual, primal, eta, weight, _ = answer
    scale, slope = ambiguity.divergence.kernel.scale, ambiguity.divergence.slope_at_one
    weight /= scale
    shift = weight * slope if slope else 0.0
    return WorstCase(float(dual), distribution, Multipliers(float(eta + shift), float(weight)), float(primal - dual))


def _checked(p: npt.ArrayLike, v: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    probabilities = np.array(p, dtype=np.float64)
    values = np.array(v, dtype=np.float64)
    _checks.must(
        probabilities.ndim == 1 and probabilities.shape == values.shape and probabilities.size > 0,
        f"p and v must be 1-D and equally long: got shapes {probabilities.shape} and {values.shape}",
    )
    bad = np.flatnonzero(~(probabilities >= 0) | np.isinf(probabilities))
    if bad.size:
        _checks.fail(f"p must be finite and at least 0: got {probabilities[bad[0]]:g} at p[{bad[0]}]")
    total = probabilities.sum()
    _checks.must(abs(total - 1) <= _checks.SUM_TOLERANCE, f"p must sum to 1: got {total:.12g}")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        _checks.fail(f"v must be finite: got {values[bad[0]]} at v[{bad[0]}]")
    return probabilities, values


def _respond(ambiguity: Ambiguity, p: FloatArray, v: FloatArray) -> tuple[FloatArray, tuple[float, ...]]:
    from robustmdp.ambiguity import _response

    kernel = ambiguity.divergence.specialise(_response.respond_row)
    level = ambiguity.kernel_level(1.0)
    out = np.empty_like(p)
    start = np.uint64(0)
    return out, kernel(
        tuple(ambiguity.spec), level, p, start, v, start, np.uint64(p.size), np.empty_like(p), out, start
    )
