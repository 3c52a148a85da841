"""The dual objective's constants: where eta lives (Theta), and how large J and its derivatives become there.

J(eta; v) = eta - weight f*((eta - v)/weight) is the dual objective at one outcome v. Each constant is a supremum over
eta in Theta and v in the range of values. Where the paper prints a number for chi-square that is not that supremum,
both exist: `form="printed"` and `form="true"`.
"""

from __future__ import annotations

import math
from typing import Literal

from robustmdp import _checks, _types
from robustmdp.divergences import ChiSquare, FDivergence, JensenShannon, TotalVariation
from robustmdp.theory import _arguments

Interval = tuple[float, float]

_ROUNDING = 1e-12


def dual_interval(
    divergence: FDivergence,
    weight: float,
    value_range: Interval,
    form: Literal["tight", "section-4.1", "lemma-a.1"] = "tight",
) -> Interval:
    """Theta = [low + weight f'(1), high + weight f'(1)], which holds the maximiser of E J(eta; V) (Assumption 4.1).

    E f*'((eta - V)/weight) = 1 at the maximiser, f*' is non-decreasing and f*'(f'(1)) = 1. Where f'(inf) is finite, f*
    is infinite beyond it and the upper end is cut at low + weight f'(inf), open; the cut interval holds the maximiser
    of the rows whose smallest outcome is low. The paper's intervals are for chi-square and looser by far:

    - "section-4.1": [low - 2 weight, 2 high - low + 2 weight], printed with values in [0, 1/(1-discount)];
    - "lemma-a.1": [low - weight, 2 high - low + 2 weight].

    >>> from robustmdp import ChiSquare
    >>> dual_interval(ChiSquare(), 0.5, (0.0, 10.0))
    (0.0, 10.0)
    >>> dual_interval(ChiSquare(), 0.5, (0.0, 10.0), form="section-4.1")
    (-1.0, 21.0)
    """
    _types.check_arguments(dual_interval, locals())
    weight = _arguments.positive("weight", weight)
    low, high = _arguments.interval("value_range", value_range)
    _arguments.one_of("form", form, ("tight", "section-4.1", "lemma-a.1"))
    if form == "tight":
        shift = weight * divergence.slope_at_one
        return low + shift, min(high + shift, low + weight * divergence.slope_at_infinity)
    _must_be_chi_square(divergence, form)
    below = 2.0 * weight if form == "section-4.1" else weight
    return low - below, 2.0 * high - low + 2.0 * weight


def ratio_range(divergence: FDivergence, weight: float, value_range: Interval, theta: Interval) -> Interval:
    """The likelihood ratios f*'((eta - v)/weight) for eta in Theta and v in the range: their smallest and largest.

    >>> from robustmdp import ChiSquare
    >>> [round(ratio, 9) for ratio in ratio_range(ChiSquare(), 0.5, (0.0, 10.0), (-1.0, 21.0))]
    [0.0, 22.0]
    """
    _types.check_arguments(ratio_range, locals())
    weight = _arguments.positive("weight", weight)
    low, high = _arguments.interval("value_range", value_range)
    first, last = _arguments.interval("theta", theta)
    smallest, largest = (
        float(divergence.conjugate_derivative(_tilt(divergence, weight, eta, outcome)))
        for eta, outcome in ((first, high), (last, low))
    )
    return smallest, largest


def strong_convexity(divergence: FDivergence, ratios: Interval = (0.0, math.inf)) -> float:
    """Sigma = inf f''(t) for t in `ratios` (Assumption 4.2): E J(eta; V) is 1/(weight sigma)-smooth.

    f'' is 2 for chi-square, t^(k-2) for Cressie-Read (1/t for KL, 1/t^2 for Burg, t^-1.5/2 for Hellinger), 1/(t (1+t))
    for Jensen-Shannon and 0 for total variation. So on all of [0, inf) only chi-square and k = 2 have a positive sigma;
    on the ratios that occur on a finite Theta (`ratio_range`) all but total variation do.

    >>> from robustmdp import KL, ChiSquare
    >>> strong_convexity(ChiSquare()), strong_convexity(KL()), strong_convexity(KL(), (0.0, 4.0))
    (2.0, 0.0, 0.25)
    """
    _types.check_arguments(strong_convexity, locals())
    low, high = (float(end) for end in ratios)
    _checks.must(0.0 <= low <= high and high > 0.0, f"ratios must be (low, high) with 0 <= low <= high: got {ratios}")
    if divergence == TotalVariation():
        return 0.0
    if divergence == JensenShannon():
        return 1.0 / (high * (1.0 + high))
    k: float | None = getattr(divergence, "power", None)
    if k is None:
        _checks.fail(f"divergence must be a built-in one to have a known f'': got {divergence!r}")
    flattest = high if k < 2.0 else low
    return float(divergence.scale * flattest ** (k - 2.0)) if k != 2.0 else divergence.scale


