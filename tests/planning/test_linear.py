"""One chain's values, whatever the way: sweeps, Krylov steps in the order of values, a factorisation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from robustmdp import _core
from robustmdp.operators.bellman import Chain
from robustmdp.planning.linear import ChainSolver, bicgstab, factorise

FloatArray = npt.NDArray[np.float64]


def chain_of(matrix: FloatArray, cost: FloatArray, discount: float) -> Chain:
    """`matrix` has a last column for the end."""
    rows = sp.csr_array(matrix)
    return Chain(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, cost, discount)


def random_chain(seed: int, can_end: bool, discount: float = 0.999, size: int = 60) -> tuple[Chain, FloatArray]:
    """A line on which most steps lead to the right, and its values by dense elimination."""
    rng = np.random.default_rng(seed)
    matrix = np.zeros((size, size + 1))
    for s in range(size):
        for step, chance in zip((-1, 0, 1), rng.dirichlet([1.0, 1.0, 3.0]), strict=True):
            at = s + step
            matrix[s, size if can_end and at == size else min(max(at, 0), size - 1)] += chance
    cost = rng.normal(size=size)
    exact = np.linalg.solve(np.eye(size) - discount * matrix[:, :size], cost)
    return chain_of(matrix, cost, discount), exact


def view(chain: Chain) -> tuple[npt.NDArray[np.generic] | float, ...]:
    return chain.indptr, chain.indices, chain.data, chain.cost, chain.discount


@pytest.mark.parametrize("by_graph", [False, True])
@pytest.mark.parametrize("can_end", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_every_way_finds_the_values(seed: int, can_end: bool, by_graph: bool) -> None:
    chain, exact = random_chain(seed, can_end)
    accuracy = 1e-8 * np.abs(exact).max()
    found = ChainSolver(can_end, by_graph=by_graph).solve(chain, np.zeros(len(exact)), accuracy)
    assert np.abs(found - exact).max() <= accuracy
    # The span of the residual bounds the error: over 1 - discount, and half of that once it is centred.
    target = accuracy * (1.0 - chain.discount)
    v = np.zeros(len(exact) + 1)
    assert _core.climb_chain(*view(chain), can_end, v, target, 400, by_graph) <= target
    residual = chain.cost - v[:-1] + chain.discount * chain_product(chain, v)
    span = np.ptp(np.append(residual, 0.0) if can_end else residual)
    assert span <= target * (1.0 + 1e-6) + 1e-12 * np.abs(v).max()
    by_factors, reached = bicgstab(chain, np.zeros(len(exact)), target, can_end, factorise(chain).solve, 12)
    assert reached
    assert np.abs(by_factors - exact).max() <= accuracy


def chain_product(chain: Chain, v: FloatArray) -> FloatArray:
    size = len(chain.cost)
    return np.asarray(sp.csr_array((chain.data, chain.indices, chain.indptr), shape=(size, size + 1)) @ v)


def test_good_values_make_a_good_order() -> None:
    """From values that rise towards the goal, twenty steps do far more than from values that fall."""
    size, discount = 2000, 0.9999
    matrix = np.zeros((size, size + 1))
    at = np.arange(size)
    matrix[at, at + 1] = 0.8
    matrix[at, np.maximum(at - 1, 0)] += 0.2
    chain = chain_of(matrix, np.where(at == size - 1, 1.0, 0.0), discount)
    rising, falling = (
        _core.climb_chain(*view(chain), True, np.append(start, 0.0), 0.0, 20, False)
        for start in (np.linspace(0.0, 1.0, size), np.linspace(1.0, 0.0, size))
    )
    assert rising < 0.1 * falling


def test_what_is_solved_is_left_alone() -> None:
    chain, exact = random_chain(0, False)
    v = np.append(exact, 0.0)
    assert _core.climb_chain(*view(chain), False, v, 1e-9, 0, False) <= 1e-9
    np.testing.assert_array_equal(v[:-1], exact)


def test_dot_products_of_any_length() -> None:
    rng = np.random.default_rng(0)
    for size in range(10):
        a, b = rng.normal(size=(2, size))
        assert _core.dot(a, b) == pytest.approx(float(a @ b), abs=1e-14)


def test_without_loops_one_step_in_the_order_of_the_graph_is_exact() -> None:
    """Successors come first, whatever the numbers of the states are, so that L is all of I - P."""
    size = 500
    rng = np.random.default_rng(0)
    name = rng.permutation(size)
    matrix = np.zeros((size, size + 1))
    for s in range(size):
        later = np.arange(s + 1, size + 1)
        successors = rng.choice(later, size=min(3, len(later)), replace=False)
        targets = np.where(successors == size, size, name[np.minimum(successors, size - 1)])
        matrix[name[s], targets] = rng.dirichlet(np.ones(len(successors)))
    chain = chain_of(matrix, np.ones(size), 1.0)
    steps = [_core.climb_chain(*view(chain), True, np.zeros(size + 1), 0.0, 1, by_graph) for by_graph in (True, False)]
    assert steps[0] <= 1e-12 * size  # rounding of sums of at most `size` ones
    assert steps[1] > 0.1


def test_the_order_of_the_graph_does_not_depend_on_numbers() -> None:
    """A line with steps back and one way out: shuffled or not, the steps are the same to the bit, and help."""
    size = 2000
    at = np.arange(size)
    spans = []
    for name in (at, np.random.default_rng(1).permutation(size)):
        matrix = np.zeros((size, size + 1))
        matrix[name[at], np.append(name, size)[at + 1]] = 0.8
        matrix[name[at], name[np.maximum(at - 1, 0)]] += 0.2
        chain = chain_of(matrix, np.where(at == name[-1], 1.0, 0.0), 1.0)
        spans.append(_core.climb_chain(*view(chain), True, np.zeros(size + 1), 0.0, 20, True))
    against = _core.climb_chain(*view(chain), True, np.zeros(size + 1), 0.0, 20, False)
    assert spans[0] == spans[1] < 0.5 * against
