"""The row kernel: the worst-case value of many rows, by the algorithm that suits the divergence.

`spec` is (mode, kind, k, edge). Each row remembers one number from the last sweep (a threshold, a tilt, a value), from
which the next solve starts.
"""

from __future__ import annotations

import math

from robustmdp._jit import kernel
from robustmdp.ambiguity import _chi_square, _kl, _smooth, _total_variation
from robustmdp.ambiguity._exponential import expm1_all
from robustmdp.ambiguity._moments import lowest_outcome
from robustmdp.divergences.kernels import CRESSIE_READ, TOTAL_VARIATION

NOMINAL, PENALIZED, CONSTRAINED = 0, 1, 2

_chi_square_penalized = _chi_square.penalized
_chi_square_constrained = _chi_square.constrained
_kl_penalized = _kl.penalized
_kl_log_mean_exp = _kl.log_mean_exp
_kl_constrained = _kl.constrained
_tv_penalized = _total_variation.penalized
_tv_constrained = _total_variation.constrained
_smooth_penalized = _smooth.penalized
_smooth_constrained = _smooth.constrained


@kernel
def mean(p, a, x, o, n):
    """E x."""
    total = 0.0
    for j in range(n):
        total += p[a + j] * x[o + j]
    return total


@kernel
def is_nominal(mode, level):
    """No room for nature: an infinite weight or a zero radius."""
    return mode == NOMINAL or (mode == PENALIZED and level == math.inf) or (mode == CONSTRAINED and level == 0.0)


@kernel
def is_minimum(mode, level):
    """All room for nature: a zero weight or an infinite radius."""
    return (mode == PENALIZED and level == 0.0) or (mode == CONSTRAINED and level == math.inf)


@kernel
def row(spec, level, p, a, x, o, n, memory, out):
    """(value, what to remember) of the row p[a:a+n] with outcomes x[o:o+n]; out[o:o+n] is scratch."""
    mode, kind, k, edge = spec
    if n == 1:
        return x[o], memory
    if is_nominal(mode, level):
        return mean(p, a, x, o, n), memory
    if is_minimum(mode, level):
        return lowest_outcome(x, o, n), memory
    if kind == CRESSIE_READ and k == 2.0:
        if mode == PENALIZED:
            return _chi_square_penalized(p, a, x, o, n, level, memory)
        value, tau, _ = _chi_square_constrained(p, a, x, o, n, level, memory)
        return value, tau
    if kind == CRESSIE_READ and k == 1.0:
        if mode == PENALIZED:
            value = _kl_penalized(p, a, x, o, n, level)
            return value, value
        return _kl_constrained(p, a, x, o, n, level, memory, math.inf)
    if kind == TOTAL_VARIATION:
        if mode == PENALIZED:
            return _tv_penalized(p, a, x, o, n, level), memory
        return _tv_constrained(p, a, x, o, n, level, memory)
    if mode == PENALIZED:
        return _smooth_penalized(kind, k, edge, p, a, x, o, n, level)
    value, theta, _ = _smooth_constrained(kind, k, edge, p, a, x, o, n, level, memory, math.inf, out, o)
    return value, theta


@kernel
def shares_exponentials(spec):
    """Is the row a log-sum-exp, whose exponentials are cheaper for a whole block at once?"""
    mode, kind, k, _ = spec
    return mode == PENALIZED and kind == CRESSIE_READ and k == 1.0


@kernel
def prepare_exponentials(level, x, o, n, memory, out):
    """out = (remembered value - x)/weight, the arguments of one row."""
    scale = 1.0 / level if 0.0 < level < math.inf else 0.0
    for j in range(n):
        out[o + j] = (memory - x[o + j]) * scale


@kernel
def row_from_exponentials(spec, level, p, a, x, o, n, memory, out):
    """As `row`, once out[o:o+n] holds exp(...) - 1; falls back to `row` where the memory was useless."""
    if n > 1 and 0.0 < level < math.inf:
        value = _kl_log_mean_exp(p, a, out, o, n, memory, level)
        if value == value:
            return value, value
    return row(spec, level, p, a, x, o, n, memory, out)


exponentiate = expm1_all
