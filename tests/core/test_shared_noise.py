"""The kernels of states whose actions share the noise: equal bits for any split of the states and any processor."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from robustmdp import _core

S, A, K = 40, 5, 7

SETS = [
    rm.L1(0.3),
    rm.L2(0.2),
    rm.CVaR(0.5),
    rm.Constrained(rm.ChiSquare(), 0.2),
    rm.Constrained(rm.KL(), 0.1),
    rm.Penalized(rm.Hellinger(), 0.5),
]


def solve_states(ambiguity: Any, parts: int) -> list[Any]:
    """Value and policy of the third sweep and bounds after it, the states split into some parts."""
    rng = np.random.default_rng(0)
    p, indices = rng.dirichlet(np.ones(K)), rng.integers(0, S + 1, size=S * A * K).astype(np.int32)
    rewards = rng.normal(size=S * A * K)
    model = _core.Model(np.arange(S * A + 1) * K, indices, np.tile(p, S * A), rewards, np.arange(S + 1) * A, K, True)
    kernel = _core.shared_noise(ambiguity.kernel_for_row(p)[0])
    levels, outcome = np.array([ambiguity.kernel_level(0.9)]), np.zeros(S + 1)
    memory, value, policy = np.full(S * A * kernel.memory_per_row, np.nan), np.empty(S), np.empty(S * A)
    cuts = np.linspace(0, S, parts + 1).astype(int).tolist()
    for _ in range(3):
        for lo, hi in pairwise(cuts):
            kernel.sweep(model, levels, outcome, lo, hi, memory, value, policy)
        outcome[:-1] = 0.9 * value
    lower, upper, q, found = np.empty(S), np.empty(S), np.empty(S * A), policy.copy()
    kernel.bracket(model, levels, outcome, 20.0, False, 0, S, memory, found, lower, upper, q)
    return [value, policy, found, lower, upper, q]


def digest() -> str:
    """A hash of all that the kernels find."""
    numbers = [array for ambiguity in SETS for array in solve_states(ambiguity, 1)]
    return hashlib.sha256(np.concatenate(numbers).tobytes()).hexdigest()


@pytest.mark.parametrize("ambiguity", SETS, ids=repr)
def test_the_same_bits_for_any_split(ambiguity: Any) -> None:
    for one, other in zip(solve_states(ambiguity, 1), solve_states(ambiguity, 7), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_same_bits_for_any_instruction_set() -> None:
    environment = {**os.environ, "ROBUSTMDP_CORE": "generic", "PYTHONPATH": os.pathsep.join(sys.path)}
    program = "from core.test_shared_noise import digest; print(digest())"
    here = os.path.dirname(os.path.dirname(__file__))
    found = subprocess.run([sys.executable, "-c", program], cwd=here, env=environment, capture_output=True, text=True)
    assert found.stdout.strip() == digest(), found.stderr
