"""Drawing from a known world in constant time: Walker's alias tables.

A row of n outcomes keeps, for each of n equally likely columns, the probability of staying in it and the outcome to
go to otherwise: 12 bytes per transition beside the model.
"""

from __future__ import annotations

import numpy as np

from robustmdp.learning._jit import inlined, kernel
from robustmdp.learning.streams import uniform

IMPOSSIBLE = -1  # a successor outside the world, for the caller to report; it stands in the reward's place


@kernel
def alias_tables(indptr, p, keep, other):
    """Fill `keep` and `other`, (nnz,), for rows of probabilities that sum to about 1 (Vose's method)."""
    longest = 0
    for row in range(len(indptr) - 1):
        longest = max(longest, indptr[row + 1] - indptr[row])
    small, large = np.empty(longest, np.int64), np.empty(longest, np.int64)
    for row in range(len(indptr) - 1):
        first, last = indptr[row], indptr[row + 1]
        total = 0.0
        for entry in range(first, last):
            total += p[entry]
        n_small, n_large = 0, 0
        for entry in range(first, last):
            keep[entry] = p[entry] * (last - first) / total
            other[entry] = entry
            if keep[entry] < 1.0:
                small[n_small] = entry
                n_small += 1
            else:
                large[n_large] = entry
                n_large += 1
        while n_small > 0 and n_large > 0:
            n_small -= 1
            poor, rich = small[n_small], large[n_large - 1]
            other[poor] = rich
            keep[rich] -= 1.0 - keep[poor]
            if keep[rich] < 1.0:
                n_large -= 1
                small[n_small] = rich
                n_small += 1
        for position in range(n_small):  # what rounding left over
            keep[small[position]] = 1.0
        for position in range(n_large):
            keep[large[position]] = 1.0


@inlined
def alias_draw(keep, other, first, size, u):
    """An entry of the row that starts at `first`, from one uniform number: its column, then its coin."""
    scaled = u * np.int64(size)  # signed, for only those are converted by one instruction
    column = np.int64(scaled)  # < size, for u is at most 1 - 2^-53 and rows are shorter than 2^53
    entry = np.uint64(first) + np.uint64(column)
    partner = np.uint64(other[entry])  # loaded in any case: a wrongly guessed branch would cost more
    return entry if scaled - column < keep[entry] else partner


@kernel
def uniform_number(key, position):
    """`uniform`, for Python."""
    return uniform(key, position)


@kernel
def consult_all(world, keys, first, pair, rewards, following):
    """Independent outcomes of one pair, (draws, replications), from number `first` of each stream on."""
    indptr, indices, all_rewards, on_successors, keep, other = world
    row = indptr[pair]
    size = indptr[pair + 1] - row
    place = np.uint64(pair)
    for draw in range(len(following)):
        for replication in range(len(keys)):
            entry = alias_draw(keep, other, row, size, uniform(keys[replication], first + draw))
            following[draw, replication] = indices[entry]
            rewards[draw, replication] = all_rewards[entry if on_successors else place]


@kernel
def tour_all(world, state_ptr, keys, first, room):
    """One outcome of each pair in turn, round after round; transition `first` belongs to pair `first` mod pairs."""
    indptr, indices, all_rewards, on_successors, keep, other = world
    states, pairs, rewards, following = room
    n_pairs = len(indptr) - 1
    pair = first % n_pairs
    state = np.searchsorted(state_ptr, pair, side="right") - 1
    for step in range(len(pairs)):
        row = indptr[pair]
        size = indptr[pair + 1] - row
        for replication in range(len(keys)):
            entry = alias_draw(keep, other, row, size, uniform(keys[replication], first + step))
            states[step, replication] = state
            pairs[step, replication] = pair
            rewards[step, replication] = all_rewards[entry if on_successors else np.uint64(pair)]
            following[step, replication] = indices[entry]
        pair += 1
        if pair == n_pairs:
            pair, state = 0, 0
        elif pair == state_ptr[state + 1]:
            state += 1


