"""Every other divergence: a safeguarded Newton method on E f*' = 1, and one around it for the radius.

With d = x - min x and theta = 1/weight, the argument of f* is anchor - u, u = theta d + shift (see the divergences'
kernels). E f*' falls as the shift grows. `low` and `high` enclose the root; where f* has a kink they end as
neighbouring floats, and the worst case is the mixture of the two that sums to 1.
"""

from __future__ import annotations

import math

from robustmdp._jit import kernel
from robustmdp.ambiguity._moments import lowest_and_mass, mean_and_variance, spread
from robustmdp.divergences.kernels import CRESSIE_READ, JENSEN_SHANNON, OWN, conjugate, generator, newton_ratio, tilt

_STEPS = 200
_LARGEST_TILT = 1e25
_HUGE = 1e280
_PREDICTABLE = 1e-12  # a gain below this share of the spread is predicted to rounding,
_SHORT = 1e-3  # by a step that changes the tilt by no more than this share
_LEAST = 1e-290
_EDGE_OF_OWN = 1e-15  # a user's f*' is never asked at the edge itself, where it may divide by zero
_ROUNDED = 1e-6  # a mass further from 1 than this is a jump of f*', not rounding


@kernel
def tilted_mass(kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, shift):
    """(E f*', E f*'') at a shift."""
    mass = 0.0
    slope = 0.0
    for j in range(n):
        g, h = tilt(kind, k, edge, at_edge, theta * (x[o + j] - lowest) + shift)
        mass += p[a + j] * g
        slope += p[a + j] * h
    return (mass, slope) if mass == mass else (math.inf, math.nan)


@kernel
def dual(kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, shift):
    """(eta - lambda E f* - min x)/lambda."""
    total = 0.0
    for j in range(n):
        total += p[a + j] * conjugate(kind, k, edge, at_edge, theta * (x[o + j] - lowest) + shift)
    return (edge if at_edge else 0.0) - shift - total


@kernel
def shift_bounds(kind, k, edge, at_edge, largest, mean, mass):
    """An interval that contains the root; outcomes are in units of the weight, `mass` is that of the minimisers."""
    if not at_edge:
        return -min(largest, edge), 0.0
    low = edge - largest
    if kind != OWN:
        low = edge - mean  # f*' is convex wherever the edge is finite (Jensen)
    if kind == CRESSIE_READ:
        low = max(low, math.exp((1.0 - k) * math.log(mass)) / (1.0 - k), _LEAST)
    elif kind == JENSEN_SHANNON:
        low = max(low, math.log1p(mass))
    else:
        low = max(low, _EDGE_OF_OWN * max(1.0, edge))
    return low, edge


@kernel
def find_shift(kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, largest, mean, mass):
    """(shift, low, high, E f*' at shift) with E f*' = 1 at the shift, or jumping over 1 between low and high."""
    low, high = shift_bounds(kind, k, edge, at_edge, largest, mean, mass)
    shift = low if at_edge else max(-mean, low)
    total_low, total_high = math.inf, 0.0
    total = 1.0
    for step in range(_STEPS):
        total, slope = tilted_mass(kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, shift)
        miss = total - 1.0
        if abs(miss) <= 4e-16 or (abs(miss) <= 1e-9 and miss * miss <= 2e-18 * largest * slope):
            break
        if miss > 0.0:
            low, total_low = shift, total
        elif shift == low:
            break  # even at the edge the mass stays below 1: the rest goes to the minimisers
        else:
            high, total_high = shift, total
        if high - low <= 2.3e-16 * max(abs(low), abs(high)):
            break
        proposal = math.nan
        if slope > 0.0 and slope < math.inf and total > 0.0 and total < math.inf:
            proposal = shift + newton_ratio(kind, k, total) / slope
        elif total_low < math.inf and step % 3 != 0:
            proposal = low + (total_low - 1.0) / (total_low - total_high) * (high - low)
        if not (low < proposal < high) or step > 50:
            proposal = math.sqrt(low * high) if low > 0.0 and high > 16.0 * low else 0.5 * (low + high)
        if proposal in (low, high):
            break
        shift = proposal
    return shift, low, high, total


