"""Sweeps over many pairs. A kernel owns the rows lo..hi of its outputs, so any split over threads gives equal bits.

`world` is (indptr, indices, probabilities, rewards, on_successors); `outcome` is discount * v with the end's 0 last.
A list of `pairs` may be given; an empty one means all pairs in order. Offsets and indices are unsigned (see _rows).
"""

from __future__ import annotations

import math

import numpy as np

from robustmdp._jit import inlined, kernel
from robustmdp.ambiguity._response import respond_row
from robustmdp.ambiguity._rows import NOMINAL, PENALIZED, is_closed, rows
from robustmdp.divergences.kernels import OWN

BLOCK = np.uint64(512)  # outcomes gathered at a time: small enough for the nearest cache

_START, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)
_EPS = 2.220446049250313e-16


@inlined
def gather(indices, rewards, on_successors, outcome, a, n, x, o):
    """x[o:o+n] = the outcomes of the row that starts at a."""
    for j in range(n):
        x[o + j] = outcome[indices[a + j]]
    if on_successors:
        for j in range(n):
            x[o + j] += rewards[a + j]


@kernel
def nominal_pairs(world, outcome, pairs, lo, hi, q):
    """q = r + E outcome, without a detour through scratch."""
    indptr, indices, probabilities, rewards, on_successors = world
    for i in range(lo, hi):
        pair = pairs[i] if len(pairs) else i
        even = 0.0
        odd = 0.0
        j = indptr[pair]
        end = indptr[pair + 1]
        if on_successors:
            for m in range(j, end):
                even += probabilities[m] * (rewards[m] + outcome[indices[m]])
            q[i] = even
        else:
            while j + _ONE < end:
                even += probabilities[j] * outcome[indices[j]]
                odd += probabilities[j + _ONE] * outcome[indices[j + _ONE]]
                j += _TWO
            if j < end:
                even += probabilities[j] * outcome[indices[j]]
            q[i] = rewards[pair] + (even + odd)


@kernel
def robust_pairs(world, spec, levels, outcome, pairs, lo, hi, memory, q, scratch):
    """q = r + worst case, block by block; each pair's memory is read and renewed."""
    if spec[0] == NOMINAL:
        nominal_pairs(world, outcome, pairs, lo, hi, q)
        return
    indptr, indices, probabilities, rewards, on_successors = world
    x, spare, _, starts, offsets, level, remembered, value = scratch
    first = lo
    while first < hi:
        filled = np.uint64(0)
        count = 0
        while first + count < hi:
            pair = pairs[first + count] if len(pairs) else first + count
            a = indptr[pair]
            n = indptr[pair + 1] - a
            if count > 0 and filled + n > BLOCK:
                break
            gather(indices, rewards, on_successors, outcome, a, n, x, filled)
            starts[count] = a
            offsets[count] = filled
            level[count] = levels[pair] if len(levels) > 1 else levels[0]
            remembered[count] = memory[pair]
            filled += n
            count += 1
        offsets[count] = filled
        rows(spec, probabilities, starts, x, offsets, count, level, remembered, value, spare)
        for i in range(count):
            pair = pairs[first + i] if len(pairs) else first + i
            memory[pair] = remembered[i]
            q[first + i] = value[i] if on_successors else rewards[pair] + value[i]
        first += count


@kernel
def best_actions(state_ptr, q, lo, hi, value, best):
    """value = max over the pairs of a state, best = the first pair that attains it."""
    for s in range(lo, hi):
        top = -math.inf
        where = state_ptr[s]
        for pair in range(state_ptr[s], state_ptr[s + 1]):
            if q[pair] > top:
                top = q[pair]
                where = pair
        value[s] = top
        best[s] = where


@kernel
def sweep(world, state_ptr, spec, levels, outcome, no_pairs, lo, hi, memory, q, value, best, scratch):
    """One Bellman sweep over the states lo..hi."""
    robust_pairs(world, spec, levels, outcome, no_pairs, state_ptr[lo], state_ptr[hi], memory, q, scratch)
    best_actions(state_ptr, q, lo, hi, value, best)


@inlined
def rounding(spec, level, n, scale):
    """A bound on the rounding error of a row's value: a few ulp of the largest outcome per successor."""
    error = (2.0 * n + 64.0) * _EPS * scale
    if spec[1] == OWN and spec[0] == PENALIZED and level < math.inf:
        error += 32.0 * _EPS * level * (1.0 + abs(spec[2]))  # a user's f* near f'(1) is exact to an ulp of 1, not of f*
    return error