@kernel
def choose(stay, leave, epsilon, greedy, place, first, size, u):
    """One of the pairs first, ..., first + size - 1: an alias draw, or epsilon-greedy where epsilon >= 0."""
    if epsilon < 0.0:
        if len(stay) == 0:  # uniform
            return first + np.uint64(np.int64(u * np.int64(size)))
        return alias_draw(stay, leave, first, size, u)
    if u >= epsilon:
        return np.uint64(greedy[place])
    # The same number says whether to explore and, rescaled, what.
    return first + min(np.uint64(np.int64(u / epsilon * np.int64(size))), size - np.uint64(1))


@kernel
def wander_all(world, behaviour, greedy, keys, first, start, now, room):
    """One trajectory per replication, two numbers a step; an ended episode goes on in `start`.

    `now`, (replications,), holds the states and moves along; `greedy` is (replications * states,).
    """
    indptr, indices, all_rewards, on_successors, keep, other = world
    states, pairs, rewards, following = room
    state_ptr, stay, leave, epsilon = behaviour
    n_states = np.uint64(len(state_ptr) - 1)
    replications = len(keys)
    uniformly = epsilon < 0.0 and len(stay) == 0
    choices, chances = np.empty(replications), np.empty(replications)
    for step in range(len(pairs)):
        number = first + 2 * step
        for replication in range(replications):  # apart from what follows, so that it becomes vector code
            choices[replication] = uniform(keys[replication], number)
            chances[replication] = uniform(keys[replication], number + 1)
        for replication in range(replications):
            state = np.uint64(now[replication])
            first_pair = np.uint64(state_ptr[state])
            size = np.uint64(state_ptr[state + np.uint64(1)]) - first_pair
            if uniformly:
                pair = first_pair + np.uint64(np.int64(choices[replication] * np.int64(size)))
            else:
                place = np.uint64(replication) * n_states + state
                pair = choose(stay, leave, epsilon, greedy, place, first_pair, size, choices[replication])
            row = np.uint64(indptr[pair])
            size = np.uint64(indptr[pair + np.uint64(1)]) - row
            entry = alias_draw(keep, other, row, size, chances[replication])
            successor = np.uint64(indices[entry])
            states[step, replication] = state
            pairs[step, replication] = pair
            rewards[step, replication] = all_rewards[entry if on_successors else pair]
            following[step, replication] = successor
            now[replication] = successor if successor < n_states else np.uint64(start)


@kernel
def simulate(state, action, rng):
    """Stand-in for a user's function."""
    return 0.0, state, True


@kernel
def wander_simulated(behaviour, greedy, choices, rng, start, state, room):
    """`wander_all` for a user's compiled function and one replication; returns the state after the last step."""
    states, pairs, rewards, following = room
    state_ptr, stay, leave, epsilon = behaviour
    n_states = len(state_ptr) - 1
    for step in range(len(pairs)):
        place = np.uint64(state)
        first = np.uint64(state_ptr[place])
        size = np.uint64(state_ptr[place + np.uint64(1)]) - first
        pair = np.int64(choose(stay, leave, epsilon, greedy, place, first, size, choices.random()))
        reward, successor, terminated = simulate(state, pair - np.int64(state_ptr[state]), rng)
        states[step, 0] = state
        pairs[step, 0] = pair
        possible = 0 <= successor < n_states
        rewards[step, 0] = reward if possible or terminated else successor
        following[step, 0] = n_states if terminated else (successor if possible else IMPOSSIBLE)
        state = np.int64(successor) if not terminated and possible else np.int64(start)
    return state


@kernel
def tour_simulated(n_states, n_actions, rng, first, room):
    """`tour_all` for a user's compiled function and one replication."""
    states, pairs, rewards, following = room
    for step in range(len(pairs)):
        pair = (first + step) % (n_states * n_actions)
        state = pair // n_actions
        reward, successor, terminated = simulate(state, pair - state * n_actions, rng)
        states[step, 0] = state
        pairs[step, 0] = pair
        possible = 0 <= successor < n_states
        rewards[step, 0] = reward if possible or terminated else successor
        following[step, 0] = n_states if terminated else (successor if possible else IMPOSSIBLE)