def gradient_bound(
    divergence: FDivergence,
    weight: float,
    value_range: Interval,
    theta: Interval,
    form: Literal["true", "lemma-4.1", "printed"] = "true",
) -> float:
    """C_g = sup of |dJ/d eta| = |1 - f*'((eta - v)/weight)| over eta in Theta and v in the range.

    - "true": the supremum itself, which the smallest or the largest ratio attains;
    - "lemma-4.1": (diam(Theta) + high - low)/(weight sigma), an upper bound on it for smooth f*, infinite if sigma = 0;
    - "printed": 3 (high - low)/(4 weight) + 2, below Theorem 4.2 for chi-square. It contradicts Lemma 4.1 (sigma = 2
      gives 3 (high - low)/(2 weight) + 2) and is below the supremum on section 4.1's Theta, (high - low)/weight + 1, as
      soon as weight < (high - low)/4.

    >>> from robustmdp import ChiSquare
    >>> world = ChiSquare(), 0.5, (0.0, 10.0), (-1.0, 21.0)
    >>> [round(gradient_bound(*world, form=form), 9) for form in ("true", "lemma-4.1", "printed")]
    [21.0, 32.0, 17.0]
    """
    _types.check_arguments(gradient_bound, locals())
    smallest, largest = ratio_range(divergence, weight, value_range, theta)
    _arguments.one_of("form", form, ("true", "lemma-4.1", "printed"))
    spread = value_range[1] - value_range[0]
    if form == "true":
        return max(largest - 1.0, 1.0 - smallest)
    if form == "printed":
        _must_be_chi_square(divergence, form)
        return 3.0 * spread / (4.0 * weight) + 2.0
    sigma = strong_convexity(divergence, (smallest, largest))
    return (theta[1] - theta[0] + spread) / (weight * sigma) if sigma > 0.0 else math.inf


def outcome_bound(
    divergence: FDivergence,
    weight: float,
    value_range: Interval,
    theta: Interval,
    form: Literal["true", "printed"] = "true",
) -> float:
    """C_M = sup of |J(eta; v)| over eta in Theta and v in the range (Assumption 4.3).

    J grows with v and is concave in eta, so the supremum is at the ends of Theta with v = low, or at the maximiser with
    v = high. "printed" is max |v|, the paper's 1/(1-discount) below Theorem 4.2: not an upper bound for chi-square.

    >>> from robustmdp import ChiSquare
    >>> world = ChiSquare(), 0.5, (0.0, 10.0), (-1.0, 21.0)
    >>> round(outcome_bound(*world), 9), outcome_bound(*world, form="printed")
    (220.5, 10.0)
    """
    _types.check_arguments(outcome_bound, locals())
    weight = _arguments.positive("weight", weight)
    low, high = _arguments.interval("value_range", value_range)
    first, last = _arguments.interval("theta", theta)
    _arguments.one_of("form", form, ("true", "printed"))
    if form == "printed":
        return max(abs(low), abs(high))

    def objective(eta: float, outcome: float) -> float:
        return eta - weight * float(divergence.conjugate(_tilt(divergence, weight, eta, outcome)))

    best = min(max(high + weight * divergence.slope_at_one, first), last)
    return max(objective(best, high), -objective(first, low), -objective(last, low))


def curvature(weight: float, discount: float, form: Literal["true", "printed"] = "true") -> float:
    """Kappa with E J'(eta; V) (eta - eta*) <= -kappa (eta - eta*)^2 for chi-square (Assumption 5.2).

    V lies in [0, 1/(1-discount)].

    - "printed": 1/(6 (weight + 1/(1-discount))), section 5. It is shown at eta* only;
    - "true": 1/(2 weight + 1/(1-discount)), the largest that holds for all eta >= -2 weight. E J' is concave, 1 at
      -2 weight and 0 at eta* <= 1/(1-discount): chords to its left and slopes to its right are at least as steep.

    >>> curvature(1.0, 0.5), curvature(1.0, 0.5, form="printed") == 1 / 18
    (0.25, True)
    """
    _types.check_arguments(curvature, locals())
    weight = _arguments.positive("weight", weight)
    largest_value = 1.0 / (1.0 - _checks.discount(discount))
    _arguments.one_of("form", form, ("true", "printed"))
    return 1.0 / (2.0 * weight + largest_value) if form == "true" else 1.0 / (6.0 * (weight + largest_value))


def _tilt(divergence: FDivergence, weight: float, eta: float, outcome: float) -> float:
    """(eta - v)/weight; rounding must not carry the end of Theta off the edge of the domain."""
    s, edge = (eta - outcome) / weight, divergence.slope_at_infinity
    return edge if math.isclose(s, edge, rel_tol=_ROUNDING, abs_tol=_ROUNDING) else s


def _must_be_chi_square(divergence: FDivergence, form: str) -> None:
    _checks.must(divergence == ChiSquare(), f"divergence must be ChiSquare() for the form {form!r}: got {divergence!r}")
