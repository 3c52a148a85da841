"""f, f' and f*, f*', f*'' of the divergences in one normal form, f(1) = f'(1) = 0, for the compiled learners.

A divergence is an integer `kind` and a parameter `k`, chosen by `_codes.code_of`. Adding c (t-1) to f changes neither
D nor the worst case, so the normal form drops it; a factor of f is moved into the weight. Total variation needs none
of these formulas: its worst case follows from the lowest outcome alone.
"""

from __future__ import annotations

import math

from robustmdp.learning._jit import kernel

NOMINAL, PENALIZED, CONSTRAINED = 0, 1, 2
CRESSIE_READ, JENSEN_SHANNON, TOTAL_VARIATION, OWN = 0, 1, 2, 3

_SERIES_RADIUS = 0.1
_LOG2 = math.log(2.0)
_LARGEST_EXPONENT = 690.0


@kernel
def own_conjugate(y):
    """Stand-in for a user's f*, which `_codes.specialise` replaces."""
    return math.nan


@kernel
def own_conjugate_derivative(y):
    """Stand-in for a user's f*'."""
    return math.nan


@kernel
def tilt(kind, k, y):
    """(f*'(y), f*''(y)); the second is NaN where unknown."""
    if kind == CRESSIE_READ:
        return _tilt_cressie_read(k, y)
    if kind == JENSEN_SHANNON:
        if y < -_LARGEST_EXPONENT:
            return 0.0, 0.0
        e = 1.0 + 2.0 * math.expm1(-y)
        if e <= 0.0:
            return math.inf, math.inf
        g = 1.0 / e
        return g, g + g * g
    return own_conjugate_derivative(y + k), math.nan


@kernel
def _tilt_cressie_read(k, y):
    """f*' = q^(1/(k-1)), f*'' = f*'^(2-k) with q = 1 + (k-1) y."""
    q = 1.0 + (k - 1.0) * y
    if q <= 0.0:
        return (0.0, 0.0) if k > 1.0 else (math.inf, math.inf)
    if k == 0.0:
        g = 1.0 / q
        return g, g * g
    if k == 0.5:
        r = 1.0 / q
        return r * r, r * r * r
    z = _log_tilt(k, y)
    return _exp(z), _exp((2.0 - k) * z)


@kernel
def _log_tilt(k, y):
    """Log f*' = log(q)/(k-1), which tends to y as k tends to 1."""
    return y if k == 1.0 else math.log1p((k - 1.0) * y) / (k - 1.0)


@kernel
def _exp(z):
    """exp(z), large but finite beyond the range, so that a product with zero stays zero."""
    return math.exp(min(z, _LARGEST_EXPONENT))


@kernel
def conjugate(kind, k, y):
    """f*(y)."""
    if kind == CRESSIE_READ:
        q = 1.0 + (k - 1.0) * y
        if q <= 0.0 and k > 1.0:
            return -1.0 / k
        if q <= 0.0:
            return -1.0 / k if k < 0.0 else math.inf
        z = _log_tilt(k, y)
        if k == 0.0:
            return z
        return math.expm1(k * z) / k if k * z < 709.0 else math.inf
    if kind == JENSEN_SHANNON:
        return -math.log1p(-math.expm1(y)) if y < _LOG2 else math.inf
    return own_conjugate(y + k) - k


@kernel
def generator(kind, k, t):
    """f(t); a series near t = 1, where the plain formula loses every digit."""
    if kind == CRESSIE_READ and k == 2.0:
        return 0.5 * (t - 1.0) ** 2
    if abs(t - 1.0) * (1.0 + abs(k)) < _SERIES_RADIUS:
        return _generator_near_one(kind, k, t - 1.0)
    if kind == JENSEN_SHANNON:
        if t == 0.0:
            return _LOG2
        return t * math.log(t) - (t + 1.0) * math.log(0.5 * (t + 1.0))
    if t == 0.0:
        return 1.0 / k if k > 0.0 else math.inf
    log_t = math.log(t)
    # Each form is exact in its limit: the first as k tends to 1, the second as k tends to 0.
    if abs(k - 1.0) < abs(k):
        return (t * _growth(k - 1.0, log_t) - (t - 1.0)) / k
    return (_growth(k, log_t) - (t - 1.0)) / (k - 1.0)


@kernel
def _growth(h, log_t):
    """(t^h - 1)/h, which tends to log t as h tends to 0."""
    if h == 0.0:
        return log_t
    return math.expm1(h * log_t) / h if h * log_t < 709.0 else math.inf


@kernel
def _generator_near_one(kind, k, d):
    """f(1+d) from the Taylor series of f''(t) = t^(k-2), or 1/(t (1+t)) for Jensen-Shannon."""
    total = 0.0
    power = 1.0
    binomial = 1.0
    half = 1.0
    for j in range(40):
        # 1/(t (1+t)) = 1/t - 1/(1+t), each a geometric series in d
        if kind == JENSEN_SHANNON:
            half *= 0.5
            coefficient = 1.0 - half
        else:
            coefficient = binomial
            binomial *= (k - 2.0 - j) / (j + 1.0)
        term = coefficient * power / ((j + 1.0) * (j + 2.0))
        total += term
        power = -power * d if kind == JENSEN_SHANNON else power * d
        if abs(power) * max(1.0, abs(binomial)) < 1e-18 * abs(total):
            break
    return total * d * d


@kernel
def slope(kind, k, edge, t):
    """f'(t) for t >= 1, the y at which f*'(y) = t; a user's own by bisection, which knows only f*'."""
    if kind == CRESSIE_READ:
        return _growth(k - 1.0, math.log(t))
    if kind == JENSEN_SHANNON:
        return math.log(2.0 * t / (t + 1.0))
    low, high = 0.0, 1.0
    if edge < math.inf:
        high = edge
    else:
        while own_conjugate_derivative(high + k) < t and high < _LARGEST_EXPONENT:
            high *= 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if own_conjugate_derivative(middle + k) < t:
            low = middle
        else:
            high = middle
    return low
