"""Chi-square in normal form, f = (t-1)^2/2: the threshold tau solves a piecewise-linear equation, without a sort.

A row is p[a:a+n] with outcomes x[o:o+n]. Outcomes below tau are "active": they keep mass p (tau - x)/w. Thresholds are
remembered as they are and worked with from the row's minimum up, where no digits are lost.
"""

from __future__ import annotations

import math

import numpy as np

from robustmdp._jit import inlined, kernel
from robustmdp.ambiguity._moments import lowest_outcome, mean_and_variance, spread

_PASSES = np.uint64(200)
_EPS = 2.3e-16


@inlined
def truncated_moments(p, a, x, o, n, base, tau):
    """(P(d < tau), E(tau-d)_+, E(tau-d)_+^2, distance from tau to the nearest d, are all active) for d = x - base."""
    mass = 0.0
    first = 0.0
    second = 0.0
    near = math.inf
    least = math.inf
    for j in range(n):
        d = tau - (x[o + j] - base)
        least = d if d < least else least
        distance = abs(d)
        near = distance if distance < near else near
        q = p[a + j]  # loaded in any case: a load under a condition becomes a branch that is often mispredicted
        q = q if d > 0.0 else 0.0
        qd = q * d
        mass += q
        first += qd
        second += qd * d
    return mass, first, second, near, least > 0.0


@inlined
def penalized(p, a, x, o, n, w, tau):
    """Sup over tau of tau - w/2 - E(tau-x)_+^2/(2w), and that tau; `tau` is where to start, NaN if unknown.

    A Newton step on E(tau-x)_+ = w is exact if it passes no outcome. A good start needs just this one pass.
    """
    mass, first, second, near, all_active = truncated_moments(p, a, x, o, n, 0.0, tau)
    if mass > 0.0 and not all_active:
        step = (w - first) / mass
        square = second + step * (2.0 * first + step * mass)
        if abs(step) < near and 4.0 * square >= second:  # otherwise the update of the square cancels
            tau += step
            return tau - 0.5 * w - square / (2.0 * w), tau
    return penalized_from_the_right(p, a, x, o, n, w)


@kernel
def penalized_from_the_right(p, a, x, o, n, w):
    """The same without a start: Newton from the right drops outcomes until none is left to drop."""
    mean, variance = mean_and_variance(p, a, x, o, n)
    base = lowest_outcome(x, o, n)
    if mean - base + w >= spread(x, o, n, base):
        return mean - variance / (2.0 * w), mean + w
    tau = mean - base + w
    square = 0.0
    for _ in range(n + _PASSES):
        mass, first, second, near, _ = truncated_moments(p, a, x, o, n, base, tau)
        step = (w - first) / mass
        square = second + step * (2.0 * first + step * mass)
        tau = max(tau + step, w)  # the root is never below the weight
        if (abs(step) < near and 4.0 * square >= second) or abs(step) <= _EPS * tau:
            break
    return base + (tau - 0.5 * w - square / (2.0 * w)), base + tau


@kernel
def constrained(p, a, x, o, n, rho, tau):
    """(inf of E_P x over D <= rho, its tau, its weight); tau solves (1+2 rho) (E(tau-x)_+)^2 = E(tau-x)_+^2.

    Solved exactly for the active outcomes, inside a bracket, until they stay the same.
    """
    base = lowest_outcome(x, o, n)
    largest = spread(x, o, n, base)
    if largest == 0.0:
        return base, base, 0.0
    low, high = 0.0, math.inf
    tau -= base
    if not (1e-9 * largest < tau < 4.0 * largest):
        mean, variance = mean_and_variance(p, a, x, o, n)
        tau = mean - base + math.sqrt(variance / (2.0 * rho))
        if tau >= largest:
            return max(mean - math.sqrt(variance * 2.0 * rho), base), base + tau, math.sqrt(variance / (2.0 * rho))
    for _ in range(_PASSES):
        mass, first, second, near, all_active = truncated_moments(p, a, x, o, n, base, tau)
        if all_active:
            mass = 1.0
            mean, variance = mean_and_variance(p, a, x, o, n)
            mean -= base
        else:
            mean = tau - first / mass
            variance = max(second / mass - (first / mass) ** 2, 0.0)
        if (1.0 + 2.0 * rho) * first * first < second:
            low = tau
        else:
            high = tau
        excess = 2.0 * rho if all_active else (1.0 + 2.0 * rho) * mass - 1.0
        proposal = math.inf
        if excess > 0.0:
            proposal = mean + math.sqrt(variance / excess)
            step = abs(proposal - tau)
            # From a tau far above the mean the variance is what cancellation left of it: go there and look again.
            same = proposal >= largest if all_active else step <= min(near, 0.5 * (proposal - mean))
            if same or step <= _EPS * tau:
                value = mean - math.sqrt(variance * excess)
                return base + max(value, 0.0), base + proposal, mass * (proposal - mean)
        if not (low < proposal < high):
            proposal = 0.5 * (low + high) if high < math.inf else 2.0 * tau
        if proposal == tau or proposal <= 1e-300:
            break
        tau = proposal
    # The bracket is down to rounding: the ball contains the minimum's vertex, or the dual value at tau is exact.
    if tau <= 1e-15 * largest:
        return base, base, 0.0
    _, first, second, _, _ = truncated_moments(p, a, x, o, n, base, tau)
    return base + max(tau - math.sqrt((1.0 + 2.0 * rho) * second), 0.0), base + tau, first
