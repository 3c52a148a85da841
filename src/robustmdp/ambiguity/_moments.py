"""Plain moments of one row: p[a:a+n] with outcomes x[o:o+n]."""

from __future__ import annotations

from robustmdp._jit import inlined


@inlined
def lowest_and_mass(p, a, x, o, n):
    """Min x and the mass of all its minimisers."""
    lowest = x[o]
    mass = 0.0
    for j in range(n):
        y = x[o + j]
        if y < lowest:
            lowest = y
            mass = p[a + j]
        elif y == lowest:
            mass += p[a + j]
    return lowest, mass


@inlined
def mean(p, a, x, o, n):
    """E x."""
    total = 0.0
    for j in range(n):
        total += p[a + j] * x[o + j]
    return total


@inlined
def lowest_outcome(x, o, n):
    """Min x."""
    lowest = x[o]
    for j in range(n):
        y = x[o + j]
        lowest = y if y < lowest else lowest
    return lowest


@inlined
def spread(x, o, n, lowest):
    """Max x - min x."""
    largest = 0.0
    for j in range(n):
        largest = max(largest, x[o + j] - lowest)
    return largest


@inlined
def mean_and_variance(p, a, x, o, n):
    """E x and Var x, centred at the first outcome so that a common offset costs no digits."""
    centre = x[o]
    first = 0.0
    second = 0.0
    for j in range(n):
        d = x[o + j] - centre
        q = p[a + j] * d
        first += q
        second += q * d
    return centre + first, max(second - first * first, 0.0)
