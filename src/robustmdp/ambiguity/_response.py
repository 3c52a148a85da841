"""Nature's answer at one row: the worst-case distribution, its price, the multipliers, both ends of the duality gap."""

from __future__ import annotations

import math

from robustmdp._jit import kernel
from robustmdp.ambiguity import _chi_square, _kl, _smooth, _total_variation
from robustmdp.ambiguity._moments import lowest_and_mass, mean, mean_and_variance, spread
from robustmdp.ambiguity._rows import CONSTRAINED, PENALIZED, is_minimum, is_nominal
from robustmdp.ambiguity._smooth import divergence
from robustmdp.divergences.kernels import CRESSIE_READ, OWN, TOTAL_VARIATION

_CLOSE = 1e-12
_SQUARES_FROM, _SQUARES_UP_TO = 1e-100, 1e100  # where products of outcomes are numbers

_chi_square_penalized = _chi_square.penalized
_chi_square_constrained = _chi_square.constrained
_kl_penalized = _kl.penalized
_kl_constrained = _kl.constrained
_tv_penalized = _total_variation.penalized
_tv_constrained = _total_variation.constrained
_tv_mass_above = _total_variation.mass_above
_smooth_penalized = _smooth.penalized
_smooth_constrained = _smooth.constrained
_smooth_respond = _smooth.respond


@kernel
def keep_minimisers(p, a, x, o, n, mass, out, b):
    """out = p restricted to x = 0 (outcomes are centred at their minimum)."""
    for j in range(n):
        out[b + j] = p[a + j] / mass if x[o + j] == 0.0 else 0.0


@kernel
def chi_square(mode, level, p, a, x, o, n, mass, out, b):
    """(dual value, eta, weight); out = p (tau - x)_+ / weight."""
    if mode == PENALIZED:
        value, tau = _chi_square_penalized(p, a, x, o, n, level, math.nan)
        weight = level
    else:
        value, tau, weight = _chi_square_constrained(p, a, x, o, n, level, math.nan)
    if weight > 0.0:
        for j in range(n):
            out[b + j] = p[a + j] * max((tau - x[o + j]) / weight, 0.0)
    else:
        keep_minimisers(p, a, x, o, n, mass, out, b)
    return value, tau - weight, weight


@kernel
def kullback_leibler(mode, level, p, a, x, o, n, mass, spare, out, b):
    """(dual value, eta, weight); out = p exp(-x/weight), not yet normalised."""
    if mode == PENALIZED:
        value = _kl_penalized(p, a, x, o, n, level)
        eta, theta = value, 1.0 / level
    else:
        value, theta = _kl_constrained(p, a, x, o, n, level, math.nan, _CLOSE, False, spare)
        eta = value + level / theta
    if theta < math.inf:
        for j in range(n):
            out[b + j] = p[a + j] * math.exp(max(-theta * x[o + j], -745.0))
    else:
        keep_minimisers(p, a, x, o, n, mass, out, b)
    return value, eta, 1.0 / theta


@kernel
def total_variation(mode, level, p, a, x, o, n, mass, out, b):
    """(dual value, eta, weight); mass above the ceiling goes to the minimisers."""
    if mode == PENALIZED:
        value, ceiling = _tv_penalized(p, a, x, o, n, level), level
        share = 0.0
    else:
        value, ceiling = _tv_constrained(p, a, x, o, n, level, math.nan)
        above, equal = _tv_mass_above(p, a, x, o, n, ceiling)
        share = min(max((level - above) / equal, 0.0), 1.0) if equal > 0.0 else 0.0
    moved = 0.0
    for j in range(n):
        taken = 0.0
        if x[o + j] > ceiling:
            taken = p[a + j]
        elif x[o + j] == ceiling and ceiling > 0.0:
            taken = share * p[a + j]
        out[b + j] = p[a + j] - taken
        moved += taken
    for j in range(n):
        if x[o + j] == 0.0:
            out[b + j] += moved * p[a + j] / mass
    return value, 0.5 * ceiling, ceiling


