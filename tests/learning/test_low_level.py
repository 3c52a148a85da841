"""Simulators in machine code: the documented signature, from every tool, with the same bits however a run is split."""

from __future__ import annotations

import ctypes
import pickle
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import types
from scipy import LowLevelCallable, stats

import robustmdp as rm
from robustmdp.learning.sources import Experience, source_of

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
N, M, DISCOUNT = 3, 2, 0.9
DOUBT = rm.Penalized(rm.ChiSquare(), 1.0)
PLAIN = {"discount": None, "reward_range": None, "start": None}

# P[s, a, s'], whose last column is the end, and rewards on (s, a, s').
_rng = np.random.default_rng(6)
P = np.concatenate([0.9 * _rng.dirichlet(np.ones(N), (N, M)), np.full((N, M, 1), 0.1)], axis=2)
EDGES = P.cumsum(axis=2)
R = np.round(_rng.normal(size=(N, M, N + 1)), 2)
RANGE = (float(R.min()), float(R.max()))
SIZES = N, M, DISCOUNT, RANGE

# The tables are the user data: cumulative probabilities and rewards of (s, a, s').
SOURCE = """
#include <stdint.h>

void sample(int64_t state, int64_t action, uint64_t random, double *reward, int64_t *next_state, int64_t *terminated,
            void *user_data) {
    const double *edges = (double *)user_data + (2 * state + action) * 4, *rewards = edges + 24;
    const double u = (random >> 11) * 0x1p-53;
    int64_t following = 0;
    while (following < 3 && u >= edges[following]) ++following;
    *reward = rewards[following];
    *next_state = following;
    *terminated = following == 3;
}
"""
ARGUMENTS = (
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_uint64,
    ctypes.POINTER(ctypes.c_double),
    ctypes.POINTER(ctypes.c_int64),
    ctypes.POINTER(ctypes.c_int64),
    ctypes.c_void_p,
)
TABLES = np.concatenate([EDGES.ravel(), R.ravel()])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if COMPILER is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("simulator")
    (folder / "sample.c").write_text(SOURCE)
    options = ["-O2", "-shared", "-fPIC", "-std=c99"]
    subprocess.run([COMPILER, *options, "-o", folder / "sample.so", folder / "sample.c"], check=True)
    return ctypes.CDLL(str(folder / "sample.so"))


@pytest.fixture(scope="module")
def world(library: Any) -> rm.Simulator:
    function = library.sample
    function.restype, function.argtypes = None, ARGUMENTS
    return rm.Simulator(LowLevelCallable(function, ctypes.c_void_p(TABLES.ctypes.data)), *SIZES)


