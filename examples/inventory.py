"""A store that has seen a few weeks of demand: is it better to order for what was seen, or for what may come?"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import robustmdp as rm

FloatArray = npt.NDArray[np.float64]

DAYS = 20
TRUE_MEAN = 5.0
MEANS = np.arange(2.5, 7.6, 0.5)  # of the worlds in which the policies are tried
DRAWS = 100
LOSS = 0.9  # a store that may not survive a bad year pays nearly as much on average as it gains then
HISTORIES = 8
STORE = rm.problems.inventory(mean_demand=TRUE_MEAN)  # only its costs and shelves are known to the planner
CAPACITY = STORE.n_states - 1


class Season(NamedTuple):
    """One history of demand: both policies, and what they earn at each mean demand."""

    demand: npt.NDArray[np.int64]
    nominal: rm.Solution
    advice: rm.Suggestion
    earned: dict[str, FloatArray]


class Found(NamedTuple):
    """The season that is shown, and others that might have been seen."""

    season: Season
    others: list[Season]


def store(demand: FloatArray) -> rm.MDP:
    """The store with these probabilities of a demand of 0, 1, ..., capacity or more; unmet demand is lost."""
    available = np.repeat(STORE.states + STORE.actions, np.diff(STORE.indptr))
    sold = available - STORE.indices
    at_least = demand[::-1].cumsum()[::-1]
    return STORE.with_probabilities(np.where(sold < available, demand[sold], at_least[sold]))


def plan(seed: int) -> Season:
    """Watch the demand, plan for it, and ask how much doubt is wise."""
    rng = np.random.default_rng(seed)
    demand = rng.poisson(TRUE_MEAN, DAYS)
    # One imagined day, spread over all demands: what was never seen is unlikely, not impossible.
    seen = np.bincount(np.minimum(demand, CAPACITY), minlength=CAPACITY + 1) + 1.0 / (CAPACITY + 1)
    model = store(seen / seen.sum())
    nominal = rm.solve(model, rm.Nominal())
    # All pairs share one demand, so plausible worlds are drawn for the demand and not for each pair by itself.
    plausible = [store(rng.dirichlet(seen)) for _ in range(DRAWS)]
    worlds = rm.worlds.Models(plausible, "plausible demands")
    advice = rm.suggest(model, rm.KL(), held_out=worlds, initial=0, loss=LOSS)
    policies = {"nominal": nominal, "robust": advice.solution}
    others = rm.worlds.Models([rm.problems.inventory(mean_demand=mean) for mean in MEANS])
    tried = rm.stress(model, policies, others, initial=0).outcomes
    return Season(demand, nominal, advice, {name: tried.where(policy=name)["value"] for name in policies})


def show(season: Season) -> None:
    """What was seen, what is ordered, what is earned."""
    print(f"{DAYS} days of demand: {' '.join(map(str, season.demand))} (mean {season.demand.mean():.2f}).\n")
    for reason in season.advice.reasons:
        print(textwrap.fill(reason, 100, initial_indent="- ", subsequent_indent="  "))
    print(f"\n{'in stock':>10}" + "".join(f"{stock:>5}" for stock in range(8)))
    for name, policy in (("nominal", season.nominal.policy), ("robust", season.advice.solution.policy)):
        print(f"{name:>10}" + "".join(f"{order:>5}" for order in policy[:8]) + "   ordered")
    print(f"\n{'mean demand':>14}" + "".join(f"{mean:>8g}" for mean in MEANS[1::2]))
    for name, values in season.earned.items():
        print(f"{name:>14}" + "".join(f"{value:>8.1f}" for value in values[1::2]) + "   profit")


def conclusion(found: Found) -> None:
    """In the truth, and where demand moved; over other histories too, since one may be luck."""
    gains = np.array([season.earned["robust"] - season.earned["nominal"] for season in (found.season, *found.others)])
    truth = MEANS == TRUE_MEAN
    gain, better = gains[0, truth][0], MEANS[gains[0] > 1e-3]
    places = f"at mean demands from {better.min():g} to {better.max():g} only" if better.size else "at no mean demand"
    print(f"\nThe true mean was {TRUE_MEAN:g}: there robust earns {abs(gain):.1f} {'more' if gain > 0 else 'less'}.")
    print(f"It is better {places}.\n")
    print(f"Over {len(gains)} histories of {DAYS} days, mean gain (and in how many it is better or equal):")
    for name, where in (("demand falls", MEANS < TRUE_MEAN), ("as it was", truth), ("demand rises", MEANS > TRUE_MEAN)):
        each = gains[:, where].mean(axis=1)
        print(f"{name:>14}{each.mean():>8.2f}   ({(each >= -1e-3).sum()} of {len(each)})")


def draw(found: Found, path: Path) -> None:
    """Profit against mean demand, as a share of what could be earned there."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    best = np.array([rm.solve(rm.problems.inventory(mean_demand=mean), rm.Nominal()).value[0] for mean in MEANS])
    figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
    for name in ("nominal", "robust"):
        shares = 100 * np.array([season.earned[name] / best for season in (found.season, *found.others)])
        (line,) = axes.plot(MEANS, shares.mean(axis=0), marker="o", label=name)
        axes.fill_between(MEANS, shares.min(axis=0), shares.max(axis=0), color=line.get_color(), alpha=0.2)
    axes.set(
        xlabel="mean demand of the world",
        ylabel="% of the best possible profit",
        title=f"Ordering after {DAYS} days of demand (true mean {TRUE_MEAN:g}): mean and range",
    )
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(folder: Path = Path("demo")) -> Found:
    """One history in detail, then others."""
    found = Found(plan(0), [plan(seed) for seed in range(1, HISTORIES)])
    show(found.season)
    conclusion(found)
    draw(found, folder / "inventory.png")
    return found


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
