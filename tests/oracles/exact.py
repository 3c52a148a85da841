"""Worst cases and values of small MDPs in 60 digits and more, each between two bounds that prove it.

Weak duality makes the bounds: any multipliers give a dual value from below, any distribution that nature may choose a
value from above. How the multipliers were found, and with how many digits, does not matter then; the distance of the
two bounds tells whether they are good enough, and more digits are taken until it does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mpmath import fp, mp, mpf

import robustmdp as rm
from oracles.dual import Conjugate
from oracles.random_rows import normal_form

DIGITS = 60
_QUICK = 20  # digits of `bracket`
ACCURACY = mpf(10) ** -25  # of the bounds' distance, relative to max|v|
_GUARD = 30  # digits beyond those that count: near k = 0 and 1 f loses 24 of them
_ATTEMPTS = 5
_TOLERANCE = mpf(10) ** -18  # of multipliers: where f is smooth, the values are off by the square of that
_CLOSE = 1e-13  # how far multipliers found in floats are from the exact ones, at first guess
_LONGEST = 1000  # steps, each four times as long as the last
_MOST = 2000  # steps of a root search
_FAR = 10**6  # stands for the logarithm of 0
_LOST = (OverflowError, ZeroDivisionError, ValueError)  # what floats do outside their range


class Enclosure(NamedTuple):
    """lower <= worst case <= upper; `distribution` is worth `upper`, of which nature pays `penalty`."""

    lower: mpf
    upper: mpf
    distribution: list[mpf]
    penalty: mpf
    start: tuple[mpf, mpf] | None = None  # logarithm of the weight and shift, for a problem nearby


class _Row(NamedTuple):
    """One row in the numbers of one context: outcomes are counted from the lowest one, in units of their spread."""

    context: Any
    conjugate: Conjugate
    p: list[Any]
    gaps: list[Any]
    mass: Any  # of all outcomes that are lowest
    tolerance: Any


class _Tilt(NamedTuple):
    """The penalized problem at one weight: the best shift u, the dual value, nature's answer t = q/p and its D."""

    u: Any
    value: Any
    t: list[Any]
    divergence: Any


class _Found(NamedTuple):
    """Bounds, nature's answer t = q/p, what it pays and the multipliers, in units of the spread."""

    lower: Any
    upper: Any
    t: list[Any]
    penalty: Any
    start: tuple[Any, Any]


def worst_case(
    ambiguity: Any,
    p: Sequence[Any],
    v: Sequence[Any],
    discount: float = 1.0,
    start: tuple[mpf, mpf] | None = None,
    digits: int = DIGITS,
) -> Enclosure:
    """The least E v (plus discount * weight * D) over what nature may choose at p / sum(p), with p > 0.

    `ambiguity` has one level. The answer's bounds are ACCURACY apart or better; if no attempt succeeds, they are wider.
    """
    digits += -min(0, min(math.floor(mp.log10(mpf(a))) for a in p))
    tolerance = _TOLERANCE
    for _ in range(_ATTEMPTS):
        with mp.workdps(digits + _GUARD):
            answer = _enclose(ambiguity, [mpf(a) for a in p], [mpf(x) for x in v], mpf(discount), tolerance, start)
            if answer.lower > answer.upper or min(answer.distribution) < 0:
                raise ArithmeticError(f"the referee contradicts itself: rm.{ambiguity!r}, {p}, {v}")
            if answer.upper - answer.lower <= ACCURACY * max(map(abs, v)):
                return answer
        start = answer.start
        digits, tolerance = 2 * digits, tolerance * tolerance
    return answer


