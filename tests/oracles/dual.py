"""The dual problems (2) and (4) of the paper in 50 digits, by bisection: nothing shared with the package.

A dual value is exact to second order in its multipliers, so multipliers to 1e-13 give far more digits than a float has.

The conjugates below are the only ones of the referees. They take the numbers of a context of mpmath: `mp` for many
digits, `fp` for floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mpmath import mp, mpf

mp.dps = 50
_FINE = mpf(10) ** -14


class Conjugate(NamedTuple):
    """f* and f*' at y = anchor - u, and f, all with f'(1) = 0; the anchor is f'(inf) where finite, otherwise 0.

    `steepest` is the limit of f*' at the edge; where it is finite, value(0) and derivative(0) exist.
    """

    value: Callable[[Any], Any]
    derivative: Callable[[Any], Any]
    f: Callable[[Any], Any]
    edge: Any
    steepest: Any = mp.inf


def power(k: float, context: Any = mp) -> Conjugate:
    """Cressie-Read, by its defining formula: enough digits make the limits k -> 0, 1 harmless."""
    k, zero, one, inf = context.mpf(k), context.mpf(0), context.mpf(1), context.inf
    log, exp, expm1 = context.log, context.exp, context.expm1
    if k == 1:
        return Conjugate(lambda u: expm1(-u), lambda u: exp(-u), lambda t: t * log(t) - t + 1 if t else one, inf)
    if k == 0:
        return Conjugate(lambda u: -log(u), lambda u: 1 / u, lambda t: -log(t) + t - 1 if t else inf, one)

    def base(u: Any) -> Any:
        return max((1 - k) * u if k < 1 else 1 - (k - 1) * u, zero)

    def f(t: Any) -> Any:
        if t == 0:
            return 1 / k if k > 0 else inf
        return (t**k - 1 - k * (t - 1)) / (k * (k - 1))

    return Conjugate(
        lambda u: (base(u) ** (k / (k - 1)) - 1) / k,
        lambda u: base(u) ** (1 / (k - 1)) if base(u) > 0 else zero,
        f,
        1 / (1 - k) if k < 1 else inf,
    )


def jensen_shannon(context: Any = mp) -> Conjugate:
    """f* = -log(2 - exp y), f*' = 1/(exp u - 1)."""
    log, expm1, zero = context.log, context.expm1, context.mpf(0)
    return Conjugate(
        lambda u: -log(-2 * expm1(-u)),
        lambda u: 1 / expm1(u),
        lambda t: (t * log(t) if t else zero) - (t + 1) * log((t + 1) / 2),
        log(context.mpf(2)),
    )


def total_variation(context: Any = mp) -> Conjugate:
    """f = |t-1|/2, f* = max(y, -1/2) up to y = 1/2."""
    zero, one = context.mpf(0), context.mpf(1)
    return Conjugate(
        lambda u: max(one / 2 - u, -one / 2),
        lambda u: one if u < 1 else zero,
        lambda t: abs(t - 1) / 2,
        one / 2,
        one,
    )


def huber(context: Any = mp) -> Conjugate:
    """f = (t-1)^2 where |t-1| <= 1/2, |t-1| - 1/4 beyond: f* has a kink at -1 and ends at 1."""
    zero, quarter = context.mpf(0), context.mpf(1) / 4

    def value(u: Any) -> Any:
        y = 1 - u
        return y + y * y * quarter if y >= -1 else -3 * quarter

    return Conjugate(
        value,
        lambda u: 1 + (1 - u) / 2 if u <= 2 else zero,
        lambda t: (t - 1) ** 2 if abs(2 * t - 2) <= 1 else abs(t - 1) - quarter,
        4 * quarter,
        6 * quarter,
    )


def kinked(context: Any = mp) -> Conjugate:
    """f = |t-1| + (t-1)^2: a kink at 1, so that f* has slope 1 from -1 to 1."""
    zero, one, inf = context.mpf(0), context.mpf(1), context.inf

    def value(u: Any) -> Any:
        beyond = max(abs(u) - 1, zero)
        return -u + beyond * beyond / 4 if u <= 3 else -2 * one

    def derivative(u: Any) -> Any:
        if u < -1:
            return one - (u + 1) / 2
        return one if u <= 1 else max(one - (u - 1) / 2, zero)

    return Conjugate(value, derivative, lambda t: abs(t - 1) + (t - 1) ** 2, inf)


