"""Eighty days of demand are all that is known: does it pay to doubt them when we order?"""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from matplotlib.figure import Figure

import robustmdp as rm

DAYS = np.random.default_rng(80).negative_binomial(4, 1 / 3, size=80)  # the truth, which the planner does not know
WORLDS = 40  # on each side of the model


def step(stock, order, demand):
    """A unit sold brings 5, an order costs 4 and 3 per unit, a unit kept 0.1, a unit of unmet demand 1."""
    have = np.minimum(stock + order, 59)
    sold = np.minimum(have, demand)
    return have - sold, 5.0 * sold - 3.0 * order - 4.0 * (order > 0) - 0.1 * (have - sold) - (demand - sold)


def shop(demand):
    """The shop in which a demand of 0, 1, 2, ... has these probabilities."""
    return rm.MDP.from_noise(step, n_states=60, n_actions=20, noise=demand, discount=0.95)


def main(folder=Path("demo")):
    """Count, solve, look at nature's answer, compare."""
    counts = np.bincount(DAYS)
    model = shop((counts + 0.5) / (counts + 0.5).sum())  # the estimate around which the radius holds
    ball = rm.Constrained(rm.KL(), rm.radius_from_counts(counts, rm.KL(), confidence=0.95))
    doubt = rm.SharedNoise(ball)  # one demand a day, whatever is ordered
    nominal, robust = rm.solve(model, rm.Nominal()), rm.solve(model, doubt)
    price = nominal.value[0] - rm.evaluate(model, robust.policy, rm.Nominal()).value[0]
    saved = robust.value[0] - rm.evaluate(model, nominal.policy, doubt).value[0]
    print(f"{len(DAYS)} days of demand, mean {DAYS.mean():.2f}: a KL radius of {ball.radius:.3f} for all pairs.")
    print("Orders with 0 to 15 in stock, nominal:", *nominal.policy[:16])
    print("                              robust: ", *robust.policy[:16].argmax(axis=1))
    print(f"If the model is right, profit is {nominal.value[0]:.1f} and robust earns {price:.1f} less.")
    print(f"In the worst case robust earns {robust.value[0]:.1f}, which is {saved:.1f} more.")
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    table = robust.worst_noise(2, int(robust.policy[2].argmax()))
    left.bar(table["noise"], table["nominal"], color="0.8", label="model")
    left.step(table["noise"], table["worst_case"], where="mid", color="C3", label="worst case, 2 in stock")
    left.legend()
    left.set(xlabel="demand of a day", ylabel="probability")
    rng, tried = np.random.default_rng(1), {}
    for side, low, high in (("lower", 0.5, 1.0), ("higher", 1.0, 1.5)):
        means, sizes = rng.uniform(low, high, WORLDS) * DAYS.mean(), rng.uniform(2.0, 8.0, WORLDS)
        draws = [
            rng.negative_binomial(size, size / (size + mean), 10_000) for mean, size in zip(means, sizes, strict=True)
        ]
        worlds = [shop(np.bincount(draw) / len(draw)) for draw in draws]
        gain = np.array(
            [
                rm.evaluate(world, robust.policy, rm.Nominal()).value[0]
                - rm.evaluate(world, nominal.policy, rm.Nominal()).value[0]
                for world in worlds
            ]
        )
        tried[side] = gain
        error = gain.std(ddof=1) / WORLDS**0.5
        print(f"Where demand is {side}, robust gains {gain.mean():+.2f} (standard error {error:.2f}), ", end="")
        print(f"and is better in {(gain > 0).sum()} of {WORLDS} worlds.")
        right.plot(means, gain, ".", label=f"{side} demand")
    right.legend()
    right.set(xlabel="mean demand of a world", ylabel="profit, robust less nominal")
    Path(folder).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(folder) / "inventory_demand.png", dpi=120)
    return SimpleNamespace(model=model, nominal=nominal, robust=robust, price=price, tried=tried)


if __name__ == "__main__":
    main(*sys.argv[1:2])
