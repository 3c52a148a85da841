"""Eighty days of demand are all that is known: does it pay to doubt them when we order?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import robustmdp as rm

FloatArray = npt.NDArray[np.float64]

LEVELS, ORDERS, DISCOUNT = 60, 20, 0.95  # 0 to 59 in stock, orders of 0 to 19
DAYS = np.random.default_rng(80).negative_binomial(4, 1 / 3, size=80)  # the truth, which the planner does not know
WORLDS = 40  # on each side of the model
SHOWN = 2  # the stock at which nature's answer is drawn


class Found(NamedTuple):
    """Both solutions, and the mean demand of each held-out world with what the robust policy gains there."""

    model: rm.MDP
    nominal: rm.Solution
    robust: rm.Solution
    price: float
    tried: dict[str, tuple[FloatArray, FloatArray]]


def step(stock: Any, order: Any, demand: Any) -> Any:
    """A unit sold brings 5, an order costs 4 and 3 per unit, a unit kept 0.1, a unit of unmet demand 1."""
    have = np.minimum(stock + order, LEVELS - 1)
    sold = np.minimum(have, demand)
    return have - sold, 5.0 * sold - 3.0 * order - 4.0 * (order > 0) - 0.1 * (have - sold) - (demand - sold)


def shop(demand: FloatArray) -> rm.MDP:
    """The shop in which a demand of 0, 1, 2, ... has these probabilities."""
    return rm.MDP.from_noise(step, LEVELS, ORDERS, demand, DISCOUNT)


def likeliest(solution: rm.Solution) -> npt.NDArray[np.int64]:
    """The orders, (S,); with shared noise they may be random."""
    return solution.policy if solution.policy.ndim == 1 else solution.policy.argmax(axis=1)


def mean_demand(world: rm.MDP) -> float:
    """Of the noise that the world was made from."""
    assert world.noise is not None
    return float(world.noise.probabilities @ world.noise.values)


def gains(solutions: list[rm.Solution], means: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Worlds around these mean demands, spread out more or less; both policies are paired in each."""
    worlds = []
    for mean in means:
        size = rng.uniform(2.0, 8.0)
        worlds.append(shop(np.bincount(rng.negative_binomial(size, size / (size + mean), 10_000)) / 10_000))
    nominal, robust = (
        np.array([rm.evaluate(world, solution.policy, rm.Nominal()).value[0] for world in worlds])
        for solution in solutions
    )
    return np.array([mean_demand(world) for world in worlds]), robust - nominal


def main(folder: Path = Path("demo")) -> Found:
    """Count, solve, look at nature's answer, compare."""
    counts = np.bincount(DAYS)
    model = shop((counts + 0.5) / (counts + 0.5).sum())  # the estimate around which the radius holds
    ball = rm.Constrained(rm.KL(), rm.radius_from_counts(counts, rm.KL(), 0.95))
    doubt = rm.SharedNoise(ball)  # one demand a day, whatever is ordered
    nominal, robust = rm.solve(model, rm.Nominal()), rm.solve(model, doubt)
    mean = mean_demand(model)
    print(f"{len(DAYS)} days of demand from 0 to {DAYS.max()}, mean {DAYS.mean():.2f}; the model's mean is {mean:.2f}.")
    print(f"From these counts, a KL radius of {ball.level:.3f} at confidence 0.95, the same for all pairs.\n")
    print(f"{'in stock':>10}" + "".join(f"{stock:>4}" for stock in range(16)))
    for name, solution in (("nominal", nominal), ("robust", robust)):
        print(f"{name:>10}" + "".join(f"{order:>4}" for order in likeliest(solution)[:16]) + "   ordered")
    price = float(nominal.value[0] - rm.evaluate(model, robust.policy, rm.Nominal()).value[0])
    saved = float(robust.value[0] - rm.evaluate(model, nominal.policy, doubt).value[0])
    print(f"\nIf the model is right, profit is {nominal.value[0]:.1f} and robust earns {price:.1f} less.")
    print(f"In the worst case robust earns {robust.value[0]:.1f}, which is {saved:.1f} more.")
    rng, tried = np.random.default_rng(1), {}
    for side, low, high in (("lower", 0.5, 1.0), ("higher", 1.0, 1.5)):
        tried[side] = gains([nominal, robust], rng.uniform(low * mean, high * mean, WORLDS), rng)
        gain = tried[side][1]
        error = gain.std(ddof=1) / np.sqrt(WORLDS)
        print(f"Where demand is {side}, robust gains {gain.mean():+.2f} (standard error {error:.2f}), ", end="")
        print(f"and is better in {(gain > 0).sum()} of {WORLDS} worlds.")
    found = Found(model, nominal, robust, price, tried)
    draw(found, folder)
    return found


def draw(found: Found, folder: Path) -> None:
    """What nature makes of the demand, and what robust ordering gains in other worlds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    order = int(likeliest(found.robust)[SHOWN])
    table = found.robust.worst_noise(SHOWN, order)
    left.bar(table["noise"], table["nominal"], color="0.8", label="model")
    left.step(table["noise"], table["worst_case"], where="mid", color="C3", label="worst case")
    left.set(title=f"{SHOWN} in stock, {order} ordered", xlabel="demand of a day", ylabel="probability")
    left.legend()
    for side, (means, gain) in found.tried.items():
        right.plot(means, gain, ".", label=f"{side} demand")
    right.axvline(mean_demand(found.model), color="0.5", linewidth=1)
    right.axhline(0.0, color="0.5", linewidth=1)
    right.set(title="robust less nominal", xlabel="mean demand of the world", ylabel="profit")
    right.legend()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "inventory_demand.png", dpi=120)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
