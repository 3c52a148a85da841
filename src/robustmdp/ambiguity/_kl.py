"""Kullback-Leibler: the inner problem is a log-sum-exp, in a shift that keeps it in range."""

from __future__ import annotations

import math

from robustmdp._jit import kernel
from robustmdp.ambiguity._exponential import expm1, log1p
from robustmdp.ambiguity._moments import lowest_and_mass, lowest_outcome, mean_and_variance, spread

_PASSES = 200
_LARGEST_TILT = 1e25


@kernel
def penalized(p, a, x, o, n, w):
    """-w log E exp(-x/w), shifted by min x."""
    lowest = lowest_outcome(x, o, n)
    total = 0.0
    for j in range(n):
        total += p[a + j] * expm1((lowest - x[o + j]) / w)
    return lowest - w * math.log1p(total)


@kernel
def log_mean_exp(p, a, e, o, n, centre, w):
    """centre - w log E(1 + e) for e = exp((centre-x)/w) - 1; NaN if the centre was too far off to keep digits."""
    total = 0.0
    for j in range(n):
        total += p[a + j] * e[o + j]
    if -0.999 < total < 1e3:
        return centre - w * log1p(total)
    return math.nan


@kernel
def tilted_moments(p, a, x, o, n, lowest, theta):
    """log E exp(-theta (x-min)), and mean and variance of x - min under that tilt."""
    zeroth = 0.0
    first = 0.0
    second = 0.0
    for j in range(n):
        d = x[o + j] - lowest
        e = expm1(-theta * d)
        q = p[a + j] * (1.0 + e) * d
        zeroth += p[a + j] * e
        first += q
        second += q * d
    log_total = math.log1p(zeroth)
    mean = first / (1.0 + zeroth)
    return log_total, mean, max(second / (1.0 + zeroth) - mean * mean, 0.0)


@kernel
def constrained(p, a, x, o, n, rho, theta, closeness):
    """(inf of E_P x over D <= rho, the tilt theta = 1/weight); `theta` is where to start, NaN if unknown.

    D(theta) = -theta mean - log E exp(-theta x) is increasing with D' = theta Var; Newton on its square root, which is
    linear for small theta, inside a bracket. `closeness` bounds the miss, which the primal value feels to first order.
    """
    lowest, mass = lowest_and_mass(p, a, x, o, n)
    if mass >= math.exp(-rho):
        return lowest, math.inf
    low, high = 0.0, math.inf
    largest = spread(x, o, n, lowest)
    if largest == 0.0:
        return lowest, math.inf
    if not (0.0 < theta < _LARGEST_TILT / largest):
        variance = mean_and_variance(p, a, x, o, n)[1]
        theta = min(math.sqrt(2.0 * rho / variance), 1e3 / largest) if variance > 0.0 else 1.0 / largest
    value = lowest
    for _ in range(_PASSES):
        log_total, mean, variance = tilted_moments(p, a, x, o, n, lowest, theta)
        divergence = max(-theta * mean - log_total, 0.0)
        value = max(lowest - (log_total + rho) / theta, lowest)
        miss = divergence - rho
        # The dual is concave in the weight: this is what one more Newton step would still gain.
        gained = miss * miss <= 2e-17 * largest * theta * theta * theta * variance
        if gained and abs(miss) <= closeness * largest * theta:
            break
        if miss < 0.0:
            low = theta
        else:
            high = theta
        slope = theta * variance
        proposal = 0.0
        if slope > 0.0 and divergence > 0.0:
            proposal = theta + 2.0 * math.sqrt(divergence) * (math.sqrt(rho) - math.sqrt(divergence)) / slope
        if not (low < proposal < high) or proposal > 32.0 * theta:
            proposal = 16.0 * theta if high == math.inf else math.sqrt(max(low, high * 1e-8) * high)
        if proposal == theta or theta > _LARGEST_TILT / largest:
            break
        theta = proposal
    return value, theta