@kernel
def penalized(kind, k, edge, p, a, x, o, n, w):
    """Sup over eta of eta - w E f*((eta - x)/w), and that eta."""
    lowest, mass = lowest_and_mass(p, a, x, o, n)
    largest = spread(x, o, n, lowest) / w
    if largest == 0.0 or largest > _HUGE:
        return lowest, lowest
    theta = 1.0 / w
    mean = mean_and_variance(p, a, x, o, n)[0] - lowest
    at_edge = edge < 2.0 * largest
    shift, _, _, _ = find_shift(kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, largest, mean * theta, mass)
    value = lowest + w * dual(kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, shift)
    return max(value, lowest), lowest + w * ((edge if at_edge else 0.0) - shift)


@kernel
def fill_tilt(kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, shift, share, out, b):
    """out += share p f*'; returns the share of E f*' and, for a user's f, of D by Fenchel's equality f = t y - f*."""
    total = 0.0
    cost = 0.0
    for j in range(n):
        u = theta * (x[o + j] - lowest) + shift
        t, _ = tilt(kind, k, edge, at_edge, u)
        total += p[a + j] * t
        out[b + j] += share * p[a + j] * t
        if kind == OWN:
            cost += p[a + j] * (t * ((edge if at_edge else 0.0) - u) - conjugate(kind, k, edge, at_edge, u))
    return share * total, share * cost


@kernel
def divergence(kind, k, p, a, n, out, b):
    """D_f(out || p)."""
    total = 0.0
    for j in range(n):
        total += p[a + j] * generator(kind, k, out[b + j] / p[a + j])
    return total


@kernel
def respond(kind, k, edge, p, a, x, o, n, lowest, largest, mean, mass, theta, out, b):
    """out = the worst case at weight 1/theta, sums to 1; returns (D, shift, at_edge)."""
    at_edge = edge < 2.0 * theta * largest
    shift, low, high, total = find_shift(
        kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, theta * largest, theta * mean, mass
    )
    for j in range(n):
        out[b + j] = 0.0
    if abs(total - 1.0) <= _ROUNDED:
        total, cost = fill_tilt(kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, shift, 1.0, out, b)
    elif total < 1.0 and shift == low:
        total, cost = fill_tilt(kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, shift, 1.0, out, b)
        for j in range(n):
            if x[o + j] == lowest:
                out[b + j] += (1.0 - total) * p[a + j] / mass
        cost += edge * (1.0 - total)
        total = 1.0
    else:
        above, _ = tilted_mass(kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, low)
        below, _ = tilted_mass(kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, high)
        share = (1.0 - below) / (above - below)
        total, cost = fill_tilt(kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, low, share, out, b)
        rest, more = fill_tilt(kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, high, 1.0 - share, out, b)
        total += rest
        cost += more
    for j in range(n):
        out[b + j] /= total
    if kind != OWN:
        cost = divergence(kind, k, p, a, n, out, b)
    return max(cost, 0.0), shift, at_edge


@kernel
def curvature(kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, shift):
    """theta dD/dtheta = E f*'' Var''(theta x), the variance under weights p f*''; NaN where f*'' is unknown."""
    zeroth = 0.0
    first = 0.0
    second = 0.0
    for j in range(n):
        d = theta * (x[o + j] - lowest)  # squares of the outcomes themselves may not be numbers
        _, h = tilt(kind, k, edge, at_edge, d + shift)
        q = p[a + j] * h
        zeroth += q
        first += q * d
        second += q * d * d
    return second - first * first / zeroth if zeroth > 0.0 else 0.0


