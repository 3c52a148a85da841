"""The row kernel: the worst-case values of a block of rows, by the algorithm that suits the divergence.

Row i of a block is p[starts[i]:starts[i]+n] with outcomes x[offsets[i]:offsets[i+1]]. Each row remembers one number
from the last sweep (a threshold, a tilt, a value), from which the next solve starts. Offsets are unsigned: Numba tests
every signed index for being negative.
"""

from __future__ import annotations

import math

import numpy as np

from robustmdp._jit import inlined, kernel
from robustmdp.ambiguity import _chi_square, _kl, _smooth, _total_variation
from robustmdp.ambiguity._exponential import exp_all, expm1_all
from robustmdp.ambiguity._kl import tilt_arguments
from robustmdp.ambiguity._moments import lowest_outcome, mean
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


@inlined
def is_nominal(mode, level):
    """No room for nature: an infinite weight or a zero radius."""
    return mode == NOMINAL or (mode == PENALIZED and level == math.inf) or (mode == CONSTRAINED and level == 0.0)


@inlined
def is_minimum(mode, level):
    """All room for nature: a zero weight or an infinite radius."""
    return (mode == PENALIZED and level == 0.0) or (mode == CONSTRAINED and level == math.inf)


@kernel
def remembers_outcomes(spec):
    """Is what a row remembers in the unit of its outcomes, so that it moves along with a shift of all of them?"""
    mode, kind, k, _ = spec
    return kind == TOTAL_VARIATION or (kind == CRESSIE_READ and (k == 2.0 or (k == 1.0 and mode == PENALIZED)))


@kernel
def is_closed(spec):
    """Are the values of `rows` exact up to rounding, so that primal and dual value are one number?"""
    return spec[0] == NOMINAL or remembers_outcomes(spec)


@inlined
def is_trivial(mode, level, n):
    """Is the answer plain: one successor, or a level at the end of its range?"""
    return n == 1 or level == 0.0 or level == math.inf or mode == NOMINAL


@inlined
def trivial(mode, level, p, a, x, o, n):
    """The value of a trivial row."""
    if n == 1:
        return x[o]
    return mean(p, a, x, o, n) if is_nominal(mode, level) else lowest_outcome(x, o, n)


@kernel
def chi_square_rows(mode, p, starts, x, offsets, count, levels, memory, values):
    """Values by thresholds."""
    for i in range(count):
        a, o, level = starts[i], offsets[i], levels[i]
        n = offsets[i + 1] - o
        if is_trivial(mode, level, n):
            values[i] = trivial(mode, level, p, a, x, o, n)
        elif mode == PENALIZED:
            values[i], memory[i] = _chi_square_penalized(p, a, x, o, n, level, memory[i])
        else:
            values[i], memory[i], _ = _chi_square_constrained(p, a, x, o, n, level, memory[i])


@kernel
def kl_penalized_rows(mode, p, starts, x, offsets, count, levels, memory, values, scratch):
    """Values by log-sum-exp, centred at the last value; all exponentials of the block at once."""
    for i in range(count):
        centre, o = memory[i], offsets[i]
        scale = 1.0 / levels[i] if 0.0 < levels[i] < math.inf else 0.0
        for j in range(offsets[i + 1] - o):
            scratch[o + j] = (centre - x[o + j]) * scale
    expm1_all(scratch, np.int64(offsets[count]))
    for i in range(count):
        a, o, level = starts[i], offsets[i], levels[i]
        n = offsets[i + 1] - o
        if is_trivial(mode, level, n):
            values[i] = trivial(mode, level, p, a, x, o, n)
            continue
        value = _kl_log_mean_exp(p, a, scratch, o, n, memory[i], level)
        if value != value:
            value = _kl_penalized(p, a, x, o, n, level)
        values[i] = value
        memory[i] = value


@kernel
def kl_constrained_rows(mode, p, starts, x, offsets, count, levels, memory, values, scratch):
    """Values by the tilt whose divergence is the radius; all exponentials of the block's first step at once."""
    for i in range(count):
        o = offsets[i]
        n = offsets[i + 1] - o
        start = memory[i] if memory[i] < math.inf else 0.0
        tilt_arguments(x, o, n, lowest_outcome(x, o, n), start, scratch)
    exp_all(scratch, np.int64(offsets[count]))
    for i in range(count):
        a, o, level = starts[i], offsets[i], levels[i]
        n = offsets[i + 1] - o
        if is_trivial(mode, level, n):
            values[i] = trivial(mode, level, p, a, x, o, n)
        else:
            values[i], memory[i] = _kl_constrained(p, a, x, o, n, level, memory[i], math.inf, True, scratch)


@kernel
def total_variation_rows(mode, p, starts, x, offsets, count, levels, memory, values):
    """Values by ceilings."""
    for i in range(count):
        a, o, level = starts[i], offsets[i], levels[i]
        n = offsets[i + 1] - o
        if is_trivial(mode, level, n):
            values[i] = trivial(mode, level, p, a, x, o, n)
        elif mode == PENALIZED:
            values[i] = _tv_penalized(p, a, x, o, n, level)
        else:
            values[i], memory[i] = _tv_constrained(p, a, x, o, n, level, memory[i])


@kernel
def smooth_rows(spec, p, starts, x, offsets, count, levels, memory, values, scratch):
    """Values by safeguarded Newton steps."""
    mode, kind, k, edge = spec
    for i in range(count):
        a, o, level = starts[i], offsets[i], levels[i]
        n = offsets[i + 1] - o
        if is_trivial(mode, level, n):
            values[i] = trivial(mode, level, p, a, x, o, n)
        elif mode == PENALIZED:
            values[i], memory[i] = _smooth_penalized(kind, k, edge, p, a, x, o, n, level)
        else:
            values[i], memory[i], _, _ = _smooth_constrained(
                kind, k, edge, p, a, x, o, n, level, memory[i], math.inf, scratch, o
            )


@kernel
def rows(spec, p, starts, x, offsets, count, levels, memory, values, scratch):
    """The worst-case values of a block; `spec` is (mode, kind, k, edge), `scratch` is longer than x by a lane."""
    mode, kind, k, _ = spec
    if kind == CRESSIE_READ and k == 2.0:
        chi_square_rows(mode, p, starts, x, offsets, count, levels, memory, values)
    elif kind == CRESSIE_READ and k == 1.0 and mode == PENALIZED:
        kl_penalized_rows(mode, p, starts, x, offsets, count, levels, memory, values, scratch)
    elif kind == CRESSIE_READ and k == 1.0:
        kl_constrained_rows(mode, p, starts, x, offsets, count, levels, memory, values, scratch)
    elif kind == TOTAL_VARIATION:
        total_variation_rows(mode, p, starts, x, offsets, count, levels, memory, values)
    else:
        smooth_rows(spec, p, starts, x, offsets, count, levels, memory, values, scratch)
