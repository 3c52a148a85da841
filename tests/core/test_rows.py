"""Rows side by side: the same value whatever they remember, the same bits wherever they stand."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import robustmdp as rm
from oracles.random_rows import DIVERGENCES, MODES, moderate_problem
from robustmdp import _core

FloatArray = npt.NDArray[np.float64]

MEMORIES = (math.nan, math.inf, -math.inf, 0.0, 1e-300, 1e-15, -1.0, 1.0, 1e15, -1e15, 1e300, -1e300)
SETS = [mode(divergence, 0.3) for mode in MODES for divergence in DIVERGENCES] + [rm.Nominal()]


def model_of(rows: list[FloatArray]) -> tuple[Any, FloatArray]:
    """One state per row, with its own successors; the outcomes are 0..nnz."""
    lengths = [len(row) for row in rows]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    indices = np.arange(indptr[-1], dtype=np.int32)
    p = np.concatenate(rows)
    states = np.arange(len(rows) + 1, dtype=np.int64)
    # As many states as outcomes: the last ones own no pair, which kernels that visit pairs never notice.
    state_ptr = np.concatenate([states, np.full(max(0, int(indptr[-1]) - len(rows)), len(rows))]).astype(np.int64)
    return _core.Model(indptr, indices, p, np.zeros(len(rows)), state_ptr, max(lengths), False), p


def values_of(ambiguity: Any, rows: list[FloatArray], outcomes: list[FloatArray], memory: FloatArray) -> FloatArray:
    model, _ = model_of(rows)
    outcome = np.append(np.concatenate(outcomes), 0.0)
    q = np.empty(len(rows))
    levels = np.array([ambiguity.kernel_level(1.0)])
    ambiguity.kernel.values(model, levels, outcome, None, 0, len(rows), memory, q)
    return q


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("index", range(4))
def test_a_row_has_one_value_whatever_it_remembers(divergence: Any, mode: Any, index: int) -> None:
    _, p, v = moderate_problem(0, index)
    p, v = p[p > 0] / p.sum(), v[p > 0]
    for level in (0.0, 1e-4, 0.05, 1.0, 20.0, math.inf):
        ambiguity = mode(divergence, level)
        size = ambiguity.kernel.memory_per_row
        memories = [np.full(size, one) for one in (*MEMORIES, *v)]
        for factor in (1.0, 1.001, 0.1, 10.0, 1e-16, 1e16):  # the last sweep may have seen little but rounding
            memory = np.full(size, math.nan)
            values_of(ambiguity, [p], [factor * v], memory)
            memories.append(memory)
        count = len(memories)
        values = values_of(ambiguity, [p] * count, [v] * count, np.stack(memories, axis=1).ravel())
        expected = rm.worst_case(ambiguity, p, v).value
        np.testing.assert_allclose(values, expected, rtol=0, atol=2e-11 * np.abs(v).max(), err_msg=f"level {level}")


def ragged_rows(count: int) -> tuple[list[FloatArray], list[FloatArray]]:
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 9, count)
    drawn = [rng.dirichlet(np.full(n, 10.0 ** rng.uniform(-1, 1))) + 1e-12 for n in lengths]
    rows = [p / p.sum() for p in drawn]
    return rows, [np.round(rng.normal(size=n), 1) * 10.0 ** rng.integers(-2, 2) for n in lengths]


@pytest.mark.parametrize("level", [1e-4, 1e-2, 0.3, 30.0])
@pytest.mark.parametrize("ambiguity", SETS, ids=repr)
def test_a_row_has_the_same_bits_wherever_it_stands(ambiguity: Any, level: float) -> None:
    """Alone, beside longer and shorter rows, near the model or far from it, in any lane."""
    if not ambiguity.is_nominal:
        ambiguity = type(ambiguity)(ambiguity.divergence, level)
    rows, outcomes = ragged_rows(43)
    size = ambiguity.kernel.memory_per_row

    def solve(order: list[int]) -> tuple[FloatArray, FloatArray]:
        memory = np.full(size * len(order), math.nan)
        values = values_of(ambiguity, [rows[i] for i in order], [outcomes[i] for i in order], memory)
        return values, memory.reshape(size, len(order)).T

    together, remembered = solve(list(range(43)))
    shuffled = np.random.default_rng(2).permutation(43).tolist()
    elsewhere, remembered_elsewhere = solve(shuffled)
    np.testing.assert_array_equal(elsewhere, together[shuffled])
    np.testing.assert_array_equal(remembered_elsewhere, remembered[shuffled])
    np.testing.assert_array_equal([solve([i])[0][0] for i in range(43)], together)


def answers_of(ambiguity: Any, rows: list[FloatArray], outcomes: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Bounds and multiplier of each row, (n, 3), and nature's distributions one behind the other."""
    model, p = model_of(rows)
    count, outcome = len(rows), np.append(np.concatenate(outcomes), 0.0)
    levels = np.array([ambiguity.kernel_level(1.0)])
    memory = np.full(count * ambiguity.kernel.memory_per_row, math.nan)
    lower, upper, penalty, eta = (np.empty(count) for _ in range(4))
    ambiguity.kernel.bracket(model, levels, outcome, 1.0, 0, count, memory, lower, upper)
    data = np.empty_like(p)
    ambiguity.kernel.respond(model, levels, outcome, None, model.indptr, 0, count, memory, data, penalty, eta)
    return np.stack([lower, upper, eta], axis=1), data