def bracket(ambiguity: Any, p: Sequence[Any], v: Sequence[Any], discount: Any = 1.0) -> tuple[mpf, mpf]:
    """Bounds of `worst_case` at multipliers found in floats, about 1e-13 * max|v| apart: ten times as fast."""
    with mp.workdps(_QUICK + _GUARD):
        answer = _enclose(ambiguity, [mpf(a) for a in p], [mpf(x) for x in v], mpf(discount), _TOLERANCE, None, True)
        if answer.lower <= answer.upper <= answer.lower + _CLOSE * max(map(abs, v)):
            return answer.lower, answer.upper
    answer = worst_case(ambiguity, p, v, discount)
    return answer.lower, answer.upper


def level_at_pair(ambiguity: Any, s: int, a: int) -> Any:
    """The set of one pair, with one level."""
    if isinstance(ambiguity, rm.Nominal) or isinstance(ambiguity.level, float):
        return ambiguity
    return type(ambiguity)(ambiguity.divergence, float(ambiguity.level[s, a]))


def vertex_radius(divergence: Any, p: Sequence[Any], v: Sequence[Any]) -> mpf:
    """The least radius at which all mass may move to the lowest outcomes."""
    with mp.workdps(DIGITS - min(0, min(math.floor(mp.log10(mpf(a))) for a in p))):
        conjugate, scale = normal_form(divergence, mp)
        masses = [mpf(a) for a in p]
        mass = mp.fsum(a for a, x in zip(masses, v, strict=True) if x == min(v)) / mp.fsum(masses)
        return mpf(scale) * _divergence_at_vertex(conjugate, mass)


def _divergence_at_vertex(conjugate: Conjugate, mass: mpf) -> mpf:
    return mass * conjugate.f(1 / mass) + ((1 - mass) * conjugate.f(mpf(0)) if mass < 1 else 0)


def _enclose(
    ambiguity: Any,
    p: list[mpf],
    v: list[mpf],
    discount: mpf,
    tolerance: mpf,
    start: tuple[mpf, mpf] | None,
    keeps_floats: bool = False,
) -> Enclosure:
    total = mp.fsum(p)
    p = [a / total for a in p]
    lowest, spread = min(v), max(v) - min(v)
    if spread == 0:
        return Enclosure(lowest, lowest, p, mpf(0))
    has_weight = isinstance(ambiguity, rm.Penalized)
    if isinstance(ambiguity, rm.Nominal) or ambiguity.level == (math.inf if has_weight else 0):
        mean = lowest + mp.fsum(a * (x - lowest) for a, x in zip(p, v, strict=True))
        rounding = max(map(abs, v)) * mpf(10) ** (_GUARD - mp.dps)
        return Enclosure(mean - rounding, mean + rounding, p, mpf(0))
    conjugate, scale = normal_form(ambiguity.divergence, mp)
    mass = mp.fsum(a for a, x in zip(p, v, strict=True) if x == lowest)
    weight = mpf(ambiguity.level) * discount * mpf(scale) / spread if has_weight else None
    radius = None if has_weight else mpf(ambiguity.level) / mpf(scale)
    if weight == 0 or (weight is None and _divergence_at_vertex(conjugate, mass) <= radius):
        at_bottom = [a / mass if x == lowest else mpf(0) for a, x in zip(p, v, strict=True)]
        return Enclosure(lowest, lowest, at_bottom, mpf(0))
    row = _Row(mp, conjugate, p, [(x - lowest) / spread for x in v], mass, tolerance)
    if start is None:
        start = _start_in_floats(ambiguity.divergence, row, weight, radius)
    if keeps_floats and start is not None:
        lower, upper, t, penalty, start = _at_multipliers(row, weight, radius, start)
    elif has_weight:
        lower, upper, t, penalty, start = _penalized(row, weight, start)
    else:
        lower, upper, t, penalty, start = _constrained(row, radius, start)
    distribution = [a * b for a, b in zip(p, t, strict=True)]
    return Enclosure(
        lowest + spread * max(lower, mpf(0)), lowest + spread * upper, distribution, spread * penalty, start
    )


