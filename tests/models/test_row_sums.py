"""Rows of every model sum to 1 within rounding, however it was made, and are then left to the bit."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import robustmdp as rm
from robustmdp.models.row_sums import EPSILON, normalise

FACTORS = [1 + 9e-13, 1 - 9e-13, 1 + 1e-14, 1 + 4e-7, 1 - 4e-7]


def distance_from_one(mdp: rm.MDP) -> float:
    """The largest |sum - 1| of a row without rounding, in units of n * 2**-52."""
    rows = zip(mdp.indptr[:-1], mdp.indptr[1:], strict=True)
    return max(abs(math.fsum(mdp.probabilities[i:j].tolist()) - 1.0) / ((j - i) * EPSILON) for i, j in rows)


def columns(factor: float) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(7), size=(7, 2)) * factor
    state, action, following = np.nonzero(p)
    return state, action, following, p[state, action, following], np.ones(len(state))


@pytest.mark.parametrize("factor", FACTORS)
def test_every_way_to_make_a_model_normalises(factor: float, tmp_path: Path) -> None:
    state, action, following, probability, reward = columns(factor)
    dense = np.zeros((7, 2, 7))
    dense[state, action, following] = probability
    rows = rm.MDP.from_rows(state, action, following, probability, reward, 0.9)
    path = tmp_path / "model.csv"
    lines = zip(*(column.tolist() for column in columns(factor)), strict=True)
    path.write_text(
        "state,action,next_state,probability,reward\n" + "".join(f"{','.join(map(repr, r))}\n" for r in lines)
    )
    table = {s: {a: [] for a in range(2)} for s in range(7)}
    for s, a, t, p, r in zip(*(column.tolist() for column in columns(factor)), strict=True):
        table[s][a].append((p, t, r, False))
    names = ("indptr", "indices", "probabilities", "rewards", "state_ptr", "actions")
    rough = {name: getattr(rows, name) for name in names} | {"probabilities": probability}
    models = [
        rows,
        rm.MDP.from_arrays(dense, np.ones(7), 0.9),
        rm.MDP.from_arrays([sp.csr_array(dense[:, a]) for a in range(2)], np.ones(7), 0.9),
        rm.read(path, 0.9),
        rm.MDP.from_gymnasium(SimpleNamespace(P=table), 0.9),
        rows.with_probabilities(probability),
        rm.MDP(**rough, n_actions=2, discount=0.9),
    ]
    for model in models:
        assert distance_from_one(model) <= 1.5
        assert model == rows
        assert pickle.loads(pickle.dumps(model)).probabilities.tobytes() == rows.probabilities.tobytes()


def test_estimates_are_normalised() -> None:
    rng = np.random.default_rng(0)
    log = rm.Trajectory(rng.integers(0, 30, 5000), np.zeros(5000, int), np.zeros(5000), rng.integers(0, 30, 5000))
    for smoothing in ("none", "half", "laplace"):
        assert distance_from_one(rm.estimate(log, 0.9, smoothing=smoothing).model) <= 1.5


@settings(deadline=None, max_examples=200)
@given(seed=st.integers(0, 10**6), exponent=st.floats(-17, -6.1), sign=st.sampled_from([-1, 1]))
def test_normalising_twice_changes_nothing(seed: int, exponent: float, sign: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, rng.choice([4, 40, 3000]), size=20)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    rows = [rng.dirichlet(np.full(n, rng.choice([0.05, 1.0, 20.0]))) + 5e-324 for n in lengths]
    rough = np.concatenate(rows) * (1 + sign * 10.0**exponent)
    once = normalise(indptr, rough, "{} {}".format)
    sums = np.add.reduceat(once, indptr[:-1])
    assert np.all(np.abs(sums - 1) <= lengths * EPSILON)
    assert np.all(once > 0)
    assert normalise(indptr, once, "{} {}".format) is once
    # However the sum is taken, and a row that was divided is not divided again.
    for i, j in itertools.pairwise(indptr):
        if not np.array_equal(once[i:j], rough[i:j]):
            assert abs(sum(once[i:j].tolist()) - 1) <= (j - i) * EPSILON


def test_rows_within_rounding_are_left_to_the_bit() -> None:
    row = np.full(10, 0.1)  # sums to 1 - 2**-53 from left to right
    assert normalise(np.array([0, 10]), row, "{} {}".format) is row
    mdp = rm.MDP.from_arrays([[[0.1] * 10]] * 10, np.zeros(10), 0.9)
    assert mdp.probabilities.tolist() == [0.1] * 100


@pytest.mark.parametrize("piece", [1, 3, 10, 1 << 18])
def test_pieces_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 9, 50)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    rough = np.concatenate([rng.dirichlet(np.ones(n)) for n in lengths]) * (1 + 1e-9)
    kept = rough.copy()
    whole = normalise(indptr, rough, "{} {}".format)
    monkeypatch.setattr("robustmdp.models.row_sums._PIECE", piece)
    assert np.array_equal(normalise(indptr, rough, "{} {}".format), whole)
    assert np.array_equal(rough, kept)
    rough[indptr[17]] += 2e-6
    with pytest.raises(ValueError, match=r"^pair 17 has 1\.00000\d+$"):
        normalise(indptr, rough, lambda pair, total: f"pair {pair} has {total}")


@pytest.mark.parametrize("factor", FACTORS)
def test_the_value_is_that_of_a_distribution(factor: float) -> None:
    # Everything earns 1, so that the value is 1/(1 - discount), whatever the probabilities.
    *rows, _ = columns(factor)
    mdp = rm.MDP.from_rows(*rows, np.ones(len(rows[0])), 0.9999)
    truth = float(1 / (1 - Fraction(0.9999)))
    solution = rm.solve(mdp, rm.Nominal(), tol=1e-12)
    slack = 2 * 7 * EPSILON * truth**2  # of a mass that is off by 1.5 n eps, at every step
    assert np.all(solution.lower - slack <= truth)
    assert np.all(truth <= solution.upper + slack)
