"""Bar 5: whole solves, against quantecon, mdpsolver and our own value iteration."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp

import robustmdp as rm
from benchmarks.figure import Figure, best_time

_TOL = 1e-6
_CHI_SQUARE = rm.Penalized(rm.ChiSquare(), 1.0)


def figures() -> list[Figure]:
    garnet = rm.problems.garnet(10_000, 10, 10, 0.95, seed=0)
    ours = best_time(lambda: rm.solve(garnet, _CHI_SQUARE, tol=_TOL), 9)
    one_core = best_time(lambda: rm.solve(garnet, _CHI_SQUARE, tol=_TOL, threads=1), 9)
    quantecon = _quantecon(garnet)
    found = [
        Figure("robust solve / quantecon's nominal modified PI, garnet 0.95, all cores", ours / quantecon, 2.0),
        Figure("robust solve / quantecon's nominal modified PI, garnet 0.95, one core", one_core / quantecon),
        Figure(
            "nominal solve / quantecon's nominal modified PI",
            best_time(lambda: rm.solve(garnet, rm.Nominal(), tol=_TOL)) / quantecon,
        ),
        Figure("robust solve / mdpsolver's nominal value iteration, garnet 0.95", ours / _mdpsolver(garnet)),
    ]
    for discount, bar in ((0.95, 30.0), (0.999, 300.0)):
        world = garnet.with_discount(discount)
        fast = best_time(lambda world=world: rm.solve(world, _CHI_SQUARE, tol=_TOL), 5)
        found += [
            Figure(
                f"textbook value iteration / solve, garnet {discount}",
                _value_iteration(world, "residual") / fast,
                bar,
                False,
            ),
            Figure(f"span-stopped value iteration / solve, garnet {discount}", _value_iteration(world, "span") / fast),
        ]
    return found + _grid()


def _grid() -> list[Figure]:
    """200 x 200 cells at 0.999, both to the same certified tolerance."""
    grid = rm.problems.grid_world(200, discount=0.999)
    fast = best_time(lambda: rm.solve(grid, _CHI_SQUARE, tol=_TOL), 3)
    slow = best_time(lambda: rm.solve(grid, _CHI_SQUARE, tol=_TOL, solver=rm.ValueIteration()), 1)
    return [Figure("span-stopped value iteration / solve, grid 40,000 states, 0.999", slow / fast, 10.0, False)]


def _value_iteration(world: rm.MDP, stopping: str) -> float:
    solver = rm.ValueIteration(stopping=stopping)
    return best_time(lambda: rm.solve(world, _CHI_SQUARE, tol=_TOL, solver=solver), 1)


def _quantecon(mdp: rm.MDP) -> float:
    from quantecon.markov import DiscreteDP

    chain = sp.csr_matrix((mdp.probabilities, mdp.indices, mdp.indptr), shape=(mdp.n_pairs, mdp.n_states))
    states = mdp.states
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = DiscreteDP(mdp.rewards, chain, mdp.discount, states, np.asarray(mdp.actions))
        scale = float(np.abs(rm.solve(mdp, rm.Nominal()).value).max())
        return best_time(lambda: problem.solve(method="modified_policy_iteration", epsilon=_TOL * scale), 9)


def _mdpsolver(mdp: rm.MDP) -> float:
    import mdpsolver

    size, k = mdp.n_actions, int(np.diff(mdp.indptr)[0])
    model = mdpsolver.model()
    model.mdp(
        discount=mdp.discount,
        rewards=np.asarray(mdp.rewards).reshape(mdp.n_states, size).tolist(),
        tranMatProbs=mdp.probabilities.reshape(mdp.n_states, size, k).tolist(),
        tranMatColumns=mdp.indices.reshape(mdp.n_states, size, k).tolist(),
    )
    return best_time(lambda: model.solve(algorithm="vi", tolerance=1e-4, update="standard", parallel=False), 3)