def _start_in_floats(divergence: Any, row: _Row, weight: mpf | None, radius: mpf | None) -> tuple[mpf, mpf] | None:
    """The multipliers to a dozen digits, where they are within the range of floats."""
    try:
        conjugate, _ = normal_form(divergence, fp)
        p, gaps = [float(a) for a in row.p], [float(x) for x in row.gaps]
        floats = _Row(fp, conjugate, p, gaps, float(row.mass), 1e-13)
        found = _constrained(floats, float(radius), None) if weight is None else _penalized(floats, float(weight), None)
    except _LOST:
        return None
    return (mpf(found.start[0]), mpf(found.start[1])) if all(map(math.isfinite, found.start)) else None


def _penalized(row: _Row, weight: Any, start: tuple[Any, Any] | None) -> _Found:
    tilt = _tilt(row, weight, None if start is None else start[1])
    penalty = weight * tilt.divergence
    upper = _mean(row, tilt.t, row.gaps) + penalty
    return _Found(tilt.value, upper + _rounding(row, weight, upper), tilt.t, penalty, (row.context.log(weight), tilt.u))


def _constrained(row: _Row, radius: Any, start: tuple[Any, Any] | None) -> _Found:
    """D falls with the weight: its logarithm z is where D is the radius."""
    context = row.context
    seen: dict[Any, _Tilt] = {}
    last = start

    def excess(z: Any) -> Any:
        nonlocal last
        near = (None, 1) if last is None else (last[1], max(abs(z - last[0]), _CLOSE))
        seen[z] = tilt = _tilt(row, context.exp(z), *near)
        last = (z, tilt.u)
        return context.log(tilt.divergence / radius) if tilt.divergence > 0 else context.mpf(-_FAR)

    if start is None:
        ones = [context.mpf(1)] * len(row.p)
        mean = _mean(row, row.gaps, ones)
        variance = _mean(row, [(x - mean) ** 2 for x in row.gaps], ones)
        z, step = context.log(variance / (2 * radius)) / 2, context.mpf(1)  # right for small radii
    else:
        z, step = start[0], context.mpf(_CLOSE)
    low, high = _narrow(excess, *_widen(excess, z, step), row.tolerance)
    above, below = seen[low], seen[high]
    lower = max(tilt.value - context.exp(z) * radius for z, tilt in ((low, above), (high, below)))
    # Convexity: the mixture's divergence is at most the mixture of the two.
    share = (radius - below.divergence) / (above.divergence - below.divergence) if low < high else context.mpf(1)
    t = _mix(above.t, below.t, share)
    upper = _mean(row, t, row.gaps)
    rounding = _rounding(row, context.exp(high), 1 + radius)
    return _Found(lower - rounding, upper + rounding, t, context.mpf(0), (high, below.u))


def _at_multipliers(row: _Row, weight: Any, radius: Any, start: tuple[Any, Any]) -> _Found:
    """The dual at any multipliers; nature's answer t there, rescaled to mean 1 and moved towards 1 into the ball."""
    context, conjugate = row.context, row.conjugate
    price, u = context.exp(start[0]) if weight is None else weight, start[1]
    d = [x / price for x in row.gaps]
    ones = [context.mpf(1)] * len(d)
    t = [conjugate.derivative(x + u) for x in d]
    missing = 1 - _mean(row, t, ones)
    if missing > 0 and conjugate.steepest < context.inf:
        t = [b + missing / row.mass if x == 0 else b for b, x in zip(t, d, strict=True)]
    else:
        t = [b / (1 - missing) for b in t]
    tilt = _finish(row, price, d, u, t)
    if weight is not None:
        upper = _mean(row, t, row.gaps) + weight * tilt.divergence
        return _Found(tilt.value, upper + _rounding(row, price, upper), t, weight * tilt.divergence, start)
    t = _mix(t, ones, min(radius / tilt.divergence, ones[0])) if tilt.divergence > 0 else t
    rounding = _rounding(row, price, 1 + radius)
    return _Found(tilt.value - price * radius - rounding, _mean(row, t, row.gaps) + rounding, t, context.mpf(0), start)


