"""Six pumps, forty weeks of records, failures that are rare and dear: does doubting the records save money?"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import robustmdp as rm

FloatArray = npt.NDArray[np.float64]

DISCOUNT = 0.98  # per week
TRUTH = rm.problems.pump(discount=DISCOUNT)  # used to write the records and to judge, never to plan
PUMPS, WEEKS = 6, 40
LOGS = 400
CONFIDENCE = 0.9
HABITS = (0.85, 0.12, 0.03)  # how often the crew runs, services and replaces a worn pump
FAILURES = np.array([0.003, 0.006, 0.012, 0.018, 0.024])  # chance per week that a new pump fails; the records' is 0.012


class Study(NamedTuple):
    """What each policy is worth from a new pump, in thousands: (logs, failure rates), by name."""

    worth: dict[str, FloatArray]


def records(seed: int) -> list[tuple[int, int, float, int]]:
    """Week by week, pump by pump: the state, what the crew did, what it earned, and the next state."""
    rng, failed, rows = np.random.default_rng(seed), TRUTH.n_states - 1, []
    for _ in range(PUMPS):
        state = 0
        for _ in range(WEEKS):
            action = 2 if state == failed else int(rng.choice(3, p=HABITS)) if state > 2 else 0
            reward, following, _ = TRUTH.sample(state, action, rng)
            rows.append((state, action, reward, following))
            state = following
    return rows


def write_records(path: Path, seed: int = 0) -> Path:
    """The records of one seed as a log with names."""
    with path.open("w", newline="", encoding="utf-8") as file:
        log = csv.writer(file, lineterminator="\n")
        log.writerow(("state", "action", "reward", "next_state"))
        for state, action, reward, following in records(seed):
            log.writerow(
                (TRUTH.state_name(state), TRUTH.action_name(action), f"{reward:g}", TRUTH.state_name(following))
            )
    return path


def plan(seed: int) -> dict[str, npt.NDArray[np.int64]]:
    """The policies that one log leads to."""
    columns = zip(*records(seed), strict=True)
    log = rm.Trajectory(*columns, n_states=TRUTH.n_states, n_actions=TRUTH.n_actions)
    model, counts, _ = rm.estimate(log, DISCOUNT)
    radii = rm.radius_from_counts(counts, rm.KL(), CONFIDENCE)
    return {
        "nominal": rm.solve(model, rm.Nominal()).policy,
        "shorter horizon": rm.solve(model.with_discount(0.9), rm.Nominal()).policy,
        "robust": rm.solve(model, rm.Constrained(rm.KL(), radii)).policy,
    }


def study() -> Study:
    """Plan from many logs, judge in worlds with fewer and with more failures than the one that wrote them."""
    worlds = [rm.problems.pump(failure=rate, discount=DISCOUNT) for rate in FAILURES]
    worth: dict[str, list[list[float]]] = {}
    for seed in range(LOGS):
        for name, policy in plan(seed).items():
            earned = [float(rm.evaluate(world, policy, rm.Nominal()).value[0]) for world in worlds]
            worth.setdefault(name, []).append(earned)
    return Study({name: np.array(rows) for name, rows in worth.items()})


def gain(found: Study, name: str) -> tuple[FloatArray, FloatArray]:
    """What a policy earns beyond the nominal one in each world: the mean over logs, and half a 95 % interval of it."""
    difference = found.worth[name] - found.worth["nominal"]
    return difference.mean(axis=0), 1.96 * difference.std(axis=0, ddof=1) / np.sqrt(LOGS)


def tell(found: Study) -> None:
    """Money first."""
    here = int(np.flatnonzero(FAILURES == 0.012)[0])
    print(f"{LOGS} times {PUMPS * WEEKS} weeks of records. A policy is worth, from a new pump, in thousands:\n")
    print(f"{'policy':<18}{'mean':>8}{'worst tenth':>13}{'worst':>8}")
    for name, rows in found.worth.items():
        earned = np.sort(rows[:, here])
        print(f"{name:<18}{earned.mean():8.1f}{earned[: LOGS // 10].mean():13.1f}{earned[0]:8.1f}")
    best = rm.solve(TRUTH, rm.Nominal()).value[0]
    print(f"{'(best possible)':<18}{best:8.1f}")
    print("\nBeyond the nominal policy, mean over logs with its 95 % interval, where pumps fail less or more often:\n")
    print(f"{'policy':<18}" + "".join(f"{f'{rate / 0.012:g} times':>17}" for rate in FAILURES))
    for name in list(found.worth)[1:]:
        mean, half = gain(found, name)
        print(f"{name:<18}" + "".join(f"{m:+9.1f} +- {h:4.1f}" for m, h in zip(mean, half, strict=True)))


def draw(found: Study, path: Path) -> None:
    """Left what each log's policies are worth, right what doubt gains."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    here = int(np.flatnonzero(FAILURES == 0.012)[0])
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    colours = dict(zip(found.worth, ("tab:blue", "tab:orange", "tab:green"), strict=True))
    for name, rows in found.worth.items():
        share = np.arange(1, LOGS + 1) / LOGS
        left.plot(np.sort(rows[:, here]), share, drawstyle="steps-post", color=colours[name], label=name)
    left.set(xlabel="worth of the policy, thousands", ylabel="share of logs", title="Plans from many logs")
    left.legend()
    for name in list(found.worth)[1:]:
        mean, half = gain(found, name)
        right.errorbar(FAILURES / 0.012, mean, half, marker="o", capsize=3, color=colours[name], label=name)
    right.axhline(0.0, color="black", linewidth=0.8)
    right.set(xlabel="failures, times those of the records", ylabel="gain over nominal, thousands", title="Other pumps")
    right.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main(folder: Path = Path("demo")) -> Study:
    """Run the study, print it and draw it."""
    found = study()
    tell(found)
    draw(found, folder / "pumps.png")
    mean, half = gain(found, "robust")
    here = int(np.flatnonzero(FAILURES == 0.012)[0])
    verdict = "yes" if mean[here] > half[here] else "no" if mean[here] < -half[here] else "these logs do not tell"
    print(
        f"\nDoes doubting the records save money? {verdict.capitalize()}: {mean[here]:+.1f} thousand a pump on average."
    )
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo"))
