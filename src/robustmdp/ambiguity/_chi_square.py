"""Chi-square in normal form, f = (t-1)^2/2: the threshold tau solves a piecewise-linear equation, without a sort.

A row is p[a:a+n] with outcomes x[o:o+n]. Outcomes below tau are "active": they keep mass p (tau - x)/w.
"""

from __future__ import annotations

import math

import numpy as np

from robustmdp._jit import inlined, kernel
from robustmdp.ambiguity._moments import lowest_outcome, mean_and_variance

_PASSES = np.uint64(200)
_EPS = 2.3e-16


@inlined
def truncated_moments(p, a, x, o, n, tau):
    """(P(x < tau), E(tau-x)_+, E(tau-x)_+^2, distance from tau to the nearest outcome, number active)."""
    mass = 0.0
    first = 0.0
    second = 0.0
    near = math.inf
    active = 0
    for j in range(n):
        d = tau - x[o + j]
        distance = abs(d)
        near = distance if distance < near else near
        inside = d > 0.0
        q = p[a + j]  # loaded in any case: a load under a condition becomes a branch that is often mispredicted
        q = q if inside else 0.0
        active += inside
        qd = q * d
        mass += q
        first += qd
        second += qd * d
    return mass, first, second, near, active


@inlined
def penalized(p, a, x, o, n, w, tau):
    """sup over tau of tau - w/2 - E(tau-x)_+^2/(2w), and that tau; `tau` is where to start, NaN if unknown.

    Newton on E(tau-x)_+ = w. When no outcome lies between two iterates the second one is exact.
    """
    if not (abs(tau) < math.inf):
        tau = mean_and_variance(p, a, x, o, n)[0] + w
    square = 0.0
    for _ in range(n + _PASSES):  # from the right each pass drops an outcome or ends
        mass, first, second, near, active = truncated_moments(p, a, x, o, n, tau)
        if active == n and w - first >= -near * mass:
            mean, variance = mean_and_variance(p, a, x, o, n)
            return mean - variance / (2.0 * w), mean + w
        if mass <= 0.0:  # a start below every outcome
            tau = mean_and_variance(p, a, x, o, n)[0] + w
            continue
        step = (w - first) / mass
        square = second + step * (2.0 * first + step * mass)
        tau += step
        unchanged = abs(step) < near or abs(step) <= _EPS * abs(tau)
        if unchanged and 4.0 * square >= second:  # otherwise the update of the square cancels
            break
    return tau - 0.5 * w - square / (2.0 * w), tau


@kernel
def constrained(p, a, x, o, n, rho, tau):
    """(inf of E_P x over D <= rho, its tau, its weight); tau solves (1+2 rho) (E(tau-x)_+)^2 = E(tau-x)_+^2."""
    lowest = lowest_outcome(x, o, n)
    low, high = lowest, math.inf
    if not (lowest < tau < math.inf):
        mean, variance = mean_and_variance(p, a, x, o, n)
        tau = mean + math.sqrt(variance / (2.0 * rho))
    value, weight = lowest, 0.0
    for _ in range(_PASSES):
        mass, first, second, near, active = truncated_moments(p, a, x, o, n, tau)
        if active == 0:  # tau has come down to the minimum: the ball contains its vertex
            return lowest, lowest, 0.0
        if active == n:
            mass = 1.0
            mean, variance = mean_and_variance(p, a, x, o, n)
        else:
            mean = tau - first / mass
            variance = max(second / mass - (first / mass) ** 2, 0.0)
        if (1.0 + 2.0 * rho) * first * first < second:
            low = tau
        else:
            high = tau
        excess = 2.0 * rho if active == n else (1.0 + 2.0 * rho) * mass - 1.0
        proposal = mean + math.sqrt(variance / excess) if excess > 0.0 else math.inf
        if excess > 0.0:
            step = abs(proposal - tau)
            same = step <= near or (active == n and proposal > tau) or step <= _EPS * abs(tau)
            if same:
                value = mean - math.sqrt(variance * excess)
                weight = mass * (proposal - mean)
                return max(value, lowest), proposal, weight
        if not (low < proposal < high):
            proposal = 0.5 * (low + high) if high < math.inf else tau + 2.0 * (tau - lowest)
        if proposal == tau:
            break
        tau = proposal
    # The bracket is down to rounding: the dual value at tau is still a bound.
    _, first, second, _, _ = truncated_moments(p, a, x, o, n, tau)
    return max(tau - math.sqrt((1.0 + 2.0 * rho) * second), lowest), tau, first
