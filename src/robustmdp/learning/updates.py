"""What one transition teaches: Algorithm 2 as printed, Algorithm 1's inner loop as printed, and our default update.

Everything is discounted: outcomes are x = discount V(s') (plus r where the reward belongs to the outcome), the dual
variable is discount * eta, the weight discount * weight, and f is in normal form. Tables of several replications lie
one after the other, so that their updates, which do not wait for each other, overlap.
"""

from __future__ import annotations

import math

import numpy as np

from robustmdp.learning._jit import inlined, kernel
from robustmdp.learning._kernels import (
    CONSTRAINED,
    CRESSIE_READ,
    NOMINAL,
    OWN,
    TOTAL_VARIATION,
    conjugate,
    generator,
    slope,
    tilt,
)
from robustmdp.learning.sampling import consult_all, wander_all, wander_simulated

GREEDY = 7  # its place among the tables of `follow`

_LEAN = 0.25  # how far the point of linearisation leans from the average to the iterate
_STEADY = 0.25  # what same-sample steps lose to the noise of eta, in units of step * gradient
_LATE = 0.3  # weights of the average grow like the number of visits to this power: what came early is worse
_MOST = np.uint32(0xFFFFFFFF)  # visits are counted so far, then no further
_FEW = np.uint64(4)  # actions that are compared one by one
_BEYOND = 1.5  # how far a ratio may exceed 1/frequency of the lowest successor, which it cannot at the optimum
_FLATTEST = 0.05  # the least curvature that a Newton step divides by
_NO_CHOICE = 1e12  # a weight, relative to the spread of values, at which nature stays with the model
_SMALLEST_WEIGHT = 1e-6  # of the spread of values: where the learned weight of a ball is held


@inlined
def step_size(numbers, n):
    """min(cap, scale * (offset + slope n)^-power); the usual powers by square roots."""
    scale, offset, growth, power, cap, _ = numbers
    base = offset + growth * n
    if power == 0.75:
        root = math.sqrt(base)
        size = scale / (root * math.sqrt(root))
    elif power == 1.0:
        size = scale / base
    elif power == 0.5:
        size = scale / math.sqrt(base)
    else:
        size = scale * base**-power
    return min(size, cap)


@inlined
def scheduled(numbers, table, n):
    """The step size at n, read where it was tabulated."""
    return table[n] if n < np.uint64(len(table)) else step_size(numbers, float(n))


@inlined
def outcome(kind, k, edge, weight, inverse, eta, x):
    """(J, f*', f*'') of one outcome: J = eta - weight f*((eta - x)/weight); `inverse` is 1/weight."""
    y = (eta - x) * inverse
    if kind == CRESSIE_READ and k == 2.0:
        ratio = 1.0 + y
        if ratio > 0.0:
            return x - 0.5 * y * (eta - x), ratio, 1.0
        return eta + 0.5 * weight, 0.0, 0.0
    if kind == CRESSIE_READ and k == 1.0:
        excess = math.expm1(min(y, 700.0))
        return eta - weight * excess, 1.0 + excess, 1.0 + excess
    if y >= edge:
        return -math.inf, math.inf, math.inf
    ratio, curvature = tilt(kind, k, y)
    return eta - weight * conjugate(kind, k, y), ratio, curvature


@inlined
def divergence_at(kind, k, y, ratio):
    """f(t) at t = f*'(y), which is `ratio`; t y - f*(y) for a user's own, whose f is known by f* alone."""
    return y * ratio - conjugate(kind, k, y) if kind == OWN else generator(kind, k, ratio)


@inlined
def clip(value, low, high):
    """`value`, moved into [low, high]."""
    return min(max(value, low), high)


