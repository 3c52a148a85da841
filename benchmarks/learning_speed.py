"""Steps per second on the chain, 32 replications, beside the baseline commit and a transcription of the paper."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product

import numba
import numpy as np
from scipy import LowLevelCallable

import robustmdp as rm
from benchmarks.figure import Figure, best_time
from benchmarks.workers import Request, start_workers
from robustmdp import theory

TOY = {"steps": 4_040, "replications": 2, "repeats": 1, "figure": False}
WEIGHT = 1.0


@numba.njit
def transcribed_two(p, r, gamma, lam, behaviour, steps, seed, d_min, d_max):
    """Algorithm 2 with V projected and beta capped, as one would write it down."""
    np.random.seed(seed)
    n_states, n_actions, _ = p.shape
    top = 1.0 / (1.0 - gamma)
    kappa = 1.0 / (6.0 * (lam + top))
    p_alpha = np.ceil(np.round((d_max / d_min) ** 1.5, 9))
    p_beta = np.ceil(np.round(d_max / ((1.0 - gamma) * d_min), 9))
    q = np.full((n_states, n_actions), top)
    eta = np.zeros((n_states, n_actions))
    s = 0
    for t in range(steps):
        a = 0
        u = np.random.random()
        while u >= behaviour[s, a] and a < n_actions - 1:
            u -= behaviour[s, a]
            a += 1
        s2 = 0
        u = np.random.random()
        while u >= p[s, a, s2] and s2 < n_states - 1:
            u -= p[s, a, s2]
            s2 += 1
        v = min(max(q[s2].max(), 0.0), top)
        alpha = 1.0 / (kappa * d_min * (t + p_alpha) ** (2.0 / 3.0))
        beta = min(1.0, 1.0 / ((1.0 - gamma) * d_min * (t + p_beta)))
        z = max((eta[s, a] - v) / (2.0 * lam) + 1.0, 0.0)
        j = eta[s, a] - lam * (z * z - 1.0)
        q[s, a] = (1.0 - beta) * q[s, a] + beta * (r[s, a] + gamma * j)
        eta[s, a] = min(max(eta[s, a] + alpha * (1.0 - z), -2.0 * lam), 2.0 * top + 2.0 * lam)
        s = s2
    return q


@numba.njit
def transcribed_one(p, r, gamma, lam, steps, inner_steps, seed):
    """Algorithm 1, as one would write it down."""
    np.random.seed(seed)
    n_states, n_actions, _ = p.shape
    top = 1.0 / (1.0 - gamma)
    q = np.full((n_states, n_actions), top)
    v = np.empty(n_states)
    for t in range(steps):
        for s in range(n_states):
            v[s] = min(max(q[s].max(), 0.0), top)
        beta = 1.0 / (1.0 + (1.0 - gamma) * t)
        for s in range(n_states):
            for a in range(n_actions):
                eta = 0.0
                for inner in range(inner_steps + 1):
                    s2 = 0
                    u = np.random.random()
                    while u >= p[s, a, s2] and s2 < n_states - 1:
                        u -= p[s, a, s2]
                        s2 += 1
                    z = max((eta - v[s2]) / (2.0 * lam) + 1.0, 0.0)
                    if inner == inner_steps:
                        j = eta - lam * (z * z - 1.0)
                        q[s, a] = (1.0 - beta) * q[s, a] + beta * (r[s, a] + gamma * j)
                    else:
                        eta += lam / np.sqrt(inner + 1.0) * (1.0 - z)
                        eta = min(max(eta, -2.0 * lam), 2.0 * top + 2.0 * lam)
    return q


def dense(world: rm.MDP) -> tuple[np.ndarray, np.ndarray]:
    """(S, A, S) probabilities and (S, A) rewards."""
    p = np.zeros((world.n_states, world.n_actions, world.n_states))
    for pair, (state, action) in enumerate(zip(world.states, world.actions, strict=True)):
        row = slice(world.indptr[pair], world.indptr[pair + 1])
        p[state, action, world.indices[row]] = world.probabilities[row]
    return p, world.table(world.rewards)


def figures(steps: int = 404_000, replications: int = 32, repeats: int = 3, figure: bool = True) -> Iterator[Figure]:
    yield from beside_baseline(steps // 2, replications)
    yield from beside_transcription(steps, replications, repeats)
    yield from beside_numba(50 * steps, repeats)
    if figure:
        yield time_of_figure()


def beside_baseline(samples: int, replications: int) -> Iterator[Figure]:
    """Both versions in turn, in processes of their own."""
    chi, kl = "chi-square penalty", "KL penalty"
    known = [
        *product(("Algorithm 1", "Algorithm 2"), ("paper",), (chi,), (1.2,)),
        *product(("Algorithm 1", "Algorithm 2"), ("default",), (chi, kl), (1.5,)),
    ]
    simulated = [("Algorithm 1", "default"), ("Algorithm 2", "default"), ("Algorithm 2", "epsilon-greedy")]
    requests, bars = {}, {}
    for algorithm, mode, ambiguity, bar in known:
        name, what = f"{algorithm}, {mode}, {ambiguity}", {"algorithm": algorithm, "mode": mode, "ambiguity": ambiguity}
        requests[name] = Request("learn", {**what, "samples": samples, "replications": replications})
        bars[name] = bar
    for algorithm, mode in simulated:
        name, what = (
            f"{algorithm}, {mode}, compiled simulator",
            {"algorithm": algorithm, "mode": mode, "ambiguity": chi},
        )
        # A long run: the baseline compiles its loops anew in each, in 0.1 s to 0.7 s.
        requests[name] = Request("learn_simulated", {**what, "samples": 50 * samples})
        bars[name] = 1.0
    with start_workers() as workers:
        times = workers.measure(requests, rounds=6)
    for name, seconds in times.items():
        yield from seconds.speedup(name, bars[name])
        goal = 50.0 if bars[name] == 1.5 else None
        yield Figure(f"{name}: million steps per second", 1e-6 / seconds.ours, at_most=False, unit="", goal=goal)


def beside_transcription(steps: int, replications: int, repeats: int) -> Iterator[Figure]:
    """Ours and the functions above in this process."""
    doubt = rm.Penalized(rm.ChiSquare(), WEIGHT)
    one, two = rm.problems.chain(), rm.problems.chain(restart=0.5)
    p1, r1 = dense(one)
    p2, r2 = dense(two)
    d_min, d_max = theory.occupancy(two)
    uniform = np.full((10, 2), 0.5)
    rounds = steps // 2020
    transcriptions = {
        "Algorithm 2": lambda function, n, seed: function(p2, r2, 0.9, WEIGHT, uniform, n, seed, d_min, d_max),
        "Algorithm 1": lambda function, n, seed: function(p1, r1, 0.9, WEIGHT, n // 2020, 100, seed),
    }
    functions = {"Algorithm 2": transcribed_two, "Algorithm 1": transcribed_one}
    learners = {
        "Algorithm 2": (two, rm.MarkovianQLearning.paper(doubt), rm.MarkovianQLearning(doubt)),
        "Algorithm 1": (one, rm.GenerativeQLearning.paper(doubt), rm.GenerativeQLearning(doubt)),
    }
    total = replications * rounds * 2020
    for name, (world, *modes) in learners.items():
        call, function = transcriptions[name], functions[name]
        few = min(20_200, steps)
        slow = few / best_time(lambda: call(function.py_func, few, 0), 1)
        naive = total / best_time(
            lambda: [call(function, rounds * 2020, seed) for seed in range(replications)], repeats
        )
        rates = [
            total / best_time(lambda: rates_of(mode, world, rounds * 2020, replications), repeats) for mode in modes
        ]
        print(
            f"    {name}, steps per second on one core: Python {slow:,.0f}, Numba transcription {naive:,.0f}, "
            f"paper mode {rates[0]:,.0f}, default {rates[1]:,.0f}"
        )
        yield Figure(f"{name}: paper mode / Numba transcription", rates[0] / naive, 2.0, at_most=False)
        yield Figure(f"{name}: default / Numba transcription", rates[1] / naive, 1.2, at_most=False)


@numba.njit
def step_chain(state, action, rng):
    """The chain as a function that Numba has compiled."""
    u = rng.random()
    if state == 9:
        return 0.0, 0 if u < 0.5 else 9, False
    return 1.0, state if u < (0.8 if action == 0 else 0.2) else state + 1, False


_NUMBERS = numba.types.CPointer(numba.types.int64)


@numba.cfunc(
    numba.types.void(
        numba.types.int64, numba.types.int64, numba.types.uint64, numba.types.CPointer(numba.types.double), _NUMBERS,
        _NUMBERS, numba.types.voidptr,
    )
)  # fmt: skip
def step_chain_by_address(state, action, random, reward, next_state, terminated, user_data):
    """The same as machine code that the core calls."""
    u = (random >> np.uint64(11)) * 2.0**-53
    reward[0] = 0.0 if state == 9 else 1.0
    if state == 9:
        next_state[0] = 0 if u < 0.5 else 9
    else:
        next_state[0] = state if u < (0.8 if action == 0 else 0.2) else state + 1


def beside_numba(samples: int, repeats: int) -> Iterator[Figure]:
    """A simulator in machine code beside one that Numba's loops call."""
    doubt = rm.Penalized(rm.ChiSquare(), WEIGHT)
    learners = {
        "rounds": rm.GenerativeQLearning(doubt),
        "a trajectory": rm.MarkovianQLearning(doubt),
        "epsilon-greedy": rm.MarkovianQLearning(doubt, rm.EpsilonGreedy(0.1)),
    }
    functions = step_chain, LowLevelCallable(step_chain_by_address.ctypes)
    worlds = [rm.Simulator(function, 10, 2, 0.9, (0.0, 1.0)) for function in functions]
    for name, learner in learners.items():
        learner.run(worlds[0], samples=1_000)  # Numba compiles
        looped, called = (
            best_time(lambda: learner.run(world, samples=samples, record_every=10**12), repeats) for world in worlds
        )
        yield Figure(f"{name}, machine code / numba.njit: speed", looped / called, 1.0, at_most=False)


def time_of_figure() -> Figure:
    """The paper's figure of all weights."""
    world, start = rm.problems.chain(restart=0.5), time.perf_counter()
    for weight in (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0):
        learner = rm.MarkovianQLearning.paper(rm.Penalized(rm.ChiSquare(), weight))
        learner.run_many(world, 4_000_000, seeds=100, record_every=40_000)
    return Figure("100 seeds x 7 lambdas x 4e6 steps, all cores", time.perf_counter() - start, 90.0, unit="s")


def rates_of(learner: object, world: rm.MDP, samples: int, replications: int) -> None:
    """One timed run."""
    learner.run_many(world, samples=samples, seeds=replications, threads=1, record_every=10**12)
