"""A machine that wears out, with failure rates known from a log of maintenance alone: what may trusting them cost?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import robustmdp as rm
from robustmdp.app.page import Curve, Figure, Key, Palette, Panel, draw

FloatArray = npt.NDArray[np.float64]

MACHINE = rm.problems.machine_replacement()  # the truth; planners know its costs and what may follow what
KEEP, REPAIR, REPLACE = range(3)
HABITS = (0.8, 0.15, 0.05)  # how often the log keeps, repairs and replaces
RECORDS = 200
LOGS = 20
SHOWN = 4  # the log that is looked at in detail
HARDER = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0])  # times the odds of a failure
CONFIDENCE = 0.95


class Plan(NamedTuple):
    """What follows from one log: the estimate, the policy that trusts it, and the one that does not."""

    estimate: rm.Estimate
    nominal: rm.Solution
    robust: rm.Solution


class Found(NamedTuple):
    """One log in detail, and what the policies of many logs cost from new, (logs, worlds)."""

    plan: Plan
    advice: rm.Suggestion
    tried: rm.StressTable
    costs: dict[str, FloatArray]


def maintenance_log(seed: int) -> rm.Trajectory:
    """Month by month what was done and what came of it."""
    rng = np.random.default_rng(seed)
    broken, state, rows = MACHINE.n_states - 1, 0, []
    for _ in range(RECORDS):
        action = int(rng.choice(3, p=HABITS))
        if state == broken and action == KEEP:
            action = REPLACE
        reward, following, _ = MACHINE.sample(state, action, rng)
        rows.append((state, action, reward, following))
        state = following
    columns = zip(*rows, strict=True)
    return rm.Trajectory(*columns, n_states=MACHINE.n_states, n_actions=3, discount=MACHINE.discount)


def plan(seed: int) -> Plan:
    """Estimate, then plan with and without the radii that the counts leave."""
    found = rm.estimate(maintenance_log(seed), known=MACHINE)
    radii = rm.radius_from_counts(found.counts, rm.KL(), CONFIDENCE)
    robust = rm.solve(found.model, rm.Constrained(rm.KL(), radii))
    return Plan(found, rm.solve(found.model, rm.Nominal()), robust)


def harder(times: float) -> rm.MDP:
    """The true machine, used so much harder: the odds of a failure while it is kept, multiplied."""
    entry = np.repeat(np.arange(MACHINE.n_pairs), np.diff(MACHINE.indptr))
    fails = (MACHINE.actions[entry] == KEEP) & (MACHINE.indices == MACHINE.n_states - 1)
    mass = MACHINE.probabilities * np.where(fails, times, 1.0)
    return MACHINE.with_probabilities(mass / np.bincount(entry, mass)[entry])


def show(chosen: Plan) -> None:
    """What the log says of keeping the machine at each age, and what the policies do there."""
    visits = chosen.estimate.counts.visits[:, KEEP]
    rates = [_failure_rates(mdp) for mdp in (chosen.estimate.model, MACHINE)]
    print(f"{'':>8}{'failed when kept':>26}{'policy':>20}")
    print(f"{'':>8}{'tries':>8}{'estimate':>10}{'truth':>8}{'nominal':>10}{'robust':>10}")
    for state in range(6):
        words = [MACHINE.action_name(int(solution.policy[state])) for solution in (chosen.nominal, chosen.robust)]
        mark = "   <- differs" if words[0] != words[1] else ""
        seen = f"{visits[state]:>8.0f}{rates[0][state]:>10.2f}{rates[1][state]:>8.2f}"
        print(f"{MACHINE.state_name(state):>8}{seen}{words[0]:>10}{words[1]:>10}{mark}")


def _failure_rates(mdp: rm.MDP) -> FloatArray:
    """The probability that a machine that is kept breaks down, by state."""
    broken = mdp.probabilities * (mdp.indices == mdp.n_states - 1)
    return mdp.table(np.add.reduceat(broken, mdp.indptr[:-1]))[:, KEEP]


def tell(advice: rm.Suggestion) -> None:
    """Is doubt within the data worth anything?"""
    gains = advice.candidates["test_worst_tenth"] - advice.candidates["test_worst_tenth"][0]
    gain = float(gains[advice.candidates["chosen"]][0])
    verdict = f"saves {gain:.2f}" if gain > 0.01 else "saves nothing"
    print("\nIf the log is all there is to doubt, `suggest` finds that the best share of its radii " + verdict)
    print("in the worst tenth of the machines that the log leaves possible.")


def try_policies(chosen: Plan) -> rm.StressTable:
    """Both policies on machines that the log leaves possible, on the true one, and on one that is used harder."""
    worlds: list[rm.worlds.Family] = [rm.worlds.Plausible(chosen.estimate.counts, seed=1)]
    worlds += [rm.worlds.Models([harder(times)], f"true machine, odds x {times:g}") for times in HARDER]
    policies = {"nominal": chosen.nominal, "robust": chosen.robust}
    return rm.stress(chosen.estimate.model, policies, worlds, initial=0)


def costs_of_many() -> dict[str, FloatArray]:
    """The cost from new of both policies, for many logs and all worlds."""
    worlds = [harder(times) for times in HARDER]
    costs: dict[str, list[list[float]]] = {"nominal": [], "robust": []}
    for seed in range(LOGS):
        chosen = plan(seed)
        for name, solution in (("nominal", chosen.nominal), ("robust", chosen.robust)):
            values = [rm.evaluate(world, solution.policy, rm.Nominal()).value[0] for world in worlds]
            costs[name].append([-value for value in values])
    return {name: np.array(rows) for name, rows in costs.items()}


def figure(costs: dict[str, FloatArray]) -> Figure:
    """Cost against how hard the machine is used."""
    curves = tuple(
        Curve(Key("policy", name), HARDER, rows.mean(axis=0), rows.min(axis=0), rows.max(axis=0))
        for name, rows in costs.items()
    )
    title = f"mean over {LOGS} logs, bands from the cheapest to the dearest"
    panel = Panel(title, "odds of a failure, times those in the log", "discounted cost from new", curves)
    return Figure(
        "machine", "A machine used harder than its log says", "Cost of policies that logs lead to.", "", (panel,)
    )


def conclusion(tried: rm.StressTable, costs: dict[str, FloatArray]) -> None:
    """The one log beside the mean of many, since one may be luck."""
    print(f"\nDiscounted cost from new, of this log's policies and on average over {LOGS} logs:\n")
    print(f"{'':>28}{'this log':>20}{'all logs':>20}")
    print(f"{'':>28}" + f"{'nominal':>10}{'robust':>10}" * 2)
    families = list(dict.fromkeys(tried["family"].tolist()))
    for place, family in enumerate(families):
        cells = [-value for value in tried.where(family=family)["worst_tenth"]]
        cells += [costs[name][:, place - 1].mean() for name in costs] if place else []
        name = family if place else "worst tenth given the log"
        print(f"{name:>28}" + "".join(f"{cell:>10.2f}" for cell in cells))
    saved = (costs["nominal"] - costs["robust"]).mean(axis=0)
    print(f"\nOn average robust costs {-saved[HARDER == 1.0][0]:.2f} more on the machine that the log is about.")
    better = HARDER[saved > 0]
    if better.size:
        print(f"It saves from odds x {better.min():g} on, {saved.max():.2f} at x {HARDER[saved.argmax()]:g}.")
    else:
        print("It saves nowhere.")


def main(folder: Path = Path("demo")) -> Found:
    """One log in detail, then many."""
    print(f"A machine ages, fails and can be kept, repaired or replaced; {RECORDS} records say how it went.\n")
    chosen = plan(SHOWN)
    show(chosen)
    advice = rm.suggest(chosen.estimate.model, rm.KL(), counts=chosen.estimate.counts, initial=0, draws=100)
    tell(advice)
    tried, costs = try_policies(chosen), costs_of_many()
    conclusion(tried, costs)
    plot = figure(costs)
    draw(plot, folder, Palette.of([plot]))
    return Found(chosen, advice, tried, costs)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