def flat(context: Any = mp) -> Conjugate:
    """f = ((|t-1| - 1/2)_+)^2: flat at 1, so that f* has a kink at 0."""
    zero, half, inf = context.mpf(0), context.mpf(1) / 2, context.inf

    def value(u: Any) -> Any:
        if u < 0:
            return -3 * half * u + u * u / 4
        return -half * u + u * u / 4 if u <= 1 else -half / 2

    def derivative(u: Any) -> Any:
        return 3 * half - u / 2 if u < 0 else max(half - u / 2, zero)

    return Conjugate(value, derivative, lambda t: max(abs(t - 1) - half, zero) ** 2, inf)


def _exact(p: Sequence[float], v: Sequence[float]) -> tuple[list[mpf], list[mpf]]:
    masses = [mpf(float(x)) for x in p]
    total = mp.fsum(masses)
    return [x / total for x in masses], [mpf(float(x)) for x in v]


def _mean(p: list[mpf], values: list[mpf]) -> mpf:
    return mp.fsum(a * b for a, b in zip(p, values, strict=True))


def _dual(conjugate: Conjugate, p: list[mpf], v: list[mpf], weight: mpf) -> tuple[mpf, mpf]:
    """(sup over eta, D of its worst case): E f*' = 1 by bisection on the shift of all arguments."""
    lowest = min(v)
    d = [(x - lowest) / weight for x in v]
    finite = conjugate.edge < mp.inf
    # Geometric where the edge is finite: the root may be as small as a power of the least probability.
    low, high = (mpf(10) ** -400, conjugate.edge) if finite else (-max(d), mpf(0))
    while high - low > _FINE * (min(high, max(d)) if finite else max(d)):
        middle = mp.sqrt(low * high) if low > 0 and high > 16 * low else (low + high) / 2
        if _mean(p, [conjugate.derivative(x + middle) for x in d]) > 1:
            low = middle
        else:
            high = middle
    value = (conjugate.edge if finite else 0) - high - _mean(p, [conjugate.value(x + high) for x in d])
    return lowest + weight * value, _mean(p, [conjugate.f(t) for t in _tilts(conjugate, p, d, low, high)])


def _tilts(conjugate: Conjugate, p: list[mpf], d: list[mpf], low: mpf, high: mpf) -> list[mpf]:
    """f*' mixed from both ends of the bracket so that E f*' = 1: for k = 20 it is too steep for either end alone."""
    above, below = ([conjugate.derivative(x + shift) for x in d] for shift in (low, high))
    excess, lack = _mean(p, above) - 1, 1 - _mean(p, below)
    share = lack / (excess + lack) if excess + lack else mpf(0)
    return [share * a + (1 - share) * b for a, b in zip(above, below, strict=True)]


def penalized(conjugate: Conjugate, p: Sequence[float], v: Sequence[float], weight: float, scale: float = 1) -> mpf:
    """inf over P of E_P v + weight * scale * D."""
    p, v = _exact(p, v)
    return v[0] if max(v) == min(v) else _dual(conjugate, p, v, mpf(weight) * mpf(scale))[0]


def constrained(conjugate: Conjugate, p: Sequence[float], v: Sequence[float], radius: float, scale: float = 1) -> mpf:
    """inf of E_P v over scale * D <= radius: bisection on log weight."""
    p, v = _exact(p, v)
    rho = mpf(radius) / mpf(scale)
    lowest = min(v)
    mass = mp.fsum(a for a, x in zip(p, v, strict=True) if x == lowest)
    if max(v) == lowest or mass * conjugate.f(1 / mass) + (1 - mass) * conjugate.f(mpf(0)) <= rho:
        return lowest
    spread = max(v) - lowest
    low, high = spread * mpf(10) ** -40, spread * mpf(10) ** 20
    while high > low * (1 + mpf(10) ** -9):
        weight = mp.sqrt(low * high)
        if _dual(conjugate, p, v, weight)[1] > rho:
            low = weight
        else:
            high = weight
    return max(_dual(conjugate, p, v, high)[0] - high * rho, lowest)


def total_variation_penalized(p: Sequence[float], v: Sequence[float], weight: float) -> mpf:
    """Mass moves to the bottom where it gains more than it costs."""
    p, v = _exact(p, v)
    return _mean(p, [min(x, min(v) + mpf(weight)) for x in v])


def total_variation_constrained(p: Sequence[float], v: Sequence[float], radius: float) -> mpf:
    """Sort, then move the radius from the top to the bottom."""
    p, v = _exact(p, v)
    lowest, left, total = min(v), mpf(radius), mpf(0)
    for x, a in sorted(zip(v, p, strict=True), reverse=True):
        moved = min(a, left)
        left -= moved
        total += (a - moved) * x + moved * lowest
    return total