@pytest.mark.parametrize("level", [1e-4, 1e-2, 0.3])
@pytest.mark.parametrize("ambiguity", SETS, ids=repr)
def test_bounds_and_answers_have_the_same_bits_wherever_a_row_stands(ambiguity: Any, level: float) -> None:
    if not ambiguity.is_nominal:
        ambiguity = type(ambiguity)(ambiguity.divergence, level)
    rows, outcomes = ragged_rows(43)
    together, distributions = answers_of(ambiguity, rows, outcomes)
    alone = [answers_of(ambiguity, [row], [outcome]) for row, outcome in zip(rows, outcomes, strict=True)]
    np.testing.assert_array_equal(together, np.concatenate([numbers for numbers, _ in alone]))
    np.testing.assert_array_equal(distributions, np.concatenate([data for _, data in alone]))


def digest(threads: int) -> str:
    """A hash of everything that sweeps, brackets, responses and solves give on fixed worlds."""
    total = hashlib.sha256()
    garnet = rm.problems.garnet(60, 3, 5, 0.9, seed=1)
    big = rm.problems.garnet(9000, 2, 5, 0.9, seed=2)
    for ambiguity in SETS:
        bellman = rm.RobustBellman(garnet, ambiguity)
        v = np.linspace(-1.0, 1.0, garnet.n_states)
        bracket, answer = bellman.bracket(v), bellman.worst_case(v)
        for array in (bellman.apply(v), bracket.q_lower, bracket.q_upper, answer.model.probabilities, answer.eta):
            total.update(np.ascontiguousarray(array).tobytes())
    for ambiguity in (
        rm.Penalized(rm.ChiSquare(), 1.0),
        rm.Constrained(rm.KL(), 0.2),
        rm.Penalized(rm.Hellinger(), 1.0),
    ):
        solution = rm.solve(big, ambiguity, threads=threads, tol=1e-7)
        total.update(solution.lower.tobytes() + solution.upper.tobytes() + solution.policy.tobytes())
    return total.hexdigest()


# What another machine must find, too.
STORED = "acf04e092a8ebaedf474a18f76f21f8d4566c0c988d46e79c03bca96f39c39ef"


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_the_same_bits_for_any_number_of_threads_and_on_any_machine(threads: int) -> None:
    assert digest(threads) == STORED


def test_the_same_bits_for_any_instruction_set() -> None:
    environment = {**os.environ, "ROBUSTMDP_CORE": "generic", "PYTHONPATH": os.pathsep.join(sys.path)}
    program = "from core.test_rows import digest; print(digest(1))"
    here = os.path.dirname(os.path.dirname(__file__))
    found = subprocess.run([sys.executable, "-c", program], cwd=here, env=environment, capture_output=True, text=True)
    assert found.stdout.strip() == STORED, found.stderr
