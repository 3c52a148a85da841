"""Kullback-Leibler: the inner problem is a log-sum-exp, in a shift that keeps it in range."""

from __future__ import annotations

import math

from robustmdp._jit import inlined, kernel
from robustmdp.ambiguity._exponential import exp, expm1, log1p
from robustmdp.ambiguity._moments import lowest_and_mass, lowest_outcome, mean_and_variance, spread

_PASSES = 200
_LARGEST_TILT = 1e25
_PREDICTABLE = 1e-12  # a gain below this share of the spread is predicted to rounding,
_SHORT = 1e-3  # by a step that changes the tilt by no more than this share
_GENTLE = 0.05


@inlined
def penalized(p, a, x, o, n, w):
    """-w log E exp(-x/w), shifted by min x."""
    lowest = lowest_outcome(x, o, n)
    total = 0.0
    for j in range(n):
        total += p[a + j] * expm1((lowest - x[o + j]) / w)
    if total > -0.5:
        return lowest - w * math.log1p(total)
    total = 0.0  # the minimum is rare: 1 + total would cancel
    for j in range(n):
        total += p[a + j] * exp((lowest - x[o + j]) / w)
    return lowest - w * math.log(total)


@inlined
def log_mean_exp(p, a, e, o, n, centre, w):
    """Centre - w log E(1 + e) for e = exp((centre-x)/w) - 1; NaN if the centre was too far off to keep digits."""
    total = 0.0
    for j in range(n):
        total += p[a + j] * e[o + j]
    if -0.5 < total < 1e3:
        return centre - w * log1p(total)
    return math.nan


@inlined
def tilt_arguments(x, o, n, lowest, theta, e):
    """e = -theta (x - min)."""
    for j in range(n):
        e[o + j] = theta * (lowest - x[o + j])


@inlined
def tilted_moments(p, a, x, e, o, n, lowest, gentle):
    """Log E exp(-theta (x-min)), and mean and variance of x - min under that tilt.

    `e` holds exp(-theta (x-min)), less 1 if the tilt is `gentle`: each is exact where the other cancels.
    """
    zeroth = 0.0
    first = 0.0
    second = 0.0
    for j in range(n):
        d = x[o + j] - lowest
        q = p[a + j] * (1.0 + e[o + j] if gentle else e[o + j]) * d
        zeroth += p[a + j] * e[o + j]
        first += q
        second += q * d
    log_total = log1p(zeroth) if gentle else math.log(zeroth)
    average = first / (1.0 + zeroth if gentle else zeroth)
    return log_total, average, max(second / (1.0 + zeroth if gentle else zeroth) - average * average, 0.0)


@inlined
def is_gentle(theta, largest):
    """Are all exponentials close to 1?"""
    return theta * largest < _GENTLE


@kernel
def constrained(p, a, x, o, n, rho, theta, closeness, prepared, e):
    """(inf of E_P x over D <= rho, the tilt theta = 1/weight); `theta` is where to start, NaN if unknown.

    D(theta) = -theta mean - log E exp(-theta x) is increasing with D' = theta Var; Newton on its square root, which is
    linear for small theta, inside a bracket; it ends where D <= rho. If `prepared`, e holds the exponentials of the
    start already. An infinite `closeness` asks for the value alone, which may then be the maximum that Newton predicts
    rather than a bound.
    """
    lowest = lowest_outcome(x, o, n)
    largest = spread(x, o, n, lowest)
    if largest == 0.0:
        return lowest, math.inf
    least = math.sqrt(8.0 * rho) / largest  # because Var <= spread^2/4
    if not (least <= theta < _LARGEST_TILT / largest):
        if lowest_and_mass(p, a, x, o, n)[1] >= math.exp(-rho):
            return lowest, math.inf
        variance = mean_and_variance(p, a, x, o, n)[1]
        theta = max(min(math.sqrt(2.0 * rho / max(variance, 1e-300)), 1e3 / largest), least)
        prepared = False
    low, high = 0.0, math.inf
    value, miss, slope = lowest, 0.0, 0.0
    for _ in range(_PASSES):
        gentle = is_gentle(theta, largest)
        if gentle or not prepared:
            tilt_arguments(x, o, n, lowest, theta, e)
            for j in range(n):
                e[o + j] = expm1(e[o + j]) if gentle else exp(e[o + j])
        prepared = False
        log_total, average, variance = tilted_moments(p, a, x, e, o, n, lowest, gentle)
        divergence = max(-theta * average - log_total, 0.0)
        value = max(lowest - (log_total + rho) / theta, lowest)
        miss = divergence - rho
        # The dual is concave in the weight: miss^2/scale is what one more Newton step would still gain.
        slope = theta * variance
        scale = 2.0 * theta * theta * slope
        if (
            closeness == math.inf
            and miss * miss <= _PREDICTABLE * largest * scale
            and abs(miss) <= _SHORT * theta * slope
        ):
            return value + miss * miss / scale, theta
        if miss * miss <= 1e-17 * largest * scale and abs(miss) <= closeness * min(
            theta * largest, max(rho, math.sqrt(rho))
        ):
            break
        if miss < 0.0:
            low = theta
        else:
            high = theta
        proposal = 0.0
        if slope > 0.0 and divergence > 0.0:
            proposal = theta + 2.0 * math.sqrt(divergence) * (math.sqrt(rho) - math.sqrt(divergence)) / slope
        if not (low < proposal < high) or proposal > 32.0 * theta:
            proposal = 16.0 * theta if high == math.inf else math.sqrt(max(low, high * 1e-8) * high)
            if high == math.inf and lowest_and_mass(p, a, x, o, n)[1] >= math.exp(-rho):
                return lowest, math.inf
        if proposal == theta or theta > _LARGEST_TILT / largest:
            break
        theta = proposal
    if closeness < math.inf and miss > 0.0 and theta > _LARGEST_TILT / largest and low > 0.0:
        theta = low  # outcomes that differ by less than rounding of the spread: the last tilt inside the ball will do
    elif closeness < math.inf and miss > 0.0 and slope > 0.0:
        theta -= min(2.0 * miss / slope, 0.5 * theta)  # a little back, into the ball
    return value, theta
