"""Six pumps, forty weeks of records, failures that are rare and dear: does doubting the records save money?"""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

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
RECORDED = 0.012  # chance per week that a new pump fails, where the records come from
FAILURES = np.array([0.003, 0.006, 0.012, 0.018, 0.024])
WORLDS = [rm.problems.pump(failure=rate, discount=DISCOUNT) for rate in FAILURES]
HERE = int(np.flatnonzero(FAILURES == RECORDED)[0])
SHOWN = 5  # the log of the page, one in which plans differ
SERVICE = 1  # the action


class Plan(NamedTuple):
    """What one log leads to: a model, its counts, and policies by name."""

    model: rm.MDP
    counts: rm.Counts
    policies: dict[str, npt.NDArray[np.int64]]


class Study(NamedTuple):
    """What each policy is worth from a new pump, in thousands.

    `worth` is (logs, failure rates) by name, `own` (logs,): under the model of the policy's own log.
    """

    worth: dict[str, FloatArray]
    own: dict[str, FloatArray]


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


def write_records(path: Path, seed: int = SHOWN) -> Path:
    """The records of one seed as a log with names."""
    with path.open("w", newline="", encoding="utf-8") as file:
        log = csv.writer(file, lineterminator="\n")
        log.writerow(("state", "action", "reward", "next_state"))
        for state, action, reward, following in records(seed):
            log.writerow(
                (TRUTH.state_name(state), TRUTH.action_name(action), f"{reward:g}", TRUTH.state_name(following))
            )
    return path


def plan(seed: int) -> Plan:
    """The policies that one log leads to."""
    columns = zip(*records(seed), strict=True)
    log = rm.Trajectory(*columns, n_states=TRUTH.n_states, n_actions=TRUTH.n_actions)
    model, counts, _ = rm.estimate(log, DISCOUNT)
    radii = rm.radius_from_counts(counts, rm.KL(), CONFIDENCE)
    policies = {
        "nominal": rm.solve(model, rm.Nominal()).policy,
        "shorter horizon": rm.solve(model.with_discount(0.9), rm.Nominal()).policy,
        "robust": rm.solve(model, rm.Constrained(rm.KL(), radii)).policy,
    }
    return Plan(model, counts, policies)


def study() -> Study:
    """Plan from many logs, judge in worlds with fewer and with more failures than the one that wrote them."""
    worth: dict[str, list[list[float]]] = {}
    own: dict[str, list[float]] = {}
    for seed in range(LOGS):
        model, _, policies = plan(seed)
        for name, policy in policies.items():
            earned = [float(rm.evaluate(world, policy, rm.Nominal()).value[0]) for world in (*WORLDS, model)]
            worth.setdefault(name, []).append(earned[:-1])
            own.setdefault(name, []).append(earned[-1])
    return Study(
        {name: np.array(rows) for name, rows in worth.items()}, {name: np.array(rows) for name, rows in own.items()}
    )


def gain(found: Study, name: str, other: str = "nominal") -> tuple[FloatArray, FloatArray]:
    """What a policy earns beyond another in each world: the mean over logs, and half a 95 % interval of it."""
    difference = found.worth[name] - found.worth[other]
    return difference.mean(axis=0), 1.96 * difference.std(axis=0, ddof=1) / np.sqrt(LOGS)


