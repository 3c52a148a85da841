"""FrozenLake: planned for one slipperiness and walked at others, does a robust policy reach the goal more often?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import robustmdp as rm

FloatArray = npt.NDArray[np.float64]

DISCOUNT = 0.99
MODELS = (2 / 3, 1 / 2, 1 / 3)  # slips that a planner may believe in; the first is Gymnasium's own
RANGE = (0.1, 0.6)  # in which the true slip lies
HELD_OUT, FRESH = 40, 60
ARROWS = "←↓→↑"
SHOWN = np.linspace(0.05, 0.7, 27)


class Lake(NamedTuple):
    """A planner who believes in one slip: both policies, and how they did in fresh lakes."""

    slip: float
    nominal: rm.Solution
    advice: rm.Suggestion
    tried: rm.StressTable


def lakes(slips: FloatArray, name: str) -> rm.worlds.Models:
    """The 8x8 lake; a step goes astray, to the left or the right of where it should, with probability slip."""
    return rm.worlds.environments(
        "FrozenLake-v1", DISCOUNT, name=name, map_name="8x8", success_rate=(1.0 - slips).tolist()
    )


def plan(slip: float, held_out: rm.worlds.Models, fresh: rm.worlds.Models) -> Lake:
    """The nominal policy, or the level that held-out lakes suggest; then try both in fresh ones."""
    (model,) = lakes(np.array([slip]), "model").models
    nominal = rm.solve(model, rm.Nominal())
    advice = rm.suggest(model, rm.KL(), held_out=held_out, initial=0)
    return Lake(
        slip, nominal, advice, rm.stress(model, {"nominal": nominal, "robust": advice.solution}, fresh, initial=0)
    )


def show_policies(lake: Lake) -> None:
    """Both policies as arrows on the map."""
    from gymnasium.envs.toy_text.frozen_lake import MAPS

    tiles = MAPS["8x8"]
    print(f"{'nominal':<20}robust")
    for row, line in enumerate(tiles):
        halves = []
        for policy in (lake.nominal.policy, lake.advice.solution.policy):
            cells = zip(line, policy[8 * row : 8 * row + 8], strict=True)
            halves.append(" ".join(tile if tile in "HG" else ARROWS[action] for tile, action in cells))
        print(f"{halves[0]:<20}{halves[1]}")


def table(planned: list[Lake]) -> None:
    """How both policies did in the fresh lakes."""
    low, high = RANGE
    print(f"\nThe discounted chance of the goal in {FRESH} fresh lakes, with slips from {low:g} to {high:g}:\n")
    print(f"{'':>14}{'suggested':>12}{'worst tenth':>22}{'mean':>20}{'robust':>11}")
    print(f"{'model slip':>14}{'KL radius':>12}{'nominal':>12}{'robust':>10}{'nominal':>10}{'robust':>10}{'wins':>11}")
    for lake in planned:
        radius = 0.0 if isinstance(lake.advice.ambiguity, rm.Nominal) else lake.advice.ambiguity.level
        numbers = "".join(f"{value:>{width}.3f}" for width, value in zip((12, 10, 10, 10), _pairs(lake), strict=True))
        print(f"{lake.slip:>14.2f}{radius:>12.3f}{numbers}{wins(lake):>8} / {FRESH}")


def _pairs(lake: Lake) -> list[float]:
    return [*lake.tried["worst_tenth"].tolist(), *lake.tried["mean"].tolist()]


def wins(lake: Lake) -> int:
    """In how many fresh lakes the robust policy is better, ties left out."""
    nominal, robust = (lake.tried.outcomes.where(policy=name)["value"] for name in ("nominal", "robust"))
    return int((robust > nominal + 1e-5).sum())


def conclusion(planned: list[Lake]) -> None:
    """Does it do better, and where not?"""
    print()
    for lake in planned:
        nominal, robust, *_ = _pairs(lake)
        change = robust / nominal - 1.0
        verdict = "better" if change > 0.01 else "worse" if change < -0.01 else "no better"
        said = "pays" if lake.advice.pays else "does not pay"
        print(f"Planned for slip {lake.slip:.2f}, robust is {verdict} in the worst tenth of lakes ({change:+.0%}) and")
        print(f"  wins in {wins(lake)} of {FRESH}; the held-out lakes had said that it {said}.")


def draw(planned: list[Lake], path: Path) -> None:
    """Value against slip, a panel for each model."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    worlds = lakes(SHOWN, "shown").models
    best = np.array([rm.solve(world, rm.Nominal()).value[0] for world in worlds])
    figure, panels = plt.subplots(1, len(planned), figsize=(4 * len(planned), 3.6), sharey=True, layout="constrained")
    for lake, axes in zip(planned, panels, strict=True):
        for name, policy in (("nominal", lake.nominal.policy), ("robust", lake.advice.solution.policy)):
            axes.plot(SHOWN, [rm.evaluate(world, policy, rm.Nominal()).value[0] for world in worlds], label=name)
        axes.plot(SHOWN, best, "--", color="grey", label="best for each lake")
        axes.axvline(lake.slip, color="black", linestyle=":", label="the model's slip")
        axes.set(xlabel="slip of the lake", title=f"Planned for slip {lake.slip:.2f}")
    panels[0].set_ylabel("discounted chance of reaching the goal")
    panels[0].legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(folder: Path = Path("demo")) -> list[Lake]:
    """Plan for three lakes and walk on others."""
    rng = np.random.default_rng(0)
    held_out, fresh = (
        lakes(rng.uniform(*RANGE, count), name) for name, count in (("held out", HELD_OUT), ("fresh", FRESH))
    )
    planned = [plan(slip, held_out, fresh) for slip in MODELS]
    print(f"FrozenLake 8x8, planned for slip {MODELS[0]:.2f}; H is a hole, G the goal:\n")
    show_policies(planned[0])
    table(planned)
    conclusion(planned)
    draw(planned, folder / "frozen_lake.png")
    return planned


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
