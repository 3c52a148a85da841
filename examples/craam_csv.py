"""A model in craam's CSV format: how is it solved robustly, and the policy written for others to use?"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import robustmdp as rm

MODEL = Path(__file__).with_name("fishery.csv")  # fish stocks 0 (low), 1, 2 (high); actions 0 (rest) and 1 (fish)
DISCOUNT = 0.95
WORDS = {"state": ("low", "medium", "high"), "action": ("rest", "fish")}  # the format has numbers only
MEDIUM = 1  # the stock to start with
DOUBT = rm.Constrained(rm.KL(), 0.05)
WORSE = (1.5, 2.0, 3.0)  # times as likely is a low stock as in the file


class Found(NamedTuple):
    """The solution, the file it was written to, and how both policies did elsewhere."""

    solution: rm.Solution
    file: Path
    tried: rm.StressTable


def worse_years(fishery: rm.MDP, times: float) -> rm.MDP:
    """A low stock follows so many times as often."""
    mass = fishery.probabilities * np.where(fishery.indices == 0, times, 1.0)
    totals = np.add.reduceat(mass, fishery.indptr[:-1])
    return fishery.with_probabilities(mass / np.repeat(totals, np.diff(fishery.indptr)))


def try_policies(fishery: rm.MDP, policies: dict[str, npt.NDArray[np.int64]]) -> rm.StressTable:
    """Both policies in worlds near the file's, at random or at worst, and in worse years."""
    worlds: list[rm.worlds.Family] = [
        rm.worlds.Models([fishery], "as in the file"),
        rm.worlds.RandomKernels(DOUBT.divergence, DOUBT.radius, count=50),
        rm.worlds.Adversary(DOUBT),
        *(rm.worlds.Models([worse_years(fishery, times)], f"low stocks x {times:g}") for times in WORSE),
    ]
    return rm.stress(fishery, policies, worlds, initial=MEDIUM)


def show(file: Path) -> None:
    """What others will read there, in words."""
    print(f"{'stock':>8}{'action':>8}{'worst case, certified':>24}")
    with file.open(newline="") as lines:
        for row in csv.DictReader(lines):
            stock, action = (words[int(row[column])] for column, words in WORDS.items())
            print(f"{stock:>8}{action:>8}{float(row['lower']):>15.5f}..{float(row['upper']):.5f}")


def conclusion(tried: rm.StressTable) -> None:
    """Where is it better?"""
    print(f"\nFrom a medium stock, in the worst tenth of worlds:\n\n{'':>42}{'nominal':>10}{'robust':>10}")
    gains = {}
    for family in dict.fromkeys(tried["family"].tolist()):
        nominal, robust = tried.where(family=family)["worst_tenth"]
        gains[family] = robust - nominal
        mark = "   <- robust is better" if robust > nominal else ""
        print(f"{family:>42}{nominal:>10.2f}{robust:>10.2f}{mark}")
    better = sum(gain > 0 for gain in gains.values())
    print(f"\nResting at a medium stock is better in {better} of these {len(gains)} kinds of worlds, by up to")
    print(f"{max(gains.values()):.2f}; it is worse in the rest, by up to {-min(gains.values()):.2f}.")


def main(folder: Path = Path("demo")) -> Found:
    """Read, solve, write, read back and try."""
    fishery = rm.read(MODEL, discount=DISCOUNT)
    print(f"{MODEL.name}: {fishery.n_states} states, {fishery.n_pairs} pairs, {fishery.nnz} transitions.\n")
    folder.mkdir(parents=True, exist_ok=True)
    solution = rm.solve(fishery, DOUBT)
    file = rm.write(solution, folder / "policy.csv")
    print(f"{file.name} ({DOUBT}):\n")
    show(file)
    policies = {"nominal": rm.solve(fishery, rm.Nominal()).policy, "robust": rm.read_policy(file, fishery)}
    tried = try_policies(fishery, policies)
    conclusion(tried)
    return Found(solution, file, tried)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