def summary(found: Study) -> list[tuple[str, float, float, float]]:
    """For each policy the mean over logs, the mean over the worst tenth of logs, and the worst."""
    rows = []
    for name, values in found.worth.items():
        earned = np.sort(values[:, HERE])
        rows.append((name, float(earned.mean()), float(earned[: LOGS // 10].mean()), float(earned[0])))
    return rows


def tell(found: Study) -> None:
    """Money first."""
    print(f"{LOGS} times {PUMPS * WEEKS} weeks of records. A policy is worth, from a new pump, in thousands:\n")
    print(f"{'policy':<18}{'mean':>8}{'worst tenth':>13}{'worst':>8}")
    for name, mean, tail, worst in summary(found):
        print(f"{name:<18}{mean:8.1f}{tail:13.1f}{worst:8.1f}")
    print(f"{'(best possible)':<18}{rm.solve(TRUTH, rm.Nominal()).value[0]:8.1f}")
    print("\nBeyond the nominal policy, mean over logs with its 95 % interval, where pumps fail less or more often:\n")
    print(f"{'policy':<18}" + "".join(f"{f'{rate / RECORDED:g} times':>17}" for rate in FAILURES))
    for name in list(found.worth)[1:]:
        mean, half = gain(found, name)
        print(f"{name:<18}" + "".join(f"{m:+9.1f} +- {h:4.1f}" for m, h in zip(mean, half, strict=True)))


def draw(found: Study, path: Path) -> None:
    """Left what each log's policies are worth, right what doubt gains."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    colours = dict(zip(found.worth, ("tab:blue", "tab:orange", "tab:green"), strict=True))
    for name, rows in found.worth.items():
        share = np.arange(1, LOGS + 1) / LOGS
        left.plot(np.sort(rows[:, HERE]), share, drawstyle="steps-post", color=colours[name], label=name)
    left.set(xlabel="worth of the policy, thousands", ylabel="share of logs", title="Plans from many logs")
    left.legend()
    for name in list(found.worth)[1:]:
        mean, half = gain(found, name)
        right.errorbar(FAILURES / RECORDED, mean, half, marker="o", capsize=3, color=colours[name], label=name)
    right.axhline(0.0, color="black", linewidth=0.8)
    right.set(xlabel="failures, times those of the records", ylabel="gain over nominal, thousands", title="Other pumps")
    right.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def report(found: Study, path: Path) -> Path:
    """A page: what doubt is worth over many logs, then one log in detail."""
    one = plan(SHOWN)
    named = replace(one.model, state_names=TRUTH.state_names, action_names=TRUTH.action_names)
    others = rm.worlds.Models(
        WORLDS, "pumps that fail 0.25 to 2 times as often", [f"{rate / RECORDED:g} times" for rate in FAILURES]
    )
    (mean, half), own = gain(found, "robust"), found.own["nominal"] - found.own["robust"]
    tails = {name: tail for name, _, tail, _ in summary(found)}
    lead = (
        f"Plan with doubt about the records (“robust”). Over {LOGS} simulated logs this earns {mean[HERE]:.1f} "
        f"thousand more per pump than to plan with each log as it is (95 % interval {mean[HERE] - half[HERE]:.1f} to "
        f"{mean[HERE] + half[HERE]:.1f}), and {tails['robust'] - tails['nominal']:.0f} thousand more in the worst "
        f"tenth of logs. If a log is exactly right, doubt costs {own.mean():.1f} thousand on average. All that follows "
        "the first section is about one of these logs, chosen because the two plans differ there."
    )
    certain = int((np.diff(one.counts.indptr) == 1).sum())
    analysis = rm.analyse(
        named,
        counts=one.counts,
        confidence=CONFIDENCE,
        initial=0,
        policies={"shorter horizon": one.policies["shorter horizon"]},
        worlds=others,
        title="Run, service or replace a pump? Forty weeks of records, failures that are rare and dear",
        lead=lead,
        unit="thousand",
        extra={f"What doubt is worth, over {LOGS} logs": many_logs(found)},
        source="mdp, counts, unseen = rm.estimate(rm.read_log('pumps.csv'), 0.98)",
        facts=[
            ("from", f"pumps.csv: {PUMPS} pumps, {WEEKS} weeks each, one of {LOGS} logs"),
            ("one outcome only", f"{certain} pairs: nothing else is thought possible there, not even a failure"),
        ],
    )
    return analysis.write(path)


def many_logs(found: Study) -> list[Any]:
    """The first section of the page: paragraphs, tables, figures."""
    same = int(np.isclose(found.worth["robust"][:, HERE], found.worth["nominal"][:, HERE], atol=0.05).sum())
    better = int((found.worth["robust"] > found.worth["nominal"] + 0.05)[:, HERE].sum())
    ahead, margin = (each[HERE] for each in gain(found, "robust", "shorter horizon"))
    others = list(found.worth)[1:]
    starts = {name: int(np.flatnonzero(policy == SERVICE)[0]) for name, policy in plan(SHOWN).policies.items()}
    gains = [[f"{m:+.1f} ± {h:.1f}" for m, h in zip(*gain(found, name), strict=True)] for name in others]
    return [
        "A week's run earns 3 thousand, a service costs 2, a new pump 12, and a failure 70. A log is what one crew "
        f"wrote down: {PUMPS} pumps, {WEEKS} weeks. It holds a handful of failures, so in some logs the estimated "
        "risk of running a worn pump is far off; a crew cannot know whether its own is one of them. The logs are "
        "simulated, so the truth is known: plans are judged by it, and none of them sees it.",
        {
            "header": ("plan", "mean over logs", "worst tenth of logs", "worst log"),
            "rows": [
                *((name, *(f"{number:.1f}" for number in numbers)) for name, *numbers in summary(found)),
                ("best possible", *(f"{rm.solve(TRUTH, rm.Nominal()).value[0]:.1f}",) * 3),
            ],
            "caption": f"What a new pump is worth under plans from {LOGS} logs, thousand",
        },
        distribution(found),
        f"“Nominal” takes the log as it is, “robust” doubts it. In {same} of {LOGS} logs the two are worth the same, "
        f"in {better} the robust one is worth more, in {LOGS - same - better} less: it is an insurance. A shorter "
        f"horizon (discount 0.9) is a simpler one; doubt earns {ahead:.1f} ± {margin:.1f} thousand more than that.",
        {
            "header": ("failures, times those of the logs", *others),
            "rows": [(f"{rate / RECORDED:g}", *row) for rate, *row in zip(FAILURES, *gains, strict=True)],
            "caption": "Gain over the nominal plan where pumps fail less or more often, thousand, with 95 % intervals",
        },
        f"The rest of the page is about one of the {LOGS} logs. It is no typical one: it was chosen because its two "
        f"plans differ: the nominal one services no pump before wear {starts['nominal']}, the robust one some from "
        f"wear {starts['robust']} on. By itself this log does not speak for doubt, and the page says so: its advice "
        "comes from worlds drawn from the log, and these hold only what the log has seen. The case for doubt is the "
        "two tables above, over many logs.",
    ]


def distribution(found: Study) -> Any:
    """What plans are worth, log by log."""
    import plotly.graph_objects as go
    from plotly.colors import qualitative

    figure = go.Figure()
    for (name, rows), colour in zip(found.worth.items(), qualitative.Dark2, strict=False):
        share = np.arange(1, LOGS + 1) / LOGS
        figure.add_scatter(
            x=np.sort(rows[:, HERE]), y=share, name=name, mode="lines", line={"color": colour, "shape": "hv"}
        )
    figure.update_layout(title={"text": "Plans from many logs"}, template="none", meta={"height": 22})
    figure.update_xaxes(title={"text": "worth of a new pump, thousand"})
    figure.update_yaxes(title={"text": "share of logs whose plan is worth at most that"})
    return figure


def main(folder: Path = Path("demo")) -> Study:
    """Run the study, print it, draw it and write the page."""
    print(f"Planning from {LOGS} logs takes half a minute.\n")
    found = study()
    tell(found)
    draw(found, folder / "pumps.png")
    mean, half = gain(found, "robust")
    verdict = "yes" if mean[HERE] > half[HERE] else "no" if mean[HERE] < -half[HERE] else "these logs do not tell"
    print(
        f"\nDoes doubting the records save money? {verdict.capitalize()}: {mean[HERE]:+.1f} thousand a pump on average."
    )
    print(f"\nreport   {report(found, folder / 'pumps.html')}")
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo"))
