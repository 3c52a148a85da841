"""The same answers with the compiler switched off: NUMBA_DISABLE_JIT=1 pytest -m jit_off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles import naive_mdp
from oracles.naive_mdp import DIVERGENCES, FORMS, LEVELS

pytestmark = pytest.mark.jit_off

ROWS = [
    ([0.5, 0.5], [0.0, 2.0]),
    ([0.1, 0.2, 0.3, 0.4], [3.0, -1.0, 0.5, 0.5]),
    ([0.25, 0.0, 0.75], [1.0, -9.0, 4.0]),
]
each_divergence = pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
each_form = pytest.mark.parametrize("form", FORMS)


def primal(divergence: Any, p: np.ndarray, q: np.ndarray) -> float:
    on = p > 0
    return float(np.sum(p[on] * divergence.f(q[on] / p[on])))


@pytest.mark.parametrize(("p", "v"), ROWS)
@each_form
@each_divergence
def test_rows(divergence: Any, form: Any, p: Any, v: Any) -> None:
    p, v = np.array(p), np.array(v)
    answer = rm.worst_case(form(divergence, LEVELS[form]), p, v)
    q = answer.distribution
    assert abs(answer.gap) <= 1e-9
    assert abs(q.sum() - 1) <= 1e-12
    assert np.all(q[p == 0] == 0)
    paid = primal(divergence, p, q)
    if form is rm.Penalized:
        assert answer.value == pytest.approx(q @ v + paid, abs=1e-9)
    else:
        assert paid <= 0.1 + 1e-8
        assert answer.value == pytest.approx(q @ v, abs=1e-9)
    # No nearby distribution is better for nature.
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = np.where(p > 0, q * np.exp(rng.normal(0, 0.1, p.size)), 0.0)
        other /= other.sum()
        cost = primal(divergence, p, other)
        if form is rm.Penalized:
            assert other @ v + cost >= answer.value - 1e-9
        elif cost <= 0.1:
            assert other @ v >= answer.value - 1e-9


@pytest.mark.parametrize(
    ("ambiguity", "value"),
    [
        (rm.Penalized(rm.ChiSquare(), 1.0), 0.75),  # E v - Var v/(4 weight)
        (rm.Penalized(rm.KL(), 1.0), -np.log(0.5 + 0.5 * np.exp(-2.0))),
        (rm.Penalized(rm.TotalVariation(), 1.0), 0.5),  # E min(v, min v + weight)
        (rm.Constrained(rm.ChiSquare(), 0.25), 0.5),  # E v - sqrt(radius Var v)
        (rm.Constrained(rm.TotalVariation(), 0.25), 0.5),  # moves a quarter from 2 to 0
    ],
    ids=repr,
)
def test_closed_forms(ambiguity: Any, value: float) -> None:
    assert rm.worst_case(ambiguity, [0.5, 0.5], [0.0, 2.0]).value == pytest.approx(value, rel=1e-13)


@each_form
@each_divergence
def test_solve(divergence: Any, form: Any) -> None:
    mdp, ambiguity = rm.problems.chain(restart=0.5), form(divergence, LEVELS[form])
    solution = rm.solve(mdp, ambiguity, tol=1e-6)
    assert solution.converged
    # One naive sweep at the value: it moves by at most (1 + discount) error bounds.
    swept = naive_mdp.bellman(naive_mdp.of_mdp(mdp), ambiguity, solution.value)
    assert np.abs(swept - solution.value).max() <= (1 + mdp.discount) * solution.error_bound + 1e-11


@pytest.mark.parametrize("weight", [0.05, 1.0])
@pytest.mark.parametrize(
    "solver", [rm.ValueIteration(), rm.PolicyIteration(), rm.DualAscent(steps=60, inner_steps=30)], ids=repr
)
def test_two_states(solver: Any, weight: float) -> None:
    solution = rm.solve(rm.problems.two_state(0.5, 0.6), rm.Penalized(rm.ChiSquare(), weight), solver=solver)
    assert abs(solution.value[0] - rm.problems.two_state_value(0.5, 0.6, weight)) <= solution.error_bound + 1e-15


def test_nominal() -> None:
    solution = rm.solve(rm.problems.two_state(0.5, 0.9), rm.Nominal(), tol=1e-10)
    assert abs(solution.value[0] - 1 / 0.55) <= solution.error_bound + 1e-15


def my_conjugate(s: float) -> float:
    return s + s * s / 4 if s > -2.0 else -1.0


def my_slope(s: float) -> float:
    return 1 + s / 2 if s > -2.0 else 0.0


@each_form
def test_an_own_divergence(form: Any) -> None:
    own = rm.Divergence("my chi-square", my_conjugate, my_slope)
    for p, v in ROWS:
        mine, known = (rm.worst_case(form(d, LEVELS[form]), p, v).value for d in (own, rm.ChiSquare()))
        assert mine == pytest.approx(known, abs=1e-9)
