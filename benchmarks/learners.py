"""Accuracy at equal samples: our defaults, the printed algorithms and the plug-in estimate; mean of max |Q - Q*|."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

import robustmdp as rm
from benchmarks.figure import Figure

TOY = {"seeds": 2, "scale": 0.02, "names": ("chi2",), "stays": (0.8,)}
LAMBDAS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0)
STAYS = (0.6, 0.8, 0.889, 0.95)
DIVERGENCES = {"chi2": rm.ChiSquare(), "kl": rm.KL(), "hellinger": rm.Hellinger()}


def tied_world() -> rm.MDP:
    """A garnet in which every action exists twice, so that every maximum is a tie."""
    world = rm.problems.garnet(10, 2, 4, 0.9, seed=3)
    states, sizes = world.states, np.diff(world.indptr)
    columns = np.repeat(states, sizes), world.indices, world.probabilities, np.repeat(world.rewards, sizes)
    state, following, probability, reward = (np.tile(column, 2) for column in columns)
    action = np.repeat(world.actions, sizes)
    return rm.MDP.from_rows(state, np.concatenate([action, action + 2]), following, probability, reward, 0.9)


def other_worlds() -> dict[str, rm.MDP]:
    """Worlds on which no constant was chosen to fit."""
    return {
        "FrozenLake 8x8": rm.MDP.from_gymnasium("FrozenLake8x8-v1", 0.95),
        "river swim": rm.problems.river_swim(),
        "tied actions": tied_world(),
        "garnet": rm.problems.garnet(50, 4, 5, 0.95, seed=11),
    }


def errors(learner: object, world: rm.MDP, samples: int, seeds: int, reference: np.ndarray) -> np.ndarray:
    """Final errors, one per seed."""
    solutions = learner.run_many(world, samples=samples, seeds=seeds, reference=reference, record_every=10**9)
    return np.array([solution.trace["error"][-1] for solution in solutions])


def compare(
    label: str, world: rm.MDP, doubt: rm.Penalized, samples: int, seeds: int, *, markovian: bool
) -> dict[str, float]:
    """Mean errors of the default, the plug-in estimate (same samples) and paper mode."""
    reference = rm.solve(world, doubt, tol=1e-11).q
    kind = rm.MarkovianQLearning if markovian else rm.GenerativeQLearning
    found = {
        "default": errors(kind(doubt), world, samples, seeds, reference).mean(),
        "plug-in": errors(rm.PlugIn(doubt, trajectory=markovian), world, samples, seeds, reference).mean(),
        "paper": errors(kind.paper(doubt), world, samples, min(seeds, 20), reference).mean(),
    }
    numbers = "  ".join(f"{name} {error:.5f}" for name, error in found.items())
    print(f"    {label}, {doubt.divergence.name} {doubt.weight:g}: {numbers}", flush=True)
    return found


def generative(seeds: int, scale: float, names: Iterable[str], stays: Iterable[float]) -> Iterator[Figure]:
    """The generative learners on the paper's chain, 2.02e6 samples."""
    samples = round(2_020_000 * scale)
    for name in names:
        for stay in stays:
            world = rm.problems.chain(stay=stay)
            found = [
                compare(
                    f"chain {stay:g}", world, rm.Penalized(DIVERGENCES[name], weight), samples, seeds, markovian=False
                )
                for weight in LAMBDAS
            ]
            worst = max(each["default"] / each["plug-in"] for each in found)
            gain = min(each["paper"] / each["default"] for each in found)
            yield Figure(f"chain {stay:g}, {name}, 7 lambdas: worst default/plug-in", worst, 1.10)
            yield Figure(f"chain {stay:g}, {name}, 7 lambdas: least paper/default", gain, 12.0, at_most=False)


def markovian(seeds: int, scale: float, names: Iterable[str]) -> Iterator[Figure]:
    """The trajectory learners on the Markovian chain, 4e6 transitions, uniform behaviour."""
    world = rm.problems.chain(restart=0.5)
    for name in names:
        for weight in LAMBDAS:
            doubt = rm.Penalized(DIVERGENCES[name], weight)
            found = compare("restart 0.5", world, doubt, round(4_000_000 * scale), seeds, markovian=True)
            yield Figure(f"restart 0.5, {name} {weight:g}: default/plug-in", found["default"] / found["plug-in"], 1.3)
            least = {0.5: 10.0, 1.0: 4.0}.get(weight, 1.0 / 1.1)
            gain = found["paper"] / found["default"]
            yield Figure(f"restart 0.5, {name} {weight:g}: paper/default", gain, least, at_most=False)


def small_weights(seeds: int, scale: float) -> Iterator[Figure]:
    """Weights a fifth of the span of the values and less, 1e4 visits a pair."""
    for label, world in (
        ("garnet", rm.problems.garnet(50, 4, 5, 0.95, seed=11)),
        ("garnet, discount 0.9", rm.problems.garnet(50, 4, 5, 0.9, seed=0)),
    ):
        for along in (False, True):
            doubt, samples = rm.Penalized(rm.KL(), 0.1), round(10_000 * world.n_pairs * scale)
            found = compare(label, world, doubt, samples, seeds, markovian=along)
            name = f"{label}, kl 0.1, {'trajectory' if along else 'generative'}: default/plug-in"
            yield Figure(name, found["default"] / found["plug-in"], 2.0, goal=1.2)


def few_samples(seeds: int) -> Iterator[Figure]:
    """133 visits a pair, where the horizon is 20 steps."""
    world = rm.problems.machine_replacement()
    for name in ("chi2", "kl"):
        for weight in (0.5, 1.0, 3.0):
            found = compare(
                "machine replacement", world, rm.Penalized(DIVERGENCES[name], weight), 4000, seeds, markovian=False
            )
            ratio = found["default"] / found["plug-in"]
            yield Figure(
                f"machine replacement, 4,000 samples, {name} {weight:g}: default/plug-in", ratio, 2.0, goal=1.2
            )


def elsewhere(seeds: int, scale: float, names: Iterable[str]) -> Iterator[Figure]:
    """The same default in worlds on which nothing was tuned."""
    for label, world in other_worlds().items():
        for name in names:
            for weight in (0.5, 3.0):
                doubt = rm.Penalized(DIVERGENCES[name], weight)
                found = compare(label, world, doubt, round(2_020_000 * scale), seeds, markovian=False)
                yield Figure(f"{label}, {name} {weight:g}: default/plug-in", found["default"] / found["plug-in"])


def figures(
    seeds: int = 100, scale: float = 1.0, names: Iterable[str] = DIVERGENCES, stays: Iterable[float] = STAYS
) -> Iterator[Figure]:
    """All comparisons; `scale` is of the samples, where the bars hold for 1."""
    yield from generative(seeds, scale, names, stays)
    yield from markovian(seeds, scale, names)
    yield from small_weights(seeds, scale)
    yield from few_samples(seeds)
    yield from elsewhere(seeds, scale, names)
