"""What a result is as an object: pickled, copied, compared, shown."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import robustmdp as rm
from oracles.naive_mdp import DIVERGENCES, FORMS, LEVELS

AMBIGUITIES = [rm.Nominal(), *(form(d, LEVELS[form]) for form in FORMS for d in DIVERGENCES)]


def copies(thing: Any) -> list[Any]:
    return [pickle.loads(pickle.dumps(thing)), copy.copy(thing), copy.deepcopy(thing)]


@pytest.mark.parametrize("ambiguity", AMBIGUITIES, ids=repr)
def test_ambiguities_are_values(ambiguity: Any) -> None:
    for other in copies(ambiguity):
        assert other == ambiguity
        assert hash(other) == hash(ambiguity)
    assert len(set(AMBIGUITIES)) == len(AMBIGUITIES)
    assert "divergence" in str(ambiguity) or "nominal" in str(ambiguity)


@pytest.mark.parametrize("form", FORMS)
def test_ambiguities_with_arrays(form: Any) -> None:
    level = np.array([[0.5, np.nan]])
    ambiguity = form(rm.KL(), level)
    level[0, 0] = 7.0
    assert ambiguity.level[0, 0] == 0.5
    assert all(other == ambiguity and hash(other) == hash(ambiguity) for other in copies(ambiguity))
    assert ambiguity != form(rm.KL(), level)
    assert "0.5 to 0.5" in repr(ambiguity)
    with pytest.raises(AttributeError, match="immutable"):
        ambiguity.divergence = rm.Burg()
    with pytest.raises(ValueError, match="read-only"):
        ambiguity.level[0, 0] = 1.0


@pytest.mark.parametrize("ambiguity", AMBIGUITIES[:4], ids=repr)
def test_solutions_are_values(ambiguity: Any) -> None:
    solution = rm.solve(rm.problems.chain(), ambiguity)
    again = rm.solve(rm.problems.chain(), ambiguity)
    for other in [again, *copies(solution)]:
        assert other == solution
        assert hash(other) == hash(solution)
        assert np.array_equal(other.penalty, solution.penalty)
        assert other.worst_case == solution.worst_case
    assert solution != rm.solve(rm.problems.chain(stay=0.7), ambiguity)
    assert solution != "solution"
    with pytest.raises(AttributeError):
        solution.value = None


def test_solutions_are_shown() -> None:
    solution = rm.solve(rm.problems.chain(), rm.Penalized(rm.KL(), 1.0))
    text, html = repr(solution), solution._repr_html_()
    for part in ("converged", "steps", "s1: 1", "(10 states)", "certified to"):
        assert part in text
        assert part in html
    assert "<table" in html
    assert "<script" not in html


def test_names_cannot_inject_markup() -> None:
    mdp = rm.MDP.from_arrays([[[1.0]]], [1.0], 0.5, state_names=["<i>"], action_names=["a&b"])
    assert "<i>" not in mdp._repr_html_()
    assert "&lt;i&gt;" in rm.solve(mdp, rm.Nominal())._repr_html_()


def test_to_frame() -> None:
    solution = rm.solve(rm.problems.river_swim(), rm.Constrained(rm.KL(), 0.1))
    frame = solution.to_frame()
    assert frame.index.name == "state"
    assert list(frame.index) == [f"bank {i}" for i in range(6)]
    assert list(frame.columns) == ["action", "value", "lower", "upper"]
    assert frame["value"].tolist() == solution.value.tolist()
    assert set(frame["action"]) <= {"drift", "swim"}
    plain = rm.solve(rm.problems.garnet(5, 2, 2, 0.5, seed=0), rm.Nominal()).to_frame()
    assert list(plain.index) == list(range(5))


@pytest.mark.parametrize("ambiguity", AMBIGUITIES, ids=repr)
def test_shapes_and_types(ambiguity: Any) -> None:
    mdp = rm.problems.inventory(5)
    solution = rm.solve(mdp, ambiguity)
    unavailable = np.isneginf(mdp.table(np.zeros(mdp.n_pairs)))
    assert solution.q.shape == solution.penalty.shape == solution.eta.shape == (6, 6)
    assert solution.value.shape == solution.lower.shape == solution.upper.shape == solution.policy.shape == (6,)
    assert solution.policy.dtype == np.int64
    assert np.array_equal(np.isneginf(solution.q), unavailable)
    assert np.all(np.isnan(solution.eta[unavailable]))
    assert np.abs(solution.q.max(axis=1) - solution.value).max() <= 2 * solution.error_bound
    assert isinstance(solution.worst_case, rm.MDP)
    assert solution.worst_case.discount == mdp.discount
    # Nature never adds a successor.
    known = {(s, a): set(row) for s, a, row in successors(mdp)}
    assert all(set(row) <= known[s, a] for s, a, row in successors(solution.worst_case))


def successors(mdp: rm.MDP) -> list[tuple[int, int, list[int]]]:
    rows = np.split(mdp.indices, mdp.indptr[1:-1])
    return [(int(s), int(a), row.tolist()) for s, a, row in zip(mdp.states, mdp.actions, rows, strict=True)]


@pytest.mark.parametrize("divergence", [rm.ChiSquare(), rm.KL()], ids=repr)
def test_eta_is_the_papers(divergence: Any) -> None:
    mdp, weight = rm.problems.chain(), 0.7
    solution = rm.solve(mdp, rm.Penalized(divergence, weight), tol=1e-12)
    for pair, (s, a) in enumerate(zip(mdp.states, mdp.actions, strict=True)):
        row = slice(mdp.indptr[pair], mdp.indptr[pair + 1])
        answer = rm.worst_case(
            rm.Penalized(divergence, weight), mdp.probabilities[row], solution.base[mdp.indices[row]]
        )
        # The dual is flat at its optimum: eta is known to the root of the rounding of its value.
        assert abs(solution.eta[s, a] - answer.multipliers.eta) <= 1e-7
        assert (
            abs(
                solution.penalty[s, a]
                - mdp.discount * (answer.value - answer.distribution @ solution.base[mdp.indices[row]])
            )
            <= 1e-11
        )


@pytest.mark.parametrize(
    "ambiguity",
    [rm.Nominal(), rm.Penalized(rm.KL(), 2.0), rm.Constrained(rm.ChiSquare(), np.full((2, 2), 0.5))],
    ids=repr,
)
def test_ambiguities_show_what_they_mean(ambiguity: Any) -> None:
    html = ambiguity._repr_html_()
    assert type(ambiguity).__name__ in html
    assert str(ambiguity) in html
