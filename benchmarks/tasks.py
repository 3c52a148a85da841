"""What is timed: tasks that this tree and the baseline commit both run, through the public names they share.

Each function builds its worlds and operators and returns a `Task`, whose `call` is what the clock sees. Arguments come
as JSON from another process (see `workers`): numbers, and the names of worlds and sets. Peers are imported where they
are used, because the environment of the baseline does not have them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import robustmdp as rm

TOL = 1e-6
ROW_LENGTH = 100  # successors of the single problem that is also given to cvxpy


class Task(NamedTuple):
    """`call` holds `count` repetitions of what is timed; `before` runs ahead of each call, outside the clock."""

    call: Callable[[], object]
    count: int = 1
    before: Callable[[], object] | None = None


# Sets, with radii at which a ball moves about as much mass for each divergence.

_DIVERGENCES = {
    "chi-square": (rm.ChiSquare(), 0.5),
    "total variation": (rm.TotalVariation(), 0.2),
    "KL": (rm.KL(), 0.2),
    "Hellinger": (rm.Hellinger(), 0.1),
    "Burg": (rm.Burg(), 0.2),
    "Jensen-Shannon": (rm.JensenShannon(), 0.1),
    "Cressie-Read 0.5": (rm.CressieRead(0.5), 0.2),
    "Cressie-Read 3": (rm.CressieRead(3.0), 0.2),
}
SETS = {
    "nominal": rm.Nominal(),
    **{f"{name} penalty": rm.Penalized(f, 1.0) for name, (f, _) in _DIVERGENCES.items()},
    **{f"{name} ball": rm.Constrained(f, radius) for name, (f, radius) in _DIVERGENCES.items()},
}


# Worlds


def garnet(n_states: int, n_actions: int, n_successors: int, discount: float) -> rm.MDP:
    return rm.problems.garnet(n_states, n_actions, n_successors, discount, seed=0)


def slow_grid(size: int, discount: float) -> rm.MDP:
    return rm.problems.grid_world(size, discount=discount)


def short_rows(size: int) -> rm.MDP:
    """A grid of size x size: a step goes as meant or slips to its right, on every other cell also to its left."""
    moves = ((-1, 0), (0, 1), (1, 0), (0, -1))
    cells = np.arange(size * size)
    row, column = np.divmod(cells, size)
    targets = [np.clip(row + dr, 0, size - 1) * size + np.clip(column + dc, 0, size - 1) for dr, dc in moves]
    two_sided = (row + column) % 2 == 1
    parts = []
    for action in range(4):
        left = np.where(two_sided, 0.1, 0.0)
        for turn, chance in ((0, np.full(len(cells), 0.8)), (1, 0.2 - left), (3, left)):
            there = np.flatnonzero(chance)
            following = targets[(action + turn) % 4][there]
            parts.append((there, np.full(len(there), action), following, chance[there]))
    state, action, following, probability = (np.concatenate(part) for part in zip(*parts, strict=True))
    rewards = np.random.default_rng(0).random(len(cells))
    return rm.MDP.from_rows(state, action, following, probability, rewards[state], 0.95, n_states=len(cells))


def ragged_rows(n_states: int, n_actions: int, longest: int) -> rm.MDP:
    """Rows of 1 to `longest` successors, uniform on a logarithmic scale: most are short."""
    rng = np.random.default_rng(0)
    pairs = n_states * n_actions
    sizes = np.floor((longest + 1.0) ** rng.random(pairs)).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    pair = np.repeat(np.arange(pairs), sizes)
    place = np.arange(len(pair)) - starts[pair]
    step = rng.integers(1, n_states // longest + 1, pairs)  # keeps the successors of a row different
    following = (rng.integers(0, n_states, pairs)[pair] + place * step[pair]) % n_states
    mass = rng.exponential(size=len(pair))
    probability = mass / np.add.reduceat(mass, starts)[pair]
    state, action = np.divmod(pair, n_actions)
    return rm.MDP.from_rows(state, action, following, probability, rng.random(pairs)[pair], 0.95, n_states=n_states)


@lru_cache(maxsize=1)
def _world(name: str, *sizes: float) -> rm.MDP:
    worlds = {"garnet": garnet, "slow grid": slow_grid, "short rows": short_rows, "ragged rows": ragged_rows}
    return worlds[name](*sizes)


# Sweeps


def iterates(n_states: int) -> list[np.ndarray]:
    """Successive iterates differ a little, as in a solver: nothing starts from its own answer."""
    rng = np.random.default_rng(0)
    first = rng.random(n_states) * 10.0
    return [first + 0.05 * rng.random(n_states) for _ in range(3)]


def sweep(world: list, ambiguity: str, threads: int) -> Task:
    mdp = _world(*world)
    bellman = rm.RobustBellman(mdp, SETS[ambiguity], threads=threads)
    values, out = cycle(iterates(mdp.n_states)), np.empty(mdp.n_states)
    return Task(lambda: bellman.apply(next(values), out))


def scipy_sweep(world: list) -> Task:
    """The nominal sweep as a sparse product and a maximum; every state has all actions."""
    mdp = _world(*world)
    matrix = sp.csr_array((mdp.probabilities, mdp.indices, mdp.indptr), shape=(mdp.n_pairs, mdp.n_states))
    v = iterates(mdp.n_states)[0]
    shape = mdp.n_states, mdp.n_actions
    return Task(lambda: (mdp.rewards + mdp.discount * (matrix @ v)).reshape(shape).max(axis=1))


def read_arrays(world: list) -> Task:
    """Every byte of the model's large arrays once, as sums of eight-byte numbers."""
    mdp = _world(*world)
    successors = mdp.indices[: mdp.nnz // 2 * 2].view(np.int64)
    return Task(lambda: (mdp.probabilities.sum(), successors.sum(), mdp.rewards.sum()))


# Solvers


def solve(world: list, ambiguity: str, threads: int, value_iteration: str | None = None) -> Task:
    """The default solver, or value iteration with the stopping rule `value_iteration`."""
    mdp, chosen = _world(*world), SETS[ambiguity]
    solver = rm.ValueIteration(stopping=value_iteration) if value_iteration else None

    def run() -> None:
        if not rm.solve(mdp, chosen, tol=TOL, threads=threads, solver=solver).converged:
            raise RuntimeError(f"{ambiguity}: no convergence to {TOL:g}")

    return Task(run)


def quantecon(world: list) -> Task:
    """Nominal modified policy iteration; its epsilon is absolute, our tol relative to the largest value."""
    from quantecon.markov import DiscreteDP

    mdp = _world(*world)
    chain = sp.csr_matrix((mdp.probabilities, mdp.indices, mdp.indptr), shape=(mdp.n_pairs, mdp.n_states))
    scale = float(np.abs(rm.solve(mdp, rm.Nominal()).value).max())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = DiscreteDP(np.asarray(mdp.rewards), chain, mdp.discount, mdp.states, np.asarray(mdp.actions))
    return Task(lambda: problem.solve(method="modified_policy_iteration", epsilon=TOL * scale))


def mdpsolver(world: list) -> Task:
    """Nominal value iteration; every pair has equally many successors."""
    import mdpsolver

    mdp = _world(*world)
    size, k = mdp.n_actions, int(np.diff(mdp.indptr)[0])
    model = mdpsolver.model()
    model.mdp(
        discount=mdp.discount,
        rewards=np.asarray(mdp.rewards).reshape(mdp.n_states, size).tolist(),
        tranMatProbs=mdp.probabilities.reshape(mdp.n_states, size, k).tolist(),
        tranMatColumns=mdp.indices.reshape(mdp.n_states, size, k).tolist(),
    )
    return Task(lambda: model.solve(algorithm="vi", tolerance=1e-4, update="standard", parallel=False))


# Single problems


def _rows(count: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(length)), rng.random((count, length)) * 10.0


def rows(count: int) -> Task:
    """`count` chi-square penalty problems of weight 1 in a loop, each with other values and without a warm start."""
    p, values = _rows(count, ROW_LENGTH)
    state, following = np.divmod(np.arange(values.size), ROW_LENGTH)
    mdp = rm.MDP.from_rows(
        state, np.zeros_like(state), following, np.tile(p, count), values.ravel(), 0.5, n_states=max(count, ROW_LENGTH)
    )
    v, out = np.zeros(mdp.n_states), np.empty(mdp.n_states)
    cold: list[rm.RobustBellman] = []
    weight = 1.0 / mdp.discount  # the operator discounts the penalty as well
    return Task(
        call=lambda: cold.pop().apply(v, out),
        count=count,
        before=lambda: cold.append(rm.RobustBellman(mdp, rm.Penalized(rm.ChiSquare(), weight), threads=1)),
    )


def cvxpy(count: int) -> Task:
    """The same problems by cvxpy with Clarabel, the problem built once and its parameter changed."""
    import cvxpy as cp

    p, values = _rows(count, ROW_LENGTH)
    q, v = cp.Variable(ROW_LENGTH, nonneg=True), cp.Parameter(ROW_LENGTH)
    # Scaled by sqrt(p), the chi-square divergence is a plain sum of squares.
    divergence = cp.sum_squares(cp.multiply(1.0 / np.sqrt(p), q) - np.sqrt(p))
    problem = cp.Problem(cp.Minimize(v @ q + divergence), [cp.sum(q) == 1])
    turn = cycle(values)

    def solve_next() -> None:
        v.value = next(turn)
        problem.solve(solver=cp.CLARABEL)

    solve_next()
    ours = rm.worst_case(SETS["chi-square penalty"], p, values[0]).value
    if abs(problem.value - ours) > 1e-6:
        raise RuntimeError(f"cvxpy and robustmdp disagree: {problem.value} and {ours}")
    return Task(solve_next)


def worst_case(ambiguity: str, length: int, count: int) -> Task:
    p, values = _rows(count, length)
    chosen = SETS[ambiguity]

    def call_each() -> None:
        for v in values:
            rm.worst_case(chosen, p, v)

    return Task(call_each, count)


def solve_chain(count: int) -> Task:
    mdp, chosen = rm.problems.chain(), SETS["chi-square penalty"]

    def call_each() -> None:
        for _ in range(count):
            rm.solve(mdp, chosen)

    return Task(call_each, count)


# Learners, on the paper's chain


def _learner(algorithm: str, mode: str, ambiguity: str) -> Any:
    kinds = {"Algorithm 1": rm.GenerativeQLearning, "Algorithm 2": rm.MarkovianQLearning}
    kind, chosen = kinds[algorithm], SETS[ambiguity]
    if mode == "epsilon-greedy":
        return kind(chosen, rm.EpsilonGreedy(0.2))
    return kind.paper(chosen) if mode == "paper" else kind(chosen)


def learn(algorithm: str, mode: str, ambiguity: str, samples: int, replications: int) -> Task:
    """Steps of all replications on one core."""
    learner = _learner(algorithm, mode, ambiguity)
    chain = rm.problems.chain(restart=0.5 if algorithm == "Algorithm 2" else 0.0)
    options = {"seeds": replications, "threads": 1, "record_every": 10**12}
    return Task(lambda: learner.run_many(chain, samples=samples, **options), samples * replications)


def learn_simulated(algorithm: str, mode: str, ambiguity: str, samples: int) -> Task:
    """Steps of one run on the chain as a function that Numba has compiled."""
    import numba

    @numba.njit
    def step_chain(state, action, rng):
        u = rng.random()
        if state == 9:
            return 0.0, 0 if u < 0.5 else 9, False
        return 1.0, state if u < (0.8 if action == 0 else 0.2) else state + 1, False

    learner, world = _learner(algorithm, mode, ambiguity), rm.Simulator(step_chain, 10, 2, 0.9, (0.0, 1.0))
    return Task(lambda: learner.run(world, samples=samples, record_every=10**12), samples)


TASKS: dict[str, Callable[..., Task]] = {
    function.__name__: function
    for function in (
        sweep, scipy_sweep, read_arrays, solve, quantecon, mdpsolver, rows, cvxpy, worst_case, solve_chain, learn,
        learn_simulated,
    )
}  # fmt: skip
