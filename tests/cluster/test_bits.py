"""One model in any number of shards: the same bits, and those of a solve without shards as far as is promised."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import robustmdp as rm
from cluster.models import intervals, ragged, walk
from robustmdp.planning import linear

MODELS = {
    "garnet": rm.problems.garnet(60, 4, 6, 0.95, seed=0),
    "grid": rm.problems.grid_world(12, discount=0.97),
    "ragged": ragged(50, on_successors=True),
    "no end": ragged(40, seed=1, ends=False),
}
SETS: dict[str, Callable[[rm.MDP], rm.Ambiguity]] = {
    "penalized": lambda mdp: rm.Penalized(rm.KL(), 0.5),
    "ball": lambda mdp: rm.Constrained(rm.ChiSquare(), 0.2),
    "s-rectangular": lambda mdp: rm.SRectangular(rm.L1(0.3)),
    "interval": intervals,
}


class Floor:
    """A user's own set: a share of the mass goes to the worst successor."""

    level = 0.2

    def worst_case(self, p: np.ndarray, z: np.ndarray, level: float) -> tuple[float, np.ndarray, float]:
        worst = (1.0 - level) * p
        worst[np.argmin(z)] += level
        return float(worst @ z), worst, float(worst @ z)


OTHER_SETS: dict[str, Callable[[rm.MDP], rm.Ambiguity]] = {
    "nominal": lambda mdp: rm.Nominal(),
    "weights of pairs": lambda mdp: rm.Penalized(
        rm.Hellinger(), np.linspace(0.1, 2.0, mdp.n_states * mdp.n_actions).reshape(mdp.n_states, -1)
    ),
    "radii of states": lambda mdp: rm.SRectangular(rm.L2(np.linspace(0.0, 0.5, mdp.n_states))),
    "all states": lambda mdp: rm.L1(0.2, support="all"),
    "some states": lambda mdp: rm.Contamination(0.1, support=[0, mdp.n_states - 1]),
    "all states, L2": lambda mdp: rm.L2(0.2, support="all"),
    "weighted": lambda mdp: rm.L1(0.2, weights=np.linspace(1.0, 2.0, mdp.n_states + 1)),
    "optimistic": lambda mdp: rm.Optimistic(rm.CVaR(0.4)),
    "own": lambda mdp: Floor(),
    "mixed": lambda mdp: rm.MeanRisk(0.5, rm.EVaR(0.3)),
}
SOLVERS = [rm.ValueIteration(), rm.PolicyIteration()]


def assert_same_bits(one: rm.Solution, other: rm.Solution) -> None:
    assert (one.status, one.steps) == (other.status, other.steps)
    for name in ("value", "policy", "lower", "upper", "base"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    assert all(one.trace[name].tobytes() == other.trace[name].tobytes() for name in ("residual", "error_bound"))


def check(mdp: rm.MDP, ambiguity: rm.Ambiguity, solver: object) -> None:
    """Bar 1 of one problem."""
    solutions = [rm.solve(mdp, ambiguity, solver=solver, engine=rm.engine.Serial(count)) for count in (1, 2, 3, 4, 7)]
    for solution in solutions[1:]:
        assert_same_bits(solutions[0], solution)
    alone = rm.solve(mdp, ambiguity, solver=solver)
    assert alone.status.code == solutions[0].status.code == "converged"
    if isinstance(solver, rm.ValueIteration):
        assert_same_bits(solutions[0], alone)
    difference = np.abs(alone.value - solutions[0].value).max()
    assert difference <= alone.error_bound + solutions[0].error_bound


@pytest.mark.parametrize("solver", SOLVERS, ids=["vi", "pi"])
@pytest.mark.parametrize("ambiguity", SETS)
@pytest.mark.parametrize("model", MODELS)
def test_shards_do_not_change_the_bits(model: str, ambiguity: str, solver: object) -> None:
    check(MODELS[model], SETS[ambiguity](MODELS[model]), solver)


@pytest.mark.parametrize("solver", SOLVERS, ids=["vi", "pi"])
@pytest.mark.parametrize("ambiguity", OTHER_SETS)
def test_nor_with_any_other_set(ambiguity: str, solver: object) -> None:
    check(MODELS["ragged"], OTHER_SETS[ambiguity](MODELS["ragged"]), solver)


def test_a_model_from_noise() -> None:
    store = rm.MDP.from_noise(
        lambda stock, order, demand: (max(stock + order - demand, 0) % 12, min(stock + order, demand) - 0.3 * order),
        12, 4, np.full(5, 0.2), 0.9, values=np.arange(5),
    )  # fmt: skip
    check(store, rm.SharedNoise(rm.Constrained(rm.KL(), 0.1)), rm.PolicyIteration())
    check(store, rm.Penalized(rm.ChiSquare(), 1.0), rm.ValueIteration())


def test_more_threads_and_a_start() -> None:
    mdp, ambiguity = MODELS["garnet"], rm.Penalized(rm.ChiSquare(), 0.5)
    start = rm.solve(mdp, rm.Nominal()).value
    one, other = (
        rm.solve(mdp, ambiguity, engine=rm.engine.Serial(count), threads=count, start=start) for count in (1, 3)
    )
    assert_same_bits(one, other)
    assert one.steps < rm.solve(mdp, ambiguity, engine=rm.engine.Serial()).steps


def test_a_shard_keeps_the_values_that_it_reads() -> None:
    """Of a walk from state to state it needs few of the others', and numbers them anew."""
    from robustmdp.cluster import InProcessExchange
    from robustmdp.cluster.exchange import Assignment, Problem
    from robustmdp.models.part import Outline, Sizes

    source, cuts = walk(), [0, 1000, 2500, 5000]
    exchange = InProcessExchange(3, 1)
    sizes = Sizes.combine([each.sizes for each in exchange.load(Assignment([source] * 3, cuts, False))])
    exchange.prepare(Problem(Outline(sizes, 2, 0.95, False), [rm.Penalized(rm.KL(), 1.0)] * 3, cuts))
    assert [shard._part.n_columns for shard in exchange._shards] == [1002, 1502, 2500]
    assert exchange.traffic().bytes_sent == 8 * 4


def test_shards_of_a_walk() -> None:
    source, ambiguity = walk(), rm.Constrained(rm.TotalVariation(), 0.1)
    solutions = [rm.solve(source, ambiguity, engine=rm.engine.Serial(count), tol=1e-10) for count in (1, 4, 7)]
    for solution in solutions[1:]:
        assert_same_bits(solutions[0], solution)
    alone = rm.solve(source.to_mdp(), ambiguity, tol=1e-10)
    assert np.abs(alone.value - solutions[0].value).max() <= alone.error_bound + solutions[0].error_bound


def test_slow_mixing_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sweeps do not reach the accuracy: the sums of BiCGSTAB run over blocks, which shards do not cut."""
    from robustmdp.cluster import operator

    solves = []
    monkeypatch.setattr(operator, "bicgstab", lambda *arguments: solves.append(1) or linear.bicgstab(*arguments))
    monkeypatch.setattr("robustmdp.cluster.shard._MOST_BLOCKS", 13)
    grid, ambiguity = rm.problems.grid_world(20, discount=0.999), rm.Penalized(rm.ChiSquare(), 1.0)
    solutions = [rm.solve(grid, ambiguity, engine=rm.engine.Serial(count), tol=1e-6) for count in (1, 3)]
    assert solves
    assert_same_bits(*solutions)
    assert solutions[0].converged