@kernel
def bracket_pairs(world, spec, levels, outcome, no_pairs, scale, lo, hi, memory, lower, upper, scratch):
    """Lower <= r + worst case <= upper from dual and primal values, both widened by rounding."""
    indptr, indices, probabilities, rewards, on_successors = world
    x, spare, out = scratch[0], scratch[1], scratch[2]
    closed = is_closed(spec)
    if closed:
        robust_pairs(world, spec, levels, outcome, no_pairs, lo, hi, memory, lower, scratch)
    for pair in range(lo, hi):
        level = levels[pair] if len(levels) > 1 else levels[0]
        slack = rounding(spec, level, indptr[pair + 1] - indptr[pair], scale)
        if closed:
            upper[pair] = lower[pair] + slack
            lower[pair] -= slack
            continue
        a = indptr[pair]
        n = indptr[pair + 1] - a
        gather(indices, rewards, on_successors, outcome, a, n, x, _START)
        reward = 0.0 if on_successors else rewards[pair]
        dual, primal, _, _, _ = respond_row(spec, level, probabilities, a, x, _START, n, spare, out, _START)
        lower[pair] = reward + dual - slack
        upper[pair] = reward + max(primal, dual) + slack


@kernel
def respond_pairs(world, spec, levels, outcome, pairs, starts, lo, hi, data, penalty, eta, x, spare):
    """Nature's answer: data[starts[i]:] = the row of pair i, its penalty and multiplier."""
    indptr, indices, probabilities, rewards, on_successors = world
    for i in range(lo, hi):
        pair = pairs[i] if len(pairs) else i
        a = indptr[pair]
        n = indptr[pair + 1] - a
        gather(indices, rewards, on_successors, outcome, a, n, x, _START)
        level = levels[pair] if len(levels) > 1 else levels[0]
        _, _, multiplier, _, cost = respond_row(
            spec, level, probabilities, indptr[pair], x, _START, n, spare, data, starts[i]
        )
        penalty[i] = level * cost if spec[0] == PENALIZED and 0.0 < level < math.inf else 0.0
        eta[i] = multiplier


@kernel
def policy_rows(world, pairs, weights, starts, lo, hi, indices_out, data, penalty, cost):
    """Turn the rows of `pairs` into rows of a policy's chain: indices, data scaled by the policy, cost per pair."""
    indptr, indices, _, rewards, on_successors = world
    for i in range(lo, hi):
        pair = pairs[i]
        a = indptr[pair]
        total = penalty[i] if on_successors else rewards[pair] + penalty[i]
        for j in range(indptr[pair + 1] - a):
            if on_successors:
                total += data[starts[i] + j] * rewards[a + j]
            data[starts[i] + j] *= weights[i]
            indices_out[starts[i] + j] = indices[a + j]
        cost[i] = weights[i] * total


@kernel
def chain_product(indptr, indices, data, v, lo, hi, out):
    """out = P v for a chain whose last column is the end."""
    for s in range(lo, hi):
        total = 0.0
        for j in range(indptr[s], indptr[s + 1]):
            total += data[j] * v[indices[j]]
        out[s] = total


@kernel
def dot(a, b):
    """A sequential dot product: the same bits whatever BLAS is doing."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@kernel
def chain_sweeps(indptr, indices, data, cost, discount, can_end, v, w, target, limit):
    """V <- cost + discount P v until the span of the change is at most `target`; ends span-corrected in v.

    Returns (sweeps, first span, last span). `v` has the end's 0 last, `w` is scratch of its length.
    """
    n = len(cost)
    first = math.inf
    span = math.inf
    sweeps = 0
    low = 0.0
    high = 0.0
    while sweeps < limit and span > target:
        low = 0.0 if can_end else math.inf
        high = 0.0 if can_end else -math.inf
        for s in range(n):
            total = 0.0
            for j in range(indptr[s], indptr[s + 1]):
                total += data[j] * v[indices[j]]
            w[s] = cost[s] + discount * total
            d = w[s] - v[s]
            low = d if d < low else low
            high = d if d > high else high
        for s in range(n):
            v[s] = w[s]
        span = high - low
        if sweeps == 0:
            first = span
        sweeps += 1
    shift = 0.0 if can_end else 0.5 * (low + high) * discount / (1.0 - discount)
    for s in range(n):
        v[s] += shift
    return sweeps, first, span


@kernel
def gauss_seidel(world, state_ptr, discount, v, backwards):
    """One nominal sweep in place, which carries news across the whole world in its order; v has the end's 0 last."""
    indptr, indices, probabilities, rewards, on_successors = world
    n = len(state_ptr) - 1
    for i in range(n):
        s = n - 1 - i if backwards else i
        best = -math.inf
        for pair in range(state_ptr[s], state_ptr[s + 1]):
            total = 0.0 if on_successors else rewards[pair]
            back = 0.0
            for j in range(indptr[pair], indptr[pair + 1]):
                if on_successors:
                    total += probabilities[j] * rewards[j]
                if indices[j] == s:
                    back += probabilities[j]
                else:
                    total += discount * probabilities[j] * v[indices[j]]
            best = max(best, total / (1.0 - discount * back))
        v[s] = best