@kernel
def largest_divergence(kind, k, mass):
    """D of the vertex that keeps only the minimisers: m f(1/m) + (1-m) f(0)."""
    if kind == OWN:
        return math.inf
    rest = (1.0 - mass) * generator(kind, k, 0.0) if mass < 1.0 else 0.0
    return mass * generator(kind, k, 1.0 / mass) + rest


@kernel
def constrained(kind, k, edge, p, a, x, o, n, rho, theta, closeness, out, b):
    """(inf of E_P x over D <= rho, low, high, eta): the weight is 1/low; `out` is scratch.

    Newton on sqrt D(theta) = sqrt rho inside a bracket; the square root is linear for small theta. The dual value is
    exact to second order in the miss, the primal one only to first: `closeness` asks for a small miss as well. If that
    is infinite only the value is wanted, which may then be the maximum that Newton predicts rather than a bound. Where
    f* has a kink D jumps: then low < high are neighbours on both sides of the radius, otherwise they are equal.
    """
    lowest, mass = lowest_and_mass(p, a, x, o, n)
    largest = spread(x, o, n, lowest)
    if largest < _LEAST or rho >= largest_divergence(kind, k, mass):
        return lowest, math.inf, math.inf, lowest
    mean, variance = mean_and_variance(p, a, x, o, n)
    mean -= lowest
    if not (1e-3 * math.sqrt(rho) < theta * largest < _LARGEST_TILT):
        relative = variance / largest / largest
        theta = min(math.sqrt(2.0 * rho / (max(relative, 1e-12) if relative <= 0.25 else 0.25)), 1e3) / largest
    low, high, root_low, root_high = 0.0, math.inf, 0.0, math.inf
    value, eta, miss = lowest, lowest, 0.0
    for step in range(_STEPS):
        cost, shift, at_edge = respond(kind, k, edge, p, a, x, o, n, lowest, largest, mean, mass, theta, out, b)
        bound = dual(kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, shift)
        value = max(lowest + (bound - rho) / theta, value, lowest)
        eta = lowest + ((edge if at_edge else 0.0) - shift) / theta
        bend = curvature(kind, k, edge, at_edge, p, a, x, o, n, lowest, theta, shift)
        miss = cost - rho
        scale = 2.0 * bend * (theta * largest)
        short = miss * miss <= _PREDICTABLE * scale and abs(miss) <= _SHORT * bend
        if closeness == math.inf and short:
            return max(value, lowest + (bound - rho + 0.5 * miss * miss / bend) / theta), theta, theta, eta
        gained = miss * miss <= 1e-17 * scale
        close = abs(miss) <= closeness * min(theta * largest, max(rho, math.sqrt(rho)))
        if (gained and close) or abs(miss) <= 1e-15 * rho:
            back = theta * min(2.0 * miss / bend, 0.5) if miss > 0.0 and bend > 0.0 else 0.0  # into the ball
            return value, theta - back, theta - back, eta
        root = math.sqrt(cost)
        if miss < 0.0:
            low, root_low = theta, root
        else:
            high, root_high = theta, root
        proposal = 0.0
        if bend > 0.0 and bend < math.inf and root > 0.0:
            proposal = theta * (1.0 + 2.0 * root * (math.sqrt(rho) - root) / bend)
        elif high < math.inf and root_high < math.inf and step % 3 != 0:
            proposal = low + (math.sqrt(rho) - root_low) / (root_high - root_low) * (high - low)
        if not (low < proposal < high) or proposal > 32.0 * theta or step > 60:
            proposal = 16.0 * theta if high == math.inf else math.sqrt(max(low, high * 1e-8) * high)
        if theta > _LARGEST_TILT / largest:
            return max(value, lowest), theta, theta, lowest
        if high < math.inf and (high - low <= 2.3e-16 * high or proposal <= low or proposal >= high):
            break
        theta = proposal
    return value, low if low > 0.0 else theta, high if high < math.inf else theta, eta
