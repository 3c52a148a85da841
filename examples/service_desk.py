"""A service desk whose arrivals are known from 60 periods: does it pay to serve faster than they ask for?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import robustmdp as rm

FloatArray = npt.NDArray[np.float64]

ROOM = 30  # customers that can wait; those who come then are lost
SPEEDS = np.array([0.0, 2.0, 6.0, 13.0, 24.0])  # what serving up to 0, 1, 2, 3, 4 customers in a period costs
WAITING, LOST = 1.0, 60.0  # what a customer costs who waits for a period, and one who is lost
ARRIVALS = np.bincount(
    np.random.default_rng(7).poisson(1.6, size=60), minlength=6
)  # how many periods brought 0, 1, ...
RUSHES = np.array([0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4])  # times the mean of the log


class Found(NamedTuple):
    """Cost per period by policy: if the model is right, in the worst case, at each rush; and both policies."""

    right: dict[str, float]
    worst: dict[str, float]
    rushed: dict[str, FloatArray]
    speed: dict[str, npt.NDArray[np.int64]]


def step(queue: Any, speed: Any, arrivals: Any) -> Any:
    """Serve, then let arrivals in."""
    left = np.maximum(queue - speed, 0) + arrivals
    lost = np.maximum(left - ROOM, 0)
    return left - lost, -(WAITING * queue + SPEEDS[speed] + LOST * lost)


def desk(arrivals: FloatArray) -> rm.MDP:
    """The desk to which 0, 1, 2, ... customers come with these probabilities."""
    return rm.MDP.from_noise(step, ROOM + 1, len(SPEEDS), arrivals, 1.0)


def rush(arrivals: FloatArray, factor: float) -> FloatArray:
    """The distribution tilted until its mean is `factor` times as large."""
    values, tilts = np.arange(len(arrivals)), np.linspace(-3.0, 3.0, 6001)[:, None]
    weights = arrivals * np.exp(tilts * values)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(weights[np.argmin(np.abs(weights @ values - factor * (arrivals @ values)))])


def main(folder: Path = Path("demo")) -> Found:
    """Count, solve for the average cost, compare."""
    arrivals, average = ARRIVALS / ARRIVALS.sum(), rm.AverageReward()
    model = desk(arrivals)
    doubt = rm.Constrained(rm.KL(), rm.radius_from_counts(ARRIVALS, rm.KL(), confidence=0.9))
    policies = {
        name: rm.solve(model, ambiguity, criterion=average).policy
        for name, ambiguity in (("nominal", rm.Nominal()), ("robust", doubt))
    }

    def costs(world: rm.MDP, ambiguity: Any) -> dict[str, float]:
        solutions = {name: rm.evaluate(world, p, ambiguity, criterion=average) for name, p in policies.items()}
        return {name: -float(solution.gain[0]) for name, solution in solutions.items()}

    tried = [costs(desk(rush(arrivals, factor)), rm.Nominal()) for factor in RUSHES]
    rushed = {name: np.array([cost[name] for cost in tried]) for name in policies}
    found = Found(costs(model, rm.Nominal()), costs(model, doubt), rushed, policies)
    print(
        f"{ARRIVALS.sum()} periods brought 0, 1, 2, ... customers {ARRIVALS.tolist()} times: "
        f"a KL radius of {doubt.level:.3f} at 90 % confidence.\n"
    )
    for name in policies:
        print(f"{name:>8} speed with 0, 1, 2, ... waiting: {' '.join(map(str, policies[name][:16]))}")
        print(
            f"{'':>8} costs {found.right[name]:.2f} per period if the log is right, "
            f"{found.worst[name]:.2f} in the worst case"
        )
    print()
    for factor, nominal, robust in zip(RUSHES, rushed["nominal"], rushed["robust"], strict=True):
        print(
            f"{factor:.1f} times the arrivals: robust costs {robust - nominal:+.2f}, {robust:.2f} after {nominal:.2f}"
        )
    draw(found, folder)
    return found


def draw(found: Found, folder: Path) -> None:
    """Both policies, and what robust serving costs more or less at each rush."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, speed in found.speed.items():
        left.step(np.arange(len(speed)), speed, where="mid", label=name)
        right.plot(RUSHES, found.rushed[name], label=name)
    left.set(title="how fast to serve", xlabel="customers waiting", ylabel="customers served at most")
    right.set(title="cost per period", xlabel="arrivals, times those of the log", ylabel="cost")
    left.legend()
    right.legend()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "service_desk.png", dpi=120)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