@kernel
def smooth(spec, level, p, a, x, o, n, mass, spare, out, b):
    """(dual value, eta, weight, D)."""
    mode, kind, k, edge = spec
    if mode == PENALIZED:
        value, eta = _smooth_penalized(kind, k, edge, p, a, x, o, n, level)
        low = high = 1.0 / level
    else:
        value, low, high, eta = _smooth_constrained(kind, k, edge, p, a, x, o, n, level, math.nan, _CLOSE, out, b)
    largest = spread(x, o, n, 0.0)
    if not (0.0 < low * largest < 1e280):
        keep_minimisers(p, a, x, o, n, mass, out, b)
        return value, eta, 1.0 / low, 0.0
    average = mean_and_variance(p, a, x, o, n)[0]
    cost, _, _ = _smooth_respond(kind, k, edge, p, a, x, o, n, 0.0, largest, average, mass, low, out, b)
    if low < high:  # D jumps over the radius: a mixture of both sides attains it
        more, _, _ = _smooth_respond(kind, k, edge, p, a, x, o, n, 0.0, largest, average, mass, high, spare, o)
        share = min(max((level - cost) / (more - cost), 0.0), 1.0) if more > cost else 0.0
        for j in range(n):
            out[b + j] = (1.0 - share) * out[b + j] + share * spare[o + j]
        cost = (1.0 - share) * cost + share * more
    weight = 1.0 / low if low * largest < 1e24 else 0.0  # beyond, the multipliers are those of the vertex
    return value, eta, weight, cost


@kernel
def respond_row(spec, level, p, a, x, o, n, spare, out, b):
    """(dual, primal, eta, weight, D), and the worst-case distribution in out[b:b+n].

    Centres x[o:o+n] in place; spare[o:o+n] is scratch.
    """
    mode = spec[0]
    lowest, mass = lowest_and_mass(p, a, x, o, n)
    for j in range(n):
        x[o + j] -= lowest
    largest = spread(x, o, n, 0.0)
    if largest == 0.0 or _SQUARES_FROM <= largest <= _SQUARES_UP_TO:
        value, primal, eta, weight, cost = respond_centred(spec, level, p, a, x, o, n, mass, spare, out, b)
        return lowest + value, lowest + primal, lowest + eta, weight, cost
    # The squares would not be numbers; the worst case does not depend on the unit, and powers of two change no digit.
    exponent = math.frexp(largest)[1]
    half, rest = 2.0 ** (exponent // 2), 2.0 ** (exponent - exponent // 2)  # the whole may be too large for a number
    for j in range(n):
        x[o + j] = x[o + j] / half / rest
    scaled = level / half / rest if mode == PENALIZED else level
    value, primal, eta, weight, cost = respond_centred(spec, scaled, p, a, x, o, n, mass, spare, out, b)
    for j in range(n):
        x[o + j] = x[o + j] * half * rest
    weight = level if mode == PENALIZED else weight * half * rest
    return lowest + value * half * rest, lowest + primal * half * rest, lowest + eta * half * rest, weight, cost


@kernel
def respond_centred(spec, level, p, a, x, o, n, mass, spare, out, b):
    """`respond_row` where the least outcome is 0."""
    mode, kind, k, _ = spec
    average = mean(p, a, x, o, n)
    if is_nominal(mode, level):
        for j in range(n):
            out[b + j] = p[a + j]
        return average, average, average, math.inf, 0.0
    if is_minimum(mode, level) or n == 1 or average == 0.0:
        keep_minimisers(p, a, x, o, n, mass, out, b)
        cost = 0.0 if n == 1 or average == 0.0 else divergence(kind, k, p, a, n, out, b)
        return 0.0, 0.0, 0.0, level if mode == PENALIZED else 0.0, cost
    cost = math.nan
    if kind == CRESSIE_READ and k == 2.0:
        value, eta, weight = chi_square(mode, level, p, a, x, o, n, mass, out, b)
    elif kind == CRESSIE_READ and k == 1.0:
        value, eta, weight = kullback_leibler(mode, level, p, a, x, o, n, mass, spare, out, b)
    elif kind == TOTAL_VARIATION:
        value, eta, weight = total_variation(mode, level, p, a, x, o, n, mass, out, b)
    else:
        value, eta, weight, cost = smooth(spec, level, p, a, x, o, n, mass, spare, out, b)
    total = 0.0
    for j in range(n):
        total += out[b + j]
    for j in range(n):
        out[b + j] /= total
    if kind != OWN:
        cost = divergence(kind, k, p, a, n, out, b)
    if mode == CONSTRAINED and cost > level:
        share = level / cost  # D is convex: pull the answer back towards p until it lies in the ball
        for j in range(n):
            out[b + j] = share * out[b + j] + (1.0 - share) * p[a + j]
        cost = level
    primal = 0.0
    for j in range(n):
        primal += out[b + j] * x[o + j]
    if mode == PENALIZED:
        primal += level * cost
    return value, primal, eta, weight, cost
