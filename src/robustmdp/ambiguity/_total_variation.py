"""Total variation, f = |t-1|/2: nature lowers the ceiling of the outcomes, min(x, ceiling)."""

from __future__ import annotations

import math

from robustmdp._jit import inlined, kernel
from robustmdp.ambiguity._moments import lowest_and_mass, lowest_outcome


@inlined
def penalized(p, a, x, o, n, w):
    """E min(x, min x + w)."""
    return capped_mean(p, a, x, o, n, lowest_outcome(x, o, n) + w)


@inlined
def capped_mean(p, a, x, o, n, ceiling):
    """E min(x, ceiling)."""
    total = 0.0
    for j in range(n):
        y = x[o + j]
        total += p[a + j] * (y if y < ceiling else ceiling)
    return total


@inlined
def mass_above(p, a, x, o, n, ceiling):
    """P(x > ceiling) and P(x = ceiling)."""
    above = 0.0
    equal = 0.0
    for j in range(n):
        y = x[o + j]
        q = p[a + j]
        above += q if y > ceiling else 0.0
        equal += q if y == ceiling else 0.0
    return above, equal


@kernel
def pivot(p, a, x, o, n, low, high):
    """The largest outcome in (low, high) that does not exceed their mean; `low` if there is none."""
    total = 0.0
    count = 0
    for j in range(n):
        y = x[o + j]
        if low < y < high:
            total += y
            count += 1
    if count == 0:
        return low
    mean = total / count
    best = low
    smallest = high
    for j in range(n):
        y = x[o + j]
        if low < y < high:
            smallest = min(smallest, y)
            if best < y <= mean:
                best = y
    return best if best > low else smallest  # rounding can put the mean below every outcome


@kernel
def constrained(p, a, x, o, n, rho, ceiling):
    """(inf of E_P x over D <= rho, the ceiling): move rho of mass from the top to the bottom.

    The ceiling is the outcome c with P(x > c) <= rho <= P(x >= c), found by bisection over outcomes.
    """
    lowest, mass = lowest_and_mass(p, a, x, o, n)
    if rho >= 1.0 - mass:
        return lowest, lowest
    low, high = -math.inf, math.inf
    if not (lowest <= ceiling < math.inf):
        ceiling = pivot(p, a, x, o, n, low, high)
    for _ in range(n + n):
        above, equal = mass_above(p, a, x, o, n, ceiling)
        if above > rho:
            low = ceiling
        elif above + equal < rho:
            high = ceiling
        else:
            break
        following = pivot(p, a, x, o, n, low, high)
        if following == low:  # rho fell between two outcomes' masses by rounding
            break
        ceiling = following
    return capped_mean(p, a, x, o, n, ceiling) - (ceiling - lowest) * rho, ceiling
