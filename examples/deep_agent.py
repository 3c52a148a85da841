"""An agent of stable-baselines3 knows nothing of doubt: what is it worth in the worst case, trained there or not?"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import robustmdp as rm

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

ROOM = 12  # units of stock
PRICE, COST, STORAGE = 5.0, 2.0, 0.3
SOLD = np.bincount(np.random.default_rng(3).poisson(3.0, size=60))  # on how many of 60 days 0, 1, ... were asked for
DOUBT = rm.Constrained(rm.KL(), 0.2)
STEPS = 16_000  # of training, for each agent


class Found(NamedTuple):
    """By name: the policy, and its certified value from an empty store, if the log is right and in the worst case."""

    policies: dict[str, IntArray]
    right: dict[str, float]
    worst: dict[str, float]


def sell(stock: Any, order: Any, demand: Any) -> Any:
    """An order arrives at once; what does not fit is lost."""
    have = np.minimum(stock + order, ROOM)
    sold = np.minimum(have, demand)
    return have - sold, PRICE * sold - COST * order - STORAGE * (have - sold)


def train(world: rm.MDP | rm.Solution, steps: int) -> IntArray:
    """What PPO orders in each state after so many steps in a world, which it sees as a Gymnasium environment."""
    import torch
    from stable_baselines3 import PPO

    torch.set_num_threads(1)  # the network is too small for more
    env = rm.to_gymnasium(world, start=np.full(ROOM + 1, 1 / (ROOM + 1)), max_steps=100)
    agent = PPO(
        "MlpPolicy",
        env,
        gamma=0.95,
        n_steps=512,
        batch_size=128,
        learning_rate=3e-3,
        policy_kwargs={"net_arch": [64]},
        seed=0,
        device="cpu",
    )
    orders, _ = agent.learn(steps).predict(np.arange(ROOM + 1), deterministic=True)
    return np.asarray(orders, np.int64)


def main(folder: Path = Path("demo"), steps: int = STEPS) -> Found | None:
    """Train in the model and in nature's worst case of it; certify both agents beside the optimal policies."""
    if find_spec("stable_baselines3") is None:
        print("The agents need stable-baselines3: pip install stable-baselines3")
        return None
    model = rm.MDP.from_noise(sell, ROOM + 1, 7, SOLD / SOLD.sum(), 0.95)
    robust = rm.solve(model, DOUBT)
    policies = {
        "nominal": rm.solve(model, rm.Nominal()).policy,
        "robust": robust.policy,
        "agent, trained in the model": train(model, steps),
        "agent, trained in the worst case": train(robust, steps),
    }
    right, worst = (
        {name: float(rm.evaluate(model, policy, doubt).value[0]) for name, policy in policies.items()}
        for doubt in (rm.Nominal(), DOUBT)
    )
    found = Found(policies, right, worst)
    for name, policy in policies.items():
        print(f"{name:<33} is worth {right[name]:6.1f} if the log is right, {worst[name]:6.1f} in the worst case")
        print(f"{'':<33} orders with 0, 1, 2, ... in stock: {' '.join(map(str, policy))}")
    draw(found, folder)
    in_model, in_worst = list(policies)[2:]
    print(
        f"\nIn the worst case the agents are worth {worst[in_model]:.1f} and {worst[in_worst]:.1f}, the robust policy "
        f"{worst['robust']:.1f}. Training there changed {worst[in_worst] - worst[in_model]:+.1f} in the worst case and "
        f"{right[in_worst] - right[in_model]:+.1f} if the log is right; one run each, so chance has a part in it."
    )
    return found


def draw(found: Found, folder: Path) -> None:
    """What each policy orders, and what it is worth."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (name, policy), marker in zip(found.policies.items(), "osD^", strict=True):
        left.plot(policy, marker=marker, label=name)
        right.plot([0, 1], [found.right[name], found.worst[name]], marker=marker, label=name)
    left.set(title="what is ordered", xlabel="units in stock", ylabel="units ordered")
    right.set(title="what it is worth", ylabel="discounted profit from an empty store", xlim=(-0.3, 1.3))
    right.set_xticks([0, 1], ["if the log is right", "in the worst case"])
    left.legend()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "deep_agent.png", dpi=120)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
