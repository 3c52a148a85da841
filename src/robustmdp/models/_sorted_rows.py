"""One compiled pass over sorted transitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from robustmdp._jit import kernel
from robustmdp.models.assembly import LARGEST
from robustmdp.models.mdp import FloatArray, IntArray

SHORT = 32  # rows up to this length are sorted by insertion

STATE, ACTION, SUCCESSOR, PROBABILITY, REWARD, OUTCOME, UNSORTED, DONE = range(8)  # what is wrong with a row
# What is remembered from block to block.
ENTRIES, PAIRS, STATE_BEFORE, ACTION_BEFORE, ROW_OUTCOME, TWICE, ROUGH, SPREAD, TOP, TOP_ROW = range(10)
_SURE = 1e-13  # however the sum is taken, a row this close to 1 is close enough


@kernel
def append(
    state: IntArray,
    action: IntArray,
    following: IntArray,
    probability: FloatArray,
    reward: FloatArray,
    outcome: IntArray,
    indices: IntArray,
    probabilities: FloatArray,
    rewards: FloatArray,
    indptr: IntArray,
    states: IntArray,
    actions: IntArray,
    memory: IntArray,
    seen: int,
) -> Any:
    """Store a block behind the last one; what is wrong with it, and in which row."""
    n, count = memory[ENTRIES], memory[PAIRS]
    s_before, a_before = memory[STATE_BEFORE], memory[ACTION_BEFORE]
    for i in range(len(state)):
        s, a, t, p, r = state[i], action[i], following[i], probability[i], reward[i]
        if s < 0 or s > LARGEST:
            return STATE, seen + i
        if a < 0 or a > LARGEST:
            return ACTION, seen + i
        if t < 0 or t > LARGEST:
            return SUCCESSOR, seen + i
        if not 0.0 <= p < np.inf:
            return PROBABILITY, seen + i
        if not -np.inf < r < np.inf:
            return REWARD, seen + i
        if s < s_before or (s == s_before and a < a_before):
            return UNSORTED, seen + i
        if max(s, t) > memory[TOP]:
            memory[TOP], memory[TOP_ROW] = max(s, t), seen + i
        if s != s_before or a != a_before:
            memory[ROW_OUTCOME] = outcome[i] if len(outcome) else 0
        elif len(outcome) and outcome[i] != memory[ROW_OUTCOME]:
            return OUTCOME, seen + i
        s_before, a_before = s, a
        if p == 0.0:
            continue
        if count == 0 or s != states[count - 1] or a != actions[count - 1]:
            indptr[count] = n
            memory[PAIRS] = count
            settle(indices, probabilities, rewards, indptr, memory)
            states[count], actions[count] = s, a
            count += 1
        indices[n], probabilities[n], rewards[n] = t, p, r
        n += 1
    memory[ENTRIES], memory[PAIRS] = n, count
    memory[STATE_BEFORE], memory[ACTION_BEFORE] = s_before, a_before
    return DONE, seen


@kernel
def settle(
    indices: IntArray, probabilities: FloatArray, rewards: FloatArray, indptr: IntArray, memory: IntArray
) -> None:
    """Sort the last row by successor, equal ones in the order in which they came.

    Noted is whether there are such, whether the sum needs a closer look, and whether rewards depend on successors.
    """
    count = memory[PAIRS]
    if count == 0:
        return
    start, stop = indptr[count - 1], indptr[count]
    rising = True
    for i in range(start + 1, stop):
        rising = rising and indices[i - 1] <= indices[i]
    if not rising and stop - start <= SHORT:
        for i in range(start + 1, stop):
            t, p, r = indices[i], probabilities[i], rewards[i]
            j = i
            while j > start and indices[j - 1] > t:
                indices[j], probabilities[j], rewards[j] = indices[j - 1], probabilities[j - 1], rewards[j - 1]
                j -= 1
            indices[j], probabilities[j], rewards[j] = t, p, r
    elif not rising:
        order = np.argsort(indices[start:stop], kind="mergesort")
        indices[start:stop] = indices[start:stop][order]
        probabilities[start:stop] = probabilities[start:stop][order]
        rewards[start:stop] = rewards[start:stop][order]
    total = 0.0
    for i in range(start, stop):
        total += probabilities[i]
        if i > start and indices[i - 1] == indices[i]:
            memory[TWICE] = 1
        if rewards[i] != rewards[start]:
            memory[SPREAD] = 1
    if abs(total - 1.0) > _SURE:
        memory[ROUGH] = 1