def _mean(row: _Row, weights: Sequence[Any], values: Sequence[Any]) -> Any:
    return row.context.fsum(a * b * x for a, b, x in zip(row.p, weights, values, strict=True))


def _mix(one: list[Any], other: list[Any], share: Any) -> list[Any]:
    return [share * a + (1 - share) * b for a, b in zip(one, other, strict=True)]


def _rounding(row: _Row, weight: Any, size: Any) -> Any:
    """What rounding does to sums of size `weight * size`; floats only make a guess, and need no bound."""
    if row.context is fp:
        return 0.0
    return (1 + abs(weight) * (1 + abs(size))) * mpf(10) ** (_GUARD - mp.dps)


def _tilt(row: _Row, weight: Any, start: Any, reach: Any = _CLOSE) -> _Tilt:
    """E f*'(anchor - u - gap/weight) = 1, solved for the shift u, from within a relative `reach` of `start`."""
    context, conjugate = row.context, row.conjugate
    d = [x / weight for x in row.gaps]
    furthest = max(d)
    anchor = conjugate.edge if conjugate.edge < context.inf else context.mpf(0)

    def slopes(u: Any) -> list[Any]:
        return [conjugate.derivative(x + u) for x in d]

    def total(u: Any) -> Any:
        return context.fsum(a * b for a, b in zip(row.p, slopes(u), strict=True))

    if conjugate.steepest < context.inf and total(context.mpf(0)) <= 1:
        return _tilt_at_edge(row, weight, d, slopes(context.mpf(0)))

    if anchor and conjugate.steepest == context.inf:  # the shift may be a power of the least probability: logarithms
        to_u, excess = context.exp, lambda z: _logarithm(context, total(context.exp(z)))
        unit = min(context.mpf(1), furthest / anchor)
        low, high = _bracket_below_edge(total, anchor, furthest)
        low, high = context.log(low), context.log(high)
        hint = None if start is None or start <= 0 else context.log(start)
    else:
        to_u, excess = (lambda u: u), lambda u: _logarithm(context, total(u))
        low, high = _bracket_on_line(total, anchor, furthest)
        unit = min(furthest, high - low)
        hint = start
    width = row.tolerance * unit
    if hint is not None and low < hint < high:
        low, high = _narrow(excess, *_widen(excess, hint, max(reach * unit, 8 * width)), width)
    else:
        low, high = _narrow(excess, (low, excess(low)), (high, excess(high)), width)
    low, high = to_u(low), to_u(high)
    return _mixed_tilt(row, weight, d, low, high, slopes)


def _logarithm(context: Any, total: Any) -> Any:
    return context.log(total) if total > 0 else context.mpf(-_FAR)


def _mixed_tilt(row: _Row, weight: Any, d: list[Any], low: Any, high: Any, slopes: Callable[[Any], list[Any]]) -> _Tilt:
    """f*' mixed from both ends of the bracket so that E t = 1, which also chooses among slopes at a kink."""
    above, below = slopes(low), slopes(high)
    ones = [row.context.mpf(1)] * len(d)
    excess, lack = _mean(row, above, ones) - 1, 1 - _mean(row, below, ones)
    share = lack / (excess + lack) if excess + lack > 0 else row.context.mpf(0)
    t = _mix(above, below, share)
    return _finish(row, weight, d, high, t)


def _tilt_at_edge(row: _Row, weight: Any, d: list[Any], slopes: list[Any]) -> _Tilt:
    """f grows linearly: what the slopes leave over goes to the lowest outcomes at the same price."""
    left = (1 - _mean(row, slopes, [row.context.mpf(1)] * len(d))) / row.mass
    return _finish(
        row, weight, d, row.context.mpf(0), [b + left if x == 0 else b for b, x in zip(slopes, d, strict=True)]
    )