@pytest.fixture(autouse=True)
def short_runs() -> Iterator[None]:
    """They may leave an action untried; that is not what is tested here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the behaviour policy must visit every pair", RuntimeWarning)
        yield


def model() -> rm.MDP:
    state, action, following = (axis.ravel() for axis in np.indices((N, M, N + 1)))
    return rm.MDP.from_rows(state, action, following, P.ravel(), R.ravel(), DISCOUNT, n_states=N)


def yardstick(samples: int, *, trajectory: bool) -> float:
    """The average error of the counted model, which is what samples are worth."""
    exact = rm.solve(model(), DOUBT, tol=1e-11).q
    counted = rm.PlugIn(DOUBT, trajectory=trajectory)
    solutions = counted.run_many(model(), samples=samples, seeds=10, record_every=10**9)
    return float(np.mean([np.abs(solution.q - exact).max() for solution in solutions]))


def same(a: rm.Solution, b: rm.Solution) -> bool:
    """Equal to the bit in all that was learned."""
    return all(np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True) for name in ("q", "visits", "eta"))


def from_python(function: Any) -> LowLevelCallable:
    return LowLevelCallable(ctypes.CFUNCTYPE(None, *ARGUMENTS)(function))


def answer(reward: float, next_state: int, terminated: int = 0) -> LowLevelCallable:
    """A simulator that always answers this."""

    def sample(state, action, random, rewards, successors, ends, user_data):
        rewards[0], successors[0], ends[0] = reward, next_state, terminated

    return from_python(sample)


def outcomes(world: rm.Simulator, pair: int, count: int, seed: int = 0) -> Any:
    return source_of(world, None, [seed], **PLAIN).draws(0, 0, pair, count)


# The function.


@pytest.mark.parametrize("pair", range(N * M))
def test_outcomes_come_as_often_as_the_code_says(world: rm.Simulator, pair: int) -> None:
    rewards, following = outcomes(world, pair, 100_000)
    p = np.diff(EDGES.reshape(N * M, N + 1)[pair], prepend=0.0)
    assert stats.chisquare(np.bincount(following, minlength=N + 1), 100_000 * p).pvalue > 1e-3
    assert np.array_equal(rewards, R.reshape(N * M, N + 1)[pair, following])


def test_random_bits_are_a_function_of_seed_and_position() -> None:
    seen = []
    sample = from_python(lambda state, action, random, *rest: seen.append((state, action, random)))
    with pytest.raises(ValueError, match="next_state"):  # it answers nothing
        outcomes(rm.Simulator(sample, 4, 3, 0.9, (0.0, 1.0)), 7, 1)
    assert seen[0][:2] == (2, 1)

    def keep(state, action, random, rewards, successors, ends, user_data):
        seen.append(random)
        rewards[0], successors[0] = 0.0, 0

    world = rm.Simulator(from_python(keep), 4, 3, 0.9, (0.0, 1.0))
    seen.clear()
    outcomes(world, 0, 1000)
    first = list(seen)
    seen.clear()
    rest = source_of(world, None, [0], **PLAIN)
    for start in (900, 0, 450):
        rest.draws(0, start, 0, 100)
    assert seen == first[900:] + first[:100] + first[450:550]
    assert len(set(first)) == 1000
    assert stats.kstest(np.array(first, dtype=np.uint64).astype(float) * 2.0**-64, "uniform").pvalue > 1e-3


def test_numba_cfunc_gives_the_bits_of_c(world: rm.Simulator) -> None:
    pointer = types.CPointer
    kinds = types.int64, types.int64, types.uint64, pointer(types.float64), pointer(types.int64), pointer(types.int64)

    @numba.cfunc(types.void(*kinds, types.voidptr))
    def sample(state, action, random, reward, next_state, terminated, user_data):
        u, following = (random >> np.uint64(11)) * 2.0**-53, 0
        while following < N and u >= EDGES[state, action, following]:
            following += 1
        reward[0], next_state[0], terminated[0] = R[state, action, following], following, following == N

    other = rm.Simulator(LowLevelCallable(sample.ctypes), *SIZES)
    learner = rm.MarkovianQLearning(DOUBT)
    assert same(learner.run(world, 20_000), learner.run(other, 20_000))


def test_cffi_gives_the_bits_of_ctypes(library: Any, world: rm.Simulator) -> None:
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    ffi.cdef("void sample(int64_t, int64_t, uint64_t, double *, int64_t *, int64_t *, void *);")
    function = ffi.dlopen(library._name).sample
    tables = ffi.cast("void *", TABLES.ctypes.data)
    other = rm.Simulator(LowLevelCallable(function, tables), *SIZES)
    assert same(*(rm.GenerativeQLearning(DOUBT).run(each, 500) for each in (world, other)))


@pytest.mark.parametrize(
    "signature",
    [
        "void (int64_t, int64_t, uint64_t, double *, int64_t *, int64_t *, void *)",
        "void(long long,long long,unsigned long long,double*,long long*,long long*,void*)",
        "void (npy_int64, npy_int64, npy_uint64, npy_double *, npy_int64 *, npy_int64 *, void *)",
        "void (const int64_t, int64_t, uint64_t, double *, signed long long int *, int64_t *, void *)",
    ],
)
def test_signatures_that_say_the_same(signature: str) -> None:
    function = ctypes.CFUNCTYPE(None, *ARGUMENTS)(lambda *rest: None)
    rm.Simulator(LowLevelCallable(function, signature=signature), 2, 1, 0.9, (0.0, 1.0))


@pytest.mark.parametrize(
    "signature",
    [
        "double (double)",
        "void (int64_t, int64_t, uint64_t, double *, int64_t *, int64_t *)",
        "int (int64_t, int64_t, uint64_t, double *, int64_t *, int64_t *, void *)",
        "void (int64_t, int64_t, int64_t, double *, int64_t *, int64_t *, void *)",
        "void (int, int64_t, uint64_t, double *, int64_t *, int64_t *, void *)",
        "void (int64_t, int64_t, uint64_t, float *, int64_t *, int64_t *, void *)",
        "void (int64_t, int64_t, uint64_t, double *, int64_t *, int *, void *)",
        "void (int64_t, int64_t, uint64_t, double, int64_t *, int64_t *, void *)",
        "sample",
    ],
)
def test_other_signatures_are_refused(signature: str) -> None:
    function = ctypes.CFUNCTYPE(None, *ARGUMENTS)(lambda *rest: None)
    with pytest.raises(TypeError) as refused:
        rm.Simulator(LowLevelCallable(function, signature=signature), 2, 1, 0.9, (0.0, 1.0))
    wanted = "void (int64_t, int64_t, uint64_t, double *, int64_t *, int64_t *, void *)"
    assert str(refused.value) == f"a LowLevelCallable must have the signature '{wanted}': got '{signature}'"


# Learning.


def test_rounds_are_learned(world: rm.Simulator) -> None:
    exact = rm.solve(model(), DOUBT, tol=1e-11).q
    learned = rm.GenerativeQLearning(DOUBT).run(world, samples=30_000, seed=4)
    assert np.abs(learned.q - exact).max() <= 2 * yardstick(30_000, trajectory=False)
    assert np.array_equal(learned.visits, np.full((N, M), 5000))


@pytest.mark.parametrize("behaviour", [None, [0.3, 0.7], rm.EpsilonGreedy(0.3), "function"], ids=str)
def test_trajectories_are_learned(world: rm.Simulator, behaviour: Any) -> None:
    if behaviour == "function":
        behaviour = lambda state, step, q, visits: [0.4, 0.6]  # noqa: E731
    exact = rm.solve(model(), DOUBT, tol=1e-11)
    runs = rm.MarkovianQLearning(DOUBT, behaviour).run_many(world, 20_000, seeds=3)
    error = np.mean([np.abs(learned.q - exact.q).max() for learned in runs])
    assert error <= 3 * yardstick(20_000, trajectory=True)
    assert all(learned.visits.sum() == 20_000 for learned in runs)
    assert all(np.array_equal(learned.policy, exact.policy) for learned in runs)


@pytest.mark.parametrize(
    "learner",
    [
        rm.GenerativeQLearning(DOUBT),
        rm.GenerativeQLearning.paper(DOUBT, inner_steps=5),
        rm.MarkovianQLearning(DOUBT),
        rm.MarkovianQLearning(DOUBT, rm.EpsilonGreedy(0.3)),
        rm.MarkovianQLearning.paper(DOUBT),
        rm.PlugIn(DOUBT),
        rm.MultilevelQLearning(rm.Constrained(rm.KL(), 0.1)),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_equal_bits_side_by_side_and_on_threads(world: rm.Simulator, learner: Any) -> None:
    steps = 200 if learner.generative else 5000
    alone = [learner.run(world, steps, seed=seed) for seed in (3, 8, 9)]
    for threads in (1, 2):
        many = learner.run_many(world, steps, seeds=[3, 8, 9], threads=threads)
        for one, other in zip(alone, many, strict=True):
            assert np.array_equal(one.q, other.q)
            assert np.array_equal(one.visits, other.visits)
    assert not np.array_equal(alone[0].q, alone[1].q)


@pytest.mark.parametrize("confidence", [None, 0.9])
@pytest.mark.parametrize(
    "learner",
    [rm.GenerativeQLearning(DOUBT), rm.MarkovianQLearning(DOUBT), rm.MarkovianQLearning(DOUBT, rm.EpsilonGreedy(0.3))],
    ids=lambda learner: f"{type(learner).__name__}-{learner.behaviour}",
)
def test_interrupted_and_resumed_to_the_same_bits(
    world: rm.Simulator, tmp_path: Path, learner: Any, confidence: float | None
) -> None:
    steps, path = (400 if learner.generative else 6000), tmp_path / "run.ckpt"
    whole = learner.run(world, steps, seed=2, confidence=confidence)
    stopped = learner.run(
        world, steps, seed=2, confidence=confidence, checkpoint=path, progress=lambda now: now.step >= steps // 3
    )
    assert stopped.steps < steps
    resumed = rm.resume(path, world)
    assert same(whole, resumed)
    assert np.array_equal(whole.lower, resumed.lower)
    with pytest.raises(ValueError, match=r"that is not an MDP must be given again: .* from a Simulator"):
        rm.resume(path)
    other = rm.Simulator(world.sample, *SIZES, start=1)
    with pytest.raises(ValueError, match="must be resumed in its own world"):
        rm.resume(path, other)


@pytest.mark.parametrize("generative", [True, False])
def test_certificates_hold(world: rm.Simulator, generative: bool) -> None:
    kind = rm.GenerativeQLearning if generative else rm.MarkovianQLearning
    exact = rm.solve(model(), DOUBT, tol=1e-11)
    for learned in kind(DOUBT).run_many(world, samples=60_000, seeds=5, confidence=0.95):
        assert learned.confidence == 0.95
        assert np.all(learned.lower <= exact.value)
        assert np.all(exact.value <= learned.upper)
        assert np.all(learned.upper - learned.lower < 0.5 * (RANGE[1] - RANGE[0]) / (1 - DISCOUNT))


@pytest.mark.parametrize("policy", [[1, 0, 1], [[0.3, 0.7], [1.0, 0.0], [0.5, 0.5]]], ids=["actions", "mixed"])
def test_the_value_of_a_policy(world: rm.Simulator, policy: Any) -> None:
    learned, truth = rm.learn_value(world, policy, DOUBT, samples=30_000), rm.evaluate(model(), policy, DOUBT)
    assert np.all(learned.lower <= truth.value)
    assert np.all(truth.value <= learned.upper)
    assert np.abs(learned.value - truth.value).max() < 0.2


def test_start_discount_and_rewards_can_be_changed(world: rm.Simulator) -> None:
    learned = rm.MarkovianQLearning(DOUBT).run(world, 100, start=2, discount=0.5, reward_range=(-9.0, 9.0))
    assert learned.value.max() < 9.0 / 0.5
    room = Experience.empty(1, 1)
    source_of(world, None, [0], **{**PLAIN, "start": 2}).follow_policy(0, room)
    assert room.states[0, 0] == 2


# What a simulator must not answer.

LEARNERS = [
    rm.GenerativeQLearning(DOUBT),
    rm.GenerativeQLearning.paper(DOUBT, inner_steps=2),
    rm.MarkovianQLearning(DOUBT),
    rm.MarkovianQLearning(DOUBT, rm.EpsilonGreedy(0.5)),
    rm.MarkovianQLearning(DOUBT, lambda state, step, q, visits: [0.5, 0.5]),
    rm.PlugIn(DOUBT, trajectory=True),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=range(len(LEARNERS)))
@pytest.mark.parametrize(
    ("sample", "sentence"),
    [
        (answer(0.5, 3), r"next_state must lie in 0\.\.2: got 3 from state 0, action [01]"),
        (answer(0.5, -1), r"next_state must lie in 0\.\.2: got -1 from state 0, action [01]"),
        (answer(0.5, 1 << 40), rf"next_state must lie in 0\.\.2: got {1 << 40} from state 0, action [01]"),
        (answer(2.0, 0), r"reward must lie in reward_range \[0, 1\]: got 2\.0 from state 0, action [01]"),
        (answer(float("nan"), 0), r"reward must lie in reward_range \[0, 1\]: got nan from state 0, action [01]"),
        (answer(-1e-9, 9, 1), r"reward must lie in reward_range \[0, 1\]: got -1e-09 from state 0, action [01]"),
    ],
    ids=["next", "before", "far", "reward", "nan", "last reward"],
)
def test_simulators_that_lie(sample: Any, sentence: str, learner: Any) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        learner.run(rm.Simulator(sample, 3, 2, 0.9, (0.0, 1.0)), samples=100)


def test_the_successor_of_an_ending_does_not_matter() -> None:
    learned = rm.GenerativeQLearning(rm.Nominal()).run(rm.Simulator(answer(1.0, -5, 1), 3, 2, 0.9, (0.0, 1.0)), 10)
    assert np.array_equal(learned.q, np.ones((3, 2)))


def test_an_address_does_not_travel(world: rm.Simulator) -> None:
    with pytest.raises(TypeError, match="a Simulator must have a function of Python to be pickled"):
        pickle.dumps(world)


def test_no_numba_is_needed(library: Any) -> None:
    code = f"""
import sys
sys.modules["numba"] = None
import ctypes, numpy as np, robustmdp as rm
from scipy import LowLevelCallable
function = ctypes.CDLL({library._name!r}).sample
number, pointer = ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)
function.restype = None
function.argtypes = number, number, ctypes.c_uint64, ctypes.POINTER(ctypes.c_double), pointer, pointer, ctypes.c_void_p
tables = np.array({TABLES.tolist()!r})
sample = LowLevelCallable(function, ctypes.c_void_p(tables.ctypes.data))
world = rm.Simulator(sample, {N}, {M}, {DISCOUNT}, {RANGE!r})
print(rm.MarkovianQLearning(rm.Penalized(rm.ChiSquare(), 1.0)).run(world, 2000).samples)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "2000\n"
