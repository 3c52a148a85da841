"""The worst mean of equally likely samples over a Kullback-Leibler ball, for `multilevel`."""

from __future__ import annotations

import math

import numpy as np

from robustmdp.learning._jit import inlined, kernel

_PASSES = 200
_LARGEST_TILT = 1e25
_GENTLE = 0.05  # exponentials this close to 1 are kept as their distance from it
_LOG2_HIGH = 0.6931471803691238
_LOG2_LOW = 1.9082149292705877e-10
_INVERSE_LOG2 = 1.4426950408889634
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer in the low bits
_BIAS = np.int64(1023)
_MANTISSA = np.int64(52)
_LIMIT = 700.0


@inlined
def _reduced(y):
    """(2^n, exp(r) - 1) with exp(y) = 2^n exp(r), y cut to [-700, 700]; free of branches, for vector code."""
    y = y if y > -_LIMIT else -_LIMIT
    y = y if y < _LIMIT else _LIMIT
    shifted = y * _INVERSE_LOG2 + _ROUND
    n = shifted - _ROUND
    r = (y - n * _LOG2_HIGH) - n * _LOG2_LOW
    q = 1.0 / 6227020800.0
    q = q * r + 1.0 / 479001600.0
    q = q * r + 1.0 / 39916800.0
    q = q * r + 1.0 / 3628800.0
    q = q * r + 1.0 / 362880.0
    q = q * r + 1.0 / 40320.0
    q = q * r + 1.0 / 5040.0
    q = q * r + 1.0 / 720.0
    q = q * r + 1.0 / 120.0
    q = q * r + 1.0 / 24.0
    q = q * r + 1.0 / 6.0
    q = q * r + 0.5
    power = np.int64((np.float64(shifted).view(np.int64) + _BIAS) << _MANTISSA).view(np.float64)
    return power, r + r * r * q


@inlined
def _expm1(y):
    power, q = _reduced(y)
    return power * q + (power - 1.0)


@inlined
def _exp(y):
    power, q = _reduced(y)
    return power + power * q


@inlined
def _log1p(s):
    """log(1 + s); a short series where it is small."""
    if -1e-3 < s < 1e-3:
        return s * (1.0 - s * (1.0 / 2 - s * (1.0 / 3 - s * (1.0 / 4 - s * (1.0 / 5 - s / 6)))))
    return np.log1p(s)


@inlined
def _lowest_spread_mass(x, p):
    """Min x, max x - min x, and the mass of all minimisers."""
    lowest = x[0]
    for outcome in x:
        lowest = outcome if outcome < lowest else lowest
    largest, mass = 0.0, 0.0
    for outcome in x:
        largest = max(largest, outcome - lowest)
        mass += p if outcome == lowest else 0.0
    return lowest, largest, mass


@inlined
def _variance(x, p):
    """Var x, centred at the first outcome so that a common offset costs no digits."""
    centre = x[0]
    first = 0.0
    second = 0.0
    for outcome in x:
        d = outcome - centre
        q = p * d
        first += q
        second += q * d
    return max(second - first * first, 0.0)


@inlined
def _tilted_moments(x, p, e, lowest, gentle):
    """Log E exp(-theta (x-min)), and mean and variance of x - min under that tilt.

    `e` holds exp(-theta (x-min)), less 1 if the tilt is `gentle`: each is exact where the other cancels.
    """
    zeroth = 0.0
    first = 0.0
    second = 0.0
    for j in range(len(x)):
        d = x[j] - lowest
        q = p * (1.0 + e[j] if gentle else e[j]) * d
        zeroth += p * e[j]
        first += q
        second += q * d
    log_total = _log1p(zeroth) if gentle else math.log(zeroth)
    average = first / (1.0 + zeroth if gentle else zeroth)
    return log_total, average, max(second / (1.0 + zeroth if gentle else zeroth) - average * average, 0.0)


@kernel
def worst_mean(x, rho, e):
    """inf of E_P x over D(P || uniform on x) <= rho; `e` is room for len(x) numbers.

    P tilts the samples by exp(-theta x). D(theta) = -theta mean - log E exp(-theta x) is increasing with D' = theta
    Var; Newton on its square root, which is linear for small theta, inside a bracket.
    """
    p = 1.0 / len(x)
    lowest, largest, mass = _lowest_spread_mass(x, p)
    if largest == 0.0 or mass >= math.exp(-rho):
        return lowest
    least = math.sqrt(8.0 * rho) / largest  # because Var <= spread^2/4
    theta = max(min(math.sqrt(2.0 * rho / max(_variance(x, p), 1e-300)), 1e3 / largest), least)
    low, high = 0.0, math.inf
    value = lowest
    for _ in range(_PASSES):
        gentle = theta * largest < _GENTLE
        for j in range(len(x)):
            y = theta * (lowest - x[j])
            e[j] = _expm1(y) if gentle else _exp(y)
        log_total, average, variance = _tilted_moments(x, p, e, lowest, gentle)
        divergence = max(-theta * average - log_total, 0.0)
        value = max(lowest - (log_total + rho) / theta, lowest)
        miss = divergence - rho
        # The dual is concave in the weight: miss^2/scale is what one more Newton step would still gain.
        slope = theta * variance
        scale = 2.0 * theta * theta * slope
        if miss * miss <= 1e-17 * largest * scale and abs(miss) <= 1e-9 * min(
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
        if proposal == theta or theta > _LARGEST_TILT / largest:
            break
        theta = proposal
    return value