@kernel
def follow_as_printed(spec, limits, steps, first, levels, tables, diverged, states, pairs, rewards, following):
    """Algorithm 2 over a block of transitions, (length, replications), from iteration `first` on.

    With `literal`, neither V is projected nor beta capped. A replication that overflows stops: `diverged` holds the
    iteration. Tables: q, eta, visits, (R * pairs,); greedy, (R * states,), the pair of the largest q.
    """
    mode, kind, k, edge, discount, inside, literal, by_visits = spec
    low, high, floor, ceiling = limits
    q_steps, eta_steps = steps
    q, eta, visits, greedy, lowest, lowest_reward, state_ptr = tables
    length, replications = pairs.shape
    n_states = np.uint64(len(state_ptr) - 1)
    n_pairs = np.uint64(len(q) // replications)
    guarded = len(lowest) > 0
    shared_level = len(levels) == 1
    weight = levels[0]
    inverse = 1.0 / weight if weight > 0.0 else 0.0
    per_weight = eta_steps[5]
    for position in range(length):
        iteration = float(first + position)
        beta = step_size(q_steps, iteration)
        alpha = step_size(eta_steps, iteration)
        for replication in range(replications):
            if diverged[replication] >= 0:
                continue
            rows = np.uint64(replication) * n_pairs
            columns = np.uint64(replication) * n_states
            pair = np.uint64(pairs[position, replication])
            cell = rows + pair
            successor = np.uint64(following[position, replication])
            reward = rewards[position, replication]
            count = visits[cell]
            visits[cell] = count + np.uint32(count < _MOST)
            if by_visits:
                beta = step_size(q_steps, float(count))
                alpha = step_size(eta_steps, float(count))
            v = 0.0
            if successor < n_states:
                v = q[rows + np.uint64(greedy[columns + successor])]
                if not literal:
                    v = clip(v, low, high)
            paid = reward if inside else 0.0
            x = paid + discount * v
            value = x
            if mode != NOMINAL:
                if not shared_level:
                    weight = levels[pair]
                    inverse = 1.0 / weight if weight > 0.0 else 0.0
                dual = eta[cell]
                least = -math.inf
                if guarded:
                    known = lowest[cell]
                    if known >= 0:
                        v_low = 0.0
                        if np.uint64(known) < n_states:
                            v_low = clip(q[rows + np.uint64(greedy[columns + np.uint64(known)])], low, high)
                        least = discount * v_low + (lowest_reward[cell] if inside else 0.0)
                    if known < 0 or x < least:
                        least = x
                        lowest[cell] = successor
                        if inside:
                            lowest_reward[cell] = reward
                if kind == TOTAL_VARIATION or weight == 0.0:
                    value = min(x, least + weight)
                else:
                    if guarded:
                        dual = min(dual, least + weight * slope(kind, k, edge, float(count) + 2.0))
                    value, ratio, _ = outcome(kind, k, edge, weight, inverse, dual, x)
                    size = discount * alpha if per_weight == 0.0 else alpha * weight * per_weight
                    eta[cell] = clip(dual + size * (1.0 - ratio), floor, ceiling)
            updated = (1.0 - beta) * q[cell] + beta * (reward - paid + value)
            q[cell] = updated
            if not math.isfinite(updated):
                diverged[replication] = first + position + 1
                continue
            renew_greedy(greedy, q, state_ptr, columns, rows, np.uint64(states[position, replication]), pair)


@inlined
def renew_greedy(greedy, values, state_ptr, columns, rows, state, pair):
    """Keep greedy[state] at the pair of the largest value after that of `pair` changed; ties go to the first pair."""
    place = columns + state
    candidate = np.uint64(state_ptr[state])
    last = np.uint64(state_ptr[state + np.uint64(1)])
    best = np.uint64(greedy[place])
    if last - candidate > _FEW and best != pair:
        here, there = values[rows + pair], values[rows + best]
        if here > there or (here == there and pair < best):
            greedy[place] = pair
        return
    # Few actions are compared one by one, without a branch that depends on chance.
    best = candidate
    top = values[rows + candidate]
    candidate += np.uint64(1)
    while candidate < last:
        value = values[rows + candidate]
        larger = value > top
        best = candidate if larger else best
        top = value if larger else top
        candidate += np.uint64(1)
    greedy[place] = best


@kernel
def refine_as_printed(
    spec, limits, beta, alphas, per_weight, fresh, draws, levels, v, tables, pair, rewards, following
):
    """Algorithm 1 at one pair: T' gradient steps on eta, one sample each, then a step on Q with one sample more.

    `rewards` and `following` are (T' + 1, replications), `v` (replications, states + 1) is the frozen V_t, whose last
    entry is the end's; `fresh` starts eta at 0 as printed; `draws` counts the pair's samples before these.
    """
    mode, kind, k, edge, discount, inside = spec
    floor, ceiling = limits
    q, eta, lowest, lowest_reward = tables
    replications = len(v)
    inner_steps = len(alphas)
    n_pairs = np.uint64(len(q) // replications)
    guarded = len(lowest) > 0
    weight = levels[0 if len(levels) == 1 else pair]
    inverse = 1.0 / weight if weight > 0.0 else 0.0
    learns = mode != NOMINAL and kind != TOTAL_VARIATION and weight > 0.0
    if fresh and learns:
        for replication in range(replications):
            eta[np.uint64(replication) * n_pairs + np.uint64(pair)] = clip(0.0, floor, ceiling)
    for inner in range(inner_steps + 1):
        final = inner == inner_steps
        if not final and not (learns or guarded):
            continue
        size = 0.0
        if not final:
            size = discount * alphas[inner] if per_weight == 0.0 else alphas[inner] * weight * per_weight
        for replication in range(replications):
            cell = np.uint64(replication) * n_pairs + np.uint64(pair)
            successor = np.uint64(following[inner, replication])
            reward = rewards[inner, replication]
            paid = reward if inside else 0.0
            x = paid + discount * v[np.uint64(replication), successor]
            least = -math.inf
            if guarded:
                known = lowest[cell]
                if known >= 0:
                    least = discount * v[replication, known] + (lowest_reward[cell] if inside else 0.0)
                if known < 0 or x < least:
                    least = x
                    lowest[cell] = successor
                    if inside:
                        lowest_reward[cell] = reward
            value = x
            if mode != NOMINAL:
                if not learns:
                    value = min(x, least + weight)
                else:
                    dual = eta[cell]
                    if guarded:
                        dual = min(dual, least + weight * slope(kind, k, edge, float(draws + inner) + 2.0))
                    value, ratio, _ = outcome(kind, k, edge, weight, inverse, dual, x)
                    eta[cell] = dual if final else clip(dual + size * (1.0 - ratio), floor, ceiling)
            if final:
                q[cell] = (1.0 - beta) * q[cell] + beta * (reward - paid + value)


@kernel
def follow(spec, steps, first, start, levels, tables, extent, diverged, states, pairs, rewards, following):
    """Our update over a block of transitions, (length, replications), from iteration `first` on.

    The greedy action and nature's tilt t = f*' are chosen at the averages of Q, where they are steady; values flow
    through the current Q, where they are fresh:  target = J(eta; x') + t (x - x'), x' near the average outcome.
    That removes the two biases of noisy iterates, from the maximum and from the concave J, without any lag. Where t > 1
    and Q has left its average by more than the weight, the slope is no longer trusted: t is a density only on average,
    and discount * E t > 1 would amplify.
    eta is kept as its distance from the average Q, so that it moves along when all values shift, and takes Newton
    steps scaled by a running mean of f*''. No likelihood ratio may exceed the root of the number of visits nor, where f
    has a finite slope at infinity and f*' therefore a pole, what the frequency of the lowest successor allows.
    """
    mode, kind, k, edge, discount, inside, can_end, growing, by_visits, anchor = spec
    q_steps, eta_steps, q_table, eta_table = steps
    q, offset, average, visits, curvature, weights, excesses, greedy, lowest, lowest_reward, rarity, state_ptr = tables
    length, replications = pairs.shape
    n_states = np.uint64(len(state_ptr) - 1)
    n_pairs = np.uint64(len(q) // replications)
    shared_level = len(levels) == 1
    steep = len(rarity) > 0
    paid_apart = 0.0 if inside else anchor
    level = levels[0]
    weight = level
    inverse = 1.0 / weight if weight > 0.0 else 0.0
    per_weight = eta_steps[5]
    low, high, least_reward, most_reward = value_range(extent, 0, discount, can_end)
    shift_low, shift_high = (least_reward, most_reward) if inside else (0.0, 0.0)
    # Up to this distance above the lowest outcome, in weights, a ratio stays below 2, which four visits allow.
    near = math.inf
    if mode != NOMINAL and kind != TOTAL_VARIATION:
        near = slope(kind, k, edge, 2.0)
    for position in range(length):
        iteration = float(first + position)
        averaging = iteration >= start
        share = (1.0 + _LATE) * (iteration + 1.0) / (iteration + 1.0 - start) if averaging else math.inf
        for replication in range(replications):
            if diverged[replication] >= 0:
                continue
            rows = np.uint64(replication) * n_pairs
            columns = np.uint64(replication) * n_states
            pair = np.uint64(pairs[position, replication])
            cell = rows + pair
            successor = np.uint64(following[position, replication])
            reward = rewards[position, replication]
            if growing:
                extent[replication, 0] = min(extent[replication, 0], reward)
                extent[replication, 1] = max(extent[replication, 1], reward)
                low, high, least_reward, most_reward = value_range(extent, replication, discount, can_end)
                if inside:
                    shift_low, shift_high = least_reward, most_reward
            before = visits[cell]
            visits[cell] = before + np.uint32(before < _MOST)
            count = float(before) + 1.0
            clock = np.uint64(before) if by_visits else np.uint64(first + position)
            beta = scheduled(q_steps, q_table, clock)
            v = 0.0
            v_average = 0.0
            if successor < n_states:
                there = rows + np.uint64(greedy[columns + successor])
                v = clip(q[there], low, high)
                v_average = clip(average[there], low, high)
            paid = reward if inside else 0.0
            earned = reward - paid
            x = paid + discount * v
            value = x
            old_average = average[cell]
            if mode != NOMINAL:
                alpha = scheduled(eta_steps, eta_table, clock)
                x_average = paid + discount * v_average
                at = x_average + _LEAN * (x - x_average)
                # At the first visit what the average will be; without a typical reward where it is not in the outcome.
                base = (earned + x if before == 0 else old_average) - paid_apart
                if not shared_level:
                    level = levels[pair]
                    weight = level
                    inverse = 1.0 / weight if weight > 0.0 else 0.0
                if mode == CONSTRAINED:
                    spread = discount * (high - low) + shift_high - shift_low
                    if before == 0 or (weights[cell] == 0.0 and kind != TOTAL_VARIATION):
                        weights[cell] = first_weight(level, spread)
                    weight = weights[cell]
                    inverse = 1.0 / weight if weight > 0.0 else 0.0
                least = x_average
                fresh_least = x
                known = lowest[cell]
                if known >= 0:
                    v_low, v_low_average = 0.0, 0.0
                    if np.uint64(known) < n_states:
                        there = rows + np.uint64(greedy[columns + np.uint64(known)])
                        v_low = clip(q[there], low, high)
                        v_low_average = clip(average[there], low, high)
                    extra = anchor + lowest_reward[cell] if inside else 0.0
                    least = extra + discount * v_low_average
                    fresh_least = extra + discount * v_low
                lower = known < 0 or x_average < least
                moved = known < 0 or (lower and np.uint64(known) != successor)
                ceiling = count  # of the squared likelihood ratio
                if steep:
                    # Endings have one index but may pay differently: only those that pay as little count.
                    low_ending = x_average <= least + 1e-6 * (1.0 + abs(least))
                    hit = (
                        1.0
                        if moved or (np.uint64(known) == successor and (successor < n_states or low_ending))
                        else 0.0
                    )
                    frequency = (0.0 if moved else rarity[cell]) * (1.0 - 1.0 / count) + hit / count
                    rarity[cell] = frequency
                    ceiling = min(count, (_BEYOND / frequency) ** 2)
                if lower:
                    least, fresh_least = x_average, x
                    lowest[cell] = successor
                    if inside:
                        lowest_reward[cell] = reward - anchor
                if kind == TOTAL_VARIATION or weight == 0.0:
                    above = at > least + weight
                    value = fresh_least + weight if above else x
                    if mode == CONSTRAINED and level < math.inf:
                        value -= weight * level
                        stride = 0.5 * min(alpha, 1.0) * spread  # a quantile needs shorter steps than a root
                        weights[cell] = clip(weight + stride * ((1.0 if above else 0.0) - level), 0.0, spread)
                else:
                    eta = at if before == 0 else base + offset[cell]
                    eta = clip(eta, discount * low + shift_low, discount * high + shift_high)
                    floor = least + _LEAN * (fresh_least - least)  # as `at` is for this outcome
                    eta = max(eta, floor)
                    if ceiling < 4.0 or (eta - floor) * inverse > near:
                        eta = min(eta, floor + weight * slope(kind, k, edge, math.sqrt(ceiling)))
                    value, ratio, bend = outcome(kind, k, edge, weight, inverse, eta, at)
                    if ratio * ratio > ceiling:
                        eta = at + weight * slope(kind, k, edge, math.sqrt(ceiling))
                        value, ratio, bend = outcome(kind, k, edge, weight, inverse, eta, at)
                    gradient = 1.0 - ratio
                    relative = alpha * per_weight if per_weight > 0.0 else discount * alpha * inverse
                    bent = curvature[cell]
                    stride = relative * weight * gradient / max(float(bent), _FLATTEST)
                    stride = clip(stride, -weight, weight)
                    trusted = weight if ratio > 1.0 else math.inf
                    away = clip(x - at, -trusted, trusted)
                    value += _STEADY * stride * gradient + ratio * away
                    if bend != bend:
                        bend = ratio
                    curvature[cell] = bent + min(1.0, relative) * (min(bend, count) - bent)
                    offset[cell] = eta + stride - base
                    if mode == CONSTRAINED:
                        value -= weight * level
                        if 0.0 < level < math.inf:
                            excess = divergence_at(kind, k, (eta - at) * inverse, ratio) - level
                            usual = excesses[cell]
                            weights[cell] = renew_weight(weight, level, excess, usual, min(1.0, relative), spread)
                            excesses[cell] = usual + min(1.0, relative) * (abs(excess) - usual)
            updated = earned + value
            if before > 0:  # the first visit replaces a placeholder
                updated = q[cell] + beta * (updated - q[cell])
            updated = clip(updated, low, high)
            if not math.isfinite(updated):
                diverged[replication] = first + position + 1
                continue
            q[cell] = updated
            if averaging and before > 0:
                updated = old_average + min(1.0, share / count) * (updated - old_average)
            average[cell] = updated
            renew_greedy(greedy, average, state_ptr, columns, rows, np.uint64(states[position, replication]), pair)


@inlined
def value_range(extent, replication, discount, can_end):
    """(low, high) of the values, and of the rewards that have come."""
    least_reward, most_reward = extent[replication, 0], extent[replication, 1]
    low, high = least_reward / (1.0 - discount), most_reward / (1.0 - discount)
    if can_end:
        low, high = min(low, 0.0), max(high, 0.0)
    return low, high, least_reward, most_reward


@inlined
def first_weight(radius, spread):
    """Where the learned weight begins: at the spread of the outcomes; a ball of radius 0 or inf leaves no choice."""
    if radius == 0.0:
        return _NO_CHOICE * max(spread, 1.0)
    return spread if radius < math.inf else 0.0


@inlined
def renew_weight(weight, radius, excess, usual, relative, spread):
    """Ascent on log weight along f(t) - radius, which has no bound: in units of its usual size, then projected."""
    stride = clip(relative * excess / (radius + usual), -0.5, 0.5)
    return clip(weight * math.exp(stride), _SMALLEST_WEIGHT * spread, spread / radius)


@kernel
def sweep_model(world, keys, first, learner, rewards, following):
    """Algorithm 1 at all pairs of a known world, T' + 1 draws each."""
    spec, limits, beta, alphas, per_weight, fresh, draws, levels, v, tables = learner
    for pair in range(len(world[0]) - 1):
        consult_all(world, keys, first + pair * len(following), pair, rewards, following)
        refine_as_printed(
            spec, limits, beta, alphas, per_weight, fresh, draws, levels, v, tables, pair, rewards, following
        )


@kernel
def explore_model(place, room, count, learner):
    """`count` transitions of a policy that follows Q: each is absorbed before the next is drawn."""
    world, behaviour, keys, begin, now = place
    spec, steps, first, start, levels, tables, extent, diverged = learner
    states, pairs, rewards, following = room
    for step in range(count):
        position = first + step
        wander_all(world, behaviour, tables[GREEDY], keys, 2 * position, begin, now, room)
        follow(spec, steps, position, start, levels, tables, extent, diverged, states, pairs, rewards, following)


@kernel
def explore_simulator(place, state, room, count, learner):
    """`explore_model` for a user's compiled function; returns the state after the last step."""
    behaviour, choices, rng, begin, (low, high) = place
    spec, steps, first, start, levels, tables, extent, diverged = learner
    states, pairs, rewards, following = room
    for step in range(count):
        state = wander_simulated(behaviour, tables[GREEDY], choices, rng, begin, state, room)
        if following[0, 0] < 0 or not low <= rewards[0, 0] <= high:
            break  # the caller looks at the last transition
        follow(spec, steps, first + step, start, levels, tables, extent, diverged, states, pairs, rewards, following)
    return state
