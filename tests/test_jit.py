"""A user's own divergence in planning."""

from __future__ import annotations

import math

import numpy as np
import pytest

import robustmdp as rm


def my_conjugate(s: float) -> float:
    return math.exp(s - 1.0)


@pytest.mark.parametrize(("own_form", "built_in"), [
    (rm.Penalized(rm.Divergence("my KL", my_conjugate, my_conjugate), 0.7), rm.Penalized(rm.KL(), 0.7)),
    (rm.Constrained(rm.Divergence("my KL", my_conjugate, my_conjugate), 0.1), rm.Constrained(rm.KL(), 0.1)),
], ids=["penalized", "constrained"])  # fmt: skip
def test_an_own_divergence_solves_like_the_built_in_one(own_form: rm.Penalized, built_in: rm.Penalized) -> None:
    mdp = rm.problems.chain(restart=0.5)
    own, known = rm.solve(mdp, own_form), rm.solve(mdp, built_in)
    assert own.converged
    assert np.abs(own.value - known.value).max() <= own.error_bound + known.error_bound
    assert np.array_equal(own.policy, known.policy)
    assert (
        np.abs(own.penalty - known.penalty).max() <= 1e-5
    )  # nature's answer is known to the root of the value's error