def _finish(row: _Row, weight: Any, d: list[Any], u: Any, t: list[Any]) -> _Tilt:
    context, conjugate = row.context, row.conjugate
    anchor = conjugate.edge if conjugate.edge < context.inf else context.mpf(0)
    ones = [context.mpf(1)] * len(d)
    values = [conjugate.value(x + u) for x in d]
    value = weight * (anchor - u - _mean(row, values, ones))
    size = anchor + abs(u) + _mean(row, [abs(x) for x in values], ones)
    divergence = _mean(row, [conjugate.f(b) for b in t], ones)
    return _Tilt(u, value - _rounding(row, weight, size), t, divergence)


def _bracket_below_edge(total: Callable[[Any], Any], edge: Any, furthest: Any) -> tuple[Any, Any]:
    """E f*' >= 1 at the first, <= 1 at the second, for f*' without bound at the edge."""
    low = edge - 2 * furthest
    if low <= 0:
        low = min(edge, 1) / type(edge)(2)
        while low > 0 and total(low) < 1:
            low = low * low
    return low, edge


def _bracket_on_line(total: Callable[[Any], Any], anchor: Any, furthest: Any) -> tuple[Any, Any]:
    """The same where the shift is a number of ordinary size, or f*' is bounded."""
    if anchor:
        return anchor * 0, anchor
    if furthest == math.inf:
        raise OverflowError
    low = max(-2 * furthest, type(furthest)(-1))
    while low > -2 * furthest and total(low) < 1:
        low = max(-2 * furthest, 2 * low if low > -2 else -low * low)
    return low, furthest * 0


def _widen(g: Callable[[Any], Any], x: Any, step: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Two points with their values, g >= 0 at the first and g <= 0 at the second, by ever longer steps from x."""
    here = there = (x, _number(g(x)))
    sign = 1 if here[1] > 0 else -1
    for _ in range(_LONGEST):
        if there[1] * sign <= 0:
            return (here, there) if sign > 0 else (there, here)
        here = there
        x = x + sign * step
        there = (x, _number(g(x)))
        step = 4 * step
    raise ValueError(f"no root was found from {here[0]} on")


def _number(x: Any) -> Any:
    if x != x:
        raise ValueError("no number")
    return x


def _narrow(g: Callable[[Any], Any], above: tuple[Any, Any], below: tuple[Any, Any], width: Any) -> tuple[Any, Any]:
    """Narrow a bracket of the root of a decreasing function to `width` (Chandrupatla 1997)."""
    (x1, g1), (x2, g2) = below, above
    if g1 == 0 or g2 == 0:
        x = x1 if g1 == 0 else x2
        return x, x
    t = 0.5
    for _ in range(_MOST):
        x = x1 + t * (x2 - x1)
        if x in (x1, x2):  # there is no number between
            return (x1, x2) if g1 > 0 else (x2, x1)
        gx = _number(g(x))
        if gx == 0:
            return x, x
        if (gx > 0) == (g1 > 0):
            x3, g3 = x1, g1
        else:
            x3, g3 = x2, g2
            x2, g2 = x1, g1
        x1, g1 = x, gx
        reach = abs(x2 - x1)
        if reach <= 2 * width:
            return (x1, x2) if g1 > 0 else (x2, x1)
        xi, phi = (x1 - x2) / (x3 - x2), (g1 - g2) / (g3 - g2) if g3 != g2 else 1
        if phi * phi < xi and (1 - phi) * (1 - phi) < 1 - xi:
            t = g1 / (g2 - g1) * g3 / (g2 - g3) + (x3 - x1) / (x2 - x1) * g1 / (g3 - g1) * g2 / (g3 - g2)
        else:
            t = 0.5
        least = width / reach
        t = min(max(t, least), 1 - least)
    raise ValueError(f"no root was found between {above[0]} and {below[0]}")
