"""Branch-free exponentials that LLVM turns into vector code; the C library's cost five times as much."""

from __future__ import annotations

import numpy as np

from robustmdp._jit import inlined, kernel

_LOG2_HIGH = 0.6931471803691238
_LOG2_LOW = 1.9082149292705877e-10
_INVERSE_LOG2 = 1.4426950408889634
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer in the low bits
_BIAS = np.int64(1023)
_MANTISSA = np.int64(52)
_LIMIT = 700.0

LANE = 64  # loops over whole lanes run in vector code alone, so that a number has the same bits wherever it stands


@inlined
def reduced(y):
    """(2^n, exp(r) - 1) with exp(y) = 2^n exp(r), y cut to [-700, 700]."""
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
def expm1(y):
    """exp(y) - 1, exact where it is small."""
    power, q = reduced(y)
    return power * q + (power - 1.0)


@inlined
def exp(y):
    """exp(y), exact where it is small."""
    power, q = reduced(y)
    return power + power * q


@kernel
def expm1_all(x, n):
    """x[:n] = exp(x[:n]) - 1, in place, up to a full lane beyond n."""
    for j in range((n + LANE - 1) // LANE * LANE):
        x[j] = expm1(x[j])


@kernel
def exp_all(x, n):
    """x[:n] = exp(x[:n]), in place, up to a full lane beyond n."""
    for j in range((n + LANE - 1) // LANE * LANE):
        x[j] = exp(x[j])


@inlined
def log1p(s):
    """log(1 + s); a short series where a warm start has left little to correct."""
    if -1e-3 < s < 1e-3:
        return s * (1.0 - s * (1.0 / 2 - s * (1.0 / 3 - s * (1.0 / 4 - s * (1.0 / 5 - s / 6)))))
    return np.log1p(s)
