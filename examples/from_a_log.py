"""A log and no model: do learning and planning from it agree, and which policy is safe on other ice than the log's?"""

from __future__ import annotations

import csv
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import robustmdp as rm

FloatArray = npt.NDArray[np.float64]

DISCOUNT = 0.95
TRUE_SLIP = 0.5
SLIPS = np.round(np.arange(0.1, 0.61, 0.05), 2)
STEPS = 10_000
PASSES = 50
DOUBTS: dict[str, rm.Nominal | rm.Constrained] = {
    "nominal": rm.Nominal(),
    "robust": rm.Constrained(rm.KL(), 0.05),  # of tomorrow's ice; the log can only tell of its own
}


class Found(NamedTuple):
    """The policies by name, what the counts suggest, and the value of each policy at each slip."""

    policies: dict[str, rm.Solution]
    advice: rm.Suggestion
    values: dict[str, FloatArray]


def lake(slip: float) -> rm.MDP:
    """FrozenLake 4x4, where a step goes astray with this probability."""
    (found,) = rm.worlds.environments("FrozenLake-v1", DISCOUNT, map_name="4x4", success_rate=[1.0 - slip]).models
    return found


def write_log(path: Path) -> Path:
    """Somebody walks at random, episode after episode, and writes down what happens."""
    import gymnasium

    env = gymnasium.make("FrozenLake-v1", map_name="4x4", success_rate=1.0 - TRUE_SLIP)
    env.action_space.seed(0)
    state, _ = env.reset(seed=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        log = csv.writer(file)
        log.writerow(("state", "action", "reward", "next_state", "terminated"))
        for _ in range(STEPS):
            action = env.action_space.sample()
            following, reward, terminated, truncated, _ = env.step(action)
            log.writerow((state, action, reward, following, terminated))
            state = env.reset()[0] if terminated or truncated else following
    return path


def learn(log: rm.Trajectory) -> dict[str, rm.Solution]:
    """Without a model: Q-learning on the log, read again and again, memory for the pairs alone."""
    again = log.replay(passes=PASSES)
    return {f"{name}, learned": rm.MarkovianQLearning(doubt).run(again) for name, doubt in DOUBTS.items()}


def estimate_and_plan(log: rm.Trajectory) -> tuple[dict[str, rm.Solution], rm.Suggestion]:
    """With a model made of the log's counts."""
    found = rm.estimate(log)
    advice = rm.suggest(found.model, rm.KL(), counts=found.counts, initial=0, draws=100)
    return {f"{name}, planned": rm.solve(found.model, doubt) for name, doubt in DOUBTS.items()}, advice


def values_at(policies: dict[str, rm.Solution]) -> dict[str, FloatArray]:
    """The true value of each policy at each slip."""
    worlds = [lake(slip) for slip in SLIPS]
    return {
        name: np.array([rm.evaluate(world, solution.policy, rm.Nominal()).value[0] for world in worlds])
        for name, solution in policies.items()
    }


def show(found: Found) -> None:
    """Values by slip, and what the counts say."""
    shown = slice(0, None, 2)
    print(f"{'slip':>18}" + "".join(f"{slip:>8g}" for slip in SLIPS[shown]) + f"{'worst':>10}{'mean':>8}")
    for name, values in found.values.items():
        cells = "".join(f"{value:>8.3f}" for value in values[shown])
        print(f"{name:>18}{cells}{values.min():>10.3f}{values.mean():>8.3f}")
    gap = max(np.abs(found.values[f"{kind}, learned"] - found.values[f"{kind}, planned"]).max() for kind in DOUBTS)
    print(f"\nLearned and planned policies differ by {gap:.3f} at most, though the learner never saw a model.")
    print("Does the log itself give reason to doubt? " + ("Yes." if found.advice.pays else "No."))
    print(textwrap.fill(found.advice.reasons[-1], 100, initial_indent="  ", subsequent_indent="  "))


def conclusion(found: Found) -> None:
    """Does it do better where the ice is not that of the log?"""
    nominal, robust = found.values["nominal, learned"], found.values["robust, learned"]
    here = np.isclose(SLIPS, TRUE_SLIP)
    better = SLIPS[robust > nominal]
    verdict = "better" if robust.min() > nominal.min() else "not better"
    print(
        f"\nOn the log's own ice (slip {TRUE_SLIP:g}) robust loses {(nominal - robust)[here][0]:.3f}. Its worst slip is"
    )
    print(f"{verdict} ({robust.min():.3f} against {nominal.min():.3f}); ", end="")
    print(f"it wins at {len(better)} of {len(SLIPS)} slips" + (f", up to {better.max():g}." if better.size else "."))


def draw(values: dict[str, FloatArray], path: Path) -> None:
    """Value against slip."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
    for name, value in values.items():
        kind, way = name.split(", ")
        colour = {"nominal": "tab:blue", "robust": "tab:orange"}[kind]
        axes.plot(SLIPS, value, "o" if way == "learned" else "--", color=colour, label=name)
    axes.set(
        xlabel="slip of the lake",
        ylabel="discounted chance of reaching the goal",
        title=f"Policies from one log of {STEPS:,} steps at slip {TRUE_SLIP:g}",
    )
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(folder: Path = Path("demo")) -> Found:
    """Write a log, use it in both ways, and try what comes of it."""
    log = rm.read_log(write_log(folder / "lake.csv"), n_states=16, n_actions=4, discount=DISCOUNT)
    planned, advice = estimate_and_plan(log)
    policies = {**planned, **learn(log)}
    found = Found(policies, advice, values_at(policies))
    print(f"{STEPS:,} random steps on FrozenLake 4x4 with slip {TRUE_SLIP:g}; values from the start on other lakes:\n")
    show(found)
    conclusion(found)
    draw(found.values, folder / "from_a_log.png")
    return found


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
